#include "planners/alpa.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

#define APART 1e-6 /* s: values of t_max that are nearer to the last one are not tried, as in Alpa */

struct search {
    const struct alpa *question;
    size_t n, stages; /* layers; stages at most */
    struct cost {
        double seconds;
        int behind;
    } * costs;     /* [(begin * n + end - 1) * submeshes + k] */
    double *least; /* F, [(s * (n + 1) + l) * (devices + 1) + d] */
    struct choice {
        size_t end, submesh;
    } * choices; /* of the first of these stages */
};

static size_t place(const struct search *search, size_t s, size_t l, int d)
{
    return (s * (search->n + 1) + l) * (size_t)(search->question->devices + 1) + (size_t)d;
}

static int devices_of(const struct planned_stage *submesh)
{
    return submesh->data * submesh->tensor;
}

static const struct cost *cost_of(const struct search *search, size_t begin, size_t end, size_t submesh)
{
    return &search->costs[(begin * search->n + end - 1) * search->question->nsubmeshes + submesh];
}

static void find_costs(struct search *search)
{
    const struct alpa *question = search->question;

    for (size_t begin = 0; begin < search->n; begin++)
        for (size_t end = begin + 1; end <= search->n; end++)
            for (size_t k = 0; k < question->nsubmeshes; k++) {
                struct planned_stage stage = question->submeshes[k];
                struct cost *cost = &search->costs[(begin * search->n + end - 1) * question->nsubmeshes + k];

                stage.begin = begin;
                stage.end = end;
                cost->behind = (int)search->n;
                cost->seconds = question->cost(question->context, &stage, &cost->behind);
            }
}

/* F(s, l, d), where F of s - 1 stages is known. */
static void fill(struct search *search, size_t s, size_t l, int d, double most)
{
    const struct alpa *question = search->question;
    double least = INFINITY;
    struct choice choice = {0, 0};

    for (size_t end = l + 1; end <= search->n; end++)
        for (size_t k = 0; k < question->nsubmeshes; k++) {
            const struct cost *cost = cost_of(search, l, end, k);
            int left = d - devices_of(&question->submeshes[k]);
            double sum;

            if (left < 0 || cost->seconds > most || (int)s - 1 > cost->behind)
                continue;
            sum = cost->seconds + search->least[place(search, s - 1, end, left)];
            if (sum < least) {
                least = sum;
                choice = (struct choice){end, k};
            }
        }
    search->least[place(search, s, l, d)] = least;
    search->choices[place(search, s, l, d)] = choice;
}

/* Keeps the best plan whose stages all cost `most` or less. */
static void try_most(struct search *search, double most, struct planned *planned)
{
    const struct alpa *question = search->question;

    for (size_t s = 1; s <= search->stages; s++) {
        double objective;

        for (size_t l = 0; l < search->n; l++)
            for (int d = 1; d <= question->devices; d++)
                fill(search, s, l, d, most);
        objective = search->least[place(search, s, 0, question->devices)];
        if (isinf(objective))
            continue;
        objective += (question->micro_batches - 1) * most;
        if (objective >= planned->objective)
            continue;
        *planned = (struct planned){.objective = objective};
        for (size_t l = 0, rest = s, d = (size_t)question->devices; rest > 0; rest--) {
            struct choice choice = search->choices[place(search, rest, l, (int)d)];
            struct planned_stage stage = question->submeshes[choice.submesh];

            stage.begin = l;
            stage.end = choice.end;
            planned->stages[planned->count++] = stage;
            l = choice.end;
            d -= (size_t)devices_of(&stage);
        }
    }
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

void alpa_plan(const struct alpa *question, struct planned *planned)
{
    struct search search = {.question = question, .n = question->layers};
    size_t n = search.n, costs = n * n * question->nsubmeshes, size, count = 0;
    double *most = xcalloc(costs, sizeof *most), last = -INFINITY;

    search.stages = n < (size_t)question->devices ? n : (size_t)question->devices;
    search.stages = search.stages < PLANNED_MOST ? search.stages : PLANNED_MOST;
    size = (search.stages + 1) * (n + 1) * (size_t)(question->devices + 1);
    search.costs = xcalloc(costs, sizeof *search.costs);
    search.least = xcalloc(size, sizeof *search.least);
    search.choices = xcalloc(size, sizeof *search.choices);
    for (size_t i = 0; i < size; i++)
        search.least[i] = INFINITY;
    search.least[place(&search, 0, n, 0)] = 0;
    find_costs(&search);
    for (size_t i = 0; i < costs; i++)
        if (search.costs[i].seconds > 0 && isfinite(search.costs[i].seconds))
            most[count++] = search.costs[i].seconds;
    array_sort(most, count, sizeof *most, ascending);
    *planned = (struct planned){.objective = INFINITY};
    for (size_t i = 0; i < count && question->micro_batches * most[i] < planned->objective; i++)
        if (most[i] - last >= APART) {
            last = most[i];
            try_most(&search, last, planned);
        }
    free(most);
    free(search.costs);
    free(search.least);
    free(search.choices);
}
