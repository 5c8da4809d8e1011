/* Whatever the bytes of a config.json: no crash, no leak, no hang; errors stand in the file, and what is accepted is a
 * mapping that the table of a transformer takes or refuses. */
#include <stdlib.h>

#include "huggingface/hf_config.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    struct hf_config config;
    struct transformer shape;

    if (!conf_parse(&arena, "fuzz.json", (const char *)data, size, &root, &err)) {
        int rc = hf_config_of(&arena, root, NULL, &config, &err);

        BUG_IF((rc < 0) != (err.count > 0));
        if (rc == 0)
            field_parse(&arena, &transformer_table, config.shape, &shape, &err);
        for (int i = 0; i < err.count; i++)
            BUG_IF(err.messages[i].loc.line < 1 || err.messages[i].loc.column < 1);
    }
    error_release(&err);
    arena_release(&arena);
    return 0;
}
