#include "evidence/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache.h"
#include "files/data.h"
#include "files/tsv.h"

const char *const evidence_columns[] = {
    "table", "software", "costs", "format", "gpus", "exposed_percent", "measured_percent", "nic_mbits",
    "error_permille", NULL,
};
enum { TABLE, SOFTWARE, COSTS, FORMAT, GPUS, EXPOSED, MEASURED, NIC, ERROR };

/* Of nic_mbits; a NIC of 40 Tb/s is the fastest. */
static const double MBIT = 1e6 / 8;
enum { MOST_MBITS = 40000000 };

/* What a difference leaves of the weight. Tables that differ in all of this still say something. */
#define OTHER_SOFTWARE (1 / 20.0)
#define OTHER_COSTS (1 / 10.0)
#define OTHER_FORMAT (1 / 3.0)
#define HALF_DOUBLINGS 4.0  /* so many doublings of the number of GPUs halve it, */
#define HALF_EXPOSED 0.2    /* such a difference of the shares of exposed communication, */
#define HALF_MEASURED 1.0   /* or of the shares of measured kernels */

/* Quantiles of the errors. They are higher than the shares of predictions that are to be within, as a table that is not
 * here is further off than rows of these are: tests/property/published_errors.c leaves out each in turn. */
#define QUANTILE_WITHIN 0.7
#define QUANTILE_TWICE 0.95

static double kind_weight(const struct likeness *a, const struct likeness *b)
{
    return (strcmp(a->software, b->software) ? OTHER_SOFTWARE : 1) * (strcmp(a->costs, b->costs) ? OTHER_COSTS : 1) *
           (strcmp(a->format, b->format) ? OTHER_FORMAT : 1);
}

static double size_weight(const struct evidence_row *row, const struct likeness *of, double doublings)
{
    return 1 / ((1 + fabs(row->doublings - doublings) / HALF_DOUBLINGS) *
                (1 + fabs(row->exposed - of->exposed) / HALF_EXPOSED) *
                (1 + fabs(row->measured - of->measured) / HALF_MEASURED));
}

void evidence_print(FILE *out, const char *table, const struct likeness *likeness, double error)
{
    fprintf(out, "%s\t%s\t%s\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%d", table, likeness->software, likeness->costs,
            likeness->format, likeness->gpus, 100 * likeness->exposed, 100 * likeness->measured,
            likeness->nic / MBIT, (int)round(1000 * error));
}

/* The index of the kind with this row's names. The search begins with the last one: rows of a table stand together. */
static size_t find_kind(const struct tsv *tsv, struct evidence *evidence)
{
    const char *software = tsv_text(tsv, SOFTWARE), *costs = tsv_text(tsv, COSTS), *format = tsv_text(tsv, FORMAT);
    struct likeness *kind;

    for (size_t i = evidence->kinds.count; i > 0; i--) {
        kind = &evidence->kinds.items[i - 1];
        if (!strcmp(kind->software, software) && !strcmp(kind->costs, costs) && !strcmp(kind->format, format))
            return i - 1;
    }
    kind = GROW(&evidence->kinds);
    snprintf(kind->software, sizeof kind->software, "%s", software);
    snprintf(kind->costs, sizeof kind->costs, "%s", costs);
    snprintf(kind->format, sizeof kind->format, "%s", format);
    return evidence->kinds.count - 1;
}

static int read_row(const struct tsv *tsv, struct arena *arena, struct evidence *evidence, struct error *err)
{
    const struct evidence_row *last = evidence->rows.count ? &evidence->rows.items[evidence->rows.count - 1] : NULL;
    struct evidence_row row = {.kind = find_kind(tsv, evidence)};
    int gpus, exposed, measured, mbits, error;

    if (tsv_integer(tsv, GPUS, 1, 1 << 30, &gpus, err) || tsv_integer(tsv, EXPOSED, 0, 100, &exposed, err) ||
        tsv_integer(tsv, MEASURED, 0, 100, &measured, err) ||
        tsv_integer(tsv, NIC, 0, MOST_MBITS, &mbits, err) || tsv_integer(tsv, ERROR, -1000, 1 << 30, &error, err))
        return -1;
    row.table = tsv_text(tsv, TABLE);
    row.table = last && !strcmp(last->table, row.table) ? last->table : arena_strdup(arena, row.table);
    row.doublings = log2(gpus);
    row.exposed = exposed / 100.0;
    row.measured = measured / 100.0;
    row.error = error / 1000.0;
    *GROW(&evidence->rows) = row;
    if (mbits > 0 && (evidence->slowest_nic == 0 || mbits * MBIT < evidence->slowest_nic))
        evidence->slowest_nic = mbits * MBIT;
    evidence->fastest_nic = fmax(evidence->fastest_nic, mbits * MBIT);
    return 0;
}

static void weigh_tables(struct evidence *evidence)
{
    struct evidence_row *rows = evidence->rows.items;

    for (size_t i = 0, next; i < evidence->rows.count; i = next) {
        for (next = i; next < evidence->rows.count && !strcmp(rows[next].table, rows[i].table); next++)
            ;
        for (size_t j = i; j < next; j++)
            rows[j].weight = 1.0 / (double)(next - i);
    }
}

static int by_size(const void *a, const void *b)
{
    const struct evidence_row *x = a, *y = b;

    return (fabs(x->error) > fabs(y->error)) - (fabs(x->error) < fabs(y->error));
}

/* Moves a list from the heap into the arena. */
static void *settle(struct arena *arena, void *items, size_t bytes)
{
    void *settled = bytes ? memcpy(arena_alloc(arena, bytes), items, bytes) : NULL;

    free(items);
    return settled;
}

int evidence_read(struct arena *arena, const char *path, struct evidence *evidence, struct error *err)
{
    struct tsv tsv = {0};
    int before = err->count, rc;

    *evidence = (struct evidence){0};
    rc = tsv_open(&tsv, path, evidence_columns, err);
    while (!rc && tsv_next(&tsv, err))
        rc = read_row(&tsv, arena, evidence, err);
    tsv_release(&tsv);
    weigh_tables(evidence);
    if (evidence->rows.count)
        qsort(evidence->rows.items, evidence->rows.count, sizeof *evidence->rows.items, by_size);
    evidence->rows.items = settle(arena, evidence->rows.items, evidence->rows.count * sizeof *evidence->rows.items);
    evidence->kinds.items = settle(arena, evidence->kinds.items,
                                   evidence->kinds.count * sizeof *evidence->kinds.items);
    return rc || err->count > before ? -1 : 0;
}

int evidence_load(struct arena *arena, const struct evidence **evidence, struct error *err)
{
    static const char key[] = "errors.tsv";
    const struct evidence *known = arena->cache ? cache_find(arena->cache, CACHE_EVIDENCE, key, sizeof key) : NULL;
    struct arena own = {0};
    const char *path = NULL;
    struct evidence *read;

    *evidence = known;
    if (!known && data_path(arena, "scenarios/paper", key, &path, err))
        return -1;
    if (!path)
        return 0;
    *evidence = read = ARENA_ARRAY(&own, struct evidence, 1);
    if (evidence_read(&own, path, read, err)) {
        arena_join(arena, &own);
        return -1;
    }
    if (!arena->cache || !cache_put(arena->cache, CACHE_EVIDENCE, key, sizeof key, read, &own))
        arena_join(arena, &own);
    return 0;
}

struct expectation evidence_expect(const struct evidence *evidence, const struct likeness *likeness,
                                   const char *without)
{
    size_t rows = evidence ? evidence->rows.count : 0, kinds = evidence ? evidence->kinds.count : 0;
    double *weights = xcalloc(rows + kinds, sizeof *weights), *of_kind = weights + rows;
    double all = 0, sum = 0, longer = 0, within = NAN, twice = NAN, doublings = log2(likeness->gpus);

    for (size_t i = 0; i < kinds; i++)
        of_kind[i] = kind_weight(likeness, &evidence->kinds.items[i]);
    for (size_t i = 0; i < rows; i++) {
        const struct evidence_row *row = &evidence->rows.items[i];

        if (!without || strcmp(row->table, without))
            weights[i] = row->weight * of_kind[row->kind] * size_weight(row, likeness, doublings);
        all += weights[i];
        longer += row->error < 0 ? weights[i] : 0;
    }
    for (size_t i = 0; i < rows && all > 0 && isnan(twice); i++) {
        sum += weights[i];
        within = isnan(within) && sum >= QUANTILE_WITHIN * all ? fabs(evidence->rows.items[i].error) : within;
        twice = sum >= QUANTILE_TWICE * all ? fabs(evidence->rows.items[i].error) / 2 : twice;
    }
    free(weights);
    return (struct expectation){fmax(within, twice), all > 0 ? longer / all : NAN};
}
