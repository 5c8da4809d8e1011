/* hf_family: a model type of platforms/families/huggingface.yaml, for hf_*.c alone. */
#ifndef DTSIM_HF_FAMILY_H
#define DTSIM_HF_FAMILY_H

#include "expression/expression.h"
#include "huggingface/hf_config.h"

/* A key of config.json and the keys of `transformer` (between spaces; "mamba.heads" is one of its mapping) that have its value;
 * with `value` they have that value if the key's is true. */
struct hf_rule { const char *key, *to, *value; };

/* A configuration while it is read. */
struct hf_reading {
    struct arena *arena;
    struct error *err;
    const struct node *table;    /* the file of all types */
    const struct node *family;   /* one type of it, */
    const char *type;            /* by its name */
    const struct hf_rule *own, *common;      /* the type's keys, and those of all; with a last one without a key */
    struct hf_names *names;      /* of expressions */
    char linear;                 /* the letter of `pattern` of blocks without attention; 0: all blocks have attention */
    const struct expression *full, *experts; /* whether a block sees all tokens, has experts; NULL: not said */
    const struct node *whole;    /* the config.json */
    const struct node *file;     /* the mapping that describes the transformer: the file, or its part */
    const char *part;            /* the key of that part, "text_config"; NULL: it is the file */
    const struct node *defaults; /* of the class */
    const struct node *with;     /* keys of `transformer` that the scenario says; or NULL */
    struct node *config;         /* the class's defaults with the file's values in their place; null values left out */
    struct node *shape;          /* keys of `transformer` */
    int layers;                  /* number of blocks; 0: it is not known */
};

/* The attention of a block. */
enum block_attention { BLOCK_FULL, BLOCK_SLIDING, BLOCK_CHUNKED, BLOCK_LINEAR, BLOCK_ATTENTIONS };

/* Reads the table. -1: an error. */
int hf_table(struct hf_reading *reading);
/* The type of that name, among those of the table; NULL: there is none. */
const struct node *hf_type(const struct hf_reading *reading, const char *type);
/* Reads what the type says. -1: an error. */
int hf_family(struct hf_reading *reading);
/* The value of a key of the type; NULL: it has none. */
const char *hf_said(const struct hf_reading *reading, const char *key);
/* What the type derives from several keys. */
void hf_derive(struct hf_reading *reading);
/* Whether an expression is true of a block. What cannot be computed is false. */
bool hf_holds(const struct hf_reading *reading, const struct expression *expression, int block);
/* Whether a list of names, or a text that is one, has the name. */
bool hf_lists(const struct node *list, const char *name);

/* The value of a key of the configuration; `otherwise` if it is null or no number. */
int hf_number(const struct hf_reading *reading, const char *key, int otherwise);
bool hf_true(const struct hf_reading *reading, const char *key);
/* Whether the value says that there is something: it is not false, 0, null, or a list of such. */
bool hf_is_on(const struct node *value);
/* Sets a key of `transformer`, or with a dot one of its mapping. */
void hf_put_node(struct hf_reading *reading, const char *to, const struct node *value);
void hf_put(struct hf_reading *reading, const char *to, const char *value);
void hf_put_number(struct hf_reading *reading, const char *to, double value);

/* Sets the keys of `shape` that say which blocks have a window, and which have experts. */
void hf_windows(struct hf_reading *reading);
void hf_expert_blocks(struct hf_reading *reading);
/* Sets `pattern` of a hybrid model, and takes the keys of mixers out that it does not have. */
void hf_hybrid_pattern(struct hf_reading *reading);
/* A list with an item for each block; NULL: there is none. Reports one that is too short. */
const struct node *hf_block_list(const struct hf_reading *reading, const char *key);
/* The attention of a block, by layer_types (or NULL) or the type. Reports what is not known. */
enum block_attention hf_attention(const struct hf_reading *reading, const struct node *types, int block);
/* Whether the block has experts, in a model that has any. */
bool hf_sparse(const struct hf_reading *reading, const struct node *types, int block);
/* The item of a list for a block; of sliding_window_pattern as letters, L for a block with the window and G for one without,
 * its letter. NULL: there is none. */
const struct node *hf_of_block(const struct hf_reading *reading, const char *key, int block);

/* Parts of the configuration that are not modelled, and keys that it leaves to its class; NULL: there are none. */
const char *hf_note(const struct hf_reading *reading);

#endif
