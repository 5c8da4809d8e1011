/* The smaller tables of a run. Of memory the page has each change on the first, the last and the fullest rank, and of all
 * ranks the most that they hold. */
#include "page/page_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "files/json.h"
#include "files/tsv.h"
#include "tables/recorded.h"
#include "view/view.h"

static int put_table(struct page *page, const char *dir, const char *name, const char *const *columns, unsigned texts, bool all,
                     struct error *err)
{
    struct tsv tsv = {.all = all};
    int before = err->count + err->dropped;
    char *path = xprintf("%s/%s.tsv", dir, name);
    FILE *out = page_part(page, name);
    double number;

    if (!tsv_open(&tsv, path, columns, err)) {
        for (int column = 0; column < tsv.wanted; column++)
            fprintf(out, "%s%c", tsv.names[column], column + 1 < tsv.wanted ? '\t' : '\n');
        while (tsv_next(&tsv, err))
            for (int column = 0; column < tsv.wanted; column++) {
                if (!(column < 32 && texts >> column & 1) && tsv_number(&tsv, column, &number, err))
                    continue;
                fprintf(out, "%s%c", tsv_text(&tsv, column), column + 1 < tsv.wanted ? '\t' : '\n');
            }
    }
    tsv_release(&tsv);
    free(path);
    return err->count + err->dropped > before ? -1 : 0;
}

int page_table(struct page *page, const char *dir, const char *name, const char *const *columns, unsigned texts,
               struct error *err)
{
    return put_table(page, dir, name, columns, texts, false, err);
}

struct change { int rank, kind; int64_t at; double bytes; };
/* The most that a rank holds. */
struct holder { double most; bool known; };
struct memory {
    struct { struct change *items; size_t count, capacity; } changes;
    struct { struct holder *items; size_t count, capacity; } ranks;
    json_t *kinds;
};

static void note_change(void *context, const struct recorded_change *change)
{
    struct memory *memory = context;
    struct holder *holder;

    if ((size_t)change->kind == json_array_size(memory->kinds))
        json_append(memory->kinds, json_words(change->name));
    *GROW(&memory->changes) = (struct change){change->rank, change->kind, change->at, change->bytes};
    while (memory->ranks.count <= (size_t)change->rank)
        *GROW(&memory->ranks) = (struct holder){0};
    holder = &memory->ranks.items[change->rank];
    holder->known = true;
    holder->most = change->held > holder->most ? change->held : holder->most;
}

struct held { json_t *peaks, *ranks, *kinds; };

#define HELD(ROW) \
    ROW(peaks, it->peaks, "of each rank, B") \
    ROW(memory_ranks, it->ranks, "whose memory is drawn: the first, the fullest, the last") \
    ROW(memory_kinds, json_incref(it->kinds), "names of what is held, by number")
VIEW(memory_view, struct held, it, HELD)

/* The ranks that are shown, and a line for each of their changes. */
static void put_memory(struct page *page, const struct memory *memory)
{
    FILE *out = page_part(page, "memory");
    size_t first = 0, last = memory->ranks.count - 1, fullest;
    json_t *peaks = json_array(), *shown = json_array();
    char number[DECIMAL_SIZE];

    while (!memory->ranks.items[first].known)
        first++;
    fullest = first;
    for (size_t i = 0; i <= last; i++) {
        if (memory->ranks.items[i].most > memory->ranks.items[fullest].most)
            fullest = i;
        json_append(peaks, memory->ranks.items[i].known ? json_finite(memory->ranks.items[i].most) : json_null());
    }
    json_append(shown, json_integer((json_int_t)first));
    json_append(shown, json_integer((json_int_t)fullest));
    json_append(shown, json_integer((json_int_t)last));
    fputs("rank\tns\tkind\tbytes\n", out);
    for (size_t i = 0; i < memory->changes.count; i++) {
        const struct change *change = &memory->changes.items[i];
        size_t rank = (size_t)change->rank;

        if (rank != first && rank != fullest && rank != last)
            continue;
        fprintf(out, "%d\t%lld\t%d\t%s\n", change->rank, (long long)change->at, change->kind,
                decimal_text(change->bytes, number));
    }
    view_put(&memory_view, &(struct held){peaks, shown, memory->kinds}, page->head);
}

int page_tables(struct page *page, const char *dir, struct error *err)
{
    static const char *const use[] = {"t0", "t1", NULL};
    static const char *const links[] = {"link", "class", "payload_bytes", "wire_bytes", "busy", "replicas", NULL};
    struct memory memory = {.kinds = json_array()};
    int rc = put_table(page, dir, "utilization", use, 0, true, err) | page_table(page, dir, "links", links, 3, err) |
             recorded_read_memory(dir, note_change, &memory, err);

    if (!rc && memory.changes.count)
        put_memory(page, &memory);
    json_decref(memory.kinds);
    free(memory.changes.items);
    free(memory.ranks.items);
    return rc ? -1 : 0;
}
