/* reference: what a kernel should compute, in double precision and as simply as can be. */
#ifndef DTSIM_REFERENCE_H
#define DTSIM_REFERENCE_H

#include "case.h"

/* Computes the outputs of the case from its inputs, both as bench_operands() lists them, one value a double. Outputs
 * that hold something before (Adam's states) hold it here. Scratch is left alone. A dropout's mask is an input: what
 * the kernel drew. */
void reference_run(const struct bench_case *one, double *const operands[OPERANDS_MAX]);

#endif
