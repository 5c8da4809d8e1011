/* reference_product: the part of reference that computes products and layers of experts. */
#ifndef DTSIM_REFERENCE_PRODUCT_H
#define DTSIM_REFERENCE_PRODUCT_H

#include "case.h"

/* The outputs of a case, as reference_run does: of a product of any form, or of a layer of experts (its scratch too).
 * */
void reference_product(const struct bench_case *one, double *const operands[OPERANDS_MAX]);
void reference_moe(const struct bench_case *one, double *const operands[OPERANDS_MAX]);

#endif
