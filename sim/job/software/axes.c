/* The default axes of a plan: `axes` of a software file, {PATH: the argument that sets it}. */
#include "config/conf.h"
#include "software/software_internal.h"

int software_axes(struct arena *arena, const char *like, struct loc loc, const struct node **axes, struct error *err)
{
    const struct node *files[MOST_LIKE + 1] = {NULL};
    struct software_file file;
    struct node *all = NULL;

    *axes = NULL;
    for (int depth = 0; like && depth <= MOST_LIKE; depth++) {
        if (software_load(arena, &like, loc, &file, err))
            return -1;
        files[depth] = file.axes.node;
        loc = field_loc(&software_file_table, &file, "like");
        like = file.like;
    }
    for (int depth = MOST_LIKE; depth >= 0; depth--)
        if (files[depth])
            *axes = all = node_merge(arena, all ? all : node_mapping(arena), files[depth]);
    return 0;
}
