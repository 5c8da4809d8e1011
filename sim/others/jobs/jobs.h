/* jobs: files that configure a training job, and the scenario that such a file says: DeepSpeed's JSON, torchtitan's
 * TOML, Transformers' TrainingArguments, the YAML of Megatron Bridge and of NeMo 2. launch/imported.h has the classes of
 * their keys. */
#ifndef DTSIM_JOBS_H
#define DTSIM_JOBS_H

#include "launch/imported.h"

/* Prints the scenario to `out` as YAML, and what is left out, doubted or taken by default to `notes`. The path "-" is standard
 * input. framework: megatron, deepspeed, torchtitan, transformers, bridge, nemo, or one that has a dialect alone: a file of
 * platforms/dialects/, or a path; what it is launched with has the form that the dialect names. */
int framework_import(struct arena *arena, const char *framework, const char *path, const struct import_options *options, FILE *out,
                     FILE *notes, struct error *err);
/* A job's text and what a person says beside it. */
struct job_text {
    const char *file, *text;         /* file: for messages */
    size_t length;
    const struct import_options *options;
    struct node *model;              /* the scenario's model where the options name no config.json; or NULL */
    const char *dialect;             /* of a framework that no code here knows: a file of platforms/dialects/, or a path */
};
/* The same of a text. *comment: the lines of a comment that belongs above the scenario. NULL after an error. */
typedef struct node *job_reader(struct arena *arena, const struct job_text *job, const char **comment, FILE *notes,
                                struct error *err);
job_reader megatron_command, deepspeed_scenario, torchtitan_scenario, bridge_scenario, nemo_scenario, transformers_scenario, own_scenario;

/* The blocks of a stage of torchtitan: input and output layers each count as a number of blocks (first, last), and the first
 * stages get the blocks that are left over (torchtitan/distributed/pipeline_parallel.py, generate_llm_fqn_per_model_part). */
long long torchtitan_blocks(long long layers, long long first, long long last, long long stages, long long stage);

#endif
