#include "report/result_keys.h"

#include "base/base.h"

#include <string.h>

static const struct result_key keys[] = {
    {"iteration_time_s", "window_s over the updates in it: one, but for asynchronous schedules and local steps"},
    {"makespan_s", "from the first operation simulated to the end of the last"},
    {"samples_per_s", "samples of an update over iteration_time_s"},
    {"tokens_per_s", "null where the model has no tokens"},
    {"model_tflops_per_gpu", "TFLOP/s that the mathematics of the model needs; null where times are given"},
    {"hardware_tflops_per_gpu", "TFLOP/s that GPUs compute: also what is recomputed"},
    {"mfu", "model FLOP/s over the GPU's peak in the scenario's precision; a share"},
    {"hfu", "hardware FLOP/s over the same peak; a share"},
    {"bubble_fraction", "breakdown_s.bubble over iteration_time_s; GPipe on a free network: (p-1)/(m+p-1)"},
    {"bubble_overhead", "bubble over compute; GPipe: (p-1)/m"},
    {"utilization", "compute over iteration_time_s"},
    {"rank_span_s", "the longest from a rank's first work to the end of its last; null: asynchronous"},
    {"span_utilization", "compute over rank_span_s"},
    {"exposed_communication_s", "the sum of breakdown_s.exposed_tensor to exposed_expert"},
    {"exposed_offload_s", "breakdown_s.exposed_offload"},
    {"offload_bytes_per_gpu", "to the host and back, mean over GPUs"},
    {"forward_s", "a micro-batch's forward in one stage, mean, with what its group exchanges"},
    {"backward_s", "all that follows it on the way back: recomputation too"},
    {"communication_bytes_per_gpu", "sent, mean over GPUs"},
    {"peak_memory_bytes", "on one GPU, the largest of all ranks"},
    {"peak_reserved_bytes", "of these, without the context: PyTorch's max_memory_reserved"},
    {"peak_allocated_bytes", "and without fragmentation: max_memory_allocated"},
    {"energy_j", "null: not modelled yet"},
    {"extrapolated_s", "compute of the mean rank on kernels unlike those measured; null: no profile"},
    {"communication_breakdown_bytes_per_gpu.*", "communication_bytes_per_gpu by what is sent"},
    {"link_bytes.*.payload_bytes", "over all links of a class (inside, nic, uplink, host), an iteration"},
    {"link_bytes.*.wire_bytes", "the same with what protocols add"},
    {"memory_breakdown_bytes.*", "peak_memory_bytes by kind"},
    {"memory_limit_bytes", "what a GPU may hold; null: not known"},
    {"window_s", "[from, to]: the part of the simulated time that all means are over"},
    {"breakdown_s.*", "the time of the mean rank by kind; adds up to iteration_time_s"},
    {"imbalance_s", "of breakdown_s.bubble: more than in a replay in which works take all ranks as long; or less"},
    {"jitter_s", "of iteration_time_s: more than in a replay without jitter; or less"},
    {"steady_state", "null: synchronous, or no steady state"},
    {"steady_state.from_s", "begin of the window"},
    {"steady_state.to_s", "its end"},
    {"steady_state.updates", "in the window"},
    {"model_flop", "of the whole model, an iteration; null where times are given"},
    {"hardware_flop", "the same with what is recomputed"},
    {"gpus", "of the scenario"},
    {"weight_versions", "that a rank holds at most: more than 1 under asynchronous schedules"},
    {"operations", "simulated"},
    {"collectives", "messages: every one was simulated; measured: each different sum once"},
    {"all_reduces", "those that ran"},
    {"protocols", "of the communication library that they ran with; left out: it has none"},
    {"folded", "one replica was simulated for all"},
    {"jitter", "standard deviation of a work's time, as a share of it"},
    {"cost_source", "given, roofline or calibrated"},
    {"cost_profile", "its name; null: not calibrated"},
    {"notes", "what to know before relying on the numbers"},
    {"engine", "that simulated it"},
    {"version", "of dtsim"},
    {"tables_sha256.*", "digest of each table, by which readers notice files of another run; in a folder"},
    {"run_id", "of this result and its tables, by their content; in a folder"},
    {"scenario", "as it was simulated, with every default"},
    {"spans.tsv: rank", "pipeline rank + pipeline degree * replica"},
    {"spans.tsv: stage", "virtual stage; -1: none"},
    {"spans.tsv: kind", "what it does"},
    {"spans.tsv: name", "a letter and the micro-batch"},
    {"spans.tsv: mb", "micro-batch; -1: none"},
    {"spans.tsv: t0", "start, s"},
    {"spans.tsv: t1", "end, s"},
    {"spans.tsv: lane", "stream of the rank, or engine"},
    {"spans.tsv: communication", "s of it that are communication"},
    {"spans.tsv: replicas", "for how many the row stands"},
    {"memory.tsv: rank", "as in spans.tsv"},
    {"memory.tsv: t", "s; what is held from then on"},
    {"memory.tsv: bytes", "on a GPU, of all kinds"},
    {"memory.tsv: *", "of a kind: those of memory_breakdown_bytes"},
    {"memory.tsv: replicas", "for how many the row stands"},
    {"utilization.tsv: t0", "begin, s"},
    {"utilization.tsv: t1", "end, s"},
    {"utilization.tsv: *", "shares of all ranks' time, of the kinds of breakdown_s; add up to 1"},
    {"links.tsv: link", "GPU, NIC or leaf, and direction"},
    {"links.tsv: class", "of link_bytes"},
    {"links.tsv: payload_bytes", "over the link, an iteration"},
    {"links.tsv: wire_bytes", "the same with what protocols add"},
    {"links.tsv: busy", "share of the iteration that its full rate would need"},
    {"links.tsv: replicas", "for how many the row stands"},
};

const struct result_key *result_key_at(size_t index)
{
    return index < COUNT(keys) ? &keys[index] : NULL;
}

void result_keys_print(FILE *out)
{
    fputs("result.json (dtsim run --json, and in the folder of dtsim run -o): the unit ends each name; means are over "
          "ranks,\nan iteration; .* stands for several keys\n\n", out);
    for (size_t i = 0; i < COUNT(keys); i++) {
        if (i > 0 && strstr(keys[i].key, ": ") && !strstr(keys[i - 1].key, ": "))
            fputs("\nthe tables beside it, and their columns\n\n", out);
        fprintf(out, "  %-40s %s\n", keys[i].key, keys[i].brief);
    }
}
