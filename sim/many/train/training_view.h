/* training_view: what a training says, for its JSON, its help and its sentences. */
#ifndef DTSIM_TRAINING_VIEW_H
#define DTSIM_TRAINING_VIEW_H

#include "train/training.h"
#include "view/view.h"

/* Rows of an estimate: its mean and its quantiles. */
#define ESTIMATE(ROW, key, of, brief) \
    ROW(key, json_finite(of.mean), brief) \
    ROW(key##_p10, json_finite(of.p10), "the least of it that 10 % of the trials do not exceed") \
    ROW(key##_p50, json_finite(of.p50), "the same, 50 %") \
    ROW(key##_p90, json_finite(of.p90), "the same, 90 %")

/* Of a struct training; of where its wall time goes. */
extern const struct view training_view, training_shares;
/* A shape of the training on fewer nodes, and its speed over that on all of them. */
struct training_on { const struct shape *shape; double pace; };
extern const struct view training_shape;
/* The shapes, the largest first; where holes are possible, also its shape on all nodes. Returns how many; `shapes` has room for
 * one a node. */
size_t training_shapes(const struct training *training, struct training_on *shapes);

#endif
