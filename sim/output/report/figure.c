#include "report/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf.h"
#include "run/run.h"
#include "schedule/schedule.h"

/* An action is a cell, or several that overlap. How many cells it is. */
static size_t action_length(const struct row *row, size_t first)
{
    size_t last = first;

    while (row->items[last].with_next)
        last++;
    return last - first + 1;
}

/* "2F5", or "(2F5;1B3)O" with the word of several that overlap. */
static char *action_format(const struct plan *plan, int rank, const struct row *row, size_t first, const char *word,
                           char *buffer, size_t size)
{
    size_t length = action_length(row, first), at = 0;
    char cell[40];

    for (size_t i = 0; i < length; i++)
        at += (size_t)snprintf(buffer + at, size - at, "%s%s", length == 1 ? "" : i ? ";" : "(",
                               work_format(plan, rank, row->items[first + i], cell, sizeof cell));
    if (length > 1)
        snprintf(buffer + at, size - at, ")%s", word);
    return buffer;
}

/* PyTorch's word for a forward and a backward that overlap. It has none for two forwards in one pass. */
static const char *overlap_word(const struct work *pair)
{
    return pair[0].with_next && pair[0].kind == pair[1].kind ? "O" : "OVERLAP_F_B";
}

const char *orders_print(const struct workload *workload, FILE *out)
{
    const struct plan *plan = &workload->plan;
    struct row *rows = rows_copy(workload->rows, plan->stages);
    bool two = false, recomputes = false;
    char cell[96];

    rows_strip_updates(rows, plan->stages);
    for (int rank = 0; rank < plan->stages; rank++)
        for (size_t i = 0, length; i < rows[rank].count; i += length) {
            const struct work *work = &rows[rank].items[i];

            length = action_length(&rows[rank], i);
            two |= length > 1 && work[0].kind == work[1].kind;
            recomputes |= work->kind == RECOMPUTE;
            fprintf(out, "%s%s%s", i ? "," : "",
                    action_format(plan, rank, &rows[rank], i, overlap_word(work), cell, sizeof cell),
                    i + length < rows[rank].count ? "" : "\n");
        }
    rows_release(rows, plan->stages);
    return two                       ? "two forwards in one pass, (...)O"
           : recomputes              ? "recomputation, R"
           : plan_directions(plan) > 1 ? "two directions, @0 and @1"
                                     : NULL;
}

/* One replica's rows on a free network. */
struct replayed {
    const struct plan *plan;
    struct run run;
    struct row *rows;
    struct slot { double start, end; } **cells;  /* s; a rank and cell */
    double slot;                     /* s of the shortest cell; 0: none takes time */
};

static bool have_recomputation(const struct row *rows, int count)
{
    for (int rank = 0; rank < count; rank++)
        for (size_t i = 0; i < rows[rank].count; i++)
            if (rows[rank].items[i].kind == RECOMPUTE)
                return true;
    return false;
}

/* Whether the operation is a further piece of the cell that the rank's last one is of. Where a plan of layers recomputes
 * `within` backwards, their pieces take turns, and a row has the backward alone. */
static bool same_cell(bool within, const struct op *last, const struct op *op)
{
    return op->continues || (within && last && op->mb == last->mb && op->stage == last->stage &&
                             last->what != WHAT_FORWARD &&
                             (op->what == WHAT_RECOMPUTE || last->what == WHAT_RECOMPUTE));
}

/* The works of a rank's compute lane follow its row, which has no updates; a cell may be several pieces. */
static void time_cells(struct replayed *replayed)
{
    const struct program *program = &replayed->run.lowered.program;
    const struct op **last = xcalloc((size_t)program->ranks, sizeof *last);
    size_t *cells = xcalloc((size_t)program->ranks, sizeof *cells);
    bool within = !have_recomputation(replayed->rows, program->ranks);

    replayed->cells = xcalloc((size_t)program->ranks, sizeof *replayed->cells);
    for (int rank = 0; rank < program->ranks; rank++)
        replayed->cells[rank] = xcalloc(replayed->rows[rank].count + 1, sizeof **replayed->cells);
    for (uint32_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct lane *lane = &program->lanes.items[op->lane];
        int rank = lane->rank;

        if (op->kind != OP_COMPUTE || lane->kind != LANE_COMPUTE || op->mb < 0)      /* a copy; an update, packing */
            continue;
        if (!same_cell(within, last[rank], op) && cells[rank] < replayed->rows[rank].count)
            replayed->cells[rank][cells[rank]++].start = replayed->run.timeline.start[i];
        if (cells[rank])
            replayed->cells[rank][cells[rank] - 1].end = replayed->run.timeline.end[i];
        last[rank] = op;
    }
    free(last);
    free(cells);
}

static void measure_slot(struct replayed *replayed)
{
    for (int rank = 0; rank < replayed->run.lowered.program.ranks; rank++) {
        const struct row *row = &replayed->rows[rank];
        struct slot *cells = replayed->cells[rank];

        for (size_t i = 0; i < row->count; i++) {
            double seconds = cells[i].end - cells[i].start;

            if (seconds > 0 && (replayed->slot == 0 || seconds < replayed->slot))
                replayed->slot = seconds;
        }
    }
}

static void replayed_release(struct replayed *replayed)
{
    for (int rank = 0; replayed->cells && rank < replayed->run.lowered.program.ranks; rank++)
        free(replayed->cells[rank]);
    free(replayed->cells);
    rows_release(replayed->rows, replayed->plan->stages);
    run_release(&replayed->run);
}

static int replay_rows(const struct workload *workload, struct replayed *replayed, struct error *err)
{
    const struct simulate_options options = {.engine = ENGINE_IDEAL, .what = LOWER_COMPUTE, .free_network = true};
    int rc = 0;

    *replayed = (struct replayed){.plan = &workload->plan};
    if (simulate(workload, options, &replayed->run, err)) {
        run_release(&replayed->run);
        return -1;
    }
    replayed->rows = rows_copy(workload->rows, workload->plan.stages);
    rows_strip_updates(replayed->rows, workload->plan.stages);
    time_cells(replayed);
    measure_slot(replayed);
    if (replayed->slot == 0 || replayed->run.timeline.makespan / replayed->slot > 1e7) {
        rc = error_add(
            err, EXIT_INPUT, node_loc(workload->scenario->node, "model"),
            "model: no work takes time, or one 10 million times less than the whole; there is no slot to draw");
        replayed_release(replayed);
    }
    return rc;
}

/* The slots [*from, *to) of a cell; false when its times are no multiples of the slot. */
static bool cell_slots(const struct replayed *replayed, int rank, size_t i, int *from, int *to)
{
    struct slot cell = replayed->cells[rank][i];
    double start = cell.start / replayed->slot, end = cell.end / replayed->slot;

    *from = (int)lround(start);
    *to = (int)lround(end);
    return fabs(start - *from) < 1e-6 && fabs(end - *to) < 1e-6;
}

static int check_slots(const struct replayed *replayed, struct error *err)
{
    const struct scenario *scenario = replayed->run.workload->scenario;
    int from, to;
    char slot[48];

    for (int rank = 0; rank < replayed->plan->stages; rank++)
        for (size_t i = 0; i < replayed->rows[rank].count; i++)
            if (!cell_slots(replayed, rank, i, &from, &to))
                return error_add(err, EXIT_INPUT, node_loc(scenario->node, "model"),
                                 "model: the stage times are no multiples of the smallest, %s: no grid can show them; "
                                 "try --figure", unit_format_short(UNIT_TIME, replayed->slot, slot, sizeof slot));
    return 0;
}

/* "S2" is the second rank; where ranks share stages, the second stage, and "S2.1" the first rank of it. */
static int row_label(const struct plan *plan, int rank, char *buffer, size_t size)
{
    int stage = plan_virtual_stage(plan, rank, 0);

    if (plan_sharers(plan, stage) > 1)
        return snprintf(buffer, size, "S%d.%d", stage + 1, rank - plan_rank(plan, 0, stage, 0, NULL) + 1);
    return snprintf(buffer, size, "S%d", (plan_shares(plan) ? stage : rank) + 1);
}

static void grid_row(const struct replayed *replayed, int rank, int slots, FILE *out)
{
    int next = 0, from, to;
    const struct row *row = &replayed->rows[rank];
    char cell[96];

    row_label(replayed->plan, rank, cell, sizeof cell);
    fputs(cell, out);
    for (size_t i = 0; i < row->count; i += action_length(row, i)) {
        int unused;

        cell_slots(replayed, rank, i, &from, &unused);
        cell_slots(replayed, rank, i + action_length(row, i) - 1, &unused, &to);
        action_format(replayed->plan, rank, row, i, "O", cell, sizeof cell);
        for (; next < from; next++)
            fputc(',', out);
        for (; next < to; next++)
            fprintf(out, ",%s%s", cell, next > from ? "~" : "");
    }
    for (; next < slots; next++)
        fputc(',', out);
    fputc('\n', out);
}

int grid_print(const struct workload *workload, FILE *out, struct error *err)
{
    struct replayed replayed;
    int slots;

    if (replay_rows(workload, &replayed, err))
        return -1;
    if (check_slots(&replayed, err)) {
        replayed_release(&replayed);
        return -1;
    }
    slots = (int)lround(replayed.run.timeline.makespan / replayed.slot);
    fputs("row", out);
    for (int s = 1; s <= slots; s++)
        fprintf(out, ",%d", s);
    fputc('\n', out);
    for (int rank = 0; rank < workload->plan.stages; rank++)
        grid_row(&replayed, rank, slots, out);
    replayed_release(&replayed);
    return 0;
}

enum { COLUMNS = 100 };

/* "F1"; of a further chunk "F1b", or "f1" where a rank has two chunks by nature. */
static size_t cell_draw(const struct plan *plan, struct work work, char *buffer, size_t size)
{
    char letter = work_letter(work.kind);

    if (work.chunk && (plan->placement == PLACEMENT_LOOP || plan->placement == PLACEMENT_TABLE))
        return (size_t)snprintf(buffer, size, "%c%d%c", letter, work.mb + 1, 'a' + work.chunk % 26);
    return (size_t)snprintf(buffer, size, "%c%d", work.chunk ? letter - 'A' + 'a' : letter, work.mb + 1);
}

/* "F1 F2 B1 ~": a cell a slot. What is overlapped is joined, "F2+B1 ~", the time of all being the sum. */
static void draw_cells(const struct replayed *replayed, int rank, int slots, int width, FILE *out)
{
    const struct row *row = &replayed->rows[rank];
    int next = 0, from, to;

    for (size_t i = 0; i < row->count; i++) {
        char cell[32];

        cell_slots(replayed, rank, i, &from, &to);
        cell_draw(replayed->plan, row->items[i], cell, sizeof cell);
        for (; next < from; next++)
            fprintf(out, " %-*s", width, ".");
        for (; next < to; next++)
            fprintf(out, "%c%-*s", i > 0 && row->items[i - 1].with_next && next == from ? '+' : ' ', width,
                    next > from ? "~" : cell);
    }
    for (; next < slots; next++)
        fprintf(out, " %-*s", width, ".");
}

/* One character a column: the rank's work in the middle of the column's time; O where several overlap. */
static void draw_line(const struct replayed *replayed, int rank, int columns, FILE *out)
{
    const struct work *work = replayed->rows[rank].items;
    double width = replayed->run.timeline.makespan / columns;
    size_t i = 0;

    fputc(' ', out);
    for (int c = 0; c < columns; c++) {
        double middle = (c + 0.5) * width;

        while (i < replayed->rows[rank].count && replayed->cells[rank][i].end <= middle)
            i++;
        bool busy = i < replayed->rows[rank].count && replayed->cells[rank][i].start <= middle;
        bool several = busy && (work[i].with_next || (i > 0 && work[i - 1].with_next));
        fputc(several ? 'O' : busy ? work_letter(work[i].kind) : '.', out);
    }
}

static int widest_cell(const struct replayed *replayed)
{
    size_t widest = 1;

    for (int rank = 0; rank < replayed->plan->stages; rank++)
        for (size_t i = 0; i < replayed->rows[rank].count; i++) {
            size_t width = cell_draw(replayed->plan, replayed->rows[rank].items[i], NULL, 0);

            widest = width > widest ? width : widest;
        }
    return (int)widest;
}

/* Lines end where the last thing on them does. */
static void end_line(char *line, FILE *out)
{
    size_t length = strlen(line);

    while (length && line[length - 1] == ' ')
        length--;
    fprintf(out, "%.*s\n", (int)length, line);
}

int figure_print(const struct workload *workload, FILE *out, struct error *err)
{
    struct replayed replayed;
    struct error ignored = {0};
    char time[48];
    double makespan;
    int slots, label, width;
    bool cells;

    if (replay_rows(workload, &replayed, err))
        return -1;
    makespan = replayed.run.timeline.makespan;
    slots = (int)lround(makespan / replayed.slot);
    label = snprintf(NULL, 0, "S%d", workload->plan.stages);
    for (int rank = 0; rank < workload->plan.stages; rank++) {
        int length = row_label(&workload->plan, rank, time, sizeof time);

        label = length > label ? length : label;
    }
    width = widest_cell(&replayed);
    cells = label + 1 + (double)slots * (width + 1) <= COLUMNS && !check_slots(&replayed, &ignored);
    error_release(&ignored);
    for (int rank = workload->plan.stages - 1; rank >= 0; rank--) {
        char *line = NULL;
        size_t size = 0;
        FILE *memory = text_open(&line, &size);

        row_label(&workload->plan, rank, time, sizeof time);
        fprintf(memory, "%-*s ", label, time);
        if (cells)
            draw_cells(&replayed, rank, slots, width, memory);
        else
            draw_line(&replayed, rank, COLUMNS - label - 2, memory);
        text_close(memory, &line);
        end_line(line, out);
        free(line);
    }
    if (!cells)
        fprintf(out, "%*s a column is %s and shows the work in its middle; shorter works may be missing\n", label, "",
                unit_format_short(UNIT_TIME, makespan / (COLUMNS - label - 2), time, sizeof time));
    replayed_release(&replayed);
    return 0;
}
