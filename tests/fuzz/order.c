/* Whatever the bytes of an order: no crash, no leak, no hang; an accepted order has rows that do not deadlock, and its
 * printed text reads back to the same rows. */
#include <stdlib.h>
#include <string.h>

#include "schedule/order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_order(struct arena *arena, const char *text, size_t size, enum recompute_rule rule, struct order *order)
{
    struct error err = {0};
    int rc = order_parse(arena, "fuzz.csv", text, size, rule, order, &err);

    BUG_IF((rc != 0) != (err.count > 0));
    for (int i = 0; i < err.count; i++)
        BUG_IF(err.messages[i].loc.line < 1 || err.messages[i].loc.column < 1);
    error_release(&err);
    return rc;
}

static char *print_rows(const struct row *rows, const struct plan *plan, size_t *size)
{
    char *text = NULL, cell[48];
    FILE *out = open_memstream(&text, size);

    for (int rank = 0; rank < plan->stages; rank++)
        for (size_t i = 0; i < rows[rank].count; i++) {
            bool begins = rows[rank].items[i].with_next, ends = i > 0 && rows[rank].items[i - 1].with_next;

            fprintf(out, "%s%s%s%s%s", i ? ends ? ";" : "," : "", begins ? "(" : "",
                    work_format(plan, rank, rows[rank].items[i], cell, sizeof cell), ends ? ")O" : "",
                    i + 1 < rows[rank].count ? "" : "\n");
        }
    fclose(out);
    return text;
}

static char *replay_order(const struct order *order, size_t *size)
{
    struct plan plan = {
        .stages = order->ranks, .chunks = order->chunks, .micro_batches = order->micro_batches, .batches = 1,
        .placement = order->schedule.placement, .table = order->table, .options = order,
    };
    struct row *rows = rows_of(&order->schedule, &plan);
    char *text = print_rows(rows, &plan, size);

    BUG_IF(rows_deadlock(rows, &plan));
    rows_release(rows, plan.stages);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum recompute_rule rule = size ? (enum recompute_rule)(data[size - 1] % 3) : RECOMPUTE_WITH_GRADIENT;
    struct arena arena = {0};
    struct order order, again;

    if (!read_order(&arena, (const char *)data, size, rule, &order)) {
        size_t once, twice;
        char *first = replay_order(&order, &once), *second;

        BUG_IF(read_order(&arena, first, once, rule, &again));
        second = replay_order(&again, &twice);
        BUG_IF(once != twice || memcmp(first, second, once));
        free(first);
        free(second);
    }
    arena_release(&arena);
    return 0;
}
