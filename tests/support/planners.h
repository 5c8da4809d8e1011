/* planners: what the tests of planners share: a plan as text, and numbers within rounding. */
#ifndef DTSIM_TEST_PLANNERS_H
#define DTSIM_TEST_PLANNERS_H

#include "planners/dapple.h"
#include "planners/pipedream.h"
#include "planners/piper.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline void expect_close(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g instead of %.12g", actual, expected);
}

/* "0-2 x 1, 2-4 x 2 on 4": layers, replicas, and the GPUs of a tensor group where there are several. */
static inline void expect_plan(const struct planned *planned, double objective, const char *stages)
{
    char *text;
    size_t size;
    FILE *out = text_open(&text, &size);

    for (size_t i = 0; i < planned->count; i++) {
        const struct planned_stage *stage = &planned->stages[i];

        fprintf(out, "%s%zu-%zu x %d", i ? ", " : "", stage->begin, stage->end, stage->data);
        if (stage->tensor > 1)
            fprintf(out, " on %d", stage->tensor);
    }
    text_close(out, &text);
    assert_string_equal(text, stages);
    expect_close(planned->objective, objective);
    free(text);
}

#endif
