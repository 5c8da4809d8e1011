/* A program's text has all members of an operation that are set, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "engine/program_text.h"

/* Two ranks: a work, its transfer, a work that waits for the transfer; a choice, and an operation that may go first. */
static void build(struct program *program)
{
    uint32_t lanes[3], ids[4];

    program->ranks = 2;
    lanes[0] = program_lane(program, 0, LANE_COMPUTE, 0);
    lanes[1] = program_lane(program, 0, LANE_SEND_NEXT, 1);
    lanes[2] = program_lane(program, 1, LANE_COMPUTE, 0);
    ids[0] = program_add(program, (struct new_op){.kind = OP_COMPUTE, .what = WHAT_FORWARD, .lane = lanes[0],
                         .amount = 1.5, .compute = {.communication = 0.5, .sent = 1e6, .activations = 5e5},
                         .takes = 3e9, .workspace = 10, .mb = 0, .stage = 0}, NULL, 0);
    ids[1] = program_add(program, (struct new_op){.kind = OP_TRANSFER, .what = WHAT_ACTIVATION, .lane = lanes[1],
                         .amount = 1e9, .mb = 0, .stage = 0, .transfer = {
                         .src = 0, .dst = 3, .delay = 1e-6, .overhead = 0.25, .buffered = true}}, ids, 1);
    ids[2] = program_add(program, (struct new_op){.kind = OP_COMPUTE, .what = WHAT_FORWARD, .lane = lanes[2],
                         .amount = 1, .advances = true, .mb = 1, .stage = 1}, NULL, 0);
    ids[3] = program_add(program, (struct new_op){.kind = OP_COMPUTE, .what = WHAT_SYNC, .lane = lanes[2], .amount = 2,
                         .compute.communication = 2, .continues = true, .frees = 7, .mb = -1, .stage = -1},
                         (uint32_t[]){ids[2], ids[0], ids[1], ids[0]}, 4);
    program_choose(program, (struct choice){ids[3], ids[0], 2, 3});
}

static void test_every_detail(void **state)
{
    struct program program = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    build(&program);
    program_print(&program, out);
    fclose(out);
    assert_string_equal(text,
        "# operations: 4, lanes: 3, ranks: 2; each operation also waits for the one before it in its lane\n"
        "#  id lane              what              mb stage  amount\n"
        "    0 0.compute         forward            0     0  1.5 s, 0.5 s communication, sends 1000000 B, 500000 B of it "
        "activations, takes 3000000000 B, holds 10 B\n"
        "    1 0.send-next.1     activation         0     0  1000000000 B, GPU 0 > 3, delay 1e-06 s, overhead 0.25 B/B, "
        "buffered, after 0\n"
        "    2 1.compute         forward            1     1  1 s, may go first\n"
        "    3 1.compute         sync               -     -  2 s, communication, frees 7 B, continues, after 0-2, if 0-1 "
        "are late others first, 3 in all at most\n");
    free(text);
    program_release(&program);
}

static void test_nothing(void **state)
{
    struct program program = {.ranks = 1};
    char text[256] = "";
    FILE *out = fmemopen(text, sizeof text, "w");

    (void)state;
    program_print(&program, out);
    fclose(out);
    assert_string_equal(text,
        "# operations: 0, lanes: 0, ranks: 1; each operation also waits for the one before it in its lane\n"
        "#  id lane              what              mb stage  amount\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_detail),
        cmocka_unit_test(test_nothing),
    };

    return cmocka_run_group_tests_name("program_text", tests, NULL, NULL);
}
