/* megatron: the scenario that a launch of Megatron-LM says. Every argument ends in one class: a key of the scenario says
 * it (mapped); it is left out and has its default; it has no effect on the time of an iteration; the simulation does not
 * have what it does (a warning); or it is unknown (an error). */
#ifndef DTSIM_MEGATRON_H
#define DTSIM_MEGATRON_H

#include "launch/launch.h"

struct megatron_options {
    const char *cluster;             /* a file of platforms/, or a path; NULL: dgx-h100 */
    bool strict;                     /* a warning is an error */
    const struct shell_set *sets;    /* of arguments (num-layers, 32) and of a script's variables */
    size_t nsets;
};
/* Prints the scenario to `out` as YAML, and what is left out, doubted or taken by default to `notes`. */
int megatron_import(struct arena *arena, const char *path, const struct megatron_options *options, FILE *out,
                    FILE *notes, struct error *err);
/* The same of arguments that were read. *comment: the lines of a comment that belongs above the scenario. */
struct node *megatron_scenario(struct arena *arena, struct launch *launch, const struct megatron_options *options,
                               const char **comment, FILE *notes, struct error *err);

#endif
