/* What the parts of software/ share. */
#ifndef DTSIM_SOFTWARE_INTERNAL_H
#define DTSIM_SOFTWARE_INTERNAL_H

#include "software/software.h"

enum { MOST_LIKE = 4 };      /* a file may be like another file */

/* A file of platforms/software/. */
struct node_holder { const struct node *node; };
struct software_file {
    const struct node *node;
    const char *alias, *title, *runtime, *source, *like;
    struct node_holder values, has, lacks, when, axes;
};
/* Reads the file of that name or, for an alias, the file that it stands for, and sets *name to that file's name. */
int software_load(struct arena *arena, const char **name, struct loc loc, struct software_file *file, struct error *err);

/* Whether files may give the part's key. */
bool software_may_give(const struct key_part *part, const char *key);
/* Refuses keys that files may give to no part, but for `if` and `has`. */
int software_check_keys(const struct node *values, const struct key_parts *parts, struct error *err);
/* Checks the lists of a file's key `has`: {PATH: [VALUE, ...]}. */
int software_has_check(struct arena *arena, const struct node *has, const struct key_parts *parts,
                       struct error *err);
/* Whether the condition holds; -1 after an error. Conditions are remembered once they are parsed. */
int software_holds(struct arena *arena, const struct node *condition, const struct key_parts *parts,
                   struct error *err);

#endif
