/* LoRA: which products have adapters, and the widths of these products on this GPU. */
#include "model/transformer.h"

#include <stddef.h>

static const char *const target_names[] = {
    [LORA_QKV] = "qkv", [LORA_PROJECTION] = "projection", [LORA_MLP_UP] = "mlp-up", [LORA_MLP_DOWN] = "mlp-down", NULL,
};
_Static_assert(COUNT(target_names) == LORA_TARGET_COUNT + 1, "a name for every target");
static const struct field lora_fields[] = {
    {KEY(lora, rank), .kind = FIELD_INT, .required = true, .min = 1, .max = 65536,
     .brief = "rank of the adapters"},
    {KEY(lora, targets), .kind = FIELD_CHOICES, .choices = target_names,
     .fallback = "[qkv]", .brief = "the products of every block that get an adapter"},
};
const struct table lora_table = {
    TABLE("memory: lora", "low-rank adapters are trained and the model's own weights are frozen", lora, lora_fields),
};

bool lora_adapts(const struct cut *cut, enum lora_target target, struct adapted *adapted)
{
    const struct adapted widths[LORA_TARGET_COUNT] = {
        [LORA_QKV] = {cut->hidden, cut->query + cut->key + cut->values},
        [LORA_PROJECTION] = {cut->attended, cut->hidden},
        [LORA_MLP_UP] = {cut->hidden, (cut->shape->mlp == MLP_SWIGLU ? 2 : 1) * cut->ffn},
        [LORA_MLP_DOWN] = {cut->ffn, cut->hidden},
    };
    const int *targets = cut->lora ? cut->lora->targets.items : NULL;
    bool adapts = false;

    *adapted = widths[target];
    for (size_t i = 0; targets && i < cut->lora->targets.count; i++)
        adapts |= targets[i] == (int)target;
    return adapts;
}

bool lora_trains(const struct cut *cut, enum lora_target target)
{
    struct adapted adapted;

    return !cut->lora || lora_adapts(cut, target, &adapted);
}
