#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "files/json.h"
#include "files/look.h"
#include "report/outcome.h"
#include "results/results_internal.h"
#include "store/ids.h"
#include "store/store.h"
#include "report/outcome.h"
#include "store/tally.h"

enum { HELD = 1024 };            /* rows that are held in addition to the rows that are asked for */

/* The files while they are read. */
struct reading {
    struct results *results;
    json_t *header;
    const json_t *version;       /* of its header; NULL: it names none */
    uint32_t rows;               /* of that build, in all files so far */
    uint32_t end;                /* that number at the end of the file; more were written since it was looked through */
    const struct results_question *question;
    struct expression *where;
    size_t until;                /* rows: then those that are not asked for are dropped */
    size_t counted;              /* rows that count */
};

static int read_header(void *context, const json_t *header, struct error *err)
{
    struct reading *reading = context;
    const json_t *objectives = json_object_get(header, "objectives");

    (void)err;
    json_decref(reading->header);
    reading->header = json_deep_copy(header);
    reading->version = json_object_get(reading->header, "version");
    if (!reading->results->header)
        reading->results->header = json_incref(reading->header);
    if (!json_object_size(reading->results->objectives))
        json_object_update(reading->results->objectives, (json_t *)(uintptr_t)objectives);
    return 0;
}

/* Rows of the build that wrote the header count; what an earlier one left would be other answers to the same
 * question. */
static bool other_build(const struct reading *reading, const json_t *row)
{
    return reading->version && !json_equal(json_object_get(row, "version"), reading->version);
}

/* Of rows with one id the last that did not fail counts, else the last. */
static void count_row(struct reading *reading, const json_t *row)
{
    struct id_entry *entry = ids_put(&reading->results->ids, store_id(row));
    enum outcome outcome = outcome_of(row);

    if (entry->number && outcome_failed(outcome) && !outcome_failed((enum outcome)entry->status))
        return;
    entry->number = reading->rows & ID_NUMBER_MOST;
    entry->status = (unsigned)outcome & 7;
}

/* A row while its keys are looked at. */
struct keyed {
    struct results *results;
    const char *point, *kept;    /* its text; a copy that stays, once one is needed */
    bool well;
    size_t next, place;          /* where the next key is expected; how many have been looked at */
};

/* Neighbouring rows mostly have the same keys in the same order. */
static struct row_key *key_find(struct keyed *keyed, const char *name, int from)
{
    struct results *results = keyed->results;
    struct row_key *key;

    for (size_t n = 0; n < results->keys.count; n++) {
        size_t i = (keyed->next + n) % results->keys.count;

        if (strcmp(results->keys.items[i].name, name))
            continue;
        keyed->next = i + 1;
        return &results->keys.items[i];
    }
    key = GROW(&results->keys);
    *key = (struct row_key){.name = arena_strdup(&results->arena, name)};
    key->from = from == KEY_POINT ? KEY_POINT : from == KEY_ROW ? KEY_ROW : KEY_METRIC;
    keyed->next = results->keys.count;
    return key;
}

static void add_key(struct keyed *keyed, const char *name, int from, const json_t *value)
{
    struct row_key *key = key_find(keyed, name, from);
    size_t place = keyed->place++;

    key->number |= json_is_number(value);
    if (key->first && (keyed->well != key->well ? key->well : strverscmp(keyed->point, key->first) >= 0))
        return;
    if (!keyed->kept)
        keyed->kept = arena_strdup(&keyed->results->arena, keyed->point);
    key->first = keyed->kept;
    key->well = keyed->well;
    key->place = place;
}

static void add_keys(struct keyed *keyed, json_t *object, const char *before, int from)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value) {
        char whole[256];

        snprintf(whole, sizeof whole, "%s%s", before, name);
        if (json_is_object(value) && from == KEY_METRIC) {
            strncat(whole, ".", sizeof whole - strlen(whole) - 1);
            add_keys(keyed, value, whole, from);
        } else {
            add_key(keyed, whole, from, value);
        }
    }
}

#define UNUSED_LINE(line, length) ((void)(line), (void)(length))
static int index_row(void *context, const json_t *row, const char *line, size_t length, struct error *err)
{
    struct reading *reading = context;
    struct keyed keyed = {.results = reading->results, .well = true};
    char *point;

    UNUSED_LINE(line, length);
    if (reading->results->looked++ < HELD && !reading->results->files[1])
        *GROW(&reading->results->first) = json_incref((json_t *)(uintptr_t)row);
    if (other_build(reading, row)) {
        reading->results->other_builds++;
        return 0;
    }
    if (++reading->rows == ID_NUMBER_MOST)
        return error_add(err, EXIT_INPUT, (struct loc){0}, "more than %d rows; expected fewer files at once",
                         ID_NUMBER_MOST - 1);
    count_row(reading, row);
    keyed.point = point = results_point(row);
    add_keys(&keyed, json_object_get(row, "point"), "", KEY_POINT);
    keyed.well = outcome_of(row) == OUTCOME_OK;
    add_keys(&keyed, json_object_get(row, "metrics"), "", KEY_METRIC);
    free(point);
    return 0;
}

/* As if rows were read in the order of their points: keys in the order in which they come. */
static int compare_keys(const void *a, const void *b)
{
    const struct row_key *x = a, *y = b;
    int order = x->first && y->first ? strverscmp(x->first, y->first) : 0;

    if (x->from != y->from)
        return (int)x->from - (int)y->from;
    if (x->well != y->well)
        return x->well ? -1 : 1;
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static void add_own_keys(struct results *results)
{
    static const char *const own[] = {
        "rank", "status", "engine", "verified_engine", "software", "in_framework", "model",
        "gpu", "rule", "reason", "id", "version",
    };
    struct keyed keyed = {.results = results, .point = "", .well = true};

    for (size_t i = 0; i < COUNT(own); i++)
        add_key(&keyed, own[i], KEY_ROW, NULL);
    array_sort(results->keys.items, results->keys.count, sizeof *results->keys.items, compare_keys);
}

/* The files of all folders, and the files that are named themselves. */
static int find_files(struct results *results, const char *const *folders, size_t count, struct error *err)
{
    struct { const char **items; size_t count, capacity; } files = {0};
    int rc = 0;

    for (size_t f = 0; f < count; f++) {
        const char *const one[] = {folders[f], NULL}, *const *found = one;
        enum look there;

        if (look_at(folders[f], &there, err))
            found = NULL;
        else if (there == LOOK_FOLDER)
            found = store_files(&results->arena, folders[f], err);
        if (!found)
            rc = -1;
        else if (!found[0])
            rc = error_add(err, EXIT_INPUT, (struct loc){.file = folders[f]}, "the folder holds no rows of a sweep "
                           "(shard-*.jsonl)");
        for (; found && *found; found++)
            *GROW(&files) = *found;
    }
    results->files = ARENA_ARRAY(&results->arena, const char *, files.count + 1);
    results->ends = ARENA_ARRAY(&results->arena, uint32_t, files.count + 1);
    if (files.count)
        memcpy(results->files, files.items, files.count * sizeof *files.items);
    free(files.items);
    return rc;
}

int results_open(const char *const *folders, size_t count, struct results *results, struct error *err)
{
    struct reading reading = {.results = results};
    const struct store_reader reader = {read_header, index_row, &reading};
    int rc;

    *results = (struct results){.objectives = json_object(), .ranked = -1};
    rc = find_files(results, folders, count, err);
    for (size_t i = 0; results->files[i]; i++) {
        rc = store_read(results->files[i], &reader, err) ? -1 : rc;
        results->ends[i] = reading.rows;
    }
    json_decref(reading.header);
    add_own_keys(results);
    return rc;
}

static void choose(struct reading *reading)
{
    struct results *results = reading->results;

    results_sort_points(results);
    if (reading->question->choose)
        reading->question->choose(results, reading->question->context);
    reading->until = 2 * results->rows.count + HELD;
}

static int read_row(void *context, const json_t *row, const char *line, size_t length, struct error *err)
{
    struct reading *reading = context;
    struct results *results = reading->results;
    const struct id_entry *entry = ids_find(&results->ids, store_id(row));
    char *point;
    bool holds = true, unknown = false;

    UNUSED_LINE(line, length);
    if (other_build(reading, row) || reading->rows == reading->end || ++reading->rows != (entry ? entry->number : 0))
        return 0;
    reading->counted++;
    *GROW(&results->rows) = json_incref((json_t *)(uintptr_t)row);
    if (reading->where && results_holds(results, reading->where, results->rows.count - 1, &holds, &unknown, err))
        return -1;
    /* A row without numbers, because it failed, might be one that is asked for. */
    if (holds || (unknown && outcome_failed(outcome_of(row)))) {
        point = results_point(row);
        tally_add(&results->tally, row, point);
        free(point);
    }
    if (!holds)
        results_keep_first(results, results->rows.count - 1);
    else if (results->rows.count >= reading->until)
        choose(reading);
    return 0;
}

int results_read(struct results *results, const struct results_question *question, struct error *err)
{
    struct reading reading = {.results = results, .question = question, .until = HELD};
    const struct store_reader reader = {read_header, read_row, &reading};
    int rc = question->where ? results_condition(results, question->where, &reading.where, err) : 0;
    bool held = results->first.count == results->looked;

    reading.version = json_object_get(results->header, "version");
    reading.end = results->ends[0];
    for (size_t i = 0; held && i < results->first.count && !rc; i++)
        rc = read_row(&reading, results->first.items[i], NULL, 0, err);
    for (size_t i = 0; !held && results->files[i] && !rc; i++) {
        reading.end = results->ends[i];
        rc = store_read(results->files[i], &reader, err);
    }
    json_decref(reading.header);
    if (!rc && reading.counted != results->ids.count)
        rc = error_add(err, EXIT_UNEXPECTED, (struct loc){.file = results->files[0]}, "rows changed while they were "
                       "read; the same command reads them again");
    if (!rc)
        choose(&reading);
    return rc;
}
