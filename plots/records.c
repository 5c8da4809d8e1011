#include "records.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "files/look.h"

static void add_row(struct records *rows, json_t *json, const char *path)
{
    *GROW(rows) = (struct record){json_incref(json), path};
}

int records_add(struct records *rows, json_t *value, const char *path, struct error *err)
{
    json_t *list = json_is_object(value) && json_object_get(value, "rows") ? json_object_get(value, "rows") : value;

    if (json_is_object(list)) {
        add_row(rows, list, path);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!json_is_object(json_array_get(list, i)))
            return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "row %zu is not an object", i);
        add_row(rows, json_array_get(list, i), path);
    }
    return json_is_array(list) ? 0 : error_add(err, EXIT_INPUT, (struct loc){.file = path}, "no rows");
}

/* Whether something is left. */
static bool more(FILE *in)
{
    int c;

    while ((c = getc(in)) != EOF && isspace(c))
        ;
    ungetc(c, in);
    return c != EOF;
}

int records_load(struct records *rows, const char *path, struct error *err)
{
    FILE *in = look_open_stream(path, err);
    struct loc loc = {.file = path};
    size_t before = rows->count;
    int failed = 0;

    if (!in)
        return -1;
    while (!failed && more(in)) {
        json_error_t bad;
        json_t *value = json_loadf(in, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &bad);
        struct arena arena = {0};

        if (value)
            failed = records_add(rows, value, path, err);
        else
            failed = error_add(err, EXIT_INPUT, loc, "%s", text_clean(&arena, bad.text, JSON_ERROR_TEXT_LENGTH));
        json_decref(value);
        arena_release(&arena);
    }
    if (ferror(in))
        failed = error_system(err, loc, "cannot read");
    if (!failed && rows->count == before)
        failed = error_add(err, EXIT_INPUT, loc, "no rows");
    fclose(in);
    return failed;
}

void records_release(struct records *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        json_decref(rows->items[i].json);
    free(rows->items);
    memset(rows, 0, sizeof *rows);
}

double record_number_or(const struct record *row, const char *key, double missing)
{
    const json_t *member = json_object_get(row->json, key);
    double value = json_number_value(member);

    return json_is_number(member) && isfinite(value) ? value : missing;
}

int record_number(const struct record *row, const char *key, double *value, struct error *err)
{
    *value = record_number_or(row, key, NAN);
    return isnan(*value) ? error_add(err, EXIT_INPUT, (struct loc){.file = row->path}, "a row has no number '%s'", key)
                         : 0;
}

const char *record_text(const struct record *row, const char *key)
{
    const json_t *member = json_object_get(row->json, key);

    return json_is_string(member) ? json_string_value(member) : "";
}
