/* buffers: in which pieces PyTorch's DataParallel exchanges the tensors of a stage. */
#ifndef DTSIM_BUFFERS_H
#define DTSIM_BUFFERS_H

#include "stage/stage.h"

/* Sizes in B, in the order of the model. `packed`: B of the buffers that hold several tensors. */
struct buffers { double *items; size_t count, capacity; double packed; };

/* The buffers of all tensors of a stage, of `each` B a parameter; free(items). They have 10 MiB
 * (torch/nn/parallel/comm.py, buffer_size). A buffer of a broadcast is closed once its bytes plus its last tensor's
 * reach the limit (take_tensors in torch/csrc/utils/tensor_flatten.cpp); a buffer of a reduction, if the next tensor
 * would exceed the limit (_take_tensors in torch/_utils.py). */
struct buffers buffers_of(const struct stage *stage, double each, bool broadcast);

#endif
