/* Varuna's static schedule: backwards go first, then recomputations, then forwards. A recomputation begins just in time
 * to end when the gradient arrives. The last stage does its backward right after the forward and recomputes nothing.
 *
 * The order is computed beforehand, for recomputations half as long as backwards and for transfers that take no time.
 * Varuna's runtime (varuna/pipeline.py) does not know when the next stage's backward will end: when a rank comes to a
 * recomputation whose gradient has not arrived, it does its next forward first. */
#include "schedule/schedule.h"

#include <limits.h>
#include <stdlib.h>

static const char figure[] =
    "S4  .  .  .  F1 B1 ~  F2 B2 ~  F3 B3 ~  .  .  .  F4 B4 ~  F5 B5 ~  .  .  .  .  .  .\n"
    "S3  .  .  F1 F2 F3 R1 B1 ~  R2 B2 ~  R3 B3 ~  F4 F5 .  R4 B4 ~  R5 B5 ~  .  .  .  .\n"
    "S2  .  F1 F2 F3 F4 F5 .  R1 B1 ~  R2 B2 ~  R3 B3 ~  .  .  .  R4 B4 ~  R5 B5 ~  .  .\n"
    "S1  F1 F2 F3 F4 F5 .  .  .  .  R1 B1 ~  R2 B2 ~  R3 B3 ~  .  .  .  R4 B4 ~  R5 B5 ~\n";

#define RUNTIMES(X) X(STATIC, "static") X(OPPORTUNISTIC, "opportunistic")
enum { RUNTIMES(ENUM_VALUE) };

struct varuna_options {
    const struct node *node;
    int runtime, in_flight;
};

static const struct field fields[] = {
    {KEY(varuna_options, runtime), .kind = FIELD_CHOICE, .fallback = "static", .choices = CHOICES(RUNTIMES),
     .brief = "the order of works at run time",
     .choice_briefs = NAMES("every rank keeps the order that was computed beforehand",
                            "as in Varuna's runtime: a rank whose next gradient is late does its next forward first")},
    {KEY(varuna_options, in_flight), .kind = FIELD_INT, .min = 1, .max = 1000000,
     .brief = "opportunistic: most micro-batches in flight on a rank (between forward and backward) after a forward "
              "that goes first; left out: no limit"},
};
static const struct table options = {TABLE("strategy", "options of varuna", varuna_options, fields)};

/* The queues of a rank. Micro-batches keep their order, so a queue is the number that came and the number that left. */
struct station {
    struct queue { int in, out; } forwards, recomputes, backwards;
    enum { NOTHING, FORWARDED, RECOMPUTED, BEGUN } event;    /* in this slot */
    bool in_backward;        /* the next slot is a backward's second */
};

static bool take(struct queue *queue, int *mb)
{
    if (queue->out == queue->in)
        return false;
    *mb = queue->out++;
    return true;
}

/* One slot of a rank: the second half of a backward, else a backward, a recomputation, a forward. */
static void work_slot(struct station *station, struct row *row)
{
    int mb;

    station->event = NOTHING;
    if (station->in_backward) {
        station->in_backward = false;
    } else if (take(&station->backwards, &mb)) {
        backward(row, 0, mb);
        station->in_backward = true;
        station->event = BEGUN;
    } else if (take(&station->recomputes, &mb)) {
        recompute(row, 0, mb);
        station->event = RECOMPUTED;
    } else if (take(&station->forwards, &mb)) {
        forward(row, 0, mb);
        station->event = FORWARDED;
    }
}

/* Fills the rows slot by slot: a forward and a recomputation take one slot, a backward two. The work of a slot allows
 * other works from the next slot on; the first half of a backward allows the stage before to recompute. */
static void rows(struct row *rows, const struct plan *plan)
{
    struct station *stations = xcalloc((size_t)plan->stages, sizeof *stations);
    int last = plan->stages - 1;

    stations[0].forwards.in = plan->micro_batches;
    while (stations[0].backwards.out < plan->micro_batches) {
        for (int rank = 0; rank <= last; rank++)
            work_slot(&stations[rank], &rows[rank]);
        for (int rank = 0; rank <= last; rank++) {
            if (stations[rank].event == RECOMPUTED || (stations[rank].event == FORWARDED && rank == last))
                stations[rank].backwards.in++;
            else if (stations[rank].event == FORWARDED)
                stations[rank + 1].forwards.in++;
            else if (stations[rank].event == BEGUN && rank > 0)
                stations[rank - 1].recomputes.in++;
        }
    }
    free(stations);
}

static int opportunistic(const struct plan *plan)
{
    const struct varuna_options *chosen = plan->options;

    if (!chosen || chosen->runtime == STATIC)
        return 0;
    return chosen->in_flight ? chosen->in_flight : INT_MAX;
}

static int check(const struct plan *plan, struct loc loc, struct error *err)
{
    const struct varuna_options *chosen = plan->options;

    if (!chosen || chosen->runtime != STATIC || !chosen->in_flight)
        return 0;
    return error_clash(err, loc, "strategy: in_flight: has no effect here: it bounds what 'runtime: "
                       "opportunistic' does; expected that too, or leave it out");
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    int behind = plan->stages - 1 - rank, limit = behind ? 3 * behind : 1;

    return limit < plan->micro_batches ? limit : plan->micro_batches;
}

const struct schedule schedule_varuna = {
    .name = "varuna",
    .title = "Varuna",
    .paper = "Athlur et al. 2022, Varuna: Scalable, Low-cost Training of Massive Deep Learning Models (arXiv "
             "2111.04007), section 3",
    .brief = "backwards early, recomputed just in time whatever memory.recompute says; no recomputation on the last "
             "stage",
    .figure = figure,
    .formula = "iteration: no closed form; inputs of min(M, 3 (P-1 - rank)) micro-batches in flight, 1 on the last "
               "rank; recomputed activations of one",
    .options = &options,
    .recompute = RECOMPUTE_JUST_IN_TIME,
    .opportunistic = opportunistic,
    .check = check,
    .rows = rows,
    .ideal_in_flight = ideal_in_flight,
};
