/* What `memory:` means, and what does not go together. */
#include "scenario/scenario_internal.h"

#include <math.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "model/model.h"
#include "schedule/schedule.h"

/* Whether several backwards add to the same gradients: not where each ends with an update (PipeDream). */
static bool gradients_add_up(const struct scenario *scenario)
{
    const struct schedule *schedule = scenario_schedule(scenario);

    return scenario->plan.micro_batches > 1 && (!schedule->asynchronous || schedule->batches > 0);
}

struct parameter_bytes scenario_parameter_bytes(const struct scenario *scenario)
{
    struct precision_spec precision = scenario->memory.precision;

    /* whole gradients add up in the format in which they are sent (_fsdp_param.py: to_accumulated_grad_if_needed) */
    if (precision.gradients == GRADIENTS_WIDENED && scenario->recipe.gradients.once)
        precision.gradients = GRADIENTS_FP32;
    return precision_bytes(&precision, gradients_add_up(scenario));
}

bool scenario_says_precision(const struct scenario *scenario)
{
    return node_get(scenario->memory.node, "precision") != NULL;
}

/* The data sheet of a kind of GPU that has no rate in the format, or NULL. */
static const struct gpu *sheet_without(const struct cluster *cluster, enum dtype dtype)
{
    for (int kind = 0; kind < cluster_kinds(cluster); kind++) {
        int gpu = cluster_kind_gpu(cluster, kind);

        if (cluster_gpu_name(cluster, gpu) && gpu_rate(cluster_sheet(cluster, gpu), dtype) == 0)
            return cluster_sheet(cluster, gpu);
    }
    return NULL;
}

void scenario_settle_precision(struct scenario *scenario)
{
    const char *dtype = scenario->model.dtype;

    if (dtype && !strcmp(dtype, "bfloat16") && !scenario_says_precision(scenario) &&
        !sheet_without(&scenario->cluster, DTYPE_BF16))
        scenario->memory.precision.format = PRECISION_MIXED_BF16;
}

static bool says_blocks(const struct recompute_spec *recompute)
{
    return node_get(recompute->node, "blocks") != NULL;
}

unsigned recomputed_modules(const struct recompute_spec *recompute)
{
    const int *modules = recompute->modules.items;
    bool cheap = recompute->mode == RECOMPUTE_MODULES && !node_get(recompute->node, "modules");
    unsigned bits = cheap ? MODULES_CHEAP : 0;

    for (size_t i = 0; recompute->mode == RECOMPUTE_MODULES && i < recompute->modules.count; i++)
        bits |= 1u << modules[i];
    return bits;
}

bool recompute_is_partial(const struct recompute_spec *recompute)
{
    return says_blocks(recompute) || !isnan(recompute->share);
}

bool scenario_has_recomputations(const struct scenario *scenario)
{
    const struct recompute_spec *recompute = &scenario->memory.recompute;
    bool none = says_blocks(recompute) ? recompute->blocks == 0 : recompute->share == 0;

    /* layer by layer a recomputation is part of its backward */
    return recompute->mode == RECOMPUTE_FULL && !none && !scenario_by_layers(scenario);
}

/* Shares are spread as in IBM's fms-fsdp (policies/ac_handler.py): a half is the first block, the third, and so on. */
bool recompute_covers(const struct recompute_spec *recompute, int block)
{
    if (says_blocks(recompute))
        return block < recompute->blocks;
    return isnan(recompute->share) ||
           floor((block + 1) * recompute->share + 0.5) > floor(block * recompute->share + 0.5);
}

/* Keys that go with one mode only: `modules` with its list; `full` with which blocks, by one of these keys. */
static int check_blocks(const struct scenario *scenario, struct error *err)
{
    static const char *const keys[] = {"every", "blocks", "share"};
    const struct recompute_spec *recompute = &scenario->memory.recompute;
    const char *found = NULL;
    int rc = 0;

    if (node_get(recompute->node, "modules") && recompute->mode != RECOMPUTE_MODULES)
        rc = error_clash(err, node_loc(recompute->node, "modules"), "memory: recompute: modules goes with "
                         "'mode: modules' alone, found '%s'", recompute_names[recompute->mode]);
    for (size_t i = 0; i < COUNT(keys); i++) {
        struct loc loc = node_loc(recompute->node, keys[i]);

        if (!node_get(recompute->node, keys[i]))
            continue;
        if (recompute->mode != RECOMPUTE_FULL)
            rc = error_clash(err, loc, "memory: recompute: %s goes with 'mode: full' alone, found '%s'",
                             keys[i], recompute_names[recompute->mode]);
        else if (scenario->model.stages.count)
            rc = error_clash(err, loc, "memory: recompute: %s needs a model of layers; stages keep their "
                             "input alone", keys[i]);
        else if (found)
            rc = error_clash(err, loc, "memory: recompute: %s does not go with %s; expected one of them",
                             keys[i], found);
        found = keys[i];
    }
    return rc;
}

/* A checkpoint every few blocks goes with a recomputation block by block, right before its backward. */
static int check_every(const struct scenario *scenario, struct error *err)
{
    const struct recompute_spec *recompute = &scenario->memory.recompute;
    struct loc loc = node_loc(recompute->node, "every");

    if (recompute->every > 0 && scenario_schedule(scenario)->recompute != RECOMPUTE_WITH_GRADIENT)
        return error_clash(err, loc, "memory: recompute: every: %d does not go with %s, which recomputes a "
                           "whole stage ahead of its backward", recompute->every, scenario_schedule(scenario)->name);
    return 0;
}

/* PyTorch's non-reentrant checkpoint raises an exception when the last tensor that was saved is there again
 * (torch/utils/checkpoint.py; the default since pytorch/pytorch#96866, 2.1). Where blocks share a checkpoint, the next
 * one needs what comes behind. */
const char *memory_early_stop_fault(const struct scenario *scenario)
{
    const struct recompute_spec *recompute = &scenario->memory.recompute;
    const struct transformer *shape = scenario->model.transformer;

    if (recompute->mode != RECOMPUTE_FULL || recompute->every > 1 ||
        scenario_schedule(scenario)->recompute != RECOMPUTE_WITH_GRADIENT)
        return "blocks are computed again one by one, before their backwards, with 'mode: full' and 'every: 1' alone, "
               "and not under gpipe or varuna";
    if (!shape || shape->dropout > 0 || (shape->experts && shape->moe_every == 1 && !shape->dense_layers) ||
        precision_is_narrow(&scenario->memory.precision))
        return "has no effect here: only a transformer's dense blocks without dropout and fp8 end with a GEMM whose "
               "result no backward needs; leave it out";
    return NULL;
}

static int check_early_stop(const struct scenario *scenario, struct error *err)
{
    const struct recompute_spec *recompute = &scenario->memory.recompute;
    const char *fault = memory_early_stop_fault(scenario);

    if (!recompute->early_stop || !fault)
        return 0;
    return error_clash(err, node_loc(recompute->node, "early_stop"), "software: early_stop: %s",
                       fault);
}

bool scenario_offloads(const struct scenario *scenario, enum offload what)
{
    return list_has(&scenario->memory.offload, (int)what);
}

bool scenario_moves_activations(const struct scenario *scenario)
{
    return scenario_offloads(scenario, OFFLOAD_ACTIVATIONS) || scenario_offloads(scenario, OFFLOAD_TENSORS);
}

bool scenario_by_layers(const struct scenario *scenario)
{
    return scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL || scenario_moves_activations(scenario) ||
           scenario_offloads(scenario, OFFLOAD_WEIGHTS) || scenario_offloads(scenario, OFFLOAD_OPTIMIZER);
}

bool scenario_plans_memory(const struct scenario *scenario)
{
    int mode = scenario->memory.recompute.mode;

    return mode == RECOMPUTE_OPTIMAL || scenario_offloads(scenario, OFFLOAD_TENSORS) ||
           (mode != RECOMPUTE_FULL && scenario_offloads(scenario, OFFLOAD_ACTIVATIONS));
}

/* What needs the host: its links, and for an update there its rate. */
static int check_host(const struct scenario *scenario, struct error *err)
{
    const struct cluster *cluster = &scenario->cluster;
    bool known = true, updates = true;
    struct loc loc = node_loc(scenario->memory.node, "offload");
    int rc = 0;

    for (int kind = 0; kind < cluster_kinds(cluster); kind++) {
        known &= !isnan(cluster_host_bandwidth(cluster, cluster_kind_node(cluster, kind)));
        updates &= !isnan(cluster_host_update(cluster, cluster_kind_node(cluster, kind)));
    }
    if (scenario_offloads(scenario, OFFLOAD_NONE))
        return scenario->memory.offload.count == 1 ? 0 :
               error_add(err, EXIT_INPUT, loc, "memory: offload: 'none' and something else; expected one of the two");
    if (scenario_offloads(scenario, OFFLOAD_ACTIVATIONS) && scenario_offloads(scenario, OFFLOAD_TENSORS))
        rc = error_clash(err, loc, "memory: offload: tensors are those of the activations, chosen one by one; expected "
                         "'activations' or 'tensors'");
    if (!known)
        rc = error_clash(err, loc,
                         "memory: offload: the cluster says nothing of its hosts; add to it, for example: "
                         "'host: {bandwidth: 15.75 GB/s, latency: 10 us, memory: 1 TB, update: 4 B}'");
    if (scenario_offloads(scenario, OFFLOAD_OPTIMIZER) && known && !updates)
        rc = error_clash(err, loc,
                         "memory: offload: optimizer: the cluster does not say how fast a host updates parameters; add "
                         "for example 'host: {update: 4 B}', parameters a second of a node");
    if (scenario_offloads(scenario, OFFLOAD_OPTIMIZER) && scenario->memory.precision.optimizer != OPTIMIZER_ADAM)
        rc = error_clash(err, loc, "memory: offload: optimizer: a host's update rate is that of Adam; "
                         "expected 'optimizer: adam'");
    if (scenario_offloads(scenario, OFFLOAD_OPTIMIZER) && scenario->parallelism.data_parallel == DATA_PARALLEL_SERVER)
        rc = error_clash(err, loc, "memory: offload: optimizer: does not go with a parameter server, which "
                         "updates for all replicas; expected data_parallel ddp or synchronous");
    return rc;
}

/* Plans layer by layer: the keys that they exclude. */
static int check_by_layers(const struct scenario *scenario, struct error *err)
{
    const struct schedule *schedule = scenario_schedule(scenario);
    const struct memory_spec *memory = &scenario->memory;
    const struct order *order = scenario->parallelism.schedule.order;
    bool optimal = memory->recompute.mode == RECOMPUTE_OPTIMAL;
    bool offloads = !scenario_offloads(scenario, OFFLOAD_NONE);
    bool returns = scenario_moves_activations(scenario) || scenario_offloads(scenario, OFFLOAD_WEIGHTS);
    struct loc loc = node_loc(memory->node, optimal ? "recompute" : "offload");
    const char *what = optimal ? "recompute: optimal" : "offload";
    int rc = check_host(scenario, err);

    if (scenario->parallelism.context * scenario->parallelism.expert > 1 && returns)
        rc = error_clash(err, node_loc(memory->node, "offload"),
                         "memory: offload: activations, tensors and weights do not go with context or expert degrees, "
                         "whose GPUs meet in every layer and would wait for one another's copies; expected both 1, or "
                         "the optimizer alone");
    if (memory->logits == LOGITS_HELD)
        rc = error_clash(err, loc, "memory: %s: plans each layer's memory and knows of no logits that "
                         "outlive theirs; expected 'logits: freed'", what);
    if (plan_opportunistic(schedule, &scenario->plan))
        rc = error_clash(err, loc, "memory: %s: plans for a fixed order, %s with runtime: opportunistic "
                         "changes it", what, schedule->name);
    if ((scenario_offloads(scenario, OFFLOAD_OPTIMIZER) || scenario_offloads(scenario, OFFLOAD_WEIGHTS)) &&
        (scenario->parallelism.local_steps > 1 || scenario->parallelism.compression.method != COMPRESSION_NONE))
        rc = error_clash(err, loc, "memory: offload: weights and optimizer states go to the host after plain "
                         "sums of gradients; expected no compression, and local_steps: 1");
    if (schedule->asynchronous && offloads && !(memory->offload.count == 1 && scenario_moves_activations(scenario)))
        rc = error_clash(err, loc, "memory: offload: %s keeps several versions of its weights, which do not "
                         "leave the GPU; expected activations, or tensors, alone", schedule->name);
    if (memory->recompute.mode == RECOMPUTE_FULL && schedule->recompute != RECOMPUTE_WITH_GRADIENT)
        rc = error_clash(err, loc, "memory: offload: does not go with full activation checkpointing under %s, which "
                         "recomputes a whole stage ahead of its backward; try 'recompute: optimal'", schedule->name);
    if (schedule->recompute == RECOMPUTE_JUST_IN_TIME || (order && order->recomputes))
        rc = error_clash(err, loc, "memory: %s: plans what each layer recomputes, but %s recomputes whole "
                         "stages by itself; expected 'recompute: full' and 'offload: none', or another schedule", what,
                         schedule->name);
    if (memory->recompute.every > 1)
        rc = error_clash(err, loc, "memory: offload: does not go with a checkpoint every %d blocks; try "
                         "'recompute: optimal'", memory->recompute.every);
    if (scenario_plans_memory(scenario) && isinf(scenario_least_room(scenario)))
        rc = error_clash(err, loc, "memory: %s: plans for what a GPU may hold, and nothing says how much; "
                         "add 'limit: 80 GiB', or 'gpu' to the cluster", what);
    return rc;
}

/* A GPU without tensor cores for the format cannot multiply in it. Scales of 32 values are applied by tensor cores that
 * have nvfp4 too (Blackwell); before them only whole tensors and blocks of 128 values have scales. */
static int check_narrow(const struct scenario *scenario, struct error *err)
{
    struct loc loc = node_loc(scenario->memory.node, "precision");
    const struct gpu *gpu;
    enum dtype products = precision_products(&scenario->memory.precision);
    enum dtype needed = products == DTYPE_MXFP8 ? DTYPE_NVFP4 : products;
    static const char *const names[] = ENUM_NAMES(PRECISIONS);
    const char *name = names[scenario->memory.precision.format];
    const char *lacks = products == DTYPE_MXFP8 ? "mxfp8, as it has none in nvfp4" :
                        products == DTYPE_NVFP4 ? "nvfp4" : "fp8";

    if (!scenario->model.transformer)
        return error_clash(err, loc,
                           "memory: precision: %s needs a transformer; this model says nothing of "
                           "its GEMMs; try mixed-bf16",
                           name);
    if ((gpu = sheet_without(&scenario->cluster, needed)))
        return error_clash(err, loc, "memory: precision: %s: %s has no rate in %s; try %s", name, gpu->name,
                           lacks, gpu->peak.fp8 > 0 ? "mixed-fp8" : "mixed-bf16");
    if (scenario->memory.precision.fp8_weights == FP8_WEIGHTS_PRIMARY && scenario->parallelism.zero == 3)
        return error_clash(err, node_loc(scenario->memory.node, "fp8_weights"),
                           "software: fp8_weights: primary: does not go with zero 3, whose shares are in bf16; "
                           "expected kept or cast");
    return 0;
}

/* A remainder is what weights in bf16 lack of fp32, bit by bit. */
static int check_master(const struct scenario *scenario, struct error *err)
{
    const struct memory_spec *memory = &scenario->memory;
    bool narrow = precision_is_narrow(&memory->precision) && memory->precision.fp8_weights == FP8_WEIGHTS_PRIMARY;

    if (memory->precision.master == MASTER_REMAINDERS && (memory->precision.format == PRECISION_MIXED_FP16 || narrow))
        return error_clash(err, node_loc(memory->node, "master"),
                           "software: master: remainders: are the other half of weights in bf16, and these are in %s; "
                           "expected fp32 or half",
                           narrow ? dtype_names[precision_products(&memory->precision)] : "fp16");
    return 0;
}

static int check_saved(const struct scenario *scenario, struct error *err)
{
    const struct memory_spec *memory = &scenario->memory;
    const struct shard shard = {
        .saved = memory->saved,
        .recompute = (enum recompute)memory->recompute.mode,
        .lora = memory->lora,
        .recomputed = recomputed_modules(&memory->recompute),
        .formula = (enum activation_formula)memory->activations,
        .fp8 = precision_is_narrow(&memory->precision),
        .sequence_parallel = scenario->parallelism.sequence_parallel,
    };

    return saved_form_check(scenario->model.transformer, &shard, memory->node, err);
}

/* Megatron Core's layer-wise optimizer and DeepSpeed's ZeRO 1 and 2 hand out whole matrices; those that divide weights
 * (DeepSpeed's stage3.py, torchtitan's flex_shard, microsoft/dion) gather each matrix in ways of their own, which are
 * not simulated. */
static int check_muon(const struct scenario *scenario, struct error *err)
{
    const struct memory_spec *memory = &scenario->memory;
    const struct loc loc = node_loc(memory->node, "optimizer");
    int rc = 0;

    if (memory->precision.optimizer != OPTIMIZER_MUON)
        return 0;
    if (!scenario->model.transformer)
        rc = error_clash(err, loc, "memory: optimizer: muon: needs a transformer; this model says nothing of its "
                         "matrices");
    if (scenario->parallelism.zero == 3)
        rc = error_clash(err, loc, "memory: optimizer: muon: orthogonalizes whole matrices, and strategy: zero: 3 "
                         "divides them among replicas, whose gathers in an update are not simulated; expected zero 0 to 2");
    if (memory->precision.master == MASTER_REMAINDERS || memory->precision.master == MASTER_HALF)
        rc = error_clash(err, loc, "memory: optimizer: muon: no release has it with 'master: %s' (Megatron Core: the "
                         "precision-aware optimizer is Adam's); expected master fp32 or none",
                         memory->precision.master == MASTER_HALF ? "half" : "remainders");
    return rc;
}

int scenario_check_memory(const struct scenario *scenario, struct error *err)
{
    const struct memory_spec *memory = &scenario->memory;
    const struct transformer *shape = scenario->model.transformer;
    struct loc lora = node_loc(memory->node, "lora");
    const char *unlike = !shape ? NULL : shape->experts ? "experts" : shape->kv_rank ? "latent attention" : NULL;
    static scenario_rule *const rules[] = {check_blocks, check_every, check_early_stop, check_master, check_muon,
                                           check_saved};
    int rc = scenario_check(scenario, rules, COUNT(rules), err);

    if (memory->precision.gradients == GRADIENTS_CONVERTED && memory->precision.fused_accumulation)
        rc = error_clash(err, node_loc(memory->node, "fused_accumulation"),
                         "software: fused_accumulation: GEMMs that add to the fp32 sums leave nothing to convert; "
                         "expected 'gradients: fp32', or false");
    if (precision_is_narrow(&memory->precision) && check_narrow(scenario, err))
        rc = -1;
    if (scenario_by_layers(scenario) && check_by_layers(scenario, err))
        rc = -1;
    if (memory->lora && !shape)
        rc = error_clash(err, lora, "memory: lora: needs a transformer; this model says nothing of its GEMMs");
    if (memory->lora && unlike)
        rc = error_clash(err, lora, "memory: lora: does not say which GEMMs of %s have adapters; expected a dense model",
                         unlike);
    if (memory->lora && memory->lora->weights == LORA_WEIGHTS_NF4 && precision_is_narrow(&memory->precision))
        rc = error_clash(err, lora, "memory: lora: weights: nf4 are converted for GEMMs in 16 bits; expected mixed-bf16 or fp16");
    if (memory->activations == ACTIVATIONS_RAJBHANDARI && unlike)
        rc = error_clash(err, node_loc(memory->node, "activations"),
                         "memory: activations: rajbhandari counts a GPT's blocks and says nothing of %s; expected "
                         "korthikanti", unlike);
    if (precision_optimizer(&memory->precision).factored && shape && shape->experts)
        rc = error_clash(err, node_loc(memory->node, "optimizer"),
                         "memory: optimizer: adafactor does not know how experts' matrices are stacked; try adam");
    return rc;
}
