/* The tab-separated files of a run. */
#include "report/result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cells.h"
#include "files/digest.h"
#include "files/json.h"
#include "files/look.h"

/* "F3", "U": the kind and the micro-batch. */
static void name_cell(struct cells *cells, const struct op *op)
{
    static const char letters[WHAT_COUNT] = {'F', 'B', 'I', 'W', 'R', 'K', 'U', 'A', 'G', 'S', 'P', 'O', 'L', 'H'};
    char name[1 + DECIMAL_SIZE] = {letters[op->what]};

    if (op->mb >= 0)
        decimal_integer(op->mb, name + 1);
    cells_text(cells, name);
}

/* "compute", "send-next.0". */
static void lane_cell(struct cells *cells, const struct lane *lane)
{
    char name[64], *end = stpcpy(name, lane_kind_names[lane->kind]);

    if (lane->kind != LANE_COMPUTE) {
        *end = '.';
        decimal_integer(lane->index, end + 1);
    }
    cells_text(cells, name);
}

/* Pieces of a work, one after another without a pause. */
struct span { uint32_t id; bool overlapped; double start, end, communication; };
struct spans { struct span *items; size_t count, capacity; };

static bool continues(const struct run *run, const struct span *span, uint32_t id)
{
    const struct op *ops = run->lowered.program.ops.items;

    return ops[id].continues && ops[id].what == ops[span->id].what &&
           run->timeline.start[id] - span->end <= ROUNDING * span->end;
}

/* By rank, in the order of ids. The pieces of a work that are cut only for what waits for them are one span; where the
 * work waits itself, or pieces of it are computed again, there are several. Operations of no time that only join others
 * are none. */
static struct spans *spans_of(const struct run *run)
{
    const struct program *program = &run->lowered.program;
    size_t *last = xcalloc(program->lanes.count + 1, sizeof *last);      /* span of a lane, counted from 1 */
    struct spans *spans = xcalloc((size_t)program->ranks, sizeof *spans);

    for (uint32_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct lane *lane = &program->lanes.items[op->lane];
        struct spans *own = &spans[lane->rank];
        double end = run->timeline.end[i], seconds = end - run->timeline.start[i];
        const struct op_compute *compute = &op_traits(program, op)->compute;

        if (op->kind == OP_COMPUTE && op->what >= WHAT_SYNC && op->amount == 0)
            continue;
        if (!last[op->lane] || !continues(run, &own->items[last[op->lane] - 1], i)) {
            *GROW(own) = (struct span){.id = i, .start = run->timeline.start[i]};
            last[op->lane] = own->count;
        }
        struct span *span = &own->items[last[op->lane] - 1];
        span->end = end;
        span->overlapped = op->overlapped;
        span->communication += lane->kind == LANE_COMPUTE ? compute->communication :
                               lane->kind == LANE_HOST ? 0 : seconds;
    }
    free(last);
    return spans;
}

/* By start, then id: the order in which people read the spans of a rank. */
static int by_start(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* How many replicas each row about a rank stands for. */
static int stood_for(const struct run *run)
{
    return scenario_replicas(run->workload->scenario) / run->lowered.alike.replicas;
}

static void span_line(struct cells *cells, const struct run *run, const struct span *span)
{
    const struct program *program = &run->lowered.program;
    const struct op *op = &program->ops.items[span->id];
    const struct lane *lane = &program->lanes.items[op->lane];

    cells_integer(cells, lane->rank);
    cells_integer(cells, op->stage);
    cells_text(cells, op_what_names[op->what]);
    name_cell(cells, op);
    cells_integer(cells, op->mb);
    cells_number(cells, span->start);
    cells_number(cells, span->end);
    lane_cell(cells, lane);
    cells_number(cells, span->communication);
    cells_integer(cells, span->overlapped);
    cells_integer(cells, stood_for(run));
    cells_end_line(cells);
}

void spans_write(const struct run *run, FILE *out)
{
    struct spans *spans = spans_of(run);
    struct cells cells = {.out = out};

    fputs("rank\tstage\tkind\tname\tmb\tt0\tt1\tlane\tcommunication\toverlapped\treplicas\n", out);
    for (int r = 0; r < run->lowered.program.ranks; r++) {
        if (spans[r].count)
            qsort(spans[r].items, spans[r].count, sizeof *spans[r].items, by_start);
        for (size_t i = 0; i < spans[r].count; i++)
            span_line(&cells, run, &spans[r].items[i]);
        free(spans[r].items);
    }
    cells_flush(&cells);
    free(spans);
}

/* From then on the rank holds so many bytes of the kind. */
static void memory_line(struct cells *cells, int rank, double at, enum memory_kind kind, double bytes, int replicas)
{
    cells_integer(cells, rank);
    cells_number(cells, at);
    cells_text(cells, memory_kind_names[kind]);
    cells_number(cells, bytes);
    cells_integer(cells, replicas);
    cells_end_line(cells);
}

/* What each rank holds: all kinds at the beginning, then a line whenever one changes. Activations and workspace come
 * and go with operations, all else is there all the time, with the fragmentation of the peak. */
void memory_write(const struct run *run, FILE *out)
{
    static const enum memory_kind kinds[] = {MEMORY_ACTIVATIONS, MEMORY_WORKSPACE};
    const struct program *program = &run->lowered.program;
    struct memory *held = xcalloc((size_t)program->ranks, sizeof *held);
    struct memory_events events = memory_events(&run->timeline);
    struct cells cells = {.out = out};
    int replicas = stood_for(run);

    fputs("rank\tt\tkind\tbytes\treplicas\n", out);
    for (int r = 0; r < program->ranks; r++) {
        held[r] = run->metrics.ranks[r].memory;
        held[r].bytes[MEMORY_ACTIVATIONS] = held[r].bytes[MEMORY_WORKSPACE] = 0;
        for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++)
            memory_line(&cells, r, 0, (enum memory_kind)kind, held[r].bytes[kind], replicas);
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
                    memory_line(&cells, r, event->at, kinds[k], held[r].bytes[kinds[k]], replicas);
                }
        }
    cells_flush(&cells);
    memory_events_release(&events);
    free(held);
}

/* The payload and the bytes on the wire over every link that carried something, an iteration, and the share of the
 * iteration that its full rate would have needed. Each row is one link. */
void links_write(const struct run *run, FILE *out)
{
    const struct cluster *cluster = &run->workload->scenario->cluster;
    struct cells cells = {.out = out};
    int all = run->metrics.window.all;

    fputs("link\tclass\tpayload_bytes\twire_bytes\tbusy\treplicas\n", out);
    for (int c = 0; c < CARRIER_COUNT; c++)
        for (int i = 0; i < run->links.counts[c]; i++) {
            const struct load *load = &run->links.loads[c][i];
            char name[48];

            if (load->payload == 0)
                continue;
            carrier_name(c, i, name, sizeof name);
            cells_text(&cells, name);
            cells_text(&cells, link_class_names[carrier_class(cluster, c, i)]);
            cells_number(&cells, load->payload / all);
            cells_number(&cells, load->wire / all);
            cells_number(&cells, load->wire / all / carrier_bandwidth(cluster, c, i) / run->metrics.iteration_time);
            cells_integer(&cells, 1);
            cells_end_line(&cells);
        }
    cells_flush(&cells);
}

const struct run_table run_tables[RUN_TABLES] = {
    {"spans", "spans.tsv", spans_write}, {"memory", "memory.tsv", memory_write},
    {"utilization", "utilization.tsv", utilization_write}, {"links", "links.tsv", links_write},
};
/* Refuses a table that has another digest than result.json says, or none, unless another build wrote the result: that
 * may have had other tables. */
static int check_table(const char *dir, const struct run_table *table, const json_t *digests, bool other_build,
                       struct error *err)
{
    const char *digest = json_string_value(json_object_get(digests, table->name));
    char path[4400], hex[DIGEST_HEX];
    struct loc loc = {.file = path};
    struct digest sum;
    struct stat status;
    int fd, rc;

    if (!digest && other_build)
        return 0;
    if (!digest) {
        snprintf(path, sizeof path, "%s/result.json", dir);
        return error_add(err, EXIT_INPUT, loc, "it has no digest of %s under 'tables_xxh128': not the whole of a result; "
                         "repeat 'dtsim run -o'", table->file);
    }
    snprintf(path, sizeof path, "%s/%s", dir, table->file);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_system(err, loc, "cannot open");
    if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode)) {
        close(fd);
        return error_add(err, EXIT_INPUT, loc, "this is no regular file; expected a table of 'dtsim run -o'");
    }
    digest_init(&sum);
    rc = digest_add_file(&sum, fd);
    digest_end(&sum, hex);
    if (rc)
        rc = error_system(err, loc, "cannot read");
    close(fd);
    if (rc || !strcmp(hex, digest))
        return rc;
    return error_add(err, EXIT_INPUT, loc, "the file is not of the run that result.json is of: its digest differs; "
                     "repeat 'dtsim run -o'");
}

int result_check(const char *dir, struct error *err)
{
    char path[4400];
    json_t *result;
    enum look there;
    bool other_build;
    int rc = 0;

    if (access(dir, R_OK))
        return error_system(err, (struct loc){.file = dir}, "cannot open");
    snprintf(path, sizeof path, "%s/result.json", dir);
    if (look_at(path, &there, err))
        return -1;
    if (there == LOOK_NOTHING)
        return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "cannot open: %s; expected the folder that a "
                         "'dtsim run -o' has finished", strerror(ENOENT));
    result = json_of_file(path, "the result of a run", err);
    if (!result)
        return -1;
    other_build = is_other_build(json_string_value(json_object_get(result, "build")));
    if (!json_is_object(result))
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = path}, "expected the result of a run, a JSON object");
    for (size_t i = 0; !rc && i < RUN_TABLES; i++)
        rc = check_table(dir, &run_tables[i], json_object_get(result, "tables_xxh128"), other_build, err) ? -1 : rc;
    json_decref(result);
    return rc ? rc : other_build;
}
