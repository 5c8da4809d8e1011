#include "train/course_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "layout/layout.h"
#include "model/model.h"
#include "run/attempt.h"
#include "run/energy.h"
#include "scenario/scenario.h"

/* Other GPUs are more or fewer replicas, on as many whole nodes as they need. */
static int change_gpus(struct attempt *attempt, const struct scenario *scenario, struct loc loc, int gpus, struct error *err)
{
    int replica = scenario_gpus(scenario) / scenario->parallelism.data;
    int node = cluster_node_gpus(&scenario->cluster, 0);

    bool parts = cluster_given_parts(&scenario->cluster);
    const struct clash clashes[] = {
        {parts, loc, "train: phases: gpus: a cluster that says 'parts' has a number of nodes for each of them; expected phases "
         "without 'gpus'", {0}},
        {!parts && scenario->views, loc, "train: phases: gpus: the pipeline ranks have unequal degrees (strategy.stages), of which "
         "more or fewer replicas are not known; expected phases without 'gpus'", {0}},
    };

    if (clashes_add(err, clashes, COUNT(clashes)))
        return -1;
    if (gpus % replica)
        return error_infeasible(err, ERROR_GPUS, loc, "train: phases: %d GPUs are no multiple of the %d of a replica",
                                gpus, replica);
    attempt_set(attempt, "strategy.data=%d", gpus / replica);
    if (!scenario->cluster.ideal)
        attempt_set(attempt, "cluster.nodes=%d", (gpus + node - 1) / node);
    return 0;
}

/* Adds how the scenario changes for that step. */
static int change_step(struct attempt *attempt, const struct scenario *scenario, struct loc loc, const struct step *step,
                       struct error *err)
{
    int data = step->gpus ? step->gpus / (scenario_gpus(scenario) / scenario->parallelism.data) :
                            layout_data(&scenario->layout, 0);
    int least = scenario->batch.micro * (data ? data : 1), batch = step->batch ? step->batch : scenario->batch.global;

    if (step->gpus && change_gpus(attempt, scenario, loc, step->gpus, err))
        return -1;
    if ((step->batch || step->gpus) && batch % least)
        return error_infeasible(err, ERROR_BATCH, loc,
                                "train: a batch of %d samples is no multiple of micro %d x data %d = "
                                "%d samples",
                                batch, scenario->batch.micro, data, least);
    if (step->batch || step->gpus) {
        attempt_set(attempt, "batch.global=%d", batch);
        if (node_get(scenario->batch.node, "micro_batches"))
            attempt_set(attempt, "batch.micro_batches=%d", batch / least);
    }
    if (step->sequence)
        attempt_set(attempt, "model.sequence=%d", step->sequence);
    return 0;
}

static void note_step(const struct run *run, struct step *step)
{
    const struct scenario *scenario = run->workload->scenario;
    const struct metrics *m = &run->metrics;

    step->batch = scenario->batch.global;
    step->sequence = scenario->model.sequence;
    step->gpus = scenario_gpus(scenario);
    step->nodes = energy_nodes(scenario);
    step->paid = scenario_paid_gpus(scenario);
    step->seconds = m->iteration_time;
    step->samples = m->samples;
    step->tokens = m->tokens_per_s * m->iteration_time;
    step->flop = m->model_flop;
    step->mfu = m->mfu;
    step->expected_error = m->expected_error;
    step->energy_error = m->energy_error;
    step->power = m->power;
    step->idle_power = energy_power(scenario, step->gpus, step->nodes, (struct occupation){0, 0}) + energy_idle_power(scenario);
}

/* The kind of step with such a batch, sequence and GPUs (0: the scenario's), simulated when it is new. -1: an error. */
static int kind_of(struct steps *steps, const struct scenario *scenario, struct loc loc, struct step asked,
                   size_t *kind, struct error *err)
{
    struct attempt attempt = {.of = scenario};
    const struct run *known;
    int rc;

    if (asked.batch == scenario->batch.global && !asked.gpus)
        asked.batch = 0;
    for (size_t i = 0; i < steps->kinds.count; i++) {
        const struct step *other = &steps->kinds.items[i];

        if (other->batch == (asked.batch ? asked.batch : scenario->batch.global) &&
            other->sequence == (asked.sequence ? asked.sequence : scenario->model.sequence) &&
            other->gpus == (asked.gpus ? asked.gpus : scenario_gpus(scenario))) {
            *kind = i;
            return 0;
        }
    }
    known = asked.batch || asked.sequence || asked.gpus ? NULL : steps->run;
    rc = known ? 0 : change_step(&attempt, scenario, loc, &asked, err);
    if (!rc && !known && attempt_run(&attempt, simulate_numbers_of(scenario)))
        rc = (error_copy(&attempt.found, err), -1);
    if (!rc) {
        *kind = steps->kinds.count;
        *GROW(&steps->kinds) = asked;
        note_step(known ? known : &attempt.run, &steps->kinds.items[*kind]);
    }
    attempt_end(&attempt, err);
    return rc;
}

/* How many samples that is; NaN: it is not said. */
static double samples_of(const struct amount *amount, double per_parameter, const struct steps *steps,
                         const struct step *step)
{
    double tokens = isnan(amount->tokens) ? per_parameter * steps->parameters : amount->tokens;

    if (!isnan(amount->samples))
        return amount->samples;
    return isnan(amount->steps) ? tokens * step->samples / step->tokens : amount->steps * step->samples;
}

/* Whole steps for a number of samples. Where this was divided out of tokens, it is whole but for rounding. */
static double whole(struct steps *steps, double samples, double batch)
{
    double count = ceil(samples / batch * (1 - 1e-12));

    steps->over += fmax(0, count * batch - samples);
    return count;
}

static void append(struct steps *steps, size_t kind, double count, int phase, bool ramp)
{
    if (count > 0)
        *GROW(&steps->stretches) = (struct stretch){.step = kind, .steps = count, .phase = phase, .ramp = ramp};
}

static int refuse_amount(const struct node *node, struct error *err)
{
    return error_add(err, EXIT_INPUT, node->loc, "train: the model has no tokens or no count of parameters; expected "
                     "'samples' or 'steps'");
}

enum { MOST_BATCHES = 10000 };

/* Megatron-LM's rule (megatron/core/num_microbatches_calculator.py, RampupBatchsizeNumMicroBatchesCalculator): the
 * batch is `start`, and grows by `step` each time that an equal share of `samples` has been consumed. */
static int add_ramp(struct steps *steps, const struct scenario *scenario, double total, struct error *err)
{
    const struct ramp_spec *ramp = scenario->train->ramp;
    int grown = scenario->batch.global, increments;
    double consumed = 0;
    size_t kind;

    if (ramp->start > grown || (grown - ramp->start) % ramp->step)
        return error_infeasible(err, ERROR_BATCH, ramp->node->loc,
                                "train: batch: from %d samples no steps of %d lead to the "
                                "scenario's %d; Megatron-LM refuses that too",
                                ramp->start, ramp->step, grown);
    increments = (grown - ramp->start) / ramp->step;
    if (increments > MOST_BATCHES)
        return error_infeasible(err, ERROR_BATCH, ramp->node->loc,
                                "train: batch: %d steps lead to the scenario's batch, and each is "
                                "simulated; expected at most %d",
                                increments, MOST_BATCHES);
    for (int i = 0; i < increments && consumed < total; i++) {
        int batch = ramp->start + i * ramp->step;
        double until = fmin(total, (i + 1) * (ramp->samples / increments));
        double count = consumed < until ? ceil((until - consumed) / batch) : 0;

        if (count == 0)
            continue;
        if (kind_of(steps, scenario, ramp->node->loc, (struct step){.batch = batch}, &kind, err))
            return -1;
        append(steps, kind, count, 0, true);
        consumed += count * batch;
    }
    if (consumed < total) {
        if (kind_of(steps, scenario, ramp->node->loc, (struct step){0}, &kind, err))
            return -1;
        append(steps, kind, whole(steps, total - consumed, steps->kinds.items[kind].samples), 0, false);
    } else {
        steps->over += consumed - total;
    }
    return 0;
}

/* The tokens or samples, as the whole is said, that the phases before the last one leave for it. */
static struct amount rest_of(const struct steps *steps, const struct training_spec *spec)
{
    struct amount rest = spec->amount;

    if (!isnan(spec->per_parameter))
        rest.tokens = spec->per_parameter * steps->parameters;
    for (size_t i = 0; i < steps->stretches.count; i++) {
        const struct stretch *stretch = &steps->stretches.items[i];
        const struct step *step = steps_of(steps, stretch);

        rest.tokens -= stretch->steps * step->tokens;
        rest.samples -= stretch->steps * step->samples;
        rest.steps -= stretch->steps;
    }
    return rest;
}

static int add_phase(struct steps *steps, const struct scenario *scenario, int number, struct error *err)
{
    const struct training_spec *spec = scenario->train;
    const struct phase_spec *phase = (const struct phase_spec *)spec->phases.items + number;
    struct step asked = {.batch = phase->batch, .sequence = phase->sequence, .gpus = phase->gpus};
    struct amount amount = phase->amount;
    double samples;
    size_t kind;

    if (kind_of(steps, scenario, phase->node->loc, asked, &kind, err))
        return error_add(err, EXIT_INFEASIBLE, phase->node->loc, "train: phases: phase %d does not run", number);
    if (isnan(amount.tokens) && isnan(amount.samples) && isnan(amount.steps))
        amount = rest_of(steps, spec);
    samples = samples_of(&amount, NAN, steps, &steps->kinds.items[kind]);
    if (isnan(samples))
        return refuse_amount(phase->node, err);
    if (samples <= 0)
        return error_add(err, EXIT_INPUT, phase->node->loc,
                         "train: phases: those before phase %d take all of the training; "
                         "expected a larger whole",
                         number);
    append(steps, kind, whole(steps, samples, steps->kinds.items[kind].samples), number, false);
    return 0;
}

int steps_init(struct steps *steps, const struct scenario *scenario, const struct run *run, struct error *err)
{
    const struct training_spec *spec = scenario->train;
    double samples;
    size_t kind;

    *steps = (struct steps){.run = run, .parameters = model_parameters(&scenario->model)};
    for (size_t i = 0; i < spec->phases.count; i++)
        if (add_phase(steps, scenario, (int)i, err))
            return -1;
    if (spec->phases.count)
        return 0;
    if (kind_of(steps, scenario, spec->node->loc, (struct step){0}, &kind, err))
        return -1;
    samples = spec->target ?
                  spec->target->samples * (1 + steps->kinds.items[kind].samples / spec->target->critical_batch) :
                  samples_of(&spec->amount, spec->per_parameter, steps, &steps->kinds.items[kind]);
    if (isnan(samples))
        return refuse_amount(spec->node, err);
    if (spec->ramp)
        return add_ramp(steps, scenario, samples, err);
    append(steps, kind, whole(steps, samples, steps->kinds.items[kind].samples), 0, false);
    return 0;
}

void steps_release(struct steps *steps)
{
    free(steps->kinds.items);
    free(steps->stretches.items);
    *steps = (struct steps){0};
}

double steps_ramp(const struct steps *steps)
{
    const struct step *last = steps_of(steps, &steps->stretches.items[steps->stretches.count - 1]);
    double seconds = 0;

    for (size_t i = 0; i < steps->stretches.count; i++) {
        const struct stretch *stretch = &steps->stretches.items[i];
        const struct step *step = steps_of(steps, stretch);

        if (stretch->ramp)
            seconds += stretch->steps * (step->seconds - step->samples / last->samples * last->seconds);
    }
    return seconds;
}
