#include "evidence/anchor.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "evidence/evidence_internal.h"

/* How far off the tables of scenarios/paper are, at 12 places from the least to the most, without the eleven tables of 2023 to 2026
 * that nobody had worked on: of a table the root mean square of the mean log errors of its groups (software, profile and
 * model) of two rows and more, weighted by their rows. From scenarios/paper/errors.tsv. */
static const double SPREADS[] = {
    0.003, 0.031, 0.036, 0.042, 0.052, 0.057, 0.070, 0.086, 0.094, 0.118, 0.140, 0.234,
};
/* The least error of one run, and how differences lower the similarity. They are chosen so that anchors help tables
 * that are far off and do no harm to others (tests/property/published_anchors.c prints by how much). */
#define NOISE 0.07
#define HALF_DOUBLINGS 8.0       /* this number of doublings of GPUs or of a sample halves it, */
#define HALF_TOKENS 2.0          /* this number of doublings of a micro-batch, as for evidence_expect: hosts fall behind
                                    small ones, */
#define HALF_EXPOSED 0.2         /* such a difference of the shares of exposed communication, */
#define OTHER (1 / 1.5)          /* another format or another schedule */
#define OF_CLASSES 0.5           /* of the variance: what classes of time add */
enum { CLASSES_FROM = 3 };

/* A measured time further from the predicted one is a mistake of units more likely than a defect. */
#define FURTHEST 4.0

/* How many standard deviations hold 60 % and 90 % of normally distributed errors. */
#define SIGMA_WITHIN 0.842
#define SIGMA_MOST 1.645
/* The share of a correction that may be wrong: the more a table is off, the more its rows differ in that. */
#define UNSURE 0.5
/* The number of published residuals that enter the mean with the residuals of leaving one out. */
#define PUBLISHED 2.0

static double log_error(const struct anchor *anchor)
{
    return log(anchor->measured / anchor->predicted);
}

static double doublings(double a, double b)
{
    return a > 0 && b > 0 ? fabs(log2(a / b)) : a > 0 || b > 0 ? HALF_DOUBLINGS : 0;
}

static double similarity(const struct likeness *a, const struct likeness *b)
{
    double similar = 1 / (1 + fabs(a->exposed - b->exposed) / HALF_EXPOSED);

    similar /= 1 + doublings(a->gpus, b->gpus) / HALF_DOUBLINGS;
    similar /= 1 + doublings(a->sequence, b->sequence) / HALF_DOUBLINGS;
    similar /= 1 + doublings(a->tokens, b->tokens) / HALF_TOKENS;
    return similar * (evidence_same_format(a->format, b->format) ? 1 : OTHER) *
           (text_same(a->schedule, b->schedule) ? 1 : OTHER);
}

/* The similarity of an anchor and a run with these shares, over spread^2. */
static double covariance(const struct anchor *a, const struct anchor *b, const double shares[ANCHOR_CLASSES], bool classes)
{
    double products = 0;

    for (int class = 0; classes && class < ANCHOR_CLASSES; class++)
        products += a->shares[class] * shares[class];
    return (1 + OF_CLASSES * products) * similarity(&a->likeness, &b->likeness);
}

static const char *differs(struct arena *arena, const struct anchor *anchor, const char *what, const char *is,
                           const char *asked)
{
    return text_same(is, asked) ? NULL :
           arena_printf(arena, "'%s' has %s %s, not %s", anchor->name, what, *is ? is : "none", *asked ? asked : "none");
}

static const char *refused(struct arena *arena, const struct anchor *anchor, const struct anchor *of)
{
    const struct likeness *own = &anchor->likeness, *asked = &of->likeness;
    const char *why = differs(arena, anchor, "software", own->software, asked->software);

    if (!why)
        why = differs(arena, anchor, "GPU", own->gpu, asked->gpu);
    if (!why)
        why = differs(arena, anchor, "kernel times", own->costs, asked->costs);
    if (!why)
        why = differs(arena, anchor, "model", own->model, asked->model);
    if (!why && text_same(own->costs, "given"))
        why = arena_printf(arena, "'%s' is given its times, which tell no model from another", anchor->name);
    if (!why && !(fabs(log_error(anchor)) <= log(FURTHEST)))
        why = arena_printf(arena, "'%s' took %.3g s where %.3g s are predicted, more than %g times apart: units, or "
                           "keys of the scenario, may be wrong", anchor->name, anchor->measured, anchor->predicted, FURTHEST);
    return why;
}

const char *anchors_refused(struct arena *arena, const struct anchors *anchors, const struct anchor *of)
{
    const char *why = "there are none";

    for (size_t i = anchors->list.count; i > 0; i--)
        if (!(why = refused(arena, &anchors->list.items[i - 1], of)))
            return NULL;
    return why;
}

/* The variance of whole tables, given a number of anchors and their mean log error: each quantile of the spread counts
 * by the density of that mean. */
static double spread_squared(double mean, size_t count)
{
    double all = 0, sum = 0;

    for (size_t i = 0; i < COUNT(SPREADS); i++) {
        double squared = SPREADS[i] * SPREADS[i], variance = squared + NOISE * NOISE / (double)count;
        double density = exp(-mean * mean / (2 * variance)) / sqrt(variance);

        all += density;
        sum += density * squared;
    }
    return all > 0 ? sum / all : SPREADS[COUNT(SPREADS) - 1] * SPREADS[COUNT(SPREADS) - 1];
}

/* Gauss and Jordan, in place of the matrix, which is positive definite: no pivot is 0. */
static void invert(double *matrix, size_t n)
{
    for (size_t p = 0; p < n; p++) {
        double pivot = matrix[p * n + p];

        matrix[p * n + p] = 1;
        for (size_t j = 0; j < n; j++)
            matrix[p * n + j] /= pivot;
        for (size_t i = 0; i < n; i++) {
            double of = matrix[i * n + p];

            if (i == p)
                continue;
            matrix[i * n + p] = 0;
            for (size_t j = 0; j < n; j++)
                matrix[i * n + j] -= of * matrix[p * n + j];
        }
    }
}

/* The correction by the anchors that are alike. */
struct fit {
    const struct anchor **of;
    size_t count;
    double *inverse;                 /* of the covariance with noise */
    double *weights;                 /* inverse x log errors */
    double mean;                     /* of the log errors */
    double spread;                   /* squared */
    double noise;                    /* of one run, squared */
};

static void solve(struct fit *fit)
{
    size_t n = fit->count;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            fit->inverse[i * n + j] = fit->spread * covariance(fit->of[i], fit->of[j], fit->of[j]->shares,
                                                               n >= CLASSES_FROM) + (i == j ? fit->noise : 0);
    invert(fit->inverse, n);
    for (size_t i = 0; i < n; i++) {
        fit->weights[i] = 0;
        for (size_t j = 0; j < n; j++)
            fit->weights[i] += fit->inverse[i * n + j] * log_error(fit->of[j]);
    }
}

/* The mean square of the log residuals of leaving out each anchor (Rasmussen and Williams, 5.12). */
static double left_out(const struct fit *fit)
{
    double sum = 0;

    for (size_t i = 0; i < fit->count; i++) {
        double residual = fit->weights[i] / fit->inverse[i * fit->count + i];

        sum += residual * residual / (double)fit->count;
    }
    return sum;
}

/* Where anchors make each other worse, so that their log errors are larger with the others' correction than without, runs
 * are as noisy as that: they tell little of another run. */
static void find_fit(struct fit *fit)
{
    size_t n = fit->count;
    double squares = 0, left;

    for (size_t i = 0; i < n; i++)
        fit->mean += log_error(fit->of[i]) / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += log_error(fit->of[i]) * log_error(fit->of[i]) / (double)n;
    fit->spread = spread_squared(fit->mean, n);
    fit->noise = NOISE * NOISE;
    solve(fit);
    left = left_out(fit);
    if (n > 1 && left > squares && left > fit->noise) {
        fit->noise = left;
        solve(fit);
    }
}

static double factor_of(const struct fit *fit, const struct anchor *of, const double shares[ANCHOR_CLASSES])
{
    double sum = 0;

    for (size_t i = 0; i < fit->count; i++)
        sum += fit->spread * covariance(fit->of[i], of, shares, fit->count >= CLASSES_FROM) * fit->weights[i];
    return exp(sum);
}

static void expect(const struct fit *fit, struct ratio_expectation published, struct correction *correction)
{
    double count = fit->count < 2 ? 0 : (double)fit->count, squared = count > 0 ? left_out(fit) : 0;
    double sigma = published.within / SIGMA_WITHIN, unsure = UNSURE * fit->mean, scale;

    if (isnan(sigma)) {
        correction->within = fit->count < CLASSES_FROM ? NAN : SIGMA_WITHIN * sqrt(squared);
        correction->most = fit->count < CLASSES_FROM ? NAN : SIGMA_MOST * sqrt(squared);
        return;
    }
    scale = sqrt((PUBLISHED * (sigma * sigma + unsure * unsure) + count * squared) / (PUBLISHED + count)) / sigma;
    correction->within = published.within * scale;
    correction->most = published.most * scale;
}

struct correction anchors_correct(const struct anchors *anchors, const struct anchor *of,
                                  struct ratio_expectation published)
{
    size_t most = anchors->list.count;
    struct fit fit = {.of = xcalloc(most, sizeof *fit.of)};
    struct correction correction = {.classes = {NAN, NAN, NAN}};
    struct arena arena = {0};

    for (size_t i = 0; i < most; i++)
        if (!refused(&arena, &anchors->list.items[i], of))
            fit.of[fit.count++] = &anchors->list.items[i];
    BUG_IF(!fit.count);
    fit.inverse = xcalloc(fit.count * fit.count, sizeof *fit.inverse);
    fit.weights = xcalloc(fit.count, sizeof *fit.weights);
    find_fit(&fit);
    correction.used = fit.count;
    correction.factor = factor_of(&fit, of, of->shares);
    for (int class = 0; fit.count >= CLASSES_FROM && class < ANCHOR_CLASSES; class++) {
        double alone[ANCHOR_CLASSES] = {0};

        alone[class] = 1;
        correction.classes[class] = factor_of(&fit, of, alone);
    }
    expect(&fit, published, &correction);
    free(fit.weights);
    free(fit.inverse);
    free(fit.of);
    arena_release(&arena);
    return correction;
}

size_t anchors_same(const struct anchors *anchors, const struct anchor *of, double predicted, double *measured, double *apart)
{
    const double same = 1e-4;        /* by which engines differ */
    double sum = 0, least = INFINITY, most = 0;
    struct arena arena = {0};
    size_t count = 0;

    for (size_t i = 0; i < anchors->list.count; i++) {
        const struct anchor *anchor = &anchors->list.items[i];

        if (refused(&arena, anchor, of) || similarity(&anchor->likeness, &of->likeness) <= 1 - same ||
            fabs(log(anchor->predicted / predicted)) >= same)
            continue;
        count++;
        sum += log(anchor->measured);
        least = fmin(least, anchor->measured);
        most = fmax(most, anchor->measured);
    }
    arena_release(&arena);
    *measured = !count ? NAN : count == 1 ? least : exp(sum / (double)count);
    *apart = count ? most / least - 1 : NAN;
    return count;
}
