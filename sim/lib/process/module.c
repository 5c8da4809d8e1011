#include "process/module.h"

#include <dlfcn.h>
#include <string.h>

#include "base/base.h"
#include "files/digest.h"
#include "files/look.h"

/* Relative to the program's folder, in the order in which they are searched. CMake knows where modules are
 * installed. */
static const char *const folders[] = {"", DTSIM_MODULE_FOLDER "/"};

/* The package that a build needs to make a module, by its name in Debian and Ubuntu. */
static const char *package_of(const char *name)
{
    static const char *const packages[][2] = {
        {"http", "libmicrohttpd-dev"}, {"sqlite", "libsqlite3-dev"}, {"mpi", "libopenmpi-dev"}, {"simgrid", "libsimgrid-dev"},
    };

    for (size_t i = 0; i < COUNT(packages); i++)
        if (!strcmp(packages[i][0], name))
            return packages[i][1];
    return "its library";
}

/* NULL and an error if no folder has the file. */
static const char *find(struct arena *arena, const char *name, const char *what, struct error *err)
{
    const char *own = look_program(arena, err), *paths[COUNT(folders)];

    if (!own)
        return NULL;
    for (size_t i = 0; i < COUNT(folders); i++) {
        enum look found;

        paths[i] = arena_printf(arena, "%s%sdtsim-%s.so", own, folders[i], name);
        if (look_at(paths[i], &found, err))
            return NULL;
        if (found != LOOK_NOTHING)
            return paths[i];
    }
    error_add(err, EXIT_NO_TOOL, (struct loc){0}, "%s needs a module that is not installed: there is neither %s nor %s; a build "
              "where %s is installed makes it", what, paths[0], paths[1], package_of(name));
    return NULL;
}

/* Functions of a library are resolved at their first call, if the library allows that; CMake makes modules resolve them
 * at once, so that a module with missing symbols cannot be loaded. The address sanitizer forbids RTLD_DEEPBIND. */
static void *load(const char *path, enum module_symbols symbols)
{
    bool among_own = symbols == MODULE_OWN_FIRST && !ADDRESS_SANITIZER;

    return dlopen(path, RTLD_LAZY | RTLD_LOCAL | (among_own ? RTLD_DEEPBIND : 0));
}

const void *module_open(const char *name, enum module_symbols symbols, const char *what, struct error *err)
{
    struct arena arena = {0};
    const char *path = find(&arena, name, what, err);
    void *module = path ? load(path, symbols) : NULL;
    const char *sources = module ? dlsym(module, "module_sources") : NULL;
    const void *symbol = NULL;

    if (module && (!sources || strcmp(sources, sources_digest) != 0))
        error_add(err, EXIT_NO_TOOL, (struct loc){0}, "%s needs a module of the same build as this program: %s is of "
                  "another one; install both together", what, path);
    else if (path && (!module || !(symbol = dlsym(module, arena_printf(&arena, "module_%s", name)))))
        error_add(err, EXIT_NO_TOOL, (struct loc){0}, "%s needs a module that cannot be loaded: %s", what, dlerror());
    arena_release(&arena);
    return symbol;
}
