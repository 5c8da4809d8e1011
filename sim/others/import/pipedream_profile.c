#include "import/pipedream_profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"

struct vertex {
    const char *id, *kind;       /* kind: the description up to its first bracket */
    struct loc loc;
    double forward, backward;    /* ms */
    uint64_t output;             /* B */
    double parameters;           /* B */
    bool in_place, placed;
    struct edge *into, *from;    /* the edges that end and begin here */
    size_t inputs, readers;      /* of these, those from nodes, and to nodes, that are not placed yet */
};

struct edge {
    const char *from, *to;
    struct loc from_loc, to_loc;
    struct vertex *source, *target;
    struct edge *next_into, *next_from;      /* with the same target, with the same source */
};

struct reader {
    struct arena *arena;
    const char *file;
    struct error *err;
    int line;
    const char *text;            /* the line */
    struct { struct vertex *items; size_t count, capacity; } vertices;
    struct { struct edge *items; size_t count, capacity; } edges;
};

static const char separator[] = " -- ";

static struct loc here(const struct reader *reader, const char *at)
{
    return (struct loc){reader->file, reader->line, (int)(at - reader->text) + 1};
}

static int refuse(struct reader *reader, const char *at, const char *expected)
{
    char shown[CLIP_SIZE];

    if (!*at)
        return error_add(reader->err, EXIT_INPUT, here(reader, at), "expected %s, found the end of the line", expected);
    return error_add(reader->err, EXIT_INPUT, here(reader, at), "expected %s, found '%s'", expected,
                     text_clip(at, shown, sizeof shown));
}

/* Reads a number from 0 to `most`; NULL, without a message, if there is none. */
static const char *number(const char *at, double most, double *value)
{
    char *end;

    *value = strtod(at, &end);
    return end != at && *at >= '0' && *at <= '9' && *value >= 0 && *value <= most ? end : NULL;
}

/* Reads "KEY=NUMBER"; *at moves behind it. With `list`, "KEY=[NUMBER; NUMBER]" too, the sum. */
static int read_value(struct reader *reader, const char **at, const char *key, const char *unit, bool list,
                      double *value)
{
    const double most = 1e12;    /* ms: 30 years; B: a thousand GB */
    size_t length = strlen(key);
    const char *expected = arena_printf(reader->arena, "%s=%s", key, unit), *next = *at + length + 1;
    double item;

    if (strncmp(*at, key, length) != 0 || (*at)[length] != '=')
        return refuse(reader, *at, expected);
    *value = 0;
    list = list && *next == '[';
    for (next += list; ; next += 2) {
        const char *end = number(next, most, &item);

        if (!end)
            return refuse(reader, next, arena_printf(reader->arena, "a number from 0 to %g (%s)", most, unit));
        *value += item;
        next = end;
        if (!list || strncmp(next, "; ", 2) != 0)
            break;
    }
    if (list && *next++ != ']')
        return refuse(reader, next - 1, "';' and a number, or ']'");
    *at = next;
    return 0;
}

static int read_comma(struct reader *reader, const char **at)
{
    if (strncmp(*at, ", ", 2) != 0)
        return refuse(reader, *at, "', ' and the next value");
    *at += 2;
    return 0;
}

/* Which stage a partitioned graph has it in, is checked and ignored. */
static int read_stage(struct reader *reader, const char *at)
{
    double stage;
    const char *end;

    if (!*at)
        return 0;
    if (strncmp(at, " -- stage_id=", 13) != 0 || !(end = number(at + 13, 1e9, &stage)) || *end)
        return refuse(reader, at, "' -- stage_id=NUMBER' or the end of the line");
    return 0;
}

static int read_node(struct reader *reader, const char *separated)
{
    const char *description = separated + strlen(separator), *at = strstr(description, " -- forward_compute_time=");
    struct vertex vertex = {.loc = here(reader, reader->text)};
    double output;

    if (!at)
        return refuse(reader, description, "a description and ' -- forward_compute_time=MS, "
                      "backward_compute_time=MS, activation_size=BYTES, parameter_size=BYTES'");
    vertex.id = arena_strndup(reader->arena, reader->text, (size_t)(separated - reader->text));
    vertex.kind = arena_strndup(reader->arena, description,
                                strcspn(arena_strndup(reader->arena, description, (size_t)(at - description)), "("));
    vertex.in_place = memmem(description, (size_t)(at - description), "inplace", 7) &&
                      !memmem(description, (size_t)(at - description), "inplace=False", 13);
    at += strlen(separator);
    if (read_value(reader, &at, "forward_compute_time", "milliseconds", false, &vertex.forward) ||
        read_comma(reader, &at) ||
        read_value(reader, &at, "backward_compute_time", "milliseconds", false, &vertex.backward) ||
        read_comma(reader, &at) ||
        read_value(reader, &at, "activation_size", "bytes", true, &output) || read_comma(reader, &at) ||
        read_value(reader, &at, "parameter_size", "bytes", false, &vertex.parameters) || read_stage(reader, at))
        return -1;
    if (!strncmp(vertex.kind, "Input", 5))
        vertex.forward = vertex.backward = 0;
    vertex.output = (uint64_t)llround(output);
    *GROW(&reader->vertices) = vertex;
    return 0;
}

static int read_edge(struct reader *reader, const char *separated)
{
    const char *to = separated + strlen(separator);

    *GROW(&reader->edges) = (struct edge){
        .from = arena_strndup(reader->arena, reader->text + 1, (size_t)(separated - reader->text - 1)),
        .to = arena_strdup(reader->arena, to), .from_loc = here(reader, reader->text + 1), .to_loc = here(reader, to),
    };
    return 0;
}

static int read_line(struct reader *reader, char *line)
{
    bool edge = *line == '\t';
    const char *separated;
    size_t length = strlen(line);

    reader->text = line;
    while (length && strchr(" \t\r", line[length - 1]))
        line[--length] = '\0';
    if (!length)
        return 0;
    separated = strstr(line + edge, separator);
    if (!separated || separated == line + edge)
        return refuse(reader, line + edge, edge ? "an edge, 'ID -- ID'" : "a node, 'ID -- DESCRIPTION -- "
                      "forward_compute_time=...', or an edge, which begins with a tab");
    return edge ? read_edge(reader, separated) : read_node(reader, separated);
}

static int read_lines(struct reader *reader, const char *text, size_t length)
{
    const char *end = text + length;
    int status = 0;

    for (const char *line = text + text_mark(text, length); line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((stop ? stop : end) - line);
        char *copy = arena_strndup(reader->arena, line, size);

        reader->line++;
        reader->text = copy;
        if (strlen(copy) < size)
            status = error_add(reader->err, EXIT_INPUT, here(reader, copy + strlen(copy)),
                               "expected text, found a zero byte");
        else if (read_line(reader, copy))
            status = -1;
        line += size + 1;
    }
    if (!status && !reader->vertices.count)
        status = error_add(reader->err, EXIT_INPUT, (struct loc){reader->file, 1, 1},
                           "expected a graph of PipeDream's profiler (lines 'ID -- DESCRIPTION -- "
                           "forward_compute_time=...'), found none");
    if (!status && reader->vertices.count > PIPEDREAM_MAX_NODES)
        status = error_add(reader->err, EXIT_INPUT, reader->vertices.items[PIPEDREAM_MAX_NODES].loc,
                           "more than %d nodes", (int)PIPEDREAM_MAX_NODES);
    return status;
}

static int by_id(const void *a, const void *b)
{
    const struct vertex *x = a, *y = b;

    return strverscmp(x->id, y->id);
}

static struct vertex *find(struct reader *reader, const char *id, struct loc loc)
{
    struct vertex key = {.id = id};
    struct vertex *found = array_find(&key, reader->vertices.items, reader->vertices.count, sizeof key, by_id);
    char shown[CLIP_SIZE];

    if (!found)
        error_add(reader->err, EXIT_INPUT, loc, "expected the id of a node of this file, found '%s'",
                  text_clip(id, shown, sizeof shown));
    return found;
}

/* Orders the nodes by id, and ties the edges to them. */
static int connect(struct reader *reader)
{
    struct vertex *all = reader->vertices.items;
    char shown[CLIP_SIZE];
    int status = 0;

    array_sort(all, reader->vertices.count, sizeof *all, by_id);
    for (size_t i = 1; i < reader->vertices.count; i++)
        if (!by_id(&all[i - 1], &all[i])) {
            struct loc first = all[i - 1].loc, again = all[i].loc;

            if (first.line > again.line)
                again = first;
            status = error_add(reader->err, EXIT_INPUT, again, "'%s' is given twice",
                               text_clip(all[i].id, shown, sizeof shown));
        }
    for (size_t i = 0; i < reader->edges.count; i++) {
        struct edge *edge = &reader->edges.items[i];

        edge->source = find(reader, edge->from, edge->from_loc);
        edge->target = find(reader, edge->to, edge->to_loc);
        if (!edge->source || !edge->target) {
            status = -1;
            continue;
        }
        *edge = (struct edge){.source = edge->source, .target = edge->target, .next_into = edge->target->into,
                              .next_from = edge->source->from};
        edge->source->from = edge->target->into = edge;
        edge->source->readers++;
        edge->target->inputs++;
    }
    return status;
}

static bool costs(const struct vertex *vertex)
{
    return vertex->forward > 0 || vertex->backward > 0 || vertex->parameters > 0;
}

/* The node that comes next; NULL where all that are left wait for each other. */
static struct vertex *next_of(struct reader *reader)
{
    struct vertex *next = NULL, *all = reader->vertices.items;

    for (struct vertex *vertex = all; vertex < all + reader->vertices.count; vertex++) {
        if (vertex->placed || vertex->inputs)
            continue;
        if (vertex->into && !costs(vertex))
            return vertex;
        if (!next)
            next = vertex;
    }
    return next;
}

static int cycle(struct reader *reader)
{
    char shown[CLIP_SIZE];

    for (struct vertex *vertex = reader->vertices.items; ; vertex++)
        if (!vertex->placed)
            return error_add(reader->err, EXIT_INPUT, vertex->loc, "expected a graph without cycles, but '%s' waits "
                             "for itself, or for nodes that do", text_clip(vertex->id, shown, sizeof shown));
}

static void put(const struct reader *reader, struct node *layer, const char *key, const char *text)
{
    node_put(reader->arena, layer, key, node_scalar(reader->arena, text, false));
}

static struct node *layer_of(const struct reader *reader, const struct vertex *vertex)
{
    struct arena *arena = reader->arena;
    struct node *layer = node_mapping(arena);

    node_put(arena, layer, "name", node_scalar(arena, arena_printf(arena, "%s %s", vertex->id, vertex->kind), true));
    put(reader, layer, "forward", arena_printf(arena, "%.12g ms", vertex->forward));
    put(reader, layer, "backward", arena_printf(arena, "%.12g ms", vertex->backward));
    put(reader, layer, "parameters", arena_printf(arena, "%.0f", vertex->parameters / 4));
    put(reader, layer, "activation", arena_printf(arena, "%.0f B", vertex->in_place ? 0 : (double)vertex->output));
    return layer;
}

/* Places a node and updates the bytes that cross a cut behind it. */
static void place(struct vertex *vertex, uint64_t *crossing)
{
    vertex->placed = true;
    if (vertex->readers)
        *crossing += vertex->output;
    for (struct edge *edge = vertex->from; edge; edge = edge->next_from)
        edge->target->inputs--;
    for (struct edge *edge = vertex->into; edge; edge = edge->next_into)
        if (!--edge->source->readers)
            *crossing -= edge->source->output;
}

/* The layers in order; NULL after an error. Nodes without cost that come before the first layer belong to it. */
static struct node *make_layers(struct reader *reader)
{
    struct node *layers = node_sequence(reader->arena), *layer = NULL;
    uint64_t crossing = 0;

    for (size_t i = 0; i < reader->vertices.count; i++) {
        struct vertex *vertex = next_of(reader);

        if (!vertex) {
            cycle(reader);
            return NULL;
        }
        place(vertex, &crossing);
        if (costs(vertex))
            node_append(reader->arena, layers, layer = layer_of(reader, vertex));
        if (layer)
            put(reader, layer, "boundary", arena_printf(reader->arena, "%llu B", (unsigned long long)crossing));
    }
    if (layer)
        return layers;
    error_add(reader->err, EXIT_INPUT, reader->vertices.items[0].loc, "expected a node that takes time or has "
              "parameters, found none");
    return NULL;
}

struct node *pipedream_profile_parse(struct arena *arena, const char *file, const char *text, size_t length,
                                     struct error *err)
{
    struct reader reader = {.arena = arena, .file = file, .err = err};
    struct node *root = node_mapping(arena), *layers = NULL;

    if (!read_lines(&reader, text, length) && !connect(&reader))
        layers = make_layers(&reader);
    free(reader.vertices.items);
    free(reader.edges.items);
    if (!layers)
        return NULL;
    node_put(arena, root, "title", node_scalar(arena, arena_printf(arena, "PipeDream's profile %s", file), true));
    node_put(arena, root, "layers", layers);
    return root;
}

struct node *pipedream_profile_load(struct arena *arena, const char *path, struct error *err)
{
    size_t length;
    char *text = file_read_stream(path, "graph of PipeDream's profiler", PIPEDREAM_MAX_BYTES, (struct loc){0},
                                  &length, err);
    struct node *root = text ? pipedream_profile_parse(arena, path, text, length, err) : NULL;

    free(text);
    return root;
}
