#include "report/result_keys.h"

#include "run/metrics.h"

#include <string.h>

/* Besides the metrics (metric_at). */
static const struct result_key keys[] = {
    {"extrapolated_s", "compute of the mean rank on kernels unlike those measured; null: no profile"},
    {"cost_basis_s", "kernels of the mean rank by class (products, attention, memory_bound); null: times are given"},
    {"cost_basis_s.*.measured", "kernels like these were measured, of sizes in that range"},
    {"cost_basis_s.*.other_sizes", "the same of sizes outside that range, or only their FLOPs are known"},
    {"cost_basis_s.*.other_layout", "measured in another layout, number format or mask"},
    {"cost_basis_s.*.other_kernels", "scaled from other kernels: of another phase, or of all bound by memory"},
    {"cost_basis_s.*.other_gpu", "measured on the GPU of the data sheet, scaled to what the scenario changes of it"},
    {"cost_basis_s.*.data_sheet", "the GPU's roofline"},
    {"communication_breakdown_bytes_per_gpu.*", "communication_bytes_per_gpu by what is sent"},
    {"link_bytes.*.payload_bytes", "over all links of a class (nvlink, pcie or inside, nic, uplink, host); of reductions "
                                   "in a switch what ports really carry"},
    {"link_bytes.*.wire_bytes", "the same with the flags of protocols: LL 2 x, LL128 128/120, others 1"},
    {"memory_breakdown_bytes.*", "peak_memory_bytes by kind"},
    {"memory_limit_bytes", "what a GPU may hold; null: not known"},
    {"window_s", "[from, to]: the part of the simulated time that all means are over"},
    {"breakdown_s.*", "the time of the mean rank by kind; adds up to iteration_time_s"},
    {"closed_form_bubble", "bubble_fraction by the schedule's closed form, mean stages, free network; null: none"},
    {"imbalance_s", "of breakdown_s.bubble: more than in a replay in which works take all ranks as long; or less"},
    {"jitter_s", "of iteration_time_s: more than in a replay without jitter; or less"},
    {"steady_state", "null: synchronous, or no steady state"},
    {"steady_state.from_s", "begin of the window"},
    {"steady_state.to_s", "its end"},
    {"steady_state.updates", "in the window"},
    {"model_flop", "what the mathematics of the whole model needs, an iteration, whatever the software: min(sequence, window "
                   "or chunk) keys a query, a causal mask takes none off; null where times are given"},
    {"hardware_flop", "what the kernels compute: also what is recomputed, and scores beyond a window where attention is not "
                      "fused; scores that a causal mask hides count in both"},
    {"gpus", "that compute"},
    {"gpus_paid", "of the cluster: gpus and the idle ones. What an iteration costs, GPU-hours, energy and tokens per GPU count them"},
    {"cost", "of the iteration, $: iteration_time_s x gpus_paid x price; null: the scenario says no price"},
    {"gpu_hours", "of the iteration: iteration_time_s x gpus_paid / 3600"},
    {"weight_versions", "that a rank holds at most: more than 1 under asynchronous schedules"},
    {"operations", "simulated"},
    {"collectives", "messages: every one was simulated; measured: each different collective once"},
    {"all_reduces", "those that ran"},
    {"protocols", "of the communication library that they ran with; left out: it has none"},
    {"folded", "one replica was simulated for all"},
    {"rank_gpus", "the GPU of each rank, of the first of a tensor group; left out: nodes are of one kind"},
    {"idle_gpus.*", "of the cluster's part of that name, without a stage; left out: none, or all parts are of one kind"},
    {"stragglers", "[{rank, slower}]: ranks whose kernels take this many times as long; left out: none"},
    {"jitter", "standard deviation of a work's time, as a share of it"},
    {"seed", "of the random numbers; of several runs (repeat, or replicas that leave their lockstep): of the one with the median time; all other keys describe that run"},
    {"cost_source", "given, roofline or calibrated"},
    {"cost_profile", "its name; null: not calibrated"},
    {"setup", "in words: schedule, degrees, chunks, ZeRO, micro-batch, precision, activation checkpointing, software"},
    {"software", "whose values hold; null: none"},
    {"in_framework", "that release has this schedule, ZeRO stage and recomputation; false: a note says what it lacks; null: "
                     "not known"},
    {"model", "its title, or its blocks and their width; given: times are given"},
    {"gpu", "its name in 'dtsim list gpus'; null: none is named"},
    {"software_assumed", "the scenario names none: the usual one of its degrees"},
    {"notes", "what to know before relying on the numbers"},
    {"engine", "that simulated it"},
    {"version", "of dtsim"},
    {"tables_xxh128.*", "digest of each table, by which readers notice files of another run; in a folder"},
    {"run_id", "of this result and its tables, by their content; in a folder"},
    {"build", "digest of the sources of the program that wrote it, by which another build tells; in a folder"},
    {"scenario", "as it was simulated, with every default"},
    {"spans.tsv: rank", "pipeline rank + pipeline degree * replica"},
    {"spans.tsv: stage", "virtual stage; -1: none"},
    {"spans.tsv: kind", "what it does"},
    {"spans.tsv: name", "a letter and mb"},
    {"spans.tsv: mb", "micro-batch, or with strategy.slices: micro-batch x slices + slice; -1: none"},
    {"spans.tsv: t0", "start, s"},
    {"spans.tsv: t1", "end, s"},
    {"spans.tsv: lane", "stream of the rank, or engine"},
    {"spans.tsv: communication", "s of it that are communication"},
    {"spans.tsv: overlapped", "1: it runs together with the next span of its lane"},
    {"spans.tsv: replicas", "for how many the row stands"},
    {"spans.tsv: id", "of the span; its first operation's number in 'dtsim show --program'"},
    {"spans.tsv: after", "spans of other lanes for which it waits: ID,ID, or ID+S: for the first S s of that span"},
    {"spans.tsv: op", "what it exchanges: a collective's operation, or send; of a work, most of its communication"},
    {"spans.tsv: group", "the process group that exchanges: of groups.tsv"},
    {"spans.tsv: bytes", "of the collective's vector (of a work: of all its collectives), or what it sends or copies"},
    {"spans.tsv: peer", "the rank that it sends to"},
    {"groups.tsv: group", "number of a process group that exchanges something"},
    {"groups.tsv: kind", "of process group, as 'dtsim show --groups' names them"},
    {"groups.tsv: gpus", "GPUs in it"},
    {"groups.tsv: alike", "groups of GPUs with these ranks: one a tensor index, or a single one"},
    {"groups.tsv: ranks", "of spans.tsv, of all replicas, as if all were simulated"},
    {"memory.tsv: rank", "as in spans.tsv"},
    {"memory.tsv: t", "s; what is held from then on"},
    {"memory.tsv: kind", "of memory: the keys of memory_breakdown_bytes"},
    {"memory.tsv: bytes", "of that kind, on a GPU"},
    {"memory.tsv: replicas", "for how many the row stands"},
    {"utilization.tsv: t0", "begin, s"},
    {"utilization.tsv: t1", "end, s"},
    {"utilization.tsv: *", "shares of all ranks' time, of the kinds of breakdown_s; add up to 1"},
    {"links.tsv: link", "GPU, NIC or leaf, and direction"},
    {"links.tsv: class", "of link_bytes"},
    {"links.tsv: payload_bytes", "over the link, an iteration"},
    {"links.tsv: wire_bytes", "the same with what protocols add"},
    {"links.tsv: busy", "share of the iteration that its full rate needs for wire_bytes"},
    {"links.tsv: replicas", "for how many the row stands"},
};

struct result_key result_key_at(size_t index)
{
    size_t metrics = 0;

    while (metric_at(metrics))
        metrics++;
    if (index < metrics)
        return (struct result_key){metric_at(index)->name, metric_at(index)->brief};
    return index - metrics < COUNT(keys) ? keys[index - metrics] : (struct result_key){0};
}

void result_keys_print(FILE *out)
{
    bool column = false;
    struct result_key line;

    fputs("result.json (dtsim run --json, and in the folder of dtsim run -o): the unit ends each name; means are over "
          "ranks,\nan iteration; .* stands for several keys\n\n", out);
    for (size_t i = 0; (line = result_key_at(i)).key; i++) {
        if (!column && strstr(line.key, ": ")) {
            fputs("\nthe tables in its folder, and their columns\n\n", out);
            column = true;
        }
        fprintf(out, "  %-40s %s\n", line.key, line.brief);
    }
}
