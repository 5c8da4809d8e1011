/* What the GPUs of a workload exchange, as text, for people. */
#include "exchange/exchange.h"

#include "collective/collective.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

/* One exchange of a bucket; nothing if it has no bytes. */
static void print_sum(const struct exchanges *exchanges, int stage, size_t number, const struct collective *collective,
                      double bytes, FILE *out)
{
    const struct bucket *bucket = &exchanges->buckets[stage].items[number];
    const struct process_groups *groups = &exchanges->scenario->groups;

    if (bytes > 0)
        fprintf(out, "%6d %7zu  %s of %.0f B over %s, ready after the backward of %zu of %zu layers\n", stage, number,
                collective_op_names[collective->op], bytes, groups->of[groups->sums[bucket->class]].name,
                bucket->slice + 1, exchanges->workload->stages[stage].nslices);
}

static void print_exchange(const struct exchange *exchange, FILE *out)
{
    static const char *const names[SENT_COUNT] = {
        [SENT_SUM] = "tensor", [SENT_INPUT] = "tensor gather", [SENT_QKV] = "queries, keys, values",
        [SENT_ROWS] = "dispatch", [SENT_ROW_SUMS] = "rows of experts", [SENT_KEYS] = "keys and values", [SENT_HEADS] = "heads",
        [SENT_MIXED] = "a mixer's heads", [SENT_STATES] = "a mixer's states", [SENT_TAIL] = "a convolution's tokens",
        [SENT_MATRIX] = "a matrix of the update",
    };
    static const char *const columns[COLUMN_COUNT] = {
        [COLUMN_ATTENTION] = "attention", [COLUMN_MLP] = "MLP", [COLUMN_OUTPUT] = "output",
    };

    fprintf(out, "%s%s", names[exchange->what], exchange->returns ? " and gradients" : "");
    if (exchange->by == HIDDEN_BY_GRADIENTS || exchange->by == HIDDEN_BY_PIECES)
        fprintf(out, " %s, %s", exchange->by == HIDDEN_BY_PIECES ? "in pieces" : "beside the backward", columns[exchange->column]);
}

void exchanges_print(const struct exchanges *exchanges, FILE *out)
{
    int stages = exchanges->plan->stages, chunks = exchanges->plan->chunks;

    fprintf(out, "# exchanges over replicas, as %s\n# stage  bucket  what\n",
            exchanges->alike.measured ? "durations that were measured" : "messages");
    for (int stage = 0; stage < plan_virtual_stages(exchanges->plan); stage++)
        for (size_t b = 0; b < exchanges->buckets[stage].count; b++)
            for (int i = 0; i < LEGS_MAX; i++) {
                const struct leg *leg = &exchanges->buckets[stage].items[b].sum.legs[i];

                print_sum(exchanges, stage, b, scenario_all_reduce(exchanges->scenario), leg->plain, out);
                print_sum(exchanges, stage, b, leg->collective, leg->bytes, out);
            }
    fputs("# exchanges within works, of one layer\n# replica.rank  chunk  what\n", out);
    for (int i = 0; i < exchanges->alike.replicas * stages * chunks; i++) {
        const struct exchange_cost *costs = costs_of(exchanges, i / chunks, i % chunks);

        if (i % chunks >= plan_chunks(exchanges->plan, i / chunks % stages))
            continue;
        for (int k = 0; k < exchanges->most; k++) {
            if (!(costs[k].bytes_sent > 0))
                continue;
            fprintf(out, "%4d.%-4d %4d  ", i / chunks / stages, i / chunks % stages, i % chunks);
            print_exchange(&exchanges_stage(exchanges, i / chunks, i % chunks)->exchanges->items[k], out);
            fprintf(out, ": %.10g s, sends %.0f B\n", costs[k].seconds, costs[k].bytes_sent);
        }
    }
}
