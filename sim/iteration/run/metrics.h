/* metrics: the numbers of an iteration, each defined here and read off the timeline alone (and off what the model's
 * mathematics needs). Averages are over ranks; a rank is one pipeline stage of one replica.
 * Every second of a rank is of one kind (account.h), so that for every rank, and for the averages,
 *     compute + exposed communication + exposed offload + bubble = iteration time.
 */
#ifndef DTSIM_METRICS_H
#define DTSIM_METRICS_H

#include "evidence/anchor.h"
#include "lower/lower.h"
#include "run/account.h"
#include "stage/memory.h"

struct rank_metrics {
    double seconds[ACCOUNT_KIND_COUNT];
    double exposed_communication;    /* s, of all kinds */
    double replica_wait;             /* s of bubble: waits for kernels of other replicas */
    double offloaded;                /* B by each GPU of the rank to the host and from there */
    double sent[PAYLOAD_COUNT];      /* B by each GPU of the rank */
    double peak_activation;          /* B: the most that is kept for backwards */
    struct memory memory;            /* B, when the rank holds most */
    double peak_memory;              /* B: their sum */
};

struct metrics {
    struct window window;
    double makespan;                 /* s: from the first operation to the end of the last */
    double iteration_time;           /* s: the window over its updates; of replays with several seeds the median */
    double iteration_time_p10, iteration_time_p90;   /* s: quantiles of all of these; NaN: there is one replay */
    double lockstep;                 /* s: the same of the replay without differences, where iteration_time is the median of
                                      * several with jitter (lockstep.h), whose quantiles are those above; NaN: it is not */
    double samples;                  /* an update trains on */
    double samples_per_s;            /* samples an update / iteration time */
    double tokens_per_s;             /* samples_per_s * sequence; NaN: no tokens */
    double tokens_per_s_per_gpu;     /* that, over all GPUs of the scenario */
    double model_flop, hardware_flop;    /* whole model, an iteration; hardware: also recomputed; NaN: given times */
    double given_work;               /* s of forward and backward of a micro-batch in all virtual stages, as the scenario
                                      * gives them; NaN: it gives no times */
    double model_flops_per_gpu;      /* FLOP/s: model_flop / iteration time / GPUs */
    double hardware_flops_per_gpu;
    double mfu, hfu;                 /* these over the GPU's peak in the scenario's precision */
    double bubble_fraction;          /* mean bubble / iteration time; GPipe on a free network: (P-1)/(M+P-1) */
    double bubble_overhead;          /* mean bubble / mean compute; GPipe: (P-1)/M */
    double utilization;              /* mean compute / iteration time */
    double rank_span;                /* s: the longest that a rank takes from its first work to the end of its last:
                                      * what a step takes where ranks go on to the next without waiting for others (Qi
                                      * et al. 2023, section 4); NaN: asynchronous */
    double span_utilization;         /* mean compute / rank_span: 1 less the bubble rate of Qi et al., section 5.3 */
    double exposed_communication;    /* s, mean, of all kinds */
    double offload_bytes_per_gpu;    /* B to the host and back, mean over GPUs */
    double communication_bytes_per_gpu;  /* B sent, mean over GPUs */
    double sent[PAYLOAD_COUNT];      /* of these, what they are */
    double peak_memory;              /* B on the fullest GPU: on the rank that leaves the least room */
    double peak_room;                /* B that this GPU may hold; INFINITY: not known */
    double peak_reserved;            /* of these, without the context: what the framework's allocator took of the
                                      * device (PyTorch's max_memory_reserved) */
    double peak_allocated;           /* and without fragmentation: what it gave out (max_memory_allocated) */
    int peak_rank;
    double seconds[ACCOUNT_KIND_COUNT];  /* mean; they add up to the iteration time */
    double reading;                  /* s of bubble: waits for the samples of an update (data.read), which no timeline has */
    double replica_wait;             /* s of bubble, mean: waits for kernels of slower replicas (account_awaits_replica) */
    double imbalance;                /* s of bubble, less the bubble with mean stage times (WHAT_IF_BALANCED); it can be
                                      * negative; NaN: not asked for (simulate_options.causes) */
    double jitter;                   /* s of iteration_time, less that without jitter; NaN as above */
    double stated_error;             /* share of iteration_time: the profile's mean error on kernels held out of its
                                      * fit, on the kernels that it times; NaN: it states none, or there is none */
    double expected_error;           /* share of iteration_time (evidence_expect); NaN: certainty_unlike, or no evidence */
    double expected_longer;          /* share of the evidence that was longer than predicted; NaN: there is none */
    double expected_alike;           /* share of the evidence that is of runs alike; NaN: the same */
    double expected_ratio;           /* share of the ratio to another configuration (evidence_expect_ratio); NaN: the same */
    double expected_ratio_most;
    struct peak_expectation peaks[PEAK_KIND_COUNT];      /* shares of the peaks; NaN: times are given, or no evidence */
    double fits;                     /* the probability that it fits; NaN: the same, or the limit is not known */
    double power;                    /* W, mean, of all GPUs and their nodes; NaN: not known (run/energy.h) */
    double energy_error;             /* share of `energy` that it may be off but for the time's own error (energy_error); NaN: 0, or not known */
    double energy;                   /* J of an iteration: power * iteration time * the facility's share (PUE); NaN: the same */
    struct {                         /* by anchors (certainty_anchor); all NaN: there are none */
        double used;                 /* how many were alike */
        double factor;               /* all times are those simulated times this */
        double classes[ANCHOR_CLASSES];
        double time;                 /* s, the iteration as it was simulated */
        double same;                 /* 1: one of them is this run; 0 */
    } anchored;
    double forward, backward;        /* s: a micro-batch's way through one stage, mean, with its group's collectives;
                                        backward is all but the forward and the update: recomputation too */
    struct memory memory;            /* B, of peak_rank */
    double extrapolated;             /* s of compute, mean over ranks, on kernels unlike the samples */
    struct cost_bases bases;         /* s of kernels, mean over ranks, by what their times stand on; what else compute
                                      * takes is launches by the host */
    struct rank_metrics *ranks;      /* one a program rank */
    int nranks;
};

void metrics_init(struct metrics *metrics, const struct workload *workload, const struct timeline *timeline);
/* Metrics of time only: where it went, not bytes, FLOPs or memory. */
void metrics_init_seconds(struct metrics *metrics, const struct workload *workload, const struct timeline *timeline);
/* Metrics of memory only (`ranks` have no others), of the first replica's ranks, from rows without a timeline. */
void metrics_init_memory(struct metrics *metrics, const struct workload *workload);
/* iteration_time alone. */
double metrics_iteration_time(const struct workload *workload, const struct timeline *timeline);
void metrics_release(struct metrics *metrics);

/* The metrics by name, as result.json has them. */
struct metric {
    const char *name;
    size_t offset;                   /* of the double in struct metrics */
    double unit;                     /* of what is printed, in SI units */
    enum { METRIC_TIME, METRIC_RATE, METRIC_SHARE, METRIC_BYTES } kind;    /* RATE: work per iteration time */
};
const struct metric *metric_at(size_t index);                 /* NULL past the last */
const struct metric *metric_find(const char *name);           /* NULL: there is none */
double metric_value(const struct metrics *metrics, const struct metric *metric);    /* in its unit; NaN: undefined */
extern const struct view metrics_view;                        /* the same with their meaning (view/view.h) */

#endif
