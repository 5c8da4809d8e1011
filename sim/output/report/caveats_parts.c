/* Caveats of clusters whose nodes are of several kinds or in part idle, of GPUs without the format or without fused
 * attention, of replicas that get unequal shares of the batch, and of frozen weights in few bits. */
#include "report/caveats.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "files/json.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "layout/layout.h"
#include "model/model.h"
#include "run/certainty.h"
#include "scenario/scenario.h"
#include "workload/lockstep.h"

/* Where plans of layers are left to be found, something else may be faster. */
const char *caveat_planned(struct arena *arena, const struct scenario *scenario)
{
    const struct memory_spec *memory = &scenario->memory;

    if (!memory->other_recompute && !memory->stays)
        return NULL;
    return arena_printf(arena, "memory: of what it may do and what fits, an iteration ends first with %s%s%s",
                        memory->other_recompute ? "recompute: " : "",
                        memory->other_recompute ? recompute_names[memory->recompute.mode] : "",
                        !memory->stays ? "" : memory->other_recompute ? " and no activations on the host"
                                                                      : "no activations on the host");
}

const char *caveat_order(struct arena *arena, const struct scenario *scenario)
{
    const struct cluster *cluster = &scenario->cluster;
    const char *order = "";

    if (scenario->parallelism.stages_on != STAGES_ON_AUTO || !scenario->layout.gpus)
        return NULL;
    for (int p = 0; p < scenario->parallelism.pipeline; p++) {
        int node = scenario_seat(scenario, 0, 0, p).node, i = 0;

        while (i + 1 < cluster_given_parts(cluster) && cluster_given_part(cluster, i + 1).first <= node)
            i++;
        order = arena_printf(arena, "%s%s%s", order, p ? ", " : "", cluster_given_part(cluster, i).name);
    }
    return arena_printf(arena, "stages_on: auto puts the pipeline ranks on %s", order);
}

/* GPUs of a part that have no seat of the job. */
static int idle_gpus(const struct scenario *scenario, struct given_part part)
{
    int idle = 0;

    for (int node = part.first; node < part.first + part.nodes; node++)
        for (int i = 0; i < cluster_node_gpus(&scenario->cluster, node); i++)
            idle += !layout_has(&scenario->layout, cluster_node_gpu(&scenario->cluster, node, i));
    return idle;
}

const char *idle_text(struct arena *arena, const struct scenario *scenario)
{
    const struct cluster *cluster = &scenario->cluster;
    const char *text = NULL;

    for (int i = 0; i < cluster_given_parts(cluster); i++) {
        struct given_part part = cluster_given_part(cluster, i);
        int idle = idle_gpus(scenario, part);
        bool whole = idle == part.nodes * cluster_node_gpus(cluster, part.first);

        if (idle)
            text = arena_printf(arena, "%s%s%s%d of %s", text ? text : "", text ? ", " : "", whole ? "all " : "", idle,
                                part.name);
    }
    return text;
}

const char *caveat_idle(struct arena *arena, const struct scenario *scenario)
{
    int all = scenario_paid_gpus(scenario), idle = all - scenario_gpus(scenario);
    const char *parts = idle ? idle_text(arena, scenario) : NULL;

    return !idle ? NULL :
           arena_printf(arena, "no stage is on %d of the cluster's %d GPUs%s%s%s, which %s idle: tokens per GPU, GPU-hours, cost "
                        "and energy count %s, FLOP/s per GPU and MFU do not", idle, all, parts ? " (" : "", parts ? parts : "",
                        parts ? ")" : "", idle == 1 ? "is" : "are", idle == 1 ? "it" : "them");
}

json_t *idle_json(const struct scenario *scenario)
{
    json_t *json = json_object();

    for (int i = 0; i < cluster_given_parts(&scenario->cluster); i++) {
        struct given_part part = cluster_given_part(&scenario->cluster, i);

        json_put(json, part.name, json_integer(idle_gpus(scenario, part)));
    }
    return json;
}

/* The embedding of a model with two sides has a copy on the encoder's first stage, the decoder's first and, where the output
 * layer shares it, the last. */
const char *caveat_two_sides(struct arena *arena, const struct scenario *scenario)
{
    const struct transformer *shape = scenario->model.transformer;

    return !shape || !shape->encoder || scenario->parallelism.pipeline == 1 ? NULL :
           arena_strdup(arena, "the first and the last stage sum the embedding's gradients; the copy on the decoder's first stage is "
                        "held and trained, and its sum takes no time here");
}

/* A tensor group waits for its slowest GPU in every layer. */
const char *caveat_mixed_groups(struct arena *arena, const struct scenario *scenario)
{
    const char *kinds = scenario_gpu_names(arena, scenario, -1);

    for (int r = 0; scenario->layout.mixed && r < scenario_replicas(scenario); r++)
        for (int p = 0; p < scenario->parallelism.pipeline; p++)
            for (int t = 1; t < scenario_tensor(scenario, p) && r < scenario_rank_replicas(scenario, p); t++)
                if (scenario_seat(scenario, t, r, p).kind != scenario_seat(scenario, 0, r, p).kind)
                    return arena_printf(arena, "tensor groups (the first: replica %d, pipeline rank %d) are on nodes of "
                                        "several kinds%s%s%s: each work takes as long as on the slowest of their GPUs", r,
                                        p, kinds ? " (" : "", kinds ? kinds : "", kinds ? ")" : "");
    return NULL;
}

const char *caveat_rates(struct arena *arena, const struct scenario *scenario)
{
    const struct cluster *cluster = &scenario->cluster;
    enum dtype products = precision_products(&scenario->memory.precision);
    const char *names = "";

    for (int kind = 0; kind < cluster_kinds(cluster) && !model_is_timed(&scenario->model); kind++) {
        const struct gpu *gpu = cluster_sheet(cluster, cluster_kind_gpu(cluster, kind));

        if (layout_kind_seats(&scenario->layout, kind) && gpu->name && gpu_rate(gpu, products) == 0 &&
            !strstr(names, gpu->name))
            names = arena_printf(arena, "%s%s%s", names, *names ? ", " : "", gpu->name);
    }
    return !*names ? NULL : arena_printf(arena, "%s has no rate in %s: its GEMMs take as long as in fp32", names,
                                         dtype_names[products]);
}

const char *caveat_attention(struct arena *arena, const struct scenario *scenario)
{
    const char *why = certainty_attention(arena, scenario);

    return !why ? NULL : arena_printf(arena, "%s: fused attention is simulated as if it ran; software.flash_attention: false "
                                      "says attention that stores its scores", why);
}

const char *caveat_lockstep(struct arena *arena, const struct metrics *metrics)
{
    char text[4][32];

    if (!metrics || isnan(metrics->lockstep))
        return NULL;
    return arena_printf(arena, "replicas share links, and the time of replicas in lockstep, %s, is unstable: kernels that vary by a "
                        "part in 10^6 move it; so the result is the run with the median time, %s, of %d whose kernels vary by "
                        "%.0f %% (%s to %s)",
                        unit_format_short(UNIT_TIME, metrics->lockstep, text[0], sizeof text[0]),
                        unit_format_short(UNIT_TIME, metrics->iteration_time, text[1], sizeof text[1]), LOCKSTEP_REPLAYS,
                        100 * LOCKSTEP_JITTER,
                        unit_format_short(UNIT_TIME, metrics->iteration_time_p10, text[2], sizeof text[2]),
                        unit_format_short(UNIT_TIME, metrics->iteration_time_p90, text[3], sizeof text[3]));
}

const char *caveat_short(struct arena *arena, const struct metrics *metrics)
{
    char need[48], have[48];

    if (!metrics || !(metrics->peak_memory > metrics->peak_room))
        return NULL;
    return arena_printf(arena, "it does not fit: a GPU needs %s and has %s; 'memory.enforce: false' simulates it anyway",
                        unit_format_short(UNIT_BYTES, metrics->peak_memory, need, sizeof need),
                        unit_format_short(UNIT_BYTES, metrics->peak_room, have, sizeof have));
}

const char *caveat_packed(struct arena *arena, const struct scenario *scenario)
{
    const struct lora *lora = scenario->memory.lora;

    (void)arena;
    return !lora || lora->weights == LORA_WEIGHTS_FULL ? NULL :
           lora->weights == LORA_WEIGHTS_INT4 ?
           "frozen weights in int4 are converted by as many kernels as AutoGPTQ has, in times of PyTorch's other kernels" :
           "frozen weights in nf4 are converted before each GEMM in twice the time of a copy of as many bytes, as published for "
           "A100 and bitsandbytes up to 2025; newer releases take less";
}

const char *samples_text(struct arena *arena, const struct scenario *scenario)
{
    enum { ONE_BY_ONE = 8 };
    const int *samples = scenario->batch.samples, micro = scenario->batch.micro, data = scenario->parallelism.data;
    int least = micro, most = micro;
    const char *text = "";

    for (int d = 0; samples && d < data; d++) {
        text = arena_printf(arena, "%s%s%d", text, d ? " + " : "", samples[d]);
        least = samples[d] < least ? samples[d] : least;
        most = samples[d] > most ? samples[d] : most;
    }
    for (int p = 1; scenario->views && p < scenario->parallelism.pipeline; p++) {
        least = scenario->views[p]->micro < least ? scenario->views[p]->micro : least;
        most = scenario->views[p]->micro > most ? scenario->views[p]->micro : most;
    }
    if (most > least && !samples)
        return arena_printf(arena, "%d to %d samples", least, most);
    if (!samples)
        return arena_printf(arena, "%d sample%s", micro, micro == 1 ? "" : "s");
    return data > ONE_BY_ONE ? arena_printf(arena, "%d to %d samples", least, most) : arena_printf(arena, "%s samples", text);
}

const char *caveat_shares(struct arena *arena, const struct scenario *scenario)
{
    if (!list_is_auto(&scenario->batch.shares))
        return NULL;
    return arena_printf(arena, "shares: auto gives the replicas micro-batches of %s", samples_text(arena, scenario));
}
