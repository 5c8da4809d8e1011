#include "stage/split.h"

#include <math.h>

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
                       "strategy: %s: %zu layers in all, the model has %zu",
                       split->node->items[0]->kind == NODE_MAPPING ? "stages" : "split", sum, blocks);
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

/* The blocks to be divided: costs[b] sums the costs of all blocks before block b. The first block's cost includes the
 * embedding's, the last block's the output layer's. */
struct blocks_to_share { const struct split_cost *costs; size_t blocks, nstages; const struct plan *plan; };

/* What a stage takes for each micro-batch. The m ranks that share it have as many micro-batches at once, so each takes
 * its share of the seconds. After each of its micro-batches a rank sends and receives 2 (m - 1) / m of the gradients;
 * PipeDream's optimizer counts both directions and hides nothing (msr-fiddle/pipedream 11c40c01,
 * optimizer/optimizer_graph_hierarchical.py, compute_partitioning). */
static double stage_seconds(const struct blocks_to_share *shares, size_t stage, size_t begin, size_t end)
{
    const struct split_cost *from = &shares->costs[begin], *to = &shares->costs[end];
    double m = plan_sharers(shares->plan, (int)stage);

    return (to->seconds - from->seconds + 4 * (m - 1) / m * (to->sending - from->sending)) / m;
}

/* rest[s * (blocks + 1) + b]: the least that the longest of the stages from s on can take of the blocks from b on, each
 * with one block at least; infinite where there are too few blocks. */
static double *least_rests(struct arena *arena, const struct blocks_to_share *shares)
{
    size_t width = shares->blocks + 1;
    double *rests = ARENA_ARRAY(arena, double, (shares->nstages + 1) * width);

    for (size_t b = 0; b < width; b++)
        rests[shares->nstages * width + b] = b == shares->blocks ? 0 : INFINITY;
    for (size_t s = shares->nstages; s-- > 0;)
        for (size_t b = 0; b < width; b++) {
            double *least = &rests[s * width + b];

            *least = INFINITY;
            for (size_t end = b + 1; end < width && stage_seconds(shares, s, b, end) < *least; end++)
                *least = fmin(*least, fmax(stage_seconds(shares, s, b, end), rests[(s + 1) * width + end]));
        }
    return rests;
}

/* Of all splits whose longest stage is as short as can be, the one that gives each stage in turn the most blocks. */
static void balance_stages(struct arena *arena, const struct blocks_to_share *shares, size_t *begins)
{
    const double *rests = least_rests(arena, shares);
    size_t width = shares->blocks + 1;
    double limit = rests[0] * (1 + 1e-12);

    begins[0] = 0;
    for (size_t s = 0; s < shares->nstages; s++)
        for (size_t end = begins[s] + 1; end < width && stage_seconds(shares, s, begins[s], end) <= limit; end++)
            if (rests[(s + 1) * width + end] <= limit)
                begins[s + 1] = end;
}

static void split_by_costs(struct arena *arena, const struct plan *plan, const struct layer *layers,
                           const struct split_cost *costs, size_t count, size_t nstages, size_t *begins)
{
    bool first = layers[0].role == LAYER_FIRST, last = layers[count - 1].role == LAYER_LAST;
    size_t blocks = count - first - last;
    struct split_cost *before = ARENA_ARRAY(arena, struct split_cost, blocks + 1);

    for (size_t i = 0; i < count; i++) {
        size_t b = i < first ? 0 : i - first < blocks ? i - first : blocks - 1;

        before[b + 1].seconds += costs[i].seconds;
        before[b + 1].sending += costs[i].sending;
    }
    for (size_t b = 0; b < blocks; b++) {
        before[b + 1].seconds += before[b].seconds;
        before[b + 1].sending += before[b].sending;
    }
    balance_stages(arena, &(struct blocks_to_share){before, blocks, nstages, plan}, begins);
}

/* As nanotron does (src/nanotron/models/base.py, build_model): stage s, counted from 1, ends with the block with which
 * the first s stages have more than s / nstages of all weights, without the embedding's. Returns false where a stage
 * would be left with nothing, which nanotron would not run. */
static bool split_by_weights(const struct layer *layers, size_t count, size_t nstages, size_t *begins)
{
    double all = 0, so_far = 0;
    size_t stage = 0, block = 0;

    for (size_t i = 0; i < count; i++)
        all += layers[i].role == LAYER_FIRST ? 0 : layers[i].parameters + layers[i].tied;
    begins[0] = 0;
    for (size_t i = 0; i < count; i++) {
        if (layers[i].role != LAYER_BLOCK)
            continue;
        block++;
        so_far += layers[i].parameters;
        if (stage + 1 < nstages && so_far > all * (double)(stage + 1) / (double)nstages)
            begins[++stage] = block;
    }
    begins[nstages] = block;
    return stage + 1 == nstages && (begins[stage] < block || layers[count - 1].role == LAYER_LAST);
}

int split_blocks(struct arena *arena, const struct scenario *scenario, const struct layer *layers,
                 const struct split_cost *costs, size_t count, size_t **begins, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct plan *plan = &scenario->plan;
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
    if (costs && !spec->split.count && blocks >= nstages) {
        split_by_costs(arena, plan, layers, costs, count, nstages, *begins);
        return 0;
    }
    if (spec->balance == BALANCE_WEIGHTS && !spec->split.count && split_by_weights(layers, count, nstages, *begins))
        return 0;
    for (size_t s = 0; s < nstages; s++)
        (*begins)[s + 1] = spec->split.count ? (*begins)[s] + (size_t)((const int *)spec->split.items)[s] :
                           (*begins)[s] + even_share(blocks, nstages, s);
    return 0;
}
