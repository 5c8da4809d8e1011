/* The smaller tables of a run. Of memory the page has each change on the first, the last and the fullest rank, and of all
 * ranks the most that they hold. */
#include "page/page_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"

int page_table(struct page *page, const char *dir, const char *name, const char *const *columns, unsigned texts,
               struct error *err)
{
    struct tsv tsv = {0};
    int before = err->count + err->dropped;
    char *path = xprintf("%s/%s.tsv", dir, name);
    FILE *out = page_part(page, name);
    double number;

    if (!tsv_open(&tsv, path, columns, err)) {
        for (int column = 0; columns[column]; column++)
            fprintf(out, "%s%c", columns[column], columns[column + 1] ? '\t' : '\n');
        while (tsv_next(&tsv, err))
            for (int column = 0; columns[column]; column++) {
                if (!(texts >> column & 1) && tsv_number(&tsv, column, &number, err))
                    continue;
                fprintf(out, "%s%c", tsv_text(&tsv, column), columns[column + 1] ? '\t' : '\n');
            }
    }
    tsv_release(&tsv);
    free(path);
    return err->count + err->dropped > before ? -1 : 0;
}

enum { KINDS = 32 };
/* A rank from then on holds so many bytes of a kind. */
struct change { int rank; uint8_t kind; int64_t at; double bytes; };
struct holder { double of[KINDS], most; bool known; };
struct memory {
    struct { struct change *items; size_t count, capacity; } changes;
    struct { struct holder *items; size_t count, capacity; } ranks;
    json_t *kinds;
};

static int read_kind(struct memory *memory, const struct tsv *tsv, uint8_t *kind, struct error *err)
{
    const char *name = tsv_text(tsv, 2);
    size_t count = json_array_size(memory->kinds), i = 0;

    while (i < count && strcmp(json_string_value(json_array_get(memory->kinds, i)), name))
        i++;
    if (i == KINDS)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, 2), "more than %d kinds of memory", KINDS);
    if (i == count)
        json_append(memory->kinds, json_words(name));
    *kind = (uint8_t)i;
    return 0;
}

/* The most that a rank holds once all changes of a time are made. */
static void note_most(struct memory *memory, const struct change *change)
{
    struct holder *holder;
    double sum = 0;

    while (memory->ranks.count <= (size_t)change->rank)
        *GROW(&memory->ranks) = (struct holder){0};
    holder = &memory->ranks.items[change->rank];
    holder->known = true;
    holder->of[change->kind] = change->bytes;
    for (size_t kind = 0; kind < json_array_size(memory->kinds); kind++)
        sum += holder->of[kind];
    holder->most = sum > holder->most ? sum : holder->most;
}

static int read_memory(struct memory *memory, const char *path, struct error *err)
{
    static const char *const columns[] = {"rank", "t", "kind", "bytes", NULL};
    struct tsv tsv = {0};
    int before = err->count + err->dropped;
    struct change change;

    if (!tsv_open(&tsv, path, columns, err))
        while (tsv_next(&tsv, err)) {
            if (recorded_integer(&tsv, 0, 0, RECORDED_MOST_RANKS, &change.rank, err) ||
                recorded_ns(&tsv, 1, &change.at, err) || read_kind(memory, &tsv, &change.kind, err) ||
                tsv_number(&tsv, 3, &change.bytes, err))
                continue;
            if (change.at < 0) {
                error_add(err, EXIT_INPUT, tsv_loc(&tsv, 1), "the bytes change before 0");
                continue;
            }
            *GROW(&memory->changes) = change;
            note_most(memory, &change);
        }
    tsv_release(&tsv);
    return err->count + err->dropped > before ? -1 : 0;
}

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
    json_put(page->head, "peaks", peaks);
    json_put(page->head, "memory_ranks", shown);
    json_put(page->head, "memory_kinds", json_incref(memory->kinds));
}

int page_tables(struct page *page, const char *dir, struct error *err)
{
    static const char *const use[] = {
        "t0", "t1", "forward", "backward", "backward_input", "backward_weight", "recompute", "update", "pack",
        "exposed_tensor", "exposed_pipeline", "exposed_data", "exposed_context", "exposed_expert", "exposed_offload",
        "bubble", NULL,
    };
    static const char *const links[] = {"link", "class", "payload_bytes", "wire_bytes", "busy", "replicas", NULL};
    struct memory memory = {.kinds = json_array()};
    char *path = xprintf("%s/memory.tsv", dir);
    int rc = page_table(page, dir, "utilization", use, 0, err) | page_table(page, dir, "links", links, 3, err) |
             read_memory(&memory, path, err);

    if (!rc && memory.changes.count)
        put_memory(page, &memory);
    json_decref(memory.kinds);
    free(memory.changes.items);
    free(memory.ranks.items);
    free(path);
    return rc ? -1 : 0;
}
