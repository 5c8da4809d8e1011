#include "recompute/copies.h"

#include <math.h>

#include "base/base.h"
#include "recompute/chain_internal.h"
#include "recompute/chain_steps.h"

/* fmax and fmin are calls into the library of C, and heed what is not a number. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static void add_unit(struct copied *copied, size_t layer, size_t tensor, double bytes)
{
    if (bytes > 0)
        copied->units[copied->nunits++] = (struct unit){layer, tensor, bytes};
}

/* The tensors that the forward of a layer leaves. */
static void add_units(struct copied *copied, size_t l)
{
    const struct chain_layer *layer = &copied->layers[l];
    const struct chain_kept *kept = &copied->plan->kept[l];
    size_t count = layer->ntensors - (kept->selective ? layer->ncore : 0);

    if (kept->input)
        add_unit(copied, l, 0, layer->input);
    if (kept->rest && !layer->tensors)
        add_unit(copied, l, 1, kept->selective ? selective_of(layer) : rest_of(layer));
    for (size_t i = 0; kept->rest && layer->tensors && i < count; i++)
        add_unit(copied, l, i + 1, layer->tensors[i]);
}

/* Seconds and bytes of the steps; a layer that is recomputed right before its backward is gathered once. */
static void set_steps(struct copied *copied, const struct plan_step *steps)
{
    double now = copied->held;

    for (size_t k = copied->plan->nsteps; k-- > 0;)
        copied->first[steps[k].layer] = k;
    for (size_t k = 0; k < copied->plan->nsteps; k++) {
        const struct plan_step *step = &steps[k], *before = k > 0 ? step - 1 : NULL;
        const struct chain_layer *layer = &copied->layers[step->layer];
        double space = !step->backward ? layer->space.forward :
                       step->selective ? layer->space.selective :
                                         layer->space.backward;

        copied->step[k] = step->backward ? step_backward(layer, step->selective) : step_forward(layer);
        if (step->backward && before && !before->backward && before->layer == step->layer)
            copied->step[k] = fmax(0, step_both(layer, step->selective) - step_forward(layer));
        now += step->takes;
        copied->step_bytes[k] = now + space;
        now -= step->frees;
        copied->seconds += copied->step[k];
    }
}

void copied_init(struct copied *copied, struct arena *arena, const struct chain_layer *layers, size_t n,
                 const struct chain_plan *plan, const struct chain_limit *limit)
{
    size_t units = 0;

    for (size_t l = 0; l < n; l++)
        units += 2 + layers[l].ntensors;
    *copied = (struct copied){
        .layers = layers,
        .limit = limit,
        .plan = plan,
        .n = n,
        .units = ARENA_ARRAY(arena, struct unit, units),
        .forward = ARENA_ARRAY(arena, double, n),
        .step = ARENA_ARRAY(arena, double, plan->nsteps),
        .forward_bytes = ARENA_ARRAY(arena, double, n),
        .step_bytes = ARENA_ARRAY(arena, double, plan->nsteps),
        .first = ARENA_ARRAY(arena, size_t, n),
        .moved = ARENA_ARRAY(arena, double, n),
        .forward_room = ARENA_ARRAY(arena, double, n),
        .step_room = ARENA_ARRAY(arena, double, plan->nsteps + 1) + 1,
        .admitted = ARENA_ARRAY(arena, int, n),
        .coming_room = ARENA_ARRAY(arena, double, n),
        .outs = ARENA_ARRAY(arena, struct out, 2 * units + 1),
        .ahead = ARENA_ARRAY(arena, double, plan->nsteps + 1) + 1,
        .arrives = ARENA_ARRAY(arena, double, n),
    };
    for (size_t l = 0; l < n; l++) {
        size_t before = copied->nunits;

        add_units(copied, l);
        for (size_t i = before; i < copied->nunits; i++)
            copied->held += copied->units[i].bytes;
        copied->forward[l] = step_forward(&layers[l]);
        copied->forward_bytes[l] = copied->held + layers[l].space.forward;
        copied->seconds += copied->forward[l];
    }
    set_steps(copied, chain_steps(arena, layers, n, plan));
}

/* The room of every operation. Chunks that share memory count two layers' tensors for all their operations. */
static double find_rooms(struct copied *copied, const bool *moves)
{
    double total = 0, before = 0, largest = 0, most = 0, least;
    size_t n = copied->n, steps = copied->plan->nsteps;

    for (size_t l = 0; l < n; l++)
        copied->moved[l] = 0;
    for (size_t i = 0; i < copied->nunits; i++)
        copied->moved[copied->units[i].layer] += moves[i] ? copied->units[i].bytes : 0;
    for (size_t l = 0; l < n; l++)
        total += copied->moved[l], largest = larger(largest, copied->moved[l]);
    double left = copied->limit->memory - (copied->limit->in_flight - 1) * (copied->held - total), away = total;

    for (size_t l = 0; l < n; l++) {
        copied->forward_room[l] = left - (copied->forward_bytes[l] - before);
        most = larger(most, copied->forward_bytes[l] - before);
        before += copied->moved[l];
    }
    for (size_t k = 0; k < steps; k++) {
        size_t l = copied->plan->steps[k].layer;

        away -= copied->first[l] == k ? copied->moved[l] : 0;
        copied->step_room[k] = left - (copied->step_bytes[k] - larger(0, away));
        most = larger(most, copied->step_bytes[k] - larger(0, away));
    }
    copied->most = most;
    least = left - most;
    copied->window = copied->limit->shared ? smaller(least, 2 * largest) : 0;
    for (size_t l = 0; copied->limit->shared && l < n; l++)
        copied->forward_room[l] = copied->window;
    for (size_t k = 0; copied->limit->shared && k < steps; k++)
        copied->step_room[k] = copied->window;
    copied->step_room[-1] = copied->forward_room[n - 1];
    if (copied->limit->in_flight > 1)
        copied->step_room[-1] = smaller(copied->step_room[-1], copied->step_room[steps - 1]);
    return least;
}

/* Each layer's tensors come back as early as memory allows, the last layer's first. */
static void admit(struct copied *copied, double reserve)
{
    const double *rooms = copied->step_room;
    double *ahead = copied->ahead;
    int earliest = -1;

    for (int k = -1; k < (int)copied->plan->nsteps; k++)
        ahead[k] = 0;
    for (size_t l = copied->n; l-- > 0;) {
        int first = (int)copied->first[l], at = first;
        double room;

        if (copied->moved[l] == 0)
            continue;
        while (at > earliest && ahead[at - 1] + copied->moved[l] <= rooms[at - 1] - reserve)
            at--;
        room = rooms[first];
        for (int k = at; k < first; k++) {
            ahead[k] += copied->moved[l];
            room = smaller(room, rooms[k] - ahead[k]);
        }
        copied->admitted[l] = earliest = at;
        copied->coming_room[l] = room;
    }
}

/* The state of a replay. */
struct replay {
    double now, before; /* when the last operation, and the one before it, have ended */
    double to, from;    /* when the streams are free */
    double waited;      /* s that operations have waited */
    size_t nouts;
    size_t ended;       /* copies to the host that have ended when the last operation has */
};

/* The number of the first copy, from `low` on, after which copies to the host hold so much at most. */
static size_t drained(const struct copied *copied, const struct replay *replay, double room, size_t low)
{
    size_t high = replay->nouts;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (copied->outs[replay->nouts].sum - copied->outs[middle].sum <= room)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The next operation begins when copies to the host have left it room, and not before `earliest`. */
static void operate(const struct copied *copied, struct replay *replay, double room, double earliest, double seconds)
{
    const struct out *outs = copied->outs;
    double begins = larger(replay->now, earliest);

    while (replay->ended < replay->nouts && outs[replay->ended + 1].done <= replay->now)
        replay->ended++;
    if (outs[replay->nouts].sum - outs[replay->ended].sum > room)
        begins = larger(begins, outs[drained(copied, replay, room, replay->ended + 1)].done);
    replay->waited += begins - replay->now;
    replay->before = replay->now;
    replay->now = begins + seconds;
}

/* outs[i + 1] is copy i; outs[0] has ended from the beginning. */
static void forward_pass(struct copied *copied, const bool *moves, struct replay *replay)
{
    const struct chain_limit *limit = copied->limit;
    size_t unit = 0;

    for (size_t l = 0; l < copied->n; l++) {
        double latency = limit->host_latency;

        operate(copied, replay, copied->forward_room[l], 0, copied->forward[l]);
        for (; unit < copied->nunits && copied->units[unit].layer == l; unit++) {
            if (!moves[unit])
                continue;
            struct out *last = &copied->outs[replay->nouts++];
            double bytes = copied->units[unit].bytes;

            replay->to = larger(replay->to, replay->now) + latency + bytes / limit->host_bandwidth;
            last[1] = (struct out){replay->to, last->sum + bytes};
            latency = 0;
        }
        copied->arrives[l] = replay->to; /* until it is set by a copy back: when it can begin */
    }
}

/* Alone a micro-batch fetches tensors that it has just sent; among several those have long been sent. Ends where
 * operations have waited longer than `patience`. */
static void backward_pass(struct copied *copied, struct replay *replay, double patience)
{
    const struct chain_limit *limit = copied->limit;
    double before = replay->before;      /* when the last forward began */
    size_t next = copied->n;

    for (size_t k = 0; k < copied->plan->nsteps && replay->waited <= patience; k++) {
        size_t l = copied->plan->steps[k].layer;

        for (; next > 0 && (copied->moved[next - 1] == 0 || copied->admitted[next - 1] <= (int)k); next--) {
            size_t layer = next - 1, out;
            double sent = limit->in_flight == 1 ? copied->arrives[layer] : 0, from;

            if (copied->moved[layer] == 0)
                continue;
            out = drained(copied, replay, copied->coming_room[layer], 0);
            from = larger(copied->admitted[layer] < 0 ? before : replay->now, larger(sent, copied->outs[out].done));
            replay->from = larger(replay->from, from) + limit->host_latency +
                           copied->moved[layer] / limit->host_bandwidth;
            copied->arrives[layer] = replay->from;
        }
        operate(copied, replay, copied->step_room[k],
                copied->first[l] == k && copied->moved[l] > 0 ? copied->arrives[l] : 0, copied->step[k]);
    }
}

double copied_seconds(struct copied *copied, const bool *moves, double reserve, double most)
{
    struct replay replay = {0};
    int rounds = copied->limit->in_flight > 1 ? 2 : 1;
    double first = 0;

    if (!(find_rooms(copied, moves) >= 0))
        return INFINITY;
    admit(copied, reserve);
    copied->outs[0] = (struct out){0};
    for (int round = 0; round < rounds; round++) {
        double patience = round + 1 < rounds ? INFINITY : most - copied->seconds;

        first = replay.now;
        replay.waited = 0;
        forward_pass(copied, moves, &replay);
        backward_pass(copied, &replay, patience);
        if (replay.waited > patience)
            return copied->seconds + replay.waited;
    }
    return replay.now - first;
}
