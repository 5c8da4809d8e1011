#include "recompute/stage_plan.h"

#include <math.h>
#include <stdlib.h>

#include "stage/memory.h"
#include "recompute/rank_plan.h"

/* Every block's input is kept or offloaded, and the block is recomputed right before its backward. */
static struct chain_plan full_plan(struct arena *arena, const struct chain_layer *layers, size_t count, bool offload)
{
    struct chain_plan plan = {
        .kept = ARENA_ARRAY(arena, struct chain_kept, count), .steps = ARENA_ARRAY(arena, struct chain_step, 2 * count),
    };

    for (size_t l = count; l-- > 0;) {
        bool moves = offload && !layers[l].keep && layers[l].input > 0;

        plan.kept[l] = (struct chain_kept){.input = true, .rest = layers[l].keep, .input_offloaded = moves};
        if (!layers[l].keep)
            plan.steps[plan.nsteps++] = (struct chain_step){.layer = l};
        plan.steps[plan.nsteps++] = (struct chain_step){.backward = true, .layer = l};
        *(moves ? &plan.offloaded : &plan.held) += layers[l].keep ? layers[l].saved : layers[l].input;
        plan.working = fmax(plan.working, layers[l].saved);
    }
    return plan;
}

/* The last recomputation of a layer before its backward takes the tensors that the backward needs. The last
 * recomputation of the layer before it takes its input. */
static void settle_steps(struct arena *arena, const struct chain_layer *layers, const struct chain_plan *chain,
                         struct stage_plan *plan)
{
    size_t n = plan->count, steps = chain->nsteps;
    size_t *last = ARENA_ARRAY(arena, size_t, n + 1), *back = ARENA_ARRAY(arena, size_t, n + 1);
    double *saved = ARENA_ARRAY(arena, double, n);       /* B that a layer's backward finds */

    plan->forward = ARENA_ARRAY(arena, double, n);
    plan->moved = ARENA_ARRAY(arena, double, n);
    plan->steps = ARENA_ARRAY(arena, struct plan_step, steps);
    for (size_t i = 0; i < steps; i++) {
        const struct chain_step *step = &chain->steps[i];

        if (!step->backward)
            continue;
        back[step->layer] = i;
        saved[step->layer] = step->selective ? layers[step->layer].selective : layers[step->layer].saved;
    }
    for (size_t l = 0; l < n; l++) {
        const struct chain_kept *kept = &chain->kept[l];
        double input = kept->input ? layers[l].input : 0, rest = kept->rest ? saved[l] - layers[l].input : 0;

        plan->forward[l] = input + rest;
        plan->moved[l] = (kept->input_offloaded ? input : 0) + (kept->rest_offloaded ? rest : 0);
        last[l] = SIZE_MAX;
    }
    for (size_t l = 0; l < n; l++)       /* the last step of layer l before the backward of l + 1 makes its input */
        for (size_t i = 0; l + 1 < n && !chain->kept[l + 1].input && i < back[l + 1]; i++)
            if (chain->steps[i].layer == l && !chain->steps[i].backward)
                last[l + 1] = i;
    for (size_t i = 0; i < steps; i++) {
        size_t l = chain->steps[i].layer;
        struct plan_step *step = &plan->steps[i];
        bool again = false;

        *step = (struct plan_step){
            .backward = chain->steps[i].backward, .selective = chain->steps[i].selective, .layer = l,
        };
        for (size_t k = i + 1; k < back[l] && !again; k++)
            again = chain->steps[k].layer == l;
        if (step->backward)
            step->frees = saved[l];
        else if (!again)
            step->takes += saved[l] - layers[l].input;
        if (!step->backward && l + 1 < n && last[l + 1] == i)
            step->takes += layers[l + 1].input;
    }
}

void stage_plan_set(struct arena *arena, struct stage *stage, const struct chain_layer *layers,
                    const struct chain_plan *chain)
{
    struct stage_plan *plan = ARENA_ARRAY(arena, struct stage_plan, 1);

    *plan = (struct stage_plan){
        .kept = chain->kept, .count = stage->nslices, .nsteps = chain->nsteps, .held = chain->held,
        .working = chain->working, .offloaded = chain->offloaded,
    };
    settle_steps(arena, layers, chain, plan);
    stage->plan = plan;
    stage->recomputed = 0;
    for (size_t i = 0; i < chain->nsteps; i++) {
        const struct slice *layer = stage_layer(stage, chain->steps[i].layer);

        if (!chain->steps[i].backward)
            stage->recomputed += layer->work[RECOMPUTE].flop;
        else if (chain->steps[i].selective)
            stage->recomputed += layer->selective.core.flop;
    }
}

struct work_times stage_plan_recomputed(const struct stage *stage, const struct stage_times *times)
{
    struct work_times sum = {0};

    for (size_t i = 0; stage->plan && i < stage->plan->nsteps; i++) {
        const struct plan_step *step = &stage->plan->steps[i];
        const struct slice_times *layer = slice_times(stage, times, stage_layer(stage, step->layer));

        if (!step->backward)
            work_times_add(&sum, &layer->work[RECOMPUTE]);
        else if (step->selective)
            work_times_add(&sum, &layer->core);
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
