/* How many cases a test tries. The tests that everybody runs try a sample; ./test.sh --all tries all of them. */
#ifndef DTSIM_TESTS_TRIALS_H
#define DTSIM_TESTS_TRIALS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* A test tries one of this number of cases: 1 where DTSIM_TESTS is "all", else 4, and 16 under the sanitizers: few
 * cases reach the code in which these look for errors of memory. */
static inline int one_in(void)
{
    const char *tests = getenv("DTSIM_TESTS");

    return tests && !strcmp(tests, "all") ? 1 : ADDRESS_SANITIZER ? 16 : 4;
}

/* The cases that are tried of `all`. */
static inline int trials(int all)
{
    return (all + one_in() - 1) / one_in();
}

/* The same of cases that take long: a few unless all are asked for. */
static inline int few_or(int few, int all)
{
    return one_in() == 1 ? all : few;
}

/* The cases 1, 2, ... that are tried of `all`. */
#define EACH_TRIAL(i, all) for (uint64_t i = 1; i <= (uint64_t)trials(all); i++)

/* Whether the next of many cases is tried. The choice is spread, so that no loop's rhythm leaves a kind of case out. */
static inline bool tried(void)
{
    static uint32_t cases;

    return (cases++ * 2654435761u >> 16) % (uint32_t)one_in() == 0;
}

#endif
