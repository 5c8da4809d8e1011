#include "planners/pipedream.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

/* One level: its table, and the times of layers i to j on one machine of it. */
struct table {
    const struct pipedream *question;
    const struct pipedream_level *level;
    int below; /* machines of a machine of this level */
    size_t n;
    const double *weights; /* B of all layers before one */
    double *seconds;       /* [i * n + j] */
    struct entry {
        double seconds;
        size_t cut; /* the last layer of the stages before the last one */
        int last;   /* machines of the last stage; 0: there is one stage */
    } * entries;    /* [(i * n + j) * machines + m - 1] */
};

static struct entry *entry_of(const struct table *table, size_t i, size_t j, int m)
{
    return &table->entries[(i * table->n + j) * (size_t)table->level->machines + (size_t)m - 1];
}

/* S(i, j, m); `links`: how many exchange its gradients at once. */
static double stage_seconds(const struct table *table, size_t i, size_t j, int m, int links)
{
    double seconds = table->seconds[i * table->n + j], weights = table->weights[j + 1] - table->weights[i];
    double exchange = (m - 1) * weights / (m * table->level->bandwidth * links);

    return table->question->paper ? fmax(seconds / m, 2 * exchange) : (seconds + 4 * exchange) / m;
}

static double transfer_seconds(const struct table *table, size_t layer)
{
    return table->question->paper ? 2 * table->question->layers[layer].output / table->level->bandwidth : 0;
}

static void fill(const struct table *table, size_t i, size_t j, int m)
{
    bool straight = table->question->straight;
    struct entry best = {INFINITY, 0, 0};

    if (m == 1 || !straight)
        best.seconds = stage_seconds(table, i, j, m, table->question->paper ? 1 : table->below);
    for (size_t k = i; k < j; k++)
        for (int q = 1; q < (straight && m > 1 ? 2 : m); q++) {
            double seconds = fmax(entry_of(table, i, k, m - q)->seconds, stage_seconds(table, k + 1, j, q, 1));

            seconds = fmax(seconds, transfer_seconds(table, k));
            if (seconds < best.seconds)
                best = (struct entry){seconds, k, q};
        }
    *entry_of(table, i, j, m) = best;
}

/* The stages of layers i to j on all machines of the level, each on `copies` times as many devices. */
static void trace(const struct table *tables, size_t level, size_t i, size_t j, int copies, struct planned *planned)
{
    const struct table *table = &tables[level];
    struct planned_stage stages[PLANNED_MOST];
    size_t count = 0;
    int m = table->level->machines;

    for (size_t end = j;;) {
        const struct entry *entry = entry_of(table, i, end, m);

        BUG_IF(count == PLANNED_MOST);
        stages[count++] = (struct planned_stage){entry->last ? entry->cut + 1 : i, end + 1,
                                                 entry->last ? entry->last : m, 1, 0};
        if (!entry->last)
            break;
        m -= entry->last;
        end = entry->cut;
    }
    while (count-- > 0)
        if (level > 0) {
            trace(tables, level - 1, stages[count].begin, stages[count].end - 1, copies * stages[count].data, planned);
        } else {
            stages[count].data *= copies;
            BUG_IF(planned->count == PLANNED_MOST);
            planned->stages[planned->count++] = stages[count];
        }
}

static void fill_table(struct table *table, bool top)
{
    for (size_t i = 0; i < (top ? 1 : table->n); i++)
        for (size_t j = i; j < table->n; j++)
            for (int m = 1; m <= table->level->machines; m++)
                fill(table, i, j, m);
}

/* The times of stages on one machine: of the lowest level sums over layers, of another the table below. */
static void machine_seconds(struct table *table, const struct table *below)
{
    for (size_t i = 0; i < table->n; i++) {
        double sum = 0;

        for (size_t j = i; j < table->n; j++) {
            sum += table->question->layers[j].seconds;
            table->seconds[i * table->n + j] = below ? entry_of(below, i, j, below->level->machines)->seconds : sum;
        }
    }
}

void pipedream_plan(const struct pipedream *question, struct planned *planned)
{
    size_t n = question->count;
    struct table *tables = xcalloc(question->nlevels, sizeof *tables);
    double *weights = xcalloc(n + 1, sizeof *weights);

    for (size_t i = 0; i < n; i++)
        weights[i + 1] = weights[i] + question->layers[i].weights;
    for (size_t l = 0; l < question->nlevels; l++) {
        tables[l] = (struct table){
            .question = question,
            .level = &question->levels[l],
            .below = l ? question->levels[l - 1].machines : 1,
            .n = n,
            .weights = weights,
            .seconds = xcalloc(n * n, sizeof(double)),
            .entries = xcalloc(n * n * (size_t)question->levels[l].machines, sizeof(struct entry)),
        };
        machine_seconds(&tables[l], l ? &tables[l - 1] : NULL);
        fill_table(&tables[l], l + 1 == question->nlevels);
    }
    *planned = (struct planned){
        .objective = entry_of(&tables[question->nlevels - 1], 0, n - 1,
                              question->levels[question->nlevels - 1].machines)
                         ->seconds,
    };
    if (isfinite(planned->objective))
        trace(tables, question->nlevels - 1, 0, n - 1, 1, planned);
    for (size_t l = 0; l < question->nlevels; l++) {
        free(tables[l].seconds);
        free(tables[l].entries);
    }
    free(tables);
    free(weights);
}
