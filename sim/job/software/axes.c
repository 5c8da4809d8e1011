/* What a plan asks of software files before points are loaded: its default axes, `axes` of a file, {PATH: the argument that sets it};
 * and whether a file may give a key. */
#include "base/base.h"
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

static bool file_gives(const struct software_file *file, const char *key)
{
    const struct node *when = file->when.node;
    bool gives = file->values.node && node_get(file->values.node, key);

    for (size_t i = 0; when && i < when->count && !gives; i++)
        gives = node_get(when->items[i], key) != NULL;
    return gives;
}

bool software_gives(struct arena *arena, const char *like, struct loc loc, const char *key)
{
    struct software_file file;
    struct error err = {0};
    bool gives = false;

    for (int depth = 0; like && depth <= MOST_LIKE && !gives; depth++) {
        gives = software_load(arena, &like, loc, &file, &err) || file_gives(&file, key);
        loc = gives ? loc : field_loc(&software_file_table, &file, "like");
        like = gives ? NULL : file.like;
    }
    error_release(&err);
    return gives;
}
