/* torchtitan: the scenario of a torchtitan job's TOML. */
#include "jobs/jobs_internal.h"

#include "jobs/toml.h"

#include <stdlib.h>
#include <strings.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/named.h"
#include "launch/dialect.h"
#include "launch/imported.h"
#include "launch/launch.h"

#define PARALLEL "parallelism."

static long long degree(const struct imported *m, const char *name)
{
    long long value = imported_number(m, name);

    if (value < 1 || value > 65536)
        imported_refuse((struct imported *)m, name, "expected a degree of 1 to 65536, found %lld", value);
    return value < 1 || value > 65536 ? 1 : value;
}

/* The blocks of the model; 0: not known here. */
static long long layers_of(struct imported *m)
{
    static const struct data_kind kind = {"scenarios/models", "model", NULL};
    const struct node *preset = node_at(m->root, "model.preset"), *layers = node_at(m->root, "model.transformer.layers");
    const char *path = preset ? data_resolve(m->arena, &kind, preset->text, m->launch->loc, m->err) : NULL;
    struct node *file = NULL;

    if (path && !conf_load(m->arena, path, &file, m->err))
        layers = node_at(file, "transformer.layers");
    return layers && layers->text ? strtoll(layers->text, NULL, 10) : 0;
}

static int put_model(struct imported *m, struct node *given)
{
    bool own = given || m->options->hf_config;
    int before = m->err->count;

    if (own && job_model(m, given) < 0)
        return -1;
    if (!own)
        imported_rows(m, "model");
    if (!given)
        imported_put(m, own ? "model.transformer.sequence" : "model.sequence", "%lld", imported_number(m, "training.seq_len"));
    return m->err->count > before ? -1 : 0;
}

long long torchtitan_blocks(long long layers, long long first, long long last, long long stages, long long stage)
{
    long long all = layers + first + last;

    return all / stages + (stage < all % stages) - (stage == 0 ? first : 0) - (stage == stages - 1 ? last : 0);
}

static void put_split(struct imported *m, long long layers, long long stages)
{
    long long first = imported_number(m, PARALLEL "pipeline_parallel_first_stage_less_layers");
    long long last = imported_number(m, PARALLEL "pipeline_parallel_last_stage_less_layers"), all = layers + first + last;
    const char *text = "";

    if (!first && !last && layers % stages == 0)
        return;
    if (first < 0 || last < 0 || first > layers || last > layers || all / stages < first || all / stages < last)
        imported_refuse(m, PARALLEL "pipeline_parallel_degree", "%lld blocks do not divide over %lld stages", layers,
                        stages);
    else
        for (long long i = 0; i < stages; i++)
            text = arena_printf(m->arena, "%s%s%lld", text, i ? ", " : "", torchtitan_blocks(layers, first, last, stages, i));
    if (*text)
        imported_put(m, "strategy.split", "[%s]", text);
}

/* "layers.8": the stage that begins with block 8. */
static void put_points(struct imported *m, const struct launch_argument *points, long long layers, long long stages)
{
    const char *text = "";
    long long before = 0;

    for (size_t i = 0; i < points->count; i++) {
        const char *point = points->values[i].text;
        long long block = !strncmp(point, "layers.", 7) ? strtoll(point + 7, NULL, 10) : -1;

        if (block < before || block > layers) {
            imported_refuse(m, PARALLEL "pipeline_parallel_split_points",
                            "expected layers.N in rising order, found '%.60s'", point);
            return;
        }
        text = arena_printf(m->arena, "%s%lld, ", text, block - before);
        before = block;
    }
    if ((long long)points->count + 1 != stages)
        imported_refuse(m, PARALLEL "pipeline_parallel_split_points", "has %zu points; expected %lld for %lld stages",
                        points->count, stages - 1, stages);
    else
        imported_put(m, "strategy.split", "[%s%lld]", text, layers - before);
}

/* Chunks of a rank where a key says the blocks of a stage (torchtitan/distributed/pipeline_parallel.py at b5bcd76c,
 * lines 218-242): stages = ceil((blocks + first + last) / blocks of a stage), as many on each rank. `usual`: the schedule's
 * number of chunks, 1: it has one stage a rank. 0: an error. */
static long long chunks_of(struct imported *m, long long layers, long long pipeline, long long usual)
{
    static const char key[] = PARALLEL "pipeline_parallel_layers_per_stage";
    const char *schedule = imported_word(m, PARALLEL "pipeline_parallel_schedule");
    long long per = imported_number(m, key), stages, chunks;
    bool vee = !strcasecmp(schedule, "ZBVZeroBubble") || !strcasecmp(schedule, "DualPipeV");

    if (!imported_given(m, key))
        return usual;
    if (per < 1)
        return imported_refuse(m, key, "expected a number above 0, found %lld", per), 0;
    if (!layers) {
        imported_warn(m, key, "the blocks of the model are not known here; each rank gets %lld stages", usual);
        return usual;
    }
    stages = (layers + imported_number(m, PARALLEL "pipeline_parallel_first_stage_less_layers") +
              imported_number(m, PARALLEL "pipeline_parallel_last_stage_less_layers") + per - 1) / per;
    chunks = stages / pipeline;
    if (stages % pipeline || (usual == 1 ? chunks != 1 : chunks < 2) || (vee && chunks != 2))
        return imported_refuse(m, key, "%lld blocks are %lld stages, which torchtitan refuses on %lld ranks with %.60s", layers, stages,
                               pipeline, schedule), 0;
    return chunks;
}

static void put_pipeline(struct imported *m, long long layers)
{
    const struct argument_row *row = dialect_row(m->dialect, PARALLEL "pipeline_parallel_schedule", false);
    const char *name = imported_word(m, row->name), *ours = dialect_word(m->arena, row, name, false);
    long long pipeline = degree(m, PARALLEL "pipeline_parallel_degree"), chunks = !strcmp(ours, "1f1b") || !strcmp(ours, "gpipe") ? 1 : 2;
    const struct launch_argument *points = imported_given(m, PARALLEL "pipeline_parallel_split_points");

    if (pipeline == 1)
        return;
    if (!dialect_knows(row, dialect_word(m->arena, row, ours, true))) {
        imported_refuse(m, row->name, "%.60s is not simulated; expected one of %s", name,
                        dialect_words(m->arena, row));
        return;
    }
    imported_put(m, "strategy.schedule", "%s", ours);
    if (!points || !points->count)
        chunks = chunks_of(m, layers, pipeline, chunks);
    else if (chunks > 1 && (points->count + 1) % (size_t)pipeline == 0)
        chunks = (long long)(points->count + 1) / pipeline;
    if (!chunks)
        return;
    imported_put(m, "strategy.pipeline", "%lld", pipeline);
    if (chunks > 1)
        imported_put(m, "strategy.chunks", "%lld", chunks);
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
static long long put_data(struct imported *m)
{
    long long replicate = degree(m, PARALLEL "data_parallel_replicate_degree"), data, model, world = imported_world(m);
    long long shard = imported_number(m, PARALLEL "data_parallel_shard_degree");
    long long tensor = degree(m, PARALLEL "tensor_parallel_degree"), context = degree(m, PARALLEL "context_parallel_degree");

    degree(m, PARALLEL "expert_parallel_degree");
    if (m->err->count)
        return 0;
    if (shard != -1 && (shard < 1 || shard > 65536))
        return imported_refuse(m, PARALLEL "data_parallel_shard_degree",
                               "expected -1 (all that is left) or a degree of 1 to "
                               "65536, found %lld",
                               shard),
               0;
    model = tensor * context * degree(m, PARALLEL "pipeline_parallel_degree");
    if (shard > 0 && world && world != model * shard * replicate)
        return imported_refuse(m, PARALLEL "data_parallel_shard_degree",
                               "the degrees are %lld GPUs, and the launch has %lld", model * shard * replicate, world),
               0;
    data = imported_cluster(m, model, replicate, 0, shard > 0 ? model * shard * replicate : world);
    if (!data)
        return 0;
    if (data % replicate)
        return imported_refuse(m, PARALLEL "data_parallel_replicate_degree", "%lld does not divide the %lld replicas",
                               replicate, data),
               0;
    shard = data / replicate;
    if (shard * context > 1) {
        imported_put(m, "strategy.zero", "3");
        if (replicate > 1)
            imported_put(m, "strategy.shard", "%lld", shard * context);
    }
    imported_rows(m, "parallelism");
    return data;
}

/* A pipeline cuts the local batch into micro-batches; without one it is the micro-batch. */
static void put_batch(struct imported *m, long long data)
{
    const char *name = imported_given(m, "training.batch_size") ? "training.batch_size" : "training.local_batch_size";
    long long local = imported_number(m, name), global = imported_number(m, "training.global_batch_size"), micro = local;
    bool pipeline = imported_number(m, PARALLEL "pipeline_parallel_degree") > 1;

    if (pipeline)
        micro = imported_number(m, PARALLEL "pipeline_parallel_microbatch_size");
    if (local < 1 || micro < 1 || local % micro || local > 1 << 20) {
        imported_refuse(m, name, "expected 1 to %d, a multiple of the micro-batch, %lld; found %lld", 1 << 20, micro,
                        local);
        return;
    }
    if (global < 0)
        global = local * data;
    if (global % (local * data))
        imported_refuse(m, "training.global_batch_size", "%lld is no multiple of local batch %lld x %lld replicas", global,
                        local, data);
    if (pipeline && global > local * data)
        imported_warn(m, "training.global_batch_size",
                      "the pipeline is simulated with all micro-batches in a row; torchtitan "
                      "drains it behind each local batch");
    imported_put(m, "batch.micro", "%lld", micro);
    imported_put(m, "batch.global", "%lld", global);
}

static int build(struct imported *m, struct node *model)
{
    long long data;

    if (imported_sort(m))
        return -1;
    m->software = "torchtitan-2025";
    imported_plain(m);
    if (put_model(m, model))
        return -1;
    data = put_data(m);
    if (!data)
        return -1;
    put_pipeline(m, layers_of(m));
    put_batch(m, data);
    imported_rows(m, "memory");
    imported_put(m, "software.like", "%s", m->software);
    imported_rows(m, "software");
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
