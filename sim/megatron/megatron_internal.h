/* megatron_internal: what the parts of megatron share. */
#ifndef DTSIM_MEGATRON_INTERNAL_H
#define DTSIM_MEGATRON_INTERNAL_H

#include "config/conf.h"
#include "megatron/megatron.h"
#include "megatron/megatron_table.h"

struct megatron {
    struct arena *arena;
    struct launch *launch;
    const struct megatron_options *options;
    const struct launch_argument **given;    /* by row; NULL: left out, or switched off */
    size_t counts[ARGUMENT_LACKS + 1];       /* of arguments that are given */
    const char *software;
    struct node *root;
    const char *comment;
    struct error *err;
};

/* Finds the row of each argument, and checks the number and kind of its values. */
int megatron_sort(struct megatron *m);
/* An argument by its name, which must be that of a row; NULL: left out. */
const struct launch_argument *megatron_given(const struct megatron *m, const char *name);
/* Its value, or its default; NULL: it has none. */
const char *megatron_word(const struct megatron *m, const char *name);
/* The same of a whole number; 0: it has none. */
long megatron_number(const struct megatron *m, const char *name);
/* Whether one of the arguments is given without which the row's has no effect. */
bool megatron_has_needs(const struct megatron *m, const struct argument_row *row);
/* Where it stands; left out: the place of the program. */
struct loc megatron_loc(const struct megatron *m, const char *name);
/* Puts a value, as YAML, at a dotted path of the scenario. */
void megatron_put(struct megatron *m, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A message about an argument that the simulation does not have as it is. */
void megatron_warn(struct megatron *m, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
int megatron_refuse(struct megatron *m, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Adds a line to the comment above the scenario. */
void megatron_remark(struct megatron *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Each writes its part of the scenario. Errors stay in m->err. */
void megatron_model(struct megatron *m);
void megatron_experts(struct megatron *m);
void megatron_strategy(struct megatron *m, long data);
void megatron_split(struct megatron *m, long chunks);
void megatron_memory(struct megatron *m);
void megatron_software(struct megatron *m, long data);
/* The cluster, the degree of data parallelism (which it returns) and the batch. 0: an error. */
long megatron_cluster(struct megatron *m);

#endif
