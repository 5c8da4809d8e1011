#include "store/tie.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/words.h"
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

/* A hash of the names of what a row ran, and of zero bytes behind them. */
static uint64_t work_of(const json_t *row)
{
    static const char *const keys[] = {"software", "model", "gpu"};
    uint64_t hash = HASH_START;

    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *name = json_string_value(json_object_get(row, keys[i]));

        hash = hash_more(hash, name ? name : "", name ? strlen(name) + 1 : 1);
    }
    return hash;
}

/* 0 of one that is not known. */
static double error_of(const json_t *metrics, const char *name)
{
    double error = number_of(metrics, name);

    return error > 0 ? error : 0;
}

struct tie_number tie_number_of(const json_t *row, const char *key, double number)
{
    const json_t *metrics = json_object_get(row, "metrics");
    double time = number_of(metrics, "iteration_time_s");
    double noise = (number_of(metrics, "iteration_time_s_p90") - number_of(metrics, "iteration_time_s_p10")) / time;

    if (!follows_time(key))
        return (struct tie_number){.number = number};
    return (struct tie_number){
        .number = number, .noise = noise > 0 ? noise : 0, .error = error_of(metrics, "expected_error_share"),
        .ratio = error_of(metrics, "expected_ratio_error_share"),
        .ratio_most = error_of(metrics, "expected_ratio_error_share_p90"), .work = work_of(row),
    };
}

/* The share of the smaller number that the two may differ by. */
static double band(const struct tie_number *a, const struct tie_number *b)
{
    if (a->work != b->work)
        return hypot(a->error, b->error);
    return a->ratio > 0 || b->ratio > 0 ? fmax(a->ratio, b->ratio) : fmax(a->error, b->error);
}

bool tie_holds(struct tie_number a, struct tie_number b)
{
    double noise = fmax(a.noise * fabs(a.number), b.noise * fabs(b.number));

    return fabs(a.number - b.number) <= fmax(noise, band(&a, &b) * fmin(fabs(a.number), fabs(b.number)));
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
    array_sort(places, count, sizeof *places, by_place);
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

/* The largest of all that is known. */
static struct tie_number largest_of(const struct tie_number *numbers, size_t count, bool *differ)
{
    struct tie_number most = {0};

    *differ = false;
    for (size_t i = 0; i < count; i++) {
        most.noise = fmax(most.noise, numbers[i].noise);
        most.error = fmax(most.error, numbers[i].error);
        most.ratio = fmax(most.ratio, numbers[i].ratio);
        most.ratio_most = fmax(most.ratio_most, numbers[i].ratio_most);
        *differ |= numbers[i].work != numbers[0].work;
    }
    return most;
}

/* "(60 %: within 5.8 %, 90 %: within 21 %)": so far off are 6 and 9 of 10. */
static void print_within(const char *of, double most_are, double nearly_all, FILE *out)
{
    char within[32], most[32];

    fprintf(out, "%s (60 %%: within %s, 90 %%: within %s)", of, percent_text(most_are, within, sizeof within),
            percent_text(nearly_all, most, sizeof most));
}

void tie_explain(const struct tie_number *numbers, size_t count, FILE *out)
{
    bool differ;
    struct tie_number most = largest_of(numbers, count, &differ);
    char text[32];

    if (most.noise == 0 && most.error == 0 && most.ratio == 0) {
        fputs("place: by the numbers alone; no row states an error or a distribution of them", out);
        return;
    }
    fputs("place: rows that share one cannot be told apart; they differ by no more than ", out);
    if (most.noise > 0)
        fprintf(out, "the noise of the runs (from 10 to 90 %% of them, up to %s)%s",
                percent_text(most.noise, text, sizeof text), most.error > 0 || most.ratio > 0 ? " or " : "");
    if (most.ratio > 0)
        print_within(differ ? "the error of a ratio of two runs of one software, model and GPU" :
                              "the error of a ratio of two runs", most.ratio, most.ratio_most, out);
    if (most.ratio > 0 && differ && most.error > 0)
        print_within(", or, of others, both errors of times", most.error, 2 * most.error, out);
    else if (most.error > 0)
        print_within(most.ratio > 0 ? "; each time" : "the error of a time", most.error, 2 * most.error, out);
}
