/* The layers of a random model, for tests of closed forms. */
#ifndef DTSIM_TEST_MODEL_LAYERS_H
#define DTSIM_TEST_MODEL_LAYERS_H

#include "config_file.h"

static inline int below(uint64_t *seed, int n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((*seed >> 33) % (uint64_t)n);
}

static inline const struct layer *layers_of(const struct model *model, const struct shard *shard, size_t *count)
{
    const struct layer *layers;

    if (model_layers(&arena, model, shard, (struct loc){0}, &layers, count, &error))
        fail_msg("%s", error.messages[0].text);
    return layers;
}

#endif
