/* memory.tsv: how many bytes of each kind a rank holds, from when on. */
#include "tables/recorded.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "files/tsv.h"

enum { KINDS = 32 };
static const double MOST_BYTES = 9e18 / KINDS;
enum { RANK, TIME, KIND, BYTES };
struct holder { double of[KINDS]; };
struct reader {
    struct tsv tsv;
    const char *kinds[KINDS];    /* by the order in which they first came */
    int nkinds;
    struct { struct holder *items; size_t count, capacity; } ranks;
};

static int read_kind(struct reader *reader, struct recorded_change *change, struct error *err)
{
    change->name = tsv_text(&reader->tsv, KIND);
    for (change->kind = 0; change->kind < reader->nkinds; change->kind++)
        if (!strcmp(reader->kinds[change->kind], change->name))
            return 0;
    if (reader->nkinds == KINDS)
        return error_add(err, EXIT_INPUT, tsv_loc(&reader->tsv, KIND), "more than %d kinds of memory", KINDS);
    reader->kinds[reader->nkinds++] = change->name;
    return 0;
}

/* A number of bytes; most are whole. */
static int read_bytes(const struct tsv *tsv, double *bytes, struct error *err)
{
    const char *at = tsv_text(tsv, BYTES);
    int64_t number = 0;
    int digits = 0;

    for (; *at >= '0' && *at <= '9' && digits < 15; at++, digits++)
        number = 10 * number + (*at - '0');
    *bytes = (double)number;
    if ((!digits || *at) && tsv_number(tsv, BYTES, bytes, err))
        return -1;
    /* The bytes of all kinds together fit into 64 bits. Rounding may leave a little less than 0. */
    if (!(*bytes > -1 && *bytes <= MOST_BYTES))
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, BYTES), "%g is no number of bytes", *bytes);
    return 0;
}

static int read_change(struct reader *reader, struct recorded_change *change, struct error *err)
{
    const struct tsv *tsv = &reader->tsv;
    struct holder *holder;

    if (recorded_integer(tsv, RANK, 0, RECORDED_MOST_RANKS, &change->rank, err) || recorded_ns(tsv, TIME, &change->at, err) ||
        read_kind(reader, change, err) || read_bytes(tsv, &change->bytes, err))
        return -1;
    if (change->at < 0)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, TIME), "the bytes change before 0");
    while (reader->ranks.count <= (size_t)change->rank)
        *GROW(&reader->ranks) = (struct holder){{0}};
    holder = &reader->ranks.items[change->rank];
    holder->of[change->kind] = change->bytes;
    change->held = 0;
    for (int kind = 0; kind < reader->nkinds; kind++)
        change->held += holder->of[kind];
    return 0;
}

int recorded_read_memory(const char *dir, recorded_visit_change *visit, void *context, struct error *err)
{
    static const char *const columns[] = {[RANK] = "rank", [TIME] = "t", [KIND] = "kind", [BYTES] = "bytes", NULL};
    int before = err->count + err->dropped;
    struct reader reader = {0};
    struct recorded_change change;
    char *path = xprintf("%s/memory.tsv", dir);

    if (!tsv_open(&reader.tsv, path, columns, err))
        while (tsv_next(&reader.tsv, err))
            if (!read_change(&reader, &change, err))
                visit(context, &change);
    free(reader.ranks.items);
    tsv_release(&reader.tsv);
    free(path);
    return err->count + err->dropped > before ? -1 : 0;
}
