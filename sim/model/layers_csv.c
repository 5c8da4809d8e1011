/* Layers from a table: a line a layer, columns named as the keys of a layer. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/given_layers.h"

enum { MOST_BYTES = 8 << 20, MOST_COLUMNS = 32 };

/* A file being read, cell by cell. */
struct reader {
    struct arena *arena;
    const char *file;
    char *at;                    /* what comes next */
    struct loc loc;              /* of the cell at hand */
    int line;
    char *begin;                 /* of the line */
};

/* A column: a layer's key, and the unit of its numbers, "" where cells say it. */
struct column { const char *key, *unit; };

/* The next cell of the line; *last: the line ends behind it. Quotes around a cell are taken off, and "" in it is ". NULL
 * after an error. */
static const char *next_cell(struct reader *reader, bool *last, struct error *err)
{
    bool quoted;
    char *from, *to, *end;

    reader->at += strspn(reader->at, " \t");
    reader->loc = (struct loc){reader->file, reader->line, (int)(reader->at - reader->begin) + 1};
    quoted = *reader->at == '"';
    from = to = end = reader->at + (quoted ? 1 : 0);
    for (; quoted ? *end && *end != '\n' && (*end != '"' || end[1] == '"') : *end && !strchr(",\r\n", *end); end++) {
        end += quoted && *end == '"';
        *to++ = *end;
    }
    if (quoted && *end != '"') {
        error_add(err, EXIT_INPUT, reader->loc, "a cell begins with a quote; expected one at its end too");
        return NULL;
    }
    end += (quoted ? 1 : 0);
    end += strspn(end, " \t");
    if (*end && !strchr(",\r\n", *end)) {
        error_add(err, EXIT_INPUT, reader->loc, "text stands behind the quotes of a cell; expected a comma");
        return NULL;
    }
    while (to > from && !quoted && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    *last = *end != ',';
    reader->at = end + (*end == ',' ? 1 : 0);
    return arena_strndup(reader->arena, from, (size_t)(to - from));
}

/* Goes on behind the line's end, over empty lines and comments; false: the file has ended. */
static bool next_line(struct reader *reader)
{
    do {
        reader->at += strcspn(reader->at, "\n");
        if (*reader->at)
            reader->at++;
        reader->line++;
        reader->begin = reader->at;
    } while (*reader->at && strchr("#\r\n", reader->at[strspn(reader->at, " \t")]));
    return *reader->at != '\0';
}

static const char *key_at(size_t i, const void *context)
{
    (void)context;
    return i < given_layer_table.count ? given_layer_table.fields[i].key : NULL;
}

/* "forward (ms)": the key, and the unit of the numbers below it. */
static int read_head(struct reader *reader, struct column *columns, size_t *count, struct error *err)
{
    bool last = false;

    while (!last) {
        const char *head = next_cell(reader, &last, err), *open = head ? strstr(head, " (") : NULL, *meant;
        char shown[CLIP_SIZE];
        size_t known = 0;

        if (!head)
            return -1;
        if (*count == MOST_COLUMNS)
            return error_add(err, EXIT_INPUT, reader->loc, "more than %d columns", MOST_COLUMNS);
        columns[*count] = (struct column){head, ""};
        if (open && head[strlen(head) - 1] == ')')
            columns[*count] = (struct column){arena_strndup(reader->arena, head, (size_t)(open - head)),
                                              arena_strndup(reader->arena, open + 2, strlen(open + 2) - 1)};
        head = columns[(*count)++].key;
        while (key_at(known, NULL) && strcmp(key_at(known, NULL), head))
            known++;
        for (size_t i = 0; i + 1 < *count; i++)
            if (!strcmp(columns[i].key, head))
                return error_add(err, EXIT_INPUT, reader->loc, "column '%s' stands twice",
                                 text_clip(head, shown, sizeof shown));
        meant = nearest(head, key_at, NULL);
        if (!key_at(known, NULL))
            return error_add(err, EXIT_INPUT, reader->loc, "a layer has no '%s'%s%s%s", text_clip(head, shown, sizeof shown),
                             meant ? "; did you mean '" : "; expected a key of a layer ('dtsim help layers')",
                             meant ? meant : "", meant ? "'?" : "");
    }
    return 0;
}

/* A line: a mapping with the keys whose cells are not empty. */
static struct node *read_layer(struct reader *reader, const struct column *columns, size_t count, struct error *err)
{
    struct node *layer = node_mapping(reader->arena);
    bool last = false;
    size_t cells = 0;

    layer->loc = (struct loc){reader->file, reader->line, 1};
    for (; !last; cells++) {
        const char *text = next_cell(reader, &last, err);
        struct node *value;

        if (!text)
            return NULL;
        if (cells >= count || !*text)
            continue;
        if (*columns[cells].unit)
            text = arena_printf(reader->arena, "%s %s", text, columns[cells].unit);
        value = node_scalar(reader->arena, text, false);
        value->loc = reader->loc;
        node_put(reader->arena, layer, columns[cells].key, value);
    }
    if (cells == count)
        return layer;
    error_add(err, EXIT_INPUT, layer->loc, "%zu cell%s; expected %zu, as many as the first line has", cells,
              cells == 1 ? "" : "s", count);
    return NULL;
}

struct node *layers_csv(struct arena *arena, const char *path, struct loc loc, struct error *err)
{
    struct column columns[MOST_COLUMNS];
    size_t count = 0, length;
    char *text = file_read(path, "table of layers", MOST_BYTES, loc, &length, err);
    struct reader reader = {.arena = arena, .file = arena_strdup(arena, path)};
    struct node *layers = text ? node_sequence(arena) : NULL, *layer;
    int before = err->count;

    if (!text)
        return NULL;
    layers->loc = loc;
    reader.at = reader.begin = text + text_mark(text, length);
    reader.line = 1;
    if (strchr("#\r\n", reader.at[strspn(reader.at, " \t")]) && *reader.at)
        next_line(&reader);
    if (strlen(text) != length)
        error_add(err, EXIT_INPUT, (struct loc){.file = reader.file}, "the table of layers holds a zero byte");
    else if (!read_head(&reader, columns, &count, err))
        while (next_line(&reader))
            if ((layer = read_layer(&reader, columns, count, err)))
                node_append(arena, layers, layer);
    if (err->count == before && !layers->count)
        error_add(err, EXIT_INPUT, (struct loc){.file = reader.file}, "no layers; expected a line for each below the first");
    free(text);
    return err->count > before ? NULL : layers;
}
