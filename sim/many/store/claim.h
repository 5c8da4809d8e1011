/* claim: which shard of a folder a task of a job array has, where Slurm does not say it. Of --array=2,5,9 a task knows the least
 * id, the greatest and how many there are: which place its own has nobody tells. */
#ifndef DTSIM_CLAIM_H
#define DTSIM_CLAIM_H

#include "base/base.h"

/* The first shard, from 1 to `shards`, that no other task of the job has taken in the folder, which is made where there is
 * none; the same one each time that the task asks. `job`, `task`: numbers, as Slurm says them. -1: an error, or all are taken. */
int shard_claim(const char *folder, const char *job, const char *task, int shards, int *shard, struct error *err);

#endif
