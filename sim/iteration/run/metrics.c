#include "run/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "engine/program.h"
#include "hardware/precision.h"
#include "lower/window.h"
#include "model/model.h"
#include "run/certainty.h"
#include "run/energy.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"
#include "workload/workload.h"

static double later(double a, double b)
{
    return a > b ? a : b;
}

static double earlier(double a, double b)
{
    return a < b ? a : b;
}

/* Adds the bytes that a rank sends in an operation that happens `times` times: to others, or to its host and back. */
static void add_bytes(struct metrics *metrics, const struct scenario *scenario, const struct program *program,
                      const struct op *op, int times, const struct lane *lane)
{
    const struct traits *traits = op_traits(program, op);
    const struct op_compute *compute = &traits->compute;
    struct rank_metrics *rank = &metrics->ranks[lane->rank];
    int all = metrics->window.all, flows = program->flows;

    if (op->kind == OP_TRANSFER) {
        flows = flows == 1 ? 1 : scenario_tensor(scenario, lane->rank % scenario->parallelism.pipeline);
        rank->sent[op_payload(op->what)] += payload_bytes(op->amount, &traits->transfer) / flows / all * times;
    } else if (lane->kind == LANE_TO_HOST || lane->kind == LANE_FROM_HOST || lane->kind == LANE_HOST) {
        rank->offloaded += compute->sent / all * times;
    } else {
        rank->sent[op_payload(op->what)] += (compute->sent - compute->activations) / all * times;
        rank->sent[PAYLOAD_ACTIVATIONS] += compute->activations / all * times;
    }
}

/* Seconds from a rank's first work to the end of its last. */
struct span { double began, ended; };

/* Bytes, spans of ranks, and the means of forwards and of what follows them on the way back, of a micro-batch in one
 * stage. */
static void read_operations(struct metrics *metrics, const struct scenario *scenario, const struct timeline *timeline,
                            bool asynchronous)
{
    const struct program *program = timeline->program;
    struct span *spans = xcalloc((size_t)program->ranks, sizeof *spans);
    double forwards = 0, longest = 0;

    for (int r = 0; r < program->ranks; r++)
        spans[r].began = INFINITY;
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct lane *lane = &program->lanes.items[op->lane];
        double start = timeline->start[i], end = timeline->end[i];
        int times = timeline_times(timeline, i);

        add_bytes(metrics, scenario, program, op, times, lane);
        if (lane->kind != LANE_COMPUTE)
            continue;
        spans[lane->rank].began = earlier(spans[lane->rank].began, start);
        spans[lane->rank].ended = later(spans[lane->rank].ended, end);
        if (op->what == WHAT_UPDATE)
            continue;
        forwards += op->what == WHAT_FORWARD && !op->continues ? times : 0;
        *(op->what == WHAT_FORWARD ? &metrics->forward : &metrics->backward) += times * (end - start);
    }
    for (int r = 0; r < program->ranks; r++)
        longest = later(longest, spans[r].ended - spans[r].began + timeline_repeated(timeline, r));
    metrics->rank_span = asynchronous ? NAN : longest;
    metrics->forward /= forwards;
    metrics->backward /= forwards;
    free(spans);
}

/* What is added up, and by rank what is repeated of it. */
struct adding {
    struct metrics *metrics;
    const struct program *program;
    int stages;                      /* ranks of a replica */
    bool unequal;                    /* ranks have unequal degrees: replicas of one feed several of the next */
    double *ended;                   /* s, by rank: its last operation */
    const struct timeline *timeline;
    struct repeated { double seconds[ACCOUNT_KIND_COUNT], exposed, replica_wait; } *repetition;      /* NULL: nothing is */
};

static void take_step(void *context, const struct account_step *step)
{
    struct adding *adding = context;
    struct rank_metrics *rank = &adding->metrics->ranks[step->rank];
    struct repeated *repetition = adding->repetition ? &adding->repetition[step->rank] : NULL;
    bool replica = account_awaits_replica(step, adding->program, adding->stages, adding->unequal);

    rank->exposed_communication += account_add(step, &adding->metrics->window, rank->seconds);
    rank->replica_wait += replica ? window_part(&adding->metrics->window, step->from, step->since) : 0;
    if (!step->op)
        adding->ended[step->rank] = step->from;
    if (!repetition)
        return;
    struct repeat repeat = timeline_repeat(adding->timeline, step->rank);

    if (step->end <= repeat.from || step->from >= repeat.to)
        return;
    struct window repeated = {.from = repeat.from, .to = repeat.to, .updates = adding->metrics->window.updates};
    repetition->exposed += account_add(step, &repeated, repetition->seconds);
    repetition->replica_wait += replica ? window_part(&repeated, step->from, step->since) : 0;
}

/* A replica that has ended waits for the slower ones until the iteration ends. */
static void add_ends(const struct adding *adding, double makespan)
{
    struct metrics *metrics = adding->metrics;

    for (int first = 0; first < metrics->nranks; first += adding->stages) {
        double last = 0;

        for (int r = first; r < first + adding->stages; r++)
            last = later(last, adding->ended[r]);
        for (int r = first; r < first + adding->stages && last < makespan * (1 - ROUNDING); r++)
            metrics->ranks[r].replica_wait += window_part(&metrics->window, last, makespan);
    }
}

static void add_seconds(struct metrics *metrics, const struct scenario *scenario, const struct timeline *timeline)
{
    int stages = scenario->plan.stages;
    struct adding adding = {
        .metrics = metrics, .program = timeline->program, .stages = stages, .unequal = scenario->views != NULL,
        .ended = xcalloc((size_t)metrics->nranks, sizeof *adding.ended), .timeline = timeline,
    };

    if (timeline->repeats)
        adding.repetition = xcalloc((size_t)metrics->nranks, sizeof *adding.repetition);
    account_walk(timeline, take_step, &adding, timeline->program->progress);
    if (metrics->nranks > stages && !adding.unequal)
        add_ends(&adding, timeline->makespan);
    for (int r = 0; r < metrics->nranks && adding.repetition; r++) {
        int times = timeline_repeat(timeline, r).times;

        metrics->ranks[r].exposed_communication += times * adding.repetition[r].exposed;
        metrics->ranks[r].replica_wait += times * adding.repetition[r].replica_wait;
        for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
            metrics->ranks[r].seconds[kind] += times * adding.repetition[r].seconds[kind];
    }
    free(adding.ended);
    free(adding.repetition);
}

/* s in which a rank computes. */
static double rank_compute(const double *seconds)
{
    double compute = 0;

    for (int what = 0; what <= WHAT_UPDATE; what++)
        compute += seconds[account_of((enum op_what)what)];
    return compute;
}

static void averages(struct metrics *metrics, const struct scenario *scenario)
{
    double gpus = scenario_rank_weights(scenario, metrics->nranks), compute;

    for (int r = 0; r < metrics->nranks; r++) {
        const struct rank_metrics *rank = &metrics->ranks[r];
        double own = scenario_rank_weight(scenario, r), n = gpus / own;

        if (own == 0)
            continue;

        for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
            metrics->seconds[kind] += rank->seconds[kind] / n;
        metrics->exposed_communication += rank->exposed_communication / n;
        metrics->replica_wait += rank->replica_wait / n;
        metrics->offload_bytes_per_gpu += rank->offloaded / n;
        for (int payload = 0; payload < PAYLOAD_COUNT; payload++) {
            metrics->sent[payload] += rank->sent[payload] / n;
            metrics->communication_bytes_per_gpu += rank->sent[payload] / n;
        }
    }
    compute = rank_compute(metrics->seconds);
    metrics->utilization = metrics->iteration_time > 0 ? compute / metrics->iteration_time : 0;
    metrics->span_utilization = metrics->rank_span > 0 ? compute / metrics->rank_span : NAN;
    metrics->bubble_fraction =
        metrics->iteration_time > 0 ? metrics->seconds[ACCOUNT_BUBBLE] / metrics->iteration_time : 0;
    metrics->bubble_overhead = compute > 0 ? metrics->seconds[ACCOUNT_BUBBLE] / compute : 0;
}

/* Samples between two updates. */
static double samples_of(const struct workload *workload)
{
    return (double)workload->scenario->batch.global * workload->plan.batches / rows_updates(workload->rows);
}

/* s that GPUs wait for the samples of an update whose own work takes `time`. */
static double reading(const struct workload *workload, double time)
{
    const struct data_spec *data = workload->scenario->data;
    double all = data ? samples_of(workload) / data->read : 0;

    return data && !data->overlap ? all : fmax(0, all - time);
}

/* Samples, and FLOPs of the whole model, an iteration: what the mathematics needs, and what the GPUs compute.
 * Tensor-parallel GPUs divide the products of a stage, so theirs add up; recomputed work is found in the rows. */
static void count_flop(struct metrics *metrics, const struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;
    const struct plan *plan = &workload->plan;
    const struct row *rows = workload->rows;
    double hardware = 0, most = (double)scenario_most_tensor(scenario) * scenario_replicas(scenario);
    int updates = rows_updates(rows);

    metrics->samples = samples_of(workload);
    metrics->model_flop = metrics->hardware_flop = NAN;
    for (int rank = 0; !model_is_timed(&scenario->model) && rank < plan->stages; rank++) {
        double share = (double)scenario_tensor(scenario, rank) * scenario_rank_replicas(scenario, rank) / most;
        double (*each)[WORK_KIND_COUNT] = xcalloc((size_t)plan->chunks, sizeof *each);

        for (int chunk = 0; chunk < plan_chunks(plan, rank); chunk++)
            for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
                const struct stage *stage = &workload->stages[plan_virtual_stage(plan, rank, chunk)];

                each[chunk][kind] = share * (stage->work[kind].flop + (kind == BACKWARD ? stage->recomputed : 0));
            }
        for (size_t i = 0; i < rows[rank].count; i++)
            hardware += each[rows[rank].items[i].chunk][rows[rank].items[i].kind];
        free(each);
    }
    metrics->given_work = workload_given_work(workload);
    if (model_is_timed(&scenario->model))
        return;
    metrics->bases = account_bases(workload, &metrics->extrapolated);
    metrics->hardware_flop = hardware * scenario_most_tensor(scenario) * scenario_replicas(scenario) / updates;
    metrics->model_flop = model_flop(&scenario->model, scenario->memory.lora, NULL) * metrics->samples;
}

static void rates(struct metrics *metrics, const struct scenario *scenario)
{
    const struct precision_spec *precision = &scenario->memory.precision;
    double t = metrics->iteration_time, gpus = scenario_gpus(scenario), peak = NAN;
    const struct transformer *transformer = scenario->model.transformer;

    if (!model_is_timed(&scenario->model))
        peak = scenario_mean_peak(scenario, precision_products(precision));
    metrics->samples_per_s = t > 0 ? metrics->samples / t : NAN;
    metrics->tokens_per_s = transformer ? metrics->samples_per_s * transformer->sequence : NAN;
    metrics->tokens_per_s_per_gpu = metrics->tokens_per_s / scenario_paid_gpus(scenario);
    metrics->model_flops_per_gpu = t > 0 ? metrics->model_flop / t / gpus : NAN;
    metrics->hardware_flops_per_gpu = t > 0 ? metrics->hardware_flop / t / gpus : NAN;
    metrics->mfu = metrics->model_flops_per_gpu / peak;
    metrics->hfu = metrics->hardware_flops_per_gpu / peak;
}

double metrics_iteration_time(const struct workload *workload, const struct timeline *timeline)
{
    struct window window = window_of(workload->scenario, timeline);
    double time = window_update(&window);

    return time + reading(workload, time);
}

/* Values that are found later, or not at all. */
#define NOTHING_STATED \
    .imbalance = NAN, .jitter = NAN, .iteration_time_p10 = NAN, .iteration_time_p90 = NAN, .lockstep = NAN, .stated_error = NAN, \
    .expected_error = NAN, .expected_longer = NAN, .expected_alike = NAN, .expected_ratio = NAN, .expected_ratio_most = NAN, \
    .anchored = {NAN, NAN, {NAN, NAN, NAN}, NAN, NAN}, .peaks = {{NAN, NAN, false}, {NAN, NAN, false}, {NAN, NAN, false}}, .fits = NAN, \
    .power = NAN, .energy = NAN, .energy_error = NAN

/* The window and the account of its seconds, by rank. In the wait for samples no rank computes. */
static void read_seconds(struct metrics *metrics, const struct workload *workload, const struct timeline *timeline)
{
    const struct scenario *scenario = workload->scenario;

    *metrics = (struct metrics){
        .window = window_of(scenario, timeline),
        .makespan = timeline_length(timeline), .nranks = timeline->program->ranks,
        .rank_span = NAN, NOTHING_STATED,
    };
    metrics->iteration_time = window_update(&metrics->window);
    metrics->ranks = xcalloc((size_t)metrics->nranks, sizeof *metrics->ranks);
    add_seconds(metrics, scenario, timeline);
    metrics->reading = reading(workload, metrics->iteration_time);
    metrics->iteration_time += metrics->reading;
    for (int r = 0; r < metrics->nranks; r++)
        if (scenario_has_rank(scenario, r))
            metrics->ranks[r].seconds[ACCOUNT_BUBBLE] += metrics->reading;
}

/* Whether a GPU leaves less room than another; where nobody knows how much they have, whether it holds more. */
static bool is_fuller(double memory, double room, double other, double other_room)
{
    return room < other_room || room > other_room ? room - memory < other_room - other : memory > other;
}

/* Of the peaks of ranks, which it frees. */
static void read_memory(struct metrics *metrics, const struct workload *workload, struct memory_peak *peaks)
{
    for (int r = 0; r < metrics->nranks; r++) {
        struct rank_metrics *rank = &metrics->ranks[r];

        if (!scenario_has_rank(workload->scenario, r))
            continue;
        rank->memory = peaks[r].memory;
        rank->peak_activation = peaks[r].activations;
        rank->peak_memory = memory_total(&rank->memory);
        double room = scenario_room(workload->scenario, r % workload->scenario->plan.stages);

        if (r > 0 && !is_fuller(rank->peak_memory, room, metrics->peak_memory, metrics->peak_room))
            continue;
        metrics->memory = rank->memory;
        metrics->peak_memory = rank->peak_memory;
        metrics->peak_room = room;
        metrics->peak_reserved = rank->peak_memory - rank->memory.bytes[MEMORY_CONTEXT];
        metrics->peak_allocated = metrics->peak_reserved - rank->memory.bytes[MEMORY_FRAGMENTATION];
        metrics->peak_rank = r;
    }
    free(peaks);
}

/* Where nodes are of several kinds, each GPU's power follows from its own rank's work. */
static void count_energy(struct metrics *m, const struct scenario *scenario)
{
    struct occupation mean = {m->utilization, m->exposed_communication / m->iteration_time};
    struct occupation *ranks = scenario->layout.mixed ? xcalloc((size_t)m->nranks, sizeof *ranks) : NULL;

    for (int r = 0; ranks && r < m->nranks; r++)
        ranks[r] = (struct occupation){rank_compute(m->ranks[r].seconds) / m->iteration_time,
                                       m->ranks[r].exposed_communication / m->iteration_time};
    m->power = ranks ? energy_ranks_power(scenario, ranks, m->nranks) :
               energy_power(scenario, scenario_gpus(scenario), energy_nodes(scenario), mean);
    m->power += energy_idle_power(scenario);
    m->energy = m->power * m->iteration_time * energy_pue(scenario);
    m->energy_error = isnan(m->energy) ? NAN : energy_error(scenario, mean);
    free(ranks);
}

void metrics_init(struct metrics *metrics, const struct workload *workload, const struct timeline *timeline)
{
    const struct scenario *scenario = workload->scenario;

    read_seconds(metrics, workload, timeline);
    read_operations(metrics, scenario, timeline, scenario_schedule(scenario)->asynchronous);
    read_memory(metrics, workload, memory_peaks(scenario, workload->stages, timeline));
    averages(metrics, scenario);
    count_flop(metrics, workload);
    rates(metrics, scenario);
    count_energy(metrics, scenario);
    certainty_state(metrics, scenario);
    certainty_memory(metrics, scenario);
}

void metrics_init_seconds(struct metrics *metrics, const struct workload *workload, const struct timeline *timeline)
{
    read_seconds(metrics, workload, timeline);
    averages(metrics, workload->scenario);
}

void metrics_init_memory(struct metrics *metrics, const struct workload *workload)
{
    *metrics = (struct metrics){.nranks = workload->plan.stages, NOTHING_STATED};
    metrics->ranks = xcalloc((size_t)metrics->nranks, sizeof *metrics->ranks);
    read_memory(metrics, workload, works_peaks(workload));
    certainty_memory(metrics, workload->scenario);
}

void metrics_release(struct metrics *metrics)
{
    free(metrics->ranks);
    memset(metrics, 0, sizeof *metrics);
}
