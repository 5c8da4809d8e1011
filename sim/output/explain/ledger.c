#include "explain/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "model/model.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/layer_cost.h"
#include "stage/stage_exchange.h"
#include "stage/stage_kernels.h"

const char *const ledger_work_names[] = {
    [LEDGER_FORWARD] = "forward", [LEDGER_BACKWARD_INPUT] = "backward_input", [LEDGER_BACKWARD_WEIGHT] = "backward_weight",
    [LEDGER_RECOMPUTE] = "recompute", [LEDGER_UPDATE] = "update", NULL,
};

/* Who hears which kernels are timed. */
struct recording { struct ledger *ledger; enum ledger_work work; };

static bool same_kernel(const struct kernel *a, const struct kernel *b)
{
    return !strcmp(a->name, b->name) && a->kind == b->kind && a->phase == b->phase && a->dtype == b->dtype &&
           a->layout == b->layout && a->class == b->class && a->batch == b->batch && a->m == b->m && a->n == b->n &&
           a->k == b->k && a->flop == b->flop && a->bytes == b->bytes && a->unvectorized == b->unvectorized &&
           a->causal == b->causal && a->window == b->window && a->efficiency == b->efficiency && a->parts == b->parts &&
           a->launches == b->launches;
}

static void record(void *context, const struct kernel *kernel, const struct cost *cost)
{
    struct recording *recording = context;
    struct ledger *ledger = recording->ledger;
    double count = kernel->launches * fmax(1, kernel->parts);
    size_t at = 0;

    if (!strcmp(kernel->name, "average"))        /* with local steps, at another time than the update */
        return;
    while (at < ledger->count && !(ledger->items[at].work == recording->work && ledger->items[at].basis == cost->basis &&
                                   same_kernel(&ledger->items[at].kernel, kernel)))
        at++;
    if (at == ledger->count)
        *GROW(ledger) = (struct ledger_row){.work = recording->work, .kernel = *kernel, .basis = cost->basis};
    ledger->items[at].count += count;
    ledger->items[at].seconds += cost->seconds;
}

/* Hears the kernels of a layer's phase or, of a recomputation, the kernels of its forward that run again. */
static void record_layer(const struct scenario *scenario, const struct kernel_costs *costs, const struct layer *layer,
                         enum ledger_work work)
{
    static const enum phase phases[] = {PHASE_FORWARD, PHASE_BACKWARD_INPUT, PHASE_BACKWARD_WEIGHT, PHASE_FORWARD};
    struct exchange_list list = {0};
    struct work_cost ignored = {0};

    if (work == LEDGER_RECOMPUTE && scenario->memory.recompute.early_stop && layer_has_tail(layer))
        stage_add_needed(&ignored, costs, layer);
    else
        layer_phase(&(struct layer_costs){.scenario = scenario, .kernels = costs, .list = &list}, layer, phases[work]);
}

/* What joins the parts of boundaries is no layer's (assembly_add): it is timed once more, and this stage's time is heard. */
static void record_assembly(const struct scenario *scenario, const struct workload *workload, int s, struct recording *recording)
{
    int stages = plan_virtual_stages(&workload->plan);
    struct arena arena = {0};
    struct stage_times *times;
    static const struct { enum ledger_work work; enum work_kind kind; } parts[] = {
        {LEDGER_FORWARD, FORWARD}, {LEDGER_BACKWARD_INPUT, BACKWARD_INPUT},
    };

    if (!scenario->parallelism.partitioned_outputs || scenario_most_tensor(scenario) == 1 || !workload->stages[s].slices)
        return;
    times = ARENA_ARRAY(&arena, struct stage_times, stages);
    for (int i = 0; i < stages; i++)
        times[i].slices = ARENA_ARRAY(&arena, struct slice_times, workload->stages[i].nslices);
    assembly_add(&arena, times, workload->stages, scenario, scenario_first_costs(scenario));
    for (size_t i = 0; i < COUNT(parts); i++) {
        const struct work_times *work = &times[s].work[parts[i].kind];
        struct kernel kernel = {.name = "assemble", .kind = KERNEL_MEMORY, .class = CLASS_COPY, .dtype = DTYPE_FP32,
                                .launches = 1};
        struct cost cost = {.seconds = work->seconds, .kind = KERNEL_MEMORY};

        for (int basis = 0; basis < BASIS_COUNT; basis++)
            if (work->bases.seconds[KERNEL_MEMORY][basis] > 0)
                cost.basis = (enum cost_basis)basis;
        recording->work = parts[i].work;
        if (work->seconds > 0)
            record(recording, &kernel, &cost);
    }
    arena_release(&arena);
}

/* The stage's time for a work, of which kernels are a part. */
static double whole_of(const struct stage_times *times, enum ledger_work work)
{
    static const enum work_kind kinds[] = {FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, RECOMPUTE};

    return work == LEDGER_UPDATE ? times->update.seconds : times->work[kinds[work]].seconds;
}

static bool recomputes(const struct workload *workload, int s)
{
    return workload->plan.recompute && !workload->stages[s].plan;
}

/* Hears the works of one slice of a micro-batch, and adds their seconds to the waits, which kernels are taken from later. */
static void record_works(struct recording *recording, const struct kernel_costs *recorded, const struct workload *workload, int s,
                         int mb)
{
    struct token_slice own = class_slice(&workload->plan, &workload->classes[0], mb);
    const struct stage *stage = &own.stages[s];

    for (enum ledger_work work = LEDGER_FORWARD; work <= LEDGER_RECOMPUTE; work++) {
        recording->work = work;
        for (size_t i = stage->nslices; i-- > 0;)        /* the first layer is the last one */
            if (stage->slices[i].layer &&
                (work != LEDGER_RECOMPUTE || (recomputes(workload, s) && stage->slices[i].recompute)))
                record_layer(workload->scenario, recorded, stage->slices[i].layer, work);
        if (work != LEDGER_RECOMPUTE || recomputes(workload, s))
            recording->ledger->waits[work] += whole_of(&own.times[s], work);
    }
}

void ledger_init(struct ledger *ledger, const struct workload *workload, int s)
{
    const struct stage *stage = &workload->stages[s];
    const struct stage_times *times = &ordinary_times(workload)[s];
    const struct scenario *scenario = workload->scenario;
    struct kernel_costs recorded = *scenario_first_costs(scenario);
    struct recording recording = {.ledger = ledger};
    const struct kernel_listener listener = {record, &recording};
    struct stage_times ignored = *times;

    *ledger = (struct ledger){.planned = times->recomputed.seconds};
    if (model_is_timed(&scenario->model))
        return;
    recorded.listener = &listener;
    for (int i = 0; i < plan_slices(&workload->plan); i++)
        record_works(&recording, &recorded, workload, s, i);
    record_assembly(scenario, workload, s, &recording);
    recording.work = LEDGER_UPDATE;
    stage_update(scenario, &recorded, stage, &ignored);
    ledger->waits[LEDGER_UPDATE] = whole_of(times, LEDGER_UPDATE);
    for (size_t i = 0; i < ledger->count; i++)
        ledger->waits[ledger->items[i].work] -= ledger->items[i].seconds;
    for (enum ledger_work work = LEDGER_FORWARD; work < LEDGER_WORK_COUNT; work++)
        if (ledger->waits[work] < whole_of(times, work) * 1e-9)      /* sums in another order differ by rounding */
            ledger->waits[work] = 0;
}

void ledger_release(struct ledger *ledger)
{
    free(ledger->items);
    *ledger = (struct ledger){0};
}
