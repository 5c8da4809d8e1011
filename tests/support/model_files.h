/* What the tests of models share: models loaded from text or by name, cut into layers. */
#ifndef DTSIM_TEST_MODEL_FILES_H
#define DTSIM_TEST_MODEL_FILES_H

#include "model/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MODELS DTSIM_SOURCE_DIR "/scenarios/models/"

static struct arena arena;
static struct error error;

static inline int forget(void **state)
{
    (void)state;
    arena_release(&arena);
    error_release(&error);
    memset(&error, 0, sizeof error);
    return 0;
}

static inline void assert_close(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g instead of %.17g", actual, expected);
}

/* Reads `text` as what stands under `model:`. */
static inline int load(const char *text, struct model *model)
{
    struct node *root;

    assert_int_equal(conf_parse(&arena, "test.yaml", text, strlen(text), &root, &error), 0);
    return model_load(&arena, root, model, &error);
}

static inline struct model load_good(const char *text)
{
    struct model model;

    if (load(text, &model) != 0) {
        error_print(&error, stderr);
        fail_msg("does not load: %s", text);
    }
    assert_int_equal(error.count, 0);
    return model;
}

static inline struct model preset(const char *name)
{
    return load_good(arena_printf(&arena, "preset: %s", name));
}

/* A GPT of l layers of width h, with a heads and sequences of s tokens. */
static inline struct model gpt(int l, int h, int a, int s)
{
    return load_good(arena_printf(&arena, "transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d,"
                                  " vocabulary: 51200}", l, h, a, s));
}

/* A GPU's share under tensor parallelism alone. */
static inline struct shard plain(int micro, int tensor)
{
    return (struct shard){.micro = micro, .tensor = tensor, .dtype = DTYPE_FP16};
}

struct layers {
    const struct layer *items;
    size_t count;
};

static inline struct layers cut(const struct model *model, struct shard shard)
{
    struct layers layers;

    if (model_layers(&arena, model, &shard, (struct loc){0}, &layers.items, &layers.count, &error) != 0) {
        error_print(&error, stderr);
        fail_msg("cannot be cut");
    }
    return layers;
}

/* The operator of the layer's kernel. */
static inline const struct operator *operator_of(const struct layer *layer, const struct kernel *kernel)
{
    const struct operator *op = layer->operators;

    while (op->first + op->nkernels <= (size_t)(kernel - layer->kernels))
        op++;
    return op;
}

static inline bool in_core(const struct layer *layer, const struct kernel *kernel)
{
    return operator_of(layer, kernel)->modules >> MODULE_CORE & 1;
}

/* Matrix-product FLOPs of a layer in one phase. */
static inline double flop_of(const struct layer *layer, enum phase phase)
{
    double total = 0;

    for (size_t i = 0; i < layer->nkernels; i++)
        if (layer->kernels[i].phase == phase)
            total += layer->kernels[i].flop * layer->kernels[i].launches;
    return total;
}

/* All kernels of a name in one phase: how many there are, B that they read and write, and values of those that are
 * broadcast, converted or not contiguous. */
struct kernel_sums {
    int launches;
    double bytes, unvectorized;
};

static inline struct kernel_sums kernel_sums(const struct layer *layer, const char *name, enum phase phase)
{
    struct kernel_sums sums = {0};

    for (size_t i = 0; i < layer->nkernels; i++) {
        const struct kernel *kernel = &layer->kernels[i];

        if (strcmp(kernel->name, name) != 0 || kernel->phase != phase)
            continue;
        sums.launches += kernel->launches;
        sums.bytes += kernel->launches * kernel->bytes;
        sums.unvectorized += kernel->launches * kernel->unvectorized;
    }
    return sums;
}

/* B of all kernels of that name; -1: there is none. */
static inline double kernel_bytes(const struct layer *layer, const char *name, enum phase phase)
{
    struct kernel_sums sums = kernel_sums(layer, name, phase);

    return sums.launches ? sums.bytes : -1;
}

static inline double unvectorized_values(const struct layer *layer, const char *name, enum phase phase)
{
    return kernel_sums(layer, name, phase).unvectorized;
}

/* FLOPs of one launch of each kernel of the layer. */
static inline double kernels_flop(const struct layer *layer)
{
    double sum = 0;

    for (size_t i = 0; i < layer->nkernels; i++)
        sum += layer->kernels[i].flop;
    return sum;
}

/* The only message, as "LINE:COLUMN: TEXT", and its code. */
static inline void expect_message(enum exit_code code, const char *expected)
{
    const struct error_message *message = &error.messages[0];

    if (error.count != 1)
        error_print(&error, stderr);
    assert_int_equal(error.count, 1);
    assert_int_equal(message->code, code);
    assert_string_equal(arena_printf(&arena, "%d:%d: %s", message->loc.line, message->loc.column, message->text),
                        expected);
    error_release(&error);
    memset(&error, 0, sizeof error);
}

/* Values that do not go together. */
static inline void clashes(const char *text, const char *expected)
{
    struct model model;

    assert_int_equal(load(text, &model), -1);
    expect_message(EXIT_INFEASIBLE, expected);
}

static inline void refused(const char *text, const char *expected)
{
    struct model model;

    assert_int_equal(load(text, &model), -1);
    expect_message(EXIT_INPUT, expected);
}

#endif
