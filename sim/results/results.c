#include "results/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "run/metrics.h"
#include "sweep/paths.h"

/* A file while it is read. */
struct reading {
    struct results *results;
    const json_t *version;       /* of its header; NULL: it names none */
    json_t *header;
};

static int read_header(void *context, const json_t *header, struct error *err)
{
    struct reading *reading = context;
    const json_t *objectives = json_object_get(header, "objectives");

    (void)err;
    json_decref(reading->header);
    reading->header = json_deep_copy(header);
    reading->version = json_object_get(reading->header, "version");
    if (!json_object_size(reading->results->objectives))
        json_object_update(reading->results->objectives, (json_t *)(uintptr_t)objectives);
    return 0;
}

/* Rows of the build that wrote the header count; what an earlier one left would be other answers to the same
 * question. */
static int read_row(void *context, const json_t *row, const char *line, size_t length, struct error *err)
{
    struct reading *reading = context;

    (void)line;
    (void)length;
    (void)err;
    if (reading->version && !json_equal(json_object_get(row, "version"), reading->version))
        reading->results->other_builds++;
    else
        *GROW(&reading->results->rows) = json_incref((json_t *)(uintptr_t)row);
    return 0;
}

static int read_files(struct results *results, const char *path, struct error *err)
{
    struct reading reading = {.results = results};
    const struct store_reader reader = {read_header, read_row, &reading};
    const char *const one[] = {path, NULL}, *const *files = one;
    struct stat status;
    int rc = 0;

    if (!stat(path, &status) && S_ISDIR(status.st_mode))
        files = store_files(&results->arena, path);
    if (!files || !files[0])
        return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "the folder holds no rows of a sweep "
                         "(shard-*.jsonl)");
    for (size_t i = 0; files[i]; i++)
        rc = store_read(files[i], &reader, err) ? -1 : rc;
    json_decref(reading.header);
    return rc;
}

static const char *row_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));

    return text ? text : "";
}

/* By id; of one id the row that counts first. */
static int compare_ids(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int order = strcmp(row_text(x, "id"), row_text(y, "id"));

    return order ? order : outcome_failed(outcome_of(x)) - outcome_failed(outcome_of(y));
}

void results_keep(struct results *results, const bool *keep)
{
    size_t kept = 0;

    for (size_t i = 0; i < results->rows.count; i++)
        if (keep[i])
            results->rows.items[kept++] = results->rows.items[i];
        else
            json_decref(results->rows.items[i]);
    results->rows.count = kept;
}

/* One row an id. */
static void unique(struct results *results)
{
    struct { json_t **items; size_t count; } rows = {results->rows.items, results->rows.count};
    bool *keep = xcalloc(rows.count, sizeof *keep);

    if (rows.count)
        qsort(rows.items, rows.count, sizeof *rows.items, compare_ids);
    for (size_t i = 0; i < rows.count; i++)
        keep[i] = !i || strcmp(row_text(rows.items[i - 1], "id"), row_text(rows.items[i], "id"));
    results_keep(results, keep);
    free(keep);
}

/* A row and the text of its point. */
struct placed { char *point; json_t *row; };

static int compare_points(const void *a, const void *b)
{
    return strverscmp(((const struct placed *)a)->point, ((const struct placed *)b)->point);
}

/* Orders rows by their points: an order that depends neither on who wrote them when nor on the build, as ids do. */
static void order_points(struct results *results)
{
    struct placed *placed = xcalloc(results->rows.count, sizeof *placed);

    for (size_t i = 0; i < results->rows.count; i++)
        placed[i] = (struct placed){json_text(json_object_get(results->rows.items[i], "point")),
                                    results->rows.items[i]};
    if (results->rows.count)
        qsort(placed, results->rows.count, sizeof *placed, compare_points);
    for (size_t i = 0; i < results->rows.count; i++) {
        results->rows.items[i] = placed[i].row;
        free(placed[i].point);
    }
    free(placed);
}

static void add_key(struct results *results, const char *name, int from)
{
    struct row_key *key;

    for (size_t i = 0; i < results->keys.count; i++)
        if (!strcmp(results->keys.items[i].name, name))
            return;
    key = GROW(&results->keys);
    *key = (struct row_key){.name = arena_strdup(&results->arena, name)};
    key->from = from == KEY_POINT ? KEY_POINT : from == KEY_ROW ? KEY_ROW : KEY_METRIC;
}

static void add_keys(struct results *results, json_t *object, const char *before, int from)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value) {
        const char *whole = arena_printf(&results->arena, "%s%s", before, name);

        if (json_is_object(value) && from == KEY_METRIC)
            add_keys(results, value, arena_printf(&results->arena, "%s.", whole), from);
        else
            add_key(results, whole, from);
    }
}

/* The metrics of rows that ended well, or of the others. Neighbouring rows mostly have as many keys, and then the
 * same. */
static void collect_metrics(struct results *results, bool well)
{
    size_t before = 0;

    for (size_t i = 0; i < results->rows.count; i++) {
        json_t *metrics = json_object_get(results->rows.items[i], "metrics");

        if ((outcome_of(results->rows.items[i]) == OUTCOME_OK) != well)
            continue;
        if (json_object_size(metrics) != before)
            add_keys(results, metrics, "", KEY_METRIC);
        before = json_object_size(metrics);
    }
}

static void collect_keys(struct results *results)
{
    static const char *const own[] = {"rank", "status", "engine", "rule", "reason", "id", "version"};

    for (size_t i = 0; i < results->rows.count; i++)
        add_keys(results, json_object_get(results->rows.items[i], "point"), "", KEY_POINT);
    for (size_t i = 0; i < COUNT(own); i++)
        add_key(results, own[i], KEY_ROW);
    collect_metrics(results, true);
    collect_metrics(results, false);
}

int results_load(const char *const *folders, size_t count, struct results *results, struct error *err)
{
    int rc = 0;

    *results = (struct results){.objectives = json_object(), .ranked = -1};
    for (size_t i = 0; i < count; i++)
        rc = read_files(results, folders[i], err) ? -1 : rc;
    if (rc)
        return -1;
    unique(results);
    order_points(results);
    collect_keys(results);
    return 0;
}

void results_release(struct results *results)
{
    for (size_t i = 0; i < results->rows.count; i++)
        json_decref(results->rows.items[i]);
    free(results->rows.items);
    free(results->keys.items);
    json_decref(results->objectives);
    arena_release(&results->arena);
    *results = (struct results){0};
}

static const char *key_candidate(size_t i, const void *context)
{
    const struct results *results = context;

    return i < results->keys.count ? results->keys.items[i].name : NULL;
}

static int find_key(const struct results *results, const char *name)
{
    for (size_t i = 0; i < results->keys.count; i++)
        if (!strcmp(results->keys.items[i].name, name))
            return (int)i;
    return -1;
}

int results_key(const struct results *results, const char *name, const char *option, struct error *err)
{
    int key = find_key(results, name);
    const char *meant = nearest(name, key_candidate, results);
    char shown[CLIP_SIZE];

    if (key < 0)
        error_add(err, EXIT_USAGE, (struct loc){0}, "%s: the rows have no '%s'%s%s%s", option,
                  text_clip(name, shown, sizeof shown), meant ? "; did you mean '" : "", meant ? meant : "",
                  meant ? "'?" : "; expected a path that the sweep sets, or a metric such as iteration_time_s");
    return key;
}

const json_t *results_json(const struct results *results, size_t row, int key)
{
    static const char *const parts[] = {[KEY_POINT] = "point", [KEY_METRIC] = "metrics"};
    const struct row_key *of = &results->keys.items[key];
    const json_t *json = results->rows.items[row];
    const char *dot;

    if (of->from != KEY_ROW)
        json = json_object_get(json, parts[of->from]);
    dot = of->from == KEY_METRIC ? strchr(of->name, '.') : NULL;
    if (!dot)
        return json_object_get(json, of->name);
    return json_object_get(json_object_getn(json, of->name, (size_t)(dot - of->name)), dot + 1);
}

struct value results_value(const struct results *results, size_t row, int key)
{
    const struct row_key *of = &results->keys.items[key];
    const json_t *json = results_json(results, row, key);

    if (json_is_number(json))
        return value_number(json_number_value(json));
    if (json_is_boolean(json))
        return value_boolean(json_is_true(json));
    if (json_is_string(json) && of->from == KEY_POINT) {
        struct node node = {.kind = NODE_SCALAR, .text = json_string_value(json)};

        return path_value(of->name, &node);
    }
    if (json_is_string(json))
        return value_text(json_string_value(json));
    return (struct value){.kind = json_is_array(json) ? VALUE_LIST : json_is_object(json) ? VALUE_MAPPING : VALUE_NONE};
}

/* names and values of expressions: the keys of one row */
struct asked { struct results *results; size_t row; };

static int name_find(void *context, const char *name, const char **why)
{
    (void)why;
    return find_key(((const struct asked *)context)->results, name);
}

static const char *name_at(size_t i, const void *context)
{
    return key_candidate(i, ((const struct asked *)context)->results);
}

static int name_value_of(void *context, int name, struct value *value, struct error *err)
{
    const struct asked *asked = context;

    (void)err;
    *value = results_value(asked->results, asked->row, name);
    return 0;
}

int results_where(struct results *results, const char *expression, struct error *err)
{
    struct asked asked = {results, 0};
    const struct expression_text text = {"the condition", expression, {"--where", 1, 1}, NULL};
    const struct names names = {name_find, name_at, &asked};
    struct expression *parsed;
    struct error found = {0};
    bool *keep = xcalloc(results->rows.count, sizeof *keep);
    int rc = expression_parse(&results->arena, &text, &names, &parsed, &found);

    for (asked.row = 0; !rc && asked.row < results->rows.count; asked.row++) {
        struct value value;

        rc = expression_holds(parsed, name_value_of, &asked, &value, &found);
        keep[asked.row] = !rc && value.kind == VALUE_BOOLEAN && value.boolean;
    }
    if (!rc)
        results_keep(results, keep);
    for (int i = 0; i < found.count; i++)        /* the command line is wrong, not a file */
        error_add(err, EXIT_USAGE, found.messages[i].loc, "%s", found.messages[i].text);
    error_release(&found);
    free(keep);
    return rc;
}
