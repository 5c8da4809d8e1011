/* How values of a configuration are read, and put. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "huggingface/hf_family.h"

int hf_number(const struct hf_reading *reading, const char *key, int otherwise)
{
    const struct node *value = node_get(reading->config, key);
    char *end;
    long long number;

    if (!value || value->kind != NODE_SCALAR || value->quoted)
        return otherwise;
    number = strtoll(value->text, &end, 10);
    return *end || end == value->text || llabs(number) > 1 << 28 ? otherwise : (int)number;
}

bool hf_true(const struct hf_reading *reading, const char *key)
{
    const struct node *value = node_get(reading->config, key);

    return value && value->kind == NODE_SCALAR && !value->quoted && !strcmp(value->text, "true");
}

const struct node *hf_of_block(const struct hf_reading *reading, const char *key, int block)
{
    const struct node *list = node_get(reading->config, key), *pair;

    if (list && list->kind == NODE_SCALAR && *list->text && !list->text[strspn(list->text, "LG")])
        return node_scalar(reading->arena, list->text[block % (int)strlen(list->text)] == 'G' ? "G" : "L", false);
    if (!list || list->kind != NODE_SEQUENCE)
        return NULL;
    for (size_t i = 0; !strcmp(key, "attention_types") && i < list->count; i++) {      /* of gpt_neo: names, and how often */
        int times = (pair = list->items[i])->kind == NODE_SEQUENCE && pair->count == 2 && pair->items[0]->kind == NODE_SEQUENCE &&
                    pair->items[1]->kind == NODE_SCALAR ? atoi(pair->items[1]->text) : 0;
        long long all = times > 0 && times <= 100000 ? (long long)times * (long long)pair->items[0]->count : 0;

        if (block < all)
            return pair->items[0]->items[(size_t)block % pair->items[0]->count];
        block -= (int)all;
    }
    return (size_t)block < list->count ? list->items[block] : NULL;
}

bool hf_is_on(const struct node *value)
{
    bool on = false;

    if (!value || node_is_null(value))
        return false;
    if (value->kind == NODE_SCALAR)
        return strcmp(value->text, "false") && strcmp(value->text, "0");
    for (size_t i = 0; i < value->count; i++)
        on |= value->kind == NODE_MAPPING || hf_is_on(value->items[i]);
    return on;
}

void hf_put_node(struct hf_reading *reading, const char *to, const struct node *value)
{
    const char *dot = strchr(to, '.');
    struct node *into = reading->shape;

    if (dot) {
        const char *mapping = arena_printf(reading->arena, "%.*s", (int)(dot - to), to);

        into = node_get(reading->shape, mapping);
        if (!into) {
            into = node_mapping(reading->arena);
            into->loc = reading->file->loc;
            node_put(reading->arena, reading->shape, mapping, into);
        }
        to = dot + 1;
    }
    node_put(reading->arena, into, to, (struct node *)(uintptr_t)value);
}

/* Values that nobody wrote stand where the configuration begins. */
void hf_put(struct hf_reading *reading, const char *to, const char *value)
{
    struct node *node = node_scalar(reading->arena, value, false);

    node->loc = reading->file->loc;
    hf_put_node(reading, to, node);
}

void hf_put_number(struct hf_reading *reading, const char *to, double value)
{
    hf_put(reading, to, arena_printf(reading->arena, "%.0f", value));
}
