/* Keeps records of another profile of the same GPU for kernels without samples. */
#include <string.h>

#include "base/base.h"
#include "calibrate/calibrate.h"
#include "config/field.h"
#include "kernels/profile.h"

static bool share_one(const struct list *a, const struct list *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (list_has(b, ((const int *)a->items)[i]))
            return true;
    return false;
}

static bool same_products(const void *a, const void *b)
{
    const struct matmul_record *x = a, *y = b;

    return share_one(&x->dtypes, &y->dtypes);
}

static bool same_attention(const void *a, const void *b)
{
    const struct attention_record *x = a, *y = b;

    return x->generation == y->generation && x->direction == y->direction && share_one(&x->dtypes, &y->dtypes);
}

static bool same_class(const void *a, const void *b)
{
    const struct memory_record *x = a, *y = b;

    return x->class == y->class;
}

/* Appends records of `from` to `to`, where `to` has no record of the same kind; a record has `size` bytes. Returns how
 * many were appended. */
static size_t append(struct arena *arena, struct list *to, const struct list *from, size_t size,
                     bool (*same)(const void *a, const void *b))
{
    size_t own = to->count;
    char *items = arena_alloc(arena, (own + from->count) * size);

    if (own)
        memcpy(items, to->items, own * size);
    for (size_t i = 0; i < from->count; i++) {
        const char *record = (const char *)from->items + i * size;
        size_t k = 0;

        while (k < own && !same(items + k * size, record))
            k++;
        if (k == own)
            memcpy(items + to->count++ * size, record, size);
    }
    to->items = items;
    return to->count - own;
}

int calibrate_keep(struct arena *arena, struct calibration *calibration, const char *name, struct error *err)
{
    struct profile *own = &calibration->profile, old;

    if (profile_load(arena, name, (struct loc){0}, &old, err))
        return -1;
    if (old.sms != own->sms)
        return error_add(err, EXIT_INPUT, (struct loc){.file = name}, "sms: found %d, and the samples are "
                         "of a GPU with %d; expected a profile of the same GPU", old.sms, own->sms);
    calibration->kept = append(arena, &own->matmul, &old.matmul, sizeof(struct matmul_record), same_products) +
                        append(arena, &own->grouped, &old.grouped, sizeof(struct matmul_record), same_products) +
                        append(arena, &own->attention, &old.attention, sizeof(struct attention_record),
                               same_attention) +
                        append(arena, &own->memory, &old.memory, sizeof(struct memory_record), same_class);
    if (calibration->kept)
        own->source = arena_printf(arena, "%s; other kernels: %s", own->source, old.source);
    return 0;
}
