/* What a program keeps of its operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/program.h"

/* Operations that differ in one member of their traits have other traits; those that differ in none share them,
 * however many others were added between. */
static void test_traits(void **state)
{
    enum { DIFFERENT = 300 };
    struct program program = {.ranks = 1};
    uint32_t lane = program_lane(&program, 0, LANE_COMPUTE, 0), first[2 * DIFFERENT];

    (void)state;
    for (int round = 0; round < 3; round++)
        for (uint32_t i = 0; i < 2 * DIFFERENT; i++) {
            struct new_op op = {.kind = i % 2 ? OP_TRANSFER : OP_COMPUTE, .lane = lane, .amount = round, .mb = (int)i};
            double *compute[] = {&op.takes, &op.frees, &op.workspace, &op.compute.communication, &op.compute.with[1],
                                 &op.compute.sent, &op.compute.activations};
            double *transfer[] = {&op.takes, &op.frees, &op.workspace, &op.transfer.delay, &op.transfer.overhead};

            *(i % 2 ? transfer[i / 2 % COUNT(transfer)] : compute[i / 2 % COUNT(compute)]) = i + 1;
            if (i % 2)
                op.transfer.buffered = i % 4 == 1;
            program_add(&program, op, NULL, 0);
            const struct op *added = &program.ops.items[program.ops.count - 1];
            const struct traits *traits = op_traits(&program, added);

            if (round == 0)
                first[i] = added->traits;
            assert_int_equal(added->traits, first[i]);
            assert_true(traits->takes == op.takes && traits->frees == op.frees && traits->workspace == op.workspace);
            if (i % 2)
                assert_true(traits->transfer.delay == op.transfer.delay &&
                            traits->transfer.overhead == op.transfer.overhead &&
                            traits->transfer.buffered == op.transfer.buffered);
            else
                assert_memory_equal(&traits->compute, &op.compute, sizeof op.compute);
        }
    assert_int_equal(program.traits.count, 2 * DIFFERENT);
    program_release(&program);
}

/* A copy shares nothing: what is done to it leaves the program as it was. */
static void test_copy(void **state)
{
    struct program program = {.ranks = 1}, copy;
    uint32_t lane = program_lane(&program, 0, LANE_COMPUTE, 0), dep = 0;
    struct new_op op = {.lane = lane, .amount = 4, .takes = 7, .compute = {.communication = 1, .with = {1}, .sent = 5}};

    (void)state;
    for (int i = 0; i < 3; i++)
        program_add(&program, op, &dep, i > 0);
    copy = program_copy(&program);
    program_scale(&copy, 1, 2);
    op.amount = 3;
    program_add(&copy, op, &dep, 1);
    for (uint32_t i = 0; i < 3; i++) {
        const struct op *old = &program.ops.items[i], *new = &copy.ops.items[i];
        double factor = i == 1 ? 2 : 1;

        assert_true(old->amount == 4 && new->amount == 4 * factor);
        assert_true(op_traits(&program, old)->compute.communication == 1);
        assert_true(op_traits(&copy, new)->compute.communication == factor);
        assert_true(op_traits(&copy, new)->compute.with[0] == factor);
        assert_true(op_traits(&copy, new)->takes == 7 && op_traits(&copy, new)->compute.sent == 5);
        assert_int_equal(program_deps(&program, old).count, i > 0);
        assert_int_equal(program_deps(&copy, new).count, i > 0);
    }
    assert_int_equal(program.traits.count, 1);
    assert_int_equal(copy.traits.count, 2);
    assert_int_equal(program.ops.count, 3);
    program_release(&program);
    program_release(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_traits), cmocka_unit_test(test_copy)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
