#include "results/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "files/folder.h"
#include "process/module.h"

static const char what[] = "--sqlite (which needs libsqlite3-dev when dtsim is built)";

/* The type of one value; NULL: it has none. */
static const char *type_of(const json_t *json)
{
    if (!json || json_is_null(json))
        return NULL;
    return json_is_integer(json) || json_is_boolean(json) ? "INTEGER" : json_is_real(json) ? "REAL" : "TEXT";
}

/* The type of a column follows from its values; for whole and other numbers together it is REAL. */
static const char *column_type(const struct results *results, int key, size_t rows)
{
    const char *type = NULL;

    for (size_t r = 0; r < rows; r++) {
        const char *own = type_of(results_json(results, r, key));

        if (!own || !type || !strcmp(own, type))
            type = own ? own : type;
        else if (!strcmp(own, "TEXT") || !strcmp(type, "TEXT"))
            return "";
        else
            type = "REAL";
    }
    return type ? type : "";
}

static int add_rows(const struct results *results, const int *columns, size_t count, size_t rows,
                    const struct database_module *module, void *database, struct error *err)
{
    const json_t **values = xcalloc(count, sizeof *values);
    int rc = 0;

    for (size_t r = 0; r < rows && !rc; r++) {
        for (size_t c = 0; c < count; c++)
            values[c] = results_json(results, r, columns[c]);
        rc = module->add(database, values, err);
    }
    free(values);
    return rc;
}

static int replace(const char *whole, const char *path, struct error *err)
{
    if (!rename(whole, path))
        return 0;
    return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "cannot replace: %s", strerror(errno));
}

int database_write(const struct results *results, const int *columns, size_t count, size_t most, const char *path,
                   struct error *err)
{
    const struct database_module *module = module_open("sqlite", MODULE_PROGRAM_FIRST, what, err);
    size_t rows = most < results->rows.count ? most : results->rows.count;
    struct database_column *all;
    struct arena arena = {0};
    char *whole;
    void *database;
    int rc, fd;

    if (!module)
        return -1;
    temporaries_clear_of(path);
    whole = arena_alloc(&arena, strlen(path) + 64);
    fd = temporary_open(AT_FDCWD, path, whole, strlen(path) + 64);
    if (fd < 0) {
        arena_release(&arena);
        return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "cannot write: %s", strerror(errno));
    }
    all = ARENA_ARRAY(&arena, struct database_column, count);
    for (size_t c = 0; c < count; c++)
        all[c] = (struct database_column){results->keys.items[columns[c]].name, column_type(results, columns[c], rows)};
    database = module->open(whole, "rows", all, count, err);
    rc = !database || add_rows(results, columns, count, rows, module, database, err) ? -1 : 0;
    if (database && module->close(database, !rc, err))
        rc = -1;
    if (rc || replace(whole, path, err)) {
        unlink(whole);
        rc = -1;
    }
    close(fd);
    arena_release(&arena);
    return rc;
}
