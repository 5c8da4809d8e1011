/* Whatever the bytes of a launch script or a log: no crash, no leak, no hang; each error has its place; what is accepted
 * becomes a scenario that reads back as YAML. */
#include <stdlib.h>
#include <string.h>

#include "config/conf.h"
#include "megatron/megatron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(const struct node *root)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *again;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    node_print(root, out);
    fclose(out);
    BUG_IF(conf_parse(&arena, "fuzz.yaml", text, size, &again, &err) || !node_equal(root, again));
    free(text);
    error_release(&err);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct launch_set sets[] = {{"num-layers", "8"}, {"hidden-size", "64"}, {"num-attention-heads", "4"},
                                            {"seq-length", "128"}, {"micro-batch-size", "1"}, {"N", "3"}};
    struct import_options options = {.sets = sets, .nsets = COUNT(sets)};
    struct arena arena = {0};
    struct error err = {0};
    struct launch launch = {0};
    struct node *root = NULL;
    const char *comment;
    FILE *notes = fopen("/dev/null", "w");
    int rc = launch_parse(&arena, "fuzz.sh", (const char *)data, size, &launch, &err);

    BUG_IF((rc != 0) != (err.count > 0));
    if (!rc)
        root = megatron_scenario(&arena, &launch, &options, &comment, notes, &err);
    BUG_IF((root == NULL) != (err.count > 0));
    for (int i = 0; i < err.count; i++)
        BUG_IF(!err.messages[i].loc.file);
    if (root)
        read_back(root);
    fclose(notes);
    launch_release(&launch);
    error_release(&err);
    arena_release(&arena);
    return 0;
}
