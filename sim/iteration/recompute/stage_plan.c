#include "recompute/stage_plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "recompute/rank_plan.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"

/* All that a layer sends goes at once, and comes back at once when the layer that sends before it is used. An operation
 * that sends something waits for all copies but the last one, and so does a copy back (two buffers). */
static void copy_layers(struct arena *arena, struct stage_plan *plan)
{
    const struct room all = {INFINITY, SIZE_MAX}, last = {INFINITY, 1};
    size_t *first = ARENA_ARRAY(arena, size_t, plan->count);
    int step = -1;

    plan->copies = ARENA_ARRAY(arena, struct plan_copy, plan->count);
    for (size_t k = plan->nsteps; k-- > 0;)
        first[plan->steps[k].layer] = k, plan->step_room[k] = all;
    for (size_t l = 0; l < plan->count; l++) {
        plan->forward_room[l] = plan->moved[l] > 0 ? last : all;
        if (plan->moved[l] > 0)
            plan->copies[plan->ncopies++] = (struct plan_copy){.layer = l, .bytes = plan->moved[l], .room = last};
    }
    for (size_t c = plan->ncopies; c-- > 0;) {
        plan->copies[c].step = step;
        step = (int)first[plan->copies[c].layer];
    }
}

static void copy_tensors(struct arena *arena, const struct chain_plan *chain, struct stage_plan *plan)
{
    plan->copies = ARENA_ARRAY(arena, struct plan_copy, chain->ncopies + 1);
    plan->ncopies = chain->ncopies;
    plan->tensors = chain->copies;
    for (size_t l = 0; l < plan->count; l++)
        plan->forward_room[l] = (struct room){chain->forward_room[l], SIZE_MAX};
    for (size_t k = 0; k < plan->nsteps; k++)
        plan->step_room[k] = (struct room){chain->step_room[k], SIZE_MAX};
    for (size_t c = 0; c < chain->ncopies; c++) {
        const struct chain_copy *copy = &chain->copies[c];

        plan->copies[c] = (struct plan_copy){copy->layer, copy->bytes, copy->step, {copy->room, SIZE_MAX}};
        plan->moved[copy->layer] += copy->bytes;
    }
}

/* The seconds of each layer's forward, and the bytes of it that go to the host. */
static void settle_forward(struct arena *arena, const struct chain_layer *layers, const struct chain_plan *chain,
                           struct stage_plan *plan)
{
    size_t n = plan->count;

    plan->forward = ARENA_ARRAY(arena, double, n);
    plan->moved = ARENA_ARRAY(arena, double, n);
    plan->forward_room = ARENA_ARRAY(arena, struct room, n);
    plan->step_room = ARENA_ARRAY(arena, struct room, chain->nsteps);
    for (size_t k = 0; k < chain->nsteps; k++) {
        size_t l = chain->steps[k].layer;
        const struct chain_kept *kept = &chain->kept[l];
        double saved = chain->steps[k].selective ? layers[l].selective : layers[l].saved;
        double input = kept->input ? layers[l].input : 0, rest = kept->rest ? saved - layers[l].input : 0;

        if (!chain->steps[k].backward)
            continue;
        plan->forward[l] = input + rest;
        if (!chain->copies)
            plan->moved[l] = (kept->input_offloaded ? input : 0) + (kept->rest_offloaded ? rest : 0);
    }
    if (chain->copies)
        copy_tensors(arena, chain, plan);
    else
        copy_layers(arena, plan);
}

void stage_plan_set(struct arena *arena, struct stage *stage, const struct chain_layer *layers,
                    const struct chain_plan *chain)
{
    struct stage_plan *plan = ARENA_ARRAY(arena, struct stage_plan, 1);

    *plan = (struct stage_plan){
        .kept = chain->kept, .count = stage->nslices, .nsteps = chain->nsteps, .held = chain->held,
        .working = chain->working, .offloaded = chain->offloaded,
    };
    plan->steps = chain_steps(arena, layers, plan->count, chain);
    settle_forward(arena, layers, chain, plan);
    stage->plan = plan;
    stage->recomputed = 0;
    for (size_t i = 0; i < chain->nsteps; i++) {
        const struct slice *layer = stage_layer(stage, chain->steps[i].layer);

        if (!chain->steps[i].backward)
            stage->recomputed += layer->work[RECOMPUTE]->flop;
        else if (chain->steps[i].selective)
            stage->recomputed += layer->selective.core->flop;
    }
}

struct work_times stage_plan_recomputed(const struct stage *stage, const struct stage_times *times)
{
    struct work_times sum = {0};

    for (size_t i = 0; stage->plan && i < stage->plan->nsteps; i++) {
        const struct plan_step *step = &stage->plan->steps[i];
        const struct slice_times *layer = slice_times(stage, times, stage_layer(stage, step->layer));

        if (!step->backward)
            work_times_add(&sum, layer->work[RECOMPUTE]);
        else if (step->selective)
            work_times_add(&sum, layer->core);
    }
    return sum;
}

static bool splits(const struct row *row)
{
    for (size_t i = 0; i < row->count; i++)
        if (row->items[i].kind == BACKWARD_WEIGHT)
            return true;
    return false;
}

static void keep_everything(const struct planning *planning, int rank, struct chain_plan *plans)
{
    const struct scenario *scenario = planning->scenario;
    struct chain_limit limit = {.memory = INFINITY, .in_flight = 1};
    bool full = scenario->memory.recompute.mode == RECOMPUTE_FULL;

    for (int c = 0; c < plan_chunks(&scenario->plan, rank); c++) {
        int s = plan_virtual_stage(&scenario->plan, rank, c);
        size_t count = planning->stages[s].nslices;

        if (full)
            plans[c] = full_plan(planning->arena, planning->chains[s], count,
                                 scenario_offloads(scenario, OFFLOAD_ACTIVATIONS));
        else if (chain_plan(planning->arena, planning->chains[s], count, &limit, &plans[c]))
            BUG("nothing fits into infinite memory");
    }
}

/* B in host memory of one GPU of a rank, at most. */
static double host_bytes(const struct scenario *scenario, const struct stage *stages, int rank, const struct row *row)
{
    const struct plan *plan = &scenario->plan;
    double bytes = 0;

    for (int c = 0; c < plan_chunks(plan, rank); c++)
        bytes += row_in_flight(row, c) * stages[plan_virtual_stage(plan, rank, c)].plan->offloaded;
    return bytes + memory_offloaded_states(scenario, stages, rank);
}

static int check_host_memory(const struct scenario *scenario, const struct stage *stages, const struct row *rows,
                             struct error *err)
{
    const struct cluster *cluster = &scenario->cluster;
    const struct parallelism *spec = &scenario->parallelism;
    int gpus = scenario_gpus(scenario), most = 0;
    double *bytes = xcalloc((size_t)gpus + 1, sizeof *bytes);
    char need[48], have[48];

    for (int p = 0; p < spec->pipeline; p++)
        for (int i = 0, tensor = scenario_tensor(scenario, p); i < tensor * scenario_rank_replicas(scenario, p); i++)
            bytes[cluster_node_of(cluster, scenario_gpu(scenario, i % tensor, i / tensor, p))] +=
                host_bytes(scenario, stages, p, &rows[p]);
    for (int node = 0; node < gpus; node++)
        most = bytes[node] > bytes[most] ? node : most;
    double needed = bytes[most];
    free(bytes);
    if (isnan(cluster_host_memory(cluster, most)) || needed <= cluster_host_memory(cluster, most))
        return 0;
    return error_infeasible(err, ERROR_MEMORY, node_loc(scenario->memory.node, "offload"),
                            "memory: offload: the host of node %d needs %s and has %s", most,
                            unit_format_short(UNIT_BYTES, needed, need, sizeof need),
                            unit_format_short(UNIT_BYTES, cluster_host_memory(cluster, most), have, sizeof have));
}

/* The layers of each virtual stage, as its first rank computes them. */
static struct chain_layer **make_chains(struct arena *arena, const struct scenario *scenario,
                                        const struct stage *stages, const struct stage_times *times)
{
    const struct plan *plan = &scenario->plan;
    struct chain_layer **chains = ARENA_ARRAY(arena, struct chain_layer *, plan_virtual_stages(plan));

    for (int rank = 0; rank < plan->stages; rank++)
        for (int c = 0; c < plan_chunks(plan, rank); c++) {
            int s = plan_virtual_stage(plan, rank, c);

            if (!chains[s])
                chains[s] = stage_chain(arena, scenario, &stages[s], &times[s], rank);
        }
    return chains;
}

int stage_plans_build(struct arena *arena, const struct scenario *scenario, struct stage *stages,
                      const struct stage_times *times, const struct row *rows, struct error *err)
{
    const struct plan *plan = &scenario->plan;
    struct chain_plan *plans = ARENA_ARRAY(arena, struct chain_plan, plan->chunks);
    const struct planning planning = {
        .arena = arena, .scenario = scenario, .stages = stages, .rows = rows,
        .chains = make_chains(arena, scenario, stages, times),
    };

    for (int rank = 0; rank < plan->stages; rank++) {
        if (splits(&rows[rank]))
            return error_clash(err, scenario->memory.node->loc, "memory: %s splits its backwards, whose "
                               "second halves need what 'recompute: optimal' and 'offload' give back after the first",
                               scenario_schedule(scenario)->name);
        if (plan_sharers(plan, plan_virtual_stage(plan, rank, 0)) > 1)
            return error_clash(err, scenario->memory.node->loc, "memory: a stage on several ranks has no "
                               "plan of its layers; expected one rank a stage with 'recompute: optimal' or 'offload'");
        if (!scenario_plans_memory(scenario))
            keep_everything(&planning, rank, plans);
        else if (rank_plan(&planning, rank, plans, err))
            return -1;
        for (int c = 0; c < plan_chunks(plan, rank); c++) {
            int s = plan_virtual_stage(plan, rank, c);

            if (!stages[s].plan || stages[s].plan->held > plans[c].held)     /* the smaller of two directions' plans */
                stage_plan_set(arena, &stages[s], planning.chains[s], &plans[c]);
        }
    }
    return check_host_memory(scenario, stages, rows, err);
}
