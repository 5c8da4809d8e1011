/* Which values a scenario has from its software: what the file says, and those that it is like, under the conditions that
 * hold; and its own beside that. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/data.h"
#include "software/software_internal.h"

/* What the files say, while they are read. */
struct gathering {
    struct arena *arena;
    const struct key_parts *parts;
    const struct node *values;
    struct software_names *names;
    struct { const struct node **items; size_t count, capacity; } conditions;    /* all that were asked, in their order */
    struct error *err;
};

static int holds(struct gathering *gathering, const struct node *condition)
{
    *GROW(&gathering->conditions) = condition;
    return software_holds(gathering->arena, condition, gathering->parts, gathering->err);
}

/* Adds the lists of values that the release has. */
static int gather_has(struct gathering *gathering, const struct node *has)
{
    struct software_names *names = gathering->names;

    if (!has)
        return 0;
    if (software_has_check(gathering->arena, has, gathering->parts, gathering->err))
        return -1;
    names->has = node_merge(gathering->arena, names->has ? names->has : node_mapping(gathering->arena), has);
    return 0;
}

/* What the release cannot run. The conditions are read here, so that mistakes in them are found whether they hold or
 * not. */
static int gather_lacks(struct gathering *gathering, const struct node *lacks)
{
    int rc = 0;

    for (size_t i = 0; lacks && i < lacks->count; i++) {
        const struct node *condition = node_get(lacks->items[i], "if"), *why = node_get(lacks->items[i], "why");

        if (!condition || condition->kind != NODE_SCALAR || !why || why->kind != NODE_SCALAR || !*why->text ||
            node_is_null(why))
            rc = error_add(gathering->err, EXIT_INPUT, lacks->items[i]->loc, "software: lacks: expected a mapping with "
                           "'if', a condition, and 'why', a text");
        else if (software_holds(gathering->arena, condition, gathering->parts, gathering->err) < 0)
            rc = -1;
    }
    gathering->names->lacks = lacks ? lacks : gathering->names->lacks;
    return rc;
}

/* Adds the values that the file gives under its conditions. */
static int gather_when(struct gathering *gathering, const struct node *when)
{
    int rc = 0;

    for (size_t i = 0; when && i < when->count; i++) {
        const struct node *item = when->items[i], *condition = node_get(item, "if");
        int applies;

        if (!condition || condition->kind != NODE_SCALAR) {
            rc = error_add(gathering->err, EXIT_INPUT, item->loc, "software: when: expected a mapping with 'if', a "
                           "condition");
            continue;
        }
        applies = software_check_keys(item, gathering->parts, gathering->err) ? -1 : holds(gathering, condition);
        if (applies > 0) {
            gathering->values = node_merge(gathering->arena, gathering->values, item);
            applies = gather_has(gathering, node_get(item, "has"));
        }
        rc = applies < 0 ? -1 : rc;
    }
    return rc;
}

static int gather(struct gathering *gathering, const char *like, struct loc loc, int depth)
{
    struct software_names *names = gathering->names;
    struct error *err = gathering->err;
    struct software_file file;

    if (depth == MOST_LIKE)
        return error_add(err, EXIT_INPUT, loc, "software: like: more than %d files, each like the next", MOST_LIKE);
    if (software_load(gathering->arena, &like, loc, &file, err))
        return -1;
    like = arena_strdup(gathering->arena, like);         /* what is remembered outlives the scenario that said it */
    names->family = like;
    names->name = depth ? names->name : like;
    names->title = depth ? names->title : file.title;
    names->runtime = names->runtime ? names->runtime : file.runtime;
    if (file.like && gather(gathering, file.like, field_loc(&software_file_table, &file, "like"), depth + 1))
        return -1;
    names->runtime = names->runtime ? names->runtime : names->family;
    if (file.values.node && software_check_keys(file.values.node, gathering->parts, err))
        return -1;
    if (file.values.node)
        gathering->values = node_merge(gathering->arena, gathering->values, file.values.node);
    if (gather_has(gathering, file.has.node) || gather_lacks(gathering, file.lacks.node))
        return -1;
    return gather_when(gathering, file.when.node);
}

/* The values by the parts that have them: a mapping each. */
static struct node *divide(struct arena *arena, const struct node *values, const struct key_parts *parts)
{
    struct node *divided = ARENA_ARRAY(arena, struct node, parts->count);

    for (size_t p = 0; p < parts->count; p++) {
        const struct key_part *part = &parts->items[p];

        divided[p].kind = NODE_MAPPING;
        for (size_t i = 0; part->object && i < values->count; i++)
            if (software_may_give(part, values->keys[i]))
                node_put(arena, &divided[p], values->keys[i], values->items[i]);
    }
    return divided;
}

/* `loc`: where the parts are that the scenario leaves out. */
static int supply(struct arena *arena, const struct node *divided, struct loc loc, const struct key_parts *parts,
                  bool supplied, struct error *err)
{
    int rc = 0;

    for (size_t p = 0; p < parts->count; p++) {
        const struct key_part *part = &parts->items[p];
        struct node own = divided[p];

        own.loc = loc;
        if (own.count && field_supply(arena, part->table, part->object, &own, (struct supplying){"software", supplied}, err))
            rc = -1;
    }
    return rc;
}

/* What files of one name say where the same of their conditions hold: remembered where files stay. */
struct software_files {
    struct software_names names;
    const struct node *divided;
};
struct asked { size_t count; const struct node **items; };   /* the conditions */

/* The key of what the name's files say under the conditions that hold now; false: one of them has a mistake. */
static bool said_key(struct arena *arena, const char *like, const struct asked *asked,
                     const struct key_parts *parts, struct cache_key *key)
{
    struct error ignored = {0};
    bool fine = true;

    cache_key_text(key, like);
    for (size_t p = 0; p < parts->count; p++)
        cache_key_add(key, &(bool){parts->items[p].object}, sizeof(bool));
    for (size_t i = 0; i < asked->count && fine; i++) {
        int applies = software_holds(arena, asked->items[i], parts, &ignored);

        fine = applies >= 0;
        cache_key_add(key, &applies, sizeof applies);
    }
    error_release(&ignored);
    return fine;
}

static const struct software_files *find_files(struct arena *arena, const char *like,
                                               const struct key_parts *parts)
{
    const struct asked *asked = cache_find(arena->cache, CACHE_SOFTWARE, like, strlen(like));
    const struct software_files *files = NULL;
    struct cache_key key = {0};

    if (asked && said_key(arena, like, asked, parts, &key))
        files = cache_find(arena->cache, CACHE_SOFTWARE, key.items, key.count);
    free(key.items);
    return files;
}

/* Keeps the gathered values in the arena `own`, which the cache takes over if it has room. */
static void keep_files(const char *like, const struct gathering *gathering, const struct software_files *files,
                       struct arena *own)
{
    struct cache *cache = own->cache;
    struct arena list = {0};
    struct asked *asked = ARENA_ARRAY(&list, struct asked, 1);
    struct cache_key key = {0};

    *asked = (struct asked){gathering->conditions.count,
                            ARENA_ARRAY(&list, const struct node *, gathering->conditions.count)};
    if (asked->count)
        memcpy(asked->items, gathering->conditions.items, asked->count * sizeof *asked->items);
    if (said_key(own, like, asked, gathering->parts, &key))
        cache_put(cache, CACHE_SOFTWARE, key.items, key.count, files, own);
    free(key.items);
    if (cache_find(cache, CACHE_SOFTWARE, like, strlen(like)) ||
        !cache_put(cache, CACHE_SOFTWARE, like, strlen(like), asked, &list))
        arena_release(&list);
}

/* Reads the files into *files, which the cache may keep, or else the arena. */
static int read_files(struct arena *arena, const char *like, struct loc loc, const struct key_parts *parts,
                      const struct software_files **result, struct error *err)
{
    struct arena own = {.cache = arena->cache};
    struct software_files *files = ARENA_ARRAY(&own, struct software_files, 1);
    struct gathering gathering = {
        .arena = &own, .parts = parts, .values = node_mapping(&own), .names = &files->names, .err = err};
    int rc = gather(&gathering, like, loc, 0);

    *result = files;
    if (!rc)
        files->divided = divide(&own, gathering.values, parts);
    if (!rc && own.cache && own.cache->files_stay && !data_is_path(like))
        keep_files(like, &gathering, files, &own);
    free(gathering.conditions.items);
    arena_join(arena, &own);
    return rc;
}

int software_supply(struct arena *arena, const char *like, struct loc loc, const struct key_parts *parts,
                    struct software_names *names, struct error *err)
{
    const struct software_files *files = arena->cache && arena->cache->files_stay ? find_files(arena, like, parts) :
                                                                                    NULL;

    if (!files && read_files(arena, like, loc, parts, &files, err)) {
        *names = files->names;
        return -1;
    }
    *names = files->names;
    return supply(arena, files->divided, loc, parts, true, err);
}

/* Refuses a delegated key that stands in its part, not under `software`. */
static int refuse_misplaced(const struct key_part *part, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; part->object && i < part->table->count; i++) {
        const char *key = part->table->fields[i].key;

        if (field_given(part->table, part->object, key) && word_in(part->table->delegated, key))
            rc = error_add(err, EXIT_INPUT, field_loc(part->table, part->object, key), "%s: '%s' stands under "
                           "'software': expected software: {%s: ...} ('dtsim help software')", part->path, key, key);
    }
    return rc;
}

int software_lay_own(struct arena *arena, const struct node *own, const struct key_parts *parts, struct error *err)
{
    int rc = 0;

    for (size_t p = 0; p < parts->count; p++)
        if (refuse_misplaced(&parts->items[p], err))
            rc = -1;
    return rc || !own ? rc : supply(arena, divide(arena, own, parts), own->loc, parts, false, err);
}
