/* The rules of `memory:` and `costs:`: what does not go together, and what changes nothing. A row has the key, when it is
 * broken, and what is wrong; scenario_parts.c explains the facts. */
#include "scenario/scenario_internal.h"

#include "base/base.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "model/model.h"

#define NO_HEAD "the model has no head, and so no logits; expected a transformer with one"
#define NO_LOGITS "this model says nothing of its logits; expected a transformer"
#define NO_MUON "no matrix is orthogonalized; expected 'optimizer: muon'"
#define NOT_MUON " && memory.optimizer != 'muon'"
#define OF_TIMES(key, default) \
    {"costs." key, RULE_IDLE, "timed && costs." key " != " default, \
     "this model's times are given, not computed; expected a transformer, or layers by their FLOPs", NULL}
static const struct rule idle_memory_list[] = {
    {"memory.gradients", RULE_IDLE, "memory.gradients != 'half' && !mixed",
     "without mixed precision all gradients are fp32; expected 'precision: mixed-bf16' or the like beside it", NULL},
    {"memory.master", RULE_IDLE, "memory.master != 'fp32' && !mixed",
     "without mixed precision weights are fp32 themselves; expected 'precision: mixed-bf16' or the like beside it", NULL},
    {"memory.recompute", RULE_IDLE, "memory.recompute == 'selective' && !transformer",
     "selective recomputes the core of attention, which this model does not tell of; expected a transformer, or 'recompute: "
     "full'", NULL},
    {"memory.recompute", RULE_IDLE, "memory.recompute == 'operators' && (!transformer || experts > 0 || latent || mixers || two_sides || memory.lora || "
     "strategy.context > 1 || memory.activations != 'korthikanti')",
     "operators tells the GEMMs of dense blocks apart; expected a transformer without experts, latent attention, mixers, encoder and LoRA, "
     "context 1, and 'activations: korthikanti'", NULL},
    {"memory.recompute", RULE_IDLE,
     "memory.recompute == 'modules' && (!transformer || memory.activations != 'korthikanti')",
     "modules are parts of a transformer's blocks; expected a transformer, and 'activations: korthikanti'", NULL},
    {"memory.recompute", RULE_IDLE, "(recomputes_experts || recomputes_shared) && experts == 0",
     "this model has no experts; expected 'model.transformer.experts', or other modules", NULL},
    {"memory.activations", RULE_IDLE, "memory.activations != 'korthikanti' && !transformer",
     "this model says itself what it keeps; expected a transformer", NULL},
    {"memory.cross_entropy", RULE_IDLE, "memory.cross_entropy != 'fp32' && transformer && !head", NO_HEAD, NULL},
    {"memory.cross_entropy", RULE_IDLE, "memory.cross_entropy != 'fp32' && !transformer", NO_LOGITS, NULL},
    {"memory.logits", RULE_IDLE, "memory.logits != 'freed' && transformer && !head", NO_HEAD, NULL},
    {"memory.logits", RULE_IDLE, "memory.logits != 'freed' && !transformer", NO_LOGITS, NULL},
    {"memory.logits", RULE_IDLE, "memory.logits != 'freed' && memory.cross_entropy == 'chunked'",
     "a chunked loss never holds all logits; expected 'freed', or another 'cross_entropy'", NULL},
    {"costs.attention", RULE_VALUES, "costs.attention == 'eager' && transformer && model.transformer.flash_attention",
     "eager, but 'flash_attention: true' is fused; expected one of them", NULL},
    {"model.transformer.autocast", RULE_IDLE, "transformer && model.transformer.autocast && !mixed",
     "without mixed precision nothing is cast; expected 'precision: mixed-bf16' or the like beside it", NULL},
    {"model.transformer.attention_format", RULE_IDLE,
     "transformer && model.transformer.attention_format != 'half' && !model.transformer.flash_attention",
     "attention that is not fused has 16 bits; expected 'flash_attention: true' beside it", NULL},
    {"model.transformer.attention_format", RULE_IDLE,
     "transformer && model.transformer.attention_format != 'half' && !narrow",
     "frameworks have it beside GEMMs in 8 bits or fewer; expected 'precision: mixed-fp8' or the like", NULL},
    {"memory.fused_accumulation", RULE_IDLE, "memory.fused_accumulation && timed",
     "this model's times are given whole; expected a transformer, or layers by their FLOPs", NULL},
    {"memory.dummy_gradients", RULE_IDLE,
     "memory.dummy_gradients != 'none' && (!transformer || !memory.fused_accumulation)",
     "they are of GEMMs that add to gradients themselves; expected a transformer, and 'fused_accumulation: true'", NULL},
    {"memory.fused_optimizer", RULE_IDLE, "!memory.fused_optimizer && memory.optimizer != 'adam' && "
     "memory.optimizer != 'adam-half'" NOT_MUON,
     "the operations of other optimizers are not known one by one; expected 'optimizer: adam' or 'adam-half'", NULL},
    {"memory.muon_tensor", RULE_IDLE,
     "memory.muon_tensor != 'duplicated' && (memory.optimizer != 'muon' || strategy.tensor == 1)",
     "no matrix is divided and orthogonalized; expected 'optimizer: muon' and a tensor degree above 1", NULL},
    {"memory.muon_split_qkv", RULE_IDLE, "!memory.muon_split_qkv" NOT_MUON, NO_MUON, NULL},
    {"memory.newton_schulz", RULE_IDLE, "memory.newton_schulz != 'standard'" NOT_MUON, NO_MUON, NULL},
    {"memory.bucket_copies", RULE_IDLE, "memory.bucket_copies && strategy.data_parallel != 'ddp'",
     "buckets are DDP's; expected 'data_parallel: ddp' with it", NULL},
    OF_TIMES("profile", "''"), OF_TIMES("attention", "'newest'"), OF_TIMES("launch_blocking", "false"),
    OF_TIMES("cuda_graphs", "'none'"), OF_TIMES("unaligned_batches", "'tensor-cores'"),
};
const struct rules idle_memory_rules = RULES("idle memory", idle_memory_list);

/* A GPU without tensor cores for the format cannot multiply in it. Scales of 32 values are applied by tensor cores that have
 * nvfp4 too (Blackwell); before them only whole tensors and blocks of 128 values have scales. */
static const char *narrow_fault(struct arena *arena, const void *of)
{
    const struct scenario *scenario = of;
    enum dtype products = precision_products(&scenario->memory.precision);
    const struct gpu *gpu = scenario_sheet_without(scenario, products == DTYPE_MXFP8 ? DTYPE_NVFP4 : products);
    static const char *const names[] = ENUM_NAMES(PRECISIONS);

    return !gpu ? NULL :
           arena_printf(arena, "%s: %s has no rate in %s; try %s", names[scenario->memory.precision.format], gpu->name,
                        products == DTYPE_MXFP8 ? "mxfp8, as it has none in nvfp4" : products == DTYPE_NVFP4 ? "nvfp4" : "fp8",
                        gpu->peak.fp8 > 0 ? "mixed-fp8" : "mixed-bf16");
}

/* Which blocks are recomputed, by one of three keys. */
#define OF_BLOCKS(key) \
    {"memory.recompute @ memory.recompute." key, RULE_VALUES, \
     "said.memory.recompute." key " && memory.recompute != 'full'", \
     key " goes with 'mode: full' alone, found '${memory.recompute}'", NULL}, \
    {"memory.recompute @ memory.recompute." key, RULE_VALUES, \
     "said.memory.recompute." key " && memory.recompute == 'full' && model_stages > 0", \
     key " needs a model of layers; stages keep their input alone", NULL}
#define ONE_KEY(key, other) \
    {"memory.recompute @ memory.recompute." key, RULE_VALUES, "said.memory.recompute." key " && said.memory.recompute." other \
     " && memory.recompute == 'full' && model_stages == 0", key " does not go with " other "; expected one of them", NULL}
/* Plans layer by layer (recompute: optimal, offload), and the keys that they exclude. */
#define LAYERS "memory @ memory.offload memory.recompute"
static const struct rule memory_list[] = {
    {"memory.recompute @ memory.recompute.modules", RULE_VALUES, "said.memory.recompute.modules && memory.recompute != 'modules'",
     "modules goes with 'mode: modules' alone, found '${memory.recompute}'", NULL},
    OF_BLOCKS("every"), OF_BLOCKS("blocks"), OF_BLOCKS("share"),
    ONE_KEY("blocks", "every"), ONE_KEY("share", "every"), ONE_KEY("share", "blocks"),
    /* A checkpoint every few blocks goes with a recomputation block by block, right before its backward. */
    {"memory.recompute.every", RULE_VALUES, "memory.recompute.every > 0 && !with_gradient",
     "${memory.recompute.every} does not go with ${schedule}, which recomputes a whole stage ahead of its backward", NULL},
    /* A remainder is what weights in bf16 lack of fp32, bit by bit. */
    {"memory.master", RULE_VALUES, "memory.master == 'remainders' && memory.precision == 'mixed-fp16'",
     "remainders: are the other half of weights in bf16, and these are in fp16; expected fp32 or half", NULL},
    {"memory.master", RULE_VALUES, "memory.master == 'remainders' && narrow && memory.fp8_weights == 'primary'",
     "remainders: are the other half of weights in bf16, and these are in ${products}; expected fp32 or half", NULL},
    /* Megatron Core's layer-wise optimizer and DeepSpeed's ZeRO 1 and 2 hand out whole matrices; those that divide weights
     * (DeepSpeed's stage3.py, torchtitan's flex_shard, microsoft/dion) gather each matrix in ways of their own, which are not
     * simulated. */
    {"memory.optimizer", RULE_VALUES, "memory.optimizer == 'muon' && !transformer",
     "muon: needs a transformer; this model says nothing of its matrices", NULL},
    {"memory.optimizer", RULE_VALUES, "memory.optimizer == 'muon' && strategy.zero == 3",
     "muon: orthogonalizes whole matrices, and strategy: zero: 3 divides them among replicas, whose gathers in an update are not "
     "simulated; expected zero 0 to 2", NULL},
    {"memory.optimizer", RULE_VALUES, "memory.optimizer == 'muon' && (memory.master == 'remainders' || memory.master == 'half')",
     "muon: no release has it with 'master: ${memory.master}' (Megatron Core: the precision-aware optimizer is Adam's); expected "
     "master fp32 or none", NULL},
    {"memory.optimizer", RULE_VALUES, "factored && experts > 0",
     "adafactor does not know how experts' matrices are stacked; try adam", NULL},
    {"memory.precision", RULE_VALUES, "narrow && !transformer",
     "${memory.precision} needs a transformer; this model says nothing of its GEMMs; try mixed-bf16", NULL},
    {"memory.precision", RULE_VALUES, "narrow && transformer", "the GPUs have a rate in the format of the products\n", narrow_fault},
    {"memory.fp8_weights", RULE_VALUES, "narrow && memory.fp8_weights == 'primary' && strategy.zero == 3",
     "primary: does not go with zero 3, whose shares are in bf16; expected kept or cast", NULL},
    {"memory.lora", RULE_VALUES, "memory.lora && !transformer", "needs a transformer; this model says nothing of its GEMMs", NULL},
    {"memory.lora", RULE_VALUES, "packed && narrow",
     "weights: in four bits are converted for GEMMs in 16 bits; expected mixed-bf16 or fp16", NULL},
    {"memory.activations", RULE_VALUES, "memory.activations == 'rajbhandari' && experts > 0",
     "rajbhandari counts a GPT's blocks and says nothing of experts; expected korthikanti", NULL},
    {"memory.activations", RULE_VALUES, "memory.activations == 'rajbhandari' && experts == 0 && latent",
     "rajbhandari counts a GPT's blocks and says nothing of latent attention; expected korthikanti", NULL},
    {"memory.offload", RULE_INPUT, "contains(memory.offload, 'none') && memory.offload != 'none'",
     "'none' and something else; expected one of the two", NULL},
    {"memory.offload", RULE_VALUES, "offloads > 0 && contains(memory.offload, 'activations') && "
     "contains(memory.offload, 'tensors')",
     "tensors are those of the activations, chosen one by one; expected 'activations' or 'tensors'", NULL},
    {"memory.offload", RULE_VALUES, "offloads > 0 && !hosts_known", "the cluster says nothing of its hosts; add to it, for "
     "example: 'host: {bandwidth: 15.75 GB/s, latency: 10 us, memory: 1 TB, update: 4 B}'", NULL},
    {"memory.offload", RULE_VALUES, "offloads > 0 && contains(memory.offload, 'optimizer') && hosts_known && !hosts_update",
     "optimizer: the cluster does not say how fast a host updates parameters; add for example 'host: {update: 4 B}', parameters "
     "a second of a node", NULL},
    {"memory.offload", RULE_VALUES, "offloads > 0 && contains(memory.offload, 'optimizer') && memory.optimizer != 'adam'",
     "optimizer: a host's update rate is that of Adam; expected 'optimizer: adam'", NULL},
    {"memory.offload", RULE_VALUES,
     "offloads > 0 && contains(memory.offload, 'optimizer') && strategy.data_parallel == 'parameter-server'",
     "optimizer: does not go with a parameter server, which updates for all replicas; expected data_parallel ddp or synchronous",
     NULL},
    {"memory.offload", RULE_VALUES,
     "strategy.expert > 1 && (moves_activations || contains(memory.offload, 'weights'))",
     "activations, tensors and weights do not go with expert degrees, whose GPUs meet in every layer and would wait for one "
     "another's copies; expected 1, or the optimizer alone", NULL},
    {"memory.offload", RULE_VALUES, "(contains(memory.offload, 'optimizer') || contains(memory.offload, 'weights')) && "
     "(strategy.local_steps > 1 || strategy.compression != 'none')",
     "weights and optimizer states go to the host after plain sums of gradients; expected no compression, and local_steps: 1",
     NULL},
    {"memory.offload", RULE_VALUES, "offloads > 0 && asynchronous && !(offloads == 1 && moves_activations)",
     "${schedule} keeps several versions of its weights, which do not leave the GPU; expected activations, or tensors, alone",
     NULL},
    {"memory.offload", RULE_VALUES, "offloads > 0 && memory.recompute == 'full' && !with_gradient",
     "does not go with full activation checkpointing under ${schedule}, which recomputes a whole stage ahead of its backward; try "
     "'recompute: optimal'", NULL},
    {"memory.offload", RULE_VALUES, "by_layers && memory.recompute.every > 1",
     "does not go with a checkpoint every ${memory.recompute.every} blocks; try 'recompute: optimal'", NULL},
    {LAYERS, RULE_VALUES, "by_layers && memory.logits == 'held'",
     "${planner}: plans each layer's memory and knows of no logits that outlive theirs; expected 'logits: freed'", NULL},
    {LAYERS, RULE_VALUES, "by_layers && opportunistic",
     "${planner}: plans for a fixed order, ${schedule} with runtime: opportunistic changes it", NULL},
    {LAYERS, RULE_VALUES, "by_layers && recomputes",
     "${planner}: plans what each layer recomputes, but ${schedule} recomputes whole stages by itself; expected 'recompute: full' "
     "and 'offload: none', or another schedule", NULL},
    {LAYERS, RULE_VALUES, "plans_memory && !room_known", "${planner}: plans for what a GPU may hold, and nothing says how much; "
     "add 'limit: 80 GiB', or 'gpu' to the cluster", NULL},
};
const struct rules memory_rules = RULES("memory", memory_list);
