/* contributions: a table of whose contribution sits in which chunk on which rank, to replay a collective as movement of
 * data, from the state in which its operation begins to that in which it ends. Adding a contribution twice fails the
 * test at once, and so does sending nothing. */
#ifndef DTSIM_CONTRIBUTIONS_H
#define DTSIM_CONTRIBUTIONS_H

#include "collective/collective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct contributions {
    enum collective_op op;
    int n, chunks;
    size_t words;            /* a bit a contributor, for each (rank, chunk) */
    uint64_t *bits;
};

static inline uint64_t *contributions_at(const struct contributions *table, int rank, int chunk)
{
    return &table->bits[((size_t)rank * (size_t)table->chunks + (size_t)chunk) * table->words];
}

static inline bool contributions_shared(enum collective_op op)
{
    return op == COLLECTIVE_REDUCE_SCATTER || op == COLLECTIVE_ALL_GATHER || op == COLLECTIVE_ALL_TO_ALL;
}

/* Whether the rank has something to contribute to the chunk. */
static inline bool contributions_begin(const struct contributions *table, int rank, int chunk)
{
    if (table->op == COLLECTIVE_ALL_GATHER)
        return chunk / (table->chunks / table->n) == rank;
    return table->op != COLLECTIVE_BROADCAST || rank == 0;
}

/* Whether the rank must end with the chunk. */
static inline bool contributions_end(const struct contributions *table, int rank, int chunk)
{
    if (table->op == COLLECTIVE_REDUCE_SCATTER || table->op == COLLECTIVE_ALL_TO_ALL)
        return chunk / (table->chunks / table->n) == rank;
    return table->op != COLLECTIVE_REDUCE || rank == 0;
}

static inline void contributions_init(struct contributions *table, enum collective_op op, int n, int chunks)
{
    *table = (struct contributions){.op = op, .n = n, .chunks = chunks, .words = (size_t)n / 64 + 1};
    assert_true(!contributions_shared(op) || chunks % n == 0);
    table->bits = xcalloc((size_t)n * (size_t)chunks * table->words, sizeof *table->bits);
    for (int rank = 0; rank < n; rank++)
        for (int chunk = 0; chunk < chunks; chunk++)
            if (contributions_begin(table, rank, chunk))
                contributions_at(table, rank, chunk)[rank / 64] = (uint64_t)1 << rank % 64;
}

/* What the source holds now, to be freed by contributions_arrive. */
static inline uint64_t *contributions_leave(const struct contributions *table, const struct message *message)
{
    size_t size = table->words * sizeof *table->bits;
    uint64_t *payload = xcalloc((size_t)message->nchunks, size);

    for (int c = 0; c < message->nchunks; c++) {
        const uint64_t *bits = contributions_at(table, message->src, (message->chunk + c) % table->chunks);
        int held = 0;

        memcpy(payload + (size_t)c * table->words, bits, size);

        for (size_t i = 0; i < table->words; i++)
            held += __builtin_popcountll(bits[i]);
        if (held == 0)
            fail_msg("step %d, %d -> %d: sends nothing", message->step, message->src, message->dst);
        if (table->op == COLLECTIVE_ALL_TO_ALL && held > 1)
            fail_msg("step %d, %d -> %d: sends what is not its own", message->step, message->src, message->dst);
    }
    return payload;
}

static inline void contributions_arrive(struct contributions *table, const struct message *message, uint64_t *payload)
{
    for (size_t i = 0; i < (size_t)message->nchunks * table->words; i++) {
        int chunk = (message->chunk + (int)(i / table->words)) % table->chunks;
        uint64_t *to = contributions_at(table, message->dst, chunk) + i % table->words;

        if (message->combine == REDUCE && (*to & payload[i]))
            fail_msg("step %d, %d -> %d: a contribution is added twice", message->step, message->src, message->dst);
        *to = message->combine == REDUCE ? *to | payload[i] : payload[i];
    }
    free(payload);
}

/* Every rank must hold every contribution to every chunk that it ends with. */
static inline void contributions_finish(struct contributions *table, const char *name)
{
    for (int rank = 0; rank < table->n; rank++)
        for (int chunk = 0; chunk < table->chunks; chunk++)
            for (int who = 0; who < table->n; who++)
                if (contributions_end(table, rank, chunk) && contributions_begin(table, who, chunk) &&
                    !(contributions_at(table, rank, chunk)[who / 64] >> who % 64 & 1))
                    fail_msg("%s of %d: rank %d lacks %d's chunk %d", name, table->n, rank, who, chunk);
    free(table->bits);
}

#endif
