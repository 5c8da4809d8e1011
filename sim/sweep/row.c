#include "sweep/row.h"

#include <stdlib.h>
#include <string.h>

#include "files/data.h"
#include "report/result.h"

enum { VERSION = 16,             /* digits of the sources' digest that rows show */
       FILE_MOST = 64 << 20 };   /* of a file that a scenario names */

static void digest_text(struct digest *digest, const char *text)
{
    digest_add(digest, text, strlen(text) + 1);
}

static int digest_file(struct digest *digest, const char *path, struct error *err)
{
    size_t length;
    char *text = file_read(path, "file", FILE_MOST, (struct loc){.file = path}, &length, err);

    if (!text)
        return -1;
    digest_add(digest, text, length);
    free(text);
    return 0;
}

/* All data files, not those alone that a scenario uses: a new one costs a repetition, a forgotten one wrong rows. */
static int digest_data(struct digest *digest, struct error *err)
{
    static const char *const folders[] = {
        "platforms", "platforms/gpus", "platforms/communication", "platforms/software", "calibration/data",
        "scenarios/models",
    };
    struct arena arena = {0};
    int rc = 0;

    for (size_t f = 0; f < COUNT(folders); f++) {
        const char **names = data_names(&arena, folders[f]);

        for (size_t i = 0; names[i] && !rc; i++) {
            digest_text(digest, names[i]);
            rc = digest_file(digest, data_file(&arena, folders[f], names[i]), err);
        }
    }
    arena_release(&arena);
    return rc;
}

json_t *row_version(void)
{
    return json_stringn(sources_digest, VERSION);
}

int row_maker_init(struct row_maker *maker, struct error *err)
{
    struct digest digest;
    int rc;

    digest_init(&digest);
    digest_text(&digest, sources_digest);
    rc = digest_data(&digest, err);
    digest_end(&digest, maker->common);
    return rc;
}

/* Files that the resolved scenario names by absolute paths count by their content. */
static void digest_named(struct digest *digest, const struct node *node)
{
    struct error ignored = {0};

    if (node->kind == NODE_SCALAR && node->text[0] == '/')
        digest_file(digest, node->text, &ignored);
    for (size_t i = 0; i < node->count; i++)
        digest_named(digest, node->items[i]);
    error_release(&ignored);
}

static void digest_tree(struct digest *digest, const struct node *root)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    BUG_IF(!out);
    node_print(root, out);
    fclose(out);
    digest_text(digest, text);
    free(text);
}

static void id_end(struct digest *digest, char id[STORE_ID + 1])
{
    char hex[DIGEST_HEX];

    digest_end(digest, hex);
    memcpy(id, hex, STORE_ID);
    id[STORE_ID] = '\0';
}

static void resolved_id(const struct row_maker *maker, const struct scenario *scenario, char id[STORE_ID + 1])
{
    const struct order *order = scenario->parallelism.schedule.order;
    struct error ignored = {0};
    struct arena arena = {0};
    struct node *dump = field_dump(&arena, &scenario_table, scenario);
    struct digest digest;

    node_put(&arena, dump, "name", node_scalar(&arena, "", true));
    digest_init(&digest);
    digest_text(&digest, maker->common);
    digest_tree(&digest, dump);
    digest_named(&digest, dump);
    if (order)
        digest_file(&digest, order->file, &ignored);
    id_end(&digest, id);
    error_release(&ignored);
    arena_release(&arena);
}

static void written_id(const struct row_maker *maker, const struct node *root, char id[STORE_ID + 1])
{
    struct digest digest;

    digest_init(&digest);
    digest_text(&digest, maker->common);
    digest_text(&digest, "as written");
    digest_text(&digest, maker->engine ? maker->engine : "");
    digest_tree(&digest, root);
    id_end(&digest, id);
}

static json_t *row_begin(const char *id, const struct point *point)
{
    json_t *row = json_object(), *settings = json_object();

    json_object_set_new(row, "id", json_string(id));
    json_object_set_new(row, "version", row_version());
    for (size_t i = 0; i < point->count; i++)
        json_object_set_new(settings, point->items[i].name, node_json(point->items[i].node));
    json_object_set_new(row, "point", settings);
    return row;
}

static bool is_done(const struct row_maker *maker, const char *id)
{
    enum outcome status;

    return !maker->force && store_find(maker->store, id, &status) && !(maker->retry_failed && outcome_failed(status));
}

/* The point's row, or NULL where the store has it. */
static json_t *row_of(const struct row_maker *maker, const struct point *point, struct arena *arena, char *note)
{
    struct scenario scenario = {0};
    struct error err = {0};
    json_t *row = NULL;

    written_id(maker, point->root, note);
    if (scenario_read(arena, point->root, &maker->engine, maker->engine != NULL, maker->points->name, &scenario,
                      &err)) {
        if (!is_done(maker, note)) {
            row = row_begin(note, point);
            outcome_refused(row, &err);
        }
    } else {
        scenario_prefer(&scenario, ENGINE_FAST);
        resolved_id(maker, &scenario, note);
        if (!is_done(maker, note)) {
            row = row_begin(note, point);
            outcome_simulate(row, &scenario);
        }
    }
    scenario_release(&scenario);
    error_release(&err);
    return row;
}

void row_make(const struct row_maker *maker, uint64_t number, char *note, FILE *out)
{
    struct arena arena = {0}, own = {0};
    struct error err = {0};
    struct point point;
    json_t *row = NULL;

    if (point_make(maker->points, number, &arena, &point, &err)) {
        written_id(maker, point.root, note);
        if (!is_done(maker, note)) {
            row = row_begin(note, &point);
            outcome_refused(row, &err);
        }
    } else {
        row = row_of(maker, &point, &own, note);
    }
    if (row)
        json_line(row, out);
    else
        fprintf(out, "=%s", note);
    json_decref(row);
    error_release(&err);
    arena_release(&own);
    arena_release(&arena);
}

json_t *row_lost(const struct row_maker *maker, uint64_t number, const char *id, enum outcome status,
                 const char *reason)
{
    struct arena arena = {0};
    struct error err = {0};
    struct point point;
    char written[STORE_ID + 1];
    json_t *row;

    point_make(maker->points, number, &arena, &point, &err);
    written_id(maker, point.root, written);
    row = row_begin(strlen(id) == STORE_ID ? id : written, &point);
    outcome_lost(row, status, reason);
    error_release(&err);
    arena_release(&arena);
    return row;
}
