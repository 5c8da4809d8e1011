/* Whatever the bytes of samples: no crash, no leak, no hang; what is accepted holds numbers that a fit can take. */
#include <math.h>

#include "calibrate/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct error err = {0};
    int rc = samples_parse(&samples, "fuzz.csv", (const char *)data, size, &err);

    BUG_IF((rc != 0) != (err.count > 0));
    BUG_IF(rc == 0 && (!samples.gpu || samples.sms < 1 || samples.count == 0));
    for (size_t i = 0; i < samples.count; i++) {
        const struct sample *sample = &samples.items[i];

        BUG_IF(!(sample->seconds > 0) || !isfinite(sample->seconds));
        if (sample->kind == SAMPLE_MATMUL || sample->kind == SAMPLE_ATTENTION)
            BUG_IF(!(sample->batch > 0 && sample->m > 0 && sample->n > 0 && sample->k > 0));
        if (sample->kind == SAMPLE_MEMORY)
            BUG_IF(!(sample->bytes > 0));
    }
    error_release(&err);
    samples_release(&samples);
    arena_release(&arena);
    return 0;
}
