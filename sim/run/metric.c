#include "run/metrics.h"

#include <string.h>

#define METRIC(text, member, in, of) {text, offsetof(struct metrics, member), in, of}
static const struct metric metrics[] = {
    METRIC("iteration_time_s", iteration_time, 1, METRIC_TIME),
    METRIC("makespan_s", makespan, 1, METRIC_TIME),
    METRIC("samples_per_s", samples_per_s, 1, METRIC_RATE),
    METRIC("tokens_per_s", tokens_per_s, 1, METRIC_RATE),
    METRIC("model_tflops_per_gpu", model_flops_per_gpu, 1e12, METRIC_RATE),
    METRIC("hardware_tflops_per_gpu", hardware_flops_per_gpu, 1e12, METRIC_RATE),
    METRIC("mfu", mfu, 1, METRIC_RATE),
    METRIC("hfu", hfu, 1, METRIC_RATE),
    METRIC("bubble_fraction", bubble_fraction, 1, METRIC_SHARE),
    METRIC("bubble_overhead", bubble_overhead, 1, METRIC_SHARE),
    METRIC("utilization", utilization, 1, METRIC_SHARE),
    METRIC("rank_span_s", rank_span, 1, METRIC_TIME),
    METRIC("span_utilization", span_utilization, 1, METRIC_SHARE),
    METRIC("exposed_communication_s", exposed_communication, 1, METRIC_TIME),
    METRIC("exposed_offload_s", seconds[ACCOUNT_EXPOSED_OFFLOAD], 1, METRIC_TIME),
    METRIC("offload_bytes_per_gpu", offload_bytes_per_gpu, 1, METRIC_BYTES),
    METRIC("forward_s", forward, 1, METRIC_TIME),
    METRIC("backward_s", backward, 1, METRIC_TIME),
    METRIC("communication_bytes_per_gpu", communication_bytes_per_gpu, 1, METRIC_BYTES),
    METRIC("peak_memory_bytes", peak_memory, 1, METRIC_BYTES),
    METRIC("peak_reserved_bytes", peak_reserved, 1, METRIC_BYTES),
    METRIC("peak_allocated_bytes", peak_allocated, 1, METRIC_BYTES),
};

const struct metric *metric_at(size_t index)
{
    return index < COUNT(metrics) ? &metrics[index] : NULL;
}

const struct metric *metric_find(const char *name)
{
    for (size_t i = 0; i < COUNT(metrics); i++)
        if (!strcmp(metrics[i].name, name))
            return &metrics[i];
    return NULL;
}

double metric_value(const struct metrics *of, const struct metric *metric)
{
    double value;

    memcpy(&value, (const char *)of + metric->offset, sizeof value);
    return value / metric->unit;
}
