/* kineto_ops: which kernel of a training step an operation of PyTorch is, by its name and the arguments that its
 * profiler recorded ("Input Dims", "Input Strides", "Input type", "Concrete Inputs"; pytorch/pytorch,
 * torch/csrc/profiler/util.cpp and torch/csrc/autograd/profiler_kineto.cpp; the order of the arguments:
 * aten/src/ATen/native/native_functions.yaml). */
#ifndef DTSIM_KINETO_OPS_H
#define DTSIM_KINETO_OPS_H

#include <jansson.h>

#include "kernels/kernel_time.h"

/* A row of samples without its time (calibrate/samples.h). A number that is 0 is an empty cell. */
struct kineto_shape {
    const char *kernel;
    const char *dtype;
    const char *layout;              /* of products; else NULL */
    double batch, m, n, k;
    double bytes;
};

/* 1: *shape is the operation's. 0: another operation. -1: one whose kernel is known but not its shape; *why says what
 * is missing.
 * Products: mm, addmm, bmm, baddbmm, linear and _scaled_mm. Attention: FlashAttention-2 as PyTorch has it and as the
 * package flash-attn registers it. Norms, softmax, gelu, embeddings, copies that only change the format, and fused
 * Adam, whose bytes follow from the format that kineto_kernel_format finds. */
int kineto_shape_of(const char *name, const json_t *args, struct kineto_shape *shape, const char **why);

/* What a kernel's name tells of its format. */
enum kineto_format { KINETO_FORMAT_UNKNOWN, KINETO_FORMAT_TF32, KINETO_FORMAT_FP32, KINETO_FORMAT_HALF };
enum kineto_format kineto_kernel_format(const char *kernel);
/* Completes a shape by the format of its kernels; -1 and *why: it cannot be. */
int kineto_shape_finish(struct kineto_shape *shape, enum kineto_format format, const char **why);

#endif
