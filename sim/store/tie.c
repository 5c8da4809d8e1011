#include "store/tie.h"

#include <math.h>
#include <stdlib.h>

#include "run/metrics.h"

static double number_of(const json_t *metrics, const char *name)
{
    const json_t *value = json_object_get(metrics, name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Whether errors of the iteration time are errors of the metric. */
static bool follows_time(const char *name)
{
    const struct metric *metric = metric_find(name);

    return metric && (metric->kind == METRIC_RATE || metric == metric_find("iteration_time_s"));
}

struct tie_number tie_number_of(const json_t *row, const char *key, double number)
{
    const json_t *metrics = json_object_get(row, "metrics");
    double time = number_of(metrics, "iteration_time_s"), error = number_of(metrics, "stated_error_share");
    double noise = (number_of(metrics, "iteration_time_s_p90") - number_of(metrics, "iteration_time_s_p10")) / time;

    if (!follows_time(key))
        return (struct tie_number){.number = number};
    return (struct tie_number){number, noise > 0 ? noise : 0, error > 0 ? error : 0};    /* NaN: none is known */
}

static double margin(struct tie_number number)
{
    return fmax(number.noise, number.error) * fabs(number.number);
}

bool tie_holds(struct tie_number a, struct tie_number b)
{
    return fabs(a.number - b.number) <= fmax(margin(a), margin(b));
}

/* A number while all are ordered: best first, those without one last. */
struct place { double better; size_t at; };

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (isnan(x->better) || isnan(y->better) || x->better == y->better)
        return isnan(x->better) != isnan(y->better) ? isnan(x->better) ? 1 : -1 : (x->at > y->at) - (x->at < y->at);
    return x->better < y->better ? -1 : 1;
}

void tie_ranks(const struct tie_number *numbers, size_t count, bool largest_first, struct tie_rank *ranks)
{
    struct place *places = xcalloc(count + 1, sizeof *places);
    size_t first = 0;

    for (size_t i = 0; i < count; i++) {
        places[i] = (struct place){largest_first ? -numbers[i].number : numbers[i].number, i};
        ranks[i] = (struct tie_rank){0, false};
    }
    qsort(places, count, sizeof *places, by_place);
    for (size_t i = 0; i < count && !isnan(places[i].better); i++) {
        if (!tie_holds(numbers[places[first].at], numbers[places[i].at]))
            first = i;
        ranks[places[i].at] = (struct tie_rank){first + 1, i > first};
        ranks[places[first].at].shared = i > first;
    }
    free(places);
}

char *tie_text(struct tie_rank rank, char *text, size_t size)
{
    snprintf(text, size, rank.rank ? "%zu%s" : "-", rank.rank, rank.shared ? "=" : "");
    return text;
}

void tie_explain(const struct tie_number *numbers, size_t count, FILE *out)
{
    double noise = 0, error = 0;

    for (size_t i = 0; i < count; i++) {
        noise = fmax(noise, numbers[i].noise);
        error = fmax(error, numbers[i].error);
    }
    if (noise == 0 && error == 0) {
        fputs("rank: by the numbers alone; no row states an error or a distribution of them\n", out);
        return;
    }
    fputs("rank: those with one rank cannot be told apart; they differ by no more than ", out);
    if (noise > 0)
        fprintf(out, "the noise of the runs (from 10 to 90 %% of them, up to %.2g %%)%s", 100 * noise,
                error > 0 ? " or " : "");
    if (error > 0)
        fprintf(out, "the error that the profile states (up to %.2g %%)", 100 * error);
    fputc('\n', out);
}
