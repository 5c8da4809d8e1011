/* Whatever the bytes of a job's file, as DeepSpeed's JSON, as torchtitan's TOML, and as Megatron Bridge's YAML: no crash,
 * no leak, no hang; each error has its place; what is accepted becomes a scenario that reads back as YAML. */
#include <stdlib.h>
#include <string.h>

#include "config/conf.h"
#include "jobs/jobs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct node *reader(struct arena *arena, const struct job_text *job, const char **comment, FILE *notes,
                            struct error *err);

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

static void check(reader *read, const char *text, size_t size)
{
    static const char shape[] = "transformer: {layers: 8, hidden: 64, heads: 4, sequence: 128, vocabulary: 256}";
    static const struct launch_set sets[] = {{"nnodes", "1"}, {"nproc_per_node", "8"}};
    struct import_options options = {.sets = sets, .nsets = COUNT(sets)};
    struct arena arena = {0};
    struct error err = {0};
    struct node *model, *root;
    const char *comment;
    FILE *notes = fopen("/dev/null", "w");

    BUG_IF(conf_parse(&arena, "model.yaml", shape, strlen(shape), &model, &err) != 0);
    root = read(&arena, &(struct job_text){"fuzz", text, size, &options, model}, &comment, notes, &err);
    BUG_IF((root == NULL) != (err.count > 0));
    for (int i = 0; i < err.count; i++)
        BUG_IF(!err.messages[i].loc.file);
    if (root)
        read_back(root);
    fclose(notes);
    error_release(&err);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    BUG_IF(!text);
    memcpy(text, data, size);
    text[size] = '\0';
    check(deepspeed_scenario, text, size);
    check(torchtitan_scenario, text, size);
    check(bridge_scenario, text, size);
    free(text);
    return 0;
}
