/* argument: what an argument of a launch, or a key of a file that configures one, is to a simulation. */
#ifndef DTSIM_ARGUMENT_H
#define DTSIM_ARGUMENT_H

#include "base/base.h"

enum argument_class {
    ARGUMENT_MAPPED,                 /* a key of the scenario says it */
    ARGUMENT_IDLE,                   /* without effect on the time of an iteration */
    ARGUMENT_LACKS,                  /* has an effect, which the simulation does not have */
    ARGUMENT_REFUSED,                /* makes another model, which the simulation does not have */
};
/* KIND_WORD: one value; KIND_LIST: several; KIND_BOOL: true or false is written. Of KIND_ANY nobody needs to know the
 * value. */
enum argument_kind { KIND_FLAG, KIND_INT, KIND_NUMBER, KIND_WORD, KIND_LIST, KIND_ANY, KIND_BOOL };

/* One row an argument. */
struct argument_row {
    const char *name;                /* without "--"; of a key its dotted path */
    enum argument_class class;
    enum argument_kind kind;
    const char *fallback;            /* its default; NULL: none */
    const char *path;                /* the key of a scenario that gets its value; NULL: the framework's code reads it */
    const char *words;               /* "LayerNorm=layernorm RMSNorm=rmsnorm": values there and here; of a flag: the
                                        key's value where it is given; of ARGUMENT_REFUSED: values that are taken all the same */
    const char *why;                 /* ARGUMENT_LACKS, ARGUMENT_REFUSED: what is missing */
    const char *needs;               /* it has no effect without one of these arguments */
    const char *logged;              /* its name in a log, where that differs; "!NAME": with the opposite truth */
};

/* The arguments of a framework. */
struct argument_table {
    const char *framework;           /* "Megatron-LM" */
    const char *dashes;              /* before names in messages: "--", or "" for keys of a file */
    const struct argument_row *(*at)(size_t index);              /* NULL past the last */
    const struct argument_row *(*find)(const char *name, bool log);  /* NULL: there is none */
    bool (*is_inner)(const char *name);      /* whether a log's name is one that the program itself sets; or NULL */
    /* Whether a program, by the name of its file, takes no other arguments than these; NULL: each does. */
    bool (*is_own)(const char *program);
    /* Whether another argument changes the model or how it is divided, as far as its name tells. */
    bool (*is_shape)(const char *name);
    /* What messages call the argument of that name, where that is not the name itself with dashes; or NULL. */
    const char *(*shown)(struct arena *arena, const char *name);
};

#endif
