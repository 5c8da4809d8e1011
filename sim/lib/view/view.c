#include "view/view.h"

#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "base/text.h"
#include "base/words.h"
#include "view/say.h"
#include "files/json.h"

static json_t *put(const struct view *view, const void *of, size_t number, bool facts, json_t *json)
{
    for (size_t i = 0; i < view->count; i++) {
        const struct view_row *row = &view->rows[i];
        json_t *value = row->key && (row->brief || facts) ? view->value(i, of, number) : NULL;

        BUG_IF(value && json_object_set_new_nocheck(json, row->key, value));   /* keys are names in C */
    }
    return json;
}

void view_put(const struct view *view, const void *of, json_t *json)
{
    put(view, of, 0, false, json);
}

json_t *view_facts(const struct view *view, const void *of)
{
    return put(view, of, 0, true, json_object());
}

json_t *view_json(const struct view *view, const void *of)
{
    return put(view, of, 0, false, json_object());
}

json_t *view_each(const struct view *view, const void *of, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *item = put(view, of, i, false, json_object());

        if (json_object_size(item))
            json_append(list, json_incref(item));
        json_decref(item);
    }
    return list;
}

json_t *view_list(const struct view *view, const void *items, size_t count, size_t size)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_append(list, view_json(view, (const char *)items + i * size));
    return list;
}

void json_print_all(json_t *json, FILE *out)
{
    json_print(json, out);
    json_decref(json);
}

void view_print(const struct view *view, const void *of, FILE *out)
{
    json_print_all(view_json(view, of), out);
}

/* Several views, of which a key is asked; `next`: the row behind the last one that was found, where the next key often is. */
struct asked { const struct view_of *views; size_t count, view, next; };

static json_t *find(void *context, const char *key)
{
    struct asked *asked = context;

    for (size_t v = 0; v <= asked->count; v++, asked->view = (asked->view + 1) % asked->count, asked->next = 0) {
        const struct view *view = asked->views[asked->view].view;

        for (; asked->next < view->count; asked->next++)
            if (view->rows[asked->next].key && text_same(view->rows[asked->next].key, key))
                return view->value(asked->next++, asked->views[asked->view].of, asked->views[asked->view].i);
    }
    return NULL;
}

void view_say_all(const struct view_of *views, size_t count, const char *const *lines, FILE *out)
{
    struct asked asked = {views, count, 0, 0};
    json_t *facts = json_object();

    for (size_t i = 0; lines[i]; i++)
        say_from(facts, &(struct say_source){find, &asked}, lines[i], out);
    json_decref(facts);
}

void view_say_item(const struct view *view, const void *of, size_t i, const char *line, FILE *out)
{
    const char *const lines[] = {line, NULL};

    view_say_all(&(struct view_of){view, of, i}, 1, lines, out);
}

void view_say(const struct view *view, const void *of, const char *line, FILE *out)
{
    view_say_item(view, of, 0, line, out);
}

json_t *json_numbers(const char *const *names, const double *numbers, size_t count)
{
    json_t *json = json_object();

    for (size_t i = 0; i < count; i++)
        json_object_set_new_nocheck(json, names[i], json_finite(numbers[i]));
    return json;
}

json_t *json_texts(const char *const *texts)
{
    json_t *list = json_array();

    for (size_t i = 0; texts[i]; i++)
        json_append(list, json_words(texts[i]));
    return list;
}

json_t *json_words_or_null(const char *text)
{
    return text && *text ? json_words(text) : json_null();
}

json_t *json_count(unsigned long long count)
{
    return json_integer((json_int_t)count);
}

void view_columns(const struct view *view, const void *of, struct cells *cells)
{
    json_t *json = view_json(view, of), *value;
    const char *key;

    json_object_foreach(json, key, value)
        cells_text(cells, key);
    cells_end_line(cells);
    json_decref(json);
}

void view_cells(const struct view *view, const void *of, size_t i, struct cells *cells)
{
    json_t *json = put(view, of, i, false, json_object()), *value;
    const char *key;

    json_object_foreach(json, key, value) {
        if (json_is_string(value))
            cells_text(cells, json_string_value(value));
        else if (json_is_integer(value))
            cells_integer(cells, json_integer_value(value));
        else
            cells_number(cells, json_is_real(value) ? json_real_value(value) : NAN);
    }
    cells_end_line(cells);
    json_decref(json);
}

void view_csv(const struct view *view, const json_t *list, FILE *out)
{
    size_t at;
    const json_t *item;

    for (size_t i = 0; i < view->count && view->rows[i].brief; i++)
        fprintf(out, "%s%s", i ? "," : "", view->rows[i].key);
    json_array_foreach(list, at, item)
        for (size_t i = 0; i < view->count && view->rows[i].brief; i++) {
            const json_t *value = json_object_get(item, view->rows[i].key);

            fputs(i ? "," : "\n", out);
            if (json_is_number(value))
                decimal_write(json_number_value(value), out);
            else
                text_write(TEXT_CSV, json_is_string(value) ? json_string_value(value) : "", out);
        }
    fputc('\n', out);
}

const char *view_words(struct arena *arena, const struct view_row *row)
{
    return row->words ? row->words : words_of(arena, row->key);
}

/* What stands between a key and the keys below it. */
static const char *const joints[] = {[VIEW_ONE] = ".", [VIEW_LIST] = "[].", [VIEW_MAP] = ".*.", [VIEW_MAPS] = "[].*."};

void view_help(const struct view *view, const char *above, FILE *out)
{
    for (size_t i = 0; i < view->count; i++) {
        const struct view_row *row = &view->rows[i];
        char key[160];

        if (!row->key || !row->brief)
            continue;
        snprintf(key, sizeof key, "%s%s%.*s", above, row->key, row->of || row->form < VIEW_MAP ? 0 : (int)strlen(joints[row->form]) - 1,
                 joints[row->form]);
        fprintf(out, "  %-40s %s\n", key, row->brief);
        snprintf(key, sizeof key, "%s%s%s", above, row->key, joints[row->form]);
        if (row->of)
            view_help(row->of, key, out);
    }
}
