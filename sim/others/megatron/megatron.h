/* megatron: the scenario that a launch of Megatron-LM says, and the launch that says a scenario. */
#ifndef DTSIM_MEGATRON_H
#define DTSIM_MEGATRON_H

#include "launch/imported.h"

/* Prints the scenario to `out` as YAML, and what is left out, doubted or taken by default to `notes`. */
int megatron_import(struct arena *arena, const char *path, const struct import_options *options, FILE *out,
                    FILE *notes, struct error *err);
/* Fills a scenario that imported_begin began, in the order in which one part needs another: from the launch's arguments,
 * whose table says which rows of Megatron-LM's they are. 0 or -1. */
int megatron_build(struct imported *m);
/* Whether the software that was found is a release of Megatron Core. */
bool megatron_core(const struct imported *m);
/* The same of arguments that were read. *comment: the lines of a comment that belongs above the scenario. */
struct node *megatron_scenario(struct arena *arena, struct launch *launch, const struct import_options *options,
                               const char **comment, FILE *notes, struct error *err);

/* The pattern of layers, each a letter or a parenthesis, which is as short as it can be: repeated it has all of them. */
const char *megatron_pattern(struct arena *arena, const char *const *units, long long count);

#endif
