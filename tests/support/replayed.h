/* replayed: what the tests of engines share: a program replayed, or the test fails. */
#ifndef DTSIM_TEST_REPLAYED_H
#define DTSIM_TEST_REPLAYED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/replay.h"

/* timeline_release when done. */
static inline void replayed(enum engine engine, const struct program *program, const struct cluster *cluster,
                            struct timeline *timeline)
{
    struct error err = {0};

    timeline_init(timeline, program);
    if (replay(engine, program, cluster, timeline, &err))
        fail_msg("%s", err.messages[0].text);
    assert_int_equal(err.count, 0);
}

#endif
