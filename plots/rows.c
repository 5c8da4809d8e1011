#include "rows.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "files/json.h"

enum { LONGEST_VALUE = 32 };

const json_t *row_value(const json_t *row, const char *key)
{
    const json_t *metrics = json_object_get(row, "metrics");
    const json_t *value = json_object_get(json_object_get(row, "point"), key);
    const char *dot = strchr(key, '.');

    value = value ? value : json_object_get(row, key);
    value = value ? value : json_object_get(metrics, key);
    return value || !dot ? value : json_object_get(json_object_getn(metrics, key, (size_t)(dot - key)), dot + 1);
}

double row_number(const json_t *row, const char *key)
{
    const json_t *value = row_value(row, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *json_label(struct arena *arena, const json_t *value)
{
    char *whole;
    const char *text;

    if (!value)
        return "";
    if (json_is_string(value))
        return text_clean(arena, json_string_value(value), LONGEST_VALUE);
    if (json_is_number(value))
        return arena_printf(arena, "%.6g", json_number_value(value));
    whole = json_text(value);
    text = text_clean(arena, whole, LONGEST_VALUE);
    free(whole);
    return text;
}

const char *row_status(const json_t *row)
{
    const char *status = json_string_value(json_object_get(row, "status"));

    return status ? status : "";
}

/* A value while an axis is ordered. */
struct ordered { const char *text; double size; const json_t *json; };

static int compare_ordered(const void *left, const void *right)
{
    const struct ordered *a = left, *b = right;

    if (isnan(a->size) != isnan(b->size))
        return isnan(a->size) ? 1 : -1;
    return a->size < b->size ? -1 : a->size > b->size ? 1 : strverscmp(a->text, b->text);
}

/* The sizes of the values: of all where they are numbers or quantities of one unit, else of the numbers. */
static void find_sizes(struct ordered *values, int count)
{
    bool all = false;

    for (enum unit unit = UNIT_NUMBER; unit <= UNIT_PRICE && !all; unit++) {
        all = true;
        for (int i = 0; i < count && all; i++) {
            char why[256];

            if (json_is_number(values[i].json))
                values[i].size = json_number_value(values[i].json);
            else
                all = json_is_string(values[i].json) &&
                      !unit_parse(unit, json_string_value(values[i].json), &values[i].size, why, sizeof why);
        }
    }
    for (int i = 0; i < count && !all; i++)
        values[i].size = json_is_number(values[i].json) ? json_number_value(values[i].json) : NAN;
}

static int place_of(const struct ordered *values, int count, const json_t *value)
{
    for (int i = 0; i < count; i++)
        if (json_equal(values[i].json, value))
            return i;
    return -1;
}

int row_axis_read(const struct chart *chart, const char *key, struct row_axis *axis)
{
    struct ordered values[AXIS_VALUES] = {{NULL, 0, NULL}};
    json_t *rows = chart->rows->rows;
    size_t count = json_array_size(rows);

    *axis = (struct row_axis){.key = key, .places = ARENA_ARRAY(chart->arena, int, count + 1)};
    for (size_t i = 0; i < count; i++) {
        const json_t *value = row_value(json_array_get(rows, i), key);

        if (!value || json_is_null(value) || place_of(values, axis->count, value) >= 0)
            continue;
        if (axis->count == AXIS_VALUES)
            return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "%s: '%s' has more than %d values; --where "
                             "chooses among rows", chart->kind, key, AXIS_VALUES);
        values[axis->count++] = (struct ordered){json_label(chart->arena, value), NAN, value};
    }
    find_sizes(values, axis->count);
    array_sort(values, (size_t)axis->count, sizeof *values, compare_ordered);
    for (int i = 0; i < axis->count; i++) {
        axis->texts[i] = values[i].text;
        axis->longest = (int)fmax(axis->longest, (double)strlen(values[i].text));
    }
    for (size_t i = 0; i < count; i++)
        axis->places[i] = place_of(values, axis->count, row_value(json_array_get(rows, i), key));
    return 0;
}

void row_axis_tics(const struct chart *chart, const struct row_axis *axis, char which, int pixels, int needed)
{
    int step = (needed + pixels - 1) / pixels;

    fprintf(chart->script, "set %ctics () scale 0\n", which);
    for (int i = 0; i < axis->count; i += step > 1 ? step : 1)
        fprintf(chart->script, "set %ctics add (\"%s\" %d)\n", which, text_tic(chart->arena, axis->texts[i]), i);
}

const char *const *point_keys(const struct chart *chart)
{
    struct { const char **items; size_t count, capacity; } keys = {0};
    const char **list;

    for (size_t i = 0; i < json_array_size(chart->rows->rows); i++) {
        json_t *point = json_object_get(json_array_get(chart->rows->rows, i), "point"), *value;
        const char *key;

        json_object_foreach(point, key, value) {
            bool known = false;

            for (size_t k = 0; k < keys.count && !known; k++)
                known = strcmp(keys.items[k], key) == 0;
            if (!known)
                *GROW(&keys) = key;
        }
    }
    list = ARENA_ARRAY(chart->arena, const char *, keys.count + 1);
    if (keys.count)
        memcpy(list, keys.items, keys.count * sizeof *list);
    free(keys.items);
    return list;
}

bool key_varies(const struct chart *chart, const char *key, const int *group, int groups)
{
    const json_t **first = xcalloc((size_t)groups + 1, sizeof *first);
    bool varies = false;

    for (size_t i = 0; i < json_array_size(chart->rows->rows) && !varies; i++) {
        const json_t *value = row_value(json_array_get(chart->rows->rows, i), key);
        int place = group ? group[i] : 0;

        if (!value || place < 0)
            continue;
        varies = first[place] && !json_equal(first[place], value);
        first[place] = value;
    }
    free(first);
    return varies;
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* A key in words: blanks for '_', and abbreviations in capitals. */
static char *words_of(struct arena *arena, const char *key, size_t length)
{
    static const char *const names[][2] = {{"gpu", "GPU"}, {"mfu", "MFU"}, {"hfu", "HFU"}, {"tflops", "TFLOP/s"}};
    char *words = arena_strdup(arena, ""), *rest = arena_strndup(arena, key, length);

    for (char *word; (word = strsep(&rest, "_"));) {
        const char *name = word;

        for (size_t i = 0; i < COUNT(names); i++)
            if (strcmp(word, names[i][0]) == 0)
                name = names[i][1];
        words = arena_printf(arena, "%s%s%s", words, *words ? " " : "", name);
    }
    return words;
}

static struct quantity with_unit(struct arena *arena, const char *key, size_t length, const char *unit, double scale)
{
    return (struct quantity){arena_printf(arena, "%s (%s)", words_of(arena, key, length), unit),
                             arena_printf(arena, " %s", unit), scale};
}

static struct quantity bytes_of(struct arena *arena, const char *key, double most)
{
    static const struct { const char *name; double bytes; } units[] = {
        {"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1},
    };
    const char *bytes = strstr(key, "_bytes");
    size_t i = 0, before = (size_t)(bytes - key);
    const char *name = arena_printf(arena, "%.*s%s", (int)before, key, bytes + strlen("_bytes"));

    while (i + 1 < COUNT(units) && most < units[i].bytes)
        i++;
    return with_unit(arena, name, strlen(name), units[i].name, 1 / units[i].bytes);
}

static struct quantity rate_of(struct arena *arena, const char *key, double most)
{
    const char *what = words_of(arena, key, strlen(key) - strlen("_per_s"));
    const char *times = most >= 1e7 ? "million " : most >= 1e5 ? "thousand " : "";

    return (struct quantity){arena_printf(arena, "%s%s/s", times, what), arena_printf(arena, " %s%s/s", times, what),
                             *times == 'm' ? 1e-6 : *times ? 1e-3 : 1};
}

struct quantity quantity_of(struct arena *arena, const char *key, double most)
{
    static const char *const shares[] = {"mfu", "hfu", "fraction", "utilization", "overhead", "share"};
    const struct time_unit *time = time_unit_for(most);

    if (strncmp(key, "breakdown_s.", 12) == 0)
        return with_unit(arena, key + 12, strlen(key + 12), time->label, time->per_second);
    if (ends_in(key, "_per_s"))
        return rate_of(arena, key, most);
    if (ends_in(key, "_s"))
        return with_unit(arena, key, strlen(key) - 2, time->label, time->per_second);
    if (strstr(key, "_bytes"))
        return bytes_of(arena, key, most);
    for (size_t i = 0; i < COUNT(shares); i++)
        if (ends_in(key, shares[i]))
            return with_unit(arena, key, strlen(key), "%", 100);
    return (struct quantity){strchr(key, '.') ? key : words_of(arena, key, strlen(key)), "", 1};
}

const char *quantity_text(struct arena *arena, const struct quantity *quantity, double number, int digits)
{
    double written = number * quantity->scale;

    if (fabs(written) >= pow(10, digits - 1) && fabs(written) < 1e7)
        return arena_printf(arena, "%.0f", written);
    return arena_printf(arena, "%.*g", digits, written);
}

const char *short_value(struct arena *arena, const char *key, const json_t *value)
{
    static const struct { const char *key, *before, *after; } forms[] = {
        {"strategy.tensor", "TP", ""}, {"strategy.pipeline", "PP", ""}, {"strategy.data", "DP", ""},
        {"strategy.context", "CP", ""}, {"strategy.expert", "EP", ""}, {"strategy.zero", "ZeRO-", ""},
        {"strategy.chunks", "", " chunks"}, {"strategy.shard", "shard ", ""}, {"batch.micro", "mb", ""},
        {"batch.global", "batch ", ""}, {"batch.micro_batches", "", " micro-batches"},
        {"cluster.nodes", "", " nodes"}, {"strategy.schedule", "", ""}, {"memory.precision", "", ""},
        {"strategy.data_parallel", "", ""}, {"cluster", "", ""}, {"cluster.platform", "", ""}, {"software", "", ""},
    };
    const char *text = json_label(arena, value), *dot = strrchr(key, '.');
    const char *word = dot && dot[1] ? dot + 1 : key;

    for (size_t i = 0; i < COUNT(forms); i++)
        if (strcmp(key, forms[i].key) == 0)
            return arena_printf(arena, "%s%s%s", forms[i].before, text, forms[i].after);
    if (json_is_boolean(value) || strcmp(text, "none") == 0)
        return arena_printf(arena, "%s%s", json_is_true(value) ? "" : "no ", words_of(arena, word, strlen(word)));
    return arena_printf(arena, "%s %s", words_of(arena, word, strlen(word)), text);
}

const char *row_label(const struct chart *chart, const json_t *row, const struct row_axis *axis)
{
    const char *const *keys = point_keys(chart), *text = "";

    for (size_t i = 0; keys[i]; i++) {
        const json_t *value = row_value(row, keys[i]);
        bool follows = axis && (!strcmp(keys[i], axis->key) || json_is_number(value)) &&
                       !key_varies(chart, keys[i], axis->places, axis->count);

        if (!follows && key_varies(chart, keys[i], NULL, 1))
            text = arena_printf(chart->arena, "%s%s%s", text, *text ? " " : "", short_value(chart->arena, keys[i],
                                                                                            value));
    }
    return text;
}

const char *sweep_title(const struct chart *chart)
{
    enum { LONGEST = 60 };

    if (chart->ninputs > 1)
        return arena_printf(chart->arena, "%d folders or files of sweeps", chart->ninputs);
    return text_clean(chart->arena, last_part(chart->arena, chart->dir), LONGEST);
}

/* "50 infeasible (memory 40, degrees 10)": how many rows have the status, and of these how many each rule; "": none. */
static const char *count_status(const struct chart *chart, const char *status)
{
    json_t *rows = chart->rows->rows;
    json_t *rules = json_object(), *value;
    const char *text = "", *name;
    int count = 0;

    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *rule = json_string_value(json_object_get(row, "rule"));

        if (strcmp(row_status(row), status))
            continue;
        count++;
        if (rule)
            json_object_set_new(rules, rule, json_integer(json_integer_value(json_object_get(rules, rule)) + 1));
    }
    json_object_foreach(rules, name, value)
        text = arena_printf(chart->arena, "%s%s%s %d", text, *text ? ", " : "", name, (int)json_integer_value(value));
    json_decref(rules);
    return !count ? "" : *text ? arena_printf(chart->arena, "%d %s (%s)", count, status, text)
                               : arena_printf(chart->arena, "%d %s", count, status);
}

const char *sweep_outcome(const struct chart *chart)
{
    static const char *const statuses[] = {"ok", "infeasible", "error", "timeout", "crash"};
    json_t *rows = chart->rows->rows;
    const char *text = arena_printf(chart->arena, "%zu points: ", json_array_size(rows)), *before = "";
    double gpus = NAN;
    bool same = true;

    for (size_t i = 0; i < json_array_size(rows); i++) {
        double own = row_number(json_array_get(rows, i), "gpus");

        same &= isnan(gpus) || isnan(own) || own == gpus;
        gpus = isnan(gpus) ? own : gpus;
    }
    for (size_t i = 0; i < COUNT(statuses); i++) {
        const char *count = count_status(chart, statuses[i]);

        text = arena_printf(chart->arena, "%s%s%s", text, *count ? before : "", count);
        before = *count ? ", " : before;
    }
    return same && gpus >= 1 ? arena_printf(chart->arena, "%.0f GPU%s; %s", gpus, gpus > 1 ? "s" : "", text) : text;
}
