/* The tab-separated files of a run. */
#include "report/result.h"

#include <math.h>
#include <stdlib.h>

#include "base/decimal.h"

/* A cell with a number, and the tabulator before it. */
static void number_cell(double value, FILE *out)
{
    putc('\t', out);
    decimal_write(value, out);
}

static void span_name(const struct op *op, char *buffer, size_t size)
{
    static const char letters[WHAT_COUNT] = {'F', 'B', 'I', 'W', 'R', 'K', 'U', 'A', 'G', 'S', 'P', 'O', 'L', 'H'};

    if (op->mb >= 0)
        snprintf(buffer, size, "%c%d", letters[op->what], op->mb);
    else
        snprintf(buffer, size, "%c", letters[op->what]);
}

/* Pieces of a work, one after another without a pause. */
struct span { uint32_t id; double end, communication; bool overlapped; };
struct spans { struct span *items; size_t count, capacity; };

static bool continues(const struct run *run, const struct span *span, uint32_t id)
{
    const struct op *ops = run->lowered.program.ops.items;

    return ops[id].continues && ops[id].what == ops[span->id].what &&
           run->timeline.start[id] - span->end <= 1e-12 * span->end;
}

/* The pieces of a work that are cut only for what waits for them are one span; where the work waits itself, or pieces
 * of it are computed again, there are several. Operations of no time that only join others are none. */
static struct spans spans_of(const struct run *run)
{
    const struct program *program = &run->lowered.program;
    size_t *last = xcalloc(program->lanes.count + 1, sizeof *last);      /* span of a lane, counted from 1 */
    struct spans spans = {0};

    for (uint32_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        enum lane_kind lane = program->lanes.items[op->lane].kind;
        double end = run->timeline.end[i], seconds = end - run->timeline.start[i];
        const struct op_compute *compute = &op_traits(program, op)->compute;

        if (op->kind == OP_COMPUTE && op->what >= WHAT_SYNC && op->amount == 0)
            continue;
        if (!last[op->lane] || !continues(run, &spans.items[last[op->lane] - 1], i)) {
            *GROW(&spans) = (struct span){.id = i};
            last[op->lane] = spans.count;
        }
        struct span *span = &spans.items[last[op->lane] - 1];
        span->end = end;
        span->overlapped = op->overlapped;
        span->communication += lane == LANE_COMPUTE ? compute->communication : lane == LANE_HOST ? 0 : seconds;
    }
    free(last);
    return spans;
}

/* By rank, then start, then id: the order in which people read spans. */
static int by_rank_and_start(const void *a, const void *b, void *context)
{
    const struct timeline *timeline = context;
    const struct program *program = timeline->program;
    uint32_t x = ((const struct span *)a)->id, y = ((const struct span *)b)->id;
    int rank_x = program->lanes.items[program->ops.items[x].lane].rank;
    int rank_y = program->lanes.items[program->ops.items[y].lane].rank;

    if (rank_x != rank_y)
        return rank_x < rank_y ? -1 : 1;
    if (timeline->start[x] != timeline->start[y])
        return timeline->start[x] < timeline->start[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* How many replicas each row about a rank stands for. */
static int stood_for(const struct run *run)
{
    return scenario_replicas(run->workload->scenario) / run->lowered.replicas;
}

void spans_write(const struct run *run, FILE *out)
{
    const struct program *program = &run->lowered.program;
    struct spans spans = spans_of(run);

    if (spans.count)
        qsort_r(spans.items, spans.count, sizeof *spans.items, by_rank_and_start, (void *)&run->timeline);
    fputs("rank\tstage\tkind\tname\tmb\tt0\tt1\tlane\tcommunication\toverlapped\treplicas\n", out);
    for (size_t i = 0; i < spans.count; i++) {
        const struct span *span = &spans.items[i];
        const struct op *op = &program->ops.items[span->id];
        const struct lane *lane = &program->lanes.items[op->lane];
        char name[16], index[16] = "";

        span_name(op, name, sizeof name);
        if (lane->kind != LANE_COMPUTE)
            snprintf(index, sizeof index, ".%d", lane->index);
        fprintf(out, "%d\t%d\t%s\t%s\t%d", lane->rank, op->stage, op_what_names[op->what], name, op->mb);
        number_cell(run->timeline.start[span->id], out);
        number_cell(span->end, out);
        fprintf(out, "\t%s%s", lane_kind_names[lane->kind], index);
        number_cell(span->communication, out);
        fprintf(out, "\t%d\t%d\n", span->overlapped, stood_for(run));
    }
    free(spans.items);
}

/* From then on the rank holds so many bytes of the kind. */
static void memory_line(const struct run *run, int rank, double at, enum memory_kind kind, double bytes, FILE *out)
{
    fprintf(out, "%d", rank);
    number_cell(at, out);
    fprintf(out, "\t%s", memory_kind_names[kind]);
    number_cell(bytes, out);
    fprintf(out, "\t%d\n", stood_for(run));
}

/* What each rank holds: all kinds at the beginning, then a line whenever one changes. Activations and workspace come
 * and go with operations, all else is there all the time, with the fragmentation of the peak. */
void memory_write(const struct run *run, FILE *out)
{
    static const enum memory_kind kinds[] = {MEMORY_ACTIVATIONS, MEMORY_WORKSPACE};
    const struct program *program = &run->lowered.program;
    struct memory *held = xcalloc((size_t)program->ranks, sizeof *held);
    struct memory_events events = memory_events(&run->timeline);

    fputs("rank\tt\tkind\tbytes\treplicas\n", out);
    for (int r = 0; r < program->ranks; r++) {
        held[r] = run->metrics.ranks[r].memory;
        held[r].bytes[MEMORY_ACTIVATIONS] = held[r].bytes[MEMORY_WORKSPACE] = 0;
        for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++)
            memory_line(run, r, 0, (enum memory_kind)kind, held[r].bytes[kind], out);
    }
    for (int r = 0; r < program->ranks; r++)
        for (size_t i = events.first[r]; i < events.first[r + 1]; i++) {
            const struct memory_event *event = &events.items[i];
            const struct traits *traits = &program->traits.items[event->traits];
            const double changes[] = {event->ends ? -traits->frees : traits->takes,
                                      event->ends ? -traits->workspace : traits->workspace};

            for (size_t k = 0; k < COUNT(kinds); k++)
                if (changes[k] != 0) {
                    held[r].bytes[kinds[k]] += changes[k];
                    memory_line(run, r, event->at, kinds[k], held[r].bytes[kinds[k]], out);
                }
        }
    memory_events_release(&events);
    free(held);
}

/* The payload and the bytes on the wire over every link that carried something, an iteration, and the share of the
 * iteration that its full rate would have needed. Each row is one link. */
void links_write(const struct run *run, FILE *out)
{
    const struct cluster *cluster = &run->workload->scenario->cluster;
    int all = run->metrics.window.all;

    fputs("link\tclass\tpayload_bytes\twire_bytes\tbusy\treplicas\n", out);
    for (int c = 0; c < CARRIER_COUNT; c++)
        for (int i = 0; i < run->links.counts[c]; i++) {
            const struct load *load = &run->links.loads[c][i];
            char name[48];

            if (load->payload == 0)
                continue;
            carrier_name(c, i, name, sizeof name);
            fprintf(out, "%s\t%s", name, link_class_names[carrier_class(cluster, c)]);
            number_cell(load->payload / all, out);
            number_cell(load->wire / all, out);
            number_cell(load->wire / all / carrier_bandwidth(cluster, c, i) / run->metrics.iteration_time, out);
            fputs("\t1\n", out);
        }
}
