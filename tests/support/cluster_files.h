/* Helpers of the tests of platforms and clusters: files in a new folder, clusters loaded from text. */
#ifndef DTSIM_TEST_CLUSTER_FILES_H
#define DTSIM_TEST_CLUSTER_FILES_H

#include "hardware/cluster.h"
#include "files/data.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct arena arena;
static struct error error;
static char folder[] = "/tmp/dtsim-platform-XXXXXX";

static inline void write_file(const char *name, const char *text)
{
    FILE *file = fopen(arena_printf(&arena, "%s/%s", folder, name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Loads `text` as what stands under `cluster:` of a scenario in the test's folder. */
static inline int load(const char *text, struct cluster *cluster)
{
    struct node *root;
    const char *file = arena_printf(&arena, "%s/test.yaml", folder);
    assert_int_equal(conf_parse(&arena, file, text, strlen(text), &root, &error), 0);
    return cluster_load(&arena, root, cluster, &error);
}

static inline struct cluster load_good(const char *text)
{
    struct cluster cluster;
    if (load(text, &cluster) != 0) {
        error_print(&error, stderr);
        fail_msg("does not load: %s", text);
    }
    assert_int_equal(error.count, 0);
    return cluster;
}

static inline void assert_close(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g instead of %.17g", actual, expected);
}

/* The only message and its code; it is "FILE:LINE:COLUMN: TEXT" with the test's folder left out. */
static inline void expect_refusal(enum exit_code code, const char *text, const char *expected)
{
    struct cluster cluster;
    assert_int_equal(load(text, &cluster), -1);
    assert_int_equal(error.count, 1);
    const struct error_message *message = &error.messages[0];
    assert_int_equal(message->code, code);
    const char *file = message->loc.file, *slash = strrchr(file, '/');
    const char *actual = arena_printf(&arena, "%s:%d:%d: %s", slash ? slash + 1 : file, message->loc.line,
                                      message->loc.column, message->text);
    for (const char *found; (found = strstr(actual, folder));)
        actual = arena_printf(&arena, "%.*s@%s", (int)(found - actual), actual, found + strlen(folder));
    assert_string_equal(actual, expected);
    error_release(&error);
    error = (struct error){0};
}

static inline void expect_message(const char *text, const char *expected)
{
    expect_refusal(EXIT_INPUT, text, expected);
}

/* Values that do not go together. */
static inline void expect_clash(const char *text, const char *expected)
{
    expect_refusal(EXIT_INFEASIBLE, text, expected);
}

static inline int setup(void **state)
{
    (void)state;
    unsetenv("DTSIM_DATA");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    int status = system(arena_printf(&arena, "rm -r '%s'", folder));
    error_release(&error);
    arena_release(&arena);
    return status;
}

#endif
