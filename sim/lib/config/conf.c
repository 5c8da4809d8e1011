#include "config/conf.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/base.h"
#include "base/progress.h"
#include "config/conf_node.h"
#include "config/conf_text.h"

/* A value with an anchor (&name), which aliases (*name) repeat. */
struct anchor {
    const char *name;
    struct node *node;
    size_t nodes;                /* number of nodes in it, with aliases expanded */
    int height;                  /* levels of mappings and lists in it */
    bool open;                   /* its end has not been read yet */
};

/* A mapping or list whose end has not been read yet. */
struct frame {
    struct node *node;
    struct anchor *anchor;       /* its anchor, or NULL */
    size_t before;               /* number of nodes before it */
    int height;
    const char *key;             /* mapping: the key whose value has not been read yet, or NULL */
    struct loc key_loc;
    bool merging;                /* this key is << without quotes */
    struct node *merge;          /* the value of << */
    struct loc merge_loc;
};

struct composer {
    yaml_parser_t parser;
    struct arena *arena;
    const char *name, *text;
    size_t length;
    bool placeless;              /* places have no line: the text comes from the command line */
    struct error *err;
    struct frame frames[CONF_MAX_DEPTH];
    int depth;                   /* frames in use */
    size_t nodes;                /* number of nodes so far, with aliases expanded */
    struct node *root;
    void *anchors;               /* tsearch tree of struct anchor by name */
    bool failed, done;           /* failed: there was a mistake after which reading goes on */
};

static struct loc loc_of(const struct composer *composer, yaml_mark_t mark)
{
    if (composer->placeless)
        return (struct loc){composer->name, 0, 0};
    return (struct loc){composer->name, (int)mark.line + 1, (int)mark.column + 1};
}

static int count_nodes(struct composer *composer, size_t nodes, struct loc loc)
{
    if (nodes > CONF_MAX_NODES - composer->nodes)
        return error_add(composer->err, EXIT_INPUT, loc,
                         "more than %d values, with the values of aliases counted every time", CONF_MAX_NODES);
    composer->nodes += nodes;
    return 0;
}

static int anchor_compare(const void *a, const void *b)
{
    return strcmp(((const struct anchor *)a)->name, ((const struct anchor *)b)->name);
}

/* A later anchor replaces an earlier one of the same name, as YAML demands. */
static struct anchor *anchor_put(struct composer *composer, const yaml_char_t *name, struct node *node, bool open)
{
    struct anchor *anchor;
    void *slot;

    if (!name)
        return NULL;
    anchor = arena_alloc(composer->arena, sizeof *anchor);
    *anchor = (struct anchor){arena_strdup(composer->arena, (const char *)name), node, 1, 0, open};
    slot = tsearch(anchor, &composer->anchors, anchor_compare);
    if (!slot)
        memory_ran_out();
    *(struct anchor **)slot = anchor;
    return anchor;
}

/* Adds a finished value of that height to the innermost open mapping or list; without one it is the root. */
static void value_attach(struct composer *composer, struct node *node, int height)
{
    struct frame *frame;

    if (composer->depth == 0) {
        composer->root = node;
        return;
    }
    frame = &composer->frames[composer->depth - 1];
    if (frame->height < height + 1)
        frame->height = height + 1;
    if (frame->node->kind == NODE_SEQUENCE)
        node_append(composer->arena, frame->node, node);
    else if (frame->merging && !frame->merge)
        frame->merge = node;
    else if (!frame->merging)
        node_push(composer->arena, frame->node, frame->key, frame->key_loc, node);
    frame->key = NULL;
    frame->merging = false;
}

/* Whether the next node is a mapping's key. */
static bool key_expected(const struct composer *composer)
{
    const struct frame *frame;

    if (composer->depth == 0)
        return false;
    frame = &composer->frames[composer->depth - 1];
    return frame->node->kind == NODE_MAPPING && !frame->key;
}

static void tag_refuse(struct composer *composer, const yaml_char_t *tag, struct loc loc)
{
    static const char core[] = "tag:yaml.org,2002:";
    const char *text = (const char *)tag;
    char shown[CLIP_SIZE];

    if (!text)
        return;
    composer->failed = true;
    if (strncmp(text, core, sizeof core - 1) == 0)
        error_add(composer->err, EXIT_INPUT, loc, "tags such as '!!%s' are not supported",
                  text_clip(text + sizeof core - 1, shown, sizeof shown));
    else
        error_add(composer->err, EXIT_INPUT, loc, "tags such as '%s' are not supported",
                  text_clip(text, shown, sizeof shown));
}

static int key_read(struct composer *composer, const char *text, bool plain, struct loc loc)
{
    struct frame *frame = &composer->frames[composer->depth - 1];

    if (strlen(text) > CONF_MAX_KEY)
        return error_add(composer->err, EXIT_INPUT, loc, "a key of %zu bytes; at most %d are allowed", strlen(text),
                         CONF_MAX_KEY);
    frame->key = text;
    frame->key_loc = loc;
    frame->merging = plain && strcmp(text, "<<") == 0;
    if (frame->merging && frame->merge) {
        composer->failed = true;
        error_add(composer->err, EXIT_INPUT, loc, "duplicate key '<<'; first given at line %d", frame->merge_loc.line);
    } else if (frame->merging) {
        frame->merge_loc = loc;
    }
    return 0;
}

static int scalar_read(struct composer *composer, const yaml_event_t *event)
{
    struct loc loc = loc_of(composer, event->start_mark);
    const char *value = (const char *)event->data.scalar.value;
    bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    struct node *node;

    if (count_nodes(composer, 1, loc))
        return -1;
    tag_refuse(composer, event->data.scalar.tag, loc);
    if (strlen(value) != event->data.scalar.length)
        return error_add(composer->err, EXIT_INPUT, loc, "the character U+0000 is not allowed");
    if (key_expected(composer) && !event->data.scalar.anchor)
        return key_read(composer, arena_strdup(composer->arena, value), !quoted, loc);
    node = node_scalar(composer->arena, value, quoted);
    node->loc = loc;
    anchor_put(composer, event->data.scalar.anchor, node, false);
    if (key_expected(composer))
        return key_read(composer, node->text, !quoted, loc);
    value_attach(composer, node, 0);
    return 0;
}

static int collection_begin(struct composer *composer, struct node *node, const yaml_char_t *anchor,
                            const yaml_char_t *tag, struct loc loc)
{
    struct frame *frame;

    node->loc = loc;
    if (count_nodes(composer, 1, loc))
        return -1;
    tag_refuse(composer, tag, loc);
    if (key_expected(composer))
        return error_add(composer->err, EXIT_INPUT, loc, "a key must be text, found a %s",
                         node->kind == NODE_SEQUENCE ? "list" : "mapping");
    if (composer->depth == CONF_MAX_DEPTH)
        return error_add(composer->err, EXIT_INPUT, loc, "nested more than %d deep", CONF_MAX_DEPTH);
    frame = &composer->frames[composer->depth++];
    *frame = (struct frame){.node = node, .before = composer->nodes - 1, .height = 1};
    frame->anchor = anchor_put(composer, anchor, node, true);
    return 0;
}

static int collection_end(struct composer *composer)
{
    struct frame *frame = &composer->frames[--composer->depth];
    struct node *node = frame->node;

    if (node->kind == NODE_MAPPING && node_settle(composer->arena, node, frame->merge, composer->err))
        composer->failed = true;
    if (frame->anchor) {
        frame->anchor->nodes = composer->nodes - frame->before;
        frame->anchor->height = frame->height;
        frame->anchor->open = false;
    }
    value_attach(composer, node, frame->height);
    return 0;
}

static int alias_read(struct composer *composer, const yaml_event_t *event)
{
    struct loc loc = loc_of(composer, event->start_mark);
    struct anchor wanted = {.name = (const char *)event->data.alias.anchor};
    void *slot = tfind(&wanted, &composer->anchors, anchor_compare);
    const struct anchor *anchor = slot ? *(struct anchor **)slot : NULL;
    char shown[CLIP_SIZE];

    text_clip(wanted.name, shown, sizeof shown);
    if (!anchor)
        return error_add(composer->err, EXIT_INPUT, loc, "unknown alias '*%s'; no '&%s' stands before it", shown,
                         shown);
    if (anchor->open)
        return error_add(composer->err, EXIT_INPUT, loc, "the alias '*%s' stands inside the value of '&%s'", shown,
                         shown);
    if (key_expected(composer))
        return error_add(composer->err, EXIT_INPUT, loc, "a key must be text, found the alias '*%s'", shown);
    if (composer->depth + anchor->height > CONF_MAX_DEPTH)
        return error_add(composer->err, EXIT_INPUT, loc, "nested more than %d deep through the alias '*%s'",
                         CONF_MAX_DEPTH, shown);
    if (count_nodes(composer, anchor->nodes, loc))
        return -1;
    value_attach(composer, anchor->node, anchor->height);
    return 0;
}

static int document_begin(struct composer *composer, const yaml_event_t *event)
{
    struct loc loc = loc_of(composer, event->start_mark);

    if (composer->root)
        return error_add(composer->err, EXIT_INPUT, loc, "a second document begins here; expected only one");
    if (event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
        return error_add(composer->err, EXIT_INPUT, loc, "tags are not supported, nor the directive '%%TAG'");
    return 0;
}

static int event_read(struct composer *composer, const yaml_event_t *event)
{
    struct loc loc = loc_of(composer, event->start_mark);

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return document_begin(composer, event);
    case YAML_STREAM_END_EVENT:
        composer->done = true;
        if (!composer->root)
            return error_add(composer->err, EXIT_INPUT, (struct loc){composer->name, 0, 0},
                             "the file is empty; expected lines such as 'key: value'");
        return 0;
    case YAML_ALIAS_EVENT:
        return alias_read(composer, event);
    case YAML_SCALAR_EVENT:
        return scalar_read(composer, event);
    case YAML_SEQUENCE_START_EVENT:
        return collection_begin(composer, node_sequence(composer->arena), event->data.sequence_start.anchor,
                                event->data.sequence_start.tag, loc);
    case YAML_MAPPING_START_EVENT:
        return collection_begin(composer, node_mapping(composer->arena), event->data.mapping_start.anchor,
                                event->data.mapping_start.tag, loc);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return collection_end(composer);
    default:
        return 0;
    }
}

static int syntax_error(struct composer *composer)
{
    const yaml_parser_t *parser = &composer->parser;
    size_t index = parser->problem_mark.index;
    int c = 0;    /* the character there; libyaml's index counts characters, not bytes */
    const char *at = composer->text, *end = composer->text + composer->length;

    if (parser->error == YAML_MEMORY_ERROR)
        memory_ran_out();
    for (size_t i = 0; at < end && i <= index; i++)
        c = i == index ? (int)utf8_next(&at, end) : (utf8_next(&at, end), 0);
    return error_add(composer->err, EXIT_INPUT, loc_of(composer, parser->problem_mark), "%s",
                     conf_syntax_message(composer->arena, parser->problem, parser->context,
                                         parser->context && !composer->placeless ?
                                         (int)parser->context_mark.line + 1 : 0,
                                         (int)parser->problem_mark.line + 1, c));
}

static int compose(struct composer *composer)
{
    while (!composer->done) {
        yaml_event_t event;
        int result;

        if (!yaml_parser_parse(&composer->parser, &event))
            return syntax_error(composer);
        result = event_read(composer, &event) || progress_look(composer->arena->progress, composer->err);
        yaml_event_delete(&event);
        if (result)
            return -1;
    }
    return composer->failed ? -1 : 0;
}

static void anchor_keep(void *anchor)
{
    (void)anchor;    /* the arena owns it */
}

int conf_read(struct arena *arena, const char *name, const char *text, size_t length, bool placeless,
              struct node **root, struct error *err)
{
    size_t mark = text_mark(text, length);
    struct composer *composer;
    int result;

    *root = NULL;
    name = arena_strdup(arena, name);
    if (length > CONF_MAX_BYTES)
        return error_add(err, EXIT_INPUT, (struct loc){name, 0, 0}, "the file is larger than %d MiB",
                         CONF_MAX_BYTES >> 20);
    text += mark;
    length -= mark;
    if (conf_check_text(name, text, length, placeless, err))
        return -1;
    composer = xcalloc(1, sizeof *composer);
    *composer = (struct composer){.arena = arena, .name = name, .text = text, .length = length,
                                  .placeless = placeless, .err = err};
    if (yaml_parser_initialize(&composer->parser)) {
        yaml_parser_set_encoding(&composer->parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&composer->parser, (const unsigned char *)text, length);
        result = compose(composer);
    } else {
        memory_ran_out();
    }
    if (!result)
        *root = composer->root;
    yaml_parser_delete(&composer->parser);
    tdestroy(composer->anchors, anchor_keep);
    free(composer);
    return result;
}

int conf_parse(struct arena *arena, const char *name, const char *text, size_t length, struct node **root,
               struct error *err)
{
    return conf_read(arena, name, text, length, false, root, err);
}
