/* schedule_rows: what the tests of schedules in chunks share: orders as text, and a replay apart from the program's. */
#ifndef DTSIM_TEST_SCHEDULE_ROWS_H
#define DTSIM_TEST_SCHEDULE_ROWS_H

#include <dirent.h>

#include "simulated.h"

static inline const struct schedule *schedule_named(const char *name)
{
    for (size_t i = 0; schedule_at(i); i++)
        if (!strcmp(schedule_name(i), name))
            return schedule_at(i);
    fail_msg("no schedule %s", name);
    return NULL;
}

/* "0F0,0F1,...": a line a rank. The caller frees it. */
static inline char *orders_of(const struct row *rows, const struct plan *plan)
{
    char *text = NULL, cell[48];
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (int rank = 0; rank < plan->stages; rank++)
        for (size_t i = 0; i < rows[rank].count; i++)
            fprintf(out, "%s%s%s", i ? "," : "", work_format(plan, rank, rows[rank].items[i], cell, sizeof cell),
                    i + 1 < rows[rank].count ? "" : "\n");
    fclose(out);
    return text;
}

static inline void expect_orders(const struct schedule *strategy, const struct plan *plan, const char *expected)
{
    struct row *rows = rows_of(strategy, plan);
    char *orders = orders_of(rows, plan);

    assert_string_equal(orders, expected);
    free(orders);
    rows_release(rows, plan->stages);
}

/* Every micro-batch of every chunk: forward once, then backward once, whole or its input's half before its weights'; a
 * recomputation, if any, stands right before the backward that needs it. */
static inline void expect_complete(const struct row *row, const struct plan *plan)
{
    char *seen = xcalloc((size_t)(plan->chunks * plan->micro_batches), 1);

    for (size_t i = 0; i < row->count; i++) {
        struct work work = row->items[i];
        char *state;

        assert_in_range(work.chunk, 0, plan->chunks - 1);
        assert_in_range(work.mb, 0, plan->micro_batches - 1);
        state = &seen[work.chunk * plan->micro_batches + work.mb];
        if (work.kind == RECOMPUTE) {
            assert_true(plan->recompute && i + 1 < row->count);
            assert_true(row->items[i + 1].chunk == work.chunk && row->items[i + 1].mb == work.mb);
            assert_true(row->items[i + 1].kind == BACKWARD || row->items[i + 1].kind == BACKWARD_INPUT);
            assert_int_equal(*state, 'F');
            continue;
        }
        assert_int_equal(*state, work.kind == FORWARD ? 0 : work.kind == BACKWARD_WEIGHT ? 'I' : 'F');
        if (plan->recompute && (work.kind == BACKWARD || work.kind == BACKWARD_INPUT))
            assert_int_equal(row->items[i - 1].kind, RECOMPUTE);
        *state = work.kind == BACKWARD_WEIGHT ? 'B' : work_letter(work.kind);
    }
    for (int i = 0; i < plan->chunks * plan->micro_batches; i++)
        assert_int_equal(seen[i], 'B');
    free(seen);
}

/* Most forwards done whose backward (or its second half) is not. */
static inline int most_in_flight(const struct row *row)
{
    int now = 0, most = 0;

    for (size_t i = 0; i < row->count; i++) {
        now += row->items[i].kind == FORWARD;
        most = now > most ? now : most;
        now -= row->items[i].kind == BACKWARD || row->items[i].kind == BACKWARD_WEIGHT;
    }
    return most;
}

/* When a stage's forward or backward (its first half) of a micro-batch ended, -1 before that. */
struct ends { double *forward, *backward; };

/* When a cell may begin; -1: not known yet. Stage s + 1 is on the next rank; the first rank follows the last. */
static inline double cell_ready(const struct ends *ends, const struct plan *plan, int stage, struct work work,
                                double communication)
{
    int at = stage * plan->micro_batches + work.mb, last = plan->stages * plan->chunks - 1;

    if (work.kind == FORWARD) {
        double before = stage == 0 ? 0 : ends->forward[at - plan->micro_batches];

        return stage == 0 || before < 0 ? before : before + communication;
    }
    if (work.kind == BACKWARD_WEIGHT)
        return ends->backward[at];
    if (ends->forward[at] < 0 || stage == last)
        return ends->forward[at];
    double gradient = ends->backward[at + plan->micro_batches];
    return gradient < 0 ? -1 : fmax(gradient + communication, ends->forward[at]);
}

/* Every rank runs its row in order, each cell as soon as it may; what comes from another rank takes `communication`.
 * Returns when all is done, -1 if that never happens; in *span, if not NULL, the longest time from a rank's first work
 * to its last. */
static inline double replay_in_order(const struct row *rows, const struct plan *plan,
                                     const double cost[WORK_KIND_COUNT], double communication, double *span)
{
    size_t cells = (size_t)(plan->stages * plan->chunks * plan->micro_batches), ranks = (size_t)plan->stages;
    struct ends ends = {xcalloc(cells, sizeof(double)), xcalloc(cells, sizeof(double))};
    size_t *cursor = xcalloc(ranks, sizeof *cursor), left = 0;
    double *now = xcalloc(ranks, sizeof *now), *begun = xcalloc(ranks, sizeof *begun), makespan = 0;

    for (size_t i = 0; i < cells; i++)
        ends.forward[i] = ends.backward[i] = -1;
    for (size_t rank = 0; rank < ranks; rank++)
        left += rows[rank].count;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t rank = 0; rank < ranks; rank++)
            for (; cursor[rank] < rows[rank].count; cursor[rank]++, left--, moved = true) {
                struct work work = rows[rank].items[cursor[rank]];
                int stage = work.chunk * plan->stages + (int)rank, at = stage * plan->micro_batches + work.mb;
                double ready = cell_ready(&ends, plan, stage, work, ranks > 1 ? communication : 0);

                if (ready < 0)
                    break;
                now[rank] = fmax(now[rank], ready);
                begun[rank] = cursor[rank] ? begun[rank] : now[rank];
                now[rank] += cost[work.kind];
                if (work.kind == FORWARD)
                    ends.forward[at] = now[rank];
                else if (work.kind == BACKWARD || work.kind == BACKWARD_INPUT)
                    ends.backward[at] = now[rank];
            }
    }
    for (size_t rank = 0; rank < ranks; rank++) {
        makespan = fmax(makespan, now[rank]);
        if (span)
            *span = fmax(rank ? *span : 0, now[rank] - begun[rank]);
    }
    free(ends.forward);
    free(ends.backward);
    free(cursor);
    free(now);
    free(begun);
    return left ? -1 : makespan;
}

/* Reads "_p4_v2_m8.csv" into the plan; false where it says more than this. */
static inline bool read_degrees(const char *text, struct plan *plan, int *group)
{
    for (const char *key = text; key; key = strchr(key + 1, '_')) {
        int value = atoi(key + 2);

        if (value <= 0 || !strchr("pvmg", key[1]))
            return false;
        *(key[1] == 'p'   ? &plan->stages
          : key[1] == 'v' ? &plan->chunks
          : key[1] == 'm' ? &plan->micro_batches
                          : group) = value;
    }
    return true;
}

/* Orders as files next to the repository, "<peer>_<schedule>_p<ranks>[_v<chunks>]_m<micro-batches>[_g<group>].csv": the
 * peers' schedules that `of` knows are compared. Returns how many. */
typedef const struct schedule *schedule_of_peer(const char *peer, int group, struct plan *plan);
static inline int expect_orders_of_folder(schedule_of_peer *of)
{
    static const char *const folder = DTSIM_SOURCE_DIR "/../shared/schedules/orders";
    DIR *dir = opendir(folder);
    int compared = 0;

    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct plan plan = {.chunks = 1, .batches = 1};
        const struct schedule *strategy = NULL;
        char *name = strdup(entry->d_name), *degrees = strstr(name, "_p"), *path, *expected;
        int group = 0;

        if (degrees && read_degrees(degrees, &plan, &group)) {
            *degrees = 0;
            strategy = of(name, group, &plan);
        }
        if (strategy && asprintf(&path, "%s/%s", folder, entry->d_name) > 0) {
            expected = read_file(path);
            expect_orders(strategy, &plan, expected);
            compared++;
            free(expected);
            free(path);
        }
        free(name);
    }
    if (dir)
        closedir(dir);
    else
        print_message("no %s: orders kept outside the repository are not compared\n", folder);
    return compared;
}

#endif
