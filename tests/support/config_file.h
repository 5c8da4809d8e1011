/* config_file: a config.json that a test writes anew for each case. */
#ifndef DTSIM_TEST_CONFIG_FILE_H
#define DTSIM_TEST_CONFIG_FILE_H

#include "model_files.h"

#include <unistd.h>

static char path[] = "/tmp/dtsim-config-XXXXXX";

static inline void write_config(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline struct model read_config(const char *text)
{
    write_config(text);
    return load_good(arena_printf(&arena, "hf_config: %s", path));
}

/* Of the whole test program. */
static inline int make_file(void **state)
{
    int descriptor = mkstemp(path);

    (void)state;
    return descriptor < 0 ? -1 : close(descriptor);
}

static inline int drop_file(void **state)
{
    (void)state;
    return unlink(path);
}

#endif
