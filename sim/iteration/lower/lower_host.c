/* Copies between GPUs and their hosts, and the updates of hosts.
 *
 * With `offload: optimizer` the host updates (Ren et al. 2021, ZeRO-Offload, sections 4 and 5):
 *   gradients  go to the host as soon as they are ready: bucket by bucket after their sum over the replicas, and layer by
 *              layer those that are in no bucket (all under ZeRO 3 and of one replica, or those of experts that no replica
 *              shares)
 *   update the CPUs update one of these portions after another; with clipping they begin when they have all gradients
 *   weights    come back
 * Copies to the host, updates and copies back are three streams. From ZeRO 1 on each replica does all this with its
 * share. With `offload: weights` the updated weights go to the host. lower_layers.c asks for the copies that overlap
 * with a layer's kernels.
 *
 * Reads the plans of stages, buckets, and the memory policies that keep something on hosts.
 * Adds lanes to hosts and the portions that these update, before other operations; then the copies for which layers and
 * updates ask, and the hosts' updates. */
#include "lower/lower_internal.h"
#include "recompute/stage_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "engine/event.h"
#include "engine/program.h"
#include "exchange/exchange.h"
#include "hardware/cluster.h"
#include "layout/layout.h"
#include "scenario/recipe.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/stage.h"

/* The trained parameters of a layer whose classes have no buckets, as one replica updates them. */
static double outside_buckets(const struct recipe *recipe, const struct slice *slice, const struct buckets *buckets)
{
    struct by_class left = slice->trained;

    for (size_t b = 0; b < buckets->count; b++)
        left.of[buckets->items[b].class] = 0;
    return recipe_share(recipe, HELD_STATES, left);
}

/* The portions that the host of a stage updates, in the order in which their gradients become ready. */
static struct portions find_portions(struct lowering *lowering, int stage)
{
    const struct stage *held = &lowering->workload->stages[stage];
    const struct buckets *buckets = &lowering->exchanges.buckets[stage];
    const struct recipe *recipe = stage_recipe(&lowering->exchanges, stage);
    struct portions portions = {.items = ARENA_ARRAY(&lowering->arena, struct portion, buckets->count + held->nslices)};
    size_t b = 0;

    for (size_t i = 0; i < held->nslices; i++) {
        double outside = outside_buckets(recipe, &held->slices[i], buckets);

        if (outside > 0)
            portions.items[portions.count++] = (struct portion){outside, i, false};
        for (; b < buckets->count && buckets->items[b].slice == i; b++) {
            const struct bucket *bucket = &buckets->items[b];
            double share = bucket->values / recipe->divided[HELD_STATES][bucket->class];

            portions.items[portions.count++] = (struct portion){share, b, true};
        }
    }
    return portions;
}

void hosts_find(struct lowering *lowering)
{
    int ranks = lowering->program->ranks, stages = plan_virtual_stages(lowering->plan);

    for (int r = 0; r < ranks; r++)
        lowering->ranks[r].host = (struct rank_host){
            .to = program_lane(lowering->program, r, LANE_TO_HOST, 0),
            .from = program_lane(lowering->program, r, LANE_FROM_HOST, 0),
            .cpu = program_lane(lowering->program, r, LANE_HOST, 0),
        };
    if (!scenario_offloads(lowering->scenario, OFFLOAD_OPTIMIZER))
        return;
    lowering->hosted = ARENA_ARRAY(&lowering->arena, struct portions, stages);
    for (int stage = 0; stage < stages; stage++)
        lowering->hosted[stage] = find_portions(lowering, stage);
}

/* The first GPU of a rank and its node, whose host copies and updates for the rank. */
static struct seat host_seat(const struct lowering *lowering, int prank)
{
    return scenario_seat(lowering->scenario, 0, prank / lowering->plan->stages, prank % lowering->plan->stages);
}

struct event host_copy(struct lowering *lowering, bool to_host, double bytes, bool latency, int prank, struct new_op op,
                       struct event after)
{
    const struct cluster *cluster = &lowering->scenario->cluster;
    int node = host_seat(lowering, prank).node;

    op.kind = OP_COMPUTE;
    op.what = to_host ? WHAT_OFFLOAD : WHAT_PREFETCH;
    op.lane = to_host ? lowering->ranks[prank].host.to : lowering->ranks[prank].host.from;
    op.amount = latency ? cluster_host_copy(cluster, node, bytes) : bytes / cluster_host_bandwidth(cluster, node);
    op.compute.sent = bytes;
    return event_of(lower_after(lowering, op, after));
}

/* Whether the room is enough for the copies to the host that are under way when the first `done` have ended. */
static bool within(const struct copies_out *out, size_t done, const struct room *room)
{
    double before = done > 0 ? out->items[done - 1].sum : 0;

    return done == out->count ||
           (out->count - done <= room->copies && out->items[out->count - 1].sum - before <= room->bytes);
}

struct event host_drained(const struct rank_host *host, const struct room *room)
{
    size_t low = 0, high = host->out.count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (within(&host->out, middle, room))
            high = middle;
        else
            low = middle + 1;
    }
    return low > 0 ? host->out.items[low - 1].event : event_of(NO_OP);
}

void host_note_copy(struct lowering *lowering, struct rank_host *host, struct event event, double bytes)
{
    struct copies_out *out = &host->out;
    double sum = out->count ? out->items[out->count - 1].sum : 0;

    if (out->count == out->capacity) {
        struct copy_out *items = out->items;

        out->capacity = 2 * out->capacity + 64;
        out->items = ARENA_ARRAY(&lowering->arena, struct copy_out, out->capacity);
        if (out->count)
            memcpy(out->items, items, out->count * sizeof *items);
    }
    out->items[out->count++] = (struct copy_out){event, sum + bytes};
}

/* Seconds of an update of a portion. The CPUs of a node update for all GPUs of the job there, equally fast for each. */
static double update_seconds(const struct lowering *lowering, int prank, const struct portion *portion)
{
    const struct scenario *scenario = lowering->scenario;
    struct seat seat = host_seat(lowering, prank);

    return portion->parameters / (cluster_host_update(&scenario->cluster, seat.node) /
                                  layout_node_seats(&scenario->layout, seat.gpu));
}

/* Copies a portion's gradients to the host, or its weights back; returns the end. */
static struct event copy_portion(struct lowering *lowering, bool to_host, int prank, int stage, const struct portion *portion,
                                 struct event after)
{
    struct parameter_bytes each = scenario_parameter_bytes(lowering->scenario);

    return host_copy(lowering, to_host, portion->parameters * (to_host ? each.gradients : each.weights), true, prank,
                     (struct new_op){.mb = -1, .stage = stage}, after);
}

/* The end of the sums of a portion's gradients, or of their kernels where nobody sums them, with tied ones. `buckets`: in
 * the chunk, the last ones of its `sums`. */
static struct event portion_ready(struct lowering *lowering, const struct chunk_state *chunk_state, size_t buckets,
                                  const struct portion *portion)
{
    struct event ready = portion->bucket ? chunk_state->sums.items[chunk_state->sums.count - buckets + portion->index]
                                         : chunk_state->layers[portion->index];

    return event_both(&lowering->arena, ready, chunk_state->tied);
}

/* Lowers the host's update of a portion after `after`, and the copy of its weights back; returns the last of them. */
static struct event update_portion(struct lowering *lowering, int prank, int stage, const struct portion *portion,
                                   struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    bool back = !scenario_offloads(scenario, OFFLOAD_WEIGHTS) || scenario->recipe.weights.when == WEIGHTS_UPDATED;
    struct event done = event_of(lower_after(lowering, (struct new_op){
        .kind = OP_COMPUTE, .what = WHAT_HOST_UPDATE, .lane = lowering->ranks[prank].host.cpu, .mb = -1,
        .stage = stage, .amount = update_seconds(lowering, prank, portion),
    }, after));

    return back ? copy_portion(lowering, false, prank, stage, portion, done) : done;
}

/* A portion of one of a rank's stages, and the end of the copy of its gradients to the host. */
struct copied { const struct portion *portion; int stage; struct event copied; };

/* Clipping takes the norm of all gradients, so that no update begins before the host has the last of them (DeepSpeed,
 * runtime/zero/stage_1_and_2.py, step: the norm, then the optimizer). Copies go one after another. */
void host_update(struct lowering *lowering, int prank, struct waits *waits)
{
    bool clips = lowering->scenario->memory.precision.clip_gradients;
    int rank = prank % lowering->plan->stages;
    struct { struct copied *items; size_t count, capacity; } units = {0};

    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        int stage = plan_virtual_stage(lowering->plan, rank, chunk);
        size_t buckets = lowering->exchanges.buckets[stage].count;

        for (size_t i = 0; i < lowering->hosted[stage].count; i++) {
            const struct portion *portion = &lowering->hosted[stage].items[i];
            struct event ready = portion_ready(lowering, chunk_state_of(lowering, prank, chunk), buckets, portion);

            *GROW(&units) = (struct copied){portion, stage, copy_portion(lowering, true, prank, stage, portion, ready)};
        }
    }
    for (size_t i = 0; i < units.count; i++)
        wait_for(waits, update_portion(lowering, prank, units.items[i].stage, units.items[i].portion,
                                       units.items[clips ? units.count - 1 : i].copied));
    free(units.items);
}

void host_store_weights(struct lowering *lowering, int prank, struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    int rank = prank % lowering->plan->stages, first = plan_virtual_stage(lowering->plan, rank, 0);
    double bytes = 0;

    if (!scenario_offloads(scenario, OFFLOAD_WEIGHTS) ||
        (scenario_offloads(scenario, OFFLOAD_OPTIMIZER) && scenario->recipe.weights.when != WEIGHTS_UPDATED))
        return;
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        const struct stage *stage = &lowering->workload->stages[plan_virtual_stage(lowering->plan, rank, chunk)];

        bytes += recipe_share(scenario_recipe(scenario, rank), HELD_WEIGHTS, stage->trained) *
                 scenario_parameter_bytes(scenario).weights;
    }
    if (bytes == 0)
        return;
    after = host_copy(lowering, true, bytes, true, prank, (struct new_op){.mb = -1, .stage = first}, after);
    /* the update ends when the host has all weights */
    lower_after(lowering, (struct new_op){
        .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->ranks[prank].compute_lane, .continues = true,
        .mb = -1, .stage = first,
    }, after);
}

/* A plan's copies of activations, layer by layer in the order of the forward. */
static void print_copies(const struct stage_plan *plan, int stage, FILE *out)
{
    for (size_t i = 0; plan && i < plan->ncopies; i++)
        fprintf(out, "%6d  activations of layer %zu, %.12g B; back before step %d of the backward\n", stage,
                plan->copies[i].layer, plan->copies[i].bytes, plan->copies[i].step);
}

void hosts_print(const struct lowering *lowering, FILE *out)
{
    const struct scenario *scenario = lowering->scenario;
    struct parameter_bytes each = scenario_parameter_bytes(scenario);

    fputs("# what hosts hold for their GPUs\n# stage  what\n", out);
    for (int stage = 0; scenario_by_layers(scenario) && stage < plan_virtual_stages(lowering->plan); stage++) {
        int rank = plan_rank(lowering->plan, 0, stage, 0, NULL);
        const struct stage *held = &lowering->workload->stages[stage];

        print_copies(held->plan, stage, out);
        for (size_t i = held->nslices; i-- > 0 && scenario_offloads(scenario, OFFLOAD_WEIGHTS);)
            fprintf(out, "%6d  weights of layer %zu, %.12g B before its kernels\n", stage, held->nslices - 1 - i,
                    recipe_share(&scenario->recipe, HELD_WEIGHTS, slice_weights(&held->slices[i])) * each.weights);
        for (size_t i = 0; lowering->hosted && i < lowering->hosted[stage].count; i++) {
            const struct portion *portion = &lowering->hosted[stage].items[i];

            fprintf(out, "%6d  gradients of %s %zu, %.12g B; an update of %.9g s\n", stage,
                    portion->bucket ? "bucket" : "layer",
                    portion->bucket ? portion->index : held->nslices - 1 - portion->index, portion->parameters * each.gradients,
                    update_seconds(lowering, rank, portion));
        }
    }
}
