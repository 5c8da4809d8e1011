#include "model/model.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "config/named.h"
#include "files/data.h"
#include "huggingface/hf_config.h"
#include "kernels/cost.h"
#include "model/given_layers.h"
#include "model/operator_internal.h"

enum { MAX_PRESETS = 4 };    /* a preset's file may name another preset */

static const struct field model_fields[] = {
    {KEY(model, preset), .kind = FIELD_STRING, .files = "scenarios/models", .brief = "a file of scenarios/models/, or a path"},
    {KEY(model, transformer), .kind = FIELD_OPTIONAL, .brief = "the shape of a transformer",
     .table = &transformer_table},
    {KEY(model, hf_config), .kind = FIELD_STRING,
     .brief = "the path of a Hugging Face config.json, or what stands in it; what it leaves out has the default of its model_type's class, "
              "or stands in 'with'; its dtype decides memory.precision where nobody says one"},
    {KEY(model, with), .kind = FIELD_OPTIONAL, .brief = "keys of 'transformer' that replace values of the preset or of "
     "config.json", .table = &transformer_change_table},
    {KEY(model, layers), .kind = FIELD_LIST, .brief = "the layers, each with its times or its FLOPs; or {csv: FILE}, a table of them",
     .table = &given_layer_table, .single = true},
    {KEY(model, stages), .kind = FIELD_LIST,
     .brief = "times of the pipeline stages: one mapping if all are alike, or a list",
     .table = &given_stage_table, .single = true},
    {KEY(model, sequence), .kind = FIELD_INT, .brief = "tokens per sample, instead of the model's own; 0: its own",
     .fallback = "0", .min = 0, .max = 1 << 28},
    {KEY(model, published_parameters), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT,
     .brief = "number of parameters that the source publishes, for comparison; 0: none", .fallback = "0"},
    {KEY(model, dtype), .kind = FIELD_STRING,
     .brief = "number format of the weights that its authors publish, as in a config.json: \"bfloat16\"; where nobody says "
              "memory.precision, it decides it"},
    {KEY(model, title), .kind = FIELD_STRING, .brief = "full name"},
};

const struct table model_table = {
    TABLE("model", "the network: exactly one of preset, transformer, hf_config, layers, stages", model, model_fields),
    .exactly_one = "preset transformer hf_config layers stages", .shorthand = "preset",
};

static struct loc loc_of(const struct model *model, const char *key)
{
    return field_loc(&model_table, model, key);
}

/* The model with the layers of the table that its `layers: {csv: FILE}` names, if it has one; NULL after an error. */
static const struct node *with_table(struct arena *arena, const struct node *value, struct error *err)
{
    const struct node *csv = node_at(value, "layers.csv"), *layers = csv ? node_get(value, "layers") : NULL;
    struct node *table, *over;
    const char *path;

    if (!csv || csv->kind != NODE_SCALAR || node_is_null(csv))
        return value;
    if (layers->count > 1) {
        error_clash(err, csv->loc, "model: layers: csv goes alone; expected other keys as columns of the table");
        return NULL;
    }
    path = data_relative(arena, csv->loc, csv->text, err);
    table = path ? layers_csv(arena, path, csv->loc, err) : NULL;
    over = node_mapping(arena);
    over->loc = value->loc;
    if (table)
        node_put(arena, over, "layers", table);
    return table ? node_merge(arena, value, over) : NULL;
}

static int load(struct arena *arena, const struct node *value, struct model *model, int depth, struct error *err);

/* The model whose config.json stands in it under a name, and that config; without one the value itself, and NULL. */
static const struct node *with_config(struct arena *arena, const struct node *value, const struct node **config)
{
    struct node *over, *name;

    *config = node_get(value, "hf_config");
    if (*config && (*config)->kind == NODE_SCALAR)
        *config = NULL;
    if (!*config)
        return value;
    over = node_mapping(arena);
    over->loc = value->loc;
    name = node_scalar(arena, "config.json", true);
    name->loc = (*config)->loc;
    node_put(arena, over, "hf_config", name);
    return node_merge(arena, value, over);
}

/* Changes the model's node as if the user had written `key: value` instead of preset or hf_config; field_dump then
 * prints the whole model. */
static void become(struct arena *arena, struct model *model, const char *key, const struct node *value)
{
    struct node *mapping = node_mapping(arena);

    mapping->loc = model->node->loc;
    for (size_t i = 0; i < model->node->count; i++)
        if (strcmp(model->node->keys[i], "preset") && strcmp(model->node->keys[i], "hf_config") &&
            strcmp(model->node->keys[i], "with"))
            node_put(arena, mapping, model->node->keys[i], model->node->items[i]);
    node_put(arena, mapping, key, (struct node *)(uintptr_t)value);
    model->node = mapping;
    model->preset = model->hf_config = NULL;
}

static bool says_sequence(const struct model *model)
{
    return model->sequence > 0 || (model->with && node_get(model->with->node, "sequence"));
}

static int load_preset(struct arena *arena, struct model *model, int depth, struct error *err)
{
    static const struct data_kind kind = {"scenarios/models", "model", NULL};
    struct model named;
    const struct node *root;
    struct loc loc = loc_of(model, "preset");
    const char *path;

    if (depth == MAX_PRESETS)
        return error_add(err, EXIT_INPUT, loc, "model: preset: more than %d presets, each based on the next",
                         MAX_PRESETS);
    path = data_resolve(arena, &kind, model->preset, loc, err);
    if (!path || conf_shared(arena, path, &root, err) < 0)
        return -1;
    if (node_get(root, "model"))
        return error_add(err, EXIT_INPUT, loc, "model: preset: '%s' is a scenario; expected a file that holds the keys "
                         "of a model", model->preset);
    if (load(arena, root, &named, depth + 1, err) < 0)
        return -1;
    model->transformer = named.transformer;
    model->layers = named.layers;
    model->stages = named.stages;
    model->note = named.note;
    model->dtype = model->dtype ? model->dtype : named.dtype;
    model->longest = named.longest && !says_sequence(model);
    if (!model->title)
        model->title = named.title ? named.title : model->preset;
    if (!field_given(&model_table, model, "published_parameters"))
        model->published_parameters = named.published_parameters;
    if (named.transformer)
        become(arena, model, "transformer", named.transformer->node);
    else if (named.layers.count > 0)
        become(arena, model, "layers", named.layers.node);
    else
        become(arena, model, "stages", named.stages.node);
    return 0;
}

/* The keys of both; `with` also takes the place of keys that say the same in another way. */
static const struct node *changed(struct arena *arena, const struct node *shape, const struct node *with)
{
    static const char *const alternatives[][2] = {
        {"full_every", "full_blocks"}, {"full_blocks", "full_every"}, {"dense_layers", "expert_blocks"},
        {"moe_every", "expert_blocks"}, {"expert_blocks", "dense_layers"}, {"expert_blocks", "moe_every"},
    };
    struct node *kept = node_mapping(arena);

    kept->loc = shape->loc;
    for (size_t i = 0; i < shape->count; i++) {
        bool replaced = false;

        for (size_t k = 0; k < COUNT(alternatives); k++)
            replaced |= node_get(with, alternatives[k][0]) && !strcmp(shape->keys[i], alternatives[k][1]);
        if (!replaced)
            node_put(arena, kept, shape->keys[i], shape->items[i]);
    }
    return node_merge(arena, kept, with);
}

static int load_hf_config(struct arena *arena, struct model *model, struct error *err)
{
    struct loc loc = loc_of(model, "hf_config");
    const char *path = model->config ? NULL : data_relative(arena, loc, model->hf_config, err);
    const struct node *with = model->with ? model->with->node : NULL;
    struct hf_config config;

    if (!model->config && !path)
        return -1;
    if (path && access(path, R_OK))
        return error_system(err, loc, "model: hf_config: cannot read '%s'", path);
    if (path ? hf_config_read(arena, path, with, &config, err) : hf_config_of(arena, model->config, with, &config, err))
        return -1;
    model->note = config.note;
    model->dtype = model->dtype ? model->dtype : config.dtype;
    model->transformer = ARENA_ARRAY(arena, struct transformer, 1);
    if (field_parse(arena, &transformer_table, with ? changed(arena, config.shape, with) : config.shape,
                    model->transformer, err) ||
        transformer_finish(model->transformer, err))
        return -1;
    model->longest = !says_sequence(model);
    if (!model->title)
        model->title = model->hf_config;
    become(arena, model, "transformer", model->transformer->node);
    return 0;
}

/* Applies `with`: its keys replace the same keys of the preset's or hf_config's transformer. */
static int change(struct arena *arena, struct model *model, struct error *err)
{
    const struct node *named = model->transformer ? model->transformer->node : NULL, *with;
    int sequence = model->transformer ? model->transformer->sequence : 0;

    if (!model->with)
        return 0;
    if (!named)
        return error_clash(err, model->with->node->loc, "model: with: this model is not a transformer; "
                           "expected changes in the preset's file");
    with = model->with->node;
    if (model->sequence > 0 && node_get(with, "sequence"))
        return error_add(err, EXIT_INPUT, node_loc(with, "sequence"), "model: with: sequence is also given outside of "
                         "'with'; expected only one of them");
    if (!field_given(&model_table, model, "published_parameters"))
        model->published_parameters = 0;         /* the preset's number is of another model now */
    model->transformer = ARENA_ARRAY(arena, struct transformer, 1);
    model->with = NULL;
    if (field_parse(arena, &transformer_table, changed(arena, named, with), model->transformer, err) ||
        transformer_finish(model->transformer, err))
        return -1;
    become(arena, model, "transformer", model->transformer->node);
    if (!model->sequence && !node_get(with, "sequence") && sequence != model->transformer->sequence && !model->transformer->vision)
        model->sequence = sequence;      /* a preset's file may set `sequence` for the preset that it names */
    return 0;
}

/* Applies the model's `sequence:`. If positions were not given they change with it, as they are the sequence's. */
static int set_sequence(struct model *model, struct error *err)
{
    struct transformer *shape = model->transformer;
    bool follow = shape && !field_given(&transformer_table, shape, "positions");
    int positions = shape && !follow ? shape->positions : 0;
    const struct clash clashes[] = {
        {!shape && model->sequence > 0, loc_of(model, "sequence"),
         "model: sequence: this model has no tokens; only a transformer has a sequence", {0}},
        {shape && shape->vision && model->sequence > 0 && model->sequence != shape->sequence, loc_of(model, "sequence"),
         "model: sequence: %d, but an image has %d patches and learned tokens; expected other sizes in 'vision'",
         {model->sequence, shape ? shape->sequence : 0}},
        {positions > 0 && model->sequence > positions, loc_of(model, "sequence"),
         "model: sequence: %d is longer than the %d learned positions", {model->sequence, positions}},
    };

    if (clashes_add(err, clashes, COUNT(clashes)))
        return -1;
    if (!shape)
        return 0;
    if (model->sequence > 0) {
        shape->positions = follow ? model->sequence : shape->positions;
        shape->sequence = model->sequence;
    }
    model->sequence = shape->sequence;
    return 0;
}

static int load(struct arena *arena, const struct node *value, struct model *model, int depth, struct error *err)
{
    const struct node *config;
    int result;

    if (!value)
        return error_add(err, EXIT_INPUT, (struct loc){0}, "model: missing; expected one of %s",
                         model_table.exactly_one);
    value = with_table(arena, with_config(arena, value, &config), err);
    if (!value || field_parse(arena, &model_table, value, model, err) < 0)
        return -1;
    model->config = config;
    if (model->with && !model->preset && !model->hf_config)
        return error_add(err, EXIT_INPUT, model->with->node->loc, "model: with: goes only with preset or hf_config; "
                         "expected its keys in 'transformer' itself");
    if (model->preset) {
        result = load_preset(arena, model, depth, err);
    } else if (model->hf_config) {
        result = load_hf_config(arena, model, err);
    } else if (model->transformer) {
        result = transformer_finish(model->transformer, err);
    } else if (field_given(&model_table, model, "layers")) {
        result = given_finish(&given_layer_table, &model->layers, err);
    } else {
        result = given_finish(&given_stage_table, &model->stages, err);
    }
    return result < 0 || change(arena, model, err) ? -1 : set_sequence(model, err);
}

int model_load(struct arena *arena, const struct node *value, struct model *model, struct error *err)
{
    return load(arena, value, model, 0, err);
}

bool model_is_per_rank(const struct model *model)
{
    const struct given_layer *first = model->stages.items;

    return model->stages.count > 0 && first->per == GIVEN_PER_RANK;
}

/* Either all layers are timed or none: one tells. */
bool model_is_timed(const struct model *model)
{
    const struct given_layer *first = model->layers.items;

    return !model->transformer && (model->layers.count == 0 || isnan(first->flops));
}

bool model_has_samples(const struct model *model)
{
    return !model_is_timed(model);
}

double model_parameters(const struct model *model)
{
    const struct list *list = model->layers.count > 0 ? &model->layers : &model->stages;
    const struct given_layer *given = list->items;
    double total = 0;

    if (model->transformer)
        return transformer_parameters(model->transformer);
    if (list == &model->stages && list->count == 1)
        return NAN;
    for (size_t i = 0; i < list->count; i++)
        total += given[i].parameters;
    return total;
}

double model_active_parameters(const struct model *model)
{
    return model->transformer ? transformer_active_parameters(model->transformer) : model_parameters(model);
}

int model_layers(struct arena *arena, const struct model *model, const struct shard *shard, struct loc tensor_loc,
                 const struct layer **layers, size_t *count, struct error *err)
{
    BUG_IF(shard->micro < 1 || shard->tensor < 1);
    if (model->transformer)
        return transformer_layers(arena, model->transformer, shard, tensor_loc, layers, count, err);
    BUG_IF(model->layers.count == 0);
    return given_layers(arena, &model->layers, shard, tensor_loc, layers, count, err);
}

bool layer_is_block(const struct layer *layer)
{
    return layer->role == LAYER_BLOCK || layer->role == LAYER_PREDICTION;
}

bool layer_has_tail(const struct layer *layer)
{
    size_t i = 0;

    while (i < layer->noperators && !layer->operators[i].ends)
        i++;
    return i < layer->noperators;
}

/* Each product of the attention core has two products of the same size in the backward, so 3 x its forward counts.
 * FlashAttention's fifth product of the backward, which recomputes the scores, does not count. */
static double kernel_flop(const struct kernel *kernel, bool core)
{
    if (core)
        return kernel->phase == PHASE_FORWARD ? 3 * kernel_whole_flop(kernel) : 0;
    return kernel->flop;
}

static void add_flop(const struct layer *layer, double *total, double *forward)
{
    for (size_t i = 0; i < layer->noperators; i++) {
        const struct operator *op = &layer->operators[i];

        *total += 3 * op->recurrence;
        *forward += op->recurrence;
        if (op->recurrence > 0)
            continue;
        for (size_t k = op->first; k < op->first + op->nkernels; k++) {
            *total += kernel_flop(&layer->kernels[k], op->modules >> MODULE_CORE & 1);
            *forward += layer->kernels[k].phase == PHASE_FORWARD ? kernel_whole_flop(&layer->kernels[k]) : 0;
        }
    }
}

double model_flop(const struct model *model, const struct lora *lora, double *forward)
{
    struct arena arena = {0};
    struct error err = {0};
    struct model fused = *model;
    struct transformer shape;
    const struct layer *layers;
    size_t count;
    double total = 0, first = 0;

    if (model->transformer) {        /* fused attention computes no scores beyond a window: what the mathematics needs */
        shape = *model->transformer;
        shape.ways.flash_attention = true;
        shape.ways.expert_adapters = EXPERT_ADAPTERS_EACH;
        fused.transformer = &shape;
    }
    if (model_is_timed(model)) {
        total = first = NAN;
    } else {
        if (model_layers(&arena, &fused, &(struct shard){.micro = 1, .tensor = 1, .lora = lora}, (struct loc){0},
                         &layers, &count, &err) < 0)
            BUG("a model that cannot be cut into one piece");
        for (size_t i = 0; i < count; i++)
            add_flop(&layers[i], &total, &first);
        arena_release(&arena);
    }
    if (forward)
        *forward = first;
    return total;
}
