/* The tab-separated files of a run. */
#include "report/result.h"

#include <math.h>
#include <stdlib.h>

/* An index of the operations by rank, then start, then id: the order in which people read spans. */
static int by_rank_and_start(const void *a, const void *b, void *context)
{
    const struct timeline *timeline = context;
    const struct program *program = timeline->program;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int rank_x = program->lanes.items[program->ops.items[x].lane].rank;
    int rank_y = program->lanes.items[program->ops.items[y].lane].rank;

    if (rank_x != rank_y)
        return rank_x < rank_y ? -1 : 1;
    if (timeline->start[x] != timeline->start[y])
        return timeline->start[x] < timeline->start[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void span_name(const struct op *op, char *buffer, size_t size)
{
    static const char letters[WHAT_COUNT] = {'F', 'B', 'I', 'W', 'R', 'K', 'U', 'A', 'G', 'S', 'P', 'O', 'L', 'H'};

    if (op->mb >= 0)
        snprintf(buffer, size, "%c%d", letters[op->what], op->mb);
    else
        snprintf(buffer, size, "%c", letters[op->what]);
}

/* The pieces of a work that DDP cuts are one span. Zero-second operations that only join others are none. */
void spans_write(const struct run *run, FILE *out)
{
    const struct program *program = &run->lowered.program;
    double *end = xcalloc(program->ops.count + 1, sizeof *end);
    uint32_t *first = xcalloc(program->lanes.count + 1, sizeof *first), *order;
    size_t count = 0;

    order = xcalloc(program->ops.count + 1, sizeof *order);
    for (uint32_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        if (!op->continues)
            first[op->lane] = i;
        end[first[op->lane]] = run->timeline.end[i];
        if (!op->continues && !(op->kind == OP_COMPUTE && op->what >= WHAT_SYNC && op->amount == 0))
            order[count++] = i;
    }
    qsort_r(order, count, sizeof *order, by_rank_and_start, (void *)&run->timeline);
    fputs("rank\tstage\tkind\tname\tmb\tt0\tt1\tlane\n", out);
    for (size_t i = 0; i < count; i++) {
        const struct op *op = &program->ops.items[order[i]];
        const struct lane *lane = &program->lanes.items[op->lane];
        char name[16], index[16] = "";

        span_name(op, name, sizeof name);
        if (lane->kind != LANE_COMPUTE)
            snprintf(index, sizeof index, ".%d", lane->index);
        fprintf(out, "%d\t%d\t%s\t%s\t%d\t%.12g\t%.12g\t%s%s\n", lane->rank, op->stage, op_what_names[op->what], name,
                op->mb, run->timeline.start[order[i]], end[order[i]], lane_kind_names[lane->kind], index);
    }
    free(end);
    free(first);
    free(order);
}

static void memory_line(int rank, double at, const struct memory *held, FILE *out)
{
    fprintf(out, "%d\t%.12g\t%.17g", rank, at, memory_total(held));
    for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++)
        fprintf(out, "\t%.12g", held->bytes[kind]);
    putc('\n', out);
}

/* What each rank holds, a line whenever it changes: activations and workspace come and go with operations, all else is
 * there all the time, with the fragmentation of the peak. */
void memory_write(const struct run *run, FILE *out)
{
    const struct program *program = &run->lowered.program;
    struct memory *held = xcalloc((size_t)program->ranks, sizeof *held);
    size_t count;
    struct memory_event *events = memory_events(&run->timeline, &count);

    fputs("rank\tt\tbytes", out);
    for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++)
        fprintf(out, "\t%s", memory_kind_names[kind]);
    putc('\n', out);
    for (int r = 0; r < program->ranks; r++) {
        held[r] = run->metrics.ranks[r].memory;
        held[r].bytes[MEMORY_ACTIVATIONS] = held[r].bytes[MEMORY_WORKSPACE] = 0;
        memory_line(r, 0, &held[r], out);
    }
    for (size_t i = 0; i < count; i++) {
        const struct op *op = &program->ops.items[events[i].op];
        int rank = program->lanes.items[op->lane].rank;

        held[rank].bytes[MEMORY_ACTIVATIONS] += events[i].ends ? -op->frees : op->takes;
        held[rank].bytes[MEMORY_WORKSPACE] += events[i].ends ? -op->workspace : op->workspace;
        memory_line(rank, events[i].at, &held[rank], out);
    }
    free(events);
    free(held);
}

enum { WINDOWS = 200 };
struct bin { double seconds[WHAT_UPDATE + 1], communication; };

/* Spreads [from, to) over the windows of the iteration. */
static void spread(struct bin *bins, double width, double from, double to, int what, double share)
{
    for (int w = (int)(from / width); w < WINDOWS && w * width < to; w++) {
        double lo = fmax(from, w * width), hi = fmin(to, (w + 1) * width), part = hi > lo ? hi - lo : 0;

        bins[w].seconds[what] += part * (1 - share);
        bins[w].communication += part * share;
    }
}

/* What the compute lanes do in each of 200 windows of time, as mean shares of the ranks. */
void utilization_write(const struct run *run, FILE *out)
{
    const struct program *program = &run->lowered.program;
    struct bin *bins = xcalloc(WINDOWS, sizeof *bins);
    double width = run->timeline.makespan / WINDOWS, whole = width * program->ranks;

    for (size_t i = 0; i < program->ops.count && width > 0; i++) {
        const struct op *op = &program->ops.items[i];

        if (program->lanes.items[op->lane].kind == LANE_COMPUTE && op->amount > 0)
            spread(bins, width, run->timeline.start[i], run->timeline.end[i], op->what, op->communication / op->amount);
    }
    fputs("t0\tt1", out);
    for (int what = 0; what <= WHAT_UPDATE; what++)
        fprintf(out, "\t%s", op_what_names[what]);
    fputs("\tcommunication\tidle\n", out);
    for (int w = 0; w < WINDOWS && width > 0; w++) {
        double idle = 1 - bins[w].communication / whole;

        fprintf(out, "%.12g\t%.12g", w * width, (w + 1) * width);
        for (int what = 0; what <= WHAT_UPDATE; what++) {
            fprintf(out, "\t%.6f", bins[w].seconds[what] / whole);
            idle -= bins[w].seconds[what] / whole;
        }
        fprintf(out, "\t%.6f\t%.6f\n", bins[w].communication / whole, idle > 0 ? idle : 0);
    }
    free(bins);
}

static int by_kind_and_index(const void *a, const void *b)
{
    const struct link *x = a, *y = b;

    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : x->index < y->index ? -1 : x->index > y->index;
}

/* Bytes over every link that carried a transfer, and the share of the iteration that its full rate would have
 * needed. */
void links_write(const struct run *run, FILE *out)
{
    const struct program *program = &run->lowered.program;
    const struct cluster *cluster = &run->workload->scenario->cluster;
    struct { struct crossing { struct link link; double bytes; } *items; size_t count, capacity; } list = {0};

    fputs("link\tbytes\tutilization\n", out);
    for (size_t i = 0; i < program->ops.count && !cluster->ideal; i++) {
        const struct op *op = &program->ops.items[i];

        if (op->kind != OP_TRANSFER)
            continue;
        struct route route = cluster_route(cluster, (int)op->src, (int)op->dst);
        for (int k = 0; k < route.count; k++)
            *GROW(&list) = (struct crossing){route.links[k], op->amount};
    }
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, by_kind_and_index);
    for (size_t i = 0, next; i < list.count; i = next) {
        double bytes = 0;
        char name[48];

        for (next = i; next < list.count && !by_kind_and_index(&list.items[i].link, &list.items[next].link); next++)
            bytes += list.items[next].bytes;
        cluster_link_name(list.items[i].link, name, sizeof name);
        fprintf(out, "%s\t%.17g\t%.6f\n", name, bytes,
                bytes / cluster_link_bandwidth(cluster, list.items[i].link.kind) / run->timeline.makespan);
    }
    free(list.items);
}
