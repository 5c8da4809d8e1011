#include "stage_plan.h"

#include <math.h>
#include <stdlib.h>

#include "memory.h"

static double largest_workspace(const struct stage *stage)
{
    double most = 0;

    for (size_t i = 0; i < stage->nslices; i++)
        most = fmax(most, fmax(stage->slices[i].workspace.forward, stage->slices[i].workspace.backward));
    return most;
}

static struct chain_layer *chain_of(struct arena *arena, const struct stage *stage)
{
    struct chain_layer *layers = ARENA_ARRAY(arena, struct chain_layer, stage->nslices);

    for (size_t l = 0; l < stage->nslices; l++) {
        const struct slice *slice = stage_layer(stage, l);

        layers[l] = (struct chain_layer){
            .forward = slice->work[slice->again ? RECOMPUTE : FORWARD].seconds,
            .backward = slice->work[BACKWARD].seconds, .input = slice->input,
            .saved = fmax(slice->activation, slice->input), .keep = !slice->again,
            .lean = fmax(slice->lean.activation, slice->input), .again = slice->lean.core.seconds,
        };
    }
    return layers;
}

/* Every block's input is kept or offloaded, and it is computed again right before its backward. */
static struct chain_plan full_plan(struct arena *arena, const struct chain_layer *layers, size_t count, bool offload)
{
    struct chain_plan plan = {
        .kept = ARENA_ARRAY(arena, struct chain_kept, count), .steps = ARENA_ARRAY(arena, struct chain_step, 2 * count),
    };

    for (size_t l = count; l-- > 0;) {
        bool moves = offload && !layers[l].keep && layers[l].input > 0;

        plan.kept[l] = (struct chain_kept){.input = true, .rest = layers[l].keep, .input_offloaded = moves};
        if (!layers[l].keep) {
            plan.steps[plan.nsteps++] = (struct chain_step){.layer = l};
            plan.recompute += layers[l].forward;
        }
        plan.steps[plan.nsteps++] = (struct chain_step){.backward = true, .layer = l};
        *(moves ? &plan.offloaded : &plan.held) += layers[l].keep ? layers[l].saved : layers[l].input;
        plan.working = fmax(plan.working, layers[l].saved);
    }
    return plan;
}

/* What comes and goes, step by step: the last forward of a layer before its backward leaves what that needs, and the
 * last one of the layer before it this layer's input. */
static void settle_steps(struct arena *arena, struct stage *stage, const struct chain_layer *layers,
                         struct stage_plan *plan)
{
    size_t n = plan->count, steps = plan->chain.nsteps;
    size_t *last = ARENA_ARRAY(arena, size_t, n + 1), *back = ARENA_ARRAY(arena, size_t, n + 1);
    double *saved = ARENA_ARRAY(arena, double, n);       /* B that a layer's backward finds */

    plan->forward = ARENA_ARRAY(arena, double, n);
    plan->moved = ARENA_ARRAY(arena, double, n);
    plan->steps = ARENA_ARRAY(arena, struct plan_step, steps);
    for (size_t i = 0; i < steps; i++) {
        const struct chain_step *step = &plan->chain.steps[i];

        if (!step->backward)
            continue;
        back[step->layer] = i;
        saved[step->layer] = step->lean ? layers[step->layer].lean : layers[step->layer].saved;
    }
    for (size_t l = 0; l < n; l++) {
        const struct chain_kept *kept = &plan->chain.kept[l];
        double input = kept->input ? layers[l].input : 0, rest = kept->rest ? saved[l] - layers[l].input : 0;

        plan->forward[l] = input + rest;
        plan->moved[l] = (kept->input_offloaded ? input : 0) + (kept->rest_offloaded ? rest : 0);
        last[l] = SIZE_MAX;
    }
    for (size_t l = 0; l < n; l++)       /* the last forward of layer l before the backward of l + 1 makes its input */
        for (size_t i = 0; l + 1 < n && !plan->chain.kept[l + 1].input && i < back[l + 1]; i++)
            if (plan->chain.steps[i].layer == l && !plan->chain.steps[i].backward)
                last[l + 1] = i;
    for (size_t i = 0; i < steps; i++) {
        size_t l = plan->chain.steps[i].layer;
        struct plan_step *step = &plan->steps[i];
        bool again = false;

        *step = (struct plan_step){
            .backward = plan->chain.steps[i].backward, .lean = plan->chain.steps[i].lean, .layer = l,
        };
        for (size_t k = i + 1; k < back[l] && !again; k++)
            again = plan->chain.steps[k].layer == l;
        if (step->backward)
            step->frees = saved[l];
        else if (!again)
            step->takes += saved[l] - layers[l].input;
        if (!step->backward && l + 1 < n && last[l + 1] == i)
            step->takes += layers[l + 1].input;
        if (!step->backward)
            stage->recomputed = stage_work_sum(stage->recomputed, stage_layer(stage, l)->work[RECOMPUTE]);
        else if (step->lean)
            stage->recomputed = stage_work_sum(stage->recomputed, stage_layer(stage, l)->lean.core);
    }
}

/* Forwards without their backward, at most: of each chunk, and of all chunks of the rank together. */
static int in_flight(const struct plan *plan, const struct row *row, int rank, int *each)
{
    int *now = xcalloc((size_t)plan->chunks, sizeof *now), all = 0, most = 0;

    for (int c = 0; c < plan_chunks(plan, rank); c++)
        each[c] = 0;
    for (size_t i = 0; i < row->count; i++) {
        struct work work = row->items[i];
        int change = work.kind == FORWARD ? 1 : work.kind == BACKWARD ? -1 : 0;

        now[work.chunk] += change;
        all += change;
        most = all > most ? all : most;
        each[work.chunk] = now[work.chunk] > each[work.chunk] ? now[work.chunk] : each[work.chunk];
    }
    free(now);
    return most;
}

/* B that a rank has for activations: its limit without what it holds all the time, workspace and fragmentation. */
static double budget_of(const struct scenario *scenario, const struct stage *stages, int rank)
{
    const struct plan *plan = &scenario->plan;
    double least = INFINITY, workspace = 0;

    for (int chunk = 0; chunk < plan_chunks(plan, rank); chunk++)
        workspace = fmax(workspace, largest_workspace(&stages[plan_global_stage(plan, rank, chunk)]));
    for (int d = 0; d < scenario_replicas(scenario) && d < 2; d++) {     /* a parameter server is replica 0 */
        struct memory states = memory_states(scenario, stages, d * plan->stages + rank);
        double context = states.bytes[MEMORY_CONTEXT];

        least = fmin(least, (scenario_room(scenario) - context) * (1 - memory_fragmentation(scenario)) -
                            (memory_total(&states) - context));
    }
    return least - workspace;
}

/* The plans of a rank's chunks for so many bytes; -1 where one does not fit. */
static int plan_chunks_for(struct scenario *scenario, struct stage *stages, int rank, double memory, int flying,
                           struct chain_plan *plans)
{
    bool offloads = scenario_offloads(scenario, OFFLOAD_ACTIVATIONS);
    struct chain_limit limit = {
        .memory = memory, .in_flight = flying, .recompute = scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL,
        .host_bandwidth = offloads ? cluster_host_bandwidth(&scenario->cluster) : 0,
    };
    int rc = 0;

    for (int c = 0; !rc && c < plan_chunks(&scenario->plan, rank); c++) {
        const struct stage *stage = &stages[plan_global_stage(&scenario->plan, rank, c)];

        rc = chain_plan(&scenario->arena, chain_of(&scenario->arena, stage), stage->nslices, &limit, &plans[c]);
    }
    return rc;
}

/* The most that the chunks may hold together. */
static double held_together(const struct scenario *scenario, int rank, const struct chain_plan *plans, int flying,
                            const int *each)
{
    double held = 0, most = 0, working = 0, moving = 0;

    for (int c = 0; c < plan_chunks(&scenario->plan, rank); c++) {
        held += plans[c].held * each[c];
        most = fmax(most, plans[c].held);
        working = fmax(working, plans[c].working);
        moving = fmax(moving, plans[c].moving);
    }
    return fmin(held, most * flying) + working + moving;
}

/* Of what is left when a rank holds all but activations; where that is nothing, no plan is looked for. */
static int infeasible(struct scenario *scenario, struct stage *stages, int rank, double memory, int flying,
                      struct chain_plan *plans, struct error *err)
{
    enum { HALVINGS = 10 };
    double low = fmax(memory, 0), high = fmax(2 * low, 1e6);
    bool optimal = scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL;
    struct loc loc = node_loc(scenario->memory.node, optimal ? "recompute" : "offload");
    char have[48], need[48];

    unit_format_short(UNIT_BYTES, fabs(memory), have, sizeof have);
    if (memory < 0)
        return error_add(err, EXIT_INFEASIBLE, loc, "memory: rank %d has %s too little for what it always holds, "
                         "without activations", rank, have);
    while (high < 1e18 && plan_chunks_for(scenario, stages, rank, high, flying, plans))
        low = high, high *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;

        *(plan_chunks_for(scenario, stages, rank, middle, flying, plans) ? &low : &high) = middle;
    }
    return error_add(err, EXIT_INFEASIBLE, loc, "memory: rank %d has %s for the activations in flight (micro-batches: "
                     "%d), beside all else that it holds; the least that a plan was found for is about %s", rank, have,
                     flying, unit_format_short(UNIT_BYTES, high, need, sizeof need));
}

/* All chunks plan for the same bytes a micro-batch; where unlike ones exceed the budget together, for less. */
static int plan_rank_chunks(struct scenario *scenario, struct stage *stages, int rank, const struct row *row,
                            struct chain_plan *plans, struct error *err)
{
    enum { TRIES = 8 };
    double budget = budget_of(scenario, stages, rank), memory = budget;
    int *each = ARENA_ARRAY(&scenario->arena, int, scenario->plan.chunks);
    int flying = in_flight(&scenario->plan, row, rank, each);

    for (int i = 0; i < TRIES && budget >= 0; i++) {
        double together;

        if (plan_chunks_for(scenario, stages, rank, memory, flying, plans))
            return infeasible(scenario, stages, rank, budget, flying, plans, err);
        together = held_together(scenario, rank, plans, flying, each);
        if (together <= budget)
            return 0;
        memory -= together - budget;
    }
    return infeasible(scenario, stages, rank, budget, flying, plans, err);
}

static bool splits(const struct row *row)
{
    for (size_t i = 0; i < row->count; i++)
        if (row->items[i].kind == BACKWARD_WEIGHT)
            return true;
    return false;
}

static void keep_everything(struct scenario *scenario, struct stage *stages, int rank, struct chain_plan *plans)
{
    struct chain_limit limit = {.memory = INFINITY, .in_flight = 1};
    bool full = scenario->memory.recompute.mode == RECOMPUTE_FULL;

    for (int c = 0; c < plan_chunks(&scenario->plan, rank); c++) {
        const struct stage *stage = &stages[plan_global_stage(&scenario->plan, rank, c)];
        struct chain_layer *layers = chain_of(&scenario->arena, stage);

        if (full)
            plans[c] = full_plan(&scenario->arena, layers, stage->nslices,
                                 scenario_offloads(scenario, OFFLOAD_ACTIVATIONS));
        else if (chain_plan(&scenario->arena, layers, stage->nslices, &limit, &plans[c]))
            BUG("nothing fits into infinite memory");
    }
}

/* B in host memory of one GPU of a rank, at most. */
static double host_bytes(const struct scenario *scenario, const struct stage *stages, int rank, const struct row *row)
{
    const struct plan *plan = &scenario->plan;
    int *each = xcalloc((size_t)plan->chunks, sizeof *each);
    double bytes = 0;

    in_flight(plan, row, rank, each);
    for (int c = 0; c < plan_chunks(plan, rank); c++)
        bytes += each[c] * stages[plan_global_stage(plan, rank, c)].plan->chain.offloaded;
    free(each);
    return bytes + memory_offloaded_states(scenario, stages, rank);
}

static int check_host_memory(const struct scenario *scenario, const struct stage *stages, const struct row *rows,
                             struct error *err)
{
    const struct cluster *cluster = &scenario->cluster;
    const struct strategy_spec *spec = &scenario->strategy;
    int gpus = scenario_gpus(scenario), most = 0;
    double *bytes = xcalloc((size_t)gpus + 1, sizeof *bytes);
    char need[48], have[48];

    for (int p = 0; p < spec->pipeline; p++)
        for (int i = 0; i < spec->tensor * scenario_replicas(scenario); i++)
            bytes[cluster_node_of(cluster, scenario_gpu(scenario, i % spec->tensor, i / spec->tensor, p))] +=
                host_bytes(scenario, stages, p, &rows[p]);
    for (int node = 0; node < gpus; node++)
        most = bytes[node] > bytes[most] ? node : most;
    double needed = bytes[most];
    free(bytes);
    if (isnan(cluster->host.memory) || needed <= cluster->host.memory)
        return 0;
    return error_add(err, EXIT_INFEASIBLE, node_loc(scenario->memory.node, "offload"),
                     "memory: offload: the host of node %d needs %s and has %s", most,
                     unit_format_short(UNIT_BYTES, needed, need, sizeof need),
                     unit_format_short(UNIT_BYTES, cluster->host.memory, have, sizeof have));
}

static int plan_rows(struct scenario *scenario, struct stage *stages, const struct row *rows, struct error *err)
{
    const struct plan *plan = &scenario->plan;
    struct chain_plan *plans = ARENA_ARRAY(&scenario->arena, struct chain_plan, plan->chunks);

    for (int rank = 0; rank < plan->stages; rank++) {
        if (splits(&rows[rank]))
            return error_add(err, EXIT_INPUT, scenario->memory.node->loc, "memory: %s splits its backwards, whose "
                             "second halves need what 'recompute: optimal' and 'offload' give back after the first",
                             scenario_strategy(scenario)->name);
        if (plan_sharers(plan, plan_global_stage(plan, rank, 0)) > 1)
            return error_add(err, EXIT_INPUT, scenario->memory.node->loc, "memory: a stage on several ranks has no "
                             "plan of its layers; expected one rank a stage with 'recompute: optimal' or 'offload'");
        if (!scenario_plans_memory(scenario))
            keep_everything(scenario, stages, rank, plans);
        else if (plan_rank_chunks(scenario, stages, rank, &rows[rank], plans, err))
            return -1;
        for (int c = 0; c < plan_chunks(plan, rank); c++) {
            struct stage *stage = &stages[plan_global_stage(plan, rank, c)];
            struct stage_plan *made = ARENA_ARRAY(&scenario->arena, struct stage_plan, 1);

            if (stage->plan && stage->plan->chain.held <= plans[c].held)     /* of the other direction */
                continue;
            stage->recomputed = (struct stage_work){0};
            *made = (struct stage_plan){.chain = plans[c], .count = stage->nslices};
            settle_steps(&scenario->arena, stage, chain_of(&scenario->arena, stage), made);
            stage->plan = made;
        }
    }
    return check_host_memory(scenario, stages, rows, err);
}

int stage_plans_build(struct scenario *scenario, struct stage *stages, struct error *err)
{
    struct row *rows = rows_of(scenario_strategy(scenario), &scenario->plan);
    int rc = plan_rows(scenario, stages, rows, err);

    rows_release(rows, scenario->plan.stages);
    return rc;
}
