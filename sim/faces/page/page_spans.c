/* Spans, a row for each lane of a rank. Each column is a part of its own, since alike numbers that follow each other
 * pack well. */
#include "page/page_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "files/json.h"
#include "tables/recorded.h"
#include "view/view.h"

/* Texts or numbers by the order in which they first came. */
struct known {
    json_t *list;
    uint64_t *keys;              /* a table of 2^bits places, */
    uint32_t *places;            /* their place in the list + 1; 0: none */
    unsigned bits;
};

static void known_init(struct known *known, unsigned bits)
{
    known->list = json_array();
    known->bits = bits;
    known->keys = xcalloc((size_t)1 << bits, sizeof *known->keys);
    known->places = xcalloc((size_t)1 << bits, sizeof *known->places);
}

static size_t known_slot(const struct known *known, uint64_t key)
{
    size_t mask = ((size_t)1 << known->bits) - 1, at = (size_t)(key * 0x9e3779b97f4a7c15u >> (64 - known->bits));

    while (known->places[at] && known->keys[at] != key)
        at = (at + 1) & mask;
    return at;
}

static void known_grow(struct known *known)
{
    struct known more = *known;

    more.bits++;
    more.keys = xcalloc((size_t)1 << more.bits, sizeof *more.keys);
    more.places = xcalloc((size_t)1 << more.bits, sizeof *more.places);
    for (size_t i = 0; i < (size_t)1 << known->bits; i++)
        if (known->places[i]) {
            size_t at = known_slot(&more, known->keys[i]);

            more.keys[at] = known->keys[i];
            more.places[at] = known->places[i];
        }
    free(known->keys);
    free(known->places);
    *known = more;
}

/* The place of a key; *is_new: the caller appends what it stands for. */
static uint32_t known_place(struct known *known, uint64_t key, bool *is_new)
{
    size_t at = known_slot(known, key);

    *is_new = !known->places[at];
    if (*is_new) {
        if (json_array_size(known->list) >= (size_t)1 << (known->bits - 1)) {
            known_grow(known);
            at = known_slot(known, key);
        }
        known->keys[at] = key;
        known->places[at] = (uint32_t)json_array_size(known->list) + 1;
    }
    return known->places[at] - 1;
}

static uint32_t known_text(struct known *known, const char *text)
{
    bool is_new;
    uint32_t place = known_place(known, hash_more(HASH_START, text, strlen(text)), &is_new);

    if (is_new)
        json_append(known->list, json_words(text));
    return place;
}

static uint32_t known_number(struct known *known, double number)
{
    uint64_t key;
    bool is_new;
    uint32_t place;

    memcpy(&key, &number, sizeof key);
    place = known_place(known, key, &is_new);
    if (is_new)
        json_append(known->list, json_finite(number));
    return place;
}

static json_t *known_end(const struct known *known)
{
    free(known->keys);
    free(known->places);
    return known->list;
}

enum column { GAP, DURATION, KIND, NAME, COMMUNICATION, OP, SIZE, PEER, GROUP, STAGE, AFTER, LEVELS, COLUMN_COUNT };
static const char *const column_names[COLUMN_COUNT] = {
    [GAP] = "gap", [DURATION] = "duration", [KIND] = "kind", [NAME] = "name", [COMMUNICATION] = "communication",
    [OP] = "op", [SIZE] = "size", [PEER] = "peer", [GROUP] = "group", [STAGE] = "stage", [AFTER] = "after", [LEVELS] = "levels",
};

struct writer {
    const struct recorded *run;
    FILE *columns[COLUMN_COUNT];
    struct known names, kinds, sizes;
    const struct recorded_span **row;
    uint8_t *row_kinds;
    json_t *rows;
    uint32_t *places;            /* of each span of the run in the columns, from 1; 0: it is not in them */
};

/* Where each span comes to stand: by rank, then lane, then start. */
static void find_places(struct writer *writer)
{
    const struct recorded *run = writer->run;
    uint32_t *next = xcalloc(run->lanes.count + 1, sizeof *next), first = 1;

    writer->places = xcalloc(run->spans.count + 1, sizeof *writer->places);
    for (int rank = 0; (rank = recorded_next_rank(run, rank)) >= 0; rank++) {
        struct recorded_rows spans = recorded_rows(run, rank);

        memset(next, 0, run->lanes.count * sizeof *next);
        for (size_t i = 0; i < spans.count; i++)
            next[spans.first[i].lane]++;
        for (size_t lane = 0; lane < run->lanes.count; lane++) {
            uint32_t count = next[lane];

            next[lane] = first;
            first += count;
        }
        for (size_t i = 0; i < spans.count; i++)
            writer->places[spans.first + i - run->spans.items] = next[spans.first[i].lane]++;
    }
    free(next);
}

/* For which spans it waits: a number of each, and 0. Of the difference of the places the lowest bit is whether it is
 * negative; of the number the lowest bit is whether the span waits for a part of the other alone, whose ns follow. */
static void put_after(struct writer *writer, const struct recorded_span *span)
{
    const struct recorded *run = writer->run;
    const char *at = recorded_text(run, span->after);
    int64_t own = writer->places[span - run->spans.items];
    const struct recorded_span *other;
    double part;

    while ((other = recorded_awaited(run, &at, &part))) {
        int64_t back = own - (int64_t)writer->places[other - run->spans.items];
        uint64_t number = back < 0 ? 2 * (uint64_t)-back + 1 : 2 * (uint64_t)back;

        if (back == own || !back)            /* of a rank that is not shown */
            continue;
        put_varint(writer->columns[AFTER], 2 * number + (part >= 0));
        if (part >= 0)
            put_varint(writer->columns[AFTER], (uint64_t)(part * 1e9 + 0.5));
    }
    put_varint(writer->columns[AFTER], 0);
}

static void put_span(struct writer *writer, const struct recorded_span *span, int64_t gap, uint32_t kind)
{
    FILE *const *columns = writer->columns;

    put_varint(columns[GAP], (uint64_t)gap);
    put_varint(columns[DURATION], (uint64_t)(span->end - span->start));
    put_varint(columns[KIND], kind);
    put_varint(columns[NAME], known_text(&writer->names, recorded_text(writer->run, span->name)));
    put_varint(columns[COMMUNICATION], (uint64_t)span->communication);
    put_varint(columns[OP], span->op);
    put_varint(columns[SIZE], known_number(&writer->sizes, span->bytes));
    put_varint(columns[PEER], (uint64_t)(span->peer + 1));
    put_varint(columns[GROUP], (uint64_t)(span->group + 1));
    put_varint(columns[STAGE], (uint64_t)(span->stage + 1));
    put_after(writer, span);
}

/* The spans of a rank that are in one lane; in the head stand the rank, the lane, how many spans, and the bytes of their
 * levels, which a browser reads when it first draws them. */
static void put_row(struct writer *writer, struct recorded_rows spans, int rank, int lane)
{
    FILE *levels = writer->columns[LEVELS];
    size_t count = 0;
    int64_t until = 0;
    off_t before = ftello(levels);
    json_t *row;

    for (size_t i = 0; i < spans.count; i++) {
        const struct recorded_span *span = &spans.first[i];
        uint32_t kind;

        if (span->lane != lane)
            continue;
        kind = known_text(&writer->kinds, recorded_text(writer->run, span->kind));
        put_span(writer, span, span->start - until, kind);
        until = span->end;
        writer->row_kinds[count] = (uint8_t)(kind < UINT8_MAX ? kind : UINT8_MAX);
        writer->row[count++] = span;
    }
    if (!count)
        return;
    page_levels(levels, writer->row, writer->row_kinds, count);
    row = json_array();
    json_append(row, json_integer(rank));
    json_append(row, json_integer(lane));
    json_append(row, json_integer((json_int_t)count));
    json_append(row, json_integer(ftello(levels) - before));
    json_append(writer->rows, row);
}

static json_t *lanes_json(const struct recorded *run)
{
    json_t *lanes = json_array();

    for (size_t i = 0; i < run->lanes.count; i++)
        json_append(lanes, json_words(run->lanes.items[i].name));
    return lanes;
}

/* What the rows of spans refer to. */
#define SPANS(ROW) \
    ROW(rows, it->rows, "lanes of ranks: where their spans begin") \
    ROW(lanes, lanes_json(it->run), "names, by number") \
    ROW(ops, json_texts(recorded_op_names), "the same of operations") \
    ROW(ranks, json_integer(it->run->ranks), "of the run") \
    ROW(pipeline, json_integer(it->run->pipeline), "its degree") \
    ROW(replicas, json_integer(it->run->replicas), "for which a rank stands") \
    ROW(names, known_end(&it->names), "of spans, by number") \
    ROW(kinds, known_end(&it->kinds), "the same of what they do") \
    ROW(sizes, known_end(&it->sizes), "the same of bytes")
VIEW(spans_view, struct writer, it, SPANS)

void page_spans(struct page *page, const struct recorded *run)
{
    struct writer writer = {.run = run, .rows = json_array()};
    size_t most = 0;

    for (int column = 0; column < COLUMN_COUNT; column++)
        writer.columns[column] = page_part(page, column_names[column]);
    known_init(&writer.names, 10);
    known_init(&writer.kinds, 6);
    known_init(&writer.sizes, 10);
    for (int rank = 0; (rank = recorded_next_rank(run, rank)) >= 0; rank++)
        most = recorded_rows(run, rank).count > most ? recorded_rows(run, rank).count : most;
    find_places(&writer);
    writer.row = xcalloc(most + 1, sizeof(void *));
    writer.row_kinds = xcalloc(most + 1, 1);
    for (int rank = 0; (rank = recorded_next_rank(run, rank)) >= 0; rank++) {
        struct recorded_rows spans = recorded_rows(run, rank);
        bool *used = xcalloc(run->lanes.count, sizeof *used);

        for (size_t i = 0; i < spans.count; i++)
            used[spans.first[i].lane] = true;
        for (size_t lane = 0; lane < run->lanes.count; lane++)
            if (used[lane])
                put_row(&writer, spans, rank, (int)lane);
        free(used);
    }
    view_put(&spans_view, &writer, page->head);
    free(writer.places);
    free(writer.row);
    free(writer.row_kinds);
}
