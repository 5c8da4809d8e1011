/* price: what an hour of the cluster's GPUs costs, by names of platforms and GPUs. */
#ifndef DTSIM_PRICE_H
#define DTSIM_PRICE_H

#include "base/base.h"
#include "config/conf.h"

struct cluster;

/* $ an hour of one GPU of the cluster where `price` is a mapping of names to prices: of its platform or GPU; the mean over the GPUs
 * of its parts; NaN: one of them has none. Errors: a name that no platform and no GPU has, or may be of several; two names of one. */
int price_of_own(struct arena *arena, const struct node *price, const struct cluster *cluster, double *own, struct error *err);

#endif
