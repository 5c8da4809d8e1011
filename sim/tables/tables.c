/* What memory and links held, the list of all tables, and whether those of a folder are of one run. */
#include "tables/tables_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/digest.h"
#include "files/json.h"
#include "files/look.h"

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
            carrier_name(cluster, c, i, name, sizeof name);
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
    {"spans", "spans.tsv", spans_write}, {"groups", "groups.tsv", groups_write},
    {"memory", "memory.tsv", memory_write}, {"utilization", "utilization.tsv", utilization_write},
    {"links", "links.tsv", links_write},
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
    else
        rc = check_metrics(result, (struct loc){.file = path}, err);
    for (size_t i = 0; !rc && i < RUN_TABLES; i++)
        rc = check_table(dir, &run_tables[i], json_object_get(result, "tables_xxh128"), other_build, err) ? -1 : rc;
    json_decref(result);
    return rc ? rc : other_build;
}
