#include "launch/dialect.h"

#include "launch/dialect_check.h"

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "config/named.h"
#include "files/data.h"

static const char *const kinds[] = {"flag", "int", "number", "word", "list", "any", "bool", NULL};
/* `like_of`: the dialect that is like this one; or NULL. */
struct reading { struct arena *arena; struct dialect *dialect; struct error *err; struct node *plain; const struct dialect *like_of; };

/* The items of a list, or a word alone, between spaces; NULL: there is no such key. */
static const char *words_of(struct arena *arena, const struct node *mapping, const char *key)
{
    const struct node *node = node_get(mapping, key);
    const char *text = NULL;

    if (node && node->kind == NODE_SCALAR)
        return node->text;
    for (size_t i = 0; node && i < node->count; i++)
        text = node->kind == NODE_MAPPING ?
               arena_printf(arena, "%s%s%s=%s", text ? text : "", text ? " " : "", node->keys[i], node->items[i]->text) :
               arena_printf(arena, "%s%s%s", text ? text : "", text ? " " : "", node->items[i]->text);
    return text;
}

static struct dialect_pairs pairs_of(struct arena *arena, const struct node *node)
{
    struct dialect_pairs pairs = {ARENA_ARRAY(arena, struct dialect_pair, node ? node->count + 1 : 1), node ? node->count : 0};

    for (size_t i = 0; i < pairs.count; i++)
        pairs.items[i] = (struct dialect_pair){node->keys[i], node->items[i]->text};
    return pairs;
}

static int check_keys(const struct node *mapping, const char *known, struct error *err)
{
    if (mapping->kind != NODE_MAPPING)
        return error_add(err, EXIT_INPUT, mapping->loc, "expected a mapping with keys of %s", known);
    for (size_t i = 0; i < mapping->count; i++)
        if (!word_in(known, mapping->keys[i]))
            return error_add(err, EXIT_INPUT, mapping->key_locs[i], "unknown key '%s'; expected one of %s", mapping->keys[i],
                             known);
    return 0;
}

static struct argument_row *add(struct reading *r, const char *name, struct loc loc, enum argument_class class,
                                enum argument_kind kind)
{
    struct argument_row *row = &r->dialect->rows[r->dialect->own++];

    *row = (struct argument_row){.name = name, .loc = loc, .class = class, .kind = kind};
    return row;
}

/* core_v0.13 */
static int release_of(const char *text)
{
    int release = 0;

    return text && sscanf(text, "core_v0.%d", &release) == 1 ? release : 0;
}

/* {say: {NAME: theirs}, is: {PATH: ours}} */
static void add_pair(struct reading *r, const struct argument_row *row, const char *theirs, const char *ours)
{
    struct node *pair = node_mapping(r->arena), *say = node_mapping(r->arena), *is = node_mapping(r->arena);

    pair->loc = row->loc;
    node_put(r->arena, say, row->name, node_scalar(r->arena, theirs, true));
    node_put(r->arena, is, row->path, node_scalar(r->arena, ours, true));
    node_put(r->arena, pair, "say", say);
    node_put(r->arena, pair, "is", is);
    if (row->kind == KIND_FLAG)
        node_put(r->arena, pair, "needed", node_scalar(r->arena, "true", false));
    if (row->read_only)
        node_put(r->arena, pair, "only", node_scalar(r->arena, "import", false));
    node_append(r->arena, r->plain, pair);
}

/* The pairs of an argument with a path: one a word, or one for all values. */
static void add_pairs(struct reading *r, const struct argument_row *row)
{
    if (row->path && row->kind == KIND_FLAG)
        add_pair(r, row, "true", row->words);
    else if (row->path && !row->words)
        add_pair(r, row, "V", "V");
    for (const char *at = row->path && row->kind == KIND_WORD ? row->words : NULL; at && *at; at += strspn(at, " ")) {
        const char *ours = strchr(at, '=') + 1;

        add_pair(r, row, arena_strndup(r->arena, at, (size_t)(ours - 1 - at)), arena_strndup(r->arena, ours, strcspn(ours, " ")));
        at = ours + strcspn(ours, " ");
    }
}

/* num-layers: {kind: int, is: model.transformer.layers} */
static int read_argument(struct reading *r, const char *name, const struct node *node)
{
    const struct node *kind = node_get(node, "kind"), *flag = node_get(node, "gives");
    size_t at = 0;
    struct argument_row *row;

    if (check_keys(node, "kind default is gives words lacks idle needs logged also since until fork newer only told joined lenient", r->err))
        return -1;
    while (kinds[at] && kind && strcmp(kinds[at], kind->text))
        at++;
    if (!kind || !kinds[at])
        return error_add(r->err, EXIT_INPUT, node->loc, "%s: expected a kind: flag, int, number, word, list, any or bool", name);
    row = add(r, name, node->loc, node_get(node, "lacks") ? ARGUMENT_LACKS : node_get(node, "idle") ? ARGUMENT_IDLE :
              ARGUMENT_MAPPED, (enum argument_kind)at);
    row->fallback = words_of(r->arena, node, "default");
    row->path = words_of(r->arena, node, "is");
    row->words = words_of(r->arena, node, "words");
    if (flag)
        row->words = flag->text ? flag->text : node_flow(r->arena, flag);
    row->why = words_of(r->arena, node, "lacks");
    row->needs = words_of(r->arena, node, "needs");
    row->logged = words_of(r->arena, node, "logged");
    row->also = words_of(r->arena, node, "also");
    row->since = release_of(words_of(r->arena, node, "since"));
    row->until = release_of(words_of(r->arena, node, "until"));
    row->newer = words_of(r->arena, node, "newer");
    row->read_only = node_get(node, "only") != NULL;
    row->fork = node_get(node, "fork") != NULL;
    row->joined = node_get(node, "joined") != NULL;
    row->lenient = node_get(node, "lenient") != NULL;
    row->told = node_get(node, "told") != NULL;
    add_pairs(r, row);
    return 0;
}

/* Names without more to say, in a list; or a mapping: NAME: [PATTERN, ...], NAME: why, NAME: {why, unless, also}. */
static void read_names(struct reading *r, const struct node *root, const char *key, enum argument_class class)
{
    const struct node *list = node_get(root, key);

    for (size_t i = 0; list && i < list->count; i++) {
        const struct node *item = list->items[i];
        struct argument_row *row = add(r, list->kind == NODE_MAPPING ? list->keys[i] : item->text, item->loc, class,
                                       KIND_ANY);

        if (list->kind != NODE_MAPPING)
            continue;
        row->why = item->text ? item->text : words_of(r->arena, item, "why");
        row->words = words_of(r->arena, item, "unless");
        row->also = item->kind == NODE_SEQUENCE ? words_of(r->arena, list, list->keys[i]) : words_of(r->arena, item, "also");
    }
}

static const struct dialect *load(struct arena *arena, const char *name, const struct dialect *like_of, struct error *err);

static int read_file(struct reading *r, const struct node *root)
{
    struct dialect *d = r->dialect;
    const struct node *arguments = node_get(root, "arguments"), *pairs = node_get(root, "rows");
    struct node *parts = node_mapping(r->arena);
    const char *like = words_of(r->arena, root, "like");
    size_t most = 0;

    if (like && r->like_of)
        return error_add(r->err, EXIT_INPUT, node_loc(root, "like"), "like: this file is itself what another one is like; expected a "
                         "dialect without 'like' there");
    if (dialect_check_form(root, r->err) || check_keys(root, "title source form software reader tables begin dashes releases like sections keys moved printed inner programs shape beside_first beside_last "
                   "arguments idle idle_below refused lacks rows", r->err) ||
        (like && !(d->like = load(r->arena, like, r->dialect, r->err))))
        return -1;
    d->framework = words_of(r->arena, root, "title");
    d->dashes = words_of(r->arena, root, "dashes");
    d->form = words_of(r->arena, root, "form");
    d->software = words_of(r->arena, root, "software");
    d->tables = node_get(root, "tables");
    d->reader = words_of(r->arena, root, "reader");
    d->begin = words_of(r->arena, root, "begin");
    d->sections = words_of(r->arena, root, "sections");
    d->inner = words_of(r->arena, root, "inner");
    d->programs = words_of(r->arena, root, "programs");
    d->shape = words_of(r->arena, root, "shape");
    d->beside_first = words_of(r->arena, root, "beside_first");
    d->beside_last = words_of(r->arena, root, "beside_last");
    d->releases = pairs_of(r->arena, node_get(root, "releases"));
    d->keys = pairs_of(r->arena, node_get(root, "keys"));
    d->moved = pairs_of(r->arena, node_get(root, "moved"));
    d->printed = pairs_of(r->arena, node_get(root, "printed"));
    d->form = d->form ? d->form : "arguments";
    if (!d->framework || !d->dashes || !arguments || !word_in("arguments json yaml toml python", d->form))
        return error_add(r->err, EXIT_INPUT, root->loc, "expected title, dashes, arguments, and a form of arguments, json, yaml, toml "
                         "or python");
    for (size_t i = 0; i < root->count; i++)
        most += root->items[i]->count;
    d->rows = ARENA_ARRAY(r->arena, struct argument_row, most + (d->like ? d->like->count : 0));
    for (size_t i = 0; i < arguments->count; i++)
        if (read_argument(r, arguments->keys[i], arguments->items[i]))
            return -1;
    node_put(r->arena, parts, "plain", r->plain);
    d->order = "plain";
    for (size_t i = 0; pairs && i < pairs->count; i++) {
        node_put(r->arena, parts, pairs->keys[i], pairs->items[i]);
        d->order = arena_printf(r->arena, "%s %s", d->order, pairs->keys[i]);
    }
    if (dialect_rows_read(r->arena, parts, &d->pairs, r->err))
        return -1;
    read_names(r, root, "idle", ARGUMENT_IDLE);
    read_names(r, root, "idle_below", ARGUMENT_IDLE);
    read_names(r, root, "refused", ARGUMENT_REFUSED);
    read_names(r, root, "lacks", ARGUMENT_LACKS);
    d->count = d->own + (d->like ? d->like->count : 0);
    for (size_t i = d->own; i < d->count; i++)
        d->rows[i] = d->like->rows[i - d->own];
    return dialect_check_rows(r->arena, d, dialect_row, root, r->err);
}

bool dialect_is_there(const char *name)
{
    struct arena arena = {0};
    struct error err = {0};
    const char *path = NULL;
    bool there = data_is_path(name) || (!data_file(&arena, "platforms/dialects", name, &path, &err) && path);

    error_release(&err);
    arena_release(&arena);
    return there;
}

static const struct dialect *load(struct arena *arena, const char *name, const struct dialect *like_of, struct error *err)
{
    static const struct data_kind kind = {"platforms/dialects", "framework", NULL};
    const char *path = data_resolve(arena, &kind, name, (struct loc){0}, err);
    struct dialect *dialect = arena_alloc(arena, sizeof *dialect);
    const struct node *root;

    if (!path || conf_shared(arena, path, &root, err) ||
        read_file(&(struct reading){arena, dialect, err, node_sequence(arena), like_of}, root))
        return NULL;
    dialect->name = name;
    return dialect;
}

const struct dialect *dialect_load(struct arena *arena, const char *name, struct error *err)
{
    return load(arena, name, NULL, err);
}

/* Whether a name is one of the words, or begins as one that ends in '*'. */
static bool is_among(const char *words, const char *name)
{
    for (const char *at = words; at && *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        bool begins = at[length - 1] == '*';

        if (!strncmp(at, name, length - begins) && (begins || !name[length]))
            return true;
        at += length;
    }
    return false;
}

static const struct argument_row *find_own(const struct dialect *dialect, const char *name, bool log)
{
    for (size_t i = 0; i < dialect->own; i++) {
        const struct argument_row *row = &dialect->rows[i];

        if (text_same(row->name, name) || is_among(row->also, name) ||
            (log && row->logged && text_same(row->logged + (*row->logged == '!'), name)))
            return row;
    }
    return NULL;
}

static const char *first_key(const struct dialect *dialect, const char *argument)
{
    for (size_t i = 0; i < dialect->keys.count; i++)
        if (!strcmp(dialect->keys.items[i].to, argument))
            return dialect->keys.items[i].from;
    return NULL;
}

/* The row of SECTION.NAME_OF_ARGUMENT. An argument that another key says is not found. */
static const struct argument_row *find_in_section(const struct dialect *dialect, const char *key, const char *dot)
{
    const struct argument_row *row;
    char section[64], dashed[128];
    size_t length = strlen(dot + 1);

    snprintf(section, sizeof section, "%.*s", (int)(dot - key), key);
    if (!word_in(dialect->sections, section) || length >= sizeof dashed)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        dashed[i] = (char)(dot[1 + i] == '_' ? '-' : dot[1 + i]);
    row = dialect_row(dialect->like, dashed, true);
    return row && !first_key(dialect, row->name) ? row : NULL;
}

const struct argument_row *dialect_row(const struct dialect *dialect, const char *name, bool log)
{
    const struct argument_row *row = NULL;
    const char *dot = strchr(name, '.'), *argument = dot ? NULL : name;

    for (size_t i = 0; i < dialect->keys.count; i++)
        if (!strcmp(dialect->keys.items[i].from, name))
            argument = dialect->keys.items[i].to;
    if (!dialect->keys.count || argument == NULL || argument == name)
        row = find_own(dialect, name, log);
    for (size_t i = 0; !row && i < dialect->moved.count; i++) {
        size_t length = strlen(dialect->moved.items[i].from);
        char moved[256];

        snprintf(moved, sizeof moved, "%s%s", dialect->moved.items[i].to, strlen(name) > length ? name + length : "");
        if (!strncmp(name, dialect->moved.items[i].from, length))
            row = find_own(dialect, moved, log);
    }
    if (row || !dialect->like)
        return row;
    row = argument ? dialect_row(dialect->like, argument, false) : find_in_section(dialect, name, dot);
    return row ? &dialect->rows[dialect->own + (size_t)(row - dialect->like->rows)] : NULL;
}

const char *dialect_key(struct arena *arena, const struct dialect *dialect, const char *argument, bool *inverse)
{
    const struct argument_row *row = dialect_row(dialect->like, argument, false);
    const char *key = row ? first_key(dialect, row->name) : NULL;
    char *text;

    *inverse = row && row->logged && *row->logged == '!';
    if (key)
        return key;
    text = arena_printf(arena, "model.%s", argument);
    for (char *c = text; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return text;
}

const char *dialect_shown(struct arena *arena, const struct dialect *dialect, const char *name)
{
    bool inverse;

    return dialect->like && dialect_row(dialect->like, name, false) ? dialect_key(arena, dialect, name, &inverse) : name;
}

static const char *pair_of(const struct dialect_pairs *pairs, const char *from)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (!strcmp(pairs->items[i].from, from))
            return pairs->items[i].to;
    return NULL;
}

const char *dialect_printed(const struct dialect *dialect, const char *key)
{
    return pair_of(&dialect->printed, key);
}

bool dialect_is_release(const struct dialect *dialect, const char *software)
{
    return pair_of(&dialect->releases, software) != NULL;
}

struct releases dialect_releases(const struct dialect *dialect, const char *software)
{
    const char *text = pair_of(&dialect->releases, software), *to = text ? strstr(text, " to ") : NULL;
    int first = release_of(text);

    return (struct releases){first, to ? release_of(to + strlen(" to ")) : first};
}

int dialect_since(const struct argument_row *row, const char *value)
{
    size_t length = strlen(value);
    int since = row->since;

    for (const char *at = row->newer; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (!strncmp(at, value, length) && at[length] == '=' && release_of(at + length + 1) > since)
            since = release_of(at + length + 1);
    return since;
}

bool dialect_is_shape(const struct dialect *dialect, const char *name)
{
    const char *last = name + strlen(name);
    char part[40];

    while (last > name && !strchr("-_", last[-1]))
        last--;
    snprintf(part, sizeof part, "%.*s", (int)strcspn(name, "-_"), name);
    if (word_in(dialect->beside_first, part) || word_in(dialect->beside_last, last))
        return false;
    for (const char *at = name; *at; at += strcspn(at, "-_"), at += *at != '\0') {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(at, "-_"), at);
        if (word_in(dialect->shape, part))
            return true;
    }
    return false;
}
