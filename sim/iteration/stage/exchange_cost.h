/* exchange_cost: what an exchange within a work costs: of which collectives it consists, and which of their seconds no kernel
 * hides. It is said once, for those who measure collectives, who bound them from below and who estimate them. */
#ifndef DTSIM_EXCHANGE_COST_H
#define DTSIM_EXCHANGE_COST_H

#include "collective/collective.h"
#include "stage/stage.h"

/* Cost of an exchange within a work. `seconds` come on top of the kernels. Each GPU sends `bytes_sent`; in a backward `activations`
 * of these B are activations, all others are gradients. `vector` is the size in B as collective.h counts it. Overlapped
 * kernels lose `share`, products `products` (contention_share). The bytes go over the links of the measured collective `index` of the group
 * whose first GPU is `first` (measure_carry). */
struct exchange_cost {
    double seconds, bytes_sent, activations, vector, share, products;
    int index, first;
    bool spans;              /* the group is on several nodes */
};

/* A collective of which exchanges consist. */
struct move {
    enum group_kind kind;
    const struct collective *collective;
    double bytes;            /* as collective.h counts them */
    int channels;            /* 0: placed_group_channels decides */
    bool step;               /* of an all-gather around a ring one step, launched alone */
};
bool same_move(const struct move *a, const struct move *b);
/* How the collectives of a pipeline rank are priced; what begins with it knows more. */
struct pricing {
    const struct scenario *scenario;
    int rank;
    const struct gpu *sheet;         /* of the GPUs; NULL: dispatchers have no floor, as on the ideal cluster */
    /* The move's cost: all but `activations`. */
    struct exchange_cost (*price)(const struct pricing *pricing, const struct move *move);
};
/* The cost of one exchange beside the kernels that hide it; `hiding`: stage_times.hidings. Exchanges that are hidden by all
 * kernels of works cost what they take alone. */
struct exchange_cost exchange_cost(const struct pricing *pricing, const struct exchange *exchange,
                                   const struct hiding *hidings);
/* Whether the stage's works have the exchange. */
bool stage_exchanges(const struct stage *stage, int exchange);
/* Whether attention goes block by block of keys and values. */
bool exchange_in_steps(const struct parallelism *spec);
/* s of a work's gathers of inputs that none of its kernels hide. */
double exchange_gathers_exposed(const struct stage *stage, const struct work_counts *counts, const struct work_times *times,
                                const struct exchange_cost *costs);

#endif
