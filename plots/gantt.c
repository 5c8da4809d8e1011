/* The Gantt chart: which ranks and which time it shows. */
#include "gantt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/tsv.h"

static const double PART_GAP = 0.6;  /* rows between parts */

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

/* Whether every replica in the file does the same at the same time as the first. */
static bool replicas_alike(const struct gantt *gantt, int pipeline)
{
    size_t count = gantt_first(gantt, pipeline);
    const double slack = 1e-9 * gantt->to;

    for (int first = pipeline; first < gantt->ranks; first += pipeline) {
        const struct box *a = gantt->boxes.items, *b = a + gantt_first(gantt, first);

        if (gantt_first(gantt, first + pipeline) - gantt_first(gantt, first) != count)
            return false;
        for (size_t i = 0; i < count; i++, a++, b++)
            if (b->rank != a->rank + first || b->lane != a->lane || b->stage != a->stage ||
                strcmp(b->what, a->what) != 0 || fabs(b->start - a->start) > slack || fabs(b->end - a->end) > slack)
                return false;
    }
    return true;
}

/* Which ranks are shown: wanted[rank]. */
struct choice { bool *wanted; int count; };

static void want(struct choice *choice, int first, int count)
{
    for (int rank = first; rank < first + count; rank++) {
        choice->count += !choice->wanted[rank];
        choice->wanted[rank] = true;
    }
}

static int bad_ranks(const struct gantt *gantt, const char *text, struct error *err)
{
    return error_add(err, EXIT_USAGE, (struct loc){0}, "--ranks: expected ranks such as 0,4-7, at most %d of 0 to %d, "
                     "found '%.60s'", GANTT_RANKS, gantt->ranks - 1, text);
}

/* "0,4-7". */
static int want_listed(const struct gantt *gantt, const char *text, struct choice *choice, struct error *err)
{
    for (const char *at = text;; at++) {
        char *end;
        long first = strtol(at, &end, 10), last = first;

        if (end == at || *at == '-' || *at == '+')
            return bad_ranks(gantt, text, err);
        at = end;
        if (*at == '-') {
            last = strtol(at + 1, &end, 10);
            if (end == at + 1)
                return bad_ranks(gantt, text, err);
            at = end;
        }
        if ((*at && *at != ',') || first < 0 || last < first || last >= gantt->ranks)
            return bad_ranks(gantt, text, err);
        want(choice, (int)first, (int)(last - first) + 1);
        if (!*at)
            return choice->count > GANTT_RANKS ? bad_ranks(gantt, text, err) : 0;
    }
}

/* Of many ranks the first, middle and last. */
static void want_parts(struct gantt *gantt, int first, int count, int pipeline, struct choice *choice)
{
    const int begins[] = {first, first + (count - GANTT_PART) / 2, first + count - GANTT_PART};

    for (size_t i = 0; i < COUNT(begins); i++)
        want(choice, begins[i], GANTT_PART);
    gantt->image.first = first;
    gantt->image.ranks = count;
    gantt->image.pipeline = pipeline;
}

/* One replica where it stands for all; else all. Says which. */
static int choose(struct gantt *gantt, const struct chart *chart, struct choice *choice)
{
    const struct plot_view *view = chart->view;
    int pipeline = chart->runs->pipeline, replicas, all, first = 0, count = gantt->ranks;

    if (pipeline < 1 || gantt->ranks % pipeline)
        pipeline = gantt->ranks;
    replicas = gantt->ranks / pipeline;
    all = replicas * gantt->stands_for;
    if (view->replica >= replicas)
        return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "--replica: found %d; the file has %d replica%s, "
                         "counted from 0%s", view->replica, replicas, replicas == 1 ? "" : "s",
                         gantt->stands_for > 1 ? ", which stand for others that do the same" : "");
    if (view->ranks) {
        gantt->note = arena_printf(chart->arena, "ranks %s of %d", text_clean(chart->arena, view->ranks, 40),
                                   gantt->ranks * gantt->stands_for);
        return want_listed(gantt, view->ranks, choice, chart->err);
    }
    if (view->replica >= 0 || (all > 1 && replicas_alike(gantt, pipeline))) {
        first = pipeline * (view->replica < 0 ? 0 : view->replica);
        count = pipeline;
        gantt->note = view->replica < 0 ? arena_printf(chart->arena, "1 of %d replicas, all alike", all) :
                      arena_printf(chart->arena, "replica %d, one of %d", view->replica, all);
    }
    if (count <= GANTT_RANKS) {
        want(choice, first, count);
        return 0;
    }
    want_parts(gantt, first, count, pipeline, choice);
    gantt->note = arena_printf(chart->arena, "%s%sfirst, middle and last of %d ranks; below, all of them",
                               gantt->note ? gantt->note : "", gantt->note ? "; " : "", count);
    return 0;
}

/* The rows of the chosen ranks; an empty rank has one too. */
static void place_rows(struct gantt *gantt, const struct choice *choice)
{
    double top = 0;

    for (int rank = 0; rank < gantt->ranks; rank++) {
        struct row *row = &gantt->rows[gantt->nrows];

        if (!choice->wanted[rank])
            continue;
        if (gantt->nrows && row[-1].rank + 1 < rank && gantt->image.ranks)
            top += PART_GAP;
        *row = (struct row){.rank = rank, .top = top++};
        for (size_t i = gantt_first(gantt, rank); i < gantt_first(gantt, rank + 1); i++)
            if (gantt->boxes.items[i].lane == gantt->compute)
                add_stage(row, gantt->boxes.items[i].stage);
        gantt->nrows++;
    }
}

/* Drops boxes of other ranks. */
static void drop_others(struct gantt *gantt, const struct choice *choice)
{
    size_t kept = 0;

    for (size_t i = 0; i < gantt->boxes.count; i++)
        if (choice->wanted[gantt->boxes.items[i].rank])
            gantt->boxes.items[kept++] = gantt->boxes.items[i];
    gantt->boxes.count = kept;
}

/* Drops boxes that take no time, and cuts off what is outside the time that is shown. */
static void clip(struct gantt *gantt)
{
    size_t kept = 0;

    for (size_t i = 0; i < gantt->boxes.count; i++) {
        struct box box = gantt->boxes.items[i];
        double seconds = box.end - box.start;

        box.start = fmax(box.start, gantt->from);
        box.end = fmin(box.end, gantt->to);
        if (box.end <= box.start)
            continue;
        box.communication *= (box.end - box.start) / seconds;
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

        lane->strip = used[i] && (int)i != gantt->compute ? strip_of(gantt, lane->name) : -1;
    }
    free(used);
}

/* The time that is shown. */
static int choose_time(struct gantt *gantt, const struct chart *chart)
{
    gantt->to = chart->runs->iteration;
    for (size_t i = 0; i < gantt->boxes.count; i++)
        gantt->to = fmax(gantt->to, gantt->boxes.items[i].end);
    if (chart->view->from >= gantt->to)
        return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "--from: the run ends at %g s", gantt->to);
    gantt->from = chart->view->from;
    gantt->cut = chart->view->to > 0 && chart->view->to < gantt->to;
    if (gantt->cut)
        gantt->to = chart->view->to;
    return 0;
}

static int lay_out(struct gantt *gantt, const struct chart *chart, struct choice *choice)
{
    double column;

    if (choose_time(gantt, chart) || choose(gantt, chart, choice))
        return -1;
    if (gantt->image.ranks)
        gantt_image(gantt);
    place_rows(gantt, choice);
    drop_others(gantt, choice);
    column = (gantt->to - gantt->from) / (gantt->nrows > GANTT_RANKS / 2 ? GANTT_COLUMNS / 2 : GANTT_COLUMNS);
    clip(gantt);
    gantt_merge(gantt, column);
    gantt_stack(gantt);
    place_strips(gantt);
    if (gantt->boxes.count == 0)
        return error_add(chart->err, EXIT_INPUT, (struct loc){.file = chart->dir}, "no span takes any time there: "
                         "nothing to draw");
    return 0;
}

int gantt_draw(struct chart *chart)
{
    struct gantt gantt = {0};
    struct tsv tsv = {0};
    struct choice choice = {0};
    int failed = gantt_read(&gantt, chart, &tsv);

    if (!failed) {
        choice.wanted = xcalloc((size_t)gantt.ranks + 1, sizeof *choice.wanted);
        failed = lay_out(&gantt, chart, &choice) || chart_open(chart) || gantt_script(chart, &gantt);
    }
    free(choice.wanted);
    gantt_release(&gantt);
    tsv_release(&tsv);
    return failed ? -1 : 0;
}
