/* What nccl-tests writes with -J FILE (NVIDIA/nccl-tests, src/util.cu, version 2 of its file), as the lines that it prints beside. */
#include <string.h>

#include "base/base.h"
#include "files/json.h"
#include "import/nccl_internal.h"

static const char *word_of(const json_t *of, const char *key, const char *missing)
{
    const char *word = json_string_value(json_object_get(of, key));

    return word ? word : missing;
}

static double number_of(const json_t *of, const char *key)
{
    return json_number_value(json_object_get(of, key));
}

/* The ranks of a process: it lists its first alone. */
static void print_ranks(const json_t *config, FILE *out)
{
    const json_t *device;
    int each = (int)(number_of(config, "nthreads") * number_of(config, "ngpus"));
    size_t i;

    json_array_foreach(json_object_get(config, "devices"), i, device)
        for (int rank = 0; rank < each; rank++)
            fprintf(out, "#  Rank %d Group %.0f Pid %.0f on %s device %.0f [0x00] %s\n", (int)number_of(device, "rank") + rank,
                    number_of(device, "group"), number_of(device, "pid"), word_of(device, "hostname", "host"),
                    number_of(device, "device") + rank, word_of(device, "device_info", ""));
}

char *nccl_json_text(const char *file, const char *text, size_t length, size_t *size, struct error *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, length, 0, &why);
    const json_t *config = json_object_get(root, "config"), *row;
    const char *program = json_string_value(json_array_get(json_object_get(root, "args"), 0)), *slash = program ? strrchr(program, '/') : NULL;
    char *lines = NULL;
    size_t i;
    FILE *out = open_memstream(&lines, size);

    BUG_IF(!out);
    if (!root)
        error_add(err, EXIT_INPUT, (struct loc){file, why.line, why.column}, "%s", why.text);
    else if (!config || !json_is_array(json_object_get(root, "results")))
        error_add(err, EXIT_INPUT, (struct loc){.file = file}, "expected what nccl-tests writes with -J, with 'config' and 'results'");
    if (program)
        fprintf(out, "# Collective test starting: %s\n", slash ? slash + 1 : program);
    fprintf(out, "# nThread 1 nGpus 1 agg iters: %.0f\n", number_of(config, "aggregated_iterations"));
    print_ranks(config, out);
    fputs("#  size count type redop root time algbw busbw #wrong\n", out);
    json_array_foreach(json_object_get(root, "results"), i, row) {
        const json_t *one = json_object_get(row, "out_of_place");

        one = json_is_object(one) ? one : json_object_get(row, "in_place");
        if (json_object_get(one, "time"))
            fprintf(out, "%.0f %.0f %s %s %s %.6g %.6g %.6g %.0f\n", number_of(row, "size"), number_of(row, "count"),
                    word_of(row, "type", "float"), word_of(row, "redop", "none"), word_of(row, "root", "-1"), number_of(one, "time"),
                    number_of(one, "alg_bw"), number_of(one, "bus_bw"), number_of(one, "nwrong"));
    }
    fclose(out);
    json_decref(root);
    return lines;
}
