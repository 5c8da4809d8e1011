/* Torus all-reduce: rings along the dimensions of a torus, all links at once. The vector is cut into 2 d shards for d
 * dimensions, one for each dimension and direction. A shard of dimension k is summed along the rings of dimension k
 * (reduce-scatter), the rest of it along the rings of k + 1, and so on to k - 1; the sums are copied back along the
 * same rings in the opposite order (all-gather). So in every phase each shard has the links of one dimension and
 * direction to itself. A rank begins a phase when all its shards have ended the one before.
 *
 * Cost: a phase takes as long as its slowest shard. With n ranks in each dimension all phases together send (N - 1) / N
 * of each shard twice, over a link of its own: 1 / (2 d) of the bytes that any all-reduce must send (Sack and Gropp,
 * "Collective algorithms for multiported torus networks", ACM Transactions on Parallel Computing 1(2), 2015: the
 * multiported bucket algorithm). The NICs of a node must carry 2 d links for that. In a dimension of 2 a node sends to
 * its only neighbour over one of its two links (topology/torus.c), so that two shards share it and take twice as
 * long. */
#include "collective/collective.h"

#include <math.h>

/* a to p: the chunks, four a shard: a to d go up along the first dimension first, e to h down; i to p along the second.
 * +> the receiver adds them to its own; => the receiver keeps them. */
static const char figure[] =
    "torus of 2 x 2\n"
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    cd +> 2  cd +> 3  ab +> 0  ab +> 1\n"
    " 0    gh +> 2  gh +> 3  ef +> 0  ef +> 1\n"
    " 0    kl +> 1  ij +> 0  kl +> 3  ij +> 2\n"
    " 0    op +> 1  mn +> 0  op +> 3  mn +> 2\n"
    " 1    b +> 1   a +> 0   d +> 3   c +> 2\n"
    " 1    f +> 1   e +> 0   h +> 3   g +> 2\n"
    " 1    j +> 2   l +> 3   i +> 0   k +> 1\n"
    " 1    n +> 2   p +> 3   m +> 0   o +> 1\n"
    " 2    a => 1   b => 0   c => 3   d => 2\n"
    " 2    e => 1   f => 0   g => 3   h => 2\n"
    " 2    i => 2   k => 3   j => 0   l => 1\n"
    " 2    m => 2   o => 3   n => 0   p => 1\n"
    " 3    ab => 2  ab => 3  cd => 0  cd => 1\n"
    " 3    ef => 2  ef => 3  gh => 0  gh => 1\n"
    " 3    ij => 1  kl => 0  ij => 3  kl => 2\n"
    " 3    mn => 1  op => 0  mn => 3  op => 2\n";

/* One ring of both directions if the ranks are on no torus. */
static struct torus torus_of(const struct task *task)
{
    return task->torus.dims ? task->torus : (struct torus){1, {task->n}};
}

static int shards(const struct task *task)
{
    return 2 * torus_of(task).dims;
}

static int chunks(const struct task *task)
{
    return shards(task) * task->n;
}

/* A shard in a phase: it goes along a ring of `size` ranks, `stride` apart in their numbers, `up` or down. Only `few` of
 * them are written; these are the ring then, for as many steps. */
struct ring { int size, few, stride, up; };

/* How many ranks of a dimension are written. */
static int few_of(const struct task *task, int size)
{
    return task->folded && size > TORUS_FEW ? TORUS_FEW : size;
}

static struct ring ring_of(const struct task *task, int shard, int phase)
{
    struct torus torus = torus_of(task);
    int dim = (shard / 2 + phase) % torus.dims, size = torus.size[dim];
    struct ring ring = {size, few_of(task, size), 1, shard % 2 ? -1 : 1};

    for (int later = dim + 1; later < torus.dims; later++)
        ring.stride *= few_of(task, torus.size[later]);
    return ring;
}

static int place_in(struct ring ring, int rank)
{
    return rank / ring.stride % ring.few;
}

/* The rank that is so many places further on the ring, as the shard goes. */
static int further(struct ring ring, int rank, int places)
{
    int place = place_in(ring, rank), to = (place + ring.up * places) % ring.few;

    return rank + ((to + ring.few) % ring.few - place) * ring.stride;
}

/* In each phase a rank keeps the part of a shard that belongs to its place on the ring. The first chunk of the part
 * that belongs to `owner`, a rank of its ring, in this phase; `part`: the number of its chunks. */
static int part_of(const struct task *task, int shard, int phase, int owner, int *part)
{
    int first = shard * task->n;

    *part = task->n;
    for (int i = 0; i <= phase; i++) {
        struct ring ring = ring_of(task, shard, i);

        *part /= ring.size;
        first += place_in(ring, owner) * *part;
    }
    return first;
}

/* A step of a phase: every rank sends a part of each shard to the next rank of the shard's ring; at first the part
 * before its own, which it does not keep, or its own to copy, then the part that it last got. */
static void draw_step(struct messages *messages, const struct task *task, int step, int phase, int turn,
                      enum combine combine)
{
    int ranks = task->folded ? task->folded : task->n;

    for (int shard = 0; shard < shards(task); shard++) {
        struct ring ring = ring_of(task, shard, phase);

        through_port(messages, shard);
        for (int r = 0; r < ranks && turn < ring.size - 1; r++) {
            int part, first = part_of(task, shard, phase, further(ring, r, combine == REDUCE ? -1 - turn : -turn), &part);

            (combine == REDUCE ? reduce : copy)(messages, step, r, further(ring, r, 1), first, part);
        }
    }
}

static void write_messages(struct messages *messages, const struct task *task)
{
    struct torus torus = torus_of(task);
    int step = 0, longest = 1;

    for (int k = 0; k < torus.dims; k++)
        longest = torus.size[k] > longest ? torus.size[k] : longest;
    for (int phase = 0; phase < torus.dims; phase++, next_phase(messages))
        for (int turn = 0; turn < longest - 1; turn++, step++)
            draw_step(messages, task, step, phase, turn, REDUCE);
    for (int phase = torus.dims - 1; phase >= 0; phase--, next_phase(messages))
        for (int turn = 0; turn < longest - 1; turn++, step++)
            draw_step(messages, task, step, phase, turn, COPY);
}

static double messages_of(const struct task *task)
{
    struct torus torus = torus_of(task);
    double each = 0;

    for (int k = 0; k < torus.dims; k++)
        each += torus.size[k] - 1;
    return 2 * each * shards(task) * task->n;
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    struct torus torus = torus_of(task);
    double seconds = 0;

    for (int phase = 0; phase < torus.dims; phase++) {
        double slowest = 0;

        for (int shard = 0; shard < 2 * torus.dims; shard++) {
            struct ring ring = ring_of(task, shard, phase);
            int part;

            part_of(task, shard, phase, 0, &part);
            slowest = fmax(slowest, (ring.size - 1) *
                                        (latency + task->bytes * part / chunks(task) / bandwidth));
        }
        seconds += 2 * slowest;
    }
    return seconds;
}

const struct collective collective_torus = {
    .op = COLLECTIVE_ALL_REDUCE,
    .name = "torus",
    .title = "Torus all-reduce (rings along each dimension in both directions, all links at once)",
    .paper = "Sack, Gropp, Collective algorithms for multiported torus networks, ACM TOPC 1(2), 2015",
    .figure = figure,
    .formula = "d dimensions of n, N = n^d: 2 d (n - 1) latency + 2 (N - 1) / N bytes / (2 d) / bandwidth; of unequal "
               "sizes: the sum over phases of the slowest shard's 2 (n_k - 1) (latency + its part / bandwidth)",
    .every_nic = true,
    .nodes = NODES_IN_TORUS,
    .torus = true,
    .chunks = chunks,
    .ports = shards,
    .messages = messages_of,
    .write_messages = write_messages,
    .ideal = ideal,
};
