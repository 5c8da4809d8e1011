#include "sweep/row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/progress.h"
#include "config/conf.h"
#include "files/data.h"
#include "files/json.h"
#include "process/child.h"
#include "report/result.h"
#include "scenario/scenario.h"
#include "store/store.h"
#include "train/row_metrics.h"
#include "view/view.h"

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
        const char **names = data_names(&arena, folders[f], err), *path;

        rc = names ? rc : -1;
        for (size_t i = 0; !rc && names[i]; i++) {
            rc = data_file(&arena, folders[f], names[i], &path, err);
            if (!rc && !path)            /* a link to nothing */
                continue;
            digest_text(digest, names[i]);
            rc = rc ? rc : digest_file(digest, path, err);
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
    if (maker->anchors)
        digest_text(&digest, maker->anchors->digest);
    rc = digest_data(&digest, err);
    digest_end(&digest, maker->common);
    return rc;
}

/* The same of what may be a file. */
static int digest_if_file(struct digest *digest, const char *path, struct error *err)
{
    struct error found = {0};
    int rc;

    digest_file(digest, path, &found);
    rc = error_pass_system(&found, err);
    error_release(&found);
    return rc;
}

/* Files that the resolved scenario names by absolute paths count by their content. */
static int digest_named(struct digest *digest, const struct node *node, struct error *err)
{
    int rc = node->kind == NODE_SCALAR && node->text[0] == '/' ? digest_if_file(digest, node->text, err) : 0;

    for (size_t i = 0; i < node->count && !rc; i++)
        rc = digest_named(digest, node->items[i], err);
    return rc;
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

static int resolved_id(const struct row_maker *maker, const struct scenario *scenario, char id[ID_DIGITS + 1],
                       struct error *err)
{
    const struct order *order = scenario->parallelism.schedule.order;
    struct arena arena = {0};
    struct node *dump = scenario_dump(&arena, scenario);
    struct digest digest;
    int rc;

    node_put(&arena, dump, "name", node_scalar(&arena, "", true));
    digest_init(&digest);
    digest_text(&digest, maker->common);
    digest_tree(&digest, dump);
    rc = digest_named(&digest, dump, err) || (order && digest_if_file(&digest, order->file, err)) ? -1 : 0;
    id_end(&digest, id);
    arena_release(&arena);
    return rc;
}

/* The scenario's value as the point sets it, whatever the scenario made of it when it was read. */
static int written_id(const struct row_maker *maker, uint64_t number, char id[ID_DIGITS + 1], struct error *err)
{
    struct arena arena = {0};
    struct error found = {0};
    struct digest digest;
    struct point point;
    int rc;

    point_make(maker->points, number, &arena, &point, &found);
    rc = error_pass_system(&found, err);
    digest_init(&digest);
    digest_text(&digest, maker->common);
    digest_text(&digest, "as written");
    digest_text(&digest, maker->engine ? maker->engine : "");
    digest_tree(&digest, point.root);
    id_end(&digest, id);
    error_release(&found);
    arena_release(&arena);
    return rc;
}

json_t *point_json(const struct point *point)
{
    json_t *settings = json_object();

    for (size_t i = 0; i < point->count; i++)
        json_put(settings, point->items[i].name, node_json(point->items[i].node));
    return settings;
}

struct begun { const char *id; const struct point *point; };

#define BEGUN(ROW) \
    ROW(id, json_words(it->id), "of the resolved scenario, the program and its files") \
    ROW(version, row_version(), "digest of the program's sources") \
    ROW(point, point_json(it->point), "its values, by path", .form = VIEW_MAP)
VIEW_SHARED(begun_view, struct begun, it, BEGUN)

static json_t *row_begin(const char *id, const struct point *point)
{
    return view_json(&begun_view, &(struct begun){id, point});
}

bool row_is_done(const struct row_maker *maker, const char *id)
{
    enum outcome status;

    return !maker->force && store_find(maker->store, id, &status) && !(maker->retry_failed && outcome_failed(status));
}

/* The row of a point whose scenario is refused, or NULL where the store has it, and after an error. */
static json_t *refused_row(const struct row_maker *maker, uint64_t number, const struct point *point,
                           const struct error *found, char *note, struct error *err)
{
    json_t *row;

    if (error_pass_system(found, err) || written_id(maker, number, note, err) || row_is_done(maker, note))
        return NULL;
    row = row_begin(note, point);
    outcome_refused(row, found);
    return row;
}

/* The metrics of its training, where the scenario has one; or why there is none. */
static int add_training(json_t *row, const struct scenario *scenario, const struct run *run, struct error *err)
{
    struct error found = {0};
    int rc = 0;

    if (training_is_asked(scenario) && training_put_metrics(json_object_get(row, "metrics"), scenario, run, &found)) {
        rc = error_pass_system(&found, err);
        outcome_refused(row, &found);
    }
    error_release(&found);
    return rc;
}

/* The row of a scenario; the same. */
static json_t *simulated_row(const struct row_maker *maker, const struct scenario *scenario, const struct point *point,
                             char *note, struct error *err)
{
    json_t *row;

    if (resolved_id(maker, scenario, note, err) || row_is_done(maker, note))
        return NULL;
    row = row_begin(note, point);
    /* anchors correct iterations alone */
    if (!outcome_with(row, scenario, maker->anchors, maker->anchors ? NULL : add_training, err))
        return row;
    json_decref(row);
    return NULL;
}

/* The row of a point; the same. */
static json_t *row_of(const struct row_maker *maker, uint64_t number, const struct point *point, struct arena *arena,
                      char *note, struct error *err)
{
    struct scenario scenario = {0};
    struct error found = {0};
    struct progress progress;
    json_t *row;

    progress_begin(&progress, "--timeout", maker->timeout, maker->bytes);
    arena->progress = &progress;
    if (scenario_read(arena, point->root, &maker->engine, maker->engine != NULL, maker->points->name, &scenario,
                      &found)) {
        row = refused_row(maker, number, point, &found, note, err);
    } else {
        scenario_prefer(&scenario, ENGINE_FAST);
        row = simulated_row(maker, &scenario, point, note, err);
    }
    scenario_release(&scenario);
    error_release(&found);
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

/* Sends the head as it is, since reader and writer are one program. Of several errors it sends the first: its file, and
 * its text. */
static void reply(const struct row_head *head, const json_t *row, const struct error *err, FILE *out)
{
    const struct error_message *message = &err->messages[0];

    fwrite(head, sizeof *head, 1, out);
    if (head->refused)
        fprintf(out, "%s%c%s", message->loc.file ? message->loc.file : "", '\0', message->text);
    else if (row)
        json_line(row, out);
}

const char *row_split(const char *text, size_t length, struct row_head *head, struct error *err)
{
    BUG_IF(length < sizeof *head);
    memcpy(head, text, sizeof *head);
    text += sizeof *head;
    if (!head->refused)
        return text;
    error_add(err, EXIT_UNEXPECTED, (struct loc){.file = *text ? text : NULL}, "%s", text + strlen(text) + 1);
    return NULL;
}

void row_make(const struct row_maker *maker, uint64_t number, char *note, FILE *out)
{
    struct arena arena = {.cache = maker->cache}, own = arena;
    struct row_head head = {.stored = true};
    struct error found = {0}, err = {0};
    struct point point;
    json_t *row;

    if (point_make(maker->points, number, &arena, &point, &found))
        row = refused_row(maker, number, &point, &found, note, &err);
    else
        row = row_of(maker, number, &point, &own, note, &err);
    if (row)
        head = row_head_of(row);
    else
        memcpy(head.id, note, ID_DIGITS);
    head.refused = err.count > 0;
    reply(&head, row, &err, out);
    json_decref(row);
    error_release(&found);
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
    struct found_id {
        char id[ID_DIGITS + 1], refusal[512];    /* why the system did not let a file be read */
    } *found;                    /* shared memory */
};

static void find_id(void *context)
{
    const struct lost_id *lost = context;
    const struct row_maker *maker = lost->maker;
    struct found_id *found = lost->found;
    struct scenario scenario;
    struct arena arena = {0};
    struct error err = {0};
    struct point point;

    alarm(ID_SECONDS);
    if (!point_make(maker->points, lost->number, &arena, &point, &err) &&
        !scenario_read(&arena, point.root, &maker->engine, maker->engine != NULL, maker->points->name, &scenario, &err))
        resolved_id(maker, &scenario, found->id, &err);
    if (err.system)
        text_clip(err.messages[0].text, found->refusal, sizeof found->refusal);
}

static int lost_id(const struct row_maker *maker, uint64_t number, char id[ID_DIGITS + 1], struct error *err)
{
    struct lost_id lost = {maker, number, child_share(sizeof *lost.found)};
    struct error ignored = {0};
    int rc = 0;

    if (lost.found)
        child_run(find_id, &lost, "the scenario", &ignored);
    if (lost.found && *lost.found->refusal)
        rc = error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "%s", lost.found->refusal);
    else if (lost.found && strlen(lost.found->id) == ID_DIGITS)
        memcpy(id, lost.found->id, ID_DIGITS + 1);
    else
        rc = written_id(maker, number, id, err);
    child_unshare(lost.found, sizeof *lost.found);
    error_release(&ignored);
    return rc;
}

json_t *row_lost(const struct row_maker *maker, uint64_t number, const char *id, enum outcome status,
                 const char *reason, struct error *err)
{
    struct arena arena = {0};
    struct error found = {0};
    struct point point;
    char own[ID_DIGITS + 1];
    json_t *row = NULL;

    point_make(maker->points, number, &arena, &point, &found);
    if (!error_pass_system(&found, err) && (strlen(id) == ID_DIGITS || !lost_id(maker, number, own, err))) {
        row = row_begin(strlen(id) == ID_DIGITS ? id : own, &point);
        outcome_lost(row, status, reason);
    }
    error_release(&found);
    arena_release(&arena);
    return row;
}
