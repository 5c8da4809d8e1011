/* jobs_internal: what the readers of all job files share. */
#ifndef DTSIM_JOBS_INTERNAL_H
#define DTSIM_JOBS_INTERNAL_H

#include "jobs/jobs.h"

/* A kind of job file: as the command line names it. */
struct job_kind { const char *name; job_reader *read; bool any; };      /* any: whatever the file is called */
/* Reads the file, and prints the scenario that it says. */
int job_import(struct arena *arena, const char *path, const struct job_kind *kind, const struct import_options *options,
               FILE *out, FILE *notes, struct error *err);
/* The leaves of a tree as arguments with dotted names. A list is an argument with several values. */
int job_arguments(struct arena *arena, const struct node *root, struct launch *launch, struct error *err);
/* Puts the model: --hf-config's, with the tokens that --set sequence=N says, or `model`. 1; 0: there is neither; -1: an
 * error. */
int job_model(struct imported *m, struct node *model);
/* The tokens of a sample that --set sequence=N says; NULL: it does not. */
const char *job_sequence(const struct imported *m);
/* The scenario of DeepSpeed's keys. */
struct node *deepspeed_of(struct arena *arena, const struct node *tree, const struct job_text *job, const char **comment,
                          FILE *notes, struct error *err);
/* Whether a key that is true or false is true; left out: its default. */
bool job_true(const struct imported *m, const char *name);

#endif
