/* contributions: a table of whose contribution sits in which chunk on which rank, to replay a collective as movement of
 * data. Adding a contribution twice fails the test at once. */
#ifndef DTSIM_CONTRIBUTIONS_H
#define DTSIM_CONTRIBUTIONS_H

#include "collective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct contributions {
    int n, chunks;
    size_t words;            /* a bit a contributor, for each (rank, chunk) */
    uint64_t *bits;
};

static inline uint64_t *contributions_at(const struct contributions *table, int rank, int chunk)
{
    return &table->bits[((size_t)rank * (size_t)table->chunks + (size_t)chunk) * table->words];
}

/* Every rank holds its own contribution in every chunk. */
static inline void contributions_init(struct contributions *table, int n, int chunks)
{
    *table = (struct contributions){.n = n, .chunks = chunks, .words = (size_t)n / 64 + 1};
    table->bits = xcalloc((size_t)n * (size_t)chunks * table->words, sizeof *table->bits);
    for (int rank = 0; rank < n; rank++)
        for (int chunk = 0; chunk < chunks; chunk++)
            contributions_at(table, rank, chunk)[rank / 64] = (uint64_t)1 << rank % 64;
}

/* What the source holds now, to be freed by contributions_arrive. */
static inline uint64_t *contributions_leave(const struct contributions *table, const struct arrow *arrow)
{
    size_t size = (size_t)arrow->nchunks * table->words * sizeof *table->bits;
    uint64_t *payload = xcalloc(size, 1);

    return memcpy(payload, contributions_at(table, arrow->src, arrow->chunk), size);
}

static inline void contributions_arrive(struct contributions *table, const struct arrow *arrow, uint64_t *payload)
{
    uint64_t *to = contributions_at(table, arrow->dst, arrow->chunk);

    for (size_t i = 0; i < (size_t)arrow->nchunks * table->words; i++) {
        if (arrow->combine == REDUCE && (to[i] & payload[i]))
            fail_msg("step %d, %d -> %d: a contribution is added twice", arrow->step, arrow->src, arrow->dst);
        to[i] = arrow->combine == REDUCE ? to[i] | payload[i] : payload[i];
    }
    free(payload);
}

/* Every rank must hold every contribution in every chunk. */
static inline void contributions_finish(struct contributions *table, const char *name)
{
    for (int rank = 0; rank < table->n; rank++)
        for (int chunk = 0; chunk < table->chunks; chunk++)
            for (int who = 0; who < table->n; who++)
                if (!(contributions_at(table, rank, chunk)[who / 64] >> who % 64 & 1))
                    fail_msg("%s of %d: rank %d lacks %d's chunk %d", name, table->n, rank, who, chunk);
    free(table->bits);
}

#endif
