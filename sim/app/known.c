#include "app/known.h"

#include <string.h>

#include "files/data.h"
#include "report/result.h"
#include "scenario/scenario.h"

/* The files of a folder; with their paths, where the page makes command lines of them. */
static json_t *list_of(const char *folder, bool with_paths, struct error *err)
{
    struct arena arena = {0};
    const char **names = data_names(&arena, folder, err), *path, *title;
    json_t *list = json_array();
    int rc = names ? 0 : -1;

    for (size_t i = 0; !rc && names[i]; i++) {
        json_t *file = json_object();

        rc = data_file(&arena, folder, names[i], &path, err);
        if (!rc && path)
            rc = conf_title(&arena, path, &title, err);
        if (!rc && path) {
            json_put(file, "name", json_words(names[i]));
            json_put(file, "title", json_words(title));
            if (with_paths)
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
