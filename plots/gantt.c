/* The Gantt chart: spans.tsv to boxes. */
#include "gantt.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tsv.h"

enum { MOST_LANES = 1000 };

enum { RANK, STAGE, KIND, NAME, START, END, LANE };
static const char *const columns[] = {"rank", "stage", "kind", "name", "t0", "t1", "lane", NULL};

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
    *GROW(&gantt->lanes) = (struct gantt_lane){.name = name};
    return (int)gantt->lanes.count - 1;
}

static int read_box(struct gantt *gantt, const struct tsv *tsv, int guess, struct box *box, struct error *err)
{
    int failed = 0;

    failed |= tsv_integer(tsv, RANK, 0, INT_MAX, &box->rank, err);
    failed |= tsv_integer(tsv, STAGE, -1, INT_MAX - 1, &box->stage, err);
    failed |= tsv_number(tsv, START, &box->start, err);
    failed |= tsv_number(tsv, END, &box->end, err);
    box->what = tsv_text(tsv, KIND);
    box->name = tsv_text(tsv, NAME);
    box->kind = tone_of(box->what);
    if (box->kind < 0)
        failed = error_add(err, EXIT_INPUT, tsv_loc(tsv, KIND), "unknown kind '%.40s'", box->what);
    if (!failed && box->start < 0)
        failed = error_add(err, EXIT_INPUT, tsv_loc(tsv, START), "the span starts before 0");
    if (!failed && box->end < box->start)
        failed = error_add(err, EXIT_INPUT, tsv_loc(tsv, END), "the span ends before it starts");
    box->lane = find_lane(gantt, tsv, guess, err);
    return failed || box->lane < 0 ? -1 : 0;
}

static int read_spans(struct gantt *gantt, struct tsv *tsv, struct error *err)
{
    int before = err->count + err->dropped, guess = -1;
    size_t rows = 0;

    while (tsv_next(tsv, err)) {
        struct box box = {.spans = 1, .order = rows++};

        if (read_box(gantt, tsv, guess, &box, err))
            continue;
        guess = box.lane;
        *GROW(&gantt->boxes) = box;
    }
    if (err->count + err->dropped > before)
        return -1;
    if (rows == 0)
        return error_add(err, EXIT_INPUT, tsv->loc, "no spans: nothing to draw");
    return 0;
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

static void add_stage(struct row *row, int stage)
{
    if (stage < 0 || row->nstages > GANTT_STAGES)
        return;
    for (int i = 0; i < row->nstages && i < GANTT_STAGES; i++)
        if (row->stages[i] == stage)
            return;
    if (row->nstages < GANTT_STAGES)
        row->stages[row->nstages] = stage;
    row->nstages++;
}

/* Sorts the boxes, gives every rank its row, and drops what has no row and what takes no time. */
static void place_rows(struct gantt *gantt)
{
    size_t kept = 0;
    int rank = -1;

    qsort(gantt->boxes.items, gantt->boxes.count, sizeof *gantt->boxes.items, compare);
    for (size_t i = 0; i < gantt->boxes.count; i++) {
        struct box box = gantt->boxes.items[i];

        gantt->end = fmax(gantt->end, box.end);
        if (box.rank != rank) {
            if (gantt->nrows < GANTT_RANKS)
                gantt->rows[gantt->nrows++].rank = box.rank;
            gantt->ranks++;
        }
        rank = box.rank;
        if (gantt->ranks > gantt->nrows)
            continue;
        if (strcmp(gantt->lanes.items[box.lane].name, "compute") == 0)
            add_stage(&gantt->rows[gantt->nrows - 1], box.stage);
        if (box.end > box.start)
            gantt->boxes.items[kept++] = box;
    }
    gantt->boxes.count = kept;
}

/* The strip of a lane that is drawn: lanes of one kind ("send-next.0", "send-next.1") share one. */
static int strip_of(struct gantt *gantt, const char *lane)
{
    size_t length = strcspn(lane, ".");

    for (int i = 0; i < gantt->nstrips; i++)
        if (strcspn(gantt->strips[i], ".") == length && strncmp(gantt->strips[i], lane, length) == 0)
            return i;
    if (gantt->nstrips == GANTT_STRIPS)
        return GANTT_STRIPS - 1;
    gantt->strips[gantt->nstrips] = lane;
    return gantt->nstrips++;
}

/* Strips for the lanes in which something takes time, in the order in which the file first names them. */
static void place_strips(struct gantt *gantt)
{
    bool *used = xcalloc(gantt->lanes.count + 1, sizeof *used);

    for (size_t i = 0; i < gantt->boxes.count; i++)
        used[gantt->boxes.items[i].lane] = true;
    for (size_t i = 0; i < gantt->lanes.count; i++) {
        struct gantt_lane *lane = &gantt->lanes.items[i];

        lane->strip = -1;
        if (used[i] && strcmp(lane->name, "compute") != 0)
            lane->strip = strip_of(gantt, lane->name);
    }
    free(used);
}

/* The boxes first..last-1 lie in one cell of one lane. Those of a kind become one, kinds in the order of the first. */
static void join(const struct box *boxes, size_t first, size_t last, struct boxes *joined)
{
    double at = boxes[first].start;
    size_t begin = joined->count;

    for (size_t i = first; i < last; i++) {
        size_t k = begin;

        while (k < joined->count && strcmp(joined->items[k].what, boxes[i].what) != 0)
            k++;
        if (k == joined->count) {
            *GROW(joined) = boxes[i];
            continue;
        }
        joined->items[k].end += boxes[i].end - boxes[i].start;
        joined->items[k].spans++;
        joined->items[k].name = "";
    }
    for (size_t k = begin; k < joined->count && joined->count - begin < last - first; k++) {
        struct box *box = &joined->items[k];
        double width = box->end - box->start;

        box->start = at;
        box->end = at += width;
    }
}

void gantt_merge(struct gantt *gantt, double column)
{
    const struct box *boxes = gantt->boxes.items;
    struct boxes joined = {0};
    double cell = GANTT_CELL * column;

    for (size_t i = 0, next; i < gantt->boxes.count; i = next) {
        double here = floor(boxes[i].start / cell);

        for (next = i; next < gantt->boxes.count; next++)
            if (boxes[next].end - boxes[next].start >= column || floor(boxes[next].start / cell) > here ||
                boxes[next].rank != boxes[i].rank || boxes[next].lane != boxes[i].lane)
                break;
        next = next > i ? next : i + 1;
        join(boxes, i, next, &joined);
    }
    if (joined.count < gantt->boxes.count)
        gantt->column = column;
    free(gantt->boxes.items);
    gantt->boxes = joined;
}

void gantt_release(struct gantt *gantt)
{
    free(gantt->boxes.items);
    free(gantt->lanes.items);
    memset(gantt, 0, sizeof *gantt);
}

int gantt_draw(struct chart *chart)
{
    struct gantt gantt = {0};
    struct tsv tsv = {0};
    int failed = tsv_open(&tsv, arena_printf(chart->arena, "%s/spans.tsv", chart->dir), columns, chart->err) ||
                 read_spans(&gantt, &tsv, chart->err);

    if (!failed) {
        place_rows(&gantt);
        place_strips(&gantt);
        gantt.end = fmax(gantt.end, chart->headline.iteration);
        if (gantt.boxes.count == 0)
            failed = error_add(chart->err, EXIT_INPUT, tsv.loc, "no span takes any time: nothing to draw");
    }
    failed = failed || chart_open(chart);
    if (!failed) {
        gantt_merge(&gantt, gantt.end / GANTT_COLUMNS);
        gantt_script(chart, &gantt);
    }
    gantt_release(&gantt);
    tsv_release(&tsv);
    return failed ? -1 : 0;
}
