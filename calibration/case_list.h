/* case_list: the cases of one kind while they are listed. cases.c brings the kinds into the order of measuring. */
#ifndef DTSIM_CASE_LIST_H
#define DTSIM_CASE_LIST_H

#include "case.h"

struct case_kind {
    struct bench_cases cases;
    const struct bench_limits *limits;
};

/* Appends the case, if it is wanted and this machine can run it in its memory. */
void case_add(struct case_kind *kind, struct bench_case one);
/* Products longer than so many FLOPs show little more than shorter ones, and take much time. */
double case_most_flop(enum bench_dtype dtype);
/* The format of activations on this chip. */
enum bench_dtype case_half(const struct bench_limits *limits);

/* The experts' products of mixture models, and whole layers of experts, in a format. */
void case_list_grouped(struct case_kind *kind, enum bench_dtype dtype);
void case_list_moe(struct case_kind *kind, enum bench_dtype dtype);

#endif
