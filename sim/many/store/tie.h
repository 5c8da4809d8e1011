/* tie: which rows are too near to each other to be told apart. The one place that decides it: tables, comparisons and
 * the verification of a sweep ask here.
 *
 * Two rows tie if their numbers differ by no more than
 * - the noise: the greater of their distances from iteration_time_s_p10 to _p90, as a share of their iteration time,
 * - or the expected error of their ratio, as a share of the smaller number. Of one software, model and GPU that is the
 *   greater of their expected_ratio_error_share, which 6 of 10 published ratios are within: so in 8 of 10 cases the order
 *   of two that do not tie is right. Of rows that differ in these the errors of both times count
 *   (expected_error_share): the root of the sum of their squares.
 * That holds for iteration times and for all that is work over iteration time; of other numbers nothing is stated, and
 * only equal ones tie. */
#ifndef DTSIM_TIE_H
#define DTSIM_TIE_H

#include "base/base.h"
#include "files/json.h"

/* A row's number with what is known of its error. */
struct tie_number {
    double number, noise;
    double error;                    /* of the number, which 6 of 10 are within, and 9 of 10 within twice it */
    double ratio, ratio_most;        /* of a ratio to another of the same work, which 6 and 9 of 10 are within */
    uint64_t work;                   /* the same of rows of one software, model and GPU */
};                                   /* errors are shares; 0: none is known */
/* `key`: the name of the metric that `number` is. */
struct tie_number tie_number_of(const json_t *row, const char *key, double number);
bool tie_holds(struct tie_number a, struct tie_number b);

/* The rank of a row, from 1 on; 0: it has no number. */
struct tie_rank { size_t rank; bool shared; };
/* The ranks of numbers in any order. Best first, the first of a band and all that tie with it share a rank; the next
 * one begins another band, and its rank is how many are before it and 1 more. */
void tie_ranks(const struct tie_number *numbers, size_t count, bool largest_first, struct tie_rank *ranks);
/* For people: "1", or "1=" where others share it; "-": it has none. */
char *tie_text(struct tie_rank rank, char *text, size_t size);
/* A sentence for people, without the line's end: what bands rest on, or that nothing is known of errors. */
void tie_explain(const struct tie_number *numbers, size_t count, FILE *out);

#endif
