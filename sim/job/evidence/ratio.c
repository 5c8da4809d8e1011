/* How far off ratios of two predictions were, and so how far off one is expected to be. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/cache.h"
#include "evidence/evidence_internal.h"

/* Quantiles of the errors; like in evidence.c higher than the shares that are to be within. */
static const double QUANTILE_WITHIN = 0.62, QUANTILE_MOST = 0.92;

/* The most neighbours of a row that are paired with it: all pairs of hundreds of rows would say no more. */
enum { NEAR = 64 };

/* Rows of a table mostly share the text. */
static bool same_text(const char *a, const char *b)
{
    return a == b || text_same(a, b);
}

/* Whether the ratio of the two is the kind of question that evidence_expect_ratio answers. */
static bool comparable(const struct evidence *evidence, const struct evidence_row *a, const struct evidence_row *b)
{
    const struct likeness *x = &evidence->kinds.items[a->kind], *y = &evidence->kinds.items[b->kind];

    return a->first == b->first && a->name.plain != b->name.plain && same_text(a->name.group, b->name.group) &&
           same_text(a->model, b->model) &&
           (x == y || (text_same(x->software, y->software) && text_same(x->costs, y->costs))) &&
           a->error > -1 && b->error > -1;
}

/* Ratios of the rows of one table, from `begin` to before `end`. */
static void find_in_table(struct evidence_runs *runs, const struct evidence *evidence, size_t begin, size_t end)
{
    const struct evidence_row *rows = runs->rows.items;
    size_t before = runs->ratios.count, of[2] = {0};

    for (size_t i = begin; i < end; i++)
        for (size_t j = i + 1; j < end && j <= i + NEAR; j++)
            if (comparable(evidence, &rows[i], &rows[j])) {
                *GROW(&runs->ratios) = (struct evidence_ratio){
                    .table = rows[i].name.table, .first = rows[i].first, .kind = (unsigned)rows[i].kind,
                    .error = (1 + fmax(rows[i].error, rows[j].error)) / (1 + fmin(rows[i].error, rows[j].error)) - 1,
                };
                of[rows[i].first]++;
            }
    for (size_t i = before; i < runs->ratios.count; i++)
        runs->ratios.items[i].weight = 1.0 / (double)of[runs->ratios.items[i].first];
}

static double error_of(const void *item)
{
    const struct evidence_ratio *ratio = item;

    return ratio->error;
}

void evidence_find_ratios(struct arena *arena, struct evidence_runs *runs, const struct evidence *evidence)
{
    const struct evidence_row *rows = runs->rows.items;

    for (size_t begin = 0, end; begin < runs->rows.count; begin = end) {
        end = begin + 1;
        while (end < runs->rows.count && rows[end].name.table == rows[begin].name.table)
            end++;
        find_in_table(runs, evidence, begin, end);
    }
    runs->ratios.items = evidence_settle_sorted(arena, runs->ratios.items, runs->ratios.count, sizeof *runs->ratios.items,
                                                error_of);
}

struct ratio_expectation evidence_expect_ratio(const struct evidence *evidence, const struct likeness *likeness,
                                               const struct evidence_without *without)
{
    const struct evidence_runs *runs = evidence ? evidence_runs_of(evidence, likeness) : NULL;
    size_t kinds = evidence ? evidence->kinds.count : 0, ratios = runs ? runs->ratios.count : 0;
    double *of_kind = xcalloc(kinds + 1, sizeof *of_kind), *weights = xmalloc((ratios + 1) * sizeof *weights);
    bool *alike_kind = xcalloc(kinds + 1, sizeof *alike_kind);
    double all = 0, sum = 0;
    struct ratio_expectation found = {NAN, NAN};

    for (size_t i = 0; i < kinds; i++) {
        of_kind[i] = evidence_kind_weight(likeness, &evidence->kinds.items[i]);
        alike_kind[i] = runs != &evidence->sheets && evidence_alike_kinds(likeness, &evidence->kinds.items[i]);
    }
    for (size_t i = 0; i < ratios; i++) {
        const struct evidence_ratio *ratio = &runs->ratios.items[i];

        weights[i] = ratio->weight * of_kind[ratio->kind];
        if (ratio->first == alike_kind[ratio->kind] ||
            (without && evidence_kind_left_out(evidence, ratio->table, ratio->kind, without)))
            weights[i] = 0;
        all += weights[i];
    }
    for (size_t i = 0; i < ratios && all > 0 && isnan(found.most); i++) {
        sum += weights[i];
        found.within = isnan(found.within) && sum >= QUANTILE_WITHIN * all ? runs->ratios.items[i].error : found.within;
        found.most = sum >= QUANTILE_MOST * all ? runs->ratios.items[i].error : NAN;
    }
    free(weights);
    free(alike_kind);
    free(of_kind);
    return found;
}

struct ratio_expectation evidence_recall_ratio(struct cache *cache, const struct evidence *evidence,
                                               const struct likeness *likeness)
{
    const size_t size = offsetof(struct likeness, gpus);         /* sizes, which come behind, have no part in it */
    const struct ratio_expectation *known = cache ? cache_find(cache, CACHE_RATIO, likeness, size) : NULL;
    struct ratio_expectation ratio = known ? *known : evidence_expect_ratio(evidence, likeness, NULL);

    if (cache && !known)
        cache_copy(cache, CACHE_RATIO, likeness, size, &ratio, sizeof ratio);
    return ratio;
}
