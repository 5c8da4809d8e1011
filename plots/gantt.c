/* The Gantt chart: which ranks and which time it shows. */
#include "gantt.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/tsv.h"
#include "records.h"

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

static int bad_ranks(const struct gantt *gantt, const char *text, int most, struct error *err)
{
    return error_add(err, EXIT_USAGE, (struct loc){0}, "--ranks: expected ranks such as 0,4-7, at most %d of 0 to %d, "
                     "found '%.60s'", most, gantt->ranks - 1, text);
}

/* Ranks such as "0,4-7", at most `most` of them. */
static int want_listed(const struct gantt *gantt, const char *text, int most, struct choice *choice, struct error *err)
{
    for (const char *at = text;; at++) {
        char *end;
        long long first = strtoll(at, &end, 10), last = first;

        if (end == at || *at == '-' || *at == '+')
            return bad_ranks(gantt, text, most, err);
        at = end;
        if (*at == '-') {
            last = strtoll(at + 1, &end, 10);
            if (end == at + 1)
                return bad_ranks(gantt, text, most, err);
            at = end;
        }
        if ((*at && *at != ',') || first < 0 || last < first || last >= gantt->ranks)
            return bad_ranks(gantt, text, most, err);
        want(choice, (int)first, (int)(last - first) + 1);
        if (!*at)
            return choice->count > most ? bad_ranks(gantt, text, most, err) : 0;
    }
}

/* How many times as long the kernels of a rank take: 1 but of stragglers. */
static double slower_of(const struct headline *result, int rank)
{
    const json_t *list = json_object_get(result->result, "stragglers");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const struct record straggler = {json_array_get(list, i), result->path};

        if (record_number_or(&straggler, "rank", -1) == rank)
            return record_number_or(&straggler, "slower", 1);
    }
    return 1;
}

/* The GPU of a rank; NULL: all have the same. */
static const char *gpu_of(const struct headline *result, int rank)
{
    return json_string_value(json_array_get(json_object_get(result->result, "rank_gpus"), (size_t)rank));
}

/* Of many ranks the first, middle and last, at most `most`, and some stragglers, each of which takes a row from the
 * last ones. Returns how many stragglers. */
static int want_parts(struct gantt *gantt, const struct headline *result, int first, int count, int most,
                      struct choice *choice)
{
    int part = most / 3 < GANTT_PART ? most / 3 : GANTT_PART, stragglers = 0;

    for (int rank = first; rank < first + count && stragglers < part / 2; rank++)
        if (slower_of(result, rank) > 1) {
            want(choice, rank, 1);
            stragglers++;
        }
    want(choice, first, part);
    want(choice, first + (count - part) / 2, part);
    want(choice, first + count - part + stragglers, part - stragglers);
    gantt->parts = true;
    return stragglers;
}

/* One replica where it stands for all; else all; of one of `runs` runs. Says which. */
static int choose(struct gantt *gantt, const struct chart *chart, const struct headline *result, int runs,
                  struct choice *choice)
{
    const struct plot_view *view = chart->view;
    int replicas, all, first = 0, count = gantt->ranks, most = GANTT_RANKS / runs, pipeline = result->pipeline;
    int stragglers;

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
        return want_listed(gantt, view->ranks, most, choice, chart->err);
    }
    if (view->replica >= 0 || (all > 1 && replicas_alike(gantt, pipeline))) {
        first = pipeline * (view->replica < 0 ? 0 : view->replica);
        count = pipeline;
        gantt->note = view->replica < 0 ? arena_printf(chart->arena, "1 of %d replicas, all alike", all) :
                      arena_printf(chart->arena, "replica %d, one of %d", view->replica, all);
    }
    if (count <= most) {
        want(choice, first, count);
        return 0;
    }
    stragglers = want_parts(gantt, result, first, count, most, choice);
    if (runs == 1)
        gantt->image = (struct image){.first = first, .ranks = count, .pipeline = pipeline};
    gantt->note = arena_printf(chart->arena, "%s%sfirst, middle%s last of %d ranks%s", gantt->note ? gantt->note : "",
                               gantt->note ? "; " : "", stragglers ? ", slow and" : " and", count,
                               runs == 1 ? "; below, all of them" : "");
    return 0;
}

/* The rows of the chosen ranks; an empty rank has one too. */
static void place_rows(struct gantt *gantt, const struct headline *result, const struct choice *choice)
{
    double top = 0;

    for (int rank = 0; rank < gantt->ranks; rank++) {
        struct row *row = &gantt->rows[gantt->nrows];

        if (!choice->wanted[rank])
            continue;
        if (gantt->nrows && row[-1].rank + 1 < rank && gantt->parts)
            top += PART_GAP;
        *row = (struct row){.rank = rank, .top = top++, .slower = slower_of(result, rank),
                             .gpu = gpu_of(result, rank)};
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
static int strip_of(struct gantt_stack *stack, const char *lane)
{
    size_t length = strcspn(lane, ".");
    int i = 0;

    while (i < stack->nlanes &&
           (strcspn(stack->lanes[i], ".") != length || strncmp(stack->lanes[i], lane, length) != 0))
        i++;
    if (i == stack->nlanes && i < GANTT_LANES)
        stack->lanes[stack->nlanes++] = lane;
    stack->nstrips = stack->nlanes < GANTT_STRIPS ? stack->nlanes : GANTT_STRIPS;
    return i < GANTT_STRIPS ? i : GANTT_STRIPS - 1;
}

/* Strips for the lanes in which something takes time, in the order in which the files first name them. */
static void place_strips(struct gantt_stack *stack, struct gantt *gantt)
{
    bool *used = xcalloc(gantt->lanes.count + 1, sizeof *used);

    for (size_t i = 0; i < gantt->boxes.count; i++)
        used[gantt->boxes.items[i].lane] = true;
    for (size_t i = 0; i < gantt->lanes.count; i++) {
        struct gantt_lane *lane = &gantt->lanes.items[i];

        lane->strip = used[i] && (int)i != gantt->compute ? strip_of(stack, lane->name) : -1;
    }
    free(used);
}

/* The time that is shown, of all runs the same. */
static int choose_time(struct gantt_stack *stack, const struct chart *chart)
{
    double to = 0;

    for (int r = 0; r < stack->count; r++) {
        struct gantt *gantt = &stack->runs[r];

        gantt->until = chart->runs[r].iteration;
        for (size_t i = 0; i < gantt->boxes.count; i++)
            gantt->until = fmax(gantt->until, gantt->boxes.items[i].end);
        to = fmax(to, gantt->until);
    }
    if (chart->view->from >= to)
        return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "--from: the run ends at %g s", to);
    if (chart->view->to > 0)
        to = fmin(to, chart->view->to);
    for (int r = 0; r < stack->count; r++) {
        stack->runs[r].from = chart->view->from;
        stack->runs[r].to = to;
    }
    return 0;
}

/* The rows and boxes of one run. */
static int lay_out_run(struct gantt_stack *stack, struct gantt *gantt, const struct chart *chart,
                       const struct headline *result)
{
    struct choice choice = {.wanted = xcalloc((size_t)gantt->ranks + 1, sizeof *choice.wanted)};
    int failed = choose(gantt, chart, result, stack->count, &choice), columns = GANTT_COLUMNS;

    if (!failed) {
        if (gantt->image.ranks)
            gantt_image(gantt);
        place_rows(gantt, result, &choice);
        drop_others(gantt, &choice);
        if (gantt->nrows * stack->count > GANTT_RANKS / 2)
            columns /= 2;
        clip(gantt);
        gantt_merge(gantt, (gantt->to - gantt->from) / columns);
        gantt_overlap(gantt);
        place_strips(stack, gantt);
    }
    free(choice.wanted);
    return failed;
}

static int lay_out(struct gantt_stack *stack, const struct chart *chart)
{
    size_t boxes = 0;
    int failed = choose_time(stack, chart);

    for (int r = 0; r < stack->count && !failed; r++) {
        struct gantt *gantt = &stack->runs[r];
        const struct headline *result = &chart->runs[r];

        failed = lay_out_run(stack, gantt, chart, result);
        boxes += gantt->boxes.count;
        gantt->steady_from = headline_number_or(result, "steady_state.from_s", 0);
        gantt->steady_to = headline_number_or(result, "steady_state.to_s", 0);
    }
    if (!failed && boxes == 0)
        failed = error_add(chart->err, EXIT_INPUT, (struct loc){.file = chart->dir}, "no span takes any time there: "
                           "nothing to draw");
    return failed;
}

int gantt_draw(struct chart *chart)
{
    struct gantt_stack stack = {.count = chart->ninputs, .headings = chart->ninputs > 1 || chart->look->nlabels};
    struct tsv tables[GANTT_RUNS] = {0};
    int failed = 0;

    if (chart->ninputs > GANTT_RUNS)
        return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "gantt: %d runs; expected at most %d, one above the "
                         "other", chart->ninputs, GANTT_RUNS);
    for (int r = 0; r < stack.count; r++)
        failed |= gantt_read(&stack.runs[r], chart, r, &tables[r]);
    failed = failed || lay_out(&stack, chart) || chart_open(chart) || gantt_script(chart, &stack);
    for (int r = 0; r < stack.count; r++) {
        gantt_release(&stack.runs[r]);
        tsv_release(&tables[r]);
    }
    return failed ? -1 : 0;
}
