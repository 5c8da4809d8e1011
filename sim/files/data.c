#include "files/data.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/cache.h"

enum { ROOTS_MAX = 2 };

struct names {
    const char **items;
    size_t count, capacity;
};

/* The folder of the installation to which this program belongs, wherever it has been put: share/dtsim for bin/dtsim. If
 * there is none, the sources. */
static const char *own_root(struct arena *arena)
{
    static const char key[] = "root";
    const char *known = arena->cache ? cache_find(arena->cache, CACHE_ROOT, key, sizeof key) : NULL;
    char path[PATH_MAX];
    ssize_t length;

    if (known)
        return known;
    length = readlink("/proc/self/exe", path, sizeof path);
    while (length > 0 && path[length - 1] != '/')
        length--;
    known = length <= 0 ? NULL : arena_printf(arena, "%.*s" DTSIM_DATA_FOLDER, (int)length, path);
    if (!known || access(known, R_OK) != 0)
        known = DTSIM_SOURCE_DIR;
    if (arena->cache)
        cache_copy(arena->cache, CACHE_ROOT, key, sizeof key, known, strlen(known) + 1);
    return known;
}

/* The folders that are searched, in order. The user's own ($DTSIM_DATA) comes first, so its files replace those of the
 * same name. Then the folder that was installed with the program, or the sources if it is not installed. */
static size_t data_roots(struct arena *arena, const char *roots[ROOTS_MAX])
{
    const char *user = getenv("DTSIM_DATA");
    size_t count = 0;

    if (user && *user)
        roots[count++] = user;
    roots[count++] = own_root(arena);
    return count;
}

const char *data_path(struct arena *arena, const char *folder, const char *file)
{
    const char *roots[ROOTS_MAX];
    size_t count = data_roots(arena, roots);

    for (size_t i = 0; i < count; i++) {
        const char *path = arena_printf(arena, "%s/%s/%s", roots[i], folder, file);
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

const char *data_file(struct arena *arena, const char *folder, const char *name)
{
    return data_path(arena, folder, arena_printf(arena, "%s.yaml", name));
}

static bool ends_in_yaml(const char *text, size_t *stem)
{
    size_t length = strlen(text);
    if (length < 5 || strcmp(text + length - 5, ".yaml") != 0)
        return false;
    *stem = length - 5;
    return true;
}

static bool names_hold(const struct names *names, const char *name, size_t length)
{
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->items[i]) == length && memcmp(names->items[i], name, length) == 0)
            return true;
    return false;
}

static void names_collect(struct arena *arena, const char *path, struct names *names)
{
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        size_t stem;
        if (entry->d_name[0] == '.' || !ends_in_yaml(entry->d_name, &stem) || names_hold(names, entry->d_name, stem))
            continue;
        *GROW(names) = arena_strndup(arena, entry->d_name, stem);
    }
    closedir(dir);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **data_names(struct arena *arena, const char *folder)
{
    struct names names = {0};
    const char *roots[ROOTS_MAX];
    size_t count = data_roots(arena, roots);

    for (size_t i = 0; i < count; i++)
        names_collect(arena, arena_printf(arena, "%s/%s", roots[i], folder), &names);
    if (names.count)
        qsort(names.items, names.count, sizeof names.items[0], compare_names);
    const char **list = ARENA_ARRAY(arena, const char *, names.count + 1);
    for (size_t i = 0; i < names.count; i++)
        list[i] = names.items[i];
    free(names.items);
    return list;
}

const char *data_beside(struct arena *arena, const char *file, const char *path)
{
    /* A path on the command line ("--set cluster=mine.yaml") is relative to the working directory. */
    const char *slash = file && strncmp(file, "--", 2) != 0 ? strrchr(file, '/') : NULL;

    while (path[0] == '.' && path[1] == '/')
        path += 2 + strspn(path + 2, "/");
    if (path[0] == '/' || !slash)
        return arena_strdup(arena, path);
    return arena_printf(arena, "%.*s/%s", (int)(slash - file), file, path);
}

static const char *name_at(size_t i, const void *context)
{
    return ((const char *const *)context)[i];
}

/* The names of the folder's files, and the name without a file. */
static const char **known_names(struct arena *arena, const struct data_kind *kind)
{
    const char **files = data_names(arena, kind->folder);
    size_t count = 0;

    while (files[count])
        count++;
    if (!kind->other)
        return files;
    const char **names = ARENA_ARRAY(arena, const char *, count + 2);
    names[0] = kind->other;
    for (size_t i = 0; i < count; i++)
        names[i + 1] = files[i];
    return names;
}

static void report_unknown(struct arena *arena, const struct data_kind *kind, const char *text, struct loc loc,
                           struct error *err)
{
    const char **names = known_names(arena, kind);
    const char *meant = nearest(text, name_at, names);
    const char *list = "";

    if (meant) {
        error_add(err, EXIT_INPUT, loc, "unknown %s '%s'; did you mean '%s'?", kind->what, text, meant);
        return;
    }
    for (size_t i = 0; names[i]; i++)
        list = arena_printf(arena, "%s%s%s", list, i ? ", " : "", names[i]);
    error_add(err, EXIT_INPUT, loc, "unknown %s '%s'; expected a path or one of: %s", kind->what, text,
              *list ? list : "(no files found; is DTSIM_DATA right?)");
}

bool data_is_path(const char *text)
{
    size_t stem;

    return strchr(text, '/') || ends_in_yaml(text, &stem);
}

const char *data_absolute(struct arena *arena, const char *path)
{
    char *real = realpath(path, NULL);
    const char *copy = arena_strdup(arena, real ? real : path);

    free(real);
    return copy;
}

const char *data_resolve(struct arena *arena, const struct data_kind *kind, const char *text, struct loc loc,
                         struct error *err)
{
    if (!data_is_path(text)) {
        const char *file = data_file(arena, kind->folder, text);
        if (!file)
            report_unknown(arena, kind, text, loc, err);
        return file;
    }
    const char *path = data_beside(arena, loc.file, text);
    if (access(path, R_OK) != 0) {
        error_add(err, EXIT_INPUT, loc, "cannot read the %s file '%s': %s", kind->what, path, strerror(errno));
        return NULL;
    }
    return path;
}

const char *data_stem(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

    return arena_strndup(arena, name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
}
