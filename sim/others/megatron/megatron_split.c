/* megatron_split: how many layers each stage has, where Megatron-LM is told so. */
#include "megatron/megatron_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"
#include "launch/imported.h"

enum { MOST_STAGES = 65536 };
struct split { struct imported *m; long long *layers; long long count; };

static int refuse(struct split *split, const char *why)
{
    return imported_refuse(split->m, "pipeline-model-parallel-layout", "%s; expected E, t, m and L for each stage, '|' "
                           "between stages, x*N or (...)*N to repeat", why);
}

static void put_split(struct split *split)
{
    const char *text = "";

    for (long long i = 0; i < split->count; i++)
        text = arena_printf(split->m->arena, "%s%s%lld", text, i ? ", " : "", split->layers[i]);
    imported_put(split->m, "strategy.split", "[%s]", text);
}

/* Writes x*n and (..)*n out. One level, as core/transformer/pipeline_parallel_layer_layout.py has it. */
static char *unfold(struct split *split, const char *text)
{
    struct imported *m = split->m;
    size_t capacity = 1 << 20, used = 0;
    char *flat = arena_alloc(m->arena, capacity);

    for (const char *at = text; *at;) {
        const char *part = at, *end;
        size_t length = 1;
        long long times = 1;

        if (*at == ',' || *at == ' ') {
            at++;
            continue;
        }
        if (*at == '(') {
            part = at + 1;
            length = strcspn(part, "()");
            if (part[length] != ')')
                return refuse(split, "brackets do not match"), NULL;
            at = part + length;
        }
        at++;
        if (*at == '*') {
            times = strtoll(at + 1, (char **)&end, 10);
            if (end == at + 1 || times < 1)
                return refuse(split, "a repetition is no number above 0"), NULL;
            at = end;
        }
        if (!part[0] || (length == 1 && !strchr("EtmL|", *part)) || times > (long long)((capacity - used - 1) / (length ? length : 1)))
            return refuse(split, strchr("EtmL|", *part) ? "the layout is too long" : "found another character"), NULL;
        for (; times > 0; times--, used += length)
            memcpy(flat + used, part, length);
    }
    return flat;
}

/* Stage i of the layout is on rank i mod pipeline, chunk i div pipeline: the order of virtual stages. */
static void put_layout(struct split *split, const char *text, long long stages, long long pipeline)
{
    long long layers = megatron_layers(split->m), sum = 0, extra = 0;    /* extra: the stage of m; 0: none */
    char *flat = unfold(split, text);
    size_t last = flat ? strlen(flat) : 0;

    if (!flat)
        return;
    split->count = 1;
    for (const char *c = flat; *c; c++) {
        if ((*c == 't' && extra) || (*c == 'm' && (split->count == 1 || (extra && extra != split->count)))) {
            refuse(split, "m stands before a t, in the first stage, or in two stages");
            return;
        }
        if (*c == '|' && ++split->count > MOST_STAGES) {
            refuse(split, "there are too many stages");
            return;
        }
        if (*c == 't')
            split->layers[split->count - 1]++;
        else if (*c != '|' && *c != 'm' && !(*c == 'E' && c == flat) && !(*c == 'L' && c == flat + last - 1)) {
            refuse(split, "E is not the first, L not the last, or a character is unknown");
            return;
        }
        extra = *c == 'm' ? split->count : extra;
        sum += *c == 't';
    }
    if (flat[0] != 'E' || !last || flat[last - 1] != 'L')
        refuse(split, "the layout does not begin with E and end with L");
    else if (sum != layers)
        imported_refuse(split->m, "pipeline-model-parallel-layout", "has %lld blocks (t); %s says %lld", sum,
                        imported_shown(split->m, "num-layers"), layers);
    else if (split->count % pipeline || (stages != pipeline && split->count != stages))
        imported_refuse(split->m, "pipeline-model-parallel-layout", "has %lld stages; expected a multiple of the %lld ranks",
                        split->count, pipeline);
    else {
        if (extra && extra != split->count)
            imported_warn(split->m, "pipeline-model-parallel-layout", "multi-token prediction (m) is on the last stage");
        if (split->count > pipeline) {
            imported_put(split->m, "strategy.schedule", "interleaved");
            imported_put(split->m, "strategy.chunks", "%lld", split->count / pipeline);
        }
        put_split(split);
    }
}

/* --decoder-first-pipeline-num-layers and -last-: the other ranks share equally, and so do the chunks of each rank. */
static void put_ends(struct split *split, long long stages, long long pipeline)
{
    struct imported *m = split->m;
    long long layers = megatron_layers(m), first = imported_number(m, "decoder-first-pipeline-num-layers");
    long long last = imported_number(m, "decoder-last-pipeline-num-layers"), rest = layers - first - last;
    long long chunks = stages / pipeline, ranks = pipeline - (first > 0) - (last > 0);
    const char *name = first ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers";

    if (first < 0 || last < 0 || first % chunks || last % chunks || rest < 0 || (ranks ? rest % (ranks * chunks) : rest)) {
        imported_refuse(m, name, "%lld layers in all, %lld in the first stage and %lld in the last leave %lld, which %lld ranks "
                        "cannot share equally", layers, first, last, rest, ranks);
        return;
    }
    for (long long i = 0; i < stages; i++) {
        long long rank = i % pipeline;

        split->layers[i] = (rank == 0 && first ? first : rank == pipeline - 1 && last ? last : rest / ranks) / chunks;
    }
    split->count = stages;
    put_split(split);
}

/* --account-for-embedding-in-pipeline-split and -loss-: each counts as a block. */
static void put_accounted(struct split *split, long long stages)
{
    struct imported *m = split->m;
    long long embedding = imported_given(m, "account-for-embedding-in-pipeline-split") != NULL;
    long long loss = imported_given(m, "account-for-loss-in-pipeline-split") != NULL;
    long long all = megatron_layers(m) + embedding + loss;

    if (all % stages) {
        imported_refuse(m, embedding ? "account-for-embedding-in-pipeline-split" : "account-for-loss-in-pipeline-split",
                        "%lld layers, those for embedding and loss counted, do not divide over %lld stages", all, stages);
        return;
    }
    for (long long i = 0; i < stages; i++)
        split->layers[i] = all / stages - (i == 0 ? embedding : 0) - (i == stages - 1 ? loss : 0);
    split->count = stages;
    put_split(split);
}

/* A hybrid's '|'. Stage i is on rank i mod pipeline (core/models/hybrid/hybrid_layer_allocation.py, select_pipeline_segment). */
static void put_segments(struct split *split, long long pipeline)
{
    const char *name = imported_given(split->m, "hybrid-layer-pattern") ? "hybrid-layer-pattern" : "hybrid-override-pattern";

    split->count = megatron_stages(split->m, split->layers);
    if (pipeline <= 1 || split->count % pipeline)
        imported_refuse(split->m, name, "'|' ends %lld stages; expected a multiple of the %lld pipeline ranks, above 1", split->count,
                        pipeline);
    else
        put_split(split);
}

void megatron_split(struct imported *m, long long chunks)
{
    long long pipeline = imported_number(m, "pipeline-model-parallel-size"), layers = megatron_layers(m);
    const struct launch_argument *layout = imported_given(m, "pipeline-model-parallel-layout");
    struct split split = {m, NULL, 0};

    if (megatron_has_sides(m)) {
        megatron_split_sides(m, pipeline, chunks);
        return;
    }
    if (megatron_stages(m, NULL)) {
        split.layers = ARENA_ARRAY(m->arena, long long, megatron_stages(m, NULL));
        put_segments(&split, pipeline);
        return;
    }
    if (pipeline <= 1 || chunks < 1 || pipeline > MOST_STAGES / chunks)
        return;
    split.layers = ARENA_ARRAY(m->arena, long long, MOST_STAGES + 1);
    if (layout)
        put_layout(&split, layout->count ? layout->values[0].text : "", pipeline * chunks, pipeline);
    else if (imported_given(m, "decoder-first-pipeline-num-layers") || imported_given(m, "decoder-last-pipeline-num-layers"))
        put_ends(&split, pipeline * chunks, pipeline);
    else if (imported_given(m, "account-for-embedding-in-pipeline-split") ||
             imported_given(m, "account-for-loss-in-pipeline-split"))
        put_accounted(&split, pipeline * chunks);
    else if (layers % (pipeline * chunks) && !imported_given(m, "pp-partition-method"))
        imported_warn(m, "num-layers", "%lld layers do not divide over %lld stages, and Megatron-LM refuses that; stages get "
                      "as even a number as possible", layers, pipeline * chunks);
    if (imported_given(m, "pp-partition-method"))
        imported_warn(m, "pp-partition-method", "stages get as even a number of blocks as possible; write strategy: split "
                      "if DeepSpeed divides them otherwise");
}
