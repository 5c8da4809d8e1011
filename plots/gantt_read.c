/* The Gantt chart: spans.tsv to boxes. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gantt.h"
#include "base/base.h"
#include "files/tsv.h"

enum { MOST_LANES = 1000 };

enum { RANK, STAGE, KIND, NAME, START, END, LANE, COMMUNICATION, OVERLAPPED, REPLICAS };
static const char *const columns[] = {
    "rank", "stage", "kind", "name", "t0", "t1", "lane", "communication", "overlapped", "replicas", NULL,
};

/* The lane of that name, added when it is new; -1 when there are too many. */
static int find_lane(struct gantt *gantt, const struct tsv *tsv, int guess, struct error *err)
{
    const char *name = tsv_text(tsv, LANE);

    if (guess >= 0 && strcmp(gantt->lanes.items[guess].name, name) == 0)
        return guess;
    for (size_t i = 0; i < gantt->lanes.count; i++)
        if (strcmp(gantt->lanes.items[i].name, name) == 0)
            return (int)i;
    if (!*name)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, LANE), "a span without lane");
    if (gantt->lanes.count == MOST_LANES)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, LANE), "more than %d different lanes", MOST_LANES);
    if (strcmp(name, "compute") == 0)
        gantt->compute = (int)gantt->lanes.count;
    *GROW(&gantt->lanes) = (struct gantt_lane){.name = name};
    return (int)gantt->lanes.count - 1;
}

/* The times of the box. */
static int check_times(const struct tsv *tsv, const struct box *box, struct error *err)
{
    double seconds = box->end - box->start;

    if (box->start < 0)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, START), "the span starts before 0");
    if (seconds < 0)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, END), "the span ends before it starts");
    if (box->communication < 0 || box->communication > seconds * (1 + 1e-6) + 1e-12 * box->end)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, COMMUNICATION), "%g s of communication in a span of %g s",
                         box->communication, seconds);
    return 0;
}

static int read_box(struct gantt *gantt, const struct tsv *tsv, int guess, struct box *box, struct error *err)
{
    int failed = 0, overlapped = 0;

    failed |= tsv_integer(tsv, RANK, 0, INT_MAX - 1, &box->rank, err);
    failed |= tsv_integer(tsv, STAGE, -1, INT_MAX - 1, &box->stage, err);
    failed |= tsv_number(tsv, START, &box->start, err);
    failed |= tsv_number(tsv, END, &box->end, err);
    failed |= tsv_number(tsv, COMMUNICATION, &box->communication, err);
    failed |= tsv_integer(tsv, OVERLAPPED, 0, 1, &overlapped, err);
    failed |= tsv_integer(tsv, REPLICAS, 1, INT_MAX, &gantt->stands_for, err);
    box->overlapped = overlapped;
    box->what = tsv_text(tsv, KIND);
    box->name = tsv_text(tsv, NAME);
    box->kind = tone_of(box->what);
    if (box->kind < 0)
        failed = error_add(err, EXIT_INPUT, tsv_loc(tsv, KIND), "unknown kind '%.40s'", box->what);
    failed = failed || check_times(tsv, box, err);
    box->lane = find_lane(gantt, tsv, guess, err);
    return failed || box->lane < 0 ? -1 : 0;
}

/* By rank, lane, time; else as in the file. */
static int compare(const void *left, const void *right)
{
    const struct box *a = left, *b = right;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    if (a->start < b->start || a->start > b->start)
        return a->start < b->start ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int by_number(const void *left, const void *right)
{
    const int *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

/* Tells the virtual stages of one rank apart, which holds boxes first..last-1: every second one is shaded. */
static void shade(struct gantt *gantt, size_t first, size_t last)
{
    struct { int *items; size_t count, capacity; } stages = {0};
    int latest = -1;

    for (size_t i = first; i < last; i++) {
        size_t k = 0;

        if (gantt->boxes.items[i].lane != gantt->compute || gantt->boxes.items[i].stage < 0 ||
            gantt->boxes.items[i].stage == latest)
            continue;
        latest = gantt->boxes.items[i].stage;
        while (k < stages.count && stages.items[k] != latest)
            k++;
        if (k == stages.count)
            *GROW(&stages) = latest;
    }
    array_sort(stages.items, stages.count, sizeof *stages.items, by_number);
    for (size_t i = first; i < last && stages.count > 1; i++) {
        struct box *box = &gantt->boxes.items[i];
        size_t k = 0;

        while (k < stages.count && stages.items[k] != box->stage)
            k++;
        box->shaded = box->lane == gantt->compute && k < stages.count && k % 2 && tone_palette.colours[box->kind].shade;
        gantt->shaded |= box->shaded;
    }
    free(stages.items);
}

int gantt_read(struct gantt *gantt, const struct chart *chart, int run, struct tsv *tsv)
{
    static const char *const optional[] = {"stage", "name", "communication", "overlapped", "replicas", NULL};
    struct error *err = chart->err;
    int before = err->count + err->dropped, guess = -1;
    size_t rows = 0;

    gantt->compute = -1;
    gantt->stands_for = 1;
    tsv->optional = chart->runs[run].other_build ? optional : NULL;
    if (tsv_open(tsv, arena_printf(chart->arena, "%s/spans.tsv", chart->inputs[run]), columns, err))
        return -1;
    while (tsv_next(tsv, err)) {
        struct box box = {.stage = -1, .spans = 1, .order = rows++, .high = 1};

        if (read_box(gantt, tsv, guess, &box, err))
            continue;
        guess = box.lane;
        gantt->ranks = box.rank >= gantt->ranks ? box.rank + 1 : gantt->ranks;
        *GROW(&gantt->boxes) = box;
    }
    if (err->count + err->dropped > before)
        return -1;
    if (rows == 0)
        return error_add(err, EXIT_INPUT, tsv->loc, "no spans: nothing to draw");
    array_sort(gantt->boxes.items, gantt->boxes.count, sizeof *gantt->boxes.items, compare);
    for (size_t i = 0, next; i < gantt->boxes.count; i = next) {
        for (next = i; next < gantt->boxes.count && gantt->boxes.items[next].rank == gantt->boxes.items[i].rank; next++)
            ;
        shade(gantt, i, next);
    }
    return 0;
}

size_t gantt_first(const struct gantt *gantt, int rank)
{
    size_t low = 0, high = gantt->boxes.count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (gantt->boxes.items[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void gantt_release(struct gantt *gantt)
{
    free(gantt->boxes.items);
    free(gantt->lanes.items);
    free(gantt->image.cells);
    memset(gantt, 0, sizeof *gantt);
}
