#include "sweep/row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/progress.h"
#include "cache/cache.h"
#include "files/data.h"
#include "files/json.h"
#include "process/child.h"
#include "report/result.h"

enum { VERSION = 16,             /* digits of the sources' digest that rows show */
       FILE_MOST = 64 << 20,     /* of a file that a scenario names */
       ID_SECONDS = 30 };        /* that a point may take until its id is known */

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

/* What tells one tree from another: kinds, keys and texts, but not their places in files. */
static void digest_tree(struct digest *digest, const struct node *node)
{
    const unsigned char head[] = {(unsigned char)node->kind, node->kind == NODE_SCALAR && node->quoted};

    digest_add(digest, head, sizeof head);
    if (node->kind == NODE_SCALAR)
        digest_text(digest, node->text);
    else
        digest_add(digest, &node->count, sizeof node->count);
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == NODE_MAPPING)
            digest_text(digest, node->keys[i]);
        digest_tree(digest, node->items[i]);
    }
}

static void id_end(struct digest *digest, char id[ID_DIGITS + 1])
{
    char hex[DIGEST_HEX];

    digest_end(digest, hex);
    memcpy(id, hex, ID_DIGITS);
    id[ID_DIGITS] = '\0';
}

static void resolved_id(const struct row_maker *maker, const struct scenario *scenario, char id[ID_DIGITS + 1])
{
    const struct order *order = scenario->parallelism.schedule.order;
    struct error ignored = {0};
    struct arena arena = {0};
    struct node *dump = scenario_dump(&arena, scenario);
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

/* Of the scenario as the point has it, whatever became of that when it was read. */
static void written_id(const struct row_maker *maker, uint64_t number, char id[ID_DIGITS + 1])
{
    struct arena arena = {0};
    struct error ignored = {0};
    struct digest digest;
    struct point point;

    point_make(maker->points, number, &arena, &point, &ignored);
    digest_init(&digest);
    digest_text(&digest, maker->common);
    digest_text(&digest, "as written");
    digest_text(&digest, maker->engine ? maker->engine : "");
    digest_tree(&digest, point.root);
    id_end(&digest, id);
    error_release(&ignored);
    arena_release(&arena);
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

bool row_is_done(const struct row_maker *maker, const char *id)
{
    enum outcome status;

    return !maker->force && store_find(maker->store, id, &status) && !(maker->retry_failed && outcome_failed(status));
}

/* The point's row, or NULL where the store has it. */
static json_t *row_of(const struct row_maker *maker, uint64_t number, const struct point *point, struct arena *arena,
                      char *note)
{
    struct scenario scenario = {0};
    struct error err = {0};
    struct progress progress;
    json_t *row = NULL;

    progress_begin(&progress, "--timeout", maker->timeout, maker->bytes);
    if (scenario_read(arena, point->root, &maker->engine, maker->engine != NULL, maker->points->name, &scenario,
                      &err)) {
        written_id(maker, number, note);
        if (!row_is_done(maker, note)) {
            row = row_begin(note, point);
            outcome_refused(row, &err);
        }
    } else {
        scenario_prefer(&scenario, ENGINE_FAST);
        scenario.progress = &progress;
        resolved_id(maker, &scenario, note);
        if (!row_is_done(maker, note)) {
            row = row_begin(note, point);
            outcome_simulate(row, &scenario);
        }
    }
    scenario_release(&scenario);
    error_release(&err);
    return row;
}

static double metric_of(const json_t *row, const char *name)
{
    const json_t *value = json_object_get(json_object_get(row, "metrics"), name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

struct row_head row_head_of(const json_t *row)
{
    struct row_head head = {.status = outcome_of(row), .tokens = metric_of(row, "tokens_per_s"),
                            .samples = metric_of(row, "samples_per_s")};

    memcpy(head.id, store_id(row), ID_DIGITS);
    return head;
}

/* The head as it is: reader and writer are one program. */
static void reply(const struct row_head *head, const json_t *row, FILE *out)
{
    fwrite(head, sizeof *head, 1, out);
    if (row)
        json_line(row, out);
}

const char *row_split(const char *text, size_t length, struct row_head *head)
{
    BUG_IF(length < sizeof *head);
    memcpy(head, text, sizeof *head);
    return text + sizeof *head;
}

void row_make(const struct row_maker *maker, uint64_t number, char *note, FILE *out)
{
    struct arena arena = {.cache = maker->cache}, own = arena;
    struct row_head head = {.stored = true};
    struct error err = {0};
    struct point point;
    json_t *row = NULL;

    if (point_make(maker->points, number, &arena, &point, &err)) {
        written_id(maker, number, note);
        if (!row_is_done(maker, note)) {
            row = row_begin(note, &point);
            outcome_refused(row, &err);
        }
    } else {
        row = row_of(maker, number, &point, &own, note);
    }
    if (row)
        head = row_head_of(row);
    else
        memcpy(head.id, note, ID_DIGITS);
    reply(&head, row, out);
    json_decref(row);
    error_release(&err);
    arena_release(&own);
    arena_release(&arena);
    if (maker->cache)
        cache_renew(maker->cache);
}

/* The id of a point that has no row, looked for in another process, as it may kill that one too. */
struct lost_id {
    const struct row_maker *maker;
    uint64_t number;
    char *id;                    /* shared memory */
};

static void find_id(void *context)
{
    const struct lost_id *lost = context;
    const struct row_maker *maker = lost->maker;
    struct scenario scenario;
    struct arena arena = {0};
    struct error err = {0};
    struct point point;

    alarm(ID_SECONDS);
    if (!point_make(maker->points, lost->number, &arena, &point, &err) &&
        !scenario_read(&arena, point.root, &maker->engine, maker->engine != NULL, maker->points->name, &scenario, &err))
        resolved_id(maker, &scenario, lost->id);
}

static void lost_id(const struct row_maker *maker, uint64_t number, char id[ID_DIGITS + 1])
{
    struct lost_id lost = {maker, number, child_share(ID_DIGITS + 1)};
    struct error ignored = {0};

    if (lost.id && !child_run(find_id, &lost, "the scenario", &ignored) && strlen(lost.id) == ID_DIGITS)
        memcpy(id, lost.id, ID_DIGITS + 1);
    else
        written_id(maker, number, id);
    child_unshare(lost.id, ID_DIGITS + 1);
    error_release(&ignored);
}

json_t *row_lost(const struct row_maker *maker, uint64_t number, const char *id, enum outcome status,
                 const char *reason)
{
    struct arena arena = {0};
    struct error err = {0};
    struct point point;
    char own[ID_DIGITS + 1];
    json_t *row;

    point_make(maker->points, number, &arena, &point, &err);
    if (strlen(id) != ID_DIGITS)
        lost_id(maker, number, own);
    row = row_begin(strlen(id) == ID_DIGITS ? id : own, &point);
    outcome_lost(row, status, reason);
    error_release(&err);
    arena_release(&arena);
    return row;
}
