/* Whatever the bytes of a file of errors: no crash, no leak; what is accepted says nothing about some work, or an error
 * of it. */
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "evidence/evidence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct likeness likeness = {"megatron-core", "megatron-core", "megatron", "h100-80gb", "bf16", "1f1b", "a", .gpus = 64, .exposed = 0.1,
                                      .measured = 0.5};
    struct arena arena = {0};
    struct error err = {0};
    struct evidence evidence;
    int file = memfd_create("errors.tsv", 0), rc;

    BUG_IF(file < 0 || write(file, data, size) != (ssize_t)size);
    rc = evidence_read(&arena, arena_printf(&arena, "/proc/self/fd/%d", file), &evidence, &err);
    BUG_IF((rc != 0) != (err.count > 0));
    if (!rc && evidence.runs.rows.count)
        BUG_IF(evidence_expect(&evidence, &likeness, NULL).error < 0 || !evidence_nearest(&arena, &evidence, &likeness));
    close(file);
    error_release(&err);
    arena_release(&arena);
    return 0;
}
