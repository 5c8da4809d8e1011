/* megatron_memory: number formats, optimizer, recomputation, and the switches of the software. */
#include "megatron/megatron_internal.h"

#include "config/conf.h"
#include "launch/imported.h"

void megatron_memory(struct imported *m)
{
    imported_rows(m, "memory");
}

bool megatron_core(const struct imported *m)
{
    return !strcmp(m->software, "megatron-core") || !strcmp(m->software, "megatron-core-2026");
}

/* core/distributed: buckets of max(40 M, 1 M x data) elements where gradients overlap. */
static void put_bucket(struct imported *m, long long data)
{
    long long context = imported_number(m, "context-parallel-size"), elements = imported_number(m, "ddp-bucket-size");
    const struct node *gradients = node_at(m->root, "software.gradients");
    int bytes = gradients && !strcmp(gradients->text, "half") ? 2 : 4;

    if (!imported_given(m, "overlap-grad-reduce"))
        return;
    if (!elements)
        elements = data * context > 40 ? 1000000 * data * context : 40000000;
    imported_put(m, "software.first_bucket", "%lld B", elements * bytes);
    imported_put(m, "software.bucket", "%lld B", elements * bytes);
}

void megatron_software(struct imported *m, long long data)
{
    imported_put(m, "software.like", "%s", m->software);
    imported_rows(m, "switches");
    if (!megatron_core(m)) {
        imported_rows(m, "other");
        return;
    }
    imported_rows(m, "exchange");
    put_bucket(m, data);             /* it stands before what its bytes follow from */
    imported_rows(m, "core");
    put_bucket(m, data);
}
