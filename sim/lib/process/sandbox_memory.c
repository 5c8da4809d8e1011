/* sandbox_memory: the memory of all processes of a group, by /proc. */
#include "process/sandbox_internal.h"

#include <unistd.h>

#include "base/base.h"

struct pids { pid_t *items; size_t count, capacity; };

/* Adds the children of a process that are of the group. */
static void add_children(pid_t parent, pid_t group, struct pids *pids)
{
    char path[64];
    FILE *file;
    int pid;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    file = fopen(path, "re");
    while (file && fscanf(file, "%d", &pid) == 1)
        if (getpgid(pid) == group)
            *GROW(pids) = pid;
    if (file)
        fclose(file);
}

/* The number in a file of the process. */
static size_t number_of(pid_t pid, const char *name, const char *format)
{
    char path[64], line[256];
    size_t number = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    file = fopen(path, "re");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    while (file && fgets(line, sizeof line, file) && sscanf(line, format, &number) != 1)
        continue;
#pragma GCC diagnostic pop
    if (file)
        fclose(file);
    return number;
}

/* Pages that several processes share count in each: this is the most that they may hold. Only where that is too much, each
 * page's part is asked for (Pss), which takes longer. */
size_t sandbox_memory(pid_t group)
{
    struct pids pids = {0};
    size_t most = 0, held = 0;

    add_children(getpid(), group, &pids);        /* and those whose parents have ended */
    for (size_t i = 0; i < pids.count; i++)
        add_children(pids.items[i], group, &pids);
    for (size_t i = 0; i < pids.count; i++)
        most += number_of(pids.items[i], "statm", "%*u %zu") * (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < pids.count && most > SANDBOX_MEMORY; i++)
        held += number_of(pids.items[i], "smaps_rollup", "Pss: %zu") * 1024;
    free(pids.items);
    return most > SANDBOX_MEMORY ? held : most;
}
