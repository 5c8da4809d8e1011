/* Whatever the bytes of a profile's graph: no crash, no leak; errors stand in the file, and what is accepted is a model
 * that reads back. */
#include <stdlib.h>

#include "import/pipedream_profile.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root = pipedream_profile_parse(&arena, "fuzz.txt", (const char *)data, size, &err);

    BUG_IF(!root != (err.count > 0));
    for (int i = 0; i < err.count; i++)
        BUG_IF(err.messages[i].loc.line < 1 || err.messages[i].loc.column < 1);
    error_release(&err);
    if (root) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        struct node *again;
        struct model model;

        node_print(root, out);
        fclose(out);
        /* reads back; text that YAML does not take is refused then */
        if (!conf_parse(&arena, "again.yaml", text, length, &again, &err))
            BUG_IF(model_load(&arena, again, &model, &err) || !model.layers.count);
        error_release(&err);
        free(text);
    }
    arena_release(&arena);
    return 0;
}
