#include "config/named.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "config/conf.h"
#include "files/data.h"

static const char *name_at(size_t i, const void *context)
{
    return ((const char *const *)context)[i];
}

/* Whether two names are equal but for case, spaces, hyphens, underscores and parentheses. */
static bool same_name(const char *a, const char *b)
{
    static const char passed[] = " -_()";

    for (;; a++, b++) {
        a += strspn(a, passed);
        b += strspn(b, passed);
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
    }
}

/* The names of the folder's files, and the name without a file. */
static const char **known_names(struct arena *arena, const struct data_kind *kind, struct error *err)
{
    const char **files = data_names(arena, kind->folder, err);
    size_t count = 0;

    if (!files || !kind->other)
        return files;
    while (files[count])
        count++;
    const char **names = ARENA_ARRAY(arena, const char *, count + 2);
    names[0] = kind->other;
    for (size_t i = 0; i < count; i++)
        names[i + 1] = files[i];
    return names;
}

/* The aliases of the folder's files: each the name of a file, or a list of names of which it may be any. NULL: such files
 * have none, or after an error. */
static const struct node *aliases_of(struct arena *arena, const struct data_kind *kind, struct error *err)
{
    const struct node *root;
    const char *path;

    if (data_file(arena, "platforms/names", "aliases", &path, err) || !path || conf_shared(arena, path, &root, err))
        return NULL;
    return node_get(root, kind->folder);
}

const char *data_meant(struct arena *arena, const struct data_kind *kind, const char *text, struct loc loc, struct error *err)
{
    const struct node *aliases = aliases_of(arena, kind, err), *alias = NULL;
    const char **names = aliases ? data_names(arena, kind->folder, err) : NULL, *list = "";

    for (size_t i = 0; names && names[i]; i++)
        if (same_name(text, names[i]))
            return names[i];
    for (size_t i = 0; names && i < aliases->count && !alias; i++)
        alias = same_name(text, aliases->keys[i]) ? aliases->items[i] : NULL;
    if (!alias || alias->kind == NODE_SCALAR)
        return alias ? alias->text : NULL;
    for (size_t i = 0; i < alias->count; i++)
        list = arena_printf(arena, "%s%s%s", list, i ? i + 1 < alias->count ? ", " : " or " : "", alias->items[i]->text);
    error_add(err, EXIT_INPUT, loc, "the %s '%s' may be %s; expected one of these names", kind->what, text, list);
    return NULL;
}

static void report_unknown(struct arena *arena, const struct data_kind *kind, const char *text, struct loc loc,
                           struct error *err)
{
    const char **names = known_names(arena, kind, err);
    const char *meant = names ? nearest(text, name_at, names) : NULL;
    const char *list = "";

    if (!names)
        return;
    if (meant) {
        error_add(err, EXIT_INPUT, loc, "unknown %s '%s'; did you mean '%s'?", kind->what, text, meant);
        return;
    }
    for (size_t i = 0; names[i]; i++)
        list = arena_printf(arena, "%s%s%s", list, i ? ", " : "", names[i]);
    error_add(err, EXIT_INPUT, loc, "unknown %s '%s'; expected a path or one of: %s", kind->what, text,
              *list ? list : "(no files found; is DTSIM_DATA right?)");
}

const char *data_resolve(struct arena *arena, const struct data_kind *kind, const char *text, struct loc loc,
                         struct error *err)
{
    size_t length = strlen(text);
    int errors = err->count;
    bool is_file = length > 5 && !strcmp(text + length - 5, ".yaml");
    const char *path = NULL, *meant;

    if (!data_is_path(text) && (data_file(arena, kind->folder, text, &path, err) || path))
        return path;
    meant = is_file ? NULL : data_meant(arena, kind, text, loc, err);
    if (meant)
        return data_file(arena, kind->folder, meant, &path, err) ? NULL : path;
    if (err->count > errors)
        return NULL;
    if (!data_is_path(text)) {
        report_unknown(arena, kind, text, loc, err);
        return NULL;
    }
    path = data_relative(arena, loc, text, err);
    if (!path || access(path, R_OK) == 0)
        return path;
    error_system(err, loc, "cannot read the %s file '%s'", kind->what, path);
    return NULL;
}
