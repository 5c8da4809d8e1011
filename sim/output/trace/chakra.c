/* Chakra: the graph of what each rank does, for ASTRA-sim, a file a rank. Dependencies join nodes of one rank; ranks wait
 * for each other by messages (a send and a receive with the same tag) and collectives. A work is an operation, and behind
 * it its communication: a collective, or, in a group that is one rank, a time. */
#include "trace/chakra_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "tables/recorded.h"

enum { MOST_RANKS = 4096, METADATA_VERSION = 1 };

/* Sends by the rank that receives them, and parts of spans, once for all ranks. */
struct plan {
    struct chakra *chakra;
    struct trace_received received;
    struct parts { struct part *items; size_t count, capacity; } parts;  /* by span and time */
};

static bool written(const struct trace *trace, int rank)
{
    return rank < trace->run.written && trace->run.chosen[rank];
}

/* The first part of a span, or the count. */
static size_t find_part(const struct parts *parts, uint32_t span)
{
    size_t low = 0, high = parts->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (parts->items[middle].span < span)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t span_number(const struct trace *trace, const struct recorded_span *span)
{
    return (uint32_t)(span - trace->run.spans.items);
}

static int64_t part_end(const struct recorded_span *span, double part)
{
    return span->start + (int64_t)(part * 1e9 + 0.5);
}

/* The node for which a span of this rank waits: of another span, or of the part of it that is over after `part` s. 0: it
 * is of another rank, which sends nothing. */
static uint32_t awaited_node(const struct plan *plan, const struct recorded_span *other, double part)
{
    const struct chakra *chakra = plan->chakra;
    uint32_t number = span_number(chakra->trace, other);
    int own = chakra->rank % chakra->trace->run.ranks;

    if (other->rank != own)
        return other->peer == own ? chakra->receives[number] : 0;
    for (size_t i = find_part(&plan->parts, number);
         part >= 0 && i < plan->parts.count && plan->parts.items[i].span == number; i++)
        if (plan->parts.items[i].until == part_end(other, part))
            return plan->parts.items[i].node;
    return chakra->nodes[number];
}

/* Lets the next node wait for another one, which stands before it. */
static void wait_for_node(struct chakra *chakra, uint32_t node)
{
    bool known = node == 0 || node >= chakra->next;

    for (size_t i = 0; i < chakra->deps.count && !known; i++)
        known = chakra->deps.items[i] == node;
    if (!known)
        *GROW(&chakra->deps) = node;
}

static void find_deps(const struct plan *plan, const struct recorded_span *span)
{
    struct chakra *chakra = plan->chakra;
    const char *at = recorded_text(&chakra->trace->run, span->after);
    const struct recorded_span *other;
    double part;

    wait_for_node(chakra, chakra->latest[span->lane]);
    while (*at && (other = recorded_awaited(&chakra->trace->run, &at, &part)))
        wait_for_node(chakra, awaited_node(plan, other, part));
}

/* A work in the pieces for which others wait, and its communication. */
static uint32_t put_work(struct plan *plan, const struct recorded_span *span)
{
    struct chakra *chakra = plan->chakra;
    const char *name = recorded_text(&chakra->trace->run, span->name);
    uint32_t number = span_number(chakra->trace, span), node = 0;
    size_t within = chakra->trace->run.lanes.count, next = find_part(&plan->parts, number);
    int64_t end = span->end - span->communication, start = span->start;

    for (size_t i = next; i < plan->parts.count && plan->parts.items[i].span == number; i++) {
        struct part *part = &plan->parts.items[i];

        if (part->until >= end)
            break;
        node = chakra_computes(chakra, name, "", start, part->until, span->lane, false);
        wait_for_node(chakra, node);
        part->node = node;
        start = part->until;
    }
    node = chakra_computes(chakra, name, "", start, end, span->lane, false);
    if (span->communication > 0) {
        wait_for_node(chakra, node);
        node = chakra_exchanges(chakra, span) ? chakra_collective(chakra, span, end, within) :
               chakra_computes(chakra, name, *recorded_op_names[span->op] ? recorded_op_names[span->op] : "slower", end, span->end,
                               within, false);
    }
    for (size_t i = next; i < plan->parts.count && plan->parts.items[i].span == number; i++)
        if (plan->parts.items[i].until >= end)
            plan->parts.items[i].node = node;
    return node;
}

static uint32_t put_span(struct plan *plan, const struct recorded_span *span)
{
    struct chakra *chakra = plan->chakra;
    const struct trace *trace = chakra->trace;
    enum recorded_lane_kind lane = trace->run.lanes.items[span->lane].kind;
    int shift = chakra->rank - chakra->rank % trace->run.ranks;

    if (lane == RECORDED_COMPUTE)
        return put_work(plan, span);
    if (lane == RECORDED_TO_HOST || lane == RECORDED_FROM_HOST)
        return chakra_copies(chakra, span, lane == RECORDED_TO_HOST);
    if (span->peer >= 0 && written(trace, span->peer + shift))
        return chakra_sends(chakra, span, false);
    if (span->peer < 0 && lane == RECORDED_COMMUNICATES && chakra_exchanges(chakra, span))
        return chakra_collective(chakra, span, span->start, span->lane);
    return chakra_computes(chakra, recorded_text(&trace->run, span->name), recorded_op_names[span->op], span->start, span->end,
                           span->lane, lane == RECORDED_HOST);
}

static int by_start(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->span->start != y->span->start)
        return x->span->start < y->span->start ? -1 : 1;
    return x->span->id < y->span->id ? -1 : x->span->id > y->span->id;
}

/* What the rank does, in the order of starts. An operation's number is above those for which it waits. */
static void list_items(const struct plan *plan)
{
    struct chakra *chakra = plan->chakra;
    const struct trace *trace = chakra->trace;
    struct recorded_rows rows = recorded_rows(&trace->run, chakra->rank);
    int own = chakra->rank % trace->run.ranks;

    chakra->items.count = 0;
    for (size_t i = 0; i < rows.count; i++)
        *GROW(&chakra->items) = (struct item){&rows.first[i], false};
    for (size_t i = plan->received.first[own]; i < plan->received.first[own + 1]; i++)
        if (written(trace, plan->received.sends[i]->rank + rows.shift))
            *GROW(&chakra->items) = (struct item){plan->received.sends[i], true};
    array_sort(chakra->items.items, chakra->items.count, sizeof *chakra->items.items, by_start);
}

static void write_rank(const struct trace_file *file, FILE *out)
{
    struct plan *plan = ((const struct chakra_file *)file)->plan;
    struct chakra *chakra = plan->chakra;

    chakra->bytes.out = out;
    chakra->rank = file->rank;
    chakra->next = 1;
    memset(chakra->sums, 0, (chakra->trace->run.lanes.count + 2) * sizeof *chakra->sums);
    memset(chakra->latest, 0, chakra->trace->run.lanes.count * sizeof *chakra->latest);
    message_name(&chakra->node, METADATA_VERSION, "0.0.4");
    message_write(&chakra->node, 0, &chakra->bytes);
    list_items(plan);
    for (size_t i = 0; i < chakra->items.count; i++) {
        const struct recorded_span *span = chakra->items.items[i].span;
        uint32_t number = span_number(chakra->trace, span);

        if (chakra->items.items[i].receives) {
            chakra->receives[number] = chakra_sends(chakra, span, true);
            continue;
        }
        find_deps(plan, span);
        chakra->nodes[number] = chakra->latest[span->lane] = put_span(plan, span);
    }
    bytes_flush(&chakra->bytes);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* {"1": [0, 4], ..., "9 node 0": [0, 1]}: the NPUs of each group, and of each node, which no collective names. ASTRA-sim takes
 * the number before the blank. */
static void write_groups(const struct trace_file *file, FILE *out)
{
    const struct trace *trace = file->trace;
    const struct chakra *chakra = ((const struct chakra_file *)file)->chakra;
    const char *before = "{";
    int *npus = xcalloc((size_t)chakra->npus + 1, sizeof *npus);

    for (size_t i = 0; i < trace->run.groups.count; i++) {
        const struct recorded_group *group = &trace->run.groups.items[i];

        if (group->nranks < 2 || !chakra->whole[i])
            continue;
        for (int k = 0; k < group->nranks; k++)
            npus[k] = chakra->npu[group->ranks[k]];
        array_sort(npus, (size_t)group->nranks, sizeof *npus, by_number);
        fprintf(out, "%s\n  \"%zu\": [", before, i + 1);
        for (int k = 0; k < group->nranks; k++)
            fprintf(out, k ? ", %d" : "%d", npus[k]);
        fputc(']', out);
        before = ",";
    }
    for (int i = 0; i < chakra->npus; i++) {
        if (chakra->node_of[i] < 0)
            continue;
        if (i && chakra->node_of[i - 1] == chakra->node_of[i])
            fprintf(out, ", %d", i);
        else
            fprintf(out, "%s\n  \"%zu node %d\": [%d", i ? "]," : before, trace->run.groups.count + 1 + (size_t)chakra->node_of[i],
                    chakra->node_of[i], i);
        before = "]";
    }
    fputs(*before == '{' ? "{}\n" : *before == ']' ? "]\n}\n" : "\n}\n", out);
    free(npus);
}

/* Groups of which all ranks are written: ASTRA-sim knows no others, and what they exchange is a time. */
static void find_whole(struct chakra *chakra)
{
    const struct trace *trace = chakra->trace;

    chakra->whole = xcalloc(trace->run.groups.count + 1, sizeof *chakra->whole);
    for (size_t i = 0; i < trace->run.groups.count; i++) {
        chakra->whole[i] = true;
        for (int k = 0; k < trace->run.groups.items[i].nranks; k++)
            chakra->whole[i] &= written(trace, trace->run.groups.items[i].ranks[k]);
    }
}

static int by_span(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    if (x->span != y->span)
        return x->span < y->span ? -1 : 1;
    return x->until < y->until ? -1 : x->until > y->until;
}

static void find_parts(struct plan *plan)
{
    const struct trace *trace = plan->chakra->trace;

    for (size_t i = 0; i < trace->run.spans.count; i++) {
        const char *at = recorded_text(&trace->run, trace->run.spans.items[i].after);
        const struct recorded_span *other;
        double part;

        while (*at && (other = recorded_awaited(&trace->run, &at, &part)))
            if (part >= 0 && other->rank == trace->run.spans.items[i].rank)
                *GROW(&plan->parts) = (struct part){span_number(trace, other), 0, part_end(other, part)};
    }
    array_sort(plan->parts.items, plan->parts.count, sizeof *plan->parts.items, by_span);
    size_t kept = 0;

    for (size_t i = 0; i < plan->parts.count; i++)
        if (!i || by_span(&plan->parts.items[kept - 1], &plan->parts.items[i]))
            plan->parts.items[kept++] = plan->parts.items[i];
    plan->parts.count = kept;
}

/* Refuses what Chakra's readers cannot say. */
static int check_spans(const struct trace *trace, struct error *err)
{
    struct loc loc = {.file = trace->run.spans_file.loc.file};

    if (trace->run.written > MOST_RANKS && !trace->request->ranks)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "a Chakra trace has a file for each of %d ranks; expected --ranks "
                         "LIST where there are more than %d", trace->run.written, MOST_RANKS);
    for (size_t i = 0; i < trace->run.spans.count; i++) {
        const struct recorded_span *span = &trace->run.spans.items[i];

        if (span->op == RECORDED_REDUCE && span->peer < 0 && span->bytes > 0)
            return error_add(err, EXIT_INPUT, loc, "span %u is a reduce, which readers of Chakra do not have; expected "
                             "all_reduce, reduce_scatter, all_gather, broadcast, all_to_all or send. With "
                             "'simulation.collectives: messages' the run has its sends", span->id);
        if (span->peer >= trace->run.ranks)
            return error_add(err, EXIT_INPUT, loc, "span %u sends to rank %d, of which there are no spans; expected a rank "
                             "up to %d", span->id, span->peer, trace->run.ranks - 1);
    }
    return 0;
}

static int write_files(struct plan *plan, FILE *log, struct error *err)
{
    const struct trace *trace = plan->chakra->trace;
    struct chakra_file groups = {{trace, -1, write_groups, "groups"}, plan->chakra, plan};

    for (int rank = 0; (rank = recorded_next_rank(&trace->run, rank)) >= 0; rank++) {
        struct chakra_file file = {{trace, rank, write_rank, NULL}, plan->chakra, plan};
        char name[40];

        snprintf(name, sizeof name, "dtsim.%d.et", plan->chakra->npu[rank]);
        if (trace_put(name, &file.file, false, log, err))
            return -1;
    }
    return trace_put("dtsim.json", &groups.file, false, log, err) || chakra_write_machine(plan->chakra, log, err) ? -1 : 0;
}

int chakra_write(struct trace *trace, FILE *log, struct error *err)
{
    struct chakra chakra = {.trace = trace};
    struct plan plan = {.chakra = &chakra};
    int rc;

    if (check_spans(trace, err))
        return -1;
    chakra.sums = xcalloc(trace->run.lanes.count + 2, sizeof *chakra.sums);
    chakra.latest = xcalloc(trace->run.lanes.count, sizeof *chakra.latest);
    chakra.nodes = xcalloc(trace->run.spans.count, sizeof *chakra.nodes);
    chakra.receives = xcalloc(trace->run.spans.count, sizeof *chakra.receives);
    chakra_place(&chakra);
    find_whole(&chakra);
    find_parts(&plan);
    plan.received = trace_received(&trace->run);
    rc = write_files(&plan, log, err);
    if (!rc && chakra.shorter)
        fprintf(log, "%zu nodes are shorter than 0.5 us: their durations are whole us, and what is left goes to the next "
                "node of the lane\n", chakra.shorter);
    free(chakra.sums);
    free(chakra.latest);
    free(chakra.nodes);
    free(chakra.receives);
    free(chakra.npu);
    free(chakra.node_of);
    free(chakra.whole);
    free(chakra.deps.items);
    free(chakra.items.items);
    free(chakra.node.items);
    free(chakra.inner.items);
    free(plan.received.sends);
    free(plan.received.first);
    free(plan.parts.items);
    return rc;
}
