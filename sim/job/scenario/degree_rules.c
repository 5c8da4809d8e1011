/* The rules of degrees, stages and the batch: what divides what, and which keys of `strategy:` go with the model and
 * the schedule.
 * A row has the key, when it is broken, and what is wrong; scenario_parts.c explains the facts. */
#include "scenario/scenario_internal.h"

#include "base/base.h"

/* A GPU needs whole heads: queries, and keys and values unless these are repeated for each of the queries' heads before they
 * are sent (DeepSpeed, sequence/layer.py, single_all_to_all; Transformer Engine, AttnFuncWithCPAndQKVOA2A). */
#define SHARED_HEADS "strategy.context_attention @ strategy.ulysses strategy.context"
#define QUERIES "model.transformer.heads / strategy.tensor"
#define KEY_HEADS "model.transformer.kv_heads / strategy.tensor"
#define HEADS_DIVIDE "model.transformer.heads % (strategy.tensor * ulysses) == 0"
#define UNEVEN_KEYS "ulysses > 1 && strategy.context % ulysses == 0 && " HEADS_DIVIDE " && !latent && " \
    "!model.transformer.repeated_groups && model.transformer.kv_heads % (strategy.tensor * ulysses) != 0"
/* Experts that are divided over the GPUs of tensor groups too, each of which has whole ones (expert_tensor: 1). */
#define EXPERTS "strategy.expert > 1 && experts > 0 && experts % strategy.expert == 0 && strategy.expert % expert_parts == 0 && " \
    "replicas * expert_parts % strategy.expert != 0"
#define OVER "${strategy.expert} does not divide the ${replicas * expert_parts} ${replicas_or_gpus} (data ${strategy.data} x " \
    "context ${strategy.context}${of_tensor}) that the experts are to be divided over; expected a divisor"
/* What Megatron Core asks of --overlap-moe-expert-parallel-comm and --moe-shared-expert-overlap (transformer_config.py,
 * __post_init__): without chunks the last rank has no backward that could overlap with a forward without waiting for it. */
#define PAIRS "strategy.overlap_dispatch == 'micro-batches' && strategy.expert > 1 && "
#define BESIDE "strategy.overlap_dispatch == 'shared-experts' && strategy.expert > 1 && "
#define MEET(key, when) \
    {"strategy." key, RULE_VALUES, when " && opportunistic", \
     "GPUs that meet in every layer do not go with 'runtime: opportunistic'; expected 1, or 'runtime: static'", NULL}, \
    {"strategy." key, RULE_VALUES, when " && strategy.data_parallel == 'parameter-server'", \
     "does not go with a parameter server; expected 1, or 'data_parallel: ddp'", NULL}
static const struct rule degrees_list[] = {
    {"batch.documents", RULE_VALUES, "batch.documents > 0 && !transformer",
     "${batch.documents} needs a transformer; this model has no attention", NULL},
    {"batch.documents", RULE_INPUT,
     "batch.documents > 0 && (batch.documents < 1 || batch.documents > model.transformer.sequence) && transformer",
     "${batch.documents} tokens; expected 1 to the ${model.transformer.sequence} tokens of a sample, or 0 where a sample is one "
     "document", NULL},
    {"batch.documents", RULE_VALUES, "batch.documents >= 1 && !model.transformer.flash_attention && "
     "batch.documents <= model.transformer.sequence",
     "attention that is not fused computes all scores of a sample, and masks them; expected 'flash_attention: true', or 0",
     NULL},
    {"strategy.context", RULE_DEGREES, "strategy.context > 1 && !transformer",
     "${strategy.context} needs a transformer; this model has no tokens to divide", NULL},
    {"strategy.context", RULE_DEGREES, "strategy.context > 1 && two_sides",
     "${strategy.context} GPUs cannot divide the tokens of an encoder-decoder: cross attention has no exchange for it; expected 1", NULL},
    {"batch.documents", RULE_VALUES, "batch.documents > 0 && two_sides",
     "samples of an encoder-decoder are not packed here; expected 0", NULL},
    {"strategy.context", RULE_DEGREES, "strategy.context > 1 && transformer && strategy.context > ulysses && "
     "model.transformer.causal && model.transformer.sequence % (2 * strategy.context) != 0",
     "${strategy.context} GPUs with two pieces each do not divide the ${model.transformer.sequence} tokens of a sample; "
     "expected a degree whose double divides them", NULL},
    {"strategy.context", RULE_DEGREES, "strategy.context > 1 && transformer && "
     "!(model.transformer.causal && strategy.context > ulysses) && model.transformer.sequence % strategy.context != 0",
     "${strategy.context} does not divide the ${model.transformer.sequence} tokens of a sample; expected a divisor", NULL},
    {"strategy.ulysses", RULE_VALUES, "strategy.ulysses > 0 && strategy.context_attention != 'hybrid'",
     "goes with 'context_attention: hybrid' alone; all-to-all has the whole context group exchange heads", NULL},
    {"strategy.ulysses @ strategy.ulysses strategy.context", RULE_DEGREES,
     "transformer && ulysses > 1 && strategy.context % ulysses != 0",
     "${ulysses} does not divide the ${strategy.context} GPUs of a context group; expected a divisor", NULL},
    {SHARED_HEADS, RULE_DEGREES, "ulysses > 1 && strategy.context % ulysses == 0 && !(" HEADS_DIVIDE ") && transformer",
     "${ulysses} GPUs${of_tensor_index} cannot share ${floor(" QUERIES ")} attention heads equally; expected a degree that "
     "divides ${floor(" QUERIES ")}, or 'context_attention: ring'", NULL},
    {SHARED_HEADS, RULE_DEGREES, UNEVEN_KEYS,
     "${ulysses} GPUs${of_tensor_index} cannot share ${floor(" KEY_HEADS ")} heads of keys and values equally; expected a degree that "
     "divides ${floor(" KEY_HEADS ")}, 'context_attention: ring', or hybrid with a smaller ulysses", NULL},
    /* GPUs with whole experts need the rows of their own tokens alone: only sequence parallelism divides these (Megatron
     * Core's rule for experts under tensor parallelism). Their experts differ, so an expert degree divides them. */
    {"strategy.expert_tensor", RULE_VALUES, "strategy.expert_tensor > 1 && strategy.expert_tensor != strategy.tensor",
     "${strategy.expert_tensor}; expected 1, or the tensor degree ${strategy.tensor}", NULL},
    {"strategy.expert_tensor", RULE_VALUES, "strategy.expert_tensor == 1 && strategy.tensor > 1 && experts == 0",
     "this model has no experts; leave it out", NULL},
    {"strategy.expert_tensor", RULE_VALUES,
     "strategy.expert_tensor == 1 && strategy.tensor > 1 && experts > 0 && !strategy.sequence_parallel",
     "1 needs GPUs of a tensor group that have different tokens; expected 'sequence_parallel: true', or expert_tensor "
     "${strategy.tensor}", NULL},
    {"strategy.expert_tensor", RULE_VALUES, "strategy.expert_tensor == 1 && strategy.tensor > 1 && experts > 0 && "
     "strategy.sequence_parallel && strategy.expert == 1",
     "1, but 'expert: 1' puts all experts on each GPU; expected an expert degree that is a multiple of tensor "
     "${strategy.tensor}", NULL},
    {"strategy.expert", RULE_DEGREES, "strategy.expert > 1 && experts == 0",
     "${strategy.expert} needs a model with experts; expected 1, or 'experts' in the transformer", NULL},
    {"strategy.expert", RULE_DEGREES, "strategy.expert > 1 && experts > 0 && experts % strategy.expert != 0",
     "${strategy.expert} does not divide the ${experts} experts; expected a divisor", NULL},
    {"strategy.expert", RULE_DEGREES,
     "strategy.expert > 1 && experts > 0 && experts % strategy.expert == 0 && strategy.expert % expert_parts != 0",
     "${strategy.expert} is no multiple of tensor ${expert_parts}, whose GPUs have different experts under 'expert_tensor: 1'; "
     "expected a multiple", NULL},
    {"strategy.expert", RULE_DEGREES, EXPERTS " && (expert_parts == strategy.tensor || strategy.expert % strategy.tensor != 0 || "
     "replicas * strategy.tensor % strategy.expert != 0)", OVER, NULL},
    {"strategy.expert", RULE_DEGREES, EXPERTS " && expert_parts < strategy.tensor && strategy.expert % strategy.tensor == 0 && "
     "replicas * strategy.tensor % strategy.expert == 0", OVER ", or 'expert_tensor: 1' with 'sequence_parallel: true', which "
     "divides them over the GPUs of the tensor groups too", NULL},
    {"strategy.capacity_factor", RULE_VALUES, "strategy.capacity_factor > 0 && experts == 0",
     "this model has no experts; expected 0", NULL},
    {"strategy.capacity_factor", RULE_VALUES, "strategy.capacity_factor > 0 && model.transformer.expert_skew > 0",
     "experts with a capacity compute equally many rows, but the transformer says 'expert_skew: "
     "${model.transformer.expert_skew}'; expected 0 here or 0 there", NULL},
    {"strategy.capacity_factor", RULE_INPUT,
     "strategy.capacity_factor > 0 && strategy.capacity_factor < 1 && model.transformer.expert_skew == 0 && experts > 0",
     "${strategy.capacity_factor} drops tokens even where routing is balanced; expected 1 or more, or 0 for no limit", NULL},
    {"strategy.overlap_dispatch", RULE_VALUES, "strategy.overlap_dispatch != 'none' && strategy.expert == 1",
     "needs experts on several GPUs; expected an expert degree above 1", NULL},
    {"strategy.overlap_dispatch", RULE_VALUES, "strategy.overlap_dispatch != 'none' && strategy.dispatcher == 'allgather'",
     "goes with the dispatchers alltoall, deepep and hybridep alone", NULL},
    {"strategy.overlap_dispatch", RULE_VALUES,
     PAIRS "schedule != 'interleaved' && !(strategy.pipeline == 1 && schedule == '1f1b')",
     "micro-batches goes with 'schedule: interleaved', or 1f1b without a pipeline", NULL},
    {"strategy.overlap_dispatch", RULE_VALUES,
     PAIRS "(memory.recompute == 'full' || memory.recompute == 'optimal' || recomputes_experts)",
     "micro-batches does not go with recomputation of the experts, which would exchange again alone", NULL},
    {"strategy.overlap_dispatch", RULE_VALUES, BESIDE "(!transformer || model.transformer.shared_experts == 0)",
     "shared-experts needs some in model.transformer", NULL},
    {"strategy.overlap_dispatch", RULE_VALUES, BESIDE "recomputes_shared",
     "shared-experts does not go with their recomputation", NULL},
    /* GPUs that meet in every layer cannot each choose their order; and one server would hold the experts of all others. */
    MEET("context", "strategy.context > 1"), MEET("expert", "strategy.context == 1 && strategy.expert > 1"),
};
const struct rules degrees_rules = RULES("degrees", degrees_list);

static const struct rule model_list[] = {
    {"cluster", RULE_VALUES, "!timed && ideal && !named",
     "the ideal cluster has no GPUs to compute on, and the model gives no times; try '{platform: ideal, gpu: a100-80gb}', or "
     "give 'stages:' or 'layers:' with times", NULL},
    {"cluster", RULE_INPUT, "!timed && !ideal && !named",
     "missing key 'gpu': the model's times are to be computed (dtsim list gpus)", NULL},
    {"strategy.split", RULE_VALUES, "said.strategy.split && model_stages > 0",
     "the model is given stage by stage, so there are no layers to divide; expected it with 'layers:' or a transformer", NULL},
    {"strategy.tensor", RULE_DEGREES, "strategy.tensor > 1 && !transformer",
     "${strategy.tensor} needs a transformer; this model's times are given whole", NULL},
};
const struct rules model_rules = RULES("model", model_list);

static const struct rule order_list[] = {
    {"strategy.schedule.recomputation", RULE_VALUES, "said.strategy.schedule.recomputation && !said.strategy.schedule.csv",
     "${schedule} says itself when it recomputes; expected it with 'csv'", NULL},
};
const struct rules order_rules = RULES("order", order_list);

static const struct rule chunks_list[] = {
    {"strategy.chunks", RULE_VALUES, "(strategy.chunks < fewest_chunks || strategy.chunks > most_chunks) && "
     "fewest_chunks < most_chunks",
     "the schedule has so many chunks at least\n"
     "found ${strategy.chunks}; ${schedule} has ${fewest_chunks} or more a rank", NULL},
    {"strategy.chunks", RULE_VALUES, "strategy.chunks != fewest_chunks && fewest_chunks == most_chunks",
     "the schedule's number of chunks is fixed\nfound ${strategy.chunks}; ${schedule} has ${fewest_chunks} a rank", NULL},
};
const struct rules chunks_rules = RULES("chunks", chunks_list);

static const struct rule same_list[] = {
    {"strategy.sequence_parallel", RULE_SAME, "strategy.sequence_parallel && strategy.tensor == 1",
     "without a tensor group there are no activations to divide", NULL},
    {"strategy.dispatcher", RULE_SAME, "strategy.dispatcher != 'alltoall' && strategy.expert == 1",
     "without expert parallelism no tokens travel", NULL},
};
const struct rules same_rules = RULES("same", same_list);

/* Any two of global, micro and micro_batches give the third: before micro_batches is known, and with it. `step`: the samples of
 * one micro-batch of all replicas. */
static const struct rule batch_list[] = {
    {"batch.global", RULE_BATCH, "!micro_batched && batch.global % step != 0",
     "micro-batches of all replicas divide the batch\n"
     "${batch.global} is no multiple of micro ${batch.micro} x data ${step / batch.micro}${of_cluster} = ${step} samples", NULL},
};
const struct rules batch_rules = RULES("batch", batch_list);

static const struct rule batch_size_list[] = {
    {"batch @ batch.global", RULE_BATCH, "batch.micro_batches > 1000000",
     "${batch.micro_batches} micro-batches a replica; expected at most 1000000", NULL},
    {"batch.global", RULE_BATCH, "batch.global > 0 && batch.global != step * batch.micro_batches",
     "micro-batches of all replicas make the batch\n"
     "${batch.global} is not micro ${batch.micro} x data ${step / batch.micro} x micro_batches ${batch.micro_batches} = "
     "${step * batch.micro_batches}", NULL},
    {"batch", RULE_BATCH, "batch.global == 0 && step * batch.micro_batches > 2000000000",
     "${step * batch.micro_batches} samples; expected at most 2000000000", NULL},
};
const struct rules batch_size_rules = RULES("batch size", batch_size_list);

/* Ranks of unequal degrees. `data`: in replicas, not in tensor degrees alone. */
#define UNEQUAL(when, what) \
    {"strategy.stages", RULE_VALUES, "unequal && " when, \
     "ranks of unequal ${unequal_in} do not go with " what "; expected equal degrees", NULL}
static const struct rule ranks_list[] = {
    UNEQUAL("strategy.expert > 1", "expert: its groups would have other members on each rank"),
    UNEQUAL("strategy.context > 1", "context: its groups would have other members on each rank"),
    UNEQUAL("directions > 1", "a bidirectional schedule, two ranks of which hold each stage"),
    UNEQUAL("placed && directions == 1", "an order that says itself which rank holds which stage"),
    UNEQUAL("(just_in_time || opportunistic)",
            "a schedule that recomputes when the next stage is about to be done, or decides at run time"),
    UNEQUAL("last_dimension != 'pipeline'", "a placement whose slowest dimension is not pipeline"),
    UNEQUAL("strategy.one_communicator", "one_communicator: sends and receives in turn"),
    UNEQUAL("strategy.partitioned_outputs", "partitioned_outputs: shares of outputs of one size"),
    UNEQUAL("strategy.stages_on == 'auto'", "stages_on: auto"),
    UNEQUAL("split_auto", "split: auto, which takes a layer's times to be the same on each rank's GPUs"),
    UNEQUAL("!split_auto && !layers_said && (strategy.balance == 'times' || strategy.balance == 'exchanges')",
            "balance: times of layers, which would be those of one rank's degrees"),
    UNEQUAL("unequal_data && rooted", "data_parallel: replica 0 would be of one rank alone"),
    UNEQUAL("unequal_data && strategy.local_steps > 1", "local_steps: replicas do not step by themselves"),
    UNEQUAL("unequal_data && strategy.shard > 0 && strategy.shard < replicas", "shard: groups of one size"),
    UNEQUAL("unequal_data && said.batch.shares", "batch.shares: one ratio for all ranks"),
};
const struct rules ranks_rules = RULES("ranks", ranks_list);

/* A slice's works need the keys and values of all slices before it, and of these alone. A forward and a backward take about a
 * kilobyte until they are replayed: more than ten million would take all of a machine's memory. */
#define SLICED(when, why) \
    {"strategy.slices", RULE_VALUES, "slices > 1 && " when, "${slices} does not go with the rest: " why, NULL}
static const struct rule sizes_list[] = {
    {"batch", RULE_VALUES, "forwards > 10000000", "${stages} stages x ${micro_batches} micro-batches${in_slices} are more than "
     "10000000 forwards; expected fewer of either", NULL},
    SLICED("transformer && !model.transformer.causal",
           "tokens of this model see those after them; expected a model with 'causal: true'"),
    SLICED("two_sides", "the tokens of an encoder see those after them"),
    SLICED("model.transformer.window > 0", "attention of this model has a window"),
    SLICED("batch.documents > 0", "samples are packed of documents (batch.documents)"),
    SLICED("strategy.context > 1", "'context' divides the tokens already"),
    SLICED("memory.recompute != 'none' && memory.recompute != 'selective'",
           "a recomputed slice would need keys and values of slices that are recomputed after it; expected 'memory: {recompute: "
           "none}' or 'selective'"),
    SLICED("by_layers", "'offload' goes layer by layer through whole micro-batches"),
    {"strategy.slices", RULE_BATCH,
     "slices > 1 && strategy.sequence_parallel && model.transformer.sequence % (slices * strategy.tensor) != 0",
     "the ${model.transformer.sequence} tokens of a sample do not divide into ${slices} slices, of which sequence_parallel gives "
     "each GPU a share; expected a divisor", NULL},
    {"strategy.slices", RULE_BATCH, "slices > 1 && !strategy.sequence_parallel && model.transformer.sequence % slices != 0",
     "the ${model.transformer.sequence} tokens of a sample do not divide into ${slices} slices; expected a divisor", NULL},
    {"batch.count", RULE_VALUES, "one_batch && batch.count > 1", "${schedule} simulates one batch, found ${batch.count}", NULL},
    {"batch @ batch.micro_batches", RULE_BATCH, "flushed % directions != 0",
     "${flushed} micro-batches a replica do not divide into the two directions of ${schedule}", NULL},
};
const struct rules sizes_rules = RULES("sizes", sizes_list);

/* batch.flush: the same rows again and again, all for one update. */
#define FLUSHED "batch.flush > 0 && !(batch.flush == micro_batches && !asynchronous)"
#define FLUSH(when, why) {"batch.flush", RULE_VALUES, FLUSHED " && " when, "${batch.flush}, but " why, NULL}
static const struct rule flush_list[] = {
    FLUSH("strategy.pipeline == 1", "there is no pipeline; expected a pipeline degree above 1"),
    FLUSH("asynchronous", "the schedule updates without a flush"),
    FLUSH("ordered", "the order from a file has all micro-batches"),
    FLUSH("sums_once", "with sums_once every flush would scatter gradients, which is not simulated; expected no ZeRO 2 or 3, or "
          "'software: {sums_once: false}'"),
    {"batch.flush", RULE_BATCH, FLUSHED " && micro_batches % batch.flush != 0 && strategy.pipeline > 1 && !asynchronous && "
     "!ordered && !sums_once", "${batch.flush} does not divide the ${micro_batches} micro-batches of a replica", NULL},
};
const struct rules flush_rules = RULES("flush", flush_list);
