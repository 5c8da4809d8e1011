/* How many cases a test tries, and which. The tests that everybody runs try a sample, which is another one each week;
 * ./test.sh --all tries all cases that are known. */
#ifndef DTSIM_TESTS_TRIALS_H
#define DTSIM_TESTS_TRIALS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* What random cases are drawn from: DTSIM_SEED; without it 0, which stands for the known cases, where DTSIM_TESTS is
 * "all", else the year and the week (ISO 8601), 202648. It is printed, so that a failure can be repeated. */
static inline uint64_t seed_base(void)
{
    static char text[24];

    if (!*text) {
        const char *given = getenv("DTSIM_SEED");
        time_t now = time(NULL);
        struct tm today;

        if (given || one_in() == 1)
            snprintf(text, sizeof text, "%s", given ? given : "0");
        else
            strftime(text, sizeof text, "%G%V", gmtime_r(&now, &today));
        printf("random cases of DTSIM_SEED=%s; whoever sets that gets the same ones\n", text);
        fflush(stdout);              /* once, though the test may fork */
    }
    return strtoull(text, NULL, 10);
}

/* Whether the known cases are tried, all of them: how many there are of a rare kind is known of these alone. */
static inline bool known_cases(void)
{
    return one_in() == 1 && seed_base() == 0;
}

/* A seed of this base, from one that the test has for the known cases. */
static inline uint64_t seed_from(uint64_t known)
{
    uint64_t drawn = known + seed_base() * UINT64_C(0x9FB21C651E98DF25);

    return drawn ? drawn : 1;        /* 0 would give zeros */
}

/* The numbers of cases; with base 0 they are 1, 2, ... Each base has a thousand of its own. */
#define EACH_CASE(i, count) for (uint64_t i = 1 + 1000 * seed_base(), i##_end = i + (uint64_t)(count); i < i##_end; i++)
#define EACH_TRIAL(i, all) EACH_CASE(i, trials(all))

/* Whether the next of many cases is tried. The choice is spread, so that no loop's rhythm leaves a kind of case out. */
static inline bool tried(void)
{
    static uint32_t cases;

    return (cases++ * 2654435761u >> 16) % (uint32_t)one_in() == 0;
}

#endif
