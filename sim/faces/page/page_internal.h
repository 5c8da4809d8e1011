/* Declarations that the files of page share. */
#ifndef DTSIM_PAGE_INTERNAL_H
#define DTSIM_PAGE_INTERNAL_H

#include "page/page.h"
#include "tables/recorded.h"

/* The data of a page: parts with names, in their order. A part is bytes that a stream in memory gets. */
struct page_part { const char *name; FILE *stream; char *bytes; size_t size; };
enum { PAGE_PARTS = 24 };
struct page {
    const struct page_request *request;
    json_t *head;            /* the part "page": what is not numbers in bulk */
    struct page_part parts[PAGE_PARTS];
    size_t count;
};
/* Opens a further part; the page closes it. */
FILE *page_part(struct page *page, const char *name);
/* A part that is JSON. */
void page_json(struct page *page, const char *name, const json_t *json);
/* Writes the page: `template` is a file of plots/report. `names`: files of the folder request->input that it must not
 * replace. */
int page_put(struct page *page, const char *template, const char *const *names, FILE *log, struct error *err);
/* Zero-initialise but for request; page_init makes the head. */
void page_init(struct page *page, const char *kind);
void page_release(struct page *page);

/* A number of 7 bits a byte, the lowest first; the highest bit says that more follow. */
static inline void put_varint(FILE *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        putc_unlocked((int)(value & 0x7f) | 0x80, out);
    putc_unlocked((int)value, out);
}

/* base64.c: a file whose bytes arrive as base64 in `out`, which stays open. */
FILE *base64_open(FILE *out);

/* spans.c: what ran when, a row for each lane of a rank: the rows in the head, and a part for each column. */
void page_spans(struct page *page, const struct recorded *run);

/* levels.c: of one row of spans, what a picture shows in which a pixel holds many of them. */
void page_levels(FILE *out, const struct recorded_span *const *spans, const uint8_t *kinds, size_t count);

/* plan.c: the folder's plan.json, checked; NULL: there is none. */
int page_read_plan(const char *folder, json_t **plan, struct error *err);
/* {id: {"rank", "shared", "order"}} of the rows that the plan ordered; "order" counts them from 0. */
json_t *page_plan_places(const json_t *plan);
/* The rest of it into the head. */
void page_put_plan(struct page *page, const json_t *plan);

/* tables.c: a table of the folder as a part of its name, as it is. Cells are checked to be numbers, but for columns
 * whose bit is set in `texts`. */
int page_table(struct page *page, const char *dir, const char *name, const char *const *columns, unsigned texts,
               struct error *err);
/* memory.tsv, utilization.tsv and links.tsv. */
int page_tables(struct page *page, const char *dir, struct error *err);

#endif
