/* The metrics by name. */
#include "run/metrics.h"

#include <string.h>

#include "files/json.h"
#include "view/view.h"

/* M(ROW, key, member of struct metrics, its unit in SI units, kind, meaning) */
#define METRICS(M, ROW) \
    M(ROW, iteration_time_s, iteration_time, 1, METRIC_TIME, \
      "window_s over the optimizer steps in it: one, but for asynchronous schedules and local steps") \
    M(ROW, iteration_time_s_p10, iteration_time_p10, 1, METRIC_TIME, \
      "with repeat, or where replicas leave their lockstep ('notes'): the least time that 10 % of the runs do not exceed; " \
      "null: one run") \
    M(ROW, iteration_time_s_p90, iteration_time_p90, 1, METRIC_TIME, \
      "the same: the least time that 90 % of the runs do not exceed; null: one run") \
    M(ROW, stated_error_share, stated_error, 1, METRIC_SHARE, \
      "of iteration_time_s: the profile's mean error on kernels held out of its fit; null: none is stated") \
    M(ROW, expected_error_share, expected_error, 1, METRIC_SHARE, \
      "of iteration_time_s: 6 of 10 published times of similar work are nearer than that, and 9 of 10 nearer than twice " \
      "that; of runs unlike the scenario as they were first predicted (dtsim help validate); null: none is like it at all, " \
      "and 'notes' say why") \
    M(ROW, expected_longer_share, expected_longer, 1, METRIC_SHARE, \
      "share of these published times that were longer than predicted; null: there are none") \
    M(ROW, expected_ratio_error_share, expected_ratio, 1, METRIC_SHARE, \
      "error of the ratio of iteration_time_s to another configuration's, of the same software, model and GPU: 6 of 10 " \
      "published ratios are nearer; null: none is like it") \
    M(ROW, expected_ratio_error_share_p90, expected_ratio_most, 1, METRIC_SHARE, "the same: 9 of 10 are nearer") \
    M(ROW, anchors, anchored.used, 1, METRIC_SHARE, \
      "number of --anchor runs that are alike and correct all times and rates; null: there are none") \
    M(ROW, anchor_factor, anchored.factor, 1, METRIC_SHARE, \
      "what they multiply each time by; window_s, spans.tsv and the other tables stay as simulated") \
    M(ROW, anchor_factor_compute, anchored.classes[ANCHOR_COMPUTE], 1, METRIC_SHARE, \
      "what they show of an iteration that is compute alone; null: fewer than three anchors") \
    M(ROW, anchor_factor_exposed_communication, anchored.classes[ANCHOR_COMMUNICATION], 1, METRIC_SHARE, \
      "the same of exposed communication alone") \
    M(ROW, anchor_factor_host, anchored.classes[ANCHOR_HOST], 1, METRIC_SHARE, "the same of waits for launches alone") \
    M(ROW, anchor_is_this_run, anchored.same, 1, METRIC_SHARE, \
      "1: one of them is this run, whose time is the measured one; 0; null: there are none") \
    M(ROW, uncorrected_iteration_time_s, anchored.time, 1, METRIC_TIME, \
      "iteration_time_s before anchors corrected it; null: there are none") \
    M(ROW, makespan_s, makespan, 1, METRIC_TIME, "from the first operation simulated to the end of the last") \
    M(ROW, samples_per_s, samples_per_s, 1, METRIC_RATE, "samples of an optimizer step over iteration_time_s") \
    M(ROW, tokens_per_s, tokens_per_s, 1, METRIC_RATE, "null where the model has no tokens") \
    M(ROW, tokens_per_s_per_gpu, tokens_per_s_per_gpu, 1, METRIC_RATE, "tokens_per_s over the GPUs of the cluster, idle ones too (gpus_paid)") \
    M(ROW, given_work_s, given_work, 1, METRIC_TIME, \
      "forward and backward of one micro-batch through the whole model, where the scenario gives their times; else null") \
    M(ROW, model_tflops_per_gpu, model_flops_per_gpu, 1e12, METRIC_RATE, \
      "TFLOP/s that the mathematics of the model needs (model_flop); null where times are given") \
    M(ROW, hardware_tflops_per_gpu, hardware_flops_per_gpu, 1e12, METRIC_RATE, \
      "TFLOP/s that kernels compute (hardware_flop): also what is recomputed") \
    M(ROW, mfu, mfu, 1, METRIC_RATE, "model FLOP/s over the GPU's peak in the scenario's precision; a share") \
    M(ROW, hfu, hfu, 1, METRIC_RATE, "hardware FLOP/s over the same peak; a share") \
    M(ROW, bubble_fraction, bubble_fraction, 1, METRIC_SHARE, \
      "breakdown_s.bubble over iteration_time_s; GPipe on a free network: (p-1)/(m+p-1)") \
    M(ROW, bubble_overhead, bubble_overhead, 1, METRIC_SHARE, "bubble over compute; GPipe: (p-1)/m") \
    M(ROW, utilization, utilization, 1, METRIC_SHARE, "compute over iteration_time_s") \
    M(ROW, rank_span_s, rank_span, 1, METRIC_TIME, \
      "the longest from a rank's first work to the end of its last; null: asynchronous") \
    M(ROW, span_utilization, span_utilization, 1, METRIC_SHARE, "compute over rank_span_s") \
    M(ROW, reading_s, reading, 1, METRIC_TIME, \
      "of breakdown_s.bubble: the wait for the samples of an update (data.read), which no timeline has") \
    M(ROW, replica_wait_s, replica_wait, 1, METRIC_TIME, \
      "of breakdown_s.bubble: waits of ranks for the kernels of slower replicas, with which they exchange something") \
    M(ROW, exposed_communication_s, exposed_communication, 1, METRIC_TIME, \
      "the exposed kinds of breakdown_s but exposed_offload") \
    M(ROW, exposed_offload_s, seconds[ACCOUNT_EXPOSED_OFFLOAD], 1, METRIC_TIME, "breakdown_s.exposed_offload") \
    M(ROW, offload_bytes_per_gpu, offload_bytes_per_gpu, 1, METRIC_BYTES, "to the host and back, mean over GPUs") \
    M(ROW, forward_s, forward, 1, METRIC_TIME, "a micro-batch's forward in one stage, mean, with what its group exchanges") \
    M(ROW, backward_s, backward, 1, METRIC_TIME, "all that follows it on the way back: activation checkpointing too") \
    M(ROW, communication_bytes_per_gpu, communication_bytes_per_gpu, 1, METRIC_BYTES, "sent, mean over GPUs") \
    M(ROW, peak_memory_bytes, peak_memory, 1, METRIC_BYTES, "on one GPU, the largest of all ranks") \
    M(ROW, peak_reserved_bytes, peak_reserved, 1, METRIC_BYTES, \
      "the same without the CUDA context: PyTorch's max_memory_reserved") \
    M(ROW, peak_allocated_bytes, peak_allocated, 1, METRIC_BYTES, "and without fragmentation: max_memory_allocated") \
    M(ROW, fits_probability, fits, 1, METRIC_SHARE, \
      "that peak_memory_bytes fits into a GPU, by how far off published peaks are; null: times are given, or the limit is " \
      "not known") \
    M(ROW, expected_peak_memory_error_share, peaks[PEAK_DRIVER].within, 1, METRIC_SHARE, \
      "of peak_memory_bytes: 6 of 10 published peaks that a driver counted are nearer; null: times are given") \
    M(ROW, expected_peak_memory_error_share_p90, peaks[PEAK_DRIVER].most, 1, METRIC_SHARE, "the same: 9 of 10 are nearer") \
    M(ROW, expected_peak_reserved_error_share, peaks[PEAK_RESERVED].within, 1, METRIC_SHARE, \
      "the same of peak_reserved_bytes, 6 of 10") \
    M(ROW, expected_peak_reserved_error_share_p90, peaks[PEAK_RESERVED].most, 1, METRIC_SHARE, "9 of 10") \
    M(ROW, expected_peak_allocated_error_share, peaks[PEAK_ALLOCATED].within, 1, METRIC_SHARE, \
      "the same of peak_allocated_bytes, 6 of 10") \
    M(ROW, expected_peak_allocated_error_share_p90, peaks[PEAK_ALLOCATED].most, 1, METRIC_SHARE, "9 of 10") \
    M(ROW, energy_j, energy, 1, METRIC_TIME, \
      "of an iteration: all GPUs by what they do, and their nodes, times train.energy.pue, or 1.2; null: the GPU's file has no " \
      "power, nor has train.energy") \
    M(ROW, energy_error_share, energy_error, 1, METRIC_SHARE, \
      "of energy_j at most, without the time's own (expected_error_share): nodes differ, the power of GPUs that wait for others is " \
      "not known, and a facility takes up to 1.56 times its computers' where train.energy.pue says none; null: the scenario says all")
#define NAMED(ROW, key, member, in, of, brief) {#key, offsetof(struct metrics, member), in, of},
static const struct metric named[] = {METRICS(NAMED, )};

#define SAID(ROW, key, member, in, of, brief) ROW(key, json_finite(it->member / in), brief)
#define METRIC_ROWS(ROW) METRICS(SAID, ROW)
VIEW_SHARED(metrics_view, struct metrics, it, METRIC_ROWS)

const struct metric *metric_at(size_t index)
{
    return index < COUNT(named) ? &named[index] : NULL;
}

const struct metric *metric_find(const char *name)
{
    for (size_t i = 0; i < COUNT(named); i++)
        if (!strcmp(named[i].name, name))
            return &named[i];
    return NULL;
}

double metric_value(const struct metrics *of, const struct metric *metric)
{
    double value;

    memcpy(&value, (const char *)of + metric->offset, sizeof value);
    return value / metric->unit;
}
