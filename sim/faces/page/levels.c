/* Levels of detail of a row of spans. A level divides time into blocks of 2^shift ns and says of each which kind fills
 * most of it, and how much of it is busy; blocks alike that follow each other are one run. A picture reads the level whose
 * block is one to two pixels, so it reads no more blocks than it has pixels; where its window holds few spans, it reads
 * these. A level is written only where a picture needs it. */
#include "page/page_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum {
    WINDOW = 2048,               /* blocks of a picture; */
    FEW = 512,                   /* spans that a picture draws one by one (plots/report/src/timeline.js has both) */
    COARSEST = 256,              /* blocks of the whole time, at least */
    KINDS = 256,
};

/* Whether some window of that many ns holds more than FEW spans. */
static bool is_crowded(const struct recorded_span *const *spans, size_t count, int64_t window)
{
    for (size_t i = FEW; i < count; i++)
        if (spans[i]->start - spans[i - FEW]->end < window)
            return true;
    return false;
}

struct run { int64_t first, count; uint8_t kind, share; };
struct level {
    unsigned shift;
    int64_t block;               /* at hand, */
    int64_t busy[KINDS];         /* ns of each kind in it, */
    int kinds;                   /* of the row: those below this one */
    int64_t sum;
    struct { struct run *items; size_t count, capacity; } runs;
};

static void add_run(struct level *level, int64_t first, int64_t count, uint8_t kind, uint8_t share)
{
    struct run *last = level->runs.count ? &level->runs.items[level->runs.count - 1] : NULL;

    if (last && last->first + last->count == first && last->kind == kind && last->share == share)
        last->count += count;
    else
        *GROW(&level->runs) = (struct run){first, count, kind, share};
}

/* Ends the block at hand. */
static void end_block(struct level *level)
{
    int most = 0;

    if (!level->sum)
        return;
    for (int kind = 1; kind < level->kinds; kind++)
        if (level->busy[kind] > level->busy[most])
            most = kind;
    add_run(level, level->block, 1, (uint8_t)most, (uint8_t)(1 + ((level->sum * 254) >> level->shift)));
    memset(level->busy, 0, (size_t)level->kinds * sizeof *level->busy);
    level->sum = 0;
}

static void add_span(struct level *level, int64_t start, int64_t end, uint8_t kind)
{
    while (start < end) {
        int64_t block = start >> level->shift, until = (block + 1) << level->shift;

        if (block != level->block)
            end_block(level);
        level->block = block;
        if (!level->sum && start == block << level->shift && end >= until) {     /* blocks of this span alone */
            int64_t whole = (end - start) >> level->shift;

            add_run(level, block, whole, kind, 255);
            start += whole << level->shift;
            continue;
        }
        until = until < end ? until : end;
        level->busy[kind] += until - start;
        level->sum += until - start;
        start = until;
    }
}

static void put_level(FILE *out, const struct level *level)
{
    int64_t until = 0;

    put_varint(out, level->shift);
    put_varint(out, level->runs.count);
    for (size_t i = 0; i < level->runs.count; i++) {
        const struct run *run = &level->runs.items[i];

        put_varint(out, (uint64_t)(run->first - until));
        put_varint(out, (uint64_t)run->count);
        putc_unlocked(run->kind, out);
        putc_unlocked(run->share, out);
        until = run->first + run->count;
    }
}

void page_levels(FILE *out, const struct recorded_span *const *spans, const uint8_t *kinds, size_t count)
{
    int64_t end = spans[count - 1]->end;
    unsigned first = 0, last;
    struct level *level;

    while (end >> first > COARSEST)
        first++;
    for (last = first; last > 0 && is_crowded(spans, count, (int64_t)WINDOW << (last - 1)); last--)
        continue;
    if (!is_crowded(spans, count, (int64_t)WINDOW << first))
        last = first + 1;                    /* none */
    put_varint(out, first + 1 - last);
    level = xcalloc(1, sizeof *level);
    for (size_t i = 0; i < count; i++)
        level->kinds = kinds[i] >= level->kinds ? kinds[i] + 1 : level->kinds;
    for (unsigned shift = last; shift <= first; shift++) {
        level->shift = shift;
        level->block = 0;
        level->runs.count = 0;
        for (size_t i = 0; i < count; i++)
            add_span(level, spans[i]->start, spans[i]->end, kinds[i]);
        end_block(level);
        put_level(out, level);
    }
    free(level->runs.items);
    free(level);
}
