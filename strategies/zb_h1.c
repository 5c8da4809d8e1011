/* ZB-H1: 1F1B whose backwards are in two halves. The one for the input (I) goes on at once to the previous rank; the one
 * for the weights (W) waits for idle time. No more memory than 1F1B. With recomputation R stands before I.
 *
@FIG@ */
#include "zero_bubble.h"

static void rows(struct row *rows, const struct plan *plan)
{
    zero_bubble_rows(rows, plan, plan->stages);
}

const struct strategy strategy_zb_h1 = {
    .name = "zb-h1",
    .title = "Zero bubble, ZB-H1",
    .paper = "Qi et al. 2023, Zero Bubble Pipeline Parallelism (arXiv 2401.10241), section 2.1 and figure 2 (top); the order "
             "as the authors' heuristic scheduler builds it",
    .brief = "1F1B with backwards in two halves; a third of the bubble, the memory of 1F1B",
    .figure = "",
    .formula = "@FORMULA@",
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .rows = rows,
};
