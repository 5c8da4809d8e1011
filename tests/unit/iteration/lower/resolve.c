/* The order of steps that wait for labels: against rules that can be checked one by one, and against ranks that poll
 * their labels in turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lower/resolve.h"

enum { RANKS = 5, STEPS = 8, LABELS = RANKS * 3 * STEPS, CASES = 3000 };

static int below(uint64_t *seed, int limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((*seed >> 33) % (uint64_t)limit);
}

static void add(struct script *script, uint32_t number, uint32_t need, uint32_t give)
{
    script_add(script, (struct script_step){.number = number});
    if (need != NO_LABEL)
        script_need(script, need);
    if (give != NO_LABEL)
        script_give(script, give);
}

static void add_shared(struct script *script, uint32_t number, uint32_t need)
{
    script_add(script, (struct script_step){.number = number, .shared = true});
    script_need(script, need);
}

/* The numbers of the steps in their order, one after another. */
static void expect_order(const struct script *script, const char *expected)
{
    struct unresolved why = {0};
    char found[256] = "";
    size_t count;
    const struct script_step **order = script_resolve(script, &count, &why);

    assert_null(why.step);
    for (size_t i = 0; i < count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), i ? " %u" : "%u", order[i]->number);
    assert_string_equal(found, expected);
    free(order);
}

/* Two micro-batches forwards and backwards through two ranks. Each rank goes as far as it can before the next one. */
static void test_pipeline(void **state)
{
    struct script script = {.replicas = 1, .labels = 4};

    (void)state;
    script_row(&script);
    add(&script, 10, NO_LABEL, 0);
    add(&script, 11, NO_LABEL, 1);
    add(&script, 12, 2, NO_LABEL);
    add(&script, 13, 3, NO_LABEL);
    script_row(&script);
    add(&script, 20, 0, NO_LABEL);
    add(&script, 21, NO_LABEL, 2);
    add(&script, 22, 1, NO_LABEL);
    add(&script, 23, NO_LABEL, 3);
    expect_order(&script, "10 11 20 21 22 23 12 13");
    script_release(&script);
}

/* A label is there when the last who gives it has given it; the row that did so goes on first, and does the shared step
 * for all. Then the others, from the first replica on. */
static void test_shared(void **state)
{
    struct script script = {.replicas = 3, .labels = 1};

    (void)state;
    for (uint32_t replica = 0; replica < 3; replica++) {
        script_row(&script);
        add(&script, 10 * replica, NO_LABEL, 0);
        add_shared(&script, 99, 0);
        add(&script, 10 * replica + 1, NO_LABEL, NO_LABEL);
    }
    expect_order(&script, "0 10 20 99 21 1 11");
    script_release(&script);
}

/* Without an order: a label that nobody gives, and rows that wait for each other. */
static void test_refusals(void **state)
{
    struct script script = {.replicas = 1, .labels = 3};
    struct unresolved why = {0};
    size_t count;

    (void)state;
    script_row(&script);
    add(&script, 1, 0, 1);
    script_row(&script);
    add(&script, 2, 1, 0);
    free(script_resolve(&script, &count, &why));
    assert_non_null(why.step);
    assert_false(why.nobody);
    assert_int_equal(count, 0);
    script_row(&script);
    add(&script, 3, NO_LABEL, NO_LABEL);
    add(&script, 4, 2, NO_LABEL);
    free(script_resolve(&script, &count, &why));
    assert_true(why.nobody);
    assert_int_equal(why.step->number, 4);
    assert_int_equal(why.label, 2);
    script_release(&script);
}

/* Rows that wait for each other at random. Labels below LABELS belong to a step each, the next ones are given by all. */
static struct script random_script(uint64_t *seed)
{
    struct script script = {.replicas = (uint32_t)(1 + below(seed, 3)), .labels = LABELS + STEPS};
    int rows = RANKS * (int)script.replicas;

    for (int row = 0; row < rows; row++) {
        script_row(&script);
        for (int k = 0; k < STEPS; k++) {
            int meeting = k == STEPS / 2;

            add(&script, (uint32_t)(row * STEPS + k), NO_LABEL, meeting ? (uint32_t)(LABELS + k) : NO_LABEL);
            script_give(&script, (uint32_t)(row * STEPS + k));
            if (meeting)
                add_shared(&script, 1000, (uint32_t)(LABELS + k));
            script_add(&script, (struct script_step){.number = (uint32_t)(2000 + row * STEPS + k)});
            for (int n = below(seed, 3); n > 0 && k > 0; n--)        /* of steps that stand further left: no deadlock */
                script_need(&script, (uint32_t)(below(seed, rows) * STEPS + below(seed, k)));
        }
    }
    return script;
}

struct state { const struct script *script; uint32_t next[RANKS * 3]; int left[LABELS + STEPS]; bool shared; };

/* Does a row's next step if it may; whether it did. */
static bool poll(struct state *all, uint32_t row, const struct script_step **done)
{
    const struct script *script = all->script;
    size_t end = row + 1 < script->rows.count ? script->rows.items[row + 1] : script->steps.count;
    const struct script_step *step = &script->steps.items[all->next[row]];

    if (all->next[row] == end)
        return false;
    for (size_t i = 0; i < step->needs.count; i++)
        if (all->left[script->needs.items[step->needs.first + i]])
            return false;
    for (size_t i = 0; i < step->gives.count; i++)
        all->left[script->gives.items[step->gives.first + i]]--;
    all->next[row]++;
    *done = step->shared && all->shared ? NULL : step;
    all->shared |= step->shared;
    return true;
}

/* The definition of the order: ranks poll one after another, in turns, until all rows end. */
static void expect_polled(const struct script *script, const struct script_step *const *order, size_t count)
{
    struct state all = {.script = script};
    size_t at = 0;

    memcpy(all.next, script->rows.items, script->rows.count * sizeof *all.next);
    for (size_t i = 0; i < script->gives.count; i++)
        all.left[script->gives.items[i]]++;
    for (bool any = true; any;) {
        any = false;
        for (uint32_t rank = 0; rank < RANKS; rank++)
            for (bool moved = true; moved;) {
                moved = false;
                for (uint32_t replica = 0; replica < script->replicas; replica++)
                    for (const struct script_step *step; poll(&all, rank * script->replicas + replica, &step);) {
                        moved = any = true;
                        if (step)
                            assert_ptr_equal(order[at++], step);
                    }
            }
    }
    assert_int_equal(at, count);
}

static void test_as_polled(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct script script = random_script(&seed);
        struct unresolved why = {0};
        size_t count;
        const struct script_step **order = script_resolve(&script, &count, &why);

        assert_null(why.step);
        assert_int_equal(count, script.steps.count - script.rows.count + 1);
        expect_polled(&script, order, count);
        free(order);
        script_release(&script);
    }
}

/* A spent budget ends the search; no step is reported as waiting. */
static void test_budget(void **state)
{
    struct progress progress;
    struct script script = {.replicas = 1, .labels = 1, .progress = &progress};
    struct unresolved why = {0};
    size_t count = 9;

    (void)state;
    script_row(&script);
    add(&script, 1, NO_LABEL, 0);
    progress_begin(&progress, "--budget", 1e-9, 0);
    assert_null(script_resolve(&script, &count, &why));
    assert_true(progress.over && !why.step);
    assert_int_equal(count, 0);
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline), cmocka_unit_test(test_shared), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_as_polled), cmocka_unit_test(test_budget),
    };

    return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
