/* hf_family: the table of model types, for hf_*.c alone. */
#ifndef DTSIM_HF_FAMILY_H
#define DTSIM_HF_FAMILY_H

#include "huggingface/hf_config.h"

/* A configuration while it is read. */
struct hf_reading {
    struct arena *arena;
    struct error *err;
    const struct family *family;
    const struct node *whole;    /* the file */
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

/* A key of config.json and the keys of `transformer` (between spaces; "mamba.heads" is one of its mapping) that have its value;
 * with `value` they have that value if the key's is true. */
struct hf_rule { const char *key, *to, *value; };

/* One model type: what its configuration class and its code in Transformers (or on the hub) say. */
struct family {
    const char *types;           /* words of model_type: types whose classes have the same defaults */
    const char *whole;           /* model_type of a model with text_config, whose text is of this type; or NULL */
    const char *class;           /* the configuration class from which the defaults are */
    const char *defaults;        /* keys of config.json that the class has, with their defaults */
    const char *base;            /* what the code fixes: keys of `transformer` that most models share, */
    const char *fixed;           /* and of this model alone; or NULL */
    struct hf_rule rules[5];        /* keys that mean something else than in `common_rules`, or that others have not */
    const char *refused;         /* keys (between spaces) that must be false, 0 or left out; or NULL */
    char linear;                 /* the letter of `pattern` of blocks without attention; 0: all blocks have attention */
    /* Where neither the file nor the class has layer_types: the attention of block i; NULL: all blocks have the
     * window. */
    enum block_attention (*attention)(const struct hf_reading *reading, int block);
    bool (*has_experts)(const struct hf_reading *reading, int block);       /* NULL: all blocks have experts, or none */
    void (*derive)(struct hf_reading *reading);     /* what follows from several keys; or NULL */
};
extern const struct family hf_dense[], hf_experts[], hf_hybrids[], hf_encoders[];      /* with a last one without types */
extern const struct hf_rule common_rules[];                 /* with a last one without key */

/* The value of a key of the configuration; `otherwise` if it is null or no number. */
int hf_number(const struct hf_reading *reading, const char *key, int otherwise);
bool hf_true(const struct hf_reading *reading, const char *key);
/* Whether the value says that there is something: it is not false, 0, null, or a list of such. */
bool hf_is_on(const struct node *value);
/* The value of a key inside a mapping of the configuration; NULL: there is none. */
const struct node *hf_inner(const struct hf_reading *reading, const char *mapping, const char *key);
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
/* The attention that an item of layer_types names. Reports what is not known. */
enum block_attention hf_listed(const struct hf_reading *reading, const struct node *types, int block);
/* Whether a list has the number. */
bool hf_has_number(const struct node *list, int number);
/* Whether the block has experts, in a model that has any. */
bool hf_sparse(const struct hf_reading *reading, const struct node *types, int block);
/* sliding_window_pattern as letters, L for a block with the window and G for one without; NULL: it is none. */
const char *hf_pattern(const struct hf_reading *reading);
/* For family.attention and family.has_experts. */
enum block_attention hf_none(const struct hf_reading *reading, int block);
enum block_attention hf_every(const struct hf_reading *reading, int block);
enum block_attention hf_from_window(const struct hf_reading *reading, int block);
enum block_attention hf_later(const struct hf_reading *reading, int block);
enum block_attention hf_even(const struct hf_reading *reading, int block);
enum block_attention hf_if_used(const struct hf_reading *reading, int block);
enum block_attention hf_unturned(const struct hf_reading *reading, int block);
enum block_attention hf_turned_chunks(const struct hf_reading *reading, int block);
enum block_attention hf_named(const struct hf_reading *reading, int block);
enum block_attention hf_last_of_interval(const struct hf_reading *reading, int block);
enum block_attention hf_first_of_two(const struct hf_reading *reading, int block);
enum block_attention hf_indexed(const struct hf_reading *reading, int block);
enum block_attention hf_kimi_lists(const struct hf_reading *reading, int block);
bool hf_after_dense(const struct hf_reading *reading, int block);
bool hf_sparse_step(const struct hf_reading *reading, int block);
bool hf_interleaved(const struct hf_reading *reading, int block);
bool hf_enumerated(const struct hf_reading *reading, int block);
bool hf_from_to(const struct hf_reading *reading, int block);
/* For family.derive. */
void hf_opt(struct hf_reading *reading);
void hf_falcon(struct hf_reading *reading);
void hf_mpt(struct hf_reading *reading);
void hf_hunyuan(struct hf_reading *reading);
void hf_qwen2_moe(struct hf_reading *reading);
void hf_mamba(struct hf_reading *reading);
void hf_nemotron_h(struct hf_reading *reading);
void hf_kimi(struct hf_reading *reading);
void hf_minimax(struct hf_reading *reading);
void hf_bigcode(struct hf_reading *reading);

/* Parts of the configuration that are not modelled, and keys that it leaves to its class; NULL: there are none. */
const char *hf_note(const struct hf_reading *reading);

#endif
