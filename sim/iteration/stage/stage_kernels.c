#include "stage/stage_kernels.h"
#include "stage/stage_exchange.h"

#include <math.h>

#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "kernels/cost.h"
#include "kernels/costs.h"
#include "kernels/newton_schulz.h"
#include "model/model.h"
#include "scenario/recipe.h"
#include "scenario/scenario.h"
#include "stage/stage_memory.h"

/* The kernels of one phase of a layer: s on the GPU, and the number of launches. */
struct launched { double seconds, launches; };

enum part { PART_ALL, PART_CORE, PART_NEEDED, PART_RECOMPUTED };

static bool in_part(const struct operator *op, enum part part)
{
    return part == PART_ALL || (part == PART_CORE       ? op->modules >> MODULE_CORE & 1 :
                                part == PART_RECOMPUTED ? op->again :
                                                          !op->ends);
}

static void note_dispatching(struct dispatching_times *times, const struct operator *op, const struct kernel *kernel,
                             double seconds)
{
    if (kernel->kind == KERNEL_MATMUL && op->modules >> MODULE_SHARED & 1)
        times->shared += seconds;
    *(op->half == HALF_ATTENTION ? &times->before : &times->others) += seconds;
}

/* Adds a kernel of an operator; returns its seconds. */
static double add_kernel(struct work_cost *work, struct launched *sum, const struct kernel_costs *costs,
                         const struct operator *op, const struct kernel *kernel)
{
    struct cost cost = costs_kernel(costs, kernel);

    sum->seconds += cost.seconds;
    if (costs->graphs != GRAPHS_ATTENTION || op->half != HALF_ATTENTION)
        sum->launches += kernel->launches * fmax(1, kernel->parts);
    work_times_note(&work->times, &cost);
    work->counts.flop += kernel_whole_flop(kernel);
    return cost.seconds;
}

static struct launched phase_kernels(struct work_cost *work, const struct kernel_costs *costs, const struct layer *layer,
                                     enum phase phase, enum part part)
{
    bool dispatches = layer_dispatches(layer);
    struct launched sum = {0};

    for (size_t i = 0; i < layer->noperators; i++) {
        const struct operator *op = &layer->operators[i];

        for (size_t k = op->first; in_part(op, part) && k < op->first + op->nkernels; k++)
            if (layer->kernels[k].phase == phase) {
                double seconds = add_kernel(work, &sum, costs, op, &layer->kernels[k]);

                if (dispatches)
                    note_dispatching(&work->times.dispatching, op, &layer->kernels[k], seconds);
            }
    }
    return sum;
}

/* The host of an eager framework may launch kernels more slowly than the GPU runs them, or wait for each kernel. Kernels
 * that a CUDA graph has recorded it launches all at once. */
static void add_launched(struct work_cost *work, const struct kernel_costs *costs, struct launched kernels)
{
    double host = costs->graphs == GRAPHS_ITERATION ? 0 : kernels.launches * costs->host_launch;
    double starved = costs->launch_blocking ? 0 : fmax(0, host - kernels.seconds);

    work->times.seconds += costs->launch_blocking ? kernels.seconds + host : fmax(kernels.seconds, host);
    work->times.starved += starved;
}

void stage_add_core(struct work_cost *work, const struct kernel_costs *costs, const struct layer *layer,
                    enum phase phase)
{
    add_launched(work, costs, phase_kernels(work, costs, layer, phase, PART_CORE));
}

void stage_add_needed(struct work_cost *work, const struct kernel_costs *costs, const struct layer *layer)
{
    add_launched(work, costs, phase_kernels(work, costs, layer, PHASE_FORWARD, PART_NEEDED));
}

void stage_add_recomputed(struct work_cost *work, const struct kernel_costs *costs, const struct layer *layer)
{
    add_launched(work, costs, phase_kernels(work, costs, layer, PHASE_FORWARD, PART_RECOMPUTED));
}

double stage_core_seconds(const struct kernel_costs *costs, const struct layer *layer, enum phase phase)
{
    struct work_cost attention = {0};

    stage_add_core(&attention, costs, layer, phase);
    return attention.times.seconds - attention.times.starved;
}

/* Adds the layer's weight gradients to the batch's; from ZeRO 2 on this GPU's share, after the replicas' sum. */
static void add_accumulation(struct work_cost *work, struct launched *sum, const struct scenario *scenario,
                             const struct kernel_costs *costs, const struct layer *layer)
{
    double share = recipe_share(&scenario->recipe, HELD_GRADIENTS, layer_trained(scenario, layer));
    double bytes = share * scenario_parameter_bytes(scenario).accumulation;
    struct cost cost = costs_traffic(costs, "accumulate", CLASS_OTHER, bytes);

    sum->seconds += cost.seconds;
    sum->launches += bytes > 0;
    work_times_note(&work->times, &cost);
}

/* Under ZeRO 3 the layer's weight gradients are copied into one flat tensor, before they are scattered; where that is
 * once an update, around_sums does. */
static void add_flattening(struct work_cost *work, struct launched *sum, const struct scenario *scenario,
                           const struct kernel_costs *costs, const struct layer *layer)
{
    struct parameter_bytes each = scenario_parameter_bytes(scenario);
    double parameters = recipe_exchanged(scenario, layer_trained(scenario, layer));
    struct cost cost;

    if (scenario->recipe.gradients.unit != SUM_LAYERS || scenario->recipe.gradients.once ||
        scenario_replicas(scenario) == 1)
        return;
    cost = costs_traffic(costs, "flatten", CLASS_OTHER, parameters * each.flattening);
    sum->seconds += cost.seconds;
    sum->launches += parameters == 0 ? 0 : each.sent > each.weights ? 3 : 2;
    work_times_note(&work->times, &cost);
}

void stage_add_phase(struct work_cost *work, const struct scenario *scenario, const struct kernel_costs *costs,
                     const struct layer *layer, enum phase phase)
{
    struct launched sum = phase_kernels(work, costs, layer, phase, PART_ALL);

    if (phase == PHASE_BACKWARD_WEIGHT) {
        add_flattening(work, &sum, scenario, costs, layer);
        add_accumulation(work, &sum, scenario, costs, layer);
    }
    add_launched(work, costs, sum);
}

/* Seconds of the loss's kernels for the outputs of `replicas` replicas. */
static double loss_seconds(const struct kernel_costs *costs, const struct layer *layer, enum phase phase, int replicas)
{
    double seconds = 0;

    for (size_t i = 0; i < layer->noperators; i++) {
        const struct operator *op = &layer->operators[i];

        for (size_t k = op->first; op->loss && k < op->first + op->nkernels; k++) {
            struct kernel kernel = layer->kernels[k];

            kernel.bytes *= replicas;
            kernel.unvectorized *= replicas;
            seconds += kernel.phase == phase ? costs_kernel(costs, &kernel).seconds : 0;
        }
    }
    return seconds;
}

struct loss_times stage_loss(const struct scenario *scenario, const struct kernel_costs *costs,
                             const struct layer *last)
{
    int n = scenario_replicas(scenario);

    return (struct loss_times){
        .forward = loss_seconds(costs, last, PHASE_FORWARD, 1),
        .backward = loss_seconds(costs, last, PHASE_BACKWARD_INPUT, 1),
        .all_forward = loss_seconds(costs, last, PHASE_FORWARD, n),
        .all_backward = loss_seconds(costs, last, PHASE_BACKWARD_INPUT, n),
    };
}

/* After an update: reads the blocks' weights that it changed, and writes them in the products' format, as they are and
 * transposed. Frozen ones stay as they were cast once. */
static struct cost kept_casts(const struct precision_spec *precision, const struct kernel_costs *costs,
                              const struct stage *stage)
{
    double parameters = 0;

    if (!precision_is_narrow(precision) || precision->fp8_weights == FP8_WEIGHTS_CAST)
        return (struct cost){0};
    for (size_t i = 0; i < stage->nslices; i++)
        if (stage->slices[i].block)
            parameters += stage->slices[i].parameters;
    return costs_traffic(
        costs, "cast-weights", CLASS_COPY,
        parameters * (dtype_bytes(precision_dtype(precision)) + 2 * dtype_scaled_bytes(precision_products(precision))));
}

/* What kernels read and write around the sums of a stage's gradients between two updates (zero_grad_buffer, division by
 * the number of replicas, copies into buckets and back), where no layer's are scattered by themselves. ZeRO 3 that
 * scatters once flattens each layer's then. */
static struct cost around_sums(const struct scenario *scenario, const struct kernel_costs *costs,
                               const struct stage *stage)
{
    enum sum_unit unit = scenario->recipe.gradients.unit;
    bool sums = unit == SUM_BUCKETS || unit == SUM_TENSORS || unit == SUM_STAGES || scenario->recipe.gradients.once;
    double gradients = sums ? recipe_exchanged(scenario, stage->trained) : 0;
    int often = scenario->recipe.gradients.every ? scenario->plan.micro_batches : 1;

    struct parameter_bytes each = scenario_parameter_bytes(scenario);
    bool flattens = scenario->recipe.gradients.once && scenario->recipe.weights.when == WEIGHTS_LAYER;
    double bytes = flattens ? each.flattening : each.sent * scenario->memory.gradient_accesses;

    return costs_traffic(costs, "around-sums", CLASS_OTHER, gradients * often * bytes);
}

static bool orthogonalizes(const struct scenario *scenario)
{
    return scenario->memory.precision.optimizer == OPTIMIZER_MUON;
}

void stage_matrices(const struct scenario *scenario, const struct stage *stage, enum parameter_class class,
                    struct matrices *matrices)
{
    *matrices = (struct matrices){0};
    for (size_t i = 0; orthogonalizes(scenario) && i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];

        for (size_t k = 0; slice->block && slice->layer && k < slice->ntensors; k++)
            if (slice_class(slice, k) == class)
                matrices_add(matrices, &slice->layer->matrices[k]);
    }
}

static struct orthogonalization orthogonalization_of(const struct scenario *scenario, const struct matrix *matrix)
{
    const struct precision_spec *precision = &scenario->memory.precision;
    const struct parallelism *spec = &scenario->parallelism;

    return (struct orthogonalization){
        .tensor = matrix->expert && spec->expert_tensor ? spec->expert_tensor : scenario_most_tensor(scenario),
        .mode = (enum muon_tensor)precision->muon_tensor, .method = (enum newton_schulz)precision->newton_schulz,
        .dtype = precision->format == PRECISION_MIXED_FP16 ? DTYPE_FP16 : DTYPE_BF16,
        .split = precision->muon_split_qkv, .value = precision_optimizer(precision).matrix,
    };
}

/* The matrices that the slowest replica updates: all, or from ZeRO 1 on the matrices that it owns. */
static struct matrices matrices_updated(const struct scenario *scenario, const struct stage *stage,
                                        enum parameter_class class)
{
    struct matrices all;
    struct owned_matrices owned;

    stage_matrices(scenario, stage, class, &all);
    matrices_owned(&all, scenario->recipe.divided[HELD_STATES][class], &owned);
    return owned.slowest;
}

void stage_exchange_matrices(const struct scenario *scenario, struct exchange_list *list, struct stage *stage)
{
    for (enum parameter_class class = 0; orthogonalizes(scenario) && class < PARAMETER_CLASS_COUNT; class++) {
        struct matrices matrices = matrices_updated(scenario, stage, class);

        for (size_t i = 0; i < matrices.count; i++) {
            struct orthogonalization how = orthogonalization_of(scenario, &matrices.items[i]);
            struct matrix one = matrices.items[i];
            struct orthogonal_exchanges own;

            one.count = 1;
            own = newton_schulz_exchanges(&one, &how);
            if (own.count > 0)
                stage->work[UPDATE].exchanges[exchange_matrix(list, own.bytes / own.count)] +=
                    (int)(own.count * matrices.items[i].count);
        }
    }
}

/* Adds Muon's kernels for matrices of one class. The host's launches are left out, as in any update: costs.host_launch
 * is what a kernel of a model's module takes the host. */
static void update_matrices(const struct scenario *scenario, const struct kernel_costs *costs,
                            const struct matrices *matrices, struct work_times *update)
{
    double traffic = scenario_parameter_bytes(scenario).matrix_traffic * matrices_elements(matrices);
    struct cost cost = costs_traffic(costs, "update-matrices", CLASS_OTHER, traffic);

    update->seconds += cost.seconds;
    work_times_note(update, &cost);
    for (size_t i = 0; i < matrices->count; i++) {
        struct kernel kernels[MATRIX_PARTS * NEWTON_SCHULZ_KERNELS];
        struct orthogonalization how = orthogonalization_of(scenario, &matrices->items[i]);
        size_t count;

        if (how.dtype == DTYPE_BF16 && costs->model.gpu && costs->model.gpu->peak.bf16 <= 0)
            how.dtype = DTYPE_FP16;
        count = newton_schulz_kernels(&matrices->items[i], &how, kernels);
        for (size_t k = 0; k < count; k++) {
            if (kernels[k].launches == 0)
                continue;
            cost = costs_kernel(costs, &kernels[k]);
            update->seconds += cost.seconds;
            work_times_note(update, &cost);
        }
    }
}

/* Elements that an element-wise optimizer updates: all, or those that are in no matrix. */
static struct by_class elementwise(const struct scenario *scenario, const struct stage *stage)
{
    struct by_class elements = stage->trained;

    for (enum parameter_class class = 0; orthogonalizes(scenario) && class < PARAMETER_CLASS_COUNT; class++) {
        struct matrices matrices;

        stage_matrices(scenario, stage, class, &matrices);
        elements.of[class] -= matrices_elements(&matrices);
    }
    return elements;
}

/* From ZeRO 1 on a replica updates only its share. Averaged weights are read, and written to the fp32 copy. */
void stage_update(const struct scenario *scenario, const struct kernel_costs *costs, const struct stage *stage,
                  struct stage_times *times)
{
    struct parameter_bytes each = scenario_parameter_bytes(scenario);
    double share = recipe_share(&scenario->recipe, HELD_STATES, elementwise(scenario, stage));
    struct cost update = costs_traffic(costs, "update", CLASS_ADAM, share * each.update_traffic);
    struct cost casts = kept_casts(&scenario->memory.precision, costs, stage);
    struct cost around = around_sums(scenario, costs, stage);

    times->update.seconds = update.seconds + casts.seconds + around.seconds;
    for (enum parameter_class class = 0; orthogonalizes(scenario) && class < PARAMETER_CLASS_COUNT; class++) {
        struct matrices matrices = matrices_updated(scenario, stage, class);

        if (matrices.count)
            update_matrices(scenario, costs, &matrices, &times->update);
    }
    work_times_note(&times->update, &update);
    work_times_note(&times->update, &around);
    work_times_note(&times->update, &casts);
    times->averaging =
        costs_traffic(costs, "average", CLASS_OTHER, stage->parameters * (each.weights + 4)).seconds;
}
