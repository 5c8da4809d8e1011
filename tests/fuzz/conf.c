/* Whatever the bytes: no crash, no leak, no hang; what reads as YAML prints and reads back to the same print; what
 * reads as a scenario dumps and reads back to the same dump. */
#include <stdlib.h>
#include <string.h>

#include "field_sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef void printer(const struct node *root, FILE *out);

static char *printed(const struct node *root, printer *print, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);

    BUG_IF(!out);
    print(root, out);
    fclose(out);
    return text;
}

/* Reads a print back and checks that it prints alike. */
static struct node *read_back(struct arena *arena, const struct node *root)
{
    struct error err = {0};
    struct node *back;
    size_t size, again_size;
    char *text = printed(root, node_print, &size), *again;

    if (conf_parse(arena, "printed", text, size, &back, &err)) {
        /* Printing expands aliases, so that what was small enough may no longer be. */
        BUG_IF(size <= CONF_MAX_BYTES);
        error_release(&err);
        free(text);
        return NULL;
    }
    again = printed(back, node_print, &again_size);
    BUG_IF(size != again_size || memcmp(text, again, size) != 0);
    free(text);
    free(again);
    return back;
}

/* Every message is one line that can be printed; there is at least one. */
static void errors_check(struct error *err)
{
    BUG_IF(err->count == 0);
    for (int i = 0; i < err->count; i++)
        for (const char *c = err->messages[i].text; *c; c++)
            BUG_IF((unsigned char)*c < 0x20 || *c == 0x7F);
    error_release(err);
}

static void scenario_check(struct arena *arena, const struct node *root)
{
    struct error err = {0};
    struct sample sample;
    struct node *dump, *back;
    size_t size, again_size;
    char *text, *again;

    if (field_parse(arena, &sample_table, root, &sample, &err)) {
        errors_check(&err);
        return;
    }
    BUG_IF(err.count != 0);
    dump = field_dump(arena, &sample_table, &sample);
    back = read_back(arena, dump);
    if (!back)
        return;
    if (field_parse(arena, &sample_table, back, &sample, &err))
        BUG("the dump is refused: %s", err.messages[0].text);
    text = printed(dump, node_print, &size);
    again = printed(field_dump(arena, &sample_table, &sample), node_print, &again_size);
    BUG_IF(size != again_size || memcmp(text, again, size) != 0);
    free(text);
    free(again);
}

/* The first line is an assignment for --set, the rest the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    const uint8_t *end = memchr(data, '\n', size);
    size_t skip = end ? (size_t)(end - data) + 1 : 0;

    if (conf_parse(&arena, "fuzz", (const char *)data + skip, size - skip, &root, &err)) {
        BUG_IF(root);
        errors_check(&err);
    } else {
        char *assignment = arena_strndup(&arena, (const char *)data, skip ? skip - 1 : 0);

        BUG_IF(err.count != 0);
        read_back(&arena, root);
        scenario_check(&arena, root);
        if (conf_set(&arena, root, assignment, &err))
            errors_check(&err);
        read_back(&arena, root);
        scenario_check(&arena, root);
    }
    arena_release(&arena);
    return 0;
}
