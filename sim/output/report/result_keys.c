#include "report/result_keys.h"

#include "report/result.h"
#include "run/metrics.h"
#include "view/view.h"

static const struct view_row rows[] = {
    {.key = "spans.tsv: rank", .brief = "pipeline rank + pipeline degree * replica"},
    {.key = "spans.tsv: stage", .brief = "virtual stage; -1: none"},
    {.key = "spans.tsv: kind", .brief = "what it does"},
    {.key = "spans.tsv: name", .brief = "a letter and mb"},
    {.key = "spans.tsv: mb", .brief = "micro-batch, or with strategy.slices: micro-batch x slices + slice; -1: none"},
    {.key = "spans.tsv: t0", .brief = "start, s"},
    {.key = "spans.tsv: t1", .brief = "end, s"},
    {.key = "spans.tsv: lane", .brief = "stream of the rank, or engine"},
    {.key = "spans.tsv: communication", .brief = "s of it that are communication"},
    {.key = "spans.tsv: overlapped", .brief = "1: it runs together with the next span of its lane"},
    {.key = "spans.tsv: replicas", .brief = "for how many the row stands"},
    {.key = "spans.tsv: id", .brief = "of the span; its first operation's number in 'dtsim show --program'"},
    {.key = "spans.tsv: after", .brief = "spans of other lanes for which it waits: ID,ID, or ID+S: for the first S s of that span"},
    {.key = "spans.tsv: op", .brief = "what it exchanges: a collective's operation, or send; of a work, most of its communication"},
    {.key = "spans.tsv: group", .brief = "the process group that exchanges: of groups.tsv"},
    {.key = "spans.tsv: bytes", .brief = "of the collective's vector (of a work: of all its collectives), or what it sends or copies"},
    {.key = "spans.tsv: peer", .brief = "the rank that it sends to"},
    {.key = "groups.tsv: group", .brief = "number of a process group that exchanges something"},
    {.key = "groups.tsv: kind", .brief = "of process group, as 'dtsim show --groups' names them"},
    {.key = "groups.tsv: gpus", .brief = "GPUs in it"},
    {.key = "groups.tsv: alike", .brief = "groups of GPUs with these ranks: one a tensor index, or a single one"},
    {.key = "groups.tsv: ranks", .brief = "of spans.tsv, of all replicas, as if all were simulated"},
    {.key = "memory.tsv: rank", .brief = "as in spans.tsv"},
    {.key = "memory.tsv: t", .brief = "s; what is held from then on"},
    {.key = "memory.tsv: kind", .brief = "of memory: the keys of memory_breakdown_bytes"},
    {.key = "memory.tsv: bytes", .brief = "of that kind, on a GPU"},
    {.key = "memory.tsv: replicas", .brief = "for how many the row stands"},
    {.key = "utilization.tsv: t0", .brief = "begin, s"},
    {.key = "utilization.tsv: t1", .brief = "end, s"},
    {.key = "utilization.tsv: *", .brief = "shares of all ranks' time, of the kinds of breakdown_s; add up to 1"},
    {.key = "links.tsv: link", .brief = "GPU, NIC or leaf, and direction"},
    {.key = "links.tsv: class", .brief = "of link_bytes"},
    {.key = "links.tsv: payload_bytes", .brief = "over the link, an iteration"},
    {.key = "links.tsv: wire_bytes", .brief = "the same with what protocols add"},
    {.key = "links.tsv: busy", .brief = "share of the iteration that its full rate needs for wire_bytes"},
    {.key = "links.tsv: replicas", .brief = "for how many the row stands"},
};
const struct view columns_view = {rows, COUNT(rows), NULL};

void result_help(FILE *out)
{
    fputs("result.json (dtsim run --json, and in the folder of dtsim run -o): the unit ends each name; means are over "
          "ranks,\nan iteration; .* stands for several keys, [] for each item of a list\n\n", out);
    view_help(&metrics_view, "", out);
    view_help(&run_view, "", out);
    view_help(&folder_view, "", out);
    view_help(&resolved_view, "", out);
    fputs("\nthe tables in its folder, and their columns\n\n", out);
    view_help(&columns_view, "", out);
}
