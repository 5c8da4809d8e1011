/* Both schedules send micro-batches down the near chunks and back up the far ones, as a V. On rank r of P:
 *   2(P-1-r) times F near; r+1 times F near, F far; P-1-r times I far, W, F far;      (filling)
 *   M-2P+r+1 times F near with B far, F far with B near;                              (overlapped)
 *   P-1-r times B far, F far with B near; r+1 times B far, B near, of which the later half is split;
 *   P-1-r times W, I near; r+1 times W.                                               (draining)
 * W are taken in the order of their I. Read from DeepSeek's dualpipe.py and dualpipev.py. */
#include "dualpipe.h"

#include <math.h>
#include <stdlib.h>

struct walk {
    struct row *row;
    const struct plan *plan;
    const struct dualpipe *shape;
    int forwards[2], backwards[2];   /* [phase]: done so far; phase 0 near, 1 far */
    struct late { int chunk, mb; } *late;    /* split backwards; their weight gradients come later, in this order */
    int nlate, taken;
};

static int chunk_of(const struct walk *walk, int phase)
{
    return phase ^ walk->shape->near;
}

static void do_forward(struct walk *walk, int phase)
{
    forward(walk->row, chunk_of(walk, phase), walk->forwards[phase]++);
}

static void do_backward(struct walk *walk, int phase, bool split)
{
    int chunk = chunk_of(walk, phase), mb = walk->backwards[phase]++;

    if (walk->plan->recompute)
        recompute(walk->row, chunk, mb);
    if (!split) {
        backward(walk->row, chunk, mb);
        return;
    }
    backward_input(walk->row, chunk, mb);
    walk->late[walk->nlate++] = (struct late){chunk, mb};
}

static void do_weight(struct walk *walk)
{
    struct late late = walk->late[walk->taken++];

    backward_weight(walk->row, late.chunk, late.mb);
}

static void do_both(struct walk *walk, int forward_phase)
{
    int back = 1 - forward_phase, mb = walk->backwards[back]++;

    if (walk->plan->recompute)
        recompute(walk->row, chunk_of(walk, back), mb);
    overlapped(walk->row, chunk_of(walk, forward_phase), walk->forwards[forward_phase]++, chunk_of(walk, back), mb);
}

static void fill(struct walk *walk, int rank, int behind)
{
    for (int i = 0; i < 2 * behind; i++)
        do_forward(walk, 0);
    for (int i = 0; i <= rank; i++) {
        do_forward(walk, 0);
        do_forward(walk, 1);
    }
    for (int i = 0; i < behind; i++) {
        do_backward(walk, 1, true);
        do_weight(walk);
        do_forward(walk, 1);
    }
}

static void overlap(struct walk *walk, int rank, int behind)
{
    int pairs = plan_micro_batches(walk->plan) - 2 * walk->shape->ranks + rank + 1;

    for (int i = 0; i < pairs; i++) {
        if (i == 0 && behind == 0) {     /* on the last rank the first backward needs the forward just before it */
            do_forward(walk, 0);
            do_backward(walk, 1, false);
        } else {
            do_both(walk, 0);
        }
        do_both(walk, 1);
    }
}

static void drain(struct walk *walk, int rank, int behind)
{
    int half = (rank + 1) / 2;

    for (int i = 0; i < behind; i++) {
        do_backward(walk, 1, false);
        do_both(walk, 1);
    }
    for (int i = 0; i <= rank; i++) {
        do_backward(walk, 1, i > half || (i == half && rank % 2));
        do_backward(walk, 0, i >= half);
    }
    for (int i = 0; i < behind; i++) {
        do_weight(walk);
        do_backward(walk, 0, true);
    }
    while (walk->taken < walk->nlate)
        do_weight(walk);
}

void dualpipe_row(struct row *row, const struct plan *plan, const struct dualpipe *shape)
{
    struct walk walk = {.row = row, .plan = plan, .shape = shape};
    int rank = shape->rank, behind = shape->ranks - 1 - rank;

    walk.late = xcalloc(2 * (size_t)plan_micro_batches(plan), sizeof *walk.late);
    fill(&walk, rank, behind);
    overlap(&walk, rank, behind);
    drain(&walk, rank, behind);
    free(walk.late);
}

int dualpipe_check(const struct plan *plan, const char *name, const char *of, struct loc loc, struct error *err)
{
    if (plan->micro_batches >= 2 * plan->stages)
        return 0;
    return error_infeasible(err, ERROR_SCHEDULE, loc, "strategy: schedule: %s with pipeline %d found %d micro-batches; "
                            "expected at least %d%s", name, plan->stages, plan->micro_batches, 2 * plan->stages, of);
}

/* DeepSeek: with PP = 2P stages, a rank is idle for (PP/2 - 1)(F&B + B - 3W). With F&B = F + B here and F = W this is
 * (P-1) 2F. It is the same for shorter backwards, because ranks then wait for forwards. */
double dualpipe_makespan(const struct plan *plan, int ranks, double f, double b)
{
    if (plan->recompute || b > 2 * f * (1 + 1e-9))
        return NAN;
    return 2 * plan_micro_batches(plan) * (f + b) + (ranks - 1) * 2 * f;
}
