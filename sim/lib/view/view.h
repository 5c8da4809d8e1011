/* view: what a result says, once: rows of a key, what it means, and its value. JSON, help, sentences for people (say.h) and
 * the page's fields are made of the same rows.
 *
 *     #define CAR(ROW) \
 *         ROW(speed_m_per_s, json_finite(car->speed), "of the whole way", .words = "speed") \
 *         ROW(driver, json_words(car->driver), "who drove")
 *     VIEW(car_view, struct car, car, CAR)
 */
#ifndef DTSIM_VIEW_H
#define DTSIM_VIEW_H

#include "base/cells.h"
#include "files/json.h"

struct view_row {
    const char *key;             /* NULL: the row is left out everywhere */
    const char *brief;           /* its meaning, and its unit where the key does not end in one; NULL: a fact for sentences alone,
                                  * which help and programs do not get */
    const char *words;           /* what people call it; NULL: as words_of() says */
    const struct view *of;       /* rows of the object, or of each item of the list, that is its value */
    enum { VIEW_ONE, VIEW_LIST, VIEW_MAP, VIEW_MAPS } form;  /* MAP: an object whose keys follow from what it describes; MAPS: a list
                                                              * of such objects */
};

struct view {
    const struct view_row *rows;
    size_t count;
    json_t *(*value)(size_t row, const void *of, size_t i);  /* the caller owns the reference; NULL: the key is left out */
};

/* Defines a view of its file (VIEW_SHARED: of the program), whose values are expressions over `it`, a TYPE const *, and, of the
 * items of a list that it holds, their number `i`. Rows: ROW(key, value, brief, .words = ..., .of = ...). */
#define VIEW(name, type, it, ROWS) \
    VIEW_PARTS(name, type, it, ROWS) \
    static const struct view name = {name##_rows, COUNT(name##_rows), name##_value};
#define VIEW_SHARED(name, type, it, ROWS) \
    VIEW_PARTS(name, type, it, ROWS) \
    const struct view name = {name##_rows, COUNT(name##_rows), name##_value};
#define VIEW_PARTS(name, type, it, ROWS) \
    static json_t *name##_value(size_t view_at, const void *view_it, size_t i) \
    { \
        enum { ROWS(VIEW_ENUMERATOR) }; \
        type const *it = view_it; \
        (void)it, (void)i; \
        switch (view_at) { ROWS(VIEW_CASE) } \
        return NULL; \
    } \
    static const struct view_row name##_rows[] = {ROWS(VIEW_ROW)};
#define VIEW_ENUMERATOR(key, ...) view_row_##key,
#define VIEW_CASE(key, value, ...) case view_row_##key: return value;
#define VIEW_ROW(name, value, ...) {.key = #name, .brief = __VA_ARGS__},

/* Adds what the rows say of it to an object: but for the facts for sentences alone, which view_facts() has too. */
void view_put(const struct view *view, const void *of, json_t *json);
json_t *view_json(const struct view *view, const void *of);
json_t *view_facts(const struct view *view, const void *of);
/* A list of what the rows say of each of the items, `size` bytes each; or of the items that it holds, numbers 0 to `count`, but
 * those without any value. */
json_t *view_list(const struct view *view, const void *items, size_t count, size_t size);
json_t *view_each(const struct view *view, const void *of, size_t count);
void view_print(const struct view *view, const void *of, FILE *out);
/* Says the line (say.h) of its facts, or of the facts of its item; lines (NULL stands behind the last) of the facts of several
 * views. Facts that no line names are not asked for. */
struct view_of { const struct view *view; const void *of; size_t i; };
void view_say(const struct view *view, const void *of, const char *line, FILE *out);
void view_say_item(const struct view *view, const void *of, size_t i, const char *line, FILE *out);
void view_say_all(const struct view_of *views, size_t count, const char *const *lines, FILE *out);
void json_print_all(json_t *json, FILE *out);        /* prints it and drops the reference */

/* An object of numbers by name; a list of texts, NULL past the last. */
json_t *json_numbers(const char *const *names, const double *numbers, size_t count);
json_t *json_texts(const char *const *texts);
json_t *json_words_or_null(const char *text);        /* null where the text is NULL or empty */
json_t *json_count(unsigned long long count);

/* Lines of a table of tabulators: the keys that have a value of `of`, and the values; a null is "nan". */
void view_columns(const struct view *view, const void *of, struct cells *cells);
void view_cells(const struct view *view, const void *of, size_t i, struct cells *cells);

/* A list of the view as a table of commas: a column a key, empty where an item has none or null. */
void view_csv(const struct view *view, const json_t *list, FILE *out);

/* What people call the key of a row. */
const char *view_words(struct arena *arena, const struct view_row *row);
/* A line a key and its meaning, "  steady_state.updates    in the window"; `above` stands before each key. */
void view_help(const struct view *view, const char *above, FILE *out);

#endif
