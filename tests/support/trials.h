/* How many cases a test tries. The tests that everybody runs try a sample; ./test.sh --all tries all of them. */
#ifndef DTSIM_TESTS_TRIALS_H
#define DTSIM_TESTS_TRIALS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One of so many cases is tried: 1 where DTSIM_TESTS is "all", else 4. */
static inline int one_in(void)
{
    const char *tests = getenv("DTSIM_TESTS");

    return tests && !strcmp(tests, "all") ? 1 : 4;
}

/* The cases that are tried of `all`. */
static inline int trials(int all)
{
    return all / one_in();
}

/* The cases 1, 2, ... that are tried of `all`. */
#define EACH_TRIAL(i, all) for (uint64_t i = 1; i <= (uint64_t)trials(all); i++)

#endif
