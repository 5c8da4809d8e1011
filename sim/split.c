#include "split.h"

/* Every stage computes something: one without blocks has what stands before or after all of them. */
static int check_split(const struct scenario *scenario, const struct layer *layers, size_t count, size_t blocks,
                       struct error *err)
{
    const struct list *split = &scenario->strategy.split;
    const int *shares = split->items;
    size_t sum = 0;
    int rc = 0;

    for (size_t s = 0; s < split->count; s++) {
        bool other = (s == 0 && layers[0].role == LAYER_FIRST) ||
                     (s + 1 == split->count && layers[count - 1].role == LAYER_LAST);

        sum += (size_t)shares[s];
        if (shares[s] == 0 && !other)
            rc = error_add(err, EXIT_INFEASIBLE, split->node->items[s]->loc,
                           "strategy: split: stage %zu has 0 layers; expected 1 or more: only %s", s,
                           layers[0].role == LAYER_FIRST ? "the first and the last stage may hold no more than the "
                                                           "embedding and the output layer" :
                                                           "a transformer has something else to compute");
    }
    if (sum != blocks)
        rc = error_add(err, EXIT_INFEASIBLE, split->node->loc,
                       "strategy: split: %zu layers in all, the model has %zu", sum, blocks);
    return rc;
}

int split_blocks(struct scenario *scenario, const struct layer *layers, size_t count, size_t **begins,
                 struct error *err)
{
    const struct strategy_spec *spec = &scenario->strategy;
    size_t nstages = (size_t)plan_global_stages(&scenario->plan), blocks = 0;

    for (size_t i = 0; i < count; i++)
        blocks += layers[i].role == LAYER_BLOCK;
    if (spec->split.count && check_split(scenario, layers, count, blocks, err))
        return -1;
    if (!spec->split.count && nstages > blocks)
        return error_add(err, EXIT_INFEASIBLE, node_loc(spec->node, "pipeline"),
                         "strategy: pipeline: %zu stages for a model of %zu layers; expected at most one a layer%s",
                         nstages, blocks, scenario->plan.chunks > 1 ? " (each rank has several chunks)" : "");
    *begins = ARENA_ARRAY(&scenario->arena, size_t, nstages + 1);
    for (size_t s = 0; s < nstages; s++)
        (*begins)[s + 1] = spec->split.count ? (*begins)[s] + (size_t)((const int *)spec->split.items)[s] :
                           (s + 1) * blocks / nstages;
    return 0;
}
