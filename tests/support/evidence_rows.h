/* evidence_rows: tables of errors of predictions, made up row by row. */
#ifndef DTSIM_TEST_EVIDENCE_ROWS_H
#define DTSIM_TEST_EVIDENCE_ROWS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "evidence/evidence.h"

#define HEADING \
    "table\trow\tgroup\tplain\tsoftware\tfamily\tcosts\tformat\tschedule\tmodel\texperts\tdispatch\tgpus\tsequence\ttokens\t" \
    "exposed_percent\tmeasured_percent\tnic_mbits\terror_permille\tfirst_error_permille\tfirst_software\tfirst_family\truntime\tsheet_permille\tadapters\toptimizer\n"
/* The kind of a row, and its sizes. */
#define KIND "\tr\tg\t1\tmegatron-core\tmegatron-core\th100-80gb\tbf16\t1f1b\tm\t0"
#define SIZES "\t\t64\t4096\t4096\t10\t50\t400000"

static struct arena arena;

static inline int read_text(const char *text, struct evidence *evidence, struct error *err)
{
    char path[] = "/tmp/dtsim-test-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    int rc;

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    rc = evidence_read(&arena, path, evidence, err);
    unlink(path);
    return rc;
}

static inline struct evidence evidence_of_whole(const char *rows)
{
    struct evidence evidence;
    struct error err = {0};

    assert_int_equal(read_text(arena_printf(&arena, HEADING "%s", rows), &evidence, &err), 0);
    return evidence;
}

/* The rows with six more cells each, for first_software, first_family, the runtime, the error from a data sheet,
 * adapters, and the optimizer. */
static inline const char *as_first(const char *rows)
{
    const char *text = "";

    for (const char *end; (end = strchr(rows, '\n')); rows = end + 1)
        text = arena_printf(&arena, "%s%.*s\t\t\tmegatron\t\t\t\n", text, (int)(end - rows), rows);
    return text;
}

static inline struct evidence evidence_of(const char *rows)
{
    return evidence_of_whole(as_first(rows));
}

static const struct likeness mine = {
    .software = "megatron-core", .family = "megatron-core", .runtime = "megatron", .costs = "h100-80gb", .format = "bf16", .schedule = "1f1b",
    .model = "m", .gpus = 64, .sequence = 4096, .tokens = 4096, .exposed = 0.1, .measured = 0.5, .nic = 50e9,
};

static inline int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

#endif
