/* groups.tsv: who exchanges with whom. */
#include "trace/trace_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "files/look.h"

/* The members of a group, from its text. */
static int read_ranks(struct trace_group *group, const struct tsv *tsv, struct error *err)
{
    const char *text = tsv_text(tsv, 3);
    size_t commas = 0;

    for (const char *at = text; *at; at++)
        commas += *at == ',';
    group->ranks = xcalloc(commas + 1, sizeof *group->ranks);
    while (*text >= '0' && *text <= '9') {
        char *end;
        long rank = strtol(text, &end, 10);

        if (rank > TRACE_MOST_RANKS)
            break;
        group->ranks[group->nranks++] = (int)rank;
        text = end + (*end == ',' && end[1]);
    }
    return *text || !group->nranks ? error_add(err, EXIT_INPUT, tsv_loc(tsv, 3), "expected ranks with commas between them, "
                                               "found '%.40s'", tsv_text(tsv, 3)) : 0;
}

int groups_read(struct trace *trace, struct error *err)
{
    static const char *const wanted[] = {"group", "kind", "gpus", "ranks", NULL};
    struct tsv *tsv = &trace->groups_file;
    const char *path = arena_printf(&trace->arena, "%s/groups.tsv", trace->request->dir);
    int before = err->count + err->dropped;
    enum look there;

    if (look_at(path, &there, err))
        return -1;
    if (there == LOOK_NOTHING)
        return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "there is no such file: an older build wrote the "
                         "result, without what spans exchange; repeat 'dtsim run -o'");
    if (tsv_open(tsv, path, wanted, err))
        return -1;
    while (tsv_next(tsv, err)) {
        int number, next = (int)trace->groups.count;
        struct trace_group *group = GROW(&trace->groups);

        *group = (struct trace_group){.kind = tsv_text(tsv, 1)};
        if (tsv_integer(tsv, 0, next, next, &number, err) || tsv_integer(tsv, 2, 1, INT_MAX, &group->gpus, err))
            continue;
        read_ranks(group, tsv, err);
    }
    return err->count + err->dropped > before ? -1 : 0;
}

void groups_index(struct trace *trace)
{
    size_t all = (size_t)trace->ranks * (size_t)trace->replicas, sum = 0;

    trace->groups_first = xcalloc(all + 2, sizeof *trace->groups_first);
    for (size_t i = 0; i < trace->groups.count; i++)
        for (int k = 0; k < trace->groups.items[i].nranks; k++)
            if ((size_t)trace->groups.items[i].ranks[k] < all) {
                trace->groups_first[trace->groups.items[i].ranks[k] + 2]++;
                sum++;
            }
    for (size_t i = 2; i < all + 2; i++)
        trace->groups_first[i] += trace->groups_first[i - 1];
    trace->groups_of = xcalloc(sum + 1, sizeof *trace->groups_of);
    for (size_t i = 0; i < trace->groups.count; i++)
        for (int k = 0; k < trace->groups.items[i].nranks; k++)
            if ((size_t)trace->groups.items[i].ranks[k] < all)
                trace->groups_of[trace->groups_first[trace->groups.items[i].ranks[k] + 1]++] = (int)i;
}

int trace_group_at(const struct trace *trace, int group, int rank)
{
    const struct trace_group *like = group < 0 ? NULL : &trace->groups.items[group];
    int found = -1;

    for (size_t i = trace->groups_first[rank]; like && i < trace->groups_first[rank + 1]; i++) {
        int at = trace->groups_of[i];
        const struct trace_group *own = &trace->groups.items[at];

        if (at == group)
            return group;
        if (found < 0 && own->gpus == like->gpus && own->nranks == like->nranks && !strcmp(own->kind, like->kind))
            found = at;
    }
    return found;
}

char *trace_group_ranks(const struct trace_group *group, int most)
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

void groups_release(struct trace *trace)
{
    for (size_t i = 0; i < trace->groups.count; i++)
        free(trace->groups.items[i].ranks);
    free(trace->groups.items);
    free(trace->groups_first);
    free(trace->groups_of);
}
