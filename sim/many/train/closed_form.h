/* closed_form: the interval between checkpoints with the most goodput, and that goodput, for exponential times between
 * failures. All times in s: `stall` that a checkpoint takes, `recovery` that a failure takes besides the work that it
 * loses, `mtbf` the mean time between failures. A failure during a recovery begins it anew. */
#ifndef DTSIM_CLOSED_FORM_H
#define DTSIM_CLOSED_FORM_H

/* sqrt(2 d M): Young 1974, "A first order approximation to the optimum checkpoint interval", Communications of the ACM
 * 17(9). */
double closed_form_young(double stall, double mtbf);
/* Daly 2006, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer
 * Systems 22(3): sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + d / 18M) - d for d < 2M, else M. */
double closed_form_daly(double stall, double mtbf);
/* M (1 + W(-exp(-1 - d/M))): where the derivative of closed_form_wall() by the interval is zero (the same
 * paper). W is Lambert's function on its principal branch. */
double closed_form_exact(double stall, double mtbf);
/* The same of checkpoints of which each is finished `write` s after it began, beside the training: the least interval of
 * whole steps of `step` s in which one is written, if that is longer. A shorter one would wait for the one before. */
double closed_form_beside(double stall, double write, double step, double mtbf);
/* Wall time over useful time: M exp(R/M) (exp((tau + d)/M) - 1) / tau (the same paper). */
double closed_form_wall(double interval, double stall, double recovery, double mtbf);
/* The solution w >= -1 of w exp(w) = x, for x from -1/e to 0. */
double closed_form_lambert(double x);

/* The probability that `copies` out of `nodes` nodes, lost at once, hold all copies of a share: a group of that size, or, of
 * the last group where nodes are left over, as many neighbours in its ring; over the number of ways to choose them (Wang
 * et al. 2023, "GEMINI", SOSP, one less its probability to recover from memory). */
double closed_form_group_lost(int nodes, int copies);

#endif
