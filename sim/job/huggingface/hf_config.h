/* hf_config: a Hugging Face config.json as keys of `transformer` (model/transformer_table.c). */
#ifndef DTSIM_HF_CONFIG_H
#define DTSIM_HF_CONFIG_H

#include "config/conf.h"

struct hf_config {
    struct node *shape;          /* a mapping for the table of a transformer; each value keeps its place in the file */
    const char *dtype;           /* number format of the weights as the file says it, "bfloat16"; NULL: it says none */
    const char *note;            /* what the file leaves to its class, and parts that are not modelled; NULL: none */
};

/* Reads the file. A key that it leaves out has the default of its model_type's configuration class. A key without such
 * a default may stand in `with`, a mapping of keys of `transformer` (or NULL), which is not merged in. Errors: no
 * model_type, an unknown one, or one with layers that are not modelled; missing keys; values that exclude each
 * other. */
int hf_config_read(struct arena *arena, const char *path, const struct node *with, struct hf_config *config,
                   struct error *err);
/* The same of a file that has been read. */
int hf_config_of(struct arena *arena, const struct node *file, const struct node *with, struct hf_config *config,
                 struct error *err);

#endif
