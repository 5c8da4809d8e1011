/* store_rows: what the tests of the store share: rows with an id, added to a file and counted in it. */
#ifndef DTSIM_STORE_ROWS_H
#define DTSIM_STORE_ROWS_H

#include <unistd.h>

#include "store/store.h"
#include "store_place.h"

static inline void place_remove(const struct place *place)
{
    struct arena arena = {0};
    struct error err = {0};
    const char **files = store_files(&arena, place->folder, &err);

    for (size_t i = 0; files[i]; i++)
        unlink(files[i]);
    arena_release(&arena);
    assert_int_equal(rmdir(place->folder), 0);           /* nothing else is left there */
}

static inline json_t *header_of(int points)
{
    return json_pack("{s:i, s:i}", "dtsim_sweep", 1, "points", points);
}

/* The id of row i. */
static inline const char *id_of(int i, char id[ID_DIGITS + 1])
{
    snprintf(id, ID_DIGITS + 1, "%08x%024x", (unsigned)i * 2654435761u, (unsigned)i);
    return id;
}

static inline json_t *row_of(int i, const char *status)
{
    char id[ID_DIGITS + 1];

    return json_pack("{s:s, s:{s:i}, s:s, s:f}", "id", id_of(i, id), "point", "a", i, "status", status, "x", i / 3.0);
}

static inline int add(struct store *store, int i, const char *status)
{
    struct error err = {0};
    json_t *row = row_of(i, status);
    char *text = json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(17));
    int rc = store_add(store, store_id(row), outcome_of(row), text, &err);

    free(text);
    json_decref(row);
    error_release(&err);
    return rc;
}

static inline void opened(struct store *store, const struct place *place, int points)
{
    struct error err = {0};
    json_t *header = header_of(points);

    if (store_open(store, place->folder, 1, 1, header, &err))
        fail_msg("%s", err.messages[0].text);
    json_decref(header);
}

static inline void closed(struct store *store)
{
    struct error err = {0};

    assert_int_equal(store_close(store, &err), 0);
}

/* What a file holds. */
struct tally { int rows, points, sum; };

static inline int tally_header(void *context, const json_t *header, struct error *err)
{
    (void)err;
    ((struct tally *)context)->points = (int)json_integer_value(json_object_get(header, "points"));
    return 0;
}

static inline int tally_row(void *context, const json_t *row, const char *line, size_t length, struct error *err)
{
    struct tally *tally = context;
    int i = (int)json_integer_value(json_object_get(json_object_get(row, "point"), "a"));

    (void)err;
    assert_true(line[0] == '{' && line[length - 1] == '}');
    assert_true(json_real_value(json_object_get(row, "x")) == i / 3.0);
    tally->rows++;
    tally->sum += i;
    return 0;
}

static inline struct tally tally_of(const char *file)
{
    struct tally tally = {0};
    const struct store_reader reader = {tally_header, tally_row, &tally};
    struct error err = {0};

    if (store_read(file, &reader, &err))
        fail_msg("%s", err.messages[0].text);
    return tally;
}

#endif
