/* field_sample: one table with every kind of field, for the tests and the fuzzer. */
#ifndef DTSIM_FIELD_SAMPLE_H
#define DTSIM_FIELD_SAMPLE_H

#include <string.h>

#include "config/field.h"

#define NAMES(...) (const char *const[]){__VA_ARGS__, NULL}
#define TABLE(text, help, record) \
    .name = text, .brief = help, .fields = record##_fields, .count = COUNT(record##_fields), \
    .size = sizeof(struct record), .node_offset = offsetof(struct record, node)

struct sample_gpipe {
    int backward;
    const struct node *node;
};
static const struct field sample_gpipe_fields[] = {
    {.key = "backward", .kind = FIELD_CHOICE, .offset = offsetof(struct sample_gpipe, backward),
     .choices = NAMES("fused", "split"), .fallback = "fused", .brief = "in one or in two"},
};
static const struct table sample_gpipe_table = {TABLE("gpipe", "its options", sample_gpipe)};

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
#define MEMBER(member) .offset = offsetof(struct sample_strategy, member)
static const struct field sample_strategy_fields[] = {
    {.key = "schedule", .kind = FIELD_CHOICE, MEMBER(schedule), .choice = sample_schedule, .required = true,
     .brief = "order of the work"},
    {.key = "tensor", .kind = FIELD_INT, MEMBER(tensor), .min = 1, .fallback = "1", .brief = "degree"},
    {.key = "data", .kind = FIELD_INT, MEMBER(data), .min = 1, .max = 1e6, .brief = "degree"},
    {.key = "pipeline", .kind = FIELD_INT, MEMBER(pipeline), .min = 1, .fallback = "1", .brief = "degree"},
    {.key = "flush", .kind = FIELD_BOOL, MEMBER(flush), .fallback = "true", .brief = "wait at the end"},
    {.key = "placement", .kind = FIELD_CHOICES, MEMBER(placement), .choices = NAMES("tensor", "data"),
     .fallback = "[tensor]", .brief = "fastest first"},
    {.key = "split", .kind = FIELD_INTS, MEMBER(split), .max = 99, .brief = "shares"},
};
#undef MEMBER
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
static const struct table sample_strategy_table = {
    TABLE("strategy", "order and degrees", sample_strategy), .shorthand = "schedule", .extension = sample_options,
};

struct sample_link {
    double bandwidth, latency, share, buffer, offset;
    const struct node *node;
};
#define MEMBER(member) .offset = offsetof(struct sample_link, member)
static const struct field sample_link_fields[] = {
    {.key = "bandwidth", .kind = FIELD_QUANTITY, MEMBER(bandwidth), .unit = UNIT_BANDWIDTH, .positive = true,
     .required = true, .brief = "each way"},
    {.key = "latency", .kind = FIELD_QUANTITY, MEMBER(latency), .unit = UNIT_TIME, .fallback = "1 us",
     .brief = "one way"},
    {.key = "share", .kind = FIELD_QUANTITY, MEMBER(share), .max = 1, .positive = true, .brief = "of the bandwidth"},
    {.key = "buffer", .kind = FIELD_QUANTITY, MEMBER(buffer), .unit = UNIT_BYTES, .min = 1e3, .max = 2e9,
     .brief = "of the port"},
    {.key = "offset", .kind = FIELD_QUANTITY, MEMBER(offset), .min = -5, .max = 5, .brief = "of the clock"},
};
#undef MEMBER
static const struct table sample_link_table = {TABLE("link", "a link", sample_link)};

struct sample_layer {
    const char *name;
    double forward, parameters;
    const struct node *node;
};
#define MEMBER(member) .offset = offsetof(struct sample_layer, member)
static const struct field sample_layer_fields[] = {
    {.key = "name", .kind = FIELD_STRING, MEMBER(name), .brief = "of the layer"},
    {.key = "forward", .kind = FIELD_QUANTITY, MEMBER(forward), .unit = UNIT_TIME, .required = true, .brief = "time"},
    {.key = "parameters", .kind = FIELD_QUANTITY, MEMBER(parameters), .unit = UNIT_COUNT, .brief = "how many"},
};
#undef MEMBER
static const struct table sample_layer_table = {TABLE("layer", "a layer", sample_layer)};

struct sample_memory {
    double fraction, states;
    const struct node *node;
};
#define MEMBER(member) .offset = offsetof(struct sample_memory, member)
static const struct field sample_memory_fields[] = {
    {.key = "fraction", .kind = FIELD_QUANTITY, MEMBER(fraction), .max = 1, .fallback = "0.9", .brief = "usable"},
    {.key = "states", .kind = FIELD_QUANTITY, MEMBER(states), .unit = UNIT_BYTES, .brief = "of the optimizer"},
};
#undef MEMBER
static const struct table sample_memory_table = {TABLE("memory", "what is stored", sample_memory)};

struct sample {
    const char *name, *preset, *file;
    struct sample_strategy strategy;
    struct sample_link *link;
    struct list layers;
    struct sample_memory memory;
    double limit;
    const struct node *node;
};
#define MEMBER(member) .offset = offsetof(struct sample, member)
static const struct field sample_fields[] = {
    {.key = "name", .kind = FIELD_STRING, MEMBER(name), .brief = "of the results"},
    {.key = "preset", .kind = FIELD_STRING, MEMBER(preset), .brief = "a name"},
    {.key = "file", .kind = FIELD_STRING, MEMBER(file), .brief = "a path"},
    {.key = "strategy", .kind = FIELD_RECORD, MEMBER(strategy), .table = &sample_strategy_table, .required = true,
     .brief = "how it is divided"},
    {.key = "link", .kind = FIELD_OPTIONAL, MEMBER(link), .table = &sample_link_table, .brief = "the network"},
    {.key = "layers", .kind = FIELD_LIST, MEMBER(layers), .table = &sample_layer_table, .single = true,
     .brief = "the model"},
    {.key = "memory", .kind = FIELD_RECORD, MEMBER(memory), .table = &sample_memory_table, .brief = "of a GPU"},
    {.key = "limit", .kind = FIELD_QUANTITY, MEMBER(limit), .unit = UNIT_BYTES, .brief = "of memory"},
};
#undef MEMBER
static const struct table sample_table = {TABLE("sample", "a sample", sample), .exactly_one = "preset file"};

#endif
