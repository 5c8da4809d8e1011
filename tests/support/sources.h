/* sources: the program's sources, read one by one. */
#ifndef DTSIM_TEST_SOURCES_H
#define DTSIM_TEST_SOURCES_H

#include <dirent.h>

#include "simulated.h"

/* The rooms of sim/, WING/ROOM, from the ground up. A room includes itself and the rooms before it in this list, by
 * ROOM/FILE. */
static const char *const rooms[] = {
    "lib/base", "lib/files", "lib/view", "lib/process", "lib/config", "lib/expression",
    "machine/topology", "machine/hardware", "machine/layout", "machine/kernels", "machine/engine",
    "machine/collective",
    "job/huggingface", "job/model", "job/schedule", "job/software", "job/evidence", "job/scenario",
    "iteration/stage", "iteration/recompute", "iteration/alike", "iteration/workload", "iteration/exchange",
    "iteration/lower", "iteration/auto", "iteration/steady", "iteration/run",
    "output/explain", "output/tables", "output/report", "output/trace",
    "many/store", "many/train", "many/sweep", "many/results", "many/plan", "many/planners", "many/calibrate",
    "many/validate",
    "others/import", "others/launch", "others/megatron", "others/jobs", "others/emit",
    "faces/page", "faces/serve", "faces/library", "faces/app", "faces/modules", "faces/cli",
};

static inline int is_source(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot && (!strcmp(dot, ".c") || !strcmp(dot, ".h"));
}

/* Calls `check` for every source of a folder, with its path below the sources and its text; returns how many. */
static inline int each_of(const char *name, void (*check)(const char *path, const char *text))
{
    struct dirent **entries;
    char folder[512], path[1024];
    int count;

    snprintf(folder, sizeof folder, "%s/%s", DTSIM_SOURCE_DIR, name);
    count = scandir(folder, &entries, is_source, alphasort);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (check) {
            char *text = read_file(path);

            check(path + strlen(DTSIM_SOURCE_DIR) + 1, text);
            free(text);
        }
        free(entries[i]);
    }
    free(entries);
    return count;
}

static inline void each_source(void (*check)(const char *path, const char *text))
{
    static const char *const others[] = {"plots", "strategies", "strategies/blocks", "strategies/collectives", "calibration"};
    char folder[64];

    for (size_t f = 0; f < COUNT(rooms); f++) {
        snprintf(folder, sizeof folder, "sim/%s", rooms[f]);
        assert_true(each_of(folder, check) > 0);
    }
    for (size_t f = 0; f < COUNT(others); f++)
        assert_true(each_of(others[f], check) > 0);
}

static inline bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

#endif
