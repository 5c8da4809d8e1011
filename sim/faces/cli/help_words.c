/* Words of the output, as platforms/names/words.yaml explains them. */
#include "cli/help.h"

#include <strings.h>

#include "base/base.h"
#include "base/text.h"
#include "config/conf.h"
#include "files/data.h"

static bool is_word(const struct node *row, const char *topic)
{
    const struct node *also = node_get(row, "also");

    if (!strcasecmp(node_get(row, "word")->text, topic))
        return true;
    for (size_t i = 0; also && i < also->count; i++)
        if (!strcasecmp(also->items[i]->text, topic))
            return true;
    return false;
}

/* "also: recomputation, recompute" */
static void print_list(const struct node *row, const char *key, FILE *out)
{
    const struct node *list = node_get(row, key);

    for (size_t i = 0; list && i < list->count; i++)
        fprintf(out, "%s%s%s", i ? "" : key, i ? ", " : ": ", list->items[i]->text);
    if (list)
        fputc('\n', out);
}

static const struct node *words(struct arena *arena, struct error *err)
{
    const struct node *root = NULL;
    const char *path;

    return data_file(arena, "platforms/names", "words", &path, err) || !path || conf_shared(arena, path, &root, err) ? NULL : root;
}

bool help_word(const char *topic, FILE *out, struct error *err)
{
    struct arena arena = {0};
    const struct node *rows = words(&arena, err);
    bool found = false;

    for (size_t i = 0; rows && i < rows->count && !found; i++) {
        const struct node *row = rows->items[i];

        if (!is_word(row, topic))
            continue;
        found = true;
        fprintf(out, "%s\n", node_get(row, "word")->text);
        fputs("  ", out);
        text_wrap(node_get(row, "text")->text, 2, 2, text_width(out, 100), out);
        print_list(row, "also", out);
        print_list(row, "see", out);
        fputc('\n', out);
    }
    arena_release(&arena);
    return found;
}

const char **help_words(struct arena *arena, struct error *err)
{
    const struct node *rows = words(arena, err);
    size_t count = 0, capacity = 1;
    const char **names;

    for (size_t i = 0; rows && i < rows->count; i++)
        capacity += 1 + (node_get(rows->items[i], "also") ? node_get(rows->items[i], "also")->count : 0);
    names = ARENA_ARRAY(arena, const char *, capacity);
    for (size_t i = 0; rows && i < rows->count; i++) {
        const struct node *also = node_get(rows->items[i], "also");

        names[count++] = node_get(rows->items[i], "word")->text;
        for (size_t k = 0; also && k < also->count; k++)
            names[count++] = also->items[k]->text;
    }
    return err->count ? NULL : names;
}
