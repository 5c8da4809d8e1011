/* field_sample: one table with every kind of field, for the tests and the fuzzer. */
#ifndef DTSIM_FIELD_SAMPLE_H
#define DTSIM_FIELD_SAMPLE_H

#include <string.h>

#include "config/field.h"

struct sample_gpipe {
    int backward;
    const struct node *node;
};
static const struct field sample_gpipe_fields[] = {
    {KEY(sample_gpipe, backward), .kind = FIELD_CHOICE, .choices = NAMES("fused", "split"), .fallback = "fused",
     .brief = "in one or in two"},
};
static const struct table sample_gpipe_table = {TABLE("gpipe", "its options", sample_gpipe, sample_gpipe_fields)};

struct sample_strategy {
    int schedule, tensor, data, pipeline;
    bool flush;
    struct list placement, split;
    void *options;
    const struct node *node;
};
static const char *sample_schedule(size_t index)
{
    static const char *const names[] = {"1f1b", "gpipe", "none"};

    return index < COUNT(names) ? names[index] : NULL;
}
static const struct field sample_strategy_fields[] = {
    {KEY(sample_strategy, schedule), .kind = FIELD_CHOICE, .choice = sample_schedule, .required = true,
     .brief = "order of the work"},
    {KEY(sample_strategy, tensor), .kind = FIELD_INT, .also = "tp tensor_size", .min = 1, .fallback = "1",
     .brief = "degree"},
    {KEY(sample_strategy, data), .kind = FIELD_INT, .min = 1, .max = 1e6, .brief = "degree"},
    {KEY(sample_strategy, pipeline), .kind = FIELD_INT, .min = 1, .fallback = "1", .brief = "degree"},
    {KEY(sample_strategy, flush), .kind = FIELD_BOOL, .fallback = "true", .brief = "wait at the end"},
    {KEY(sample_strategy, placement), .kind = FIELD_CHOICES, .choices = NAMES("tensor", "data"), .fallback = "[tensor]",
     .brief = "fastest first"},
    {KEY(sample_strategy, split), .kind = FIELD_INTS, .max = 99, .brief = "shares"},
};
static const struct table *sample_options(struct arena *arena, void *object, void **extra)
{
    struct sample_strategy *strategy = object;

    if (strcmp(sample_schedule((size_t)strategy->schedule), "gpipe") != 0)
        return NULL;
    if (!strategy->options)
        strategy->options = arena_alloc(arena, sizeof(struct sample_gpipe));
    *extra = strategy->options;
    return &sample_gpipe_table;
}
static const struct table *sample_options_at(size_t index)
{
    return index == 0 ? &sample_gpipe_table : NULL;
}
static const struct table sample_strategy_table = {
    TABLE("strategy", "order and degrees", sample_strategy, sample_strategy_fields),
    .shorthand = "schedule", .extension = sample_options, .extension_at = sample_options_at,
};

struct sample_link {
    double bandwidth, latency, share, buffer, offset;
    const struct node *node;
};
static const struct field sample_link_fields[] = {
    {KEY(sample_link, bandwidth), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true, .required = true,
     .brief = "each way"},
    {KEY(sample_link, latency), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "1 us", .brief = "one way"},
    {KEY(sample_link, share), .kind = FIELD_QUANTITY, .max = 1, .positive = true, .brief = "of the bandwidth"},
    {KEY(sample_link, buffer), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .min = 1e3, .max = 2e9,
     .brief = "of the port"},
    {KEY(sample_link, offset), .kind = FIELD_QUANTITY, .min = -5, .max = 5, .brief = "of the clock"},
};
static const struct table sample_link_table = {TABLE("link", "a link", sample_link, sample_link_fields)};

struct sample_layer {
    const char *name;
    double forward, parameters;
    const struct node *node;
};
static const struct field sample_layer_fields[] = {
    {KEY(sample_layer, name), .kind = FIELD_STRING, .brief = "of the layer"},
    {KEY(sample_layer, forward), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true, .brief = "time"},
    {KEY(sample_layer, parameters), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .brief = "how many"},
};
static const struct table sample_layer_table = {TABLE("layer", "a layer", sample_layer, sample_layer_fields)};

struct sample_memory {
    double fraction, states;
    const struct node *node;
};
static const struct field sample_memory_fields[] = {
    {KEY(sample_memory, fraction), .kind = FIELD_QUANTITY, .max = 1, .fallback = "0.9", .brief = "usable"},
    {KEY(sample_memory, states), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .brief = "of the optimizer"},
};
static const struct table sample_memory_table = {
    TABLE("memory", "what is stored", sample_memory, sample_memory_fields),
};

struct sample {
    const char *name, *preset, *file;
    struct sample_strategy strategy;
    struct sample_link *link;
    struct list layers;
    struct sample_memory memory;
    double limit;
    const struct node *node;
};
static const struct field sample_fields[] = {
    {KEY(sample, name), .kind = FIELD_STRING, .brief = "of the results"},
    {KEY(sample, preset), .kind = FIELD_STRING, .brief = "a name"},
    {KEY(sample, file), .kind = FIELD_STRING, .brief = "a path"},
    {KEY(sample, strategy), .kind = FIELD_RECORD, .table = &sample_strategy_table, .required = true,
     .brief = "how it is divided"},
    {KEY(sample, link), .kind = FIELD_OPTIONAL, .table = &sample_link_table, .brief = "the network"},
    {KEY(sample, layers), .kind = FIELD_LIST, .table = &sample_layer_table, .single = true, .brief = "the model"},
    {KEY(sample, memory), .kind = FIELD_RECORD, .table = &sample_memory_table, .brief = "of a GPU"},
    {KEY(sample, limit), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .brief = "of memory"},
};
static const struct table sample_table = {
    TABLE("sample", "a sample", sample, sample_fields),
    .exactly_one = "preset file",
};

#endif
