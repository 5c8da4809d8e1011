/* How near published runs are to a prediction, and what they let expect of its error. */
#include "evidence/evidence_internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

/* What a difference leaves of the weight. Tables that differ in all of this still say something. */
#define OTHER_RUNTIME (1 / 20.0)
#define OTHER_FAMILY (1 / 5.0)       /* on one runtime */
#define OTHER_RELEASE (1 / 3.0)      /* of one family */
#define OTHER_COSTS (1 / 10.0)
#define OTHER_EXPERTS (1 / 10.0)     /* one is dense, the other has experts */
#define OTHER_ADAPTERS (1 / 3.0)     /* one trains adapters, the other all weights */
#define OTHER_FORMAT (1 / 3.0)
#define OTHER_SCHEDULE (1 / 3.0)
#define HALF_DOUBLINGS 2.0  /* this number of doublings of GPUs, of a sample, of a micro-batch or of a NIC's rate halves
                               it, */
#define HALF_EXPOSED 0.2    /* such a difference of the shares of exposed communication, */
#define HALF_MEASURED 1.0   /* or of the shares of measured kernels */

/* Quantiles of the errors, by leaving out each kind of work in turn (tests/property/published_errors.c): of a kind that is not
 * here 73 % of the rows are within the lower one, where 60 % are promised, and 95 % within the upper one, where 90 % are. */
#define QUANTILE_WITHIN 0.59
#define QUANTILE_TWICE 0.93

/* Exposed communication is that much less sure than kernels, whose times stand on measurements: within the tables of
 * scenarios/paper the size of the first errors grows so with its share (1.6 times the table's mean for a share of 1 more, where
 * the mean share is 0.12). */
#define EXPOSED_UNSURE 3.0

double evidence_unsure(double exposed)
{
    return 1 - exposed + EXPOSED_UNSURE * exposed;
}

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

static double software_weight(const struct likeness *a, const struct likeness *b)
{
    if (text_same(a->software, b->software))
        return 1;
    if (!text_same(a->runtime, b->runtime))
        return OTHER_RUNTIME;
    return text_same(a->family, b->family) ? OTHER_RELEASE : OTHER_FAMILY;
}

double evidence_kind_weight(const struct likeness *a, const struct likeness *b)
{
    return software_weight(a, b) * (text_same(a->costs, b->costs) ? 1 : OTHER_COSTS) *
           (evidence_same_format(a->format, b->format) ? 1 : OTHER_FORMAT) *
           (text_same(a->schedule, b->schedule) ? 1 : OTHER_SCHEDULE) *
           (text_same(a->adapters, b->adapters) ? 1 : OTHER_ADAPTERS) *
           ((a->experts > 0) != (b->experts > 0) ? OTHER_EXPERTS : 1);
}

/* How tokens are dispatched and whether matrices are orthogonalized have no weight: published runs by Muon are of one or two
 * software, whose name weighs. */
bool evidence_alike_kinds(const struct likeness *a, const struct likeness *b)
{
    return text_same(a->software, b->software) && evidence_kind_weight(a, b) == 1 && text_same(a->dispatch, b->dispatch) && text_same(a->optimizer, b->optimizer);
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

static bool on_sheets(const struct likeness *likeness)
{
    return text_same(likeness->costs, "roofline");
}

const struct evidence_runs *evidence_runs_of(const struct evidence *evidence, const struct likeness *likeness)
{
    return on_sheets(likeness) ? &evidence->sheets : &evidence->runs;
}

/* The weights of all rows. Of a row alike today's error counts, of another its first one. */
static void weigh(const struct evidence *evidence, const struct likeness *likeness,
                  const struct evidence_without *without, double *weights, double *alike)
{
    const struct evidence_runs *runs = evidence_runs_of(evidence, likeness);
    size_t kinds = evidence->kinds.count;
    double *of_kind = xcalloc(kinds, sizeof *of_kind), sizes[EVIDENCE_SIZES];
    bool *alike_kind = xcalloc(kinds, sizeof *alike_kind);

    evidence_sizes(likeness, sizes);
    for (size_t i = 0; i < kinds; i++) {
        of_kind[i] = evidence_kind_weight(likeness, &evidence->kinds.items[i]);
        alike_kind[i] = !on_sheets(likeness) && evidence_alike_kinds(likeness, &evidence->kinds.items[i]);
    }
    for (size_t i = 0; i < runs->rows.count; i++) {
        const struct evidence_row *row = &runs->rows.items[i];
        bool near = alike_sizes(row->sizes, sizes), is_alike = alike_kind[row->kind] && near;
        bool counts_today = row->first && alike_kind[row->today] && near;

        if (row->first == is_alike || counts_today || (without && evidence_left_out(evidence, row, without)))
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
    const struct evidence_runs *runs = evidence ? evidence_runs_of(evidence, likeness) : NULL;
    size_t rows = runs ? runs->rows.count : 0;
    double *weights = xcalloc(rows, sizeof *weights), unsure = evidence_unsure(likeness->exposed);
    double all = 0, sum = 0, longer = 0, alike = 0, within = NAN, twice = NAN;

    if (rows)
        weigh(evidence, likeness, without, weights, &alike);
    for (size_t i = 0; i < rows; i++) {
        all += weights[i];
        longer += runs->rows.items[i].error < 0 ? weights[i] : 0;
    }
    for (size_t i = 0; i < rows && all > 0 && isnan(twice); i++) {
        double size = fabs(runs->rows.items[i].error) / evidence_unsure(runs->rows.items[i].exposed) * unsure;

        sum += weights[i];
        within = isnan(within) && sum >= QUANTILE_WITHIN * all ? size : within;
        twice = sum >= QUANTILE_TWICE * all ? size / 2 : twice;
    }
    free(weights);
    within = fmax(within, twice);
    if (on_sheets(likeness)) {
        struct likeness measured = *likeness;

        measured.costs[0] = '\0';
        within = fmax(within, evidence_expect(evidence, &measured, without).error);
    }
    return (struct expectation){within, all > 0 ? longer / all : NAN, all > 0 ? alike / all : NAN};
}
