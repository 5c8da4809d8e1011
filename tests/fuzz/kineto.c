/* Whatever the bytes of a profiler's trace: no crash, no leak; errors stand in the file, and what is printed are
 * samples: samples_parse refuses none but for a time or a size that no GPU has. */
#include <stdlib.h>
#include <string.h>

#include "calibrate/samples.h"
#include "import/import_kineto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct error err = {0};
    struct samples samples = {.arena = &arena};
    char *text = NULL;
    size_t length;
    FILE *trace = size ? fmemopen((void *)data, size, "r") : NULL, *out = open_memstream(&text, &length);
    FILE *notes = fopen("/dev/null", "w");
    int status = trace ? import_kineto(trace, "fuzz.json", out, notes, &err) : 0;

    if (trace)
        fclose(trace);
    fclose(out);
    fclose(notes);
    BUG_IF((status < 0) != (err.count > 0) || (status < 0 && length));
    for (int i = 0; i < err.count; i++)
        BUG_IF(err.messages[i].loc.line < 1 || err.messages[i].loc.column < 1);
    error_release(&err);
    if (length) {
        samples_parse(&samples, "fuzz.csv", text, length, &err);
        for (int i = 0; i < err.count; i++)
            BUG_IF(!strstr(err.messages[i].text, "median_us") && !strstr(err.messages[i].text, "up to 1e15"));
        error_release(&err);
    }
    free(text);
    samples_release(&samples);
    arena_release(&arena);
    return 0;
}
