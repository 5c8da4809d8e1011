#include "stage/split.h"

#include <string.h>

/* Every stage computes something: a stage without blocks has the embedding or the output layer. */
static int check_split(const struct list *split, const struct layer *layers, size_t count, size_t blocks,
                       struct error *err)
{
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

/* Even shares; the remaining blocks go to the last stage but one and downwards. The first stage has the embedding, and
 * holds most micro-batches under 1F1B. The last stage has the output layer and the loss. Llama 3 405B leaves a block
 * out of both (Grattafiori et al. 2024, arXiv 2407.21783, section 3.3.2), as do the runs of Zero Bubble (Qi et al.
 * 2024, arXiv 2401.10241). */
static size_t even_share(size_t blocks, size_t nstages, size_t stage)
{
    return blocks / nstages + ((2 * nstages - 2 - stage) % nstages < blocks % nstages);
}

/* What is to be divided: the seconds of each block, those beside the first and the last added to theirs. */
struct balance_sums { const double *seconds; size_t blocks, nstages; };

/* Gives each stage in turn as many blocks as `limit` seconds hold, one at least, and leaves one for each stage after it.
 * Returns whether the last stage too takes no longer. */
static bool fill_to(const struct balance_sums *sums, double limit, size_t *begins)
{
    size_t block = 0;
    double held = 0;

    for (size_t s = 0; s < sums->nstages; s++) {
        size_t most = sums->blocks - (sums->nstages - 1 - s);
        bool last = s + 1 == sums->nstages;

        begins[s] = block;
        for (held = sums->seconds[block++]; block < most && (last || held + sums->seconds[block] <= limit); block++)
            held += sums->seconds[block];
    }
    begins[sums->nstages] = sums->blocks;
    return held <= limit;
}

/* Halves the range in which the shortest longest stage lies until nothing is left of it: what fits in a limit fits in
 * any larger one. */
static void balance_stages(const struct balance_sums *sums, size_t *begins)
{
    double low = 0, high = 0;

    for (size_t b = 0; b < sums->blocks; b++) {
        low = sums->seconds[b] > low ? sums->seconds[b] : low;
        high += sums->seconds[b];
    }
    high *= 1 + 1e-12;               /* the sum of a stage is added up in another order */
    for (double middle = (low + high) / 2; middle > low && middle < high; middle = (low + high) / 2)
        if (fill_to(sums, middle, begins))
            high = middle;
        else
            low = middle;
    if (!fill_to(sums, low, begins))
        fill_to(sums, high, begins);
}

static void split_by_seconds(struct arena *arena, const struct layer *layers, const double *seconds, size_t count,
                             size_t nstages, size_t *begins)
{
    bool first = layers[0].role == LAYER_FIRST, last = layers[count - 1].role == LAYER_LAST;
    size_t blocks = count - first - last;
    double *sums = ARENA_ARRAY(arena, double, blocks);

    memcpy(sums, seconds + first, blocks * sizeof *sums);
    sums[0] += first ? seconds[0] : 0;
    sums[blocks - 1] += last ? seconds[count - 1] : 0;
    balance_stages(&(struct balance_sums){sums, blocks, nstages}, begins);
}

int split_blocks(struct arena *arena, const struct parallelism *spec, const struct plan *plan,
                 const struct layer *layers, const double *seconds, size_t count, size_t **begins, struct error *err)
{
    size_t nstages = (size_t)plan_virtual_stages(plan), blocks = 0, others;
    char product[64];

    for (size_t i = 0; i < count; i++)
        blocks += layers[i].role == LAYER_BLOCK;
    if (spec->split.count && check_split(&spec->split, layers, count, blocks, err))
        return -1;
    snprintf(product, sizeof product, " (pipeline %d x chunks %d)", plan->stages, plan->chunks);
    others = count - blocks;         /* the embedding and the output layer: each may be a stage of its own */
    if (!spec->split.count && nstages > blocks + others)
        return error_add(err, EXIT_INFEASIBLE, node_loc(spec->node, "pipeline"),
                         "strategy: pipeline: %zu stages%s for a model of %zu layers; expected at most one a layer%s",
                         nstages, nstages > (size_t)plan->stages ? product : "", blocks,
                         others ? ", and two beside them" : "");
    *begins = ARENA_ARRAY(arena, size_t, nstages + 1);
    if (seconds && !spec->split.count && blocks >= nstages) {
        split_by_seconds(arena, layers, seconds, count, nstages, *begins);
        return 0;
    }
    for (size_t s = 0; s < nstages; s++)
        (*begins)[s + 1] = spec->split.count ? (*begins)[s] + (size_t)((const int *)spec->split.items)[s] :
                           (*begins)[s] + even_share(blocks, nstages, s);
    return 0;
}
