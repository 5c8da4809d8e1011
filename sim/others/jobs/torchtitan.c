/* torchtitan: the scenario of a torchtitan job's TOML. */
#include "jobs/jobs_internal.h"

#include "jobs/toml.h"

#include <stdlib.h>
#include <strings.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/imported.h"
#include "launch/launch.h"

#define PARALLEL "parallelism."

/* Models of torchtitan (torchtitan/models) that scenarios/models has, and their blocks. */
static const struct { const char *name, *flavor, *preset; long layers; } models[] = {
    {"llama3", "8B", "llama3-8b", 32}, {"llama3", "70B", "llama3-70b", 80}, {"llama3", "405B", "llama3-405b", 126},
    {"deepseek_v3", "671B", "deepseek-v3", 61},
};
/* Schedules of torch.distributed.pipelining; chunks: model chunks of a rank. */
static const struct { const char *theirs, *ours; long chunks; } schedules[] = {
    {"1F1B", "1f1b", 1}, {"GPipe", "gpipe", 1}, {"Interleaved1F1B", "interleaved", 2}, {"LoopedBFS", "looped-bfs", 2},
    {"InterleavedZeroBubble", "interleaved-zb", 2}, {"ZBVZeroBubble", "zb-v", 2}, {"DualPipeV", "dualpipe-v", 2},
};

static long degree(const struct imported *m, const char *name)
{
    long value = imported_number(m, name);

    if (value < 1 || value > 65536)
        imported_refuse((struct imported *)m, name, "expected a degree of 1 to 65536, found %ld", value);
    return value < 1 || value > 65536 ? 1 : value;
}

/* The model; *layers: its blocks, 0: not known here. */
static int put_model(struct imported *m, struct node *given, long *layers)
{
    const char *name = imported_word(m, "model.name"), *flavor = imported_word(m, "model.flavor");
    bool own = given || m->options->hf_config;
    const struct node *blocks;
    int found = own ? job_model(m, given) : 0;

    if (found < 0)
        return -1;
    for (size_t i = 0; i < COUNT(models) && !own; i++)
        if (!strcmp(models[i].name, name) && !strcmp(models[i].flavor, flavor)) {
            imported_put(m, "model.preset", "%s", models[i].preset);
            imported_put(m, "model.sequence", "%ld", imported_number(m, "training.seq_len"));
            *layers = models[i].layers;
            return 0;
        }
    if (!found)
        return imported_refuse(m, "model.flavor", "dtsim has no model %s %s; expected llama3 8B, 70B or 405B or deepseek_v3 "
                               "671B; for another give --hf-config CONFIG, a Hugging Face config.json", name, flavor);
    if (!given)
        imported_put(m, "model.transformer.sequence", "%ld", imported_number(m, "training.seq_len"));
    blocks = node_at(m->root, "model.transformer.layers");
    *layers = blocks && blocks->text ? strtol(blocks->text, NULL, 10) : 0;
    return 0;
}

/* Blocks of each stage: input and output layers each count as a number of blocks, and the first stages get the blocks
 * that are left over (torchtitan/distributed/pipeline_parallel.py, generate_llm_fqn_per_model_part). */
static void put_split(struct imported *m, long layers, long stages)
{
    long first = imported_number(m, PARALLEL "pipeline_parallel_first_stage_less_layers");
    long last = imported_number(m, PARALLEL "pipeline_parallel_last_stage_less_layers"), all = layers + first + last;
    const char *text = "";

    if (!first && !last && layers % stages == 0)
        return;
    if (first < 0 || last < 0 || first > layers || last > layers || all / stages < first || all / stages < last)
        imported_refuse(m, PARALLEL "pipeline_parallel_degree", "%ld blocks do not divide over %ld stages", layers,
                        stages);
    else
        for (long i = 0; i < stages; i++)
            text = arena_printf(m->arena, "%s%s%ld", text, i ? ", " : "", all / stages + (i < all % stages) -
                                (i == 0 ? first : 0) - (i == stages - 1 ? last : 0));
    if (*text)
        imported_put(m, "strategy.split", "[%s]", text);
}

/* "layers.8": the stage that begins with block 8. */
static void put_points(struct imported *m, const struct launch_argument *points, long layers, long stages)
{
    const char *text = "";
    long before = 0;

    for (size_t i = 0; i < points->count; i++) {
        const char *point = points->values[i].text;
        long block = !strncmp(point, "layers.", 7) ? strtol(point + 7, NULL, 10) : -1;

        if (block < before || block > layers) {
            imported_refuse(m, PARALLEL "pipeline_parallel_split_points",
                            "expected layers.N in rising order, found '%.60s'", point);
            return;
        }
        text = arena_printf(m->arena, "%s%ld, ", text, block - before);
        before = block;
    }
    if ((long)points->count + 1 != stages)
        imported_refuse(m, PARALLEL "pipeline_parallel_split_points", "has %zu points; expected %ld for %ld stages",
                        points->count, stages - 1, stages);
    else
        imported_put(m, "strategy.split", "[%s%ld]", text, layers - before);
}

/* Chunks of a rank where a key says the blocks of a stage (torchtitan/distributed/pipeline_parallel.py at b5bcd76c,
 * lines 218-242): stages = ceil((blocks + first + last) / blocks of a stage), as many on each rank. `usual`: the schedule's
 * number of chunks, 1: it has one stage a rank. 0: an error. */
static long chunks_of(struct imported *m, long layers, long pipeline, long usual)
{
    static const char key[] = PARALLEL "pipeline_parallel_layers_per_stage";
    const char *schedule = imported_word(m, PARALLEL "pipeline_parallel_schedule");
    long per = imported_number(m, key), stages, chunks;
    bool vee = !strcasecmp(schedule, "ZBVZeroBubble") || !strcasecmp(schedule, "DualPipeV");

    if (!imported_given(m, key))
        return usual;
    if (per < 1)
        return imported_refuse(m, key, "expected a number above 0, found %ld", per), 0;
    if (!layers) {
        imported_warn(m, key, "the blocks of the model are not known here; each rank gets %ld stages", usual);
        return usual;
    }
    stages = (layers + imported_number(m, PARALLEL "pipeline_parallel_first_stage_less_layers") +
              imported_number(m, PARALLEL "pipeline_parallel_last_stage_less_layers") + per - 1) / per;
    chunks = stages / pipeline;
    if (stages % pipeline || (usual == 1 ? chunks != 1 : chunks < 2) || (vee && chunks != 2))
        return imported_refuse(m, key, "%ld blocks are %ld stages, which torchtitan refuses on %ld ranks with %.60s", layers, stages,
                               pipeline, schedule), 0;
    return chunks;
}

static void put_pipeline(struct imported *m, long layers)
{
    const char *name = imported_word(m, PARALLEL "pipeline_parallel_schedule"), *list = "";
    long pipeline = degree(m, PARALLEL "pipeline_parallel_degree"), chunks = 0;
    const struct launch_argument *points = imported_given(m, PARALLEL "pipeline_parallel_split_points");

    if (pipeline == 1)
        return;
    for (size_t i = 0; i < COUNT(schedules); i++) {
        list = arena_printf(m->arena, "%s%s%s", list, i ? ", " : "", schedules[i].theirs);
        if (!strcasecmp(name, schedules[i].theirs)) {
            imported_put(m, "strategy.schedule", "%s", schedules[i].ours);
            chunks = schedules[i].chunks;
        }
    }
    if (!chunks) {
        imported_refuse(m, PARALLEL "pipeline_parallel_schedule", "%.60s is not simulated; expected one of %s", name,
                        list);
        return;
    }
    if (!points || !points->count)
        chunks = chunks_of(m, layers, pipeline, chunks);
    else if (chunks > 1 && (points->count + 1) % (size_t)pipeline == 0)
        chunks = (long)(points->count + 1) / pipeline;
    if (!chunks)
        return;
    imported_put(m, "strategy.pipeline", "%ld", pipeline);
    if (chunks > 1)
        imported_put(m, "strategy.chunks", "%ld", chunks);
    if (!layers)
        imported_warn(m, PARALLEL "pipeline_parallel_degree",
                      "stages get as even a number of blocks as possible; torchtitan "
                      "counts the input and the output layer as a block each");
    else if (points && points->count)
        put_points(m, points, layers, pipeline * chunks);
    else
        put_split(m, layers, pipeline * chunks);
}

/* FSDP over the shard degree, DDP or HSDP over the replicate degree. Returns data; 0: an error. */
static long put_data(struct imported *m)
{
    long replicate = degree(m, PARALLEL "data_parallel_replicate_degree"), data, model, world = imported_world(m);
    long shard = imported_number(m, PARALLEL "data_parallel_shard_degree"),
         expert = degree(m, PARALLEL "expert_parallel_degree");
    long tensor = degree(m, PARALLEL "tensor_parallel_degree"), context = degree(m, PARALLEL "context_parallel_degree");
    const char *reshard = imported_word(m, PARALLEL "fsdp_reshard_after_forward");

    if (m->err->count)
        return 0;
    if (shard != -1 && (shard < 1 || shard > 65536))
        return imported_refuse(m, PARALLEL "data_parallel_shard_degree",
                               "expected -1 (all that is left) or a degree of 1 to "
                               "65536, found %ld",
                               shard),
               0;
    model = tensor * context * degree(m, PARALLEL "pipeline_parallel_degree");
    if (shard > 0 && world && world != model * shard * replicate)
        return imported_refuse(m, PARALLEL "data_parallel_shard_degree",
                               "the degrees are %ld GPUs, and the launch has %ld", model * shard * replicate, world),
               0;
    data = imported_cluster(m, model, replicate, 0, shard > 0 ? model * shard * replicate : world);
    if (!data)
        return 0;
    if (data % replicate)
        return imported_refuse(m, PARALLEL "data_parallel_replicate_degree", "%ld does not divide the %ld replicas",
                               replicate, data),
               0;
    shard = data / replicate;
    if (shard * context > 1) {
        imported_put(m, "strategy.zero", "3");
        if (replicate > 1)
            imported_put(m, "strategy.shard", "%ld", shard * context);
    }
    if (!strcmp(reshard, "always") || !strcmp(reshard, "never"))
        imported_put(m, "software.reshard_after_forward", !strcmp(reshard, "always") ? "true" : "false");
    else if (strcmp(reshard, "default"))
        imported_refuse(m, PARALLEL "fsdp_reshard_after_forward", "expected default, always or never, found '%.60s'",
                        reshard);
    if (tensor > 1) {
        imported_put(m, "strategy.tensor", "%ld", tensor);
        imported_put(m, "strategy.sequence_parallel", "true");
    }
    if (context > 1) {
        imported_put(m, "strategy.context", "%ld", context);
        imported_put(m, "strategy.context_attention", "%s",
                     strcmp(imported_word(m, PARALLEL "context_parallel_rotate_method"), "allgather") ? "ring"
                                                                                                     : "all-gather");
    }
    if (expert > 1)
        imported_put(m, "strategy.expert", "%ld", expert);
    if (expert > 1 && imported_number(m, PARALLEL "expert_tensor_parallel_degree") == 1 && tensor > 1)
        imported_put(m, "strategy.expert_tensor", "1");
    return data;
}

/* A pipeline cuts the local batch into micro-batches; without one it is the micro-batch. */
static void put_batch(struct imported *m, long data)
{
    const char *name = imported_given(m, "training.batch_size") ? "training.batch_size" : "training.local_batch_size";
    long local = imported_number(m, name), global = imported_number(m, "training.global_batch_size"), micro = local;
    bool pipeline = imported_number(m, PARALLEL "pipeline_parallel_degree") > 1;

    if (pipeline)
        micro = imported_number(m, PARALLEL "pipeline_parallel_microbatch_size");
    if (local < 1 || micro < 1 || local % micro || local > 1 << 20) {
        imported_refuse(m, name, "expected 1 to %d, a multiple of the micro-batch, %ld; found %ld", 1 << 20, micro,
                        local);
        return;
    }
    if (global < 0)
        global = local * data;
    if (global % (local * data))
        imported_refuse(m, "training.global_batch_size", "%ld is no multiple of local batch %ld x %ld replicas", global,
                        local, data);
    if (pipeline && global > local * data)
        imported_warn(m, "training.global_batch_size",
                      "the pipeline is simulated with all micro-batches in a row; torchtitan "
                      "drains it behind each local batch");
    imported_put(m, "batch.micro", "%ld", micro);
    imported_put(m, "batch.global", "%ld", global);
}

static void put_recompute(struct imported *m)
{
    const char *mode = imported_word(m, "activation_checkpoint.mode");
    const char *option = imported_word(m, "activation_checkpoint.selective_ac_option");
    long every = strtol(option, NULL, 10);

    if (!strcmp(mode, "full"))
        imported_put(m, "memory.recompute", "full");
    else if (!strcmp(mode, "selective") && !strcmp(option, "op"))
        imported_put(m, "memory.recompute", "operators");
    else if (!strcmp(mode, "selective") && every >= 1 && every <= 100000)
        imported_put(m, "memory.recompute", every == 1 ? "full" : "{mode: full, share: %.9g}", 1.0 / (double)every);
    else if (strcmp(mode, "none"))
        imported_refuse(m, "activation_checkpoint.mode", "%.40s %.40s is not simulated; expected none, full, or selective "
                        "with selective_ac_option op or a number", mode, option);
}

/* float8 and mx are converters of the model (torchtitan/components/quantization). */
static const char *converted(struct imported *m)
{
    const struct launch_argument *list = imported_given(m, "model.converters");
    const char *recipe = imported_word(m, "float8.recipe_name");

    if (!recipe)
        recipe = imported_word(m, "quantize.linear.float8.recipe_name");
    for (size_t i = 0; list && i < list->count; i++) {
        const char *name = list->values[i].text;

        if (strstr(name, "float8") && !strstr(name, "moe")) {
            if (recipe && strcmp(recipe, "tensorwise"))
                imported_warn(m, "model.converters", "the scales of %.40s are simulated as those of tensorwise: one a tensor",
                              recipe);
            return "mixed-fp8";
        }
        if (!strcmp(name, "mx") || strstr(name, "linear.mx"))
            return "mixed-mxfp8";
        imported_warn(m, "model.converters", "%.60s is not simulated", name);
    }
    return "mixed-bf16";
}

static bool is_half(const struct imported *m, const char *name)
{
    const char *word = imported_word(m, name);

    if (strcmp(word, "bfloat16") && strcmp(word, "float32"))
        imported_refuse((struct imported *)m, name, "expected bfloat16 or float32, found '%.60s'", word);
    return !strcmp(word, "bfloat16");
}

/* With training.dtype bfloat16 "all parameters, gradients, and optimizer states" are in it, "without an extra copy of fp32
 * weights" (config/job_config.py). */
static void put_formats(struct imported *m)
{
    bool all = is_half(m, "training.dtype");
    const char *format = is_half(m, "training.mixed_precision_param") || all ? converted(m) : "fp32";

    imported_put(m, "memory.precision", "%s", all && !strcmp(format, "mixed-bf16") ? "bf16" : format);
    imported_put(m, "memory.optimizer", all ? "adam-half" : "adam");
    if (all && strcmp(format, "mixed-bf16"))
        imported_put(m, "software.master", "none");
    if (all && !imported_given(m, "training.mixed_precision_reduce"))
        imported_put(m, "software.gradients", "widened");
}

static void put_memory(struct imported *m)
{
    const char *name = imported_word(m, "optimizer.name");
    const char *implementation = imported_word(m, "optimizer.implementation");

    put_formats(m);
    if (strcmp(name, "Adam") && strcmp(name, "AdamW"))
        imported_refuse(m, "optimizer.name", "%.60s is not simulated; expected Adam or AdamW; to see another give "
                        "--set optimizer.name=AdamW", name);
    if (job_true(m, "training.enable_cpu_offload"))
        imported_put(m, "memory.offload", "[weights, optimizer]");
    if (imported_given(m, "optimizer.fused"))
        implementation = job_true(m, "optimizer.fused") ? "fused" : "foreach";
    if (strcmp(implementation, "fused"))
        imported_put(m, "software.fused_optimizer", "false");
    put_recompute(m);
}

static void put_software(struct imported *m)
{
    bool compiled = job_true(m, "training.compile") || job_true(m, "compile.enable");
    const struct launch_argument *parts = imported_given(m, "compile.components");
    bool loss = !parts, model = !parts;

    for (size_t i = 0; parts && i < parts->count; i++) {
        loss |= !strcmp(parts->values[i].text, "loss");
        model |= !strcmp(parts->values[i].text, "model");
    }
    imported_put(m, "software.like", "%s", m->software);
    imported_put(m, "software.clip_gradients", strtod(imported_word(m, "training.max_norm"), NULL) > 0 ? "true" : "false");
    if (!compiled || !model) {
        imported_put(m, "software.fused_kernels", "false");
        imported_put(m, "software.fused_norm", "true");      /* torch.nn.RMSNorm is one kernel since PyTorch 2.8 */
    }
    if (!compiled || !loss)
        imported_put(m, "software.cross_entropy", "converted");
    if (job_true(m, PARALLEL "enable_async_tensor_parallel") && compiled)
        imported_put(m, "software.overlap_products", "true");
    else if (job_true(m, PARALLEL "enable_async_tensor_parallel"))
        imported_warn(m, PARALLEL "enable_async_tensor_parallel", "has no effect without compile");
}

static int build(struct imported *m, struct node *model)
{
    long layers = 0, data;

    if (imported_sort(m))
        return -1;
    m->software = "torchtitan-2025";
    imported_plain(m);
    if (put_model(m, model, &layers))
        return -1;
    data = put_data(m);
    if (!data)
        return -1;
    put_pipeline(m, layers);
    put_batch(m, data);
    put_memory(m);
    put_software(m);
    return m->err->count ? -1 : 0;
}

struct node *torchtitan_scenario(struct arena *arena, const struct job_text *job, const char **comment, FILE *notes,
                                struct error *err)
{
    struct launch launch = {.file = job->file};
    struct imported m = {.arena = arena, .launch = &launch, .options = job->options, .err = err};
    struct node *root;
    int rc = toml_parse(arena, job->file, job->text, job->length, &root, err);

    if (!rc) {
        rc = imported_begin(&m, "torchtitan") || job_arguments(arena, root, &launch, err) ? -1 : build(&m, job->model);
        rc = imported_end(&m, rc, notes);
    }
    *comment = m.comment;
    launch_release(&launch);
    return rc ? NULL : m.root;
}

int torchtitan_import(struct arena *arena, const char *path, const struct import_options *options, FILE *out,
                      FILE *notes, struct error *err)
{
    return job_import(arena, path, &(struct job_kind){"torchtitan", torchtitan_scenario, false}, options, out, notes, err);
}
