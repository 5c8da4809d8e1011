#include "files/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cache.h"
#include "files/look.h"

enum { ROOTS_MAX = 2 };
static const char root_key[] = "root";

const char *data_own(struct arena *arena, struct error *err)
{
    static const char *const folders[] = {DTSIM_DATA_FOLDER, DTSIM_LIBRARY_DATA_FOLDER};
    const char *known = arena->cache ? cache_find(arena->cache, CACHE_ROOT, root_key, sizeof root_key) : NULL, *program;
    enum look found;

    if (known)
        return known;
    program = look_program(arena, err);
    if (!program)
        return NULL;
    for (size_t i = 0; i < COUNT(folders); i++) {
        known = arena_printf(arena, "%s%s", program, folders[i]);
        if (look_at(known, &found, err))
            return NULL;
        if (found != LOOK_NOTHING)
            break;
        known = DTSIM_SOURCE_DIR;
    }
    if (arena->cache)
        data_belongs(arena->cache, known);
    return known;
}

void data_belongs(struct cache *cache, const char *folder)
{
    cache_copy(cache, CACHE_ROOT, root_key, sizeof root_key, folder, strlen(folder) + 1);
}

/* The folders that are searched, in order. The user's own ($DTSIM_DATA) comes first: its files replace files of the
 * same name. Then comes the folder that was installed with the program, or the sources if it is not installed. */
static int data_roots(struct arena *arena, const char *roots[ROOTS_MAX], size_t *count, struct error *err)
{
    const char *user = getenv("DTSIM_DATA");

    *count = 0;
    if (user && *user)
        roots[(*count)++] = user;
    roots[*count] = data_own(arena, err);
    return roots[(*count)++] ? 0 : -1;
}

/* What was found under the key before, where files stay; NULL: nothing. */
static const char *found_before(const struct arena *arena, enum cache_kind kind, const char *key)
{
    return arena->cache && arena->cache->files_stay ? cache_find(arena->cache, kind, key, strlen(key)) : NULL;
}

static void remember(const struct arena *arena, enum cache_kind kind, const char *key, const char *path)
{
    if (path && arena->cache && arena->cache->files_stay)
        cache_copy(arena->cache, kind, key, strlen(key), path, strlen(path) + 1);
}

int data_path(struct arena *arena, const char *folder, const char *file, const char **path, struct error *err)
{
    const char *key = arena_printf(arena, "%s/%s", folder, file), *roots[ROOTS_MAX];
    size_t count;

    if ((*path = found_before(arena, CACHE_PATH, key)))
        return 0;
    if (data_roots(arena, roots, &count, err))
        return -1;
    for (size_t i = 0; i < count && !*path; i++) {
        const char *candidate = arena_printf(arena, "%s/%s", roots[i], key);
        enum look found;

        if (look_at(candidate, &found, err))
            return -1;
        if (found != LOOK_NOTHING)
            *path = candidate;
    }
    remember(arena, CACHE_PATH, key, *path);
    return 0;
}

int data_file(struct arena *arena, const char *folder, const char *name, const char **path, struct error *err)
{
    return data_path(arena, folder, arena_printf(arena, "%s.yaml", name), path, err);
}

static bool ends_in_yaml(const char *text, size_t *stem)
{
    size_t length = strlen(text);
    if (length < 5 || strcmp(text + length - 5, ".yaml") != 0)
        return false;
    *stem = length - 5;
    return true;
}

static bool is_data(const char *name)
{
    size_t stem;

    return name[0] != '.' && ends_in_yaml(name, &stem);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **data_names(struct arena *arena, const char *folder, struct error *err)
{
    struct look_names files = {0};
    const char *roots[ROOTS_MAX], **names = NULL;
    size_t nroots, count = 0;
    int rc = data_roots(arena, roots, &nroots, err);

    for (size_t i = 0; i < nroots && !rc; i++)
        rc = look_into(arena, arena_printf(arena, "%s/%s", roots[i], folder), is_data, &files, err);
    if (!rc) {
        names = ARENA_ARRAY(arena, const char *, files.count + 1);
        for (size_t i = 0; i < files.count; i++)
            names[i] = data_stem(arena, files.items[i]);
        array_sort(names, files.count, sizeof *names, compare_names);
        for (size_t i = 0; i < files.count; i++)
            if (!count || strcmp(names[count - 1], names[i]))
                names[count++] = names[i];
        names[count] = NULL;
    }
    free(files.items);
    return names;
}

/* Whether the file is one that belongs to the program, or stands in the user's own folder of such files. */
static bool is_own(struct arena *arena, const char *file, struct error *err)
{
    const char *roots[ROOTS_MAX];
    size_t count, length;

    if (!file || data_roots(arena, roots, &count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        length = strlen(roots[i]);
        if (!strncmp(file, roots[i], length) && file[length] == '/')
            return true;
    }
    return false;
}

const char *data_relative(struct arena *arena, struct loc loc, const char *path, struct error *err)
{
    /* A path on the command line ("--set cluster=mine.yaml") is relative to the working directory. */
    const char *file = loc.file, *slash = file && strncmp(file, "--", 2) != 0 ? strrchr(file, '/') : NULL;
    char shown[CLIP_SIZE];

    if (arena->cache && arena->cache->names_only && !is_own(arena, file, err)) {
        error_add(err, EXIT_INPUT, loc, "'%s' is a path, and no file is opened for this scenario; expected a name that "
                  "'dtsim list' knows, or the content itself", text_clip(path, shown, sizeof shown));
        return NULL;
    }
    while (path[0] == '.' && path[1] == '/')
        path += 2 + strspn(path + 2, "/");
    if (path[0] == '/' || !slash)
        return arena_strdup(arena, path);
    return arena_printf(arena, "%.*s/%s", (int)(slash - file), file, path);
}

bool data_is_path(const char *text)
{
    size_t stem;

    return strchr(text, '/') || ends_in_yaml(text, &stem);
}

const char *data_absolute(struct arena *arena, const char *path, struct error *err)
{
    const char *copy = found_before(arena, CACHE_ABSOLUTE, path);
    char *real = copy ? NULL : realpath(path, NULL);

    if (copy)
        return copy;
    if (!real && errno == ENOMEM)
        memory_ran_out();
    if (real || errno == ENOENT || errno == ENOTDIR)
        copy = arena_strdup(arena, real ? real : path);
    else
        error_system(err, (struct loc){.file = path}, "cannot find its absolute path");
    remember(arena, CACHE_ABSOLUTE, path, real);
    free(real);
    return copy;
}

const char *data_stem(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

    return arena_strndup(arena, name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
}
