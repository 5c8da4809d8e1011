#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "files/look.h"
#include "report/outcome.h"

const char *store_id(const json_t *row)
{
    const char *id = json_string_value(json_object_get(row, "id"));

    return id && strlen(id) == ID_DIGITS && strspn(id, "0123456789abcdef") == ID_DIGITS ? id : NULL;
}

/* The first of the metrics that is neither a number nor null, nor such numbers by name; NULL: there is none. */
static const char *wrong_metric(const json_t *metrics)
{
    const char *key, *inner;
    json_t *value;

    if (metrics && !json_is_object(metrics))
        return "what stands there";
    json_object_foreach((json_t *)(uintptr_t)metrics, key, value) {
        inner = json_is_object(value) ? wrong_metric(value) : NULL;
        if (inner || !(json_is_number(value) || json_is_null(value) || json_object_size(value)))
            return inner ? inner : key;
    }
    return NULL;
}

/* One line of a file: the header is the first. */
static int line_read(const char *path, const char *line, size_t length, int number, const struct store_reader *reader,
                     struct error *err)
{
    struct loc loc = {path, number, 1};
    json_t *json = json_loadb(line, length, 0, NULL);
    const char *wrong;
    int rc = 0;

    if (number == 1 && !json_is_integer(json_object_get(json, "dtsim_sweep")))
        rc = error_add(err, EXIT_INPUT, loc, "the file holds no rows of a sweep; expected a header with 'dtsim_sweep'");
    else if (number == 1)
        rc = reader->header ? reader->header(reader->context, json, err) : 0;
    else if (!store_id(json) || outcome_of(json) == OUTCOME_COUNT)
        rc = error_add(err, EXIT_INPUT, loc, "this line is no row (an object with 'id' and 'status'); if it is "
                       "damaged, remove it, and its point runs again");
    else if ((wrong = wrong_metric(json_object_get(json, "metrics"))))
        rc = error_add(err, EXIT_INPUT, loc, "metrics: %s is no number; remove this line, and its point runs again", wrong);
    else
        rc = reader->row(reader->context, json, line, length, err);
    json_decref(json);
    return rc;
}

int store_read(const char *path, const struct store_reader *reader, struct error *err)
{
    FILE *file = look_open(path, err);
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    int rc = 0;

    if (!file)
        return -1;
    for (int number = 1;
         (length = look_line(file, &line, &capacity)) > 0 && (length > LINE_LIMIT || line[length - 1] == '\n'); number++)
        if (length > LINE_LIMIT)
            rc = error_add(err, EXIT_INPUT, (struct loc){path, number, 1}, "a line of more than %d bytes; expected at most "
                           "that", LINE_LIMIT);
        else if (line_read(path, line, (size_t)length - 1, number, reader, err))
            rc = -1;
    if (ferror(file))
        rc = error_system(err, (struct loc){.file = path}, "cannot read");
    free(line);
    fclose(file);
    return rc;
}

static bool is_store(const char *name)
{
    int shard, shards, end = 0;

    return sscanf(name, "shard-%d-of-%d.jsonl%n", &shard, &shards, &end) == 2 && end && !name[end];
}

static int compare_names(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

const char **store_files(struct arena *arena, const char *folder, struct error *err)
{
    struct look_names names = {0};
    const char **files = NULL;

    if (!look_into(arena, folder, is_store, &names, err)) {
        files = ARENA_ARRAY(arena, const char *, names.count + 1);
        array_sort(names.items, names.count, sizeof *names.items, compare_names);
        for (size_t i = 0; i < names.count; i++)
            files[i] = arena_printf(arena, "%s/%s", folder, names.items[i]);
    }
    free(names.items);
    return files;
}

int store_holds_rows(const char *folder, bool *rows, struct error *err)
{
    struct arena arena = {0};
    const char **files = store_files(&arena, folder, err);

    *rows = files && files[0];
    arena_release(&arena);
    return files ? 0 : -1;
}
