/* dialect: what the arguments of a framework's launch, or the keys of a file that configures one, are to a simulation: a
 * file of platforms/dialects/. README.md there says what such a file has. */
#ifndef DTSIM_DIALECT_H
#define DTSIM_DIALECT_H

#include "launch/dialect_rows.h"

enum argument_class {
    ARGUMENT_MAPPED,                 /* a key of the scenario says it */
    ARGUMENT_IDLE,                   /* without effect on the time of an iteration */
    ARGUMENT_LACKS,                  /* has an effect, which the simulation does not have */
    ARGUMENT_REFUSED,                /* makes another model, which the simulation does not have */
};
/* KIND_WORD: one value; KIND_LIST: several; KIND_BOOL: true or false is written. Of KIND_ANY nobody needs to know the
 * value. */
enum argument_kind { KIND_FLAG, KIND_INT, KIND_NUMBER, KIND_WORD, KIND_LIST, KIND_ANY, KIND_BOOL };

/* One row an argument. Lists are words between spaces; NULL is an empty one. */
struct argument_row {
    const char *name;                /* without dashes; of a key its dotted path */
    struct loc loc;                  /* in its file */
    enum argument_class class;
    enum argument_kind kind;
    const char *fallback;            /* its default; NULL: none */
    const char *path;                /* the key of a scenario that has its value; NULL: rows or the framework's code say it */
    const char *words;               /* "LayerNorm=layernorm RMSNorm=rmsnorm": values there and here; of a flag: the
                                        key's value where it is given; of ARGUMENT_REFUSED: values that are taken all the same */
    bool joined;                     /* several values are one word, with commas */
    bool lenient;                    /* a word of a list that `words` lacks is a warning, no error */
    bool told;                       /* it is written also where it has its default */
    const char *why;                 /* ARGUMENT_LACKS, ARGUMENT_REFUSED: what is missing */
    const char *needs;               /* it has no effect without one of these arguments */
    const char *logged;              /* its name in a log, where that differs; "!NAME": with the opposite truth */
    int since, until;                /* the N of core_v0.N: the first and the last release that has it; 0: no bound is known */
    bool fork;                       /* no release has it, but other programs that are made of the framework's code */
    bool read_only;                  /* it is imported, and never emitted */
    const char *newer;               /* "blockwise=core_v0.13": values that it takes since a later release */
    const char *also;                /* other names, between spaces; "job.*": all that begin with "job." */
};

/* "train.micro_batch_size" and "micro-batch-size", "experimental." and "parallelism." */
struct dialect_pair { const char *from, *to; };
struct dialect_pairs { struct dialect_pair *items; size_t count; };

struct dialect {
    const char *name;                /* by which it was asked for */
    const char *framework;           /* "Megatron-LM" */
    const char *dashes;              /* before names in messages: "--", or "" for keys of a file */
    const char *form;                /* of what it reads: arguments, json, yaml, toml or python */
    const char *software;            /* that an import names; NULL: the framework's code says it */
    const char *reader;              /* "transformers": the code that joins TrainingArguments reads it, by their names; or NULL */
    const struct node *tables;       /* what the framework's code looks up, by names; or NULL */
    const char *begin;               /* what stands above keys in Python, <NAME> for the value of a key; or NULL */
    const char *order;               /* the parts of rows, in their order, between spaces */
    struct argument_row *rows;       /* its own, then those of `like` */
    size_t own, count;
    struct dialect_rows pairs;       /* rows that go both ways; the part "plain" is of arguments with a path */
    const struct dialect *like;      /* whose arguments are keys here too: SECTION.NAME_OF_ARGUMENT; or NULL */
    struct dialect_pairs releases;   /* files of platforms/software/ that are a release, and which */
    const char *sections;            /* of these keys */
    struct dialect_pairs keys;       /* keys that are not called so, and their arguments; the first one of an argument is
                                        the one that is written */
    struct dialect_pairs moved;      /* where the name begins with another word in other releases */
    struct dialect_pairs printed;    /* values of keys that a printed configuration says although nobody chose them */
    const char *inner;               /* names of a log that the program itself sets */
    const char *programs;            /* that take no other arguments than these; NULL: each does */
    const char *shape;               /* words of names of arguments that change the model or how it is divided, */
    const char *beside_first, *beside_last;      /* unless these are the first or the last word */
};

/* Whether there is a file of that name: platforms/dialects/NAME.yaml, or a path. */
bool dialect_is_there(const char *name);
/* Reads it. NULL: an error. */
const struct dialect *dialect_load(struct arena *arena, const char *name, struct error *err);
/* The row of a name; NULL: there is none. `log`: the name stands in a log. */
const struct argument_row *dialect_row(const struct dialect *dialect, const char *name, bool log);
/* The key of an argument of `like`. *inverse: the key is true where the argument is not given. */
const char *dialect_key(struct arena *arena, const struct dialect *dialect, const char *argument, bool *inverse);
/* What messages call it: its key, where it is an argument of `like`. */
const char *dialect_shown(struct arena *arena, const struct dialect *dialect, const char *name);
/* The value that a printed configuration has where nobody chose one; NULL: not known, or it makes no difference. */
const char *dialect_printed(const struct dialect *dialect, const char *key);
/* Whether a software file is one of its releases. */
bool dialect_is_release(const struct dialect *dialect, const char *software);
/* The N of core_v0.N that a software file is, from the first to the last; 0: it is no such release. */
struct releases { int first, last; };
struct releases dialect_releases(const struct dialect *dialect, const char *software);
/* The first release that has an argument with its values; 0: all that are known have it. */
int dialect_since(const struct argument_row *row, const char *value);
/* A word of an argument's as it is here, or the other way round (theirs); the word itself where the row does not have it. */
const char *dialect_word(struct arena *arena, const struct argument_row *row, const char *word, bool theirs);
/* All words of the framework's, for messages. */
const char *dialect_words(struct arena *arena, const struct argument_row *row);
/* Whether the row has a word of the framework's. */
bool dialect_knows(const struct argument_row *row, const char *word);
/* Whether another argument changes the model or how it is divided, as far as its name tells. */
bool dialect_is_shape(const struct dialect *dialect, const char *name);

#endif
