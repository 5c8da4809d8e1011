#include "evidence/evidence_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache.h"
#include "files/data.h"
#include "files/tsv.h"

const char *const evidence_columns[] = {
    "table", "row", "group", "plain", "software", "family", "costs", "format", "schedule", "model", "experts", "dispatch",
    "gpus", "sequence", "tokens", "exposed_percent", "measured_percent", "nic_mbits", "error_permille",
    "first_error_permille", "first_software", "first_family", NULL,
};
enum {
    TABLE, ROW, GROUP, PLAIN, SOFTWARE, FAMILY, COSTS, FORMAT, SCHEDULE, MODEL, EXPERTS, DISPATCH, GPUS, SEQUENCE,
    TOKENS, EXPOSED, MEASURED, NIC, ERROR, FIRST_ERROR, FIRST_SOFTWARE, FIRST_FAMILY,
};

/* Of nic_mbits; a NIC of 40 Tb/s is the fastest. */
static const double MBIT = 1e6 / 8;
enum { MOST_MBITS = 40000000, MOST = 1 << 30 };

/* What a difference leaves of the weight. Tables that differ in all of this still say something. */
#define OTHER_SOFTWARE (1 / 20.0)
#define OTHER_RELEASE (1 / 3.0)      /* of one family */
#define OTHER_COSTS (1 / 10.0)
#define OTHER_EXPERTS (1 / 10.0)     /* one is dense, the other has experts */
#define OTHER_FORMAT (1 / 3.0)
#define OTHER_SCHEDULE (1 / 3.0)
#define HALF_DOUBLINGS 2.0  /* so many doublings of GPUs, of a sample, of a micro-batch or of a NIC's rate halve it, */
#define HALF_EXPOSED 0.2    /* such a difference of the shares of exposed communication, */
#define HALF_MEASURED 1.0   /* or of the shares of measured kernels */

/* Quantiles of the errors. They are higher than the shares of predictions that are to be within, as a kind of work that is
 * not here is further off than rows of these are: tests/property/published_errors.c leaves out each in turn. */
#define QUANTILE_WITHIN 0.65
#define QUANTILE_TWICE 0.933

static double doublings(double count)
{
    return count > 0 ? log2(count) : 0;
}

void evidence_sizes(const struct likeness *likeness, double sizes[EVIDENCE_SIZES])
{
    sizes[EVIDENCE_GPUS] = doublings(likeness->gpus);
    sizes[EVIDENCE_SEQUENCE] = doublings(likeness->sequence);
    sizes[EVIDENCE_TOKENS] = doublings(likeness->tokens);
    sizes[EVIDENCE_NIC] = doublings(likeness->nic);
}

/* Products in the two formats of 16 bits run equally fast, and move the same bytes. */
bool evidence_same_format(const char *a, const char *b)
{
    return text_same(a, b) || ((text_same(a, "fp16") || text_same(a, "bf16")) &&
                               (text_same(b, "fp16") || text_same(b, "bf16")));
}

double evidence_kind_weight(const struct likeness *a, const struct likeness *b)
{
    double software = text_same(a->software, b->software) ? 1 :
                      text_same(a->family, b->family) ? OTHER_RELEASE : OTHER_SOFTWARE;

    return software * (text_same(a->costs, b->costs) ? 1 : OTHER_COSTS) *
           (evidence_same_format(a->format, b->format) ? 1 : OTHER_FORMAT) *
           (text_same(a->schedule, b->schedule) ? 1 : OTHER_SCHEDULE) *
           ((a->experts > 0) != (b->experts > 0) ? OTHER_EXPERTS : 1);
}

/* How tokens are dispatched has no weight: published runs of the second way are of one software, whose name weighs. */
bool evidence_alike_kinds(const struct likeness *a, const struct likeness *b)
{
    return evidence_kind_weight(a, b) == 1 && text_same(a->dispatch, b->dispatch);
}

/* In doublings. A node alone is alike with any NIC. */
static double size_difference(int size, double a, double b)
{
    return size == EVIDENCE_NIC && (a == 0) != (b == 0) ? ALIKE_DOUBLINGS : fabs(a - b);
}

double evidence_size_weight(const struct evidence_row *row, const struct likeness *of,
                            const double sizes[EVIDENCE_SIZES])
{
    double weight = 1 / ((1 + fabs(row->exposed - of->exposed) / HALF_EXPOSED) *
                         (1 + fabs(row->measured - of->measured) / HALF_MEASURED));

    for (int i = 0; i < EVIDENCE_SIZES; i++)
        weight /= 1 + size_difference(i, row->sizes[i], sizes[i]) / HALF_DOUBLINGS;
    return weight;
}

static bool alike_sizes(const double a[EVIDENCE_SIZES], const double b[EVIDENCE_SIZES])
{
    for (int i = 0; i < EVIDENCE_SIZES; i++)
        if (size_difference(i, a[i], b[i]) > ALIKE_DOUBLINGS)
            return false;
    return true;
}

void evidence_print(FILE *out, const struct evidence_name *name, const struct likeness *likeness, double error,
                    double first_error, const struct likeness *first)
{
    bool other = !isnan(first_error) && first && !text_same(first->software, likeness->software);

    fprintf(out, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t", name->table,
            name->row, name->group, name->plain, likeness->software, likeness->family, likeness->costs, likeness->format,
            likeness->schedule, likeness->model, likeness->experts, likeness->dispatch, likeness->gpus, likeness->sequence, likeness->tokens,
            100 * likeness->exposed, 100 * likeness->measured, likeness->nic / MBIT, (int)round(1000 * error));
    if (!isnan(first_error))
        fprintf(out, "%d", (int)round(1000 * first_error));
    fprintf(out, "\t%s\t%s", other ? first->software : "", other ? first->family : "");
}

static bool same_kind(const struct likeness *a, const struct likeness *b)
{
    return text_same(a->software, b->software) && text_same(a->costs, b->costs) && text_same(a->format, b->format) &&
           text_same(a->schedule, b->schedule) && text_same(a->dispatch, b->dispatch) &&
           (a->experts > 0) == (b->experts > 0);
}

/* The index of the kind of these. The search begins with the last one: rows of a table stand together. */
static size_t find_kind(const struct likeness *likeness, struct evidence *evidence)
{
    for (size_t i = evidence->kinds.count; i > 0; i--)
        if (same_kind(&evidence->kinds.items[i - 1], likeness))
            return i - 1;
    *GROW(&evidence->kinds) = *likeness;
    return evidence->kinds.count - 1;
}

static void add_row(struct evidence *evidence, struct evidence_row row, bool first, int permille)
{
    row.first = first;
    row.error = permille / 1000.0;
    *GROW(&evidence->rows) = row;
}

/* Whether the row at hand has these names. */
static bool has_names(const struct tsv *tsv, const struct likeness *names)
{
    return text_same(names->software, tsv_text(tsv, SOFTWARE)) && text_same(names->family, tsv_text(tsv, FAMILY)) &&
           text_same(names->costs, tsv_text(tsv, COSTS)) && text_same(names->format, tsv_text(tsv, FORMAT)) &&
           text_same(names->schedule, tsv_text(tsv, SCHEDULE)) && text_same(names->dispatch, tsv_text(tsv, DISPATCH));
}

static void read_names(const struct tsv *tsv, struct likeness *names)
{
    snprintf(names->software, sizeof names->software, "%s", tsv_text(tsv, SOFTWARE));
    snprintf(names->family, sizeof names->family, "%s", tsv_text(tsv, FAMILY));
    snprintf(names->costs, sizeof names->costs, "%s", tsv_text(tsv, COSTS));
    snprintf(names->format, sizeof names->format, "%s", tsv_text(tsv, FORMAT));
    snprintf(names->schedule, sizeof names->schedule, "%s", tsv_text(tsv, SCHEDULE));
    snprintf(names->dispatch, sizeof names->dispatch, "%s", tsv_text(tsv, DISPATCH));
}

/* The text in the arena: `last`, of the row before, if it is the same. */
static const char *keep_text(struct arena *arena, const char *last, const char *text)
{
    return last && text_same(last, text) ? last : arena_strdup(arena, text);
}

/* The kind of a row when it was asked first, of the software that the file says, or, where it says none, of today's. */
static size_t first_kind(const struct tsv *tsv, const struct likeness *names, size_t kind, struct evidence *evidence)
{
    struct likeness first = *names;

    if (!*tsv_text(tsv, FIRST_SOFTWARE))
        return kind;
    snprintf(first.software, sizeof first.software, "%s", tsv_text(tsv, FIRST_SOFTWARE));
    snprintf(first.family, sizeof first.family, "%s", tsv_text(tsv, FIRST_FAMILY));
    return find_kind(&first, evidence);
}

/* The names of the row before, if there is one, and their kind. */
struct names { struct likeness likeness; size_t kind; };

static int read_row(const struct tsv *tsv, struct arena *arena, struct names *before, struct evidence *evidence,
                    struct error *err)
{
    struct likeness *names = &before->likeness;
    const struct evidence_row *last = evidence->rows.count ? &evidence->rows.items[evidence->rows.count - 1] : NULL;
    struct evidence_row row = {0};
    bool has_first = *tsv_text(tsv, FIRST_ERROR) != '\0', same;
    int plain, experts, gpus, sequence, tokens, exposed, measured, mbits, error, first = 0;

    if (tsv_integer(tsv, PLAIN, 1, MOST, &plain, err) || tsv_integer(tsv, EXPERTS, 0, MOST, &experts, err) || tsv_integer(tsv, GPUS, 1, MOST, &gpus, err) ||
        tsv_integer(tsv, SEQUENCE, 0, MOST, &sequence, err) || tsv_integer(tsv, TOKENS, 0, MOST, &tokens, err) ||
        tsv_integer(tsv, EXPOSED, 0, 100, &exposed, err) || tsv_integer(tsv, MEASURED, 0, 100, &measured, err) ||
        tsv_integer(tsv, NIC, 0, MOST_MBITS, &mbits, err) || tsv_integer(tsv, ERROR, -1000, MOST, &error, err) ||
        (has_first && tsv_integer(tsv, FIRST_ERROR, -1000, MOST, &first, err)))
        return -1;
    same = last && has_names(tsv, names) && (names->experts > 0) == (experts > 0);
    if (!same)
        read_names(tsv, names);
    names->experts = experts;
    names->gpus = gpus;
    names->sequence = sequence;
    names->tokens = tokens;
    names->nic = mbits * MBIT;
    evidence_sizes(names, row.sizes);
    row.kind = before->kind = same ? before->kind : find_kind(names, evidence);
    row.name.table = keep_text(arena, last ? last->name.table : NULL, tsv_text(tsv, TABLE));
    row.name.row = arena_strdup(arena, tsv_text(tsv, ROW));
    row.name.group = keep_text(arena, last ? last->name.group : NULL, tsv_text(tsv, GROUP));
    row.name.plain = plain;
    row.model = keep_text(arena, last ? last->model : NULL, tsv_text(tsv, MODEL));
    row.exposed = exposed / 100.0;
    row.measured = measured / 100.0;
    add_row(evidence, row, false, error);
    row.kind = first_kind(tsv, names, row.kind, evidence);
    if (has_first)
        add_row(evidence, row, true, first);
    if (mbits > 0 && (evidence->slowest_nic == 0 || names->nic < evidence->slowest_nic))
        evidence->slowest_nic = names->nic;
    evidence->fastest_nic = fmax(evidence->fastest_nic, names->nic);
    return 0;
}

static void weigh_tables(struct evidence *evidence)
{
    struct evidence_row *rows = evidence->rows.items;

    for (size_t i = 0, next; i < evidence->rows.count; i = next) {
        size_t of[2] = {0};

        for (next = i; next < evidence->rows.count && rows[next].name.table == rows[i].name.table; next++)
            of[rows[next].first]++;
        for (size_t j = i; j < next; j++)
            rows[j].weight = 1.0 / (double)of[rows[j].first];
    }
}

static double size_of_error(const void *item)
{
    const struct evidence_row *row = item;

    return fabs(row->error);
}

int evidence_read(struct arena *arena, const char *path, struct evidence *evidence, struct error *err)
{
    struct tsv tsv = {0};
    struct names names = {0};
    int before = err->count, rc;

    *evidence = (struct evidence){0};
    rc = tsv_open(&tsv, path, evidence_columns, err);
    while (!rc && tsv_next(&tsv, err))
        rc = read_row(&tsv, arena, &names, evidence, err);
    tsv_release(&tsv);
    weigh_tables(evidence);
    evidence_find_ratios(arena, evidence);
    evidence->rows.items = evidence_settle_sorted(arena, evidence->rows.items, evidence->rows.count,
                                                  sizeof *evidence->rows.items, size_of_error);
    evidence->kinds.items = evidence_settle(arena, evidence->kinds.items,
                                            evidence->kinds.count * sizeof *evidence->kinds.items);
    return rc || err->count > before ? -1 : 0;
}

int evidence_load(struct arena *arena, const struct evidence **evidence, struct error *err)
{
    static const char key[] = "errors.tsv";
    const struct evidence *known = arena->cache ? cache_find(arena->cache, CACHE_EVIDENCE, key, sizeof key) : NULL;
    struct arena own = {0};
    const char *path = NULL, *peaks = NULL;
    struct evidence *read;

    *evidence = known;
    if (!known && (data_path(arena, "scenarios/paper", key, &path, err) ||
                   data_path(arena, "scenarios/paper", "memory.tsv", &peaks, err)))
        return -1;
    if (!path)
        return 0;
    *evidence = read = ARENA_ARRAY(&own, struct evidence, 1);
    if (evidence_read(&own, path, read, err) || (peaks && evidence_read_peaks(&own, peaks, read, err))) {
        arena_join(arena, &own);
        return -1;
    }
    if (!arena->cache || !cache_put(arena->cache, CACHE_EVIDENCE, key, sizeof key, read, &own))
        arena_join(arena, &own);
    return 0;
}

static const struct evidence_row *find_first(const struct evidence *known, const struct evidence_name *name,
                                             bool *has_table)
{
    *has_table = false;
    for (size_t i = 0; known && i < known->rows.count; i++) {
        const struct evidence_row *row = &known->rows.items[i];

        if (!text_same(row->name.table, name->table))
            continue;
        *has_table = true;
        if (row->first && text_same(row->name.row, name->row))
            return row;
    }
    return NULL;
}

double evidence_first_error(const struct evidence *known, const struct evidence_name *name, double error)
{
    bool has_table;
    const struct evidence_row *row = find_first(known, name, &has_table);

    return row ? row->error : has_table ? NAN : error;
}

const struct likeness *evidence_first_kind(const struct evidence *known, const struct evidence_name *name)
{
    bool has_table;
    const struct evidence_row *row = find_first(known, name, &has_table);

    return row ? &known->kinds.items[row->kind] : NULL;
}

bool evidence_kind_left_out(const struct evidence *evidence, const char *table, size_t kind,
                            const struct evidence_without *without)
{
    const struct likeness *names = &evidence->kinds.items[kind];

    return without && ((without->table && text_same(table, without->table)) ||
                       (without->software && text_same(names->software, without->software)) ||
                       (without->costs && text_same(names->costs, without->costs)));
}

bool evidence_left_out(const struct evidence *evidence, const struct evidence_row *row,
                       const struct evidence_without *without)
{
    return evidence_kind_left_out(evidence, row->name.table, row->kind, without);
}

/* The weights of all rows. Of a row alike today's error counts, of another its first one. */
static void weigh(const struct evidence *evidence, const struct likeness *likeness,
                  const struct evidence_without *without, double *weights, double *alike)
{
    size_t kinds = evidence->kinds.count;
    double *of_kind = xcalloc(kinds, sizeof *of_kind), sizes[EVIDENCE_SIZES];
    bool *alike_kind = xcalloc(kinds, sizeof *alike_kind);

    evidence_sizes(likeness, sizes);
    for (size_t i = 0; i < kinds; i++) {
        of_kind[i] = evidence_kind_weight(likeness, &evidence->kinds.items[i]);
        alike_kind[i] = evidence_alike_kinds(likeness, &evidence->kinds.items[i]);
    }
    for (size_t i = 0; i < evidence->rows.count; i++) {
        const struct evidence_row *row = &evidence->rows.items[i];
        bool is_alike = alike_kind[row->kind] && alike_sizes(row->sizes, sizes);

        if (row->first == is_alike || evidence_left_out(evidence, row, without))
            continue;
        weights[i] = row->weight * of_kind[row->kind] * evidence_size_weight(row, likeness, sizes);
        *alike += is_alike ? weights[i] : 0;
    }
    free(alike_kind);
    free(of_kind);
}

struct expectation evidence_expect(const struct evidence *evidence, const struct likeness *likeness,
                                   const struct evidence_without *without)
{
    size_t rows = evidence ? evidence->rows.count : 0;
    double *weights = xcalloc(rows, sizeof *weights);
    double all = 0, sum = 0, longer = 0, alike = 0, within = NAN, twice = NAN;

    if (rows)
        weigh(evidence, likeness, without, weights, &alike);
    for (size_t i = 0; i < rows; i++) {
        all += weights[i];
        longer += evidence->rows.items[i].error < 0 ? weights[i] : 0;
    }
    for (size_t i = 0; i < rows && all > 0 && isnan(twice); i++) {
        double size = fabs(evidence->rows.items[i].error);

        sum += weights[i];
        within = isnan(within) && sum >= QUANTILE_WITHIN * all ? size : within;
        twice = sum >= QUANTILE_TWICE * all ? size / 2 : twice;
    }
    free(weights);
    return (struct expectation){fmax(within, twice), all > 0 ? longer / all : NAN, all > 0 ? alike / all : NAN};
}
