#include "report/notes.h"

#include <math.h>

/* A vocabulary that nobody padded costs more than its rows: kernels for such products are slower. */
static const char *vocabulary_note(struct arena *arena, const struct scenario *scenario,
                                   const struct transformer *shape)
{
    int tensor = scenario->strategy.tensor;
    double share = transformer_output_columns(shape, tensor) / tensor, value = dtype_bytes(scenario_dtype(scenario));

    if (shape->head == HEAD_NONE || scenario->costs.gpu == COST_ROOFLINE || fmod(share * value, 16) == 0)
        return NULL;
    return arena_printf(arena, "the output layer has %.0f columns a GPU, no multiple of %.0f, for which its "
                        "kernels are slower; vocabulary: %.0f is what Megatron-LM pads to", share, 16 / value,
                        transformer_padded_vocabulary(shape, tensor));
}

/* scenarios/paper/megatron-bridge-qwen3-h100.yaml; wide ones (grok1-h100.yaml) are as good as other layers. */
static const char *experts_note(struct arena *arena, const struct scenario *scenario,
                                const struct transformer *shape)
{
    (void)scenario;
    if (!shape->experts || shape->expert_ffn >= shape->hidden)
        return NULL;
    return arena_printf(arena, "experts of %d columns are narrower than what they compute on (%d); "
                        "published runs of such a model (Qwen3 30B-A3B) took one and a half to three times as long as "
                        "predicted", shape->expert_ffn, shape->hidden);
}

struct notes notes_of(struct arena *arena, const struct scenario *scenario)
{
    static const char *(*const all[])(struct arena *, const struct scenario *, const struct transformer *) = {
        vocabulary_note, experts_note,
    };
    const struct transformer *shape = scenario->model.transformer;
    struct notes notes = {0};

    for (size_t i = 0; shape && i < COUNT(all); i++)
        if ((notes.items[notes.count] = all[i](arena, scenario, shape)))
            notes.count++;
    return notes;
}
