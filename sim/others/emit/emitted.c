/* The frameworks for which a scenario is emitted. */
#include "emit/emit.h"

static const struct emitted frameworks[] = {
    {"megatron", emit_megatron}, {"torchtitan", emit_torchtitan}, {"deepspeed", emit_deepspeed}, {"bridge", emit_bridge},
    {"torchtitan-2026", emit_torchtitan_2026},
};

const struct emitted *emitted_at(size_t index)
{
    return index < COUNT(frameworks) ? &frameworks[index] : NULL;
}

const char *emitted_name(size_t index)
{
    return index < COUNT(frameworks) ? frameworks[index].name : NULL;
}
