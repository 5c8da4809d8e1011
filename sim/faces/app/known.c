#include "app/known.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/data.h"
#include "files/look.h"
#include "report/result.h"
#include "scenario/scenario.h"

/* What a scenario of the tour asks: its first comment, up to the end of the sentence. */
static const char *question_of(struct arena *arena, const char *path, struct error *err)
{
    FILE *file = look_open(path, err);
    size_t capacity = 0;
    char *line = NULL;
    const char *question = "";

    if (file && look_line(file, &line, &capacity) > 2 && line[0] == '#' && line[1] == ' ') {
        size_t length = strcspn(line + 2, "?\n");

        question = arena_strndup(arena, line + 2, length + (line[2 + length] == '?'));
    }
    free(line);
    if (file)
        fclose(file);
    return question;
}

/* The files of a folder; of the tour with their paths, of which the page makes command lines. */
static json_t *list_of(const char *folder, bool tour, struct error *err)
{
    struct arena arena = {0};
    const char **names = data_names(&arena, folder, err), *path, *title = "";
    json_t *list = json_array();
    int rc = names ? 0 : -1;

    for (size_t i = 0; !rc && names[i]; i++) {
        json_t *file = json_object();

        rc = data_file(&arena, folder, names[i], &path, err);
        if (!rc && path && !tour)
            rc = conf_title(&arena, path, &title, err);
        if (path && tour)
            title = question_of(&arena, path, err);
        if (!rc && path) {
            json_put(file, "name", json_words(names[i]));
            json_put(file, "title", json_words(title));
            if (tour)
                json_put(file, "path", json_words(path));
            json_append(list, json_incref(file));
        }
        json_decref(file);
    }
    arena_release(&arena);
    return list;
}

/* A list for each folder that a value of the schema may name. */
static void add_folders(json_t *files, const json_t *schema, struct error *err)
{
    const char *folder = json_is_object(schema) ? json_string_value(json_object_get(schema, "x-files")) : NULL, *key;
    json_t *value;
    size_t i;

    if (folder && !json_object_get(files, folder))
        json_put(files, folder, list_of(folder, false, err));
    json_object_foreach((json_t *)(uintptr_t)schema, key, value)
        add_folders(files, value, err);
    json_array_foreach(schema, i, value)
        add_folders(files, value, err);
}

json_t *known_json(struct error *err)
{
    struct arena arena = {0};
    json_t *known = json_object(), *schema = node_json(field_schema(&arena, &scenario_table)), *files = json_object();

    json_put(known, "version", json_words(DTSIM_VERSION));
    json_put(known, "tour", list_of("scenarios/tour", true, err));
    add_folders(files, schema, err);
    json_put(known, "files", files);
    json_put(known, "schema", schema);
    arena_release(&arena);
    if (!err->count)
        return known;
    json_decref(known);
    return NULL;
}
