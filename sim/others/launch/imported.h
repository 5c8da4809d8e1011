/* imported: a scenario in the making from a launch: arguments of a command, or the keys of a file. Every argument ends
 * in one class: a key of the scenario says it (mapped); it is left out and has its default; it has no effect on the
 * time of an iteration; the simulation does not have what it does (a warning); or it is unknown (an error). */
#ifndef DTSIM_IMPORTED_H
#define DTSIM_IMPORTED_H

#include "config/conf.h"
#include "launch/dialect.h"
#include "launch/launch.h"

struct imported {
    struct arena *arena;
    struct launch *launch;
    const struct import_options *options;
    const struct dialect *dialect;
    const struct launch_argument **given;    /* by row; NULL: left out, or switched off */
    const char **names;                      /* the keys that there are, once one is unknown; else NULL */
    size_t counts[ARGUMENT_REFUSED + 1];     /* of arguments that are given */
    const char *others;                      /* arguments of another program than the framework's, after ", " each */
    const char *software;
    const char *put;                         /* the keys that the launch said, between spaces */
    bool quiet;                              /* rows say nothing but values: they are asked once more */
    bool whole;                              /* rows are asked of defaults too: no code here puts them */
    bool shaped;                             /* the scenario has its transformer from another file */
    struct node *root;
    const char *comment;
    struct error *err;
};

/* Reads the dialect of that name, and gives it an empty scenario. 0 or -1. */
int imported_begin(struct imported *m, const char *dialect);
/* Says what became of each argument; under --strict warnings are errors. rc: -1: the importer failed. 0 or -1. */
int imported_end(struct imported *m, int rc, FILE *notes);
/* Prints a scenario under a comment that says where it comes from, unless 'dtsim check' refuses it: then -1, and the messages
 * stand at the arguments that say the keys. */
int imported_print(struct node *root, const char *file, const char *kind, const char *comment, FILE *out, struct error *err);
/* Puts what the rows of a part of the dialect say. */
void imported_rows(struct imported *m, const char *part);
/* Puts the values of arguments that name a key, and warns of what the simulation does not have. */
void imported_plain(struct imported *m);
/* Of a dialect that no code reads: refuses values that no row takes, and warns of arguments that none asks for. */
void imported_unread(struct imported *m);
/* GPUs of a node of a platform (NULL: of dgx-h100); 0: an error. */
long long imported_node_gpus(struct arena *arena, const char *platform, struct error *err);
/* The GPUs that --set or the launch says (nnodes x nproc_per_node, or world-size), or a log; 0: nobody says it. */
long long imported_world(struct imported *m);
/* Puts the cluster and strategy.data, and warns of what is not said. `model`: GPUs of a replica; least: of which number
 * the replicas are a multiple; replicas: what they should divide (0: anything); world: GPUs (0: not said). The
 * replicas; 0: an error. */
long long imported_cluster(struct imported *m, long long model, long long least, long long replicas, long long world);
/* Finds the row of each argument, and checks the number and kind of its values. */
int imported_sort(struct imported *m);
/* Whether the launch's program is another one than the framework's own. */
bool imported_is_other(const struct imported *m);
/* Whether --set says an option by that name, with '_' for '-' too. */
bool imported_is_set(const struct imported *m, const char *name);
/* An argument by its name, which must be a row's; NULL: left out. */
const struct launch_argument *imported_given(const struct imported *m, const char *name);
/* Its value, or its default; NULL: it has none. */
const char *imported_word(const struct imported *m, const char *name);
/* The same of a whole number; 0: it has none. */
long long imported_number(const struct imported *m, const char *name);
/* Whether one of the arguments is given without which the row's has no effect. */
bool imported_has_needs(const struct imported *m, const struct argument_row *row);
/* Where it stands; left out: the place of the program. */
struct loc imported_loc(const struct imported *m, const char *name);
/* Puts a value, as YAML, at a dotted path of the scenario. */
void imported_put(struct imported *m, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What messages call an argument, by the name of its row. */
const char *imported_shown(const struct imported *m, const char *name);
/* A message about an argument that the simulation does not have as it is. */
void imported_warn(struct imported *m, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
int imported_refuse(struct imported *m, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Warns that nobody says the tokens of a sample, where the scenario's transformer has the most that its model takes. hint:
 * by what --set a person says them. */
void imported_length(struct imported *m, const char *hint);
/* Adds a line to the comment above the scenario. */
void imported_remark(struct imported *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
