/* dtsim-sqlite.so: writes a table of SQLite. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "files/json.h"
#include "results/database.h"

struct database {
    sqlite3 *handle;
    sqlite3_stmt *insert;
    char *path;
    size_t columns;
};

static int refused(const struct database *database, struct error *err)
{
    return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = database->path}, "cannot write: %s",
                     sqlite3_errmsg(database->handle));
}

/* A name in double quotes, which stand twice inside. */
static void write_name(const char *name, FILE *out)
{
    fputc('"', out);
    for (; *name; name++)
        fprintf(out, *name == '"' ? "\"\"" : "%c", *name);
    fputc('"', out);
}

static int run(struct database *database, const char *sql, struct error *err)
{
    return sqlite3_exec(database->handle, sql, NULL, NULL, NULL) ? refused(database, err) : 0;
}

static int create(struct database *database, const char *table, const struct database_column *columns, size_t count,
                  struct error *err)
{
    char *text[2] = {NULL, NULL};
    size_t size;
    int rc;

    for (int i = 0; i < 2; i++) {
        FILE *out = text_open(&text[i], &size);
        fputs(i ? "INSERT INTO " : "CREATE TABLE ", out);
        write_name(table, out);
        fputs(i ? " VALUES (" : " (", out);
        for (size_t c = 0; c < count; c++) {
            fputs(c ? ", " : "", out);
            if (i)
                fputc('?', out);
            else
                write_name(columns[c].name, out);
            fprintf(out, "%s%s", i ? "" : " ", i ? "" : columns[c].type);
        }
        fputc(')', out);
        text_close(out, &text[i]);
    }
    rc = run(database, text[0], err);
    if (!rc && sqlite3_prepare_v2(database->handle, text[1], -1, &database->insert, NULL))
        rc = refused(database, err);
    free(text[0]);
    free(text[1]);
    return rc;
}

static int database_close(void *context, bool keep, struct error *err)
{
    struct database *database = context;
    int rc = keep ? run(database, "COMMIT", err) : 0;

    sqlite3_finalize(database->insert);
    if (sqlite3_close(database->handle) && !rc && keep)
        rc = refused(database, err);
    free(database->path);
    free(database);
    return rc;
}

static void *database_open(const char *path, const char *table, const struct database_column *columns, size_t count,
                           struct error *err)
{
    struct database *database = xcalloc(1, sizeof *database);

    database->path = strcpy(xcalloc(strlen(path) + 1, 1), path);
    database->columns = count;
    /* Nobody sees the file until it is whole, so it needs no journal. */
    if (sqlite3_open(path, &database->handle) ? refused(database, err) :
        run(database, "PRAGMA journal_mode = OFF; BEGIN", err) || create(database, table, columns, count, err)) {
        database_close(database, false, err);
        return NULL;
    }
    return database;
}

static int bind(sqlite3_stmt *insert, int column, const json_t *json)
{
    char *text;

    if (!json || json_is_null(json))
        return sqlite3_bind_null(insert, column);
    if (json_is_boolean(json))
        return sqlite3_bind_int(insert, column, json_is_true(json));
    if (json_is_integer(json))
        return sqlite3_bind_int64(insert, column, json_integer_value(json));
    if (json_is_real(json))
        return sqlite3_bind_double(insert, column, json_real_value(json));
    if (json_is_string(json))
        return sqlite3_bind_text(insert, column, json_string_value(json), -1, SQLITE_TRANSIENT);
    text = json_text(json);
    return sqlite3_bind_text(insert, column, text, -1, free);
}

static int database_add(void *context, const json_t *const *values, struct error *err)
{
    struct database *database = context;

    for (size_t c = 0; c < database->columns; c++)
        if (bind(database->insert, (int)c + 1, values[c]))
            return refused(database, err);
    if (sqlite3_step(database->insert) != SQLITE_DONE || sqlite3_reset(database->insert))
        return refused(database, err);
    return 0;
}

extern const struct database_module module_sqlite;
const struct database_module module_sqlite = {database_open, database_add, database_close};
