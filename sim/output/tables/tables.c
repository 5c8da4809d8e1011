/* The tables of memory and links, the list of all tables, and the check that the tables of a folder belong to one
 * run. */
#include "tables/tables_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cells.h"
#include "files/digest.h"
#include "run/links.h"
#include "run/metrics.h"
#include "scenario/scenario.h"
#include "stage/memory.h"

/* From `at` on the rank holds that many bytes of the kind. */
static void memory_line(struct cells *cells, int rank, double at, enum memory_kind kind, double bytes, int replicas)
{
    cells_integer(cells, rank);
    cells_number(cells, at);
    cells_text(cells, memory_kind_names[kind]);
    cells_number(cells, bytes);
    cells_integer(cells, replicas);
    cells_end_line(cells);
}

/* The memory of each rank: all kinds at the beginning, then a line whenever one changes. Activations and workspace come
 * and go with operations; all else is there all the time, with the fragmentation of the peak. */
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
        if (!scenario_has_rank(run->workload->scenario, r))
            continue;
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
            carrier_name(cluster, c, i, name, sizeof name);
            cells_text(&cells, name);
            cells_text(&cells, link_class_names[carrier_class(cluster, c, i)]);
            cells_number(&cells, load->payload / all);
            cells_number(&cells, load->wire / all);
            cells_number(&cells, links_busy(&run->links, cluster, c, i, all * run->metrics.iteration_time));
            cells_integer(&cells, 1);
            cells_end_line(&cells);
        }
    cells_flush(&cells);
}

const char *const run_table_names[] = {"spans", "groups", "memory", "utilization", "links", NULL};
void (*const run_tables[RUN_TABLES])(const struct run *, FILE *) = {
    spans_write, groups_write, memory_write, utilization_write, links_write,
};

/* Every metric that is there is a number or null, and every second has a kind. */
static int check_metrics(const json_t *result, struct loc loc, struct error *err)
{
    json_t *breakdown = json_object_get(result, "breakdown_s"), *value;
    const char *key;
    int rc = 0;

    for (size_t i = 0; metric_at(i); i++) {
        value = json_object_get(result, metric_at(i)->name);
        if (value && !json_is_number(value) && !json_is_null(value))
            rc = error_add(err, EXIT_INPUT, loc, "%s: expected a number or null; repeat 'dtsim run -o'", metric_at(i)->name);
    }
    if (breakdown && !json_is_object(breakdown))
        rc = error_add(err, EXIT_INPUT, loc, "breakdown_s: expected an object of numbers; repeat 'dtsim run -o'");
    json_object_foreach(breakdown, key, value)
        if (!json_is_number(value))
            rc = error_add(err, EXIT_INPUT, loc, "breakdown_s.%s: expected a number; repeat 'dtsim run -o'", key);
    return rc;
}

int result_check(const char *dir, struct error *err)
{
    return digests_check(dir, &(struct digests_kind){"run", "run", run_table_names, check_metrics}, err);
}
