/* row: the row of a point has one id, whoever writes it, and the id tells scenarios apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <unistd.h>

#include "process/pool.h"
#include "sweep/row.h"
#include "sweep/sweep.h"

static const char text[] =
    "base: {model: {stages: {forward: 1 s, backward: 2 s}}, cluster: ideal, batch: {micro_batches: 4}}\n"
    "sweep:\n"
    "  grid: {strategy.schedule: [gpipe, 1f1b], strategy.pipeline: [1, 2, 3], strategy.tensor: [1, 2]}\n"
    "  include: [{strategy.schedule: gpipe, strategy.pipeline: 2}]\n";  /* tensor 2 is refused: no transformer */
enum { POINTS = 13, SAME = 2 };  /* the point that is included is one of the grid */

static void row_made(const struct row_maker *maker, uint64_t number, struct row_head *head)
{
    char note[POOL_NOTE] = "", *reply = NULL;
    size_t length;
    FILE *out = open_memstream(&reply, &length);
    struct error err = {0};
    json_t *row;

    row_make(maker, number, note, out);
    fclose(out);
    row = json_loads(row_split(reply, length, head, &err), 0, NULL);
    assert_string_equal(head->id, note);
    assert_string_equal(head->id, store_id(row));
    assert_int_equal(head->status, outcome_of(row));
    json_decref(row);
    free(reply);
}

static void test_ids(void **state)
{
    char path[] = "/tmp/dtsim-row-XXXXXX";
    const struct store none = {.fd = -1};
    struct row_head heads[POINTS];
    struct sweep sweep;
    struct error err = {0};
    FILE *file = fdopen(mkstemp(path), "w");

    (void)state;
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    if (sweep_load(path, NULL, 0, NULL, &sweep, &err))
        fail_msg("%s", err.messages[0].text);
    struct row_maker maker = {.points = &sweep.points, .store = &none, .engine = "simulation.engine=ideal"};
    assert_int_equal(row_maker_init(&maker, &err), 0);
    for (uint64_t i = 0; i < POINTS; i++) {
        json_t *lost[2];

        row_made(&maker, i, &heads[i]);
        /* whether its worker died before it knew the id or later */
        lost[0] = row_lost(&maker, i, "", OUTCOME_CRASH, "it broke", &err);
        lost[1] = row_lost(&maker, i, heads[i].id, OUTCOME_TIMEOUT, "it took long", &err);
        for (int k = 0; k < 2; k++) {
            assert_string_equal(store_id(lost[k]), heads[i].id);
            assert_true(outcome_failed(outcome_of(lost[k])));
            json_decref(lost[k]);
        }
        for (uint64_t j = 0; j < i; j++)
            assert_true(!strcmp(heads[i].id, heads[j].id) == (i == POINTS - 1 && j == SAME));
    }
    sweep_release(&sweep);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ids)};

    return cmocka_run_group_tests_name("row", tests, NULL, NULL);
}
