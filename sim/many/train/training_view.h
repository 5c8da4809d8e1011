/* training_view: what a training says, for its JSON, its help and its sentences. */
#ifndef DTSIM_TRAINING_VIEW_H
#define DTSIM_TRAINING_VIEW_H

#include "train/training.h"
#include "view/view.h"

/* Of a struct training; of where its wall time goes. */
extern const struct view training_view, training_shares;
/* A shape of the training on fewer nodes, and its speed over that on all of them. */
struct training_on { const struct shape *shape; double pace; };
extern const struct view training_shape;
/* The shapes, the largest first; where holes are possible, also its shape on all nodes. Returns how many; `shapes` has room for
 * one a node. */
size_t training_shapes(const struct training *training, struct training_on *shapes);

#endif
