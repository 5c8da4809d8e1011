/* reference: the correct results of kernels, in double precision, computed as simply as possible. */
#ifndef DTSIM_REFERENCE_H
#define DTSIM_REFERENCE_H

#include "case.h"

/* Computes the outputs of the case from its inputs, both as bench_operands() lists them, one value a double. Outputs
 * with an initial value (Adam's states) must have it here. Scratch is not written. A dropout's mask is an input: the
 * mask that the kernel drew. */
void reference_run(const struct bench_case *one, double *const operands[OPERANDS_MAX]);

#endif
