#include "stage/stage_exchange.h"
#include "stage/exchange_cost.h"

#include "base/base.h"
#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "kernels/costs.h"
#include "model/model.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

const enum group_kind sending_groups[SENT_COUNT] = {      /* all others: GROUP_TENSOR */
    [SENT_ROWS] = GROUP_EXPERT, [SENT_KEYS] = GROUP_CONTEXT, [SENT_HEADS] = GROUP_CONTEXT, [SENT_MIXED] = GROUP_CONTEXT,
    [SENT_STATES] = GROUP_CONTEXT, [SENT_TAIL] = GROUP_CONTEXT,
};
const enum peers sending_peers[SENT_COUNT] = {            /* all others: PEERS_TENSOR */
    [SENT_ROWS] = PEERS_EXPERT, [SENT_KEYS] = PEERS_CONTEXT, [SENT_HEADS] = PEERS_CONTEXT, [SENT_MIXED] = PEERS_CONTEXT,
    [SENT_STATES] = PEERS_CONTEXT, [SENT_TAIL] = PEERS_CONTEXT,
};
_Static_assert(GROUP_TENSOR == 0 && (int)PEERS_TENSOR == 0, "0 is the default of these lists");

bool stage_divides_parameters(const struct scenario *scenario)
{
    return group_members(&scenario->groups.of[GROUP_EXPERT]) > 1;
}

struct by_class layer_trained(const struct scenario *scenario, const struct layer *layer)
{
    double apart = stage_divides_parameters(scenario) ? layer->divided_parameters : 0;

    return (struct by_class){{[PARAMETERS_COMMON] = layer->parameters - apart, [PARAMETERS_APART] = apart}};
}

void work_counts_add(struct work_counts *sum, const struct work_counts *more)
{
    for (int i = 0; i < EXCHANGES_MAX; i++)
        sum->exchanges[i] += more->exchanges[i];
    sum->flop += more->flop;
}

void work_times_add(struct work_times *sum, const struct work_times *more)
{
    sum->seconds += more->seconds;
    sum->starved += more->starved;
    sum->dispatching.shared += more->dispatching.shared;
    sum->dispatching.before += more->dispatching.before;
    sum->dispatching.others += more->dispatching.others;
    sum->extrapolated += more->extrapolated;
    cost_bases_add(&sum->bases, &more->bases, 1);
}

void work_times_note(struct work_times *times, const struct cost *cost)
{
    times->extrapolated += cost->extrapolated;
    times->bases.seconds[cost->kind][cost->basis] += cost->seconds;
    times->bases.unmeasured += cost->unmeasured;
}

void work_cost_add(struct work_cost *sum, const struct work_cost *more)
{
    work_counts_add(&sum->counts, &more->counts);
    work_times_add(&sum->times, &more->times);
}

static bool same_exchange(const struct exchange *a, const struct exchange *b)
{
    return a->what == b->what && a->returns == b->returns && a->by == b->by && a->column == b->column &&
           a->hiding == b->hiding && !(a->bytes < b->bytes || a->bytes > b->bytes) && !(a->more < b->more || a->more > b->more);
}

static int exchange_find(struct exchange_list *list, struct exchange exchange)
{
    int i = 0;

    while (i < list->count && !same_exchange(&list->items[i], &exchange))
        i++;
    BUG_IF(i == EXCHANGES_MAX);
    if (i == list->count)
        list->items[list->count++] = exchange;
    return i;
}

int exchange_gather(struct exchange_list *list, double bytes)
{
    return exchange_find(list, (struct exchange){.what = SENT_INPUT, .by = HIDDEN_BY_WORK, .bytes = bytes});
}

int exchange_matrix(struct exchange_list *list, double bytes)
{
    return exchange_find(list, (struct exchange){.what = SENT_MATRIX, .bytes = bytes});
}

int exchange_hiding(struct exchange_list *list, const struct layer *layer, bool find)
{
    int i = 0;

    while (i < list->nhidings && list->hiding[i] != layer->operators)        /* layers of one block are copies of it */
        i++;
    if (i == list->nhidings && find)
        return -1;
    BUG_IF(i == HIDINGS_MAX);
    if (i == list->nhidings)
        list->hiding[list->nhidings++] = layer->operators;
    return i;
}

/* What an operator sends; of rows `more` B reach the GPU. A sum of an input's gradients is like a sum of results. */
static int sent(const struct layer_costs *costs, enum sending what, double bytes, double more)
{
    bool rows = what == SENT_ROWS;

    return exchange_find(costs->list, (struct exchange){
        .what = what == SENT_INPUT ? SENT_SUM : what, .bytes = bytes, .more = rows ? more : 0,
        .by = rows ? HIDDEN_BY_OTHERS : HIDDEN_BY_NOTHING,
    });
}

/* Counts keys and values, of a forward or, with their gradients, of a backward. */
static void count_keys(const struct layer_costs *costs, struct work_counts *counts, const struct layer *layer, bool returns)
{
    const struct parallelism *spec = &costs->scenario->parallelism;
    bool steps = exchange_in_steps(spec);

    counts->exchanges[exchange_find(costs->list, (struct exchange){
        .what = SENT_KEYS, .returns = returns, .by = steps && spec->overlap_context ? HIDDEN_BY_STEPS : HIDDEN_BY_NOTHING,
        .hiding = steps ? exchange_hiding(costs->list, layer, false) : 0, .bytes = layer_keys(layer),
    })]++;
}

/* Counts what the context group exchanges for attention: keys and values, or heads for tokens; returns how much it is. */
static int count_core(const struct layer_costs *costs, struct work_counts *counts, const struct layer *layer, bool returns)
{
    const struct parallelism *spec = &costs->scenario->parallelism;
    double bytes = layer_keys(layer), others = layer_sends(layer, SENT_HEADS, false).bytes;
    bool keys = spec->context > scenario_ulysses(spec) && bytes > 0, heads = scenario_ulysses(spec) > 1 && others > 0;

    if (keys)
        count_keys(costs, counts, layer, returns);
    if (heads)
        counts->exchanges[exchange_find(costs->list, (struct exchange){.what = SENT_HEADS, .bytes = others, .more = bytes})]++;
    return keys + heads;
}

void exchanges_add_core(const struct layer_costs *costs, struct work_counts *counts, const struct layer *layer)
{
    count_core(costs, counts, layer, false);
}

/* Where activations have the batch first, the shares of a sequence do not lie one behind the other: a gather's result is put
 * together by a copy, and what is to be scattered is taken apart by one (PyTorch, torch/distributed/_functional_collectives.py:
 * all_gather_tensor and reduce_scatter_tensor, along any dimension but the first). */
static void add_copies(const struct layer_costs *costs, struct work_times *times, int copies, double bytes)
{
    const struct parallelism *spec = &costs->scenario->parallelism;
    struct cost one;

    if (!copies || spec->sequence_first || !spec->sequence_parallel)
        return;
    one = costs_traffic(costs->kernels, "concatenate", CLASS_COPY, 2 * bytes);
    for (int i = 0; i < copies; i++) {
        times->seconds += one.seconds;
        work_times_note(times, &one);
    }
}

/* Counts what the operators send in a phase, of those alone whose forward runs again (`again`); returns how much it is. Under
 * sequence parallelism a sum is a scatter and a gather. */
static int count_sent(const struct layer_costs *costs, struct work_cost *work, const struct layer *layer, enum phase phase,
                      bool again)
{
    int all = 0;

    for (size_t i = 0; i < layer->noperators; i++)
        for (enum sending what = 0; what < SENT_KEYS && (layer->operators[i].again || !again); what++) {
            const struct sends *sends = &layer->operators[i].sends[what];
            int times = phase == PHASE_FORWARD ? sends->forward : phase == PHASE_BACKWARD_INPUT ? sends->backward : 0;

            if (times)
                work->counts.exchanges[sent(costs, what, sends->bytes, layer->operators[i].delivered)] += times;
            if (what == SENT_SUM || what == SENT_INPUT)
                add_copies(costs, &work->times, 2 * times, sends->bytes);
            all += times;
        }
    return all;
}

void exchanges_add(const struct layer_costs *costs, struct work_cost *work, const struct layer *layer, enum phase phase)
{
    int all = count_sent(costs, work, layer, phase, false);

    if (phase != PHASE_BACKWARD_WEIGHT)
        all += count_core(costs, &work->counts, layer, phase == PHASE_BACKWARD_INPUT);
    if (costs->kernels->launch_blocking && !layer->timed)        /* the host launches exchanges too */
        work->times.seconds += all * costs->kernels->host_launch;
    /* A column-parallel product saved its shard of the input only, and its weight gradient needs the whole input
     * (Korthikanti et al. 2022, section 4.2.2): an all-gather overlaps with the backward for the input. */
    for (size_t i = 0; i < layer->noperators && phase == PHASE_BACKWARD_WEIGHT; i++)
        if (costs->scenario->parallelism.sequence_parallel && layer->operators[i].gathers) {
            double bytes = layer->operators[i].sends[SENT_INPUT].bytes;

            work->counts.exchanges[exchange_gather(costs->list, bytes)] += layer->operators[i].gathers;
            add_copies(costs, &work->times, layer->operators[i].gathers, bytes);
        }
}

/* Under recompute: operators. Under sequence parallelism the inputs of both halves of a block are gathered again, and
 * their sums are kept: two halves of an all-reduce. Else the sums themselves run again, but not the last one where the
 * block's end does not. */
static int operators_sums(const struct parallelism *spec, const struct layer *layer)
{
    int sums = layer_sends(layer, SENT_SUM, false).forward;

    return sums == 0 ? 0 : spec->sequence_parallel ? sums / 2 : sums - layer_has_tail(layer);
}

void exchanges_add_recomputed(const struct layer_costs *costs, struct work_cost *work, const struct layer *layer,
                              bool operators)
{
    const struct parallelism *spec = &costs->scenario->parallelism;
    struct sends sums = layer_sends(layer, SENT_SUM, !operators);
    int all = operators ? operators_sums(spec, layer) : 0;

    if (!operators) {
        all = count_sent(costs, work, layer, PHASE_FORWARD, true);
        if (layer_sends(layer, SENT_KEYS, true).forward)
            count_core(costs, &work->counts, layer, false);
        if (spec->overlap_products && sums.forward && layer_behind(layer, COLUMN_MLP)) {
            work->counts.exchanges[sent(costs, SENT_SUM, sums.bytes, 0)] -= sums.forward;
            work->counts.exchanges[exchange_find(costs->list, (struct exchange){
                .what = SENT_SUM, .by = HIDDEN_BY_PIECES, .column = COLUMN_MLP, .hiding = exchange_hiding(costs->list, layer, false),
                .bytes = sums.bytes,
            })] += sums.forward;
        }
    } else if (all) {
        work->counts.exchanges[sent(costs, SENT_SUM, sums.bytes, 0)] += all;
        add_copies(costs, &work->times, 2 * all, sums.bytes);
    }
    if (operators && spec->sequence_parallel && sums.forward % 2) {      /* a block of one half gathers one input */
        work->counts.exchanges[exchange_find(costs->list, (struct exchange){.what = SENT_INPUT, .bytes = sums.bytes})]++;
        add_copies(costs, &work->times, 1, sums.bytes);
        all++;
    }
    if (costs->kernels->launch_blocking)
        work->times.seconds += all * costs->kernels->host_launch;
}

/* Seconds of a layer's product in a phase. */
static double product_seconds(const struct kernel_costs *costs, const struct layer *layer, enum product_id product,
                              enum phase phase)
{
    double seconds = 0;

    for (size_t i = 0; i < layer->nkernels; i++)
        if (layer->kernels[i].phase == phase && layer->kernels[i].product == product)
            seconds += costs_kernel(costs, &layer->kernels[i]).seconds;
    return seconds;
}

/* Seconds of a layer's product in a phase, and of one of n pieces of its rows. */
static struct pieces product_pieces(const struct kernel_costs *costs, const struct layer *layer,
                                    enum product_id product, enum phase phase, int n)
{
    struct pieces pieces = {.whole = product_seconds(costs, layer, product, phase)};

    for (size_t i = 0; i < layer->nkernels; i++) {
        struct kernel piece = layer->kernels[i];
        double columns = dtype_bytes(piece.dtype) * piece.batch * piece.k * piece.n;     /* each piece reads them all */

        if (piece.phase != phase || piece.product != product)
            continue;
        piece.m /= n;
        piece.flop /= n;
        piece.bytes = columns + (piece.bytes - columns) / n;
        pieces.piece += costs_kernel(costs, &piece).seconds;
    }
    return pieces;
}

int exchanges_end(const struct layer_costs *costs, struct work_counts *counts, const struct layer *layer)
{
    const struct parallelism *spec = &costs->scenario->parallelism;

    for (size_t i = 0; i < layer->noperators && scenario_most_tensor(costs->scenario) > 1 && !spec->sequence_parallel; i++)
        if (layer->operators[i].ends && layer->operators[i].sends[SENT_SUM].forward) {
            counts->exchanges[sent(costs, SENT_SUM, layer->operators[i].sends[SENT_SUM].bytes, 0)]--;
            return 1;
        }
    return 0;
}

/* Of the sums of a column-parallel product, or of the row-parallel one behind it, one is hidden in that way; the gather of
 * an input that is hidden with it is `gather` B, or none. */
static void hide(const struct layer_costs *costs, struct work_counts *counts, const struct layer *layer, double bytes,
                 enum hidden_by by, enum column_product column, double gather)
{
    counts->exchanges[sent(costs, SENT_SUM, bytes, 0)]--;
    counts->exchanges[exchange_find(costs->list, (struct exchange){
        .what = SENT_SUM, .by = by, .column = column, .hiding = exchange_hiding(costs->list, layer, false), .bytes = bytes,
        .more = gather,
    })]++;
}

void exchanges_cut(const struct layer_costs *costs, struct layer_cost *cost, const struct layer *layer)
{
    const struct parallelism *spec = &costs->scenario->parallelism;
    int n = scenario_most_tensor(costs->scenario);

    for (enum column_product c = 0; spec->overlap_products && c < COLUMN_COUNT; c++) {
        const struct operator *column = layer_column(layer, c), *behind = layer_behind(layer, c);
        struct stage_columns *columns = &cost->hiding.columns[c];

        if (!behind)
            continue;
        hide(costs, &cost->forward.counts, layer, behind->sends[SENT_SUM].bytes, HIDDEN_BY_PIECES, c, 0);
        columns->gathering = product_pieces(costs->kernels, layer, column->product, PHASE_FORWARD, n);
        columns->scattering = product_pieces(costs->kernels, layer, behind->product, PHASE_FORWARD, SCATTER_PIECES);
        columns->returning = product_pieces(costs->kernels, layer, behind->product, PHASE_BACKWARD_INPUT, n);
    }
}

void exchanges_overlap(const struct layer_costs *costs, struct layer_cost *cost, const struct layer *layer)
{
    struct work_counts *counts = &cost->backward.counts;

    for (enum column_product c = 0; costs->scenario->parallelism.overlap_tensor && c < COLUMN_COUNT; c++) {
        const struct operator *column = layer_column(layer, c);
        double bytes;
        int *gathers;
        bool gathered;

        if (!column)
            continue;
        bytes = column->sends[SENT_INPUT].bytes;
        gathers = &counts->exchanges[exchange_gather(costs->list, bytes)];
        gathered = *gathers > 0;
        *gathers -= gathered;
        hide(costs, counts, layer, bytes, HIDDEN_BY_GRADIENTS, c, gathered ? bytes : 0);
        cost->hiding.columns[c].input = product_seconds(costs->kernels, layer, column->product, PHASE_BACKWARD_INPUT);
        cost->hiding.columns[c].weight = product_seconds(costs->kernels, layer, column->product, PHASE_BACKWARD_WEIGHT);
    }
}

static void add_traffic(struct arena *arena, struct stage_times *times, struct slice_times *slice, enum work_kind kind,
                        struct cost cost)
{
    struct work_times work = {.seconds = cost.seconds}, *own = ARENA_ARRAY(arena, struct work_times, 1);

    work_times_note(&work, &cost);
    *own = slice->work[kind] ? *slice->work[kind] : *own;
    work_times_add(own, &work);
    work_times_add(&times->work[kind], &work);
    slice->work[kind] = own;
}

void assembly_add(struct arena *arena, struct stage_times *times, const struct stage *stages, const struct scenario *scenario,
                  const struct kernel_costs *costs)
{
    for (int s = 0; s + 1 < plan_virtual_stages(&scenario->plan); s++) {
        double bytes = 5 * scenario_most_tensor(scenario) * stages[s].boundary;
        struct cost once = costs_traffic(costs, "assemble", CLASS_COPY, bytes), both;

        if (plan_rank(&scenario->plan, 0, s, 0, NULL) == plan_rank(&scenario->plan, 0, s + 1, 0, NULL))
            continue;
        both = once;
        both.seconds *= 2;
        both.extrapolated *= 2;
        add_traffic(arena, &times[s + 1], &times[s + 1].slices[stages[s + 1].nslices - 1], FORWARD, once);
        add_traffic(arena, &times[s], &times[s].slices[0], BACKWARD, both);
        add_traffic(arena, &times[s], &times[s].slices[0], BACKWARD_INPUT, both);
    }
}

bool boundary_divided(const struct parallelism *spec)
{
    return spec->sequence_parallel || spec->scatter_gather;
}

double boundary_whole(const struct scenario *scenario, const struct stage *stages, int stage)
{
    const struct parallelism *spec = &scenario->parallelism;
    int rank = plan_rank(&scenario->plan, 0, stage, 0, NULL);

    return stages[stage].boundary * (boundary_divided(spec) ? scenario_tensor(scenario, rank) : 1) * scenario_rank_replicas(scenario, rank);
}

double boundary_arriving(const struct scenario *scenario, const struct stage *stages, int stage, int rank)
{
    const struct rank_view *const *views = scenario->views;

    if (!views || (views[plan_rank(&scenario->plan, 0, stage, 0, NULL)] == views[rank] &&
                   views[plan_rank(&scenario->plan, 0, stage + 1, 0, NULL)] == views[rank]))
        return stages[stage].boundary;
    return boundary_whole(scenario, stages, stage) / (views[rank]->tensor * views[rank]->data);
}
