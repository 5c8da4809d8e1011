/* groups.tsv: who exchanges with whom. */
#include "tables/recorded.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "files/look.h"

/* The members of a group, from its text. */
static int read_ranks(struct recorded_group *group, const struct tsv *tsv, struct error *err)
{
    const char *text = tsv_text(tsv, 3);
    size_t commas = 0;

    for (const char *at = text; *at; at++)
        commas += *at == ',';
    group->ranks = xcalloc(commas + 1, sizeof *group->ranks);
    while (*text >= '0' && *text <= '9') {
        char *end;
        long long rank = strtoll(text, &end, 10);

        if (rank > RECORDED_MOST_RANKS)
            break;
        group->ranks[group->nranks++] = (int)rank;
        text = end + (*end == ',' && end[1]);
    }
    return *text || !group->nranks ? error_add(err, EXIT_INPUT, tsv_loc(tsv, 3), "expected ranks with commas between them, "
                                               "found '%.40s'", tsv_text(tsv, 3)) : 0;
}

int recorded_read_groups(struct recorded *run, struct error *err)
{
    static const char *const wanted[] = {"group", "kind", "gpus", "ranks", NULL};
    struct tsv *tsv = &run->groups_file;
    const char *path = arena_printf(&run->arena, "%s/groups.tsv", run->dir);
    int before = err->count + err->dropped;
    enum look there = LOOK_FILE;

    if (!tsv->text && look_at(path, &there, err))
        return -1;
    if (!tsv->text && there == LOOK_NOTHING)
        return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "there is no such file: an older build wrote the "
                         "result, without what spans exchange; repeat 'dtsim run -o'");
    if (tsv_open(tsv, path, wanted, err))
        return -1;
    while (tsv_next(tsv, err)) {
        int number, next = (int)run->groups.count;
        struct recorded_group *group = GROW(&run->groups);

        *group = (struct recorded_group){.kind = tsv_text(tsv, 1)};
        if (tsv_integer(tsv, 0, next, next, &number, err) || tsv_integer(tsv, 2, 1, INT_MAX, &group->gpus, err))
            continue;
        read_ranks(group, tsv, err);
    }
    return err->count + err->dropped > before ? -1 : 0;
}

void recorded_index_groups(struct recorded *run)
{
    size_t all = (size_t)run->ranks * (size_t)run->replicas, sum = 0;

    run->groups_first = xcalloc(all + 2, sizeof *run->groups_first);
    for (size_t i = 0; i < run->groups.count; i++)
        for (int k = 0; k < run->groups.items[i].nranks; k++)
            if ((size_t)run->groups.items[i].ranks[k] < all) {
                run->groups_first[run->groups.items[i].ranks[k] + 2]++;
                sum++;
            }
    for (size_t i = 2; i < all + 2; i++)
        run->groups_first[i] += run->groups_first[i - 1];
    run->groups_of = xcalloc(sum + 1, sizeof *run->groups_of);
    for (size_t i = 0; i < run->groups.count; i++)
        for (int k = 0; k < run->groups.items[i].nranks; k++)
            if ((size_t)run->groups.items[i].ranks[k] < all)
                run->groups_of[run->groups_first[run->groups.items[i].ranks[k] + 1]++] = (int)i;
}

int recorded_group_at(const struct recorded *run, int group, int rank)
{
    const struct recorded_group *like = group < 0 ? NULL : &run->groups.items[group];
    int found = -1;

    for (size_t i = run->groups_first[rank]; like && i < run->groups_first[rank + 1]; i++) {
        int at = run->groups_of[i];
        const struct recorded_group *own = &run->groups.items[at];

        if (at == group)
            return group;
        if (found < 0 && own->gpus == like->gpus && own->nranks == like->nranks && !strcmp(own->kind, like->kind))
            found = at;
    }
    return found;
}

char *recorded_group_ranks(const struct recorded_group *group, int most)
{
    int shown = group->nranks < most ? group->nranks : most;
    char *text = xcalloc((size_t)shown + 1, DECIMAL_SIZE + 2), *at = text;

    for (int i = 0; i < shown; i++) {
        at = stpcpy(at, i ? ", " : "");
        at = decimal_integer(group->ranks[i], at);
    }
    strcpy(at, group->nranks > shown ? ", ..." : "");
    return text;
}

void recorded_release_groups(struct recorded *run)
{
    for (size_t i = 0; i < run->groups.count; i++)
        free(run->groups.items[i].ranks);
    free(run->groups.items);
    free(run->groups_first);
    free(run->groups_of);
}
