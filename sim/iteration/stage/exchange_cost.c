#include "stage/exchange_cost.h"

#include <math.h>

#include "base/base.h"
#include "collective/token_dispatcher.h"
#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "kernels/contention.h"
#include "scenario/scenario.h"

bool same_move(const struct move *a, const struct move *b)
{
    return a->kind == b->kind && a->collective == b->collective && !(a->bytes < b->bytes || a->bytes > b->bytes) &&
           a->channels == b->channels && a->step == b->step;
}

bool stage_exchanges(const struct stage *stage, int exchange)
{
    int all = 0;

    for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
        all += stage->work[kind].exchanges[exchange];
    return all > 0;
}

/* ---- the tensor group ---- */

static struct exchange_cost ring(const struct pricing *pricing, enum group_kind kind, enum collective_op op, double bytes)
{
    return pricing->price(pricing, &(struct move){
        .kind = kind, .collective = collective_usual(op, false), .bytes = bytes,
        .channels = pricing->scenario->parallelism.channels,
    });
}

static struct exchange_cost all_reduce(const struct pricing *pricing, double bytes)
{
    return pricing->price(pricing, &(struct move){
        .kind = GROUP_TENSOR, .collective = scenario_all_reduce(pricing->scenario), .bytes = bytes,
        .channels = pricing->scenario->parallelism.channels,
    });
}

/* A reduce-scatter and an all-gather in an all-reduce's place. */
static struct exchange_cost halves(const struct pricing *pricing, enum group_kind kind, double bytes)
{
    struct exchange_cost gather = ring(pricing, kind, COLLECTIVE_ALL_GATHER, bytes);
    struct exchange_cost both = ring(pricing, kind, COLLECTIVE_REDUCE_SCATTER, bytes);

    both.seconds += gather.seconds;
    both.bytes_sent += gather.bytes_sent;
    return both;
}

/* A product in n pieces while its input is gathered in `gather` s: first the piece of the GPU's own rows, then each
 * piece as its rows arrive around the ring. Copy engines pass the rows on, so products keep all multiprocessors. Returns
 * the seconds in addition to the whole product's. Source, also of the next function: NVIDIA/TransformerEngine,
 * initialize_ub's "ring_exchange" and "pipeline". */
static double gather_in_pieces(double gather, const struct pieces *product, int n)
{
    return fmax(0, product->piece + (n - 1) * fmax(product->piece, gather / (n - 1)) - product->whole);
}

/* A product in pieces whose results are summed in `scatter` s: each piece's sum overlaps with the next piece, from which
 * it takes a share of the multiprocessors; the last sum is exposed. Returns the seconds in addition to the whole
 * product's. */
static double scatter_in_pieces(double scatter, const struct pieces *product, double share)
{
    double one = scatter / SCATTER_PIECES;

    return fmax(0, SCATTER_PIECES * product->piece +
                   (SCATTER_PIECES - 1) * contention_exposed(one, product->piece, share) + one - product->whole);
}

/* s of a column-parallel product's exchange that kernels do not hide: of a gather and a sum, in a group of n. In a backward the
 * sum overlaps with the product for weights, the gather before it with the product for inputs (Korthikanti et al. 2022, section
 * 4.2.2). The backward of the row-parallel product gathers its input too: exposed, or overlapped with pieces of that product. */
static double column_seconds(const struct exchange *exchange, const struct stage_columns *columns, double gather,
                             const struct exchange_cost *both, int n)
{
    double scatter = both->seconds - gather;

    if (exchange->by == HIDDEN_BY_PIECES)
        return gather_in_pieces(gather, &columns->gathering, n) + scatter_in_pieces(scatter, &columns->scattering, both->share);
    return (columns->returning.whole > 0 ? gather_in_pieces(gather, &columns->returning, n) : gather) +
           contention_exposed(gather, columns->input, both->products) +
           contention_exposed(scatter, columns->weight, both->products);
}

/* Under sequence parallelism every all-reduce is a reduce-scatter and an all-gather (Korthikanti et al. 2022, section
 * 4.2.2). */
static struct exchange_cost sum_cost(const struct pricing *pricing, const struct exchange *exchange, const struct hiding *hidings)
{
    bool sequence = pricing->scenario->parallelism.sequence_parallel, column = exchange->by != HIDDEN_BY_NOTHING;
    struct exchange_cost both = sequence ? halves(pricing, GROUP_TENSOR, exchange->bytes) : all_reduce(pricing, exchange->bytes);
    struct exchange_cost gather = {0};

    if (!column)
        return both;
    if (sequence)
        gather = ring(pricing, GROUP_TENSOR, COLLECTIVE_ALL_GATHER, exchange->bytes);
    both.seconds = column_seconds(exchange, &hidings[exchange->hiding].columns[exchange->column], gather.seconds, &both,
                                  scenario_tensor(pricing->scenario, pricing->rank));
    both.share = both.products = 0;
    if (exchange->more > 0) {
        both.bytes_sent += gather.bytes_sent;
        both.vector += gather.vector;
        both.activations = gather.bytes_sent;
    }
    return both;
}

double exchange_gathers_exposed(const struct stage *stage, const struct work_counts *counts, const struct work_times *times,
                                const struct exchange_cost *costs)
{
    double seconds = 0, share = 0;

    for (int i = 0; i < stage->exchanges->count; i++)
        if (stage->exchanges->items[i].by == HIDDEN_BY_WORK && counts->exchanges[i]) {
            seconds += counts->exchanges[i] * costs[i].seconds;
            share = fmax(share, costs[i].share);
        }
    return contention_exposed(seconds, times->seconds - times->starved, share);
}

/* ---- tokens and their experts ---- */

/* Two dispatches, there and back, may be an all-gather and a reduce-scatter: each counts as half of both. One channel is
 * enough for an all-to-all: every GPU sends and receives through a NIC of its own, or through its share of one. */
static struct exchange_cost dispatch_cost(const struct pricing *pricing, const struct exchange *exchange)
{
    const struct scenario *scenario = pricing->scenario;
    enum token_dispatcher dispatcher = (enum token_dispatcher)scenario->parallelism.dispatcher;
    struct exchange_cost cost;
    int multiprocessors;

    if (dispatcher == DISPATCHER_ALLGATHER) {
        cost = halves(pricing, GROUP_EXPERT, exchange->bytes);
        cost.seconds /= 2;
        cost.bytes_sent /= 2;
        return cost;
    }
    cost = pricing->price(pricing, &(struct move){
        .kind = GROUP_EXPERT, .collective = collective_usual(COLLECTIVE_ALL_TO_ALL, false), .bytes = exchange->bytes,
        .channels = 1,
    });
    multiprocessors = dispatcher_multiprocessors(dispatcher, cost.spans);
    if (pricing->sheet && cost.seconds > 0)
        cost.seconds = fmax(cost.seconds, dispatcher_floor(dispatcher, exchange->more, cost.spans));
    if (multiprocessors && pricing->sheet && pricing->sheet->multiprocessors)
        cost.share = fmin(1, 1.0 * multiprocessors / pricing->sheet->multiprocessors);
    return cost;
}

/* ---- the context group ---- */

bool exchange_in_steps(const struct parallelism *spec)
{
    return spec->context > scenario_ulysses(spec) &&
           (spec->context_attention != CONTEXT_ALL_GATHER || spec->context_blocks);
}

/* Keys and values are gathered before the attention, and once more before its backward. After the backward their
 * gradients are reduce-scattered (Grattafiori et al. 2024, The Llama 3 Herd of Models, section 3.3.2). */
static struct exchange_cost gathered_keys(const struct pricing *pricing, const struct exchange *exchange)
{
    double all = pricing->scenario->parallelism.context * exchange->bytes;
    struct exchange_cost forward = ring(pricing, GROUP_CONTEXT, COLLECTIVE_ALL_GATHER, all), backward;

    if (!exchange->returns)
        return forward;
    backward = ring(pricing, GROUP_CONTEXT, COLLECTIVE_REDUCE_SCATTER, all);
    backward.seconds += forward.seconds;
    backward.bytes_sent += forward.bytes_sent;
    backward.vector += forward.vector;
    backward.activations = forward.bytes_sent;
    return backward;
}

/* Every GPU of the ring sends `bytes` to the next one at the same time. The ring is the context group, or one ring of a
 * hybrid one. */
static struct exchange_cost step_cost(const struct pricing *pricing, enum group_kind kind, double bytes)
{
    return pricing->price(pricing, &(struct move){
        .kind = kind, .collective = collective_usual(COLLECTIVE_ALL_GATHER, false),
        .bytes = pricing->scenario->groups.of[kind].size * bytes, .channels = 1, .step = true,
    });
}

static struct exchange_cost pass_cost(const struct pricing *pricing, double bytes)
{
    bool hybrid = pricing->scenario->parallelism.context_attention == CONTEXT_HYBRID;

    return step_cost(pricing, hybrid ? GROUP_RING : GROUP_CONTEXT, bytes);
}

/* Steps of attention block by block, in a context group of n: s that an exchange of keys and values takes, `pass`, of all
 * at once where they are gathered; of their gradients alone, or of both together, `next`; and of a step's kernels. Under the
 * zigzag split all steps attend to equally many keys, so each step takes 1/n of the attention.
 *
 * Ring attention (Liu et al. 2023, section 3): in each of n steps a GPU attends to one block of keys and values, and the block
 * goes on to the next GPU, n - 1 times. In the backward the gradients of a block follow it a step later: the first step passes
 * the block, the last step its gradients, all other steps both (Transformer Engine). Or gradients go apart, after each step, and
 * the last ones after the last step (PyTorch, _templated_ring_attention_backward). */
struct context_steps {
    int n;
    bool gathered;           /* keys and values come once, not at every step */
    bool apart;              /* `next` is of gradients alone */
    bool waits;              /* nothing overlaps */
    double pass, next, kernels;
};

static double step_exposed(const struct context_steps *steps, double exchange, double kernels)
{
    return steps->waits ? exchange : fmax(0, exchange - kernels);
}

static double steps_forward(const struct context_steps *steps)
{
    return (steps->gathered ? 1 : steps->n - 1) * step_exposed(steps, steps->pass, steps->kernels);
}

static double steps_backward(const struct context_steps *steps)
{
    double pass = steps->pass, next = steps->next, kernels = steps->kernels;

    if (steps->gathered)
        return step_exposed(steps, pass, kernels) + (steps->n - 1) * step_exposed(steps, next, kernels) + next;
    if (steps->apart)
        return step_exposed(steps, pass, kernels) + (steps->n - 2) * step_exposed(steps, pass + next, kernels) +
               step_exposed(steps, next, kernels) + next;
    return 2 * step_exposed(steps, pass, kernels) + (steps->n - 2) * step_exposed(steps, next, kernels);
}

/* Of keys and values a GPU passes on its own; in a backward also gradients, in fp32 where they go apart. */
static struct exchange_cost keys_in_steps(const struct pricing *pricing, const struct exchange *exchange,
                                          const struct hiding *hiding)
{
    const struct scenario *scenario = pricing->scenario;
    const struct parallelism *spec = &scenario->parallelism;
    bool gathered = spec->context_attention == CONTEXT_ALL_GATHER, apart = spec->context_blocks;
    double bytes = exchange->bytes, wide = sizeof(float) / dtype_bytes(precision_dtype(&scenario->memory.precision));
    struct exchange_cost cost = gathered ? ring(pricing, GROUP_CONTEXT, COLLECTIVE_ALL_GATHER, spec->context * bytes) :
                                           pass_cost(pricing, bytes);
    struct exchange_cost next = exchange->returns ? pass_cost(pricing, apart ? bytes * wide : 2 * bytes) : cost;
    int n = scenario->groups.of[spec->context_attention == CONTEXT_HYBRID ? GROUP_RING : GROUP_CONTEXT].size;
    struct context_steps steps = {n, gathered, apart, !spec->overlap_context, cost.seconds, next.seconds,
                                  hiding->attention[exchange->returns] / n};

    cost.bytes_sent = (n - 1) * bytes;
    cost.activations = exchange->returns ? cost.bytes_sent : 0;
    cost.seconds = exchange->returns ? steps_backward(&steps) : steps_forward(&steps);
    if (exchange->returns) {
        cost.bytes_sent = apart ? (n - 1) * bytes + next.vector : 2 * (n - 1) * bytes;
        cost.vector = apart ? cost.vector + next.vector : 2 * cost.vector;
    }
    return cost;
}

/* Heads for tokens: an all-to-all each for queries and results, which are as large, and one each for keys and values
 * (Jacobs et al. 2023, DeepSpeed Ulysses, section 3.2). Nothing overlaps with them: attention needs all of its inputs,
 * and the projection all of its results. */
static struct exchange_cost heads_cost(const struct pricing *pricing, const struct exchange *exchange)
{
    const struct collective *each = collective_usual(COLLECTIVE_ALL_TO_ALL, false);
    struct exchange_cost heads = pricing->price(pricing, &(struct move){GROUP_HEADS, each, exchange->bytes / 2, 1, false});
    struct exchange_cost keys = pricing->price(pricing, &(struct move){GROUP_HEADS, each, exchange->more / 2, 1, false});

    heads.seconds = 2 * (heads.seconds + keys.seconds);
    heads.bytes_sent = 2 * (heads.bytes_sent + keys.bytes_sent);
    heads.vector = 2 * (heads.vector + keys.vector);
    return heads;
}

/* ---- all of them ---- */

struct exchange_cost exchange_cost(const struct pricing *pricing, const struct exchange *exchange,
                                   const struct hiding *hidings)
{
    struct exchange_cost cost = {0};

    switch (exchange->what) {
    case SENT_SUM:
        cost = sum_cost(pricing, exchange, hidings);
        break;
    case SENT_INPUT:
    case SENT_QKV:
        cost = ring(pricing, GROUP_TENSOR, COLLECTIVE_ALL_GATHER, exchange->bytes);
        cost.activations = exchange->what == SENT_INPUT ? cost.bytes_sent : 0;
        break;
    case SENT_ROW_SUMS:
        cost = halves(pricing, GROUP_TENSOR, exchange->bytes);
        break;
    case SENT_ROWS:
        cost = dispatch_cost(pricing, exchange);
        break;
    case SENT_KEYS:
        cost = exchange_in_steps(&pricing->scenario->parallelism) ?
               keys_in_steps(pricing, exchange, &hidings[exchange->hiding]) : gathered_keys(pricing, exchange);
        break;
    case SENT_MIXED:
        cost = pricing->price(pricing, &(struct move){
            GROUP_CONTEXT, collective_usual(COLLECTIVE_ALL_TO_ALL, false), exchange->bytes, 1, false});
        break;
    case SENT_STATES:
        cost = ring(pricing, GROUP_CONTEXT, COLLECTIVE_ALL_GATHER, pricing->scenario->parallelism.context * exchange->bytes);
        break;
    case SENT_TAIL:
        cost = step_cost(pricing, GROUP_CONTEXT, exchange->bytes);
        cost.bytes_sent = exchange->bytes;
        break;
    case SENT_HEADS:
        cost = heads_cost(pricing, exchange);
        break;
    case SENT_COUNT:
        BUG("no exchange");
    case SENT_MATRIX:
        cost = pricing->scenario->memory.precision.muon_tensor == MUON_TENSOR_DISTRIBUTED ?
               all_reduce(pricing, exchange->bytes) : ring(pricing, GROUP_TENSOR, COLLECTIVE_ALL_GATHER, exchange->bytes);
        break;
    }
    return cost;
}
