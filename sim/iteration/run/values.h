/* values: which values of a key go with the rest of a scenario. The rules of what goes together stand where a scenario
 * is resolved and its stages are made. Here they are asked: each value is put into the scenario, which is read. */
#ifndef DTSIM_VALUES_H
#define DTSIM_VALUES_H

#include "base/base.h"
#include "config/conf.h"

struct asked_value {
    const char *value;               /* as it is written */
    bool said;                       /* the scenario has it now */
    const char *why;                 /* it does not go: the first message; NULL: it goes */
    const char *but;                 /* it goes, but a GPU surely holds too much, or the framework's release does not
                                        have it; NULL: nothing is against it */
    bool foreign;                    /* `but` is that the release does not have it */
};
struct asked_values {
    const char *path;
    struct asked_value *items;
    size_t count, going;
};

/* Asks for the values of `question`: "PATH=V1,V2", or "PATH" for all that the key has: the names of a choice, true and
 * false, or the numbers that follow from the model and the cluster (automatic.h). Everything is in the arena. `name` is
 * the scenario's, for messages. Errors: there is no such path, it has no list of values, or the model and the cluster
 * cannot be read. */
int values_ask(struct arena *arena, const struct node *root, const char *question, const char *name,
               struct asked_values *values, struct error *err);

#endif
