#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/dispatcher.h"
#include "engine/replay.h"

#include <stdlib.h>

static const struct cluster cluster = {.nodes = 1, .kinds[0].gpus = 4,
                                       .kinds[0].inside = {.bandwidth = 1, .efficiency = 1, .latency = 0.5}};

static uint32_t add(struct program *program, enum op_kind kind, uint32_t lane, double amount, int dep)
{
    uint32_t deps[1] = {(uint32_t)dep};

    return program_add(program, (struct new_op){.kind = (uint8_t)kind, .lane = lane, .amount = amount,
                       .transfer.dst = 1}, deps, dep >= 0);
}

/* The costs of transfers that may all share links; the caller frees them. */
static struct transfer_cost *shared_costs(const struct program *program)
{
    struct transfer_cost *costs = transfer_costs(program, &cluster);

    for (size_t i = 0; i < program->traits.count; i++)
        costs[i].shares = true;
    return costs;
}

static void test_settles_ahead(void **state)
{
    struct program program = {.ranks = 1};
    struct dispatcher dispatcher = {0};
    struct transfer_cost *costs;
    double start[6], end[6];
    uint32_t a, b, id;

    (void)state;
    a = program_lane(&program, 0, LANE_COMPUTE, 0);
    b = program_lane(&program, 0, LANE_SEND_NEXT, 0);
    add(&program, OP_COMPUTE, a, 1, -1);
    add(&program, OP_COMPUTE, a, 2, -1);
    add(&program, OP_TRANSFER, b, 7, 0);        /* starts at 1, ends when an engine says so */
    add(&program, OP_TRANSFER, b, 0, 1);        /* waits for its lane */
    add(&program, OP_COMPUTE, a, 1, 3);
    add(&program, OP_COMPUTE, a, 0, -1);
    costs = shared_costs(&program);
    dispatcher_init(&dispatcher, &program, costs, start, end);
    assert_true(start[1] == 1 && end[1] == 3);
    assert_int_equal(dispatcher_ready(&dispatcher), 1);
    assert_int_equal(dispatcher.left, 4);
    assert_true(dispatcher_take(&dispatcher, &id));
    assert_int_equal(id, 2);
    assert_true(start[2] == 1);
    assert_false(dispatcher_take(&dispatcher, &id));
    dispatcher_end(&dispatcher, 2, 10);
    assert_int_equal(dispatcher.left, 0);
    assert_int_equal(dispatcher_ready(&dispatcher), 0);
    assert_true(start[3] == 10 && end[3] == 10.5);
    assert_true(start[4] == 10.5 && end[4] == 11.5);
    assert_true(start[5] == 11.5 && end[5] == 11.5);
    dispatcher_release(&dispatcher);
    free(costs);
    program_release(&program);
}

/* Transfers are handed out in the order in which they became ready, and each lane has one at a time. */
static void test_order_of_ready(void **state)
{
    enum { LANES = 3, EACH = 4 };
    struct program program = {.ranks = 1};
    struct dispatcher dispatcher = {0};
    struct transfer_cost *costs;
    double start[LANES * EACH], end[LANES * EACH];
    uint32_t id;

    (void)state;
    for (uint32_t l = 0; l < LANES; l++)
        program_lane(&program, 0, LANE_COLLECTIVE, (int)l);
    for (uint32_t i = 0; i < LANES * EACH; i++)
        add(&program, OP_TRANSFER, i % LANES, 1, -1);
    costs = shared_costs(&program);
    dispatcher_init(&dispatcher, &program, costs, start, end);
    for (uint32_t i = 0; i < LANES * EACH; i++) {
        assert_int_equal(dispatcher_ready(&dispatcher), LANES < LANES * EACH - i ? LANES : LANES * EACH - i);
        assert_true(dispatcher_take(&dispatcher, &id));
        assert_int_equal(id, i);
        dispatcher_end(&dispatcher, id, i + 1);
    }
    assert_int_equal(dispatcher.left, 0);
    dispatcher_release(&dispatcher);
    free(costs);
    program_release(&program);
}

/* Alone on its links, a transfer needs no engine; nor does one that has met nobody. */
static void test_settles_alone(void **state)
{
    struct program program = {.ranks = 1};
    struct dispatcher dispatcher = {0};
    static const bool met[2] = {false, true};
    struct transfer_cost *costs;
    double start[2], end[2];
    uint32_t id;

    (void)state;
    for (int lane = 0; lane < 2; lane++)
        add(&program, OP_TRANSFER, program_lane(&program, 0, LANE_COLLECTIVE, lane), 7, -1);
    costs = transfer_costs(&program, &cluster);
    dispatcher_init(&dispatcher, &program, costs, start, end);
    assert_int_equal(dispatcher.left, 0);
    assert_true(end[0] == 7.5 && end[1] == 7.5);
    dispatcher_release(&dispatcher);
    free(costs);
    costs = shared_costs(&program);
    dispatcher.met = met;
    dispatcher_init(&dispatcher, &program, costs, start, end);
    assert_true(end[0] == 7.5);
    assert_true(dispatcher_take(&dispatcher, &id));
    assert_int_equal(id, 1);
    dispatcher_end(&dispatcher, id, 9);
    assert_int_equal(dispatcher.left, 0);
    dispatcher_release(&dispatcher);
    free(costs);
    program_release(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settles_alone),
        cmocka_unit_test(test_settles_ahead),
        cmocka_unit_test(test_order_of_ready),
    };

    return cmocka_run_group_tests_name("dispatcher", tests, NULL, NULL);
}
