#include "config/field_value.h"

#include <ctype.h>
#include <string.h>

bool word_in(const char *words, const char *word)
{
    size_t length = strlen(word);

    while (words && *words) {
        size_t n = strcspn(words, " ");

        if (n == length && memcmp(words, word, n) == 0)
            return true;
        words += n + strspn(words + n, " ");
    }
    return false;
}

const struct field *field_find(const struct table *table, const char *key)
{
    for (size_t i = 0; table && i < table->count; i++)
        if (strcmp(table->fields[i].key, key) == 0)
            return &table->fields[i];
    return NULL;
}

static bool same_word(const char *a, size_t length, const char *b)
{
    for (size_t i = 0; i < length; i++)
        if (tolower((unsigned char)a[i]) != (b[i] == '-' ? '_' : tolower((unsigned char)b[i])))
            return false;
    return b[length] == '\0';
}

bool field_is_also(const struct field *field, const char *word)
{
    for (const char *also = field->also; also && *also;) {
        size_t length = strcspn(also, " ");

        if (same_word(also, length, word))
            return true;
        also += length + strspn(also + length, " ");
    }
    return false;
}

const char *key_candidate(size_t i, const void *context)
{
    const struct key_tables *keys = context;

    for (int t = 0; t < 2 && keys->tables[t]; t++) {
        if (i < keys->tables[t]->count)
            return keys->tables[t]->fields[i].key;
        i -= keys->tables[t]->count;
    }
    return NULL;
}

const char *key_meant(const struct key_tables *keys, const char *word)
{
    for (int t = 0; t < 2 && keys->tables[t]; t++)
        for (size_t i = 0; i < keys->tables[t]->count; i++)
            if (field_is_also(&keys->tables[t]->fields[i], word))
                return keys->tables[t]->fields[i].key;
    return nearest(word, key_candidate, keys);
}

/* The table of the values at a dotted path's next part. */
static const struct table *table_below(const struct table *table, const char *key)
{
    const struct field *field = field_find(table, key);

    return field ? field->table : NULL;
}

int field_open(struct arena *arena, const struct table *table, struct node *root, const char *path, struct error *err)
{
    const char *part = path;

    for (const char *dot; (dot = strchr(part, '.')); part = dot + 1) {
        const char *way = arena_strndup(arena, path, (size_t)(dot - path));
        struct node *node = node_at(root, way), *mapping;

        if (strspn(part, "0123456789") != (size_t)(dot - part))      /* an item of a list has the list's table */
            table = table_below(table, way + (part - path));
        if (!table || !table->shorthand || !node || node->kind != NODE_SCALAR || node_is_null(node))
            continue;
        mapping = node_mapping(arena);
        mapping->loc = node->loc;
        node_put(arena, mapping, table->shorthand, node);
        if (conf_put(arena, root, way, mapping, node->loc, err))
            return -1;
    }
    return 0;
}
