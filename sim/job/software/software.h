/* software: what a release of a training framework does, as a file of platforms/software/ says it. A file gives values
 * of the keys that other tables delegate to it (field.h: `delegated`): some always, some under conditions on the
 * scenario, such as 'memory.precision == "mixed-bf16"'. It may begin with the values of another file (`like`), or stand
 * for one (`alias`). It may also list which values of a key the release has (`has`), such as its schedules. */
#ifndef DTSIM_SOFTWARE_H
#define DTSIM_SOFTWARE_H

#include "expression/condition.h"

/* Keys of a software file. */
extern const struct table software_file_table;

/* The names of a file: its name (an alias has the name that it stands for), its title, and its family. The family is
 * the name of the first file in the chain of `like`, which releases of one family share; a file without `like` is its
 * own family. */
struct software_names {
    const char *name, *title, *family;
    const char *runtime;         /* what runs the step below it; where neither the file nor one that it begins with says it: the family */
    const struct node *has;      /* the values that the release has, by the keys' paths: {strategy.zero: [0, 1]}; a key that
                                  * stands nowhere: nobody looked it up */
    const struct node *lacks;    /* what the release cannot run, [{if: CONDITION, why: TEXT}]; NULL: nothing is known */
};
/* Lays the values of the file, which `like` names at `loc`, under the parts: a part's key that the scenario gives keeps
 * its value (field_supply). *names are the file's. Errors, at their places: an unknown file, a file that is like itself,
 * keys that no part delegates, conditions that do not hold anything. */
int software_supply(struct arena *arena, const char *like, struct loc loc, const struct key_parts *parts,
                    struct software_names *names, struct error *err);
/* The same for values that the scenario gives next to `like`: they count as if they stood in the parts, but keep their
 * places. A part that gives a delegated key itself is an error. */
int software_lay_own(struct arena *arena, const struct node *own, const struct key_parts *parts,
                     struct error *err);

/* The file's title, and its list of the values that it has of a key ("strategy.zero"). Without such a list, the list of
 * the first file that has one among the files that it begins with. Lists under conditions do not count. path NULL:
 * instead the combinations that it cannot run, [{if: CONDITION, why: TEXT}]. *list NULL: no file has one. */
int software_list(struct arena *arena, const char *like, struct loc loc, const char *path, const char **title,
                  const struct node **list, struct error *err);

/* The axes that a plan searches where nobody names any, of the file and of those that it begins with: {PATH: the
 * framework's argument}; null takes one of these away. *axes NULL: no file says them. */
int software_axes(struct arena *arena, const char *like, struct loc loc, const struct node **axes, struct error *err);

/* Whether the file, or one that it begins with, gives the key under any condition; also where a file cannot be read. */
bool software_gives(struct arena *arena, const char *like, struct loc loc, const char *key);

/* A key whose value may be one that a release does not have. */
struct software_ask {
    const char *path;            /* "strategy.schedule" */
    bool idle;                   /* its value changes nothing here, so that the release need not have it */
    bool asks;                   /* its value is a feature: whether a release without a list has it is not known */
};
/* Whether the release has all values that the parts ask for, as far as it has lists of them, and the values of
 * `asks`. */
enum software_has { SOFTWARE_UNKNOWN, SOFTWARE_HAS, SOFTWARE_LACKS };
struct software_lack {
    const char *path, *value, *has;      /* has: "1f1b, interleaved"; "" where it has none */
    const char *why, *condition;         /* instead: values that it has, but not together */
};
/* *lack is the first value that the release lacks; its texts stand in the arena. */
enum software_has software_has(struct arena *arena, const struct software_names *names,
                               const struct key_parts *parts, const struct software_ask *asks, size_t count,
                               struct software_lack *lack);
/* The lack in words, in the arena. */
const char *software_lack_text(struct arena *arena, const struct software_names *names, const struct software_lack *lack);

#endif
