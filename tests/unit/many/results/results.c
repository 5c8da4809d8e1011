/* results: what is read back does not depend on how rows lie in their files, nor on how many of them are held at once.
 * The oracle holds all rows and chooses among them once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "results/results.h"
#include "store_place.h"

enum { ROWS = 3000 };

static void place_remove(const struct place *place)
{
    unlink(place->file);
    assert_int_equal(rmdir(place->folder), 0);
}

static int below(int i, int which, int end)
{
    return (int)(random_bits((uint64_t)which, (uint64_t)i) % (uint64_t)end);
}

/* Row i: few different numbers, so that many rows are alike; some did not fit, some failed. */
static void write_row(FILE *file, int i, const char *status)
{
    if (!status)
        status = !(i % 7) ? "infeasible" : !(i % 11) ? "error" : "ok";
    fprintf(file, "{\"id\":\"%08x%024x\",\"version\":\"v\",\"point\":{\"a\":%d,\"b\":%d%s},\"engine\":\"ideal\","
            "\"status\":\"%s\",", (unsigned)i * 2654435761u, (unsigned)i, i, i % 13, i % 50 ? "" : ",\"c\":1", status);
    if (!strcmp(status, "ok"))
        fprintf(file, "\"metrics\":{\"samples_per_s\":%d,\"x\":%d,\"y\":%d}}\n", below(i, 1, 40), below(i, 2, 1000),
                below(i, 3, 1000));
    else if (!strcmp(status, "infeasible"))
        fprintf(file, "\"rule\":\"%s\",\"reason\":\"reason %d\",\"metrics\":{\"memory_margin_bytes\":%d}}\n",
                i % 2 ? "memory" : "gpus", i, -1 - below(i, 4, 50));
    else
        fputs("\"reason\":\"it broke\",\"metrics\":{}}\n", file);
}

/* All rows in the order of a permutation; some ids twice, of which one row failed. */
static void write_rows(const struct place *place, uint64_t order)
{
    FILE *file = fopen(place->file, "w");

    assert_non_null(file);
    fputs("{\"dtsim_sweep\":1,\"version\":\"v\",\"objectives\":{\"y\":\"max\",\"x\":\"min\"}}\n", file);
    for (int n = 0; n < ROWS; n++) {
        int i = order ? (int)random_permuted(order, (uint64_t)n, ROWS) : n;

        if (!(i % 29))
            write_row(file, i, "crash");
        write_row(file, i, NULL);
        if (!(i % 31) && i % 11)
            write_row(file, i, "timeout");
    }
    fclose(file);
}

/* What is asked for. */
struct asked { bool once, front; const char *per, *by; size_t most; };

static void choose_now(struct results *results, const struct asked *asked)
{
    int keys[] = {results_find(results, "x"), results_find(results, "y")};

    results_keep_numbers(results, keys, asked->front ? 2 : 0);
    if (asked->front) {
        results_front(results, keys, (const bool[]){false, true}, 2, (struct results_keys){NULL, 0});
        return;
    }
    results_sort(results, results_find(results, asked->by), true);
    if (asked->per)
        results_per(results, (struct results_keys){(const int[]){results_find(results, asked->per)}, 1}, 1);
    results_keep_first(results, asked->most);
}

static void choose(struct results *results, const void *context)
{
    const struct asked *asked = context;

    if (!asked->once)
        choose_now(results, asked);
    assert_true(asked->once || asked->front || results->rows.count <= asked->most);
}

/* The answer as text: keys, rows and how all ended. */
static char *answer(const struct place *place, struct asked asked, const char *where)
{
    const char *const folders[] = {place->folder};
    const struct results_question question = {where, choose, &asked};
    struct results results;
    struct error err = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (results_open(folders, 1, &results, &err) || results_read(&results, &question, &err))
        fail_msg("%s", err.messages[0].text);
    if (asked.once)
        choose_now(&results, &asked);
    for (size_t k = 0; k < results.keys.count; k++)
        fprintf(out, "%s ", results.keys.items[k].name);
    for (size_t i = 0; i < results.rows.count; i++) {
        fputc('\n', out);
        json_dumpf(results.rows.items[i], out, JSON_COMPACT);
    }
    fputc('\n', out);
    tally_print(&results.tally, out);
    fclose(out);
    results_release(&results);
    return text;
}

static void test_streamed(void **state)
{
    static const struct asked asked[] = {
        {.by = "samples_per_s", .most = 10}, {.by = "x", .most = 100}, {.by = "x", .most = ROWS},
        {.by = "y", .per = "b", .most = 5}, {.by = "samples_per_s", .per = "b", .most = ROWS}, {.front = true},
    };
    static const char *const where[] = {NULL, "a % 3 == 0 && b > 2"};
    struct place place = place_make();

    (void)state;
    for (size_t i = 0; i < COUNT(asked) * COUNT(where); i++) {
        struct asked once = asked[i / 2];
        char *whole, *streamed;

        once.once = true;
        write_rows(&place, 0);
        whole = answer(&place, once, where[i % 2]);
        for (uint64_t order = 0; order < 3; order++) {
            write_rows(&place, order);
            streamed = answer(&place, asked[i / 2], where[i % 2]);
            assert_string_equal(whole, streamed);
            free(streamed);
        }
        free(whole);
    }
    place_remove(&place);
}

/* Of an id that stands more than once the last row that did not fail counts; counts are of ids. */
static void test_doubled(void **state)
{
    struct place place = place_make();
    char *text;

    (void)state;
    write_rows(&place, 1);
    text = answer(&place, (struct asked){.by = "a", .most = ROWS}, "status == \"timeout\" || status == \"crash\"");
    assert_non_null(strstr(text, "\n0 points:"));        /* each of them has a better row, or a later one */
    free(text);
    text = answer(&place, (struct asked){.by = "a", .most = 1}, NULL);
    assert_non_null(strstr(text, "\n3000 points: 2337 ok, 429 infeasible, 234 error\n"));
    free(text);
    place_remove(&place);
}

static void test_keys(void **state)
{
    struct place place = place_make();
    char *text;

    (void)state;
    write_rows(&place, 2);
    text = answer(&place, (struct asked){.by = "a", .most = 1}, NULL);
    assert_non_null(strstr(text, "a b c rank status engine verified_engine software in_framework model gpu rule reason id version samples_per_s x y "
                           "memory_margin_bytes \n"));
    free(text);
    place_remove(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streamed), cmocka_unit_test(test_doubled), cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests_name("results", tests, NULL, NULL);
}
