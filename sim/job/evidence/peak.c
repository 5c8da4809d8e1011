/* How far off peaks of memory were, and so how sure it is that something fits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "evidence/evidence_internal.h"
#include "files/tsv.h"

const char *const peak_kind_names[] = ENUM_NAMES(PEAK_KINDS);
const char *const evidence_peak_columns[] = {
    "table", "row", "measured_as", "error_permille", "runtime", "adapters", "optimizer", "experts", NULL,
};
enum { TABLE, ROW, MEASURED_AS, ERROR, RUNTIME, ADAPTERS, OPTIMIZER, EXPERTS, MOST = 1 << 30 };

/* As in evidence.c: higher than what is to be within, for a table that is not here is further off than these. */
static const double QUANTILE_WITHIN = 0.65, QUANTILE_MOST = 0.92;
/* What another kind leaves of a weight: of each there are few tables. */
static const double OTHER_KIND = 1 / 3.0;

/* Of work that differs in one of these: what a runtime holds, and what is held for adapters, by an optimizer and for experts. */
static const double OTHER_WORK = 1 / 3.0;

void evidence_print_peak(FILE *out, const char *table, const char *row, enum peak_kind kind, double error,
                         const struct likeness *likeness)
{
    fprintf(out, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%.0f", table, row, peak_kind_names[kind], (int)round(1000 * error),
            likeness->runtime, likeness->adapters, likeness->states, likeness->experts);
}

/* The names of the row at hand; `last`, of the row before, if they are the same. */
static const struct likeness *read_likeness(const struct tsv *tsv, struct arena *arena, const struct likeness *last, int experts)
{
    struct likeness *own = ARENA_ARRAY(arena, struct likeness, 1);

    snprintf(own->runtime, sizeof own->runtime, "%s", tsv_text(tsv, RUNTIME));
    snprintf(own->adapters, sizeof own->adapters, "%s", tsv_text(tsv, ADAPTERS));
    snprintf(own->states, sizeof own->states, "%s", tsv_text(tsv, OPTIMIZER));
    own->experts = experts;
    return last && !memcmp(last, own, sizeof *own) ? last : own;
}

static int read_row(const struct tsv *tsv, struct arena *arena, struct evidence *evidence, struct error *err)
{
    const struct evidence_peak *last = evidence->peaks.count ? &evidence->peaks.items[evidence->peaks.count - 1] : NULL;
    const char *table = tsv_text(tsv, TABLE);
    struct evidence_peak peak = {0};
    int error = 0, experts = 0;

    while (peak.kind < PEAK_KIND_COUNT && !text_same(tsv_text(tsv, MEASURED_AS), peak_kind_names[peak.kind]))
        peak.kind++;
    if (peak.kind == PEAK_KIND_COUNT)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, MEASURED_AS), "measured_as: expected allocated, reserved or driver, found '%s'",
                         tsv_text(tsv, MEASURED_AS));
    if (tsv_integer(tsv, ERROR, -1000, MOST, &error, err) || tsv_integer(tsv, EXPERTS, 0, MOST, &experts, err))
        return -1;
    peak.likeness = read_likeness(tsv, arena, last ? last->likeness : NULL, experts);
    peak.error = error / 1000.0;
    peak.table = last && text_same(last->table, table) ? last->table : arena_strdup(arena, table);
    *GROW(&evidence->peaks) = peak;
    return 0;
}

static bool one_source(const struct evidence_peak *a, const struct evidence_peak *b)
{
    return a->table == b->table && a->kind == b->kind;
}

static void weigh(struct evidence *evidence)
{
    struct evidence_peak *peaks = evidence->peaks.items;

    for (size_t i = 0; i < evidence->peaks.count; i++) {
        size_t rows = 0;

        for (size_t j = 0; j < evidence->peaks.count; j++)
            rows += one_source(&peaks[i], &peaks[j]);
        peaks[i].weight = 1.0 / (double)rows;
    }
}

static double size_of_error(const void *item)
{
    const struct evidence_peak *peak = item;

    return fabs(peak->error);
}

int evidence_read_peaks(struct arena *arena, const char *path, struct evidence *evidence, struct error *err)
{
    struct tsv tsv = {0};
    int before = err->count, rc = tsv_open(&tsv, path, evidence_peak_columns, err);

    while (!rc && tsv_next(&tsv, err))
        rc = read_row(&tsv, arena, evidence, err);
    tsv_release(&tsv);
    weigh(evidence);
    evidence->peaks.items = evidence_settle_sorted(arena, evidence->peaks.items, evidence->peaks.count,
                                                   sizeof *evidence->peaks.items, size_of_error);
    return rc || err->count > before ? -1 : 0;
}

static double work_weight(const struct likeness *a, const struct likeness *b)
{
    return (text_same(a->runtime, b->runtime) ? 1 : OTHER_WORK) * (text_same(a->adapters, b->adapters) ? 1 : OTHER_WORK) *
           (text_same(a->states, b->states) ? 1 : OTHER_WORK) * ((a->experts > 0) == (b->experts > 0) ? 1 : OTHER_WORK);
}

/* Quantiles of the errors; the errors of each kind count by its weight. */
static struct peak_expectation expect(const struct evidence *evidence, const double of_kind[PEAK_KIND_COUNT],
                                      const struct likeness *likeness, const struct evidence_without *without)
{
    struct peak_expectation found = {NAN, NAN, false};
    size_t count = evidence ? evidence->peaks.count : 0;
    double *weights = xcalloc(count + 1, sizeof *weights), all = 0, sum = 0;

    for (size_t i = 0; i < count; i++) {
        const struct evidence_peak *peak = &evidence->peaks.items[i];
        double work = work_weight(likeness, peak->likeness);

        if (without && without->table && text_same(peak->table, without->table))
            continue;
        weights[i] = peak->weight * of_kind[peak->kind] * work;
        found.alike |= work == 1 && weights[i] > 0;
        all += weights[i];
    }
    for (size_t i = 0; i < count && all > 0 && isnan(found.most); i++) {
        double size = fabs(evidence->peaks.items[i].error);

        sum += weights[i];
        found.within = isnan(found.within) && sum >= QUANTILE_WITHIN * all ? size : found.within;
        found.most = sum >= QUANTILE_MOST * all ? size : NAN;
    }
    free(weights);
    found.within = fmax(found.within, found.most / 2);
    return found.alike ? found : (struct peak_expectation){found.most, 2 * found.most, false};
}

struct peak_expectation evidence_expect_peak(const struct evidence *evidence, enum peak_kind kind,
                                             const struct likeness *likeness, const struct evidence_without *without)
{
    double of_kind[PEAK_KIND_COUNT];

    for (int other = 0; other < PEAK_KIND_COUNT; other++)
        of_kind[other] = other == (int)kind ? 1 : OTHER_KIND;
    return expect(evidence, of_kind, likeness, without);
}

double evidence_fits(const struct evidence *evidence, const struct likeness *likeness, double need, double room)
{
    static const double own[PEAK_KIND_COUNT] = {[PEAK_ALLOCATED] = 1, [PEAK_RESERVED] = 1};
    double within = expect(evidence, own, likeness, NULL).within;
    double scale = log1p(within) / log(0.8 / 0.2);       /* a logistic variable is within x of 0 with 2 / (1 + exp(-x)) - 1 */

    return isnan(scale) || isinf(room) ? NAN : 1 / (1 + exp(-log(room / need) / scale));
}
