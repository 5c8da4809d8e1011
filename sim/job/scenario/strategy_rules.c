/* The rules of `strategy:` and of `batch:`: what does not go together, and what changes nothing. A row has the key, when it is
 * broken, and what is wrong; scenario_parts.c explains the facts. */
#include "scenario/scenario_internal.h"

#include "base/base.h"
#include "collective/collective.h"

static const char *switches_fault(struct arena *arena, const void *of)
{
    const struct scenario *scenario = of;
    const struct collective *collective = scenario_all_reduce(scenario);

    return collective_runs_on(collective, &scenario->cluster) ? NULL :
           arena_printf(arena, "%s needs %s", collective->name, collective_needs(collective));
}

/* Degrees that the cluster has room for. The number of replicas may not be known yet. */
#define DEGREES "strategy @ strategy.data strategy.tensor strategy.context strategy.pipeline"
#define REPLICA "strategy.tensor * strategy.context * strategy.pipeline"
static const struct rule gpus_list[] = {
    {DEGREES, RULE_GPUS, REPLICA " * max(strategy.data, 1) > 1048576", "${degrees} is more than 1048576 GPUs", NULL},
    {DEGREES, RULE_GPUS, "sized && !counted && gpus % (" REPLICA ") != 0",
     "tensor x pipeline x context divides the GPUs; the rest is data parallel\n"
     "${degrees} = ${" REPLICA "} does not divide the cluster's ${gpus} GPUs", NULL},
    {DEGREES, RULE_GPUS, "sized && counted && " REPLICA " * strategy.data > gpus",
     "the cluster has the GPUs of all degrees\n"
     "${degrees} needs ${" REPLICA " * strategy.data} GPUs, the cluster has ${gpus}", NULL},
};
const struct rules gpus_rules = RULES("gpus", gpus_list);

static const struct rule shard_list[] = {
    {"strategy.shard", RULE_VALUES, "strategy.shard > 0 && strategy.zero == 0 && !strategy.divided_states",
     "${strategy.shard}, but 'zero: 0' divides nothing; expected zero 1 to 3", NULL},
    {"strategy.shard", RULE_VALUES, "strategy.shard == 1 && strategy.zero > 0 && replicas > 1",
     "1 replica shares nothing; expected 2 to ${replicas}, or 'zero: 0'", NULL},
    {"strategy.shard", RULE_DEGREES, "strategy.shard > 0 && strategy.zero > 0 && replicas % strategy.shard != 0",
     "${strategy.shard} does not divide the ${replicas} replicas${of_context}${of_cluster}", NULL},
    {"strategy.shard", RULE_VALUES, "strategy.zero > 0 && strategy.shard < replicas && strategy.expert > 1",
     "${strategy.shard} of ${replicas} replicas do not go with experts divided over ${strategy.expert}, which share their "
     "states in groups of their own; expected all replicas, or expert 1", NULL},
};
const struct rules shard_rules = RULES("shard", shard_list);

/* What software files say of any scenario and these keys would refuse or leave without effect is taken back first. */
#define SCATTERS "!strategy.reduce_scatter && "
static const struct rule yielding_list[] = {
    {"strategy.dispatcher", RULE_YIELDS, "experts == 0", NULL, NULL},
    {"strategy.scatter_gather", RULE_YIELDS, "strategy.partitioned_outputs", NULL, NULL},
    {"strategy.one_communicator", RULE_YIELDS, "!sockets", NULL, NULL},
    {"memory.recompute.early_stop", RULE_YIELDS,
     "memory.recompute != 'full' || memory.recompute.every > 1 || !with_gradient || !dense_ends", NULL, NULL},
    {"memory.logits", RULE_YIELDS, "by_layers", NULL, NULL},
    {"memory.fp8_weights", RULE_YIELDS, "!narrow", NULL, NULL},
    {"strategy.reduce_scatter", RULE_VALUES, SCATTERS "strategy.zero == 0 && !strategy.divided_states",
     "false, but without ZeRO gradients are not scattered anyway; expected 'zero: 1' among all replicas, or true", NULL},
    {"strategy.reduce_scatter", RULE_VALUES, SCATTERS "strategy.zero == 1 && hybrid",
     "false, but replicas that share states in groups scatter within them; expected 'zero: 1' among all replicas, or true",
     NULL},
    {"strategy.reduce_scatter", RULE_VALUES, SCATTERS "strategy.zero > 1",
     "false, but replicas keep the gradients of their share alone; expected 'zero: 1' among all replicas, or true", NULL},
    {"strategy.one_communicator", RULE_VALUES, "strategy.one_communicator && !sockets && !ideal",
     "what it holds up is the copying to and from sockets, of which the cluster says nothing; expected a communication profile "
     "whose 'send' has 'copy', such as nccl-socket", NULL},
    {"strategy.overlap_tensor", RULE_VALUES, "strategy.overlap_products && strategy.sequence_parallel && "
     "said.strategy.overlap_tensor && !strategy.overlap_tensor",
     "false, but overlap_products hides sums of the backward too; expected true, or leave it out", NULL},
    {"memory.fused_accumulation", RULE_VALUES, "memory.gradients == 'converted' && memory.fused_accumulation",
     "GEMMs that add to the fp32 sums leave nothing to convert; expected 'gradients: fp32', or false", NULL},
    {"memory.recompute.early_stop", RULE_VALUES,
     "memory.recompute.early_stop && (memory.recompute != 'full' || memory.recompute.every > 1 || !with_gradient)",
     "blocks are computed again one by one, before their backwards, with 'mode: full' and 'every: 1' alone, and not under "
     "gpipe or varuna", NULL},
    /* PyTorch's non-reentrant checkpoint raises an exception when the last tensor that was saved is there again
     * (torch/utils/checkpoint.py; the default since pytorch/pytorch#96866, 2.1). Where blocks share a checkpoint, the next
     * one needs what comes behind. */
    {"memory.recompute.early_stop", RULE_VALUES, "memory.recompute.early_stop && memory.recompute == 'full' && "
     "memory.recompute.every < 2 && with_gradient && !dense_ends",
     "has no effect here: only a transformer's dense blocks without dropout and fp8 end with a GEMM whose result no backward "
     "needs; leave it out", NULL},
};
const struct rules yielding_rules = RULES("yielding", yielding_list);

#define BY_LAYER "weights are not gathered tensor by tensor; expected 'zero: 3' and 'flatten: false'"
#define LAYERS "no layer's weights are gathered whole to be kept on the GPU; expected 'zero: 3', without 'flatten: false' and " \
               "'offload: weights'"
#define NOT_BY_TENSOR " && (strategy.zero != 3 || strategy.flatten)"
#define NOT_WHOLE "(strategy.zero != 3 || !strategy.flatten || contains(memory.offload, 'weights'))"
static const struct rule idle_strategy_list[] = {
    {"strategy.server", RULE_IDLE, "strategy.server != 'star' && strategy.data_parallel != 'parameter-server'",
     "there is no server; expected 'data_parallel: parameter-server' with it", NULL},
    {"strategy.flatten", RULE_IDLE, "!strategy.flatten && strategy.data_parallel != 'synchronous' && strategy.zero != 3",
     "DDP has buckets, and others sum all at once; expected 'data_parallel: synchronous' or 'zero: 3' with it", NULL},
    {"strategy.live_parameters", RULE_IDLE, "strategy.live_parameters != 1000000000" NOT_BY_TENSOR, BY_LAYER, NULL},
    {"strategy.reuse_distance", RULE_IDLE, "strategy.reuse_distance != 1000000000" NOT_BY_TENSOR, BY_LAYER, NULL},
    {"strategy.prefetch", RULE_IDLE, "strategy.prefetch != 50000000" NOT_BY_TENSOR, BY_LAYER, NULL},
    {"strategy.sequence_first", RULE_IDLE, "!strategy.sequence_first && !strategy.sequence_parallel",
     "nobody gathers parts of a sequence; expected 'sequence_parallel: true' with it", NULL},
    {"strategy.partitioned_outputs", RULE_IDLE, "strategy.partitioned_outputs && strategy.sequence_parallel",
     "under sequence_parallel nobody needs a whole boundary; expected that to be false", NULL},
    {"strategy.partitioned_outputs", RULE_IDLE,
     "strategy.partitioned_outputs && !strategy.sequence_parallel && !strategy.scatter_gather",
     "without scatter_gather boundaries are sent whole; expected that to be true", NULL},
    {"strategy.overlap_gathers", RULE_IDLE, "strategy.overlap_gathers && strategy.zero != 1 && strategy.zero != 2 && "
     "!strategy.divided_states",
     "no replica updates weights for others; expected 'zero: 1' or 'zero: 2'", NULL},
    {"strategy.reshard_after_forward", RULE_IDLE, "!strategy.reshard_after_forward && " NOT_WHOLE, LAYERS, NULL},
    {"strategy.small_units", RULE_IDLE, "strategy.small_units && (" NOT_WHOLE " || memory.recompute != 'full' || !strategy.reshard_after_forward)",
     "no block's weights are gathered for a second forward and given back; expected 'zero: 3' and 'recompute: full', without 'flatten: "
     "false', 'offload: weights' and 'reshard_after_forward: false'", NULL},
    {"strategy.sums_once", RULE_IDLE, "strategy.sums_once && strategy.zero == 3 && " NOT_WHOLE, LAYERS, NULL},
    {"strategy.sums_once", RULE_IDLE, "strategy.sums_once && strategy.zero < 2",
     "no replica scatters the gradients of every micro-batch; expected 'zero: 2' or 'zero: 3'", NULL},
    {"strategy.dispatcher", RULE_IDLE, "strategy.dispatcher != 'alltoall' && experts == 0",
     "the model has no experts; expected a transformer with 'experts' above 0", NULL},
    {"strategy.dispatch", RULE_IDLE, "strategy.dispatch != 'copies' && strategy.expert == 1 && !said.strategy.dispatcher",
     "every replica has all experts; expected an expert degree above 1", NULL},
    {"strategy.context_blocks", RULE_IDLE, "strategy.context_blocks && strategy.context_attention == 'all-to-all'",
     "each GPU attends to all keys of its heads at once; expected another context_attention", NULL},
    {"strategy.overlap_context", RULE_IDLE, "!strategy.overlap_context && (strategy.context_attention == 'all-to-all' || "
     "(strategy.context_attention == 'all-gather' && !strategy.context_blocks))",
     "attention needs all that is exchanged before it begins; expected 'context_attention: ring', or context_blocks", NULL},
    {"strategy.overlap_products", RULE_IDLE, "strategy.overlap_products && !strategy.sequence_parallel",
     "only sequence_parallel gathers and scatters rows; expected that to be true", NULL},
};
const struct rules idle_strategy_rules = RULES("idle strategy", idle_strategy_list);

#define COMPRESSED "strategy.compression != 'none' && "
#define ONE_OF(key, method_name) \
    {"strategy.compression @ strategy.compression." key, RULE_VALUES, \
     "said.strategy.compression." key " && strategy.compression != '" method_name "'", key " is an option of " method_name, NULL}
#define WHOLE(key) \
    {"strategy." key, RULE_VALUES, "strategy.data_parallel == 'dataparallel' && strategy." key " > 1", \
     "${strategy." key "}, but DataParallel copies the whole model to every GPU; expected 1, or 'data_parallel: ddp'", NULL}
#define STEPS(when, why) \
    {"strategy.local_steps", RULE_VALUES, "strategy.local_steps > 1 && " when, \
     "${strategy.local_steps}, but " why "; expected 1", NULL}
static const struct rule data_parallel_list[] = {
    ONE_OF("rank", "powersgd"), ONE_OF("share", "top-k"), ONE_OF("bits", "quantized"),
    {"strategy.compression", RULE_VALUES, COMPRESSED "strategy.zero > 0",
     "ZeRO scatters gradients as they are; expected 'none', or zero 0", NULL},
    {"strategy.compression", RULE_VALUES, COMPRESSED "strategy.local_steps > 1",
     "local steps exchange no gradients; expected 'none', or local_steps 1", NULL},
    {"strategy.compression", RULE_VALUES, COMPRESSED "rooted",
     "gradients are summed on one GPU; expected 'none', or 'data_parallel: ddp'", NULL},
    {"strategy.compression", RULE_VALUES, COMPRESSED "strategy.expert > 1",
     "gradients of divided experts are summed apart; expected 'none', or expert 1", NULL},
    {"strategy.compression", RULE_VALUES, "strategy.compression == 'powersgd' && !transformer",
     "powersgd needs the shapes of the weights, which only a transformer tells; expected top-k or quantized", NULL},
    {"strategy.compression", RULE_VALUES, "strategy.compression == 'powersgd' && experts > 0",
     "powersgd does not know how experts' matrices are stacked; expected top-k or quantized", NULL},
    /* ZeRO, a parameter server and DataParallel hand out weights after the only update of an iteration. If a replica holds
     * two copies of the model, only ZeRO 1 divides among both. */
    {"strategy.zero", RULE_VALUES, "strategy.zero > 0 && rooted",
     "${strategy.zero} does not go with ${root}, which holds all states; expected 0", NULL},
    {"strategy.zero", RULE_VALUES, "strategy.zero > 0 && !rooted && asynchronous",
     "sharing states does not go with ${schedule}, which updates without a flush", NULL},
    {"strategy.zero", RULE_VALUES, "strategy.zero > 1 && !rooted && !asynchronous && directions > 1",
     "sharing gradients or weights does not go with ${schedule}, which holds two copies of the model; expected zero 0 or 1",
     NULL},
    {"strategy.data_parallel", RULE_VALUES, "rooted && strategy.zero == 0 && asynchronous",
     "${strategy.data_parallel} does not go with ${schedule}, which updates without a flush", NULL},
    {"strategy.data_parallel", RULE_VALUES, "rooted && strategy.zero == 0 && !asynchronous && directions > 1",
     "${strategy.data_parallel} does not go with ${schedule}, which holds two copies of the model", NULL},
    /* PyTorch's DataParallel: one process, the GPUs of one machine, the whole model on each; it sends the model, and whole
     * micro-batches, to its replicas at every forward. */
    WHOLE("pipeline"), WHOLE("tensor"), WHOLE("chunks"), WHOLE("context"), WHOLE("expert"),
    {"strategy.data", RULE_GPUS, "strategy.data_parallel == 'dataparallel' && !ideal && strategy.data > node_gpus && "
     "strategy.pipeline * strategy.tensor * strategy.chunks * strategy.context * strategy.expert == 1",
     "${strategy.data} GPUs on several nodes, but DataParallel is one process on one node of ${node_gpus}; expected at most "
     "these, or 'data_parallel: ddp'", NULL},
    {"memory.recompute", RULE_VALUES, "strategy.data_parallel == 'dataparallel' && memory.recompute == 'optimal'",
     "optimal: does not go with data_parallel: dataparallel, whose replicas are copied anew for every forward", NULL},
    {"memory.offload", RULE_VALUES, "strategy.data_parallel == 'dataparallel' && by_layers && memory.recompute != 'optimal'",
     "does not go with data_parallel: dataparallel, whose replicas are copied anew for every forward", NULL},
    {"memory.lora", RULE_VALUES, "strategy.data_parallel == 'dataparallel' && memory.lora",
     "does not go with data_parallel: dataparallel, whose replicas are copies of trained weights; try ddp", NULL},
    {"strategy.slices", RULE_VALUES, "strategy.data_parallel == 'dataparallel' && slices > 1",
     "${slices} does not go with the rest: 'data_parallel: dataparallel' sends whole micro-batches from GPU 0", NULL},
    /* Local SGD (Lin et al. 2020, "Don't use large mini-batches, use local SGD"): whole replicas that go their own way. */
    STEPS("strategy.zero > 0", "ZeRO's replicas have no whole states to step with"), STEPS("rooted", "${updates}"),
    STEPS("strategy.context > 1", "a context group's GPUs work on the same samples"),
    STEPS("strategy.expert > 1", "a replica has no whole model to step with"),
    STEPS("asynchronous", "the schedule updates without a flush"),
    STEPS("opportunistic", "at run time forwards of the next step would go before the optimizer step"),
    STEPS("directions > 1", "a replica's two copies of the model all-reduce their gradients in every step"),
    /* ZeRO 3's stream of gathers is as fixed as the order that it was made for. */
    {"strategy.zero", RULE_VALUES, "strategy.zero == 3 && opportunistic",
     "3 gathers layers in a fixed order, ${schedule} with runtime: opportunistic changes it; expected at most 2, or runtime: "
     "static", NULL},
    {"strategy.all_reduce", RULE_VALUES, "true", "the cluster runs the algorithm: of a torus on a torus with wrap, of switches on switches that reduce\n", switches_fault},
};
const struct rules data_parallel_rules = RULES("data parallel", data_parallel_list);

#define SHARES(when, why) {"batch.shares", RULE_VALUES, "said.batch.shares && " when, why "; expected no shares", NULL}
static const struct rule shares_list[] = {
    SHARES("timed", "the model's times are given for all micro-batches alike"),
    SHARES("strategy.expert > 1", "replicas that divide experts exchange equal numbers of tokens"),
    SHARES("strategy.data_parallel == 'dataparallel'", "data_parallel: dataparallel scatters equal numbers of samples"),
    SHARES("by_layers", "layers are recomputed or offloaded by one plan for all replicas"),
};
const struct rules shares_rules = RULES("shares", shares_list);
