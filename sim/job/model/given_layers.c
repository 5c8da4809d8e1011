/* Layers whose times or FLOPs are given, one by one or in a table, and stages whose times are given. */
#include "model/given_layers.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/conf.h"
#include "config/field.h"
#include "hardware/gpu.h"

#define TIME(member, ...) {KEY(given_layer, member), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, __VA_ARGS__}
#define BYTES(member, ...) \
    {KEY(given_layer, member), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .fallback = "0 B", __VA_ARGS__}
#define LEFT_OUT(member, unit_, ...) {KEY(given_layer, member), .kind = FIELD_QUANTITY, .unit = unit_, __VA_ARGS__}
#define BACKWARD_FIELDS \
    TIME(backward, .brief = "time of the backward in one piece; left out: backward_input + backward_weight, or " \
                            "2 x forward"), \
    TIME(recompute, .brief = "time to recompute the forward before the backward; left out: as forward"), \
    TIME(backward_input, .brief = "time of the backward for the input's gradient; left out: backward - " \
                                  "backward_weight, or half of backward"), \
    TIME(backward_weight, .brief = "time of the backward for the weights' gradient; left out: backward - " \
                                   "backward_input, or half of backward"), \
    {KEY(given_layer, parameters), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .brief = "number of parameters", \
     .fallback = "0"}
static const struct field layer_fields[] = {
    {KEY(given_layer, name), .kind = FIELD_STRING, .brief = "name in charts", .fallback = "layer"},
    TIME(forward, .brief = "time of the forward of one micro-batch"),
    {KEY(given_layer, flops), .kind = FIELD_QUANTITY, .unit = UNIT_FLOP,
     .brief = "FLOPs of the forward of one sample; given instead of times"},
    LEFT_OUT(efficiency, UNIT_NUMBER, .min = 1e-6, .max = 1e3,
             .brief = "with flops: rate of the layer's GEMMs in the forward, divided by the rate of the GPU's large "
                      "GEMMs; above 1 if a convolution executes fewer FLOPs than counted (Winograd); left out: 1"),
    LEFT_OUT(efficiency_backward, UNIT_NUMBER, .min = 1e-6, .max = 1e3,
             .brief = "with flops: the same for the backward; left out: as efficiency"),
    LEFT_OUT(operands, UNIT_BYTES,
             .brief = "with flops: bytes that the GEMMs of the forward of a sample read and write, without weights, "
                      "at 4 bytes per value; left out: 2 x activation, or 2 x boundary if that is larger"),
    LEFT_OUT(traffic, UNIT_BYTES,
             .brief = "with flops: bytes that other kernels of the forward of a sample read and write (normalisation, "
                      "activation functions, pooling), at 4 bytes per value; left out: 0"),
    LEFT_OUT(traffic_backward, UNIT_BYTES,
             .brief = "with flops: the same for the backward; left out: 2 x traffic"),
    BACKWARD_FIELDS,
    BYTES(activation, .brief = "bytes kept for the backward; with flops: of one sample, at 4 bytes per value"),
    BYTES(boundary, .brief = "bytes of the output; with flops: of one sample, at 4 bytes per value"),
    {KEY(given_layer, csv), .kind = FIELD_STRING,
     .brief = "alone, instead of a list: a table beside the scenario with a line for each layer and a column for each "
              "key, such as 'forward', or 'forward (ms)' where the numbers have no unit"},
};
static const struct field stage_fields[] = {
    TIME(forward, .brief = "time of the forward of one micro-batch", .required = true),
    BACKWARD_FIELDS,
    BYTES(activation, .brief = "bytes kept for the backward"),
    {KEY(given_layer, per), .kind = FIELD_CHOICE, .choices = CHOICES(GIVEN_PERS), .fallback = "chunk",
     .choice_briefs = NAMES("each chunk (virtual stage) of a rank takes these times and holds these parameters",
                            "all chunks of a rank together do; each has an equal part; the boundary is the same"),
     .brief = "what the numbers are of, where ranks have several chunks"},
    BYTES(boundary, .brief = "bytes of the output"),
};

const struct table given_layer_table = {
    TABLE("layers", "a layer, with its times or its FLOPs", given_layer, layer_fields),
    .exactly_one = "forward flops csv",
};
const struct table given_stage_table = {TABLE("stages", "a pipeline stage, with its times", given_layer, stage_fields)};

static int part_too_long(const struct table *table, const struct given_layer *given, const char *key, struct error *err)
{
    return error_add(err, EXIT_INPUT, field_loc(table, given, key),
                     "%s: %s is longer than the whole backward; give backward, or both parts", table->name, key);
}

/* Fills the times that were left out. A backward in one piece and a backward in two parts are measured separately, so
 * the three times need not add up if all are given. */
static int settle_times(const struct table *table, struct given_layer *given, struct error *err)
{
    static const char *const with_flops[] = {
        "efficiency", "efficiency_backward", "operands", "traffic", "traffic_backward",
    };
    bool input = field_given(table, given, "backward_input"), weight = field_given(table, given, "backward_weight");

    for (size_t i = 0; table == &given_layer_table && i < COUNT(with_flops); i++)
        if (field_given(table, given, with_flops[i]))
            return error_add(err, EXIT_INPUT, field_loc(table, given, with_flops[i]),
                             "%s: %s goes with flops, not with times", table->name, with_flops[i]);
    given->flops = NAN;
    if (!field_given(table, given, "recompute"))
        given->recompute = given->forward;
    if (!field_given(table, given, "backward"))
        given->backward = input && weight ? given->backward_input + given->backward_weight : 2 * given->forward;
    if (!input && !weight)
        given->backward_input = given->backward / 2;
    if (!input && weight)
        given->backward_input = given->backward - given->backward_weight;
    if (!weight)
        given->backward_weight = given->backward - given->backward_input;
    if (given->backward_input < 0)
        return part_too_long(table, given, "backward_weight", err);
    if (given->backward_weight < 0)
        return part_too_long(table, given, "backward_input", err);
    return 0;
}

static double or_else(double given, double otherwise)
{
    return isnan(given) ? otherwise : given;
}

static int settle_flops(const struct table *table, struct given_layer *given, struct error *err)
{
    static const char *const times[] = {"backward", "recompute", "backward_input", "backward_weight"};

    for (size_t i = 0; i < COUNT(times); i++)
        if (field_given(table, given, times[i]))
            return error_add(err, EXIT_INPUT, field_loc(table, given, times[i]),
                             "%s: %s: a time cannot go with flops; expected forward instead of flops", table->name,
                             times[i]);
    given->forward = given->backward = given->recompute = given->backward_input = given->backward_weight = NAN;
    given->efficiency = or_else(given->efficiency, 1);
    given->efficiency_backward = or_else(given->efficiency_backward, given->efficiency);
    given->operands = or_else(given->operands, 2 * fmax(given->activation, given->boundary));
    given->traffic = or_else(given->traffic, 0);
    given->traffic_backward = or_else(given->traffic_backward, 2 * given->traffic);
    return 0;
}

int given_finish(const struct table *table, struct list *list, struct error *err)
{
    struct given_layer *all = list->items;
    int result = 0;

    for (struct given_layer *given = all; given < all + list->count; given++) {
        bool flops = table == &given_layer_table && field_given(table, given, "flops");

        if (given->csv) {
            result = error_clash(err, field_loc(table, given, "csv"), "%s: csv is no layer of a list; expected "
                                 "'layers: {csv: FILE}'", table->name);
            continue;
        }
        if ((flops ? settle_flops(table, given, err) : settle_times(table, given, err)) < 0)
            result = -1;
        if (isnan(given->flops) != isnan(all->flops))
            result = error_add(err, EXIT_INPUT, field_loc(table, given, flops ? "flops" : "forward"),
                               "%s: some layers have times, others flops; expected the same for all layers",
                               table->name);
        if (given->per != all->per)
            result = error_add(err, EXIT_INPUT, field_loc(table, given, "per"),
                               "%s: per: some stages are given per rank, others per chunk; expected the same for all "
                               "stages", table->name);
    }
    return result;
}

/* The layer's kernels: a product in the forward, and one of the same size for each gradient. The gradient of the first
 * layer's input is counted too, though training does not need it. Traffic of other kernels in the backward belongs to
 * the phase of the input's gradient. */
static void flop_kernels(struct arena *arena, const struct given_layer *given, const struct shard *shard,
                         struct layer *layer)
{
    struct kernel *kernels = ARENA_ARRAY(arena, struct kernel, 5);
    struct operator *whole = ARENA_ARRAY(arena, struct operator, 1);
    double samples = shard->micro / fmax(1, shard->slices), scale = samples * dtype_bytes(shard->dtype) / 4;
    const double traffic[] = {given->traffic, given->traffic_backward};

    for (int phase = PHASE_FORWARD; given->flops > 0 && phase <= PHASE_BACKWARD_WEIGHT; phase++)
        kernels[layer->nkernels++] = (struct kernel){
            .name = layer->name, .kind = KERNEL_MATMUL, .phase = (enum phase)phase, .dtype = shard->dtype,
            .flop = given->flops * samples, .launches = 1,
            .efficiency = phase == PHASE_FORWARD ? given->efficiency : given->efficiency_backward,
            .bytes = given->parameters * dtype_bytes(shard->dtype) + scale * given->operands,
        };
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++)
        if (traffic[phase] > 0)
            kernels[layer->nkernels++] = (struct kernel){
                .name = layer->name, .kind = KERNEL_MEMORY, .phase = (enum phase)phase, .dtype = shard->dtype,
                .launches = 1, .bytes = scale * traffic[phase],
            };
    layer->kernels = kernels;
    layer->operators = whole, layer->noperators = 1;
    whole->nkernels = layer->nkernels;
}

static struct layer layer_of(struct arena *arena, const struct given_layer *given, const struct shard *shard)
{
    bool timed = isnan(given->flops);
    double slices = fmax(1, shard->slices), scale = (timed ? 1 : shard->micro * dtype_bytes(shard->dtype) / 4) / slices;
    double *tensor = ARENA_ARRAY(arena, double, 1);
    struct layer layer = {
        .name = given->name, .role = LAYER_BLOCK, .parameters = given->parameters, .tensors = tensor,
        .ntensors = given->parameters > 0, .timed = timed, .activation = scale * given->activation,
        .boundary = scale * given->boundary,
    };

    *tensor = given->parameters;
    if (timed) {
        layer.given[PHASE_FORWARD] = given->forward / slices;
        layer.given[PHASE_BACKWARD_INPUT] = given->backward_input / slices;
        layer.given[PHASE_BACKWARD_WEIGHT] = given->backward_weight / slices;
        layer.given_backward = given->backward / slices;
        layer.given_recompute = given->recompute / slices;
    } else {
        flop_kernels(arena, given, shard, &layer);
    }
    return layer;
}

int given_layers(struct arena *arena, const struct list *list, const struct shard *shard, struct loc tensor_loc,
                 const struct layer **layers, size_t *count, struct error *err)
{
    const struct given_layer *given = list->items;
    struct layer *all = ARENA_ARRAY(arena, struct layer, list->count);

    if (shard->tensor > 1)
        return error_add(err, EXIT_INFEASIBLE, tensor_loc,
                         "strategy: tensor: %d, but a model that is given layer by layer does not say how a layer is"
                         " split; try 1", shard->tensor);
    for (size_t i = 0; i < list->count; i++) {
        all[i] = layer_of(arena, &given[i], shard);
        all[i].checkpoint = i > 0 ? all[i - 1].boundary : 0;    /* the first layer's input is the data, loaded anyway */
    }
    *layers = all;
    *count = list->count;
    return 0;
}

/* ---- a table: a line a layer, columns named as the keys of a layer ---- */

enum { MOST_BYTES = 8 << 20, MOST_COLUMNS = 32 };

/* A file being read, cell by cell. */
struct reader {
    struct arena *arena;
    const char *file;
    char *at;                    /* what comes next */
    struct loc loc;              /* of the cell at hand */
    int line;
    char *begin;                 /* of the line */
};

/* A column: a layer's key, and the unit of its numbers, "" where cells say it. */
struct column { const char *key, *unit; };

/* The next cell of the line; *last: the line ends behind it. Quotes around a cell are taken off, and "" in it is ". NULL
 * after an error. */
static const char *next_cell(struct reader *reader, bool *last, struct error *err)
{
    bool quoted;
    char *from, *to, *end;

    reader->at += strspn(reader->at, " \t");
    reader->loc = (struct loc){reader->file, reader->line, (int)(reader->at - reader->begin) + 1};
    quoted = *reader->at == '"';
    from = to = end = reader->at + (quoted ? 1 : 0);
    for (; quoted ? *end && *end != '\n' && (*end != '"' || end[1] == '"') : *end && !strchr(",\r\n", *end); end++) {
        end += quoted && *end == '"';
        *to++ = *end;
    }
    if (quoted && *end != '"') {
        error_add(err, EXIT_INPUT, reader->loc, "a cell begins with a quote; expected one at its end too");
        return NULL;
    }
    end += (quoted ? 1 : 0);
    end += strspn(end, " \t");
    if (*end && !strchr(",\r\n", *end)) {
        error_add(err, EXIT_INPUT, reader->loc, "text stands behind the quotes of a cell; expected a comma");
        return NULL;
    }
    while (to > from && !quoted && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    *last = *end != ',';
    reader->at = end + (*end == ',' ? 1 : 0);
    return arena_strndup(reader->arena, from, (size_t)(to - from));
}

/* Goes on behind the line's end, over empty lines and comments; false: the file has ended. */
static bool next_line(struct reader *reader)
{
    do {
        reader->at += strcspn(reader->at, "\n");
        if (*reader->at)
            reader->at++;
        reader->line++;
        reader->begin = reader->at;
    } while (*reader->at && strchr("#\r\n", reader->at[strspn(reader->at, " \t")]));
    return *reader->at != '\0';
}

static const char *key_at(size_t i, const void *context)
{
    (void)context;
    return i < given_layer_table.count ? given_layer_table.fields[i].key : NULL;
}

/* "forward (ms)": the key, and the unit of the numbers below it. */
static int read_head(struct reader *reader, struct column *columns, size_t *count, struct error *err)
{
    bool last = false;

    while (!last) {
        const char *head = next_cell(reader, &last, err), *open = head ? strstr(head, " (") : NULL, *meant;
        char shown[CLIP_SIZE];
        size_t known = 0;

        if (!head)
            return -1;
        if (*count == MOST_COLUMNS)
            return error_add(err, EXIT_INPUT, reader->loc, "more than %d columns", MOST_COLUMNS);
        columns[*count] = (struct column){head, ""};
        if (open && head[strlen(head) - 1] == ')')
            columns[*count] = (struct column){arena_strndup(reader->arena, head, (size_t)(open - head)),
                                              arena_strndup(reader->arena, open + 2, strlen(open + 2) - 1)};
        head = columns[(*count)++].key;
        while (key_at(known, NULL) && strcmp(key_at(known, NULL), head))
            known++;
        for (size_t i = 0; i + 1 < *count; i++)
            if (!strcmp(columns[i].key, head))
                return error_add(err, EXIT_INPUT, reader->loc, "column '%s' stands twice",
                                 text_clip(head, shown, sizeof shown));
        meant = nearest(head, key_at, NULL);
        if (!key_at(known, NULL))
            return error_add(err, EXIT_INPUT, reader->loc, "a layer has no '%s'%s%s%s", text_clip(head, shown, sizeof shown),
                             meant ? "; did you mean '" : "; expected a key of a layer ('dtsim help layers')",
                             meant ? meant : "", meant ? "'?" : "");
    }
    return 0;
}

/* A line: a mapping with the keys whose cells are not empty. */
static struct node *read_layer(struct reader *reader, const struct column *columns, size_t count, struct error *err)
{
    struct node *layer = node_mapping(reader->arena);
    bool last = false;
    size_t cells = 0;

    layer->loc = (struct loc){reader->file, reader->line, 1};
    for (; !last; cells++) {
        const char *text = next_cell(reader, &last, err);
        struct node *value;

        if (!text)
            return NULL;
        if (cells >= count || !*text)
            continue;
        if (*columns[cells].unit)
            text = arena_printf(reader->arena, "%s %s", text, columns[cells].unit);
        value = node_scalar(reader->arena, text, false);
        value->loc = reader->loc;
        node_put(reader->arena, layer, columns[cells].key, value);
    }
    if (cells == count)
        return layer;
    error_add(err, EXIT_INPUT, layer->loc, "%zu cell%s; expected %zu, as many as the first line has", cells,
              cells == 1 ? "" : "s", count);
    return NULL;
}

struct node *layers_csv(struct arena *arena, const char *path, struct loc loc, struct error *err)
{
    struct column columns[MOST_COLUMNS];
    size_t count = 0, length;
    char *text = file_read(path, "table of layers", MOST_BYTES, loc, &length, err);
    struct reader reader = {.arena = arena, .file = arena_strdup(arena, path)};
    struct node *layers = text ? node_sequence(arena) : NULL, *layer;
    int before = err->count;

    if (!text)
        return NULL;
    layers->loc = loc;
    reader.at = reader.begin = text + text_mark(text, length);
    reader.line = 1;
    if (strchr("#\r\n", reader.at[strspn(reader.at, " \t")]) && *reader.at)
        next_line(&reader);
    if (strlen(text) != length)
        error_add(err, EXIT_INPUT, (struct loc){.file = reader.file}, "the table of layers holds a zero byte");
    else if (!read_head(&reader, columns, &count, err))
        while (next_line(&reader))
            if ((layer = read_layer(&reader, columns, count, err)))
                node_append(arena, layers, layer);
    if (err->count == before && !layers->count)
        error_add(err, EXIT_INPUT, (struct loc){.file = reader.file}, "no layers; expected a line for each below the first");
    free(text);
    return err->count > before ? NULL : layers;
}
