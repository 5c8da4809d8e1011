#include "evidence/evidence_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "evidence/first.h"
#include "files/tsv.h"

const char *const evidence_columns[] = {
    "table", "row", "group", "plain", "software", "family", "costs", "format", "schedule", "model", "experts", "dispatch",
    "gpus", "sequence", "tokens", "exposed_percent", "measured_percent", "nic_mbits", "error_permille",
    "first_error_permille", "first_software", "first_family", "runtime", "sheet_permille", "adapters",
    "optimizer", NULL,
};
enum {
    TABLE, ROW, GROUP, PLAIN, SOFTWARE, FAMILY, COSTS, FORMAT, SCHEDULE, MODEL, EXPERTS, DISPATCH, GPUS, SEQUENCE,
    TOKENS, EXPOSED, MEASURED, NIC, ERROR, FIRST_ERROR, FIRST_SOFTWARE, FIRST_FAMILY, RUNTIME, SHEET, ADAPTERS, OPTIMIZER,
};

/* Of nic_mbits; a NIC of 40 Tb/s is the fastest. */
static const double MBIT = 1e6 / 8;
enum { MOST_MBITS = 40000000, MOST = 1 << 30 };

void evidence_print(FILE *out, const struct evidence_name *name, const struct likeness *likeness,
                    const struct evidence_errors *errors, const struct first_error *first)
{
    bool other = first && !text_same(first->software, likeness->software);

    fprintf(out, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t", name->table,
            name->row, name->group, name->plain, likeness->software, likeness->family, likeness->costs, likeness->format,
            likeness->schedule, likeness->model, likeness->experts, likeness->dispatch, likeness->gpus, likeness->sequence, likeness->tokens,
            100 * likeness->exposed, 100 * likeness->measured, likeness->nic / MBIT, (int)round(1000 * errors->today));
    if (first)
        fprintf(out, "%d", first->permille);
    fprintf(out, "\t%s\t%s\t%s\t", other ? first->software : "", other ? first->family : "", likeness->runtime);
    if (!isnan(errors->sheet))
        fprintf(out, "%d", (int)round(1000 * errors->sheet));
    fprintf(out, "\t%s\t%s", likeness->adapters, likeness->optimizer);
}

static bool same_kind(const struct likeness *a, const struct likeness *b)
{
    return text_same(a->software, b->software) && text_same(a->runtime, b->runtime) && text_same(a->costs, b->costs) &&
           text_same(a->format, b->format) && text_same(a->schedule, b->schedule) && text_same(a->dispatch, b->dispatch) &&
           text_same(a->adapters, b->adapters) && text_same(a->optimizer, b->optimizer) &&
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

static void add_row(struct evidence_runs *runs, struct evidence_row row, bool first, double error)
{
    row.first = first;
    row.error = error;
    *GROW(&runs->rows) = row;
}

/* Whether the row at hand has these names. */
static bool has_names(const struct tsv *tsv, const struct likeness *names)
{
    return text_same(names->software, tsv_text(tsv, SOFTWARE)) && text_same(names->family, tsv_text(tsv, FAMILY)) &&
           text_same(names->runtime, tsv_text(tsv, RUNTIME)) &&
           text_same(names->costs, tsv_text(tsv, COSTS)) && text_same(names->format, tsv_text(tsv, FORMAT)) &&
           text_same(names->schedule, tsv_text(tsv, SCHEDULE)) && text_same(names->dispatch, tsv_text(tsv, DISPATCH)) &&
           text_same(names->adapters, tsv_text(tsv, ADAPTERS)) && text_same(names->optimizer, tsv_text(tsv, OPTIMIZER));
}

static void read_names(const struct tsv *tsv, struct likeness *names)
{
    snprintf(names->software, sizeof names->software, "%s", tsv_text(tsv, SOFTWARE));
    snprintf(names->family, sizeof names->family, "%s", tsv_text(tsv, FAMILY));
    snprintf(names->runtime, sizeof names->runtime, "%s", tsv_text(tsv, RUNTIME));
    snprintf(names->costs, sizeof names->costs, "%s", tsv_text(tsv, COSTS));
    snprintf(names->format, sizeof names->format, "%s", tsv_text(tsv, FORMAT));
    snprintf(names->schedule, sizeof names->schedule, "%s", tsv_text(tsv, SCHEDULE));
    snprintf(names->dispatch, sizeof names->dispatch, "%s", tsv_text(tsv, DISPATCH));
    snprintf(names->adapters, sizeof names->adapters, "%s", tsv_text(tsv, ADAPTERS));
    snprintf(names->optimizer, sizeof names->optimizer, "%s", tsv_text(tsv, OPTIMIZER));
}

/* The text in the arena: `last`, of the row before, if it is the same. */
static const char *keep_text(struct arena *arena, const char *last, const char *text)
{
    return last && text_same(last, text) ? last : arena_strdup(arena, text);
}

/* The kind of these when they were asked first: of the software that the file says, or, where it says none, of today's. */
static size_t first_kind(const struct tsv *tsv, const struct likeness *names, size_t kind, struct evidence *evidence)
{
    struct likeness first = *names;

    if (!*tsv_text(tsv, FIRST_SOFTWARE))
        return kind;
    snprintf(first.software, sizeof first.software, "%s", tsv_text(tsv, FIRST_SOFTWARE));
    snprintf(first.family, sizeof first.family, "%s", tsv_text(tsv, FIRST_FAMILY));
    return find_kind(&first, evidence);
}

/* Adds the row to the runs that data sheets predict, with the error that it would have had first. */
static void add_sheet(const struct tsv *tsv, const struct likeness *names, struct evidence_row row, double first,
                      struct evidence *evidence)
{
    struct likeness sheet = *names;

    snprintf(sheet.costs, sizeof sheet.costs, "roofline");
    row.measured = 0;
    row.today = find_kind(&sheet, evidence);
    row.kind = first_kind(tsv, &sheet, row.today, evidence);
    add_row(&evidence->sheets, row, true, first);
}

/* The names of the row before, if there is one, and their kind. */
struct names { struct likeness likeness; size_t kind; };

static int read_row(const struct tsv *tsv, struct arena *arena, struct names *before, struct evidence *evidence,
                    struct error *err)
{
    struct likeness *names = &before->likeness;
    const struct evidence_row *last = evidence->runs.rows.count ? &evidence->runs.rows.items[evidence->runs.rows.count - 1] : NULL;
    struct evidence_row row = {0};
    bool has_first = *tsv_text(tsv, FIRST_ERROR) != '\0', has_sheet = *tsv_text(tsv, SHEET) != '\0', same;
    int plain, experts, gpus, sequence, tokens, exposed, measured, mbits, error, first = 0, sheet = 0;
    double today, sheet_error;

    if (tsv_integer(tsv, PLAIN, 1, MOST, &plain, err) || tsv_integer(tsv, EXPERTS, 0, MOST, &experts, err) || tsv_integer(tsv, GPUS, 1, MOST, &gpus, err) ||
        tsv_integer(tsv, SEQUENCE, 0, MOST, &sequence, err) || tsv_integer(tsv, TOKENS, 0, MOST, &tokens, err) ||
        tsv_integer(tsv, EXPOSED, 0, 100, &exposed, err) || tsv_integer(tsv, MEASURED, 0, 100, &measured, err) ||
        tsv_integer(tsv, NIC, 0, MOST_MBITS, &mbits, err) || tsv_integer(tsv, ERROR, -1000, MOST, &error, err) ||
        (has_first && tsv_integer(tsv, FIRST_ERROR, -1000, MOST, &first, err)) ||
        (has_sheet && tsv_integer(tsv, SHEET, -1000, MOST, &sheet, err)))
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
    row.kind = row.today = before->kind = same ? before->kind : find_kind(names, evidence);
    row.name.table = keep_text(arena, last ? last->name.table : NULL, tsv_text(tsv, TABLE));
    row.name.row = arena_strdup(arena, tsv_text(tsv, ROW));
    row.name.group = keep_text(arena, last ? last->name.group : NULL, tsv_text(tsv, GROUP));
    row.name.plain = plain;
    row.model = keep_text(arena, last ? last->model : NULL, tsv_text(tsv, MODEL));
    today = error / 1000.0;
    sheet_error = has_sheet ? sheet / 1000.0 : today;
    row.exposed = exposed / 100.0;
    row.measured = measured / 100.0;
    add_row(&evidence->runs, row, false, today);
    row.kind = first_kind(tsv, names, row.kind, evidence);
    if (has_first)
        add_row(&evidence->runs, row, true, first / 1000.0);
    if (has_first && today > -1 && (has_sheet || text_same(names->costs, "roofline")))
        add_sheet(tsv, names, row, (1 + first / 1000.0) * (1 + sheet_error) / (1 + today) - 1, evidence);
    if (mbits > 0 && (evidence->slowest_nic == 0 || names->nic < evidence->slowest_nic))
        evidence->slowest_nic = names->nic;
    evidence->fastest_nic = fmax(evidence->fastest_nic, names->nic);
    return 0;
}

static void weigh_tables(struct evidence_runs *runs)
{
    struct evidence_row *rows = runs->rows.items;

    for (size_t i = 0, next; i < runs->rows.count; i = next) {
        size_t of[2] = {0};

        for (next = i; next < runs->rows.count && rows[next].name.table == rows[i].name.table; next++)
            of[rows[next].first]++;
        for (size_t j = i; j < next; j++)
            rows[j].weight = 1.0 / (double)of[rows[j].first];
    }
}

static double size_of_error(const void *item)
{
    const struct evidence_row *row = item;

    return fabs(row->error) / evidence_unsure(row->exposed);
}

static void settle_runs(struct arena *arena, struct evidence_runs *runs, const struct evidence *evidence)
{
    weigh_tables(runs);
    evidence_find_ratios(arena, runs, evidence);
    runs->rows.items = evidence_settle_sorted(arena, runs->rows.items, runs->rows.count, sizeof *runs->rows.items, size_of_error);
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
    settle_runs(arena, &evidence->runs, evidence);
    settle_runs(arena, &evidence->sheets, evidence);
    evidence->kinds.items = evidence_list(arena, evidence->kinds.items,
                                          evidence->kinds.count * sizeof *evidence->kinds.items);
    return rc || err->count > before ? -1 : 0;
}
