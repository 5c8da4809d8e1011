/* What the parts of software/ share. */
#ifndef DTSIM_SOFTWARE_INTERNAL_H
#define DTSIM_SOFTWARE_INTERNAL_H

#include "software/software.h"

/* A key of a part by its path, "strategy.zero"; field NULL: no part has such a key. */
struct member { const struct software_part *part; const struct field *field; };
struct member software_member(const struct software_parts *parts, const char *path);
/* The i-th path of all keys of the parts, in the arena; NULL past the last. */
const char *software_path_at(struct arena *arena, const struct software_parts *parts, size_t i);

/* Checks the lists of a file's key `has`: {PATH: [VALUE, ...]}. */
int software_has_check(struct arena *arena, const struct node *has, const struct software_parts *parts,
                       struct error *err);
/* Whether the condition holds; -1 after an error. */
int software_holds(struct arena *arena, const struct node *condition, const struct software_parts *parts,
                   struct error *err);

#endif
