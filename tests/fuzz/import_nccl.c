/* Whatever the bytes of nccl-tests' output: no crash, no leak; errors name a place in the file; accepted bytes become a
 * table that the reader of tables accepts. */
#include <stdlib.h>

#include "import/import_nccl.h"
#include "validate/published.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct error err = {0};
    struct nccl_hints hints = {0};
    char *remarks = NULL;
    size_t remarks_length;
    FILE *notes = open_memstream(&remarks, &remarks_length);
    struct node *root;

    /* the first byte chooses what the user says */
    if (size > 0 && data[0] < 8) {
        hints = (struct nccl_hints){data[0] & 1 ? "all_reduce" : NULL, data[0] & 2 ? 8 : 0, data[0] & 4 ? 4 : 0};
        data++;
        size--;
    }
    root = import_nccl_parse(&arena, "fuzz.log", (const char *)data, size, &hints, notes, &err);
    fclose(notes);
    free(remarks);

    BUG_IF(!root != (err.count > 0));
    for (int i = 0; i < err.count; i++)
        BUG_IF(!err.messages[i].loc.file);
    error_release(&err);
    if (root) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        struct node *again;

        node_print(root, out);
        fclose(out);
        /* reads back; or an error says that it is deeper or longer than YAML may be here */
        if (!conf_parse(&arena, "again.yaml", text, length, &again, &err))
            BUG_IF(!node_get(again, "rows") || !node_get(again, "rows")->count);
        error_release(&err);
        free(text);
    }
    arena_release(&arena);
    return 0;
}
