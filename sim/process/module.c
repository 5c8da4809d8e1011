#include "process/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/digest.h"

/* Relative to the program's folder, in the order in which they are searched. CMake knows where modules are
 * installed. */
static const char *const folders[] = {"", DTSIM_MODULE_FOLDER "/"};

/* The folder of this program, with a '/' at its end; "" if the system does not tell. */
static const char *program_folder(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

    while (length > 0 && path[length - 1] != '/')
        length--;
    path[length > 0 ? length : 0] = '\0';
    return path;
}

/* NULL and an error if no folder has the file. */
static const char *find(struct arena *arena, const char *name, const char *what, struct error *err)
{
    char own[PATH_MAX];
    const char *paths[COUNT(folders)];

    program_folder(own);
    for (size_t i = 0; i < COUNT(folders); i++) {
        paths[i] = arena_printf(arena, "%s%sdtsim-%s.so", own, folders[i], name);
        if (access(paths[i], R_OK) == 0)
            return paths[i];
    }
    error_add(err, EXIT_NO_TOOL, (struct loc){0}, "%s needs a module that is not installed: there is neither %s nor %s",
              what, paths[0], paths[1]);
    return NULL;
}

/* What a library calls is looked up when it is called first, if the library allows that; CMake sees to it that a module
 * does not, so that one whose symbols are missing cannot be loaded. The address sanitizer forbids RTLD_DEEPBIND. */
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
