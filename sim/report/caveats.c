#include "report/caveats.h"

#include <math.h>

/* A vocabulary that nobody padded costs more than its rows: kernels for such products are slower. */
static const char *vocabulary_note(struct arena *arena, const struct scenario *scenario)
{
    const struct transformer *shape = scenario->model.transformer;
    int tensor = scenario->parallelism.tensor;
    double share, value = dtype_bytes(precision_dtype(&scenario->memory.precision));

    if (!shape || shape->head == HEAD_NONE || scenario->costs.gpu == COST_ROOFLINE)
        return NULL;
    share = transformer_output_columns(shape, tensor) / tensor;
    if (fmod(share * value, 16) == 0)
        return NULL;
    return arena_printf(arena, "the output layer has %.0f columns a GPU, no multiple of %.0f, for which its "
                        "kernels are slower; vocabulary: %.0f is what Megatron-LM pads to", share, 16 / value,
                        transformer_padded_vocabulary(shape, tensor));
}

static const char *model_note(struct arena *arena, const struct scenario *scenario)
{
    return scenario->model.transformer ? transformer_caveat(arena, scenario->model.transformer) : NULL;
}

/* The all-reduce that was asked for is not what ZeRO runs where it has no halves (collective_half). */
static const char *halves_note(struct arena *arena, const struct scenario *scenario)
{
    const struct collective *all_reduce = scenario_all_reduce(scenario);

    if (scenario->recipe.divided[HELD_STATES][PARAMETERS_COMMON] == 1 || all_reduce->reduce_scatter)
        return NULL;
    return arena_printf(arena, "all_reduce: %s has no reduce-scatter and all-gather of its own; ZeRO %s those of %s",
                        all_reduce->name,
                        scenario->parallelism.reduce_scatter ? "scatters gradients and gathers weights with"
                                                          : "gathers weights with",
                        collective_half(all_reduce, COLLECTIVE_ALL_GATHER)->name);
}

/* Who measured a rank would give it several times. */
static const char *stages_note(struct arena *arena, const struct scenario *scenario)
{
    const struct plan *plan = &scenario->plan;

    if (!scenario->model.stages.count || model_is_per_rank(&scenario->model) ||
        plan_virtual_stages(plan) <= plan->stages)
        return NULL;
    return arena_printf(arena, "the numbers under 'stages' are of a chunk, and a rank has %d chunks; with 'per: rank' "
                        "they are of a rank, and each chunk has an equal part", plan->chunks);
}

struct caveats caveats_of(struct arena *arena, const struct scenario *scenario)
{
    static const char *(*const all[])(struct arena *, const struct scenario *) = {
        vocabulary_note, model_note, halves_note, stages_note,
    };
    struct caveats caveats = {0};

    for (size_t i = 0; i < COUNT(all); i++)
        if ((caveats.items[caveats.count] = all[i](arena, scenario)))
            caveats.count++;
    return caveats;
}

void caveats_print(const struct scenario *scenario, FILE *out)
{
    struct arena arena = {0};
    struct caveats caveats = caveats_of(&arena, scenario);

    for (size_t i = 0; i < caveats.count; i++)
        fprintf(out, "note: %s\n", caveats.items[i]);
    arena_release(&arena);
}
