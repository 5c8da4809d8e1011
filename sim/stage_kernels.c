#include "stage_kernels.h"

#include <math.h>

#include "stage_memory.h"

/* What the kernels of one phase of a layer take of the GPU, and how often someone launches one. */
struct launched { double seconds, launches; };

static void add_kernel(struct stage_work *work, struct launched *sum, const struct scenario *scenario,
                       const struct kernel *kernel)
{
    struct cost cost = scenario_cost(scenario, kernel);

    sum->seconds += cost.seconds;
    sum->launches += kernel->launches;
    work->extrapolated += cost.extrapolated;
    work->flop += kernel->flop;
}

static struct launched phase_kernels(struct stage_work *work, const struct scenario *scenario,
                                     const struct layer *layer, enum phase phase, bool attention_core_only)
{
    struct launched sum = {0};

    for (size_t i = 0; i < layer->nkernels; i++)
        if (layer->kernels[i].phase == phase && (!attention_core_only || layer->kernels[i].attention_core))
            add_kernel(work, &sum, scenario, &layer->kernels[i]);
    return sum;
}

/* Those who launch kernels (an eager framework's host) may be slower than the GPU, or wait for it each time. */
static double launched_seconds(const struct scenario *scenario, struct launched kernels)
{
    double host = kernels.launches * scenario->costs.host_launch;

    return scenario->costs.launch_blocking ? kernels.seconds + host : fmax(kernels.seconds, host);
}

void stage_add_core(struct stage_work *work, const struct scenario *scenario, const struct layer *layer,
                    enum phase phase)
{
    work->seconds += launched_seconds(scenario, phase_kernels(work, scenario, layer, phase, true));
}

double stage_core_seconds(const struct scenario *scenario, const struct layer *layer, enum phase phase)
{
    struct stage_work attention = {0};

    stage_add_core(&attention, scenario, layer, phase);
    return attention.seconds;
}

static struct kernel traffic_kernel(const char *name, enum memory_class class, double bytes)
{
    return (struct kernel){.name = name, .kind = KERNEL_MEMORY, .class = class, .dtype = DTYPE_FP32, .launches = 1,
                           .bytes = bytes};
}

struct cost stage_traffic_cost(const struct scenario *scenario, const char *name, enum memory_class class, double bytes)
{
    struct kernel kernel = traffic_kernel(name, class, bytes);

    return bytes == 0 ? (struct cost){0} : scenario_cost(scenario, &kernel);
}

/* The layer's weight gradients join those of the batch: from ZeRO 2 on this GPU's share of them, after their sum. */
static void add_accumulation(struct stage_work *work, struct launched *sum, const struct scenario *scenario,
                             const struct layer *layer)
{
    double share = scenario->strategy.zero < 2 ? layer->parameters :
                   stage_share(scenario, layer->parameters, layer->expert_parameters);
    double bytes = share * scenario_parameter_bytes(scenario).accumulation;
    struct kernel kernel = traffic_kernel("accumulate", CLASS_OTHER, bytes);

    if (bytes > 0)
        add_kernel(work, sum, scenario, &kernel);
}

void stage_add_phase(struct stage_work *work, const struct scenario *scenario, const struct layer *layer,
                     enum phase phase)
{
    struct launched sum = phase_kernels(work, scenario, layer, phase, false);

    if (phase == PHASE_BACKWARD_WEIGHT)
        add_accumulation(work, &sum, scenario, layer);
    work->seconds += launched_seconds(scenario, sum);
}
