/* Looped BFS: each rank holds several chunks of the model. It computes all micro-batches of one chunk before the next
 * chunk, so that a chunk's weights and gradients are used in one stretch. */
#include "schedule/schedule.h"

static const char figure[] =
    "S3  .   .   F1  F2  F3  F1b F2b F3b B3b ~   B2b ~   B1b ~   B3  ~   B2  ~   B1  ~   .   .   .   .\n"
    "S2  .   F1  F2  F3  F1b F2b F3b .   .   .   B3b ~   B2b ~   B1b ~   B3  ~   B2  ~   B1  ~   .   .\n"
    "S1  F1  F2  F3  F1b F2b F3b .   .   .   .   .   .   B3b ~   B2b ~   B1b ~   B3  ~   B2  ~   B1  ~\n";

static void row(struct row *row, const struct plan *plan, int rank)
{
    (void)rank;
    for (int chunk = 0; chunk < plan->chunks; chunk++)
        for (int mb = 0; mb < plan->micro_batches; mb++)
            forward(row, chunk, mb);
    for (int chunk = plan->chunks - 1; chunk >= 0; chunk--)
        for (int mb = plan->micro_batches - 1; mb >= 0; mb--) {
            if (plan->recompute)
                recompute(row, chunk, mb);
            backward(row, chunk, mb);
        }
}

/* Lamy-Poirier 2023, section 4.1: the bubble of interleaved 1F1B. */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    int p = plan->stages, m = plan->micro_batches, v = plan->chunks;

    return ((double)v * (m > p ? m : p) + (m < p ? m : p) - 1) * (f + b + (plan->recompute ? r : 0));
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    (void)rank;
    return plan->chunks * plan->micro_batches;
}

const struct schedule schedule_looped_bfs = {
    .name = "looped-bfs",
    .title = "Looped BFS (breadth-first pipeline parallelism)",
    .paper = "Lamy-Poirier 2023, Breadth-First Pipeline Parallelism (arXiv 2211.05953), section 4.1; PyTorch's "
             "ScheduleLoopedBFS",
    .brief = "GPipe over several model chunks a rank, one chunk after another",
    .figure = figure,
    .formula = "per chunk F and B: iteration (V M + P-1)(F+B) for M >= P, (V P + M-1)(F+B) for M <= P; bubble\n"
               "(P-1)/(V M + P-1); V M chunks in flight",
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .placement = PLACEMENT_LOOP,
    .min_chunks = 1,
    .max_chunks = 1024,
    .usual_chunks = 2,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
