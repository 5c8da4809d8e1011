/* What the GPUs of a workload exchange, as text, for people. */
#include "exchange/exchange.h"

#include "collective/collective.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

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

static const char *const exchanged_names[MEASURED_COUNT] = {
    [EXCHANGE_TENSOR] = "tensor", [EXCHANGE_OVERLAPPED] = "tensor beside the backward, attention",
    [EXCHANGE_OVERLAPPED + COLUMN_MLP] = "tensor beside the backward, MLP",
    [EXCHANGE_OVERLAPPED + COLUMN_OUTPUT] = "tensor beside the backward, output",
    [EXCHANGE_PIECES] = "tensor in pieces, attention", [EXCHANGE_PIECES + COLUMN_MLP] = "tensor in pieces, MLP",
    [EXCHANGE_PIECES + COLUMN_OUTPUT] = "tensor in pieces, output", [EXCHANGE_ROWS] = "rows of experts",
    [EXCHANGE_DISPATCH] = "dispatch", [EXCHANGE_ATTENTION] = "keys and values",
    [EXCHANGE_ATTENTION_BACKWARD] = "keys, values and gradients", [EXCHANGE_HEADS] = "heads", [EXCHANGE_QKV] = "queries, keys, values",
    [EXCHANGE_MATRICES] = "a matrix of the update",
    [EXCHANGE_GATHER] = "tensor gather", [EXCHANGE_PASS] = "a block of keys and values",
    [EXCHANGE_PASS_BOTH] = "a block and its gradients",
};

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
    for (int k = 0; k < exchanges->alike.replicas * stages * chunks * exchanges->hidings; k++)
        for (int kind = 0; kind < MEASURED_COUNT; kind++) {
            int i = k / exchanges->hidings, h = k % exchanges->hidings;
            const struct exchange_cost *cost = &exchanges->costs[k][kind], *first = &exchanges->costs[k - h][kind];

            if (cost->bytes_sent > 0 && (h == 0 || cost->seconds < first->seconds || cost->seconds > first->seconds))
                fprintf(out, "%4d.%-4d %4d  %s: %.10g s, sends %.0f B\n", i / chunks / stages, i / chunks % stages, i % chunks,
                        exchanged_names[kind], cost->seconds, cost->bytes_sent);
        }
}
