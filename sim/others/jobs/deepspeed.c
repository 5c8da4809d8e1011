/* deepspeed: the scenario of a DeepSpeed JSON. The model is a file of its own: config.json of Hugging Face. */
#include "jobs/jobs_internal.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/imported.h"
#include "launch/launch.h"

#define ZERO "zero_optimization."

/* JSON has no comments, and DeepSpeed reads its file with Python's json: a place is worth more than "invalid token". */
static int refuse_comments(const char *file, const char *text, size_t length, struct error *err)
{
    struct loc loc = {file, 1, 1};
    bool string = false;

    for (size_t i = 0; i < length; i++, loc.column++) {
        char c = text[i];

        if (string && c == '\\' && i + 1 < length && text[i + 1] != '\n') {
            i++;
            loc.column++;
        } else if (c == '"') {
            string = !string;
        } else if (!string &&
                   (c == '#' || (c == '/' && i + 1 < length && (text[i + 1] == '/' || text[i + 1] == '*')))) {
            return error_add(err, EXIT_INPUT, loc,
                             "found a comment; JSON has none, and DeepSpeed refuses it: delete it");
        } else if (c == '\n') {
            loc = (struct loc){file, loc.line + 1, 0};
            string = false;
        }
    }
    return 0;
}

static int read_json(struct arena *arena, const char *file, const char *text, size_t length, struct node **root,
                     struct error *err)
{
    json_error_t wrong;
    json_t *json;

    if (refuse_comments(file, text, length, err))
        return -1;
    json = json_loadb(text + text_mark(text, length), length - text_mark(text, length), 0, &wrong);
    if (!json)
        return error_add(err, EXIT_INPUT, (struct loc){file, wrong.line, wrong.column > 0 ? wrong.column : 1},
                         "%s; expected DeepSpeed's JSON", wrong.text);
    json_decref(json);
    return conf_parse(arena, file, text, length, root, err);
}

static bool is_set(const struct import_options *options, const char *name)
{
    for (size_t i = 0; i < options->nsets; i++)
        if (text_same(options->sets[i].name, name))
            return true;
    return false;
}

/* "auto" of three keys is a function of the model (Transformers, integrations/deepspeed.py, trainer_config_finalize;
 * Accelerate, accelerator.py, _prepare_deepspeed); the two of stage 3 have no effect without it. NULL: it is no such key, or
 * the model is not known. */
static const char *of_model(const struct imported *m, const char *name)
{
    static const struct { const char *name; double squares, factor; } keys[] = {
        {ZERO "reduce_bucket_size", 1, 0}, {ZERO "stage3_prefetch_bucket_size", 0.9, 0},
        {ZERO "stage3_param_persistence_threshold", 0, 10},
    };
    const struct node *node = node_at(m->root, "model.transformer.hidden");
    const struct argument_row *row = dialect_row(m->dialect, name, true);
    double hidden = node && node->text ? strtod(node->text, NULL) : 0;

    for (size_t i = 0; hidden > 0 && row && i < COUNT(keys); i++)
        if (!strcmp(row->name, keys[i].name))
            return arena_printf(m->arena, "%.0f", floor(keys[i].squares * hidden * hidden + keys[i].factor * hidden));
    return NULL;
}

/* Any other "auto" is what Hugging Face's Trainer replaces by a value of its own arguments. Nobody knows it here. */
static int drop_auto(struct imported *m)
{
    struct launch_arguments *arguments = &m->launch->arguments;
    size_t kept = 0;
    int rc = 0;

    for (size_t i = 0; i < arguments->count; i++) {
        struct launch_argument *argument = &arguments->items[i];
        const struct argument_row *row = dialect_row(m->dialect, argument->name, true);
        bool automatic = argument->count == 1 && !strcmp(argument->values[0].text, "auto");

        if (automatic && of_model(m, argument->name)) {
            argument->values[0].text = of_model(m, argument->name);
            automatic = false;
        }

        if (automatic && row && row->class == ARGUMENT_MAPPED && !is_set(m->options, argument->name) &&
            strcmp(argument->name, "pipeline.stages"))
            rc = error_add(m->err, EXIT_INPUT, argument->values[0].loc,
                           "%s: \"auto\" is a value that Hugging Face's Trainer "
                           "fills in, and the file alone does not say it; give --set %s=VALUE",
                           argument->name, argument->name);
        if (!automatic || !row)
            arguments->items[kept++] = *argument;
    }
    arguments->count = kept;
    return rc;
}

static double amount(const struct imported *m, const char *name)
{
    const char *text = imported_word(m, name);

    return text ? strtod(text, NULL) : 0;
}

static long long stages_of(const struct imported *m)
{
    long long stages = imported_number(m, "pipeline.stages");

    return stages > 0 ? stages : 1;
}

/* global = micro x accumulation x data: any two of the first three say the third where data is known, and all three say
 * data (runtime/config.py, _set_batch_related_parameters). Returns data; 0: an error. */
static long long put_batch(struct imported *m)
{
    long long global = imported_number(m, "train_batch_size"), micro = imported_number(m, "train_micro_batch_size_per_gpu");
    long long steps = imported_number(m, "gradient_accumulation_steps"), model, data, world = imported_world(m);
    static const char *const names[] = {"train_batch_size", "train_micro_batch_size_per_gpu",
                                        "gradient_accumulation_steps"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (imported_given(m, names[i]) && (imported_number(m, names[i]) < 1 || imported_number(m, names[i]) > 1 << 30))
            return imported_refuse(m, names[i], "expected a number of 1 to %d, found %lld", 1 << 30,
                                   imported_number(m, names[i])), 0;
    if (!global && !micro)
        return error_add(m->err, EXIT_INPUT, m->launch->loc, "says neither train_batch_size nor "
                         "train_micro_batch_size_per_gpu; give --set train_micro_batch_size_per_gpu=N"), 0;
    model = stages_of(m) * imported_number(m, "tensor_parallel.autotp_size");
    if (model < 1 || model > 1 << 20)
        return error_add(m->err, EXIT_INPUT, m->launch->loc,
                         "pipeline.stages x tensor_parallel.autotp_size is %lld GPUs; "
                         "expected 1 to %d",
                         model, 1 << 20),
               0;
    if (!world && global && micro && steps && global % (micro * steps) == 0)
        world = global / (micro * steps) * model;
    data = imported_cluster(m, model, 1, global && micro && global % micro == 0 ? global / micro : global, world);
    if (!data)
        return 0;
    steps = steps ? steps : global && micro ? global / (micro * data) : 1;
    micro = micro ? micro : global / (data * (steps ? steps : 1));
    global = global ? global : micro * steps * data;
    if (!steps || !micro || global != micro * steps * data)
        return imported_refuse(m, "train_batch_size",
                               "%lld is not micro-batch %lld x accumulation %lld x %lld replicas, as "
                               "DeepSpeed expects; give --set nnodes=N --set nproc_per_node=M",
                               global, micro, steps, data),
               0;
    imported_put(m, "batch.micro", "%lld", micro);
    imported_put(m, "batch.global", "%lld", global);
    return data;
}

static void put_optimizer(struct imported *m)
{
    const struct argument_row *row = dialect_row(m->dialect, "optimizer.type", false);
    const char *name = imported_word(m, row->name), *ours = dialect_word(m->arena, row, name, false);

    if (dialect_knows(row, dialect_word(m->arena, row, ours, true)))
        imported_put(m, "memory.optimizer", "%s", ours);
    else
        imported_refuse(m, "optimizer.type",
                        "%s is not simulated; expected Adam, AdamW, Lamb, SGD, Lion, Adagrad or Muon; to "
                        "see another give --set optimizer.type=Adam",
                        name);
    if (!imported_given(m, "optimizer.type"))
        imported_remark(m, "optimizer: the training program makes it; AdamW is taken");
}

static void put_offload(struct imported *m, long long stage)
{
    static const struct { const char *key, *older, *ours; } places[] = {
        {ZERO "offload_optimizer.device", ZERO "cpu_offload", "optimizer"},
        {ZERO "offload_param.device", ZERO "cpu_offload_param", "weights"},
    };
    const char *list = "";

    imported_rows(m, "offload");
    for (size_t i = 0; i < COUNT(places); i++)
        if (!strcmp(imported_word(m, places[i].key), "cpu") || job_true(m, places[i].older))
            list = arena_printf(m->arena, "%s%s%s", list, *list ? ", " : "", places[i].ours);
    if (job_true(m, "activation_checkpointing.cpu_checkpointing"))
        list = arena_printf(m->arena, "%s%sactivations", list, *list ? ", " : "");
    if (*list && stage)
        imported_put(m, "memory.offload", "[%s]", list);
    else if (*list)
        imported_warn(m, ZERO "stage", "offloading has no effect without ZeRO");
}

/* Buckets of ZeRO 1 and 2 have the bytes of their gradients. */
static void put_bucket(struct imported *m, long long stage)
{
    double bytes = amount(m, ZERO "reduce_bucket_size") * (job_true(m, "fp16.enabled") || job_true(m, "bf16.enabled") ? 2 : 4);

    if (stage == 3 || !imported_given(m, ZERO "reduce_bucket_size") || !(bytes > 0))
        return;
    imported_put(m, "software.first_bucket", "%.0f B", bytes);
    imported_put(m, "software.bucket", "%.0f B", bytes);
}

/* Tokens of a sample are the training program's: config.json says only how many the model could take. */
static int put_model(struct imported *m, struct node *model)
{
    int found = job_model(m, model);

    if (!found)
        return error_add(m->err, EXIT_INPUT, m->launch->loc,
                         "the file does not say the model; give --hf-config CONFIG, a "
                         "Hugging Face config.json");
    if (found > 0 && !model && !job_sequence(m))
        imported_length(m, "sequence");
    return found > 0 ? 0 : -1;
}

static int build(struct imported *m, struct node *model)
{
    long long stage;
    int rc;

    if (m->options->hf_config && put_model(m, model))
        return -1;
    rc = drop_auto(m);
    if (imported_sort(m) || rc)
        return -1;
    stage = imported_number(m, ZERO "stage");
    m->software = "deepspeed";
    imported_plain(m);
    if (!m->options->hf_config && put_model(m, model))
        return -1;
    if (stage < 0 || stage > 3)
        return imported_refuse(m, ZERO "stage", "expected 0 to 3, found %lld", stage);
    if (!put_batch(m))
        return -1;
    imported_rows(m, "degrees");
    imported_rows(m, "formats");
    put_optimizer(m);
    imported_rows(m, "zero");
    put_bucket(m, stage);
    imported_rows(m, "buckets");
    put_offload(m, stage);
    imported_rows(m, "gradients");
    imported_rows(m, "recompute");
    if (!node_at(m->root, "memory.recompute"))
        imported_remark(m, "recomputation: the training program says it (gradient_checkpointing); none is taken");
    imported_put(m, "software.like", "%s", m->software);
    imported_rows(m, "switches");
    return m->err->count ? -1 : 0;
}

struct node *deepspeed_of(struct arena *arena, const struct node *tree, const struct job_text *job, const char **comment,
                          FILE *notes, struct error *err)
{
    struct launch launch = {.file = job->file};
    struct imported m = {.arena = arena, .launch = &launch, .options = job->options, .err = err};
    int rc;

    rc = imported_begin(&m, "deepspeed") || job_arguments(arena, tree, &launch, err) ? -1 : build(&m, job->model);
    rc = imported_end(&m, rc, notes);
    *comment = m.comment;
    launch_release(&launch);
    return rc ? NULL : m.root;
}

struct node *deepspeed_scenario(struct arena *arena, const struct job_text *job, const char **comment, FILE *notes,
                                struct error *err)
{
    struct node *root;

    return read_json(arena, job->file, job->text, job->length, &root, err) ? NULL :
           deepspeed_of(arena, root, job, comment, notes, err);
}
