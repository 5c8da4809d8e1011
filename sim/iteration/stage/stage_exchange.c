#include "stage/stage_exchange.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "kernels/contention.h"
#include "kernels/costs.h"
#include "model/model.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

const enum group_kind exchange_groups[EXCHANGE_COUNT] = {      /* all others: GROUP_TENSOR */
    [EXCHANGE_DISPATCH] = GROUP_EXPERT, [EXCHANGE_ATTENTION] = GROUP_CONTEXT,
    [EXCHANGE_ATTENTION_BACKWARD] = GROUP_CONTEXT, [EXCHANGE_HEADS] = GROUP_CONTEXT,
};
const enum peers exchange_peers[EXCHANGE_COUNT] = {            /* all others: PEERS_TENSOR */
    [EXCHANGE_DISPATCH] = PEERS_EXPERT, [EXCHANGE_ATTENTION] = PEERS_CONTEXT,
    [EXCHANGE_ATTENTION_BACKWARD] = PEERS_CONTEXT, [EXCHANGE_HEADS] = PEERS_CONTEXT,
};
_Static_assert(GROUP_TENSOR == 0 && (int)PEERS_TENSOR == 0, "0 is the default of these lists");

bool stage_divides_parameters(const struct scenario *scenario)
{
    return group_members(&scenario->groups.of[exchange_groups[EXCHANGE_DISPATCH]]) > 1;
}

struct by_class layer_trained(const struct scenario *scenario, const struct layer *layer)
{
    double apart = stage_divides_parameters(scenario) ? layer->divided_parameters : 0;

    return (struct by_class){{[PARAMETERS_COMMON] = layer->parameters - apart, [PARAMETERS_APART] = apart}};
}

void work_counts_add(struct work_counts *sum, const struct work_counts *more)
{
    for (int i = 0; i < EXCHANGE_COUNT; i++)
        sum->exchanges[i] += more->exchanges[i];
    for (int h = 0; h < HIDINGS_MAX; h++)
        for (int i = 0; i < EXCHANGE_COUNT; i++)
            sum->hidden[h][i] += more->hidden[h][i];
    sum->hidden_gathers += more->hidden_gathers;
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
}

void work_cost_add(struct work_cost *sum, const struct work_cost *more)
{
    work_counts_add(&sum->counts, &more->counts);
    work_times_add(&sum->times, &more->times);
}

/* Whether GPUs of the context group attend to each other's keys and values, or exchange heads for tokens. */
static bool exchanges_keys(const struct parallelism *spec, const struct layer *layer)
{
    return spec->context > scenario_ulysses(spec) && layer_sends(layer, SENT_KEYS, false).bytes > 0;
}

static bool exchanges_heads(const struct parallelism *spec, const struct layer *layer)
{
    return scenario_ulysses(spec) > 1 && layer_sends(layer, SENT_HEADS, false).bytes > 0;
}

void exchanges_add_core(struct work_counts *counts, const struct parallelism *spec, const struct layer *layer)
{
    counts->exchanges[EXCHANGE_ATTENTION] += exchanges_keys(spec, layer);
    counts->exchanges[EXCHANGE_HEADS] += exchanges_heads(spec, layer);
}

/* The exchange of each thing that is sent, but for keys and heads, which a context group alone exchanges. */
static const enum exchange exchange_of[] = {
    [SENT_SUM] = EXCHANGE_TENSOR, [SENT_INPUT] = EXCHANGE_TENSOR, [SENT_QKV] = EXCHANGE_QKV, [SENT_ROWS] = EXCHANGE_DISPATCH,
    [SENT_ROW_SUMS] = EXCHANGE_ROWS, [SENT_KEYS] = EXCHANGE_ATTENTION, [SENT_HEADS] = EXCHANGE_HEADS,
};
_Static_assert(COUNT(exchange_of) == SENT_COUNT, "an exchange for everything that is sent");

/* How often a layer exchanges in a phase. */
static int times(const struct layer *layer, enum sending what, enum phase phase)
{
    struct sends sends = layer_sends(layer, what, false);

    return phase == PHASE_FORWARD ? sends.forward : phase == PHASE_BACKWARD_INPUT ? sends.backward : 0;
}

void exchanges_add(struct work_cost *work, const struct parallelism *spec, const struct kernel_costs *costs,
                   const struct layer *layer, enum phase phase)
{
    for (enum sending what = 0; what < SENT_KEYS; what++)
        work->counts.exchanges[exchange_of[what]] += times(layer, what, phase);
    if (phase == PHASE_FORWARD)
        exchanges_add_core(&work->counts, spec, layer);
    if (phase == PHASE_BACKWARD_INPUT) {
        work->counts.exchanges[EXCHANGE_ATTENTION_BACKWARD] = exchanges_keys(spec, layer);
        work->counts.exchanges[EXCHANGE_HEADS] = exchanges_heads(spec, layer);
    }
    /* the host launches exchanges too */
    for (int i = 0; costs->launch_blocking && !layer->timed && i < EXCHANGE_COUNT; i++)
        work->times.seconds += work->counts.exchanges[i] * costs->host_launch;
}

/* Under recompute: operators. Under sequence parallelism the inputs of both halves of a block are gathered again, and
 * their sums are kept: two halves of an all-reduce. Else the sums themselves run again, but not the last one where the
 * block's end does not. */
static int operators_sums(const struct parallelism *spec, const struct layer *layer)
{
    int sums = times(layer, SENT_SUM, PHASE_FORWARD);

    return sums == 0 ? 0 : spec->sequence_parallel ? sums / 2 : sums - layer_has_tail(layer);
}

void exchanges_add_recomputed(struct work_cost *work, const struct parallelism *spec, const struct kernel_costs *costs,
                              const struct layer *layer, bool operators)
{
    int sums = operators ? operators_sums(spec, layer) : layer_sends(layer, SENT_SUM, true).forward, pieces = 0, others = 0;

    if (!operators) {
        int dispatches = layer_sends(layer, SENT_ROWS, true).forward, rows = layer_sends(layer, SENT_ROW_SUMS, true).forward;

        others = dispatches + rows;
        pieces = spec->overlap_products && layer_behind(layer, COLUMN_MLP) ? sums : 0;
        work->counts.exchanges[EXCHANGE_PIECES + COLUMN_MLP] += pieces;
        work->counts.exchanges[EXCHANGE_DISPATCH] += dispatches;
        work->counts.exchanges[EXCHANGE_ROWS] += rows;
        if (layer_sends(layer, SENT_KEYS, true).forward)
            exchanges_add_core(&work->counts, spec, layer);
    }
    work->counts.exchanges[EXCHANGE_TENSOR] += sums - pieces;
    if (costs->launch_blocking)
        work->times.seconds += (sums + others) * costs->host_launch;
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

void exchanges_cut(struct work_counts *forward, struct stage_columns *columns, const struct parallelism *spec,
                   const struct kernel_costs *costs, const struct layer *layer)
{
    int n = spec->tensor;

    for (int c = 0; spec->overlap_products && c < COLUMN_COUNT; c++) {
        enum product_id column = layer_column(layer, (enum column_product)c);
        enum product_id behind = layer_behind(layer, (enum column_product)c);

        if (!behind)
            continue;
        forward->exchanges[EXCHANGE_TENSOR]--;
        forward->exchanges[EXCHANGE_PIECES + c]++;
        columns[c].gathering = product_pieces(costs, layer, column, PHASE_FORWARD, n);
        columns[c].scattering =
            product_pieces(costs, layer, behind, PHASE_FORWARD, SCATTER_PIECES);
        columns[c].returning = product_pieces(costs, layer, behind, PHASE_BACKWARD_INPUT, n);
    }
}

void exchanges_overlap(struct work_counts *backward, struct stage_columns *columns, const struct parallelism *spec,
                       const struct kernel_costs *costs, const struct layer *layer)
{
    for (int c = 0; spec->overlap_tensor && c < COLUMN_COUNT; c++) {
        enum product_id column = layer_column(layer, (enum column_product)c);

        if (!column)
            continue;
        backward->exchanges[EXCHANGE_TENSOR]--;
        backward->exchanges[EXCHANGE_OVERLAPPED + c]++;
        for (int phase = PHASE_BACKWARD_INPUT; phase <= PHASE_BACKWARD_WEIGHT; phase++) {
            double *seconds = phase == PHASE_BACKWARD_INPUT ? &columns[c].input : &columns[c].weight;

            *seconds = product_seconds(costs, layer, column, (enum phase)phase);
        }
    }
}

static void add_size(double *bytes, double own)
{
    BUG_IF(*bytes > 0 && own > 0 && (*bytes < own || *bytes > own));
    *bytes = fmax(*bytes, own);
}

void exchange_sizes_add(struct stage *stage, const struct layer *layer)
{
    add_size(&stage->bytes[EXCHANGE_TENSOR], layer->all_reduce_bytes);
    for (enum sending what = SENT_QKV; what < SENT_COUNT; what++)
        add_size(&stage->bytes[exchange_of[what]], layer_sends(layer, what, false).bytes);
    add_size(&stage->bytes[EXCHANGE_ATTENTION_BACKWARD], layer_sends(layer, SENT_KEYS, false).bytes);
    add_size(&stage->delivered, layer_delivered(layer));
}

struct work_counts counts_hidden(struct work_counts counts, int hiding)
{
    memcpy(counts.hidden[hiding], counts.exchanges, sizeof counts.exchanges);
    return counts;
}

/* Whether two layers' times of one kind are equal, or one of them has none: all its `n` times are 0. */
static bool agree(const double *a, const double *b, size_t n)
{
    bool equal = true, none[2] = {true, true};

    for (size_t i = 0; i < n; i++) {
        equal &= !(a[i] < b[i] || a[i] > b[i]);
        none[0] &= !(a[i] > 0);
        none[1] &= !(b[i] > 0);
    }
    return equal || none[0] || none[1];
}

int hiding_add(struct stage_times *times, const struct hiding *own)
{
    enum { COLUMN_TIMES = sizeof(struct stage_columns) / sizeof(double) };
    int h = 0;

    for (bool fits = false; h < times->nhidings; h++) {
        fits = agree(times->hidings[h].attention, own->attention, COUNT(own->attention));
        for (int c = 0; c < COLUMN_COUNT; c++)
            fits &= agree(&times->hidings[h].columns[c].input, &own->columns[c].input, COLUMN_TIMES);
        if (fits)
            break;
    }
    BUG_IF(h == HIDINGS_MAX);
    if (h == times->nhidings)
        times->nhidings++;
    for (size_t i = 0; i < sizeof *own / sizeof(double); i++)
        if (((const double *)own)[i] > 0)
            ((double *)&times->hidings[h])[i] = ((const double *)own)[i];
    return h;
}

static void add_traffic(struct stage_times *times, struct slice_times *slice, enum work_kind kind, struct cost cost)
{
    struct work_times work = {.seconds = cost.seconds};

    work_times_note(&work, &cost);
    work_times_add(&slice->work[kind], &work);
    work_times_add(&times->work[kind], &work);
}

void assembly_add(struct stage_times *times, const struct stage *stages, const struct scenario *scenario,
                  const struct kernel_costs *costs)
{
    const struct parallelism *spec = &scenario->parallelism;

    for (int s = 0; s + 1 < plan_virtual_stages(&scenario->plan); s++) {
        double bytes = 5 * spec->tensor * stages[s].boundary;
        struct cost once = costs_traffic(costs, "assemble", CLASS_COPY, bytes), both;

        if (plan_rank(&scenario->plan, 0, s, 0, NULL) == plan_rank(&scenario->plan, 0, s + 1, 0, NULL))
            continue;
        both = once;
        both.seconds *= 2;
        both.extrapolated *= 2;
        add_traffic(&times[s + 1], &times[s + 1].slices[stages[s + 1].nslices - 1], FORWARD, once);
        add_traffic(&times[s], &times[s].slices[0], BACKWARD, both);
        add_traffic(&times[s], &times[s].slices[0], BACKWARD_INPUT, both);
    }
}

double gather_in_pieces(double gather, const struct pieces *product, int n)
{
    return fmax(0, product->piece + (n - 1) * fmax(product->piece, gather / (n - 1)) - product->whole);
}

double scatter_in_pieces(double scatter, const struct pieces *product, double share)
{
    double one = scatter / SCATTER_PIECES;

    return fmax(0, SCATTER_PIECES * product->piece +
                   (SCATTER_PIECES - 1) * contention_exposed(one, product->piece, share) + one - product->whole);
}

double column_overlapped(const struct column_exchange *exchange, const struct stage_columns *columns)
{
    double returning = columns->returning.whole > 0 ?
                       gather_in_pieces(exchange->gather, &columns->returning, exchange->n) : exchange->gather;

    return returning + contention_exposed(exchange->gather, columns->input, exchange->share) +
           contention_exposed(exchange->scatter, columns->weight, exchange->share);
}

double column_pieces(const struct column_exchange *exchange, const struct stage_columns *columns)
{
    return gather_in_pieces(exchange->gather, &columns->gathering, exchange->n) +
           scatter_in_pieces(exchange->scatter, &columns->scattering, exchange->share);
}

enum group_kind context_ring(const struct parallelism *spec)
{
    return spec->context_attention == CONTEXT_HYBRID ? GROUP_RING : GROUP_CONTEXT;
}

double context_next_bytes(const struct scenario *scenario, double bytes)
{
    double gradients = bytes * sizeof(float) / dtype_bytes(precision_dtype(&scenario->memory.precision));

    return scenario->parallelism.context_blocks ? gradients : 2 * bytes;
}

struct context_steps context_steps_of(const struct scenario *scenario, const struct hiding *hiding)
{
    const struct parallelism *spec = &scenario->parallelism;
    int n = scenario->groups.of[context_ring(spec)].size;

    return (struct context_steps){
        .n = n, .gathered = spec->context_attention == CONTEXT_ALL_GATHER, .apart = spec->context_blocks,
        .waits = !spec->overlap_context, .forward = hiding->attention[0] / n, .backward = hiding->attention[1] / n,
    };
}

static double step_exposed(const struct context_steps *steps, double exchange, double kernels)
{
    return steps->waits ? exchange : fmax(0, exchange - kernels);
}

double steps_forward(const struct context_steps *steps)
{
    return (steps->gathered ? 1 : steps->n - 1) * step_exposed(steps, steps->pass, steps->forward);
}

double steps_backward(const struct context_steps *steps)
{
    double pass = steps->pass, next = steps->next, kernels = steps->backward;

    if (steps->gathered)
        return step_exposed(steps, pass, kernels) + (steps->n - 1) * step_exposed(steps, next, kernels) + next;
    if (steps->apart)
        return step_exposed(steps, pass, kernels) + (steps->n - 2) * step_exposed(steps, pass + next, kernels) +
               step_exposed(steps, next, kernels) + next;
    return 2 * step_exposed(steps, pass, kernels) + (steps->n - 2) * step_exposed(steps, next, kernels);
}

double boundary_whole(const struct scenario *scenario, const struct stage *stages, int stage)
{
    const struct parallelism *spec = &scenario->parallelism;
    int rank = plan_rank(&scenario->plan, 0, stage, 0, NULL);
    bool divided = spec->sequence_parallel || spec->scatter_gather;

    return stages[stage].boundary * (divided ? scenario_tensor(scenario, rank) : 1) * scenario_rank_replicas(scenario, rank);
}

double boundary_arriving(const struct scenario *scenario, const struct stage *stages, int stage, int rank)
{
    const struct rank_view *const *views = scenario->views;

    if (!views || (views[plan_rank(&scenario->plan, 0, stage, 0, NULL)] == views[rank] &&
                   views[plan_rank(&scenario->plan, 0, stage + 1, 0, NULL)] == views[rank]))
        return stages[stage].boundary;
    return boundary_whole(scenario, stages, stage) / (views[rank]->tensor * views[rank]->data);
}
