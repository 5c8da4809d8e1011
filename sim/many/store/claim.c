#include "store/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "files/folder.h"

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, "0123456789")] && strlen(text) < 20;
}

/* A link to nothing is made as a whole, whoever else tries: it names the task. */
int shard_claim(const char *folder, const char *job, const char *task, int shards, int *shard, struct error *err)
{
    bool taken = false;

    if (!is_number(job) || !is_number(task))
        return error_add(err, EXIT_USAGE, (struct loc){0}, "Slurm's variables name no job and task; expected --shard I/N");
    if (make_folder(folder, err))
        return -1;
    for (*shard = 1; *shard <= shards && !taken; ++*shard) {
        char *path = xprintf("%s/.array-%s-%d", folder, job, *shard), holder[24] = "";
        int rc = symlink(task, path) && errno != EEXIST ? error_system(err, (struct loc){.file = folder}, "cannot take a shard") : 0;

        taken = !rc && readlink(path, holder, sizeof holder - 1) > 0 && !strcmp(holder, task);
        free(path);
        if (rc)
            return -1;
    }
    --*shard;
    return taken ? 0 :
           error_add(err, EXIT_USAGE, (struct loc){.file = folder}, "the %d shards of job %s are taken by others of its tasks; expected "
                     "--shard I/N", shards, job);
}
