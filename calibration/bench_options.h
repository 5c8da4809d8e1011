/* bench_options: the command line of dtsim-bench. */
#ifndef DTSIM_BENCH_OPTIONS_H
#define DTSIM_BENCH_OPTIONS_H

#include "base/base.h"
#include "case.h"

struct bench_options {
    double seconds;              /* of measuring, all in all */
    uint64_t seed;
    const char *output;          /* a path; NULL: standard output */
    int device;                  /* the GPU, numbered as CUDA does */
    bool quick, resume, check, list, help, version;
    bool wanted[BENCH_KERNELS][BENCH_DTYPES];    /* what --only names, or all; without what --without names */
};

/* Prints what is wrong to stderr and returns EXIT_USAGE, or 0. */
int bench_options_parse(struct bench_options *options, int argc, char **argv);
/* `built` says what the program was built with, a line. */
void bench_options_help(FILE *out, const char *built);

#endif
