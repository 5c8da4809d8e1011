/* All keys of a scenario but those of `strategy:`. Parsing, defaults, resolved output, help and schema all come from these
 * tables. */
#include "scenario/scenario_internal.h"

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "engine/replay.h"
#include "hardware/slow_parts.h"
#include "kernels/costs.h"
#include "model/model.h"
#include "scenario/search.h"
#include "scenario/train_section.h"
#include "schedule/schedule.h"

const char *const recompute_names[] = ENUM_NAMES(RECOMPUTES);
static const char *const module_names[] = ENUM_NAMES(RECOMPUTE_PARTS);

static const struct field batch_fields[] = {
    {KEY(batch, global), .also = "gbs global_batch_size batch_size",
     .kind = FIELD_INT, .min = 1, .max = 1e9,
     .brief = "samples in an iteration, over all replicas"},
    {KEY(batch, micro), .also = "mbs micro_batch_size train_micro_batch_size_per_gpu",
     .kind = FIELD_INT, .min = 1, .max = 1e6, .fallback = "1", .brief = "samples in a micro-batch"},
    {KEY(batch, shares), .kind = FIELD_INTS, .max = 1000000, .may_be_auto = true,
     .brief = "ratio of the samples of a micro-batch by replica, a number for each: [3, 5]; micro x data samples are divided "
              "by it, and all replicas have as many micro-batches; auto: those that fit and with which the iteration ends first; "
              "left out: equal"},
    {KEY(batch, micro_batches), .also = "gradient_accumulation_steps",
     .kind = FIELD_INT, .min = 1, .max = 1e6,
     .brief = "micro-batches per replica; give this or global"},
    {KEY(batch, flush), .kind = FIELD_INT, .min = 1, .max = 1e6,
     .brief = "micro-batches per replica after which the pipeline runs empty and fills again, several times an iteration "
              "(torchtitan's and NeMo AutoModel's local batch size, of which a step accumulates several); left out: all"},
    {KEY(batch, documents), .also = "document_length", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 0, .max = 1e9,
     .fallback = "0",
     .brief = "tokens of each document that a sample is packed of: fused attention sees its own document alone, and model "
              "FLOPs count that; of unequal ones give the sum of squared lengths over the sum of lengths, which has the "
              "same attention; 0: a sample is one document"},
    {KEY(batch, count), .kind = FIELD_INT, .min = 1, .max = 1e6,
     .brief = "number of consecutive batches, for schedules that do not flush between batches (pipedream-2bw)"},
};
const struct table batch_table = {
    TABLE("batch", "how many samples an iteration trains on", batch, batch_fields),
};

static const struct field recompute_spec_fields[] = {
    {KEY(recompute_spec, mode), .kind = FIELD_CHOICE, .fallback = "none", .choices = recompute_names,
     .choice_briefs = NAMES("all activations are kept", "the attention core is recomputed",
                            "each block keeps the results of its fused attention and of every second GEMM, and "
                            "recomputes the others (torchtitan's selective_ac_option: op)",
                            "each block recomputes the results of some cheap modules (Megatron-LM's "
                            "recompute-modules)",
                            "everything is recomputed from the inputs of blocks, which are kept",
                            "each block recomputes the part that makes the stage fit in the least time"),
     .brief = "which activations are recomputed"},
    {KEY(recompute_spec, modules), .kind = FIELD_CHOICES, .choices = module_names,
     .choice_briefs = NAMES("norms before attention, MLP and experts",
                            "the functions between the two GEMMs of MLPs and experts",
                            "latent attention: norms, GEMMs and rotation from the latent vectors to queries, keys "
                            "and values",
                            "the attention core", "the MLP of a block without experts",
                            "experts with router, dispatch, shared experts and all that they exchange",
                            "the shared experts alone"),
     .brief = "under modules: which (Megatron-LM: layernorm, moe_act, mla_up_proj, core_attn, mlp, moe, shared_experts); "
              "left out: norms, activation and latent"},
    {KEY(recompute_spec, every), .kind = FIELD_INT, .min = 1, .max = 100000,
     .brief = "under full: only the input of every N-th block is kept, and all blocks are recomputed from these; left "
              "out: of every block"},
    {KEY(recompute_spec, blocks), .kind = FIELD_INT, .max = 100000,
     .brief = "under full: only the first N blocks of each chunk are recomputed, the others keep all activations "
              "(Megatron-LM's recompute-method block); left out: all blocks"},
    {KEY(recompute_spec, share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 1,
     .brief = "under full: only this share of each chunk's blocks, evenly spread, is recomputed, the others keep all "
              "activations (every second block: 0.5); left out: all blocks"},
    {KEY(recompute_spec, early_stop), .kind = FIELD_BOOL,
     .brief = "under full: the second forward of a dense block without dropout stops before its last GEMM, which is "
              "an adapter's if lora adapts mlp-down (PyTorch's checkpoint with use_reentrant=False, since 2.1); left "
              "out: false"},
};
const struct table recompute_table = {
    TABLE("memory: recompute", "which activations the backward recomputes", recompute_spec, recompute_spec_fields),
    .shorthand = "mode", .bare = true, .delegated = "early_stop",
};

static const struct field memory_spec_fields[] = {
    {.key = "precision", AT(memory_spec, precision.format), .kind = FIELD_CHOICE, .fallback = "mixed-fp16",
     .choices = CHOICES(PRECISIONS),
     .choice_briefs = NAMES("everything in fp32", "data in fp32, GEMMs on tensor cores in tf32",
                            "weights and GEMMs in fp16, master weights in fp32",
                            "weights and GEMMs in bf16, master weights in fp32",
                            "everything in bf16, as PyTorch trains weights that are loaded so (torchtune): mixed-bf16 "
                            "with software's master: none and gradients: half, and with adam-half for adam",
                            "as mixed-bf16, but the blocks' GEMMs of weights are in fp8, one scale a tensor",
                            "the same, with a scale for 1 x 128 activations and 128 x 128 weights",
                            "the same, with a scale for 32 values", "the same, in 4 bits with a scale for 16 values"),
     .brief = "number formats of weights and GEMMs; left out: mixed-bf16 if the model's weights (hf_config, "
              "preset or dtype) are in bf16 and the GPU has it"},
    {.key = "fp8_weights", AT(memory_spec, precision.fp8_weights), .kind = FIELD_CHOICE, .fallback = "cast",
     .choices = CHOICES(FP8_WEIGHTS),
     .choice_briefs = NAMES("in every forward",
                            "once per iteration, with the optimizer step; they are kept in addition to the bf16 weights "
                            "(Megatron-LM's is_first_microbatch)",
                            "once per iteration, with the optimizer step; there are no bf16 weights (NeMo's fp8_params)"),
     .brief = "under mixed-fp8, mixed-fp8-block, mixed-mxfp8 and mixed-nvfp4: when weights are cast"},
    {.key = "optimizer",
     AT(memory_spec, precision.optimizer),
     .kind = FIELD_CHOICE,
     .fallback = "adam",
     .choices = CHOICES(OPTIMIZERS),
     .choice_briefs = NAMES("keeps two moments", "keeps two moments in 8 bits", "keeps one moment", "keeps no moment",
                            "keeps a factored second moment", "keeps a first moment and a factored second moment",
                            "keeps two moments, and computes norms of every tensor (Apex's FusedLAMB)",
                            "keeps two moments in half precision",
                            "keeps one moment of the blocks' matrices, which it orthogonalizes by Newton-Schulz "
                            "iterations; AdamW updates the rest"),
     .brief = "the optimizer, which says what states each parameter has"},
    {.key = "master", AT(memory_spec, precision.master), .kind = FIELD_CHOICE, .fallback = "fp32",
     .choices = CHOICES(MASTERS),
     .choice_briefs = NAMES("a copy of the weights in fp32",
                            "the 16 bits by which fp32 weights exceed bf16 weights (Apex's store_param_remainders)",
                            "a copy of the weights in half precision", "no copy: the weights themselves are updated"),
     .brief = "under mixed precision: the master weights, which the optimizer step changes"},
    {.key = "gradients", AT(memory_spec, precision.gradients), .kind = FIELD_CHOICE, .fallback = "half",
     .choices = CHOICES(GRADIENTS),
     .choice_briefs = NAMES("kept and sent in the format of the weights",
                            "accumulated and sent in fp32 (Megatron-LM with bf16)",
                            "accumulated and sent in fp32, with a further copy in the format of the weights "
                            "(DeepSpeed)",
                            "kept in the format of the weights, sent in fp32 (FSDP's reduce_dtype); with sums_once "
                            "accumulated in fp32"),
     .brief = "under mixed precision: the format of gradients; left out under mixed-bf16 or narrower with master "
              "weights, up to ZeRO-1: fp32"},
    {.key = "clip_gradients", AT(memory_spec, precision.clip_gradients), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "before an optimizer step the norm of all gradients is computed, and the gradients are scaled by it "
              "(max_grad_norm)"},
    {.key = "fused_optimizer", AT(memory_spec, precision.fused_optimizer), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "one kernel reads gradients, weights and states once and writes them (Apex's FusedAdam, PyTorch's "
              "fused=True); false: Adam goes over them operation by operation (PyTorch's foreach)"},
    {.key = "muon_tensor", AT(memory_spec, precision.muon_tensor), .kind = FIELD_CHOICE, .fallback = "duplicated",
     .choices = CHOICES(MUON_TENSORS),
     .choice_briefs = NAMES("gather its momentum, and each orthogonalizes it whole",
                            "take their parts for matrices of their own",
                            "sum the products over their parts (Megatron-LM's muon_tp_mode)"),
     .brief = "with optimizer: muon: what the GPUs of a tensor group do with a matrix that they divide"},
    {.key = "muon_split_qkv", AT(memory_spec, precision.muon_split_qkv), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "with optimizer: muon: queries, keys and values of one tensor are orthogonalized apart (Megatron-LM); "
              "false: as one matrix"},
    {.key = "newton_schulz", AT(memory_spec, precision.newton_schulz), .kind = FIELD_CHOICE, .fallback = "standard",
     .choices = CHOICES(NEWTON_SCHULZ),
     .choice_briefs = NAMES("five iterations on a matrix", "five iterations on its product with its transpose (DeepSpeed "
                            "since April 2026)"),
     .brief = "with optimizer: muon: how a matrix is orthogonalized"},
    {.key = "fused_accumulation",
     AT(memory_spec, precision.fused_accumulation),
     .kind = FIELD_BOOL,
     .fallback = "false",
     .brief = "the GEMMs that compute weight gradients also add them to the accumulated gradients (Megatron-LM "
              "since 2022); false: a separate kernel adds them after each backward"},
    {KEY(memory_spec, recompute), .also = "checkpointing activation_checkpointing gradient_checkpointing",
     .kind = FIELD_RECORD, .table = &recompute_table, .fallback = "none",
     .brief = "activation checkpointing, which activations the backward recomputes: a mode, or a mapping such as "
              "{mode: full, blocks: 4}"},
    {KEY(memory_spec, offload), .kind = FIELD_CHOICES, .single = true, .fallback = "none", .choices = CHOICES(OFFLOADS),
     .choice_briefs = NAMES("nothing is offloaded", "activations that do not fit in GPU memory",
                            "half-precision weights", "optimizer states; the host's CPUs also do the optimizer step",
                            "single tensors of the activations, chosen by size and time of reuse"),
     .brief = "what is kept in host memory until it is needed"},
    {KEY(memory_spec, lora), .kind = FIELD_OPTIONAL, .table = &lora_table,
     .brief = "low-rank adapters are trained and the model's own weights are frozen (LoRA)"},
    {KEY(memory_spec, activations), .kind = FIELD_CHOICE, .fallback = "korthikanti",
     .choices = CHOICES(ACTIVATION_FORMULAS),
     .choice_briefs = NAMES("every tensor that the backward reads", "ZeRO's estimate: 12 x hidden values per token"),
     .brief = "the formula for the activations that a block keeps"},
    {.key = "few_bit", AT(memory_spec, saved.few_bit), .kind = FIELD_INT, .max = 8,
     .brief = "bits a value that a block's activation function keeps for its backward: the index of a piece of a "
              "piecewise constant derivative (Few-bit Backward), instead of its input; left out or 0: the input"},
    {.key = "randomized_linear", AT(memory_spec, saved.randomized_linear), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER,
     .max = 1,
     .brief = "each linear layer of a block keeps a random projection of its input for its backward, with this share of "
              "the input's rows; left out or 0: the input"},
    {.key = "activations_bits", AT(memory_spec, saved.activations_bits), .kind = FIELD_INT, .max = 8,
     .brief = "bits a value, 2 to 8, in which a block keeps tensors for its backward, with a scale for each 256 values "
              "(ActNN, GACT): the forward quantizes them, the backward unpacks them; left out or 0: as they are"},
    {KEY(memory_spec, cross_entropy), .kind = FIELD_CHOICE, .fallback = "fp32", .choices = CHOICES(CROSS_ENTROPIES),
     .choice_briefs = NAMES("Megatron-LM's kernels on logits that are converted to fp32",
                            "PyTorch's log_softmax of the logits in their own format",
                            "one kernel that reads the logits in their own format",
                            "as fp32, compiled into fewer kernels (Megatron-LM's cross_entropy_loss_fusion)",
                            "PyTorch's log_softmax of logits that are converted to fp32",
                            "with the output layer by chunks, so that all logits are never held (Liger Kernel)"),
     .brief = "how the loss is computed from the logits"},
    {KEY(memory_spec, logits), .kind = FIELD_CHOICE, .fallback = "freed", .choices = CHOICES(LOGITS),
     .choice_briefs = NAMES("after the backward of the output layer",
                            "after the whole backward, by a training loop that then computes two metrics from them "
                            "(Composer)"),
     .brief = "when the memory of the logits is freed"},
    {KEY(memory_spec, fused_gradients), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "a GPU has an fp32 buffer for all its gradients (under ZeRO: for its share): 4 bytes per parameter"},
    {KEY(memory_spec, flat_gradients), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "gradients are copied into a bucket before they are reduced, and the gradients of this GPU's share are "
              "copied into one more buffer before the optimizer step (DeepSpeed's ZeRO-1 and ZeRO-2)"},
    {KEY(memory_spec, bucket_copies), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "without ZeRO: DDP's buckets are copies of the gradients (PyTorch without gradient_as_bucket_view)"},
    {KEY(memory_spec, dummy_gradients), .kind = FIELD_CHOICE, .fallback = "none", .choices = CHOICES(DUMMY_GRADIENTS),
     .choice_briefs = NAMES("of no weights",
                            "of the blocks' linear layers (Transformer Engine since 2.3)",
                            "of the output layer too (Megatron Core since 0.14)",
                            "of experts too, one for all of a GPU (Transformer Engine since 2.10)"),
     .brief = "with fused_accumulation: a tensor in the compute format that stands for weight gradients is kept for "
              "each shape of a weight"},
    {KEY(memory_spec, gradient_accesses), .kind = FIELD_INT, .min = 0, .max = 100, .fallback = "0",
     .brief = "up to zero 2, where replicas all-reduce gradients: how often kernels of their own read or write each gradient "
              "for an all-reduce: 1 to clear it or to look it through for NaN, 2 to divide it by the number of replicas, to "
              "copy it into a bucket, or to copy it back"},
    {KEY(memory_spec, context), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES,
     .brief = "memory of the driver, CUDA and NCCL; left out: 1 GiB, and 544 MiB for each communicator of 2 GPUs or "
              "688 MiB for each larger one"},
    {KEY(memory_spec, fragmentation), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 0.9,
     .brief = "share of the allocator's memory that fragmentation makes unusable; left out: 0.055, or 0 for a model "
              "whose times are given"},
    {KEY(memory_spec, limit), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "memory of a GPU that the training may use; left out: all of it"},
    {KEY(memory_spec, enforce), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "a scenario that needs more memory than the limit is an error"},
};
const struct table memory_table = {
    TABLE("memory", "which data is stored, where and in which format", memory_spec, memory_spec_fields),
    .delegated = "fp8_weights master gradients clip_gradients fused_optimizer fused_accumulation cross_entropy logits "
            "muon_tensor muon_split_qkv newton_schulz "
            "fused_gradients flat_gradients bucket_copies dummy_gradients gradient_accesses fragmentation",
};
static const struct table *software_hosts(size_t i)
{
    static const struct table *const tables[] = {&transformer_table, &strategy_table, &memory_table, &recompute_table,
                                                 &costs_table};

    return i < COUNT(tables) ? tables[i] : NULL;
}

static const struct field software_spec_fields[] = {
    {KEY(software_spec, like), .kind = FIELD_STRING, .files = "platforms/software", .names = "none",
     .brief = "a file of platforms/software/ (dtsim list software), a path, or none; left out: megatron-core where "
              "pipeline or tensor is more than 1 (megatron-lm-2021 on GPUs without bf16, and on GPUs without fp8 for a "
              "GPT in fp16), else pytorch-fsdp with zero 3, deepspeed with zero 1 and 2, and pytorch-ddp without; none "
              "for models whose times are given"},
};

static const char *software_misplaced(struct arena *arena, const void *object, const char *key)
{
    const char *part = word_in(FILES_MAY_GIVE, key) ? "strategy" : word_in(FILES_MAY_COST, key) ? "costs" : NULL;

    (void)object;
    return part ? arena_printf(arena, "'%s' stands under '%s'", key, part) : NULL;
}

const struct table software_table = {
    TABLE("software",
          "the framework that trains, and its release; keys next to 'like' replace its values "
          "(dtsim help software)",
          software_spec, software_spec_fields),
    .shorthand = "like",
    .bare = true,
    .hosts = software_hosts,
    .misplaced = software_misplaced,
};

static const struct field simulation_spec_fields[] = {
    {KEY(simulation_spec, engine), .kind = FIELD_CHOICE, .choices = engine_names, .fallback = "simgrid",
     .brief = "what replays the program; simgrid: transfers share the bandwidth of links, by the library SimGrid; fast: "
              "the same times, many times sooner (what sweeps, comparisons and validation take if nothing is said); "
              "ideal: every transfer has its links to itself"},
    {KEY(simulation_spec, collectives), .kind = FIELD_CHOICE, .fallback = "auto", .choices = CHOICES(COLLECTIVES_MODES),
     .choice_briefs = NAMES("measured where that gives the same times and bytes as messages; else messages if there are "
                            "few of them or if collectives share links with other traffic, else measured",
                            "every message is a flow of its own",
                            "each distinct collective is simulated once, alone, and its duration is used wherever it "
                            "runs; this ignores other traffic on its links"),
     .brief = "how collectives are simulated; the collectives of ZeRO-3 are always measured"},
    {KEY(simulation_spec, fold), .kind = FIELD_CHOICE, .fallback = "auto", .choices = CHOICES(FOLDS),
     .brief = "whether one replica stands for all; auto: if all are identical and collectives are measured, unless "
              "'collectives: auto' measures a small scenario; off: all are simulated"},
    {KEY(simulation_spec, jitter), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 1, .fallback = "0",
     .brief = "standard deviation of the time of each work, divided by its mean (log-normal factor of mean 1); turns "
              "folding off"},
    {KEY(simulation_spec, stragglers), .kind = FIELD_LIST, .table = &straggler_table, .single = true,
     .may_be_empty = true,
     .brief = "GPUs that compute slower; of a tensor-parallel group the slowest decides; turns folding off"},
    {KEY(simulation_spec, slow_links), .kind = FIELD_LIST, .table = &slow_link_table, .single = true,
     .may_be_empty = true,
     .brief = "NICs with less bandwidth, in both directions; turns folding off"},
    {KEY(simulation_spec, seed), .kind = FIELD_INT, .min = 0, .max = 2147483647, .fallback = "1",
     .brief = "seed of all random numbers"},
    {KEY(simulation_spec, repeat), .kind = FIELD_INT, .min = 1, .max = 10000, .fallback = "1",
     .brief = "number of replays with jitter, each with its seed, from 'seed' on; the result is the run of the median "
              "time, with quantiles of all"},
};
static const struct table simulation_table = {
    TABLE("simulation", "how the program is replayed", simulation_spec, simulation_spec_fields),
};

static const struct field data_fields[] = {
    {KEY(data_spec, read), .kind = FIELD_QUANTITY, .unit = UNIT_SAMPLE_RATE, .positive = true, .required = true,
     .brief = "samples a second that the whole job reads from shared storage"},
    {KEY(data_spec, overlap), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "whether a step's samples are read during the step before; false (no worker processes): GPUs wait for them"},
};
static const struct table data_table = {TABLE("data", "how samples are read", data_spec, data_fields)};

static bool batch_dispensable(const struct node *scenario)
{
    return node_at(scenario, "strategy.schedule.csv") != NULL;
}

static int load_model(struct arena *arena, const struct node *node, void *object, struct error *err)
{
    return model_load(arena, node, object, err);
}

static int load_cluster(struct arena *arena, const struct node *node, void *object, struct error *err)
{
    return cluster_load(arena, node, object, err);
}

static const struct field scenario_fields[] = {
    {KEY(scenario, name), .kind = FIELD_STRING, .brief = "name of the scenario in results; left out: the file's name"},
    {KEY(scenario, model), .kind = FIELD_RECORD, .table = &model_table, .load = load_model, .required = true,
     .brief = "the network that is trained"},
    {KEY(scenario, cluster), .kind = FIELD_RECORD, .table = &cluster_table, .load = load_cluster, .required = true,
     .brief = "the cluster: a name (dtsim list platforms), a file, or a mapping"},
    {KEY(scenario, batch), .kind = FIELD_RECORD, .table = &batch_table, .required = true,
     .dispensable = batch_dispensable,
     .brief = "samples and micro-batches; not needed with an order from a file, which has its own"},
    {.key = "strategy", AT(scenario, parallelism), .kind = FIELD_RECORD, .table = &strategy_table,
     .brief = "parallelism; a key about the group of a degree has no effect if that degree is 1"},
    {KEY(scenario, memory), .kind = FIELD_RECORD, .table = &memory_table,
     .brief = "number formats, optimizer, activation checkpointing and offloading"},
    {KEY(scenario, costs), .kind = FIELD_RECORD, .table = &costs_table, .brief = "how kernels are timed"},
    {KEY(scenario, data), .kind = FIELD_OPTIONAL, .table = &data_table,
     .brief = "how samples are read; left out: GPUs never wait for them"},
    {KEY(scenario, software), .kind = FIELD_RECORD, .table = &software_table,
     .brief = "the framework that trains: a name (dtsim list software), or a mapping"},
    {KEY(scenario, train), .kind = FIELD_OPTIONAL, .table = &training_table, .load = training_load,
     .brief = "how long the model is trained, and what happens on the way (dtsim train)"},
    {KEY(scenario, simulation), .kind = FIELD_RECORD, .table = &simulation_table,
     .brief = "how the iteration is simulated"},
    {KEY(scenario, price), .kind = FIELD_QUANTITY, .unit = UNIT_PRICE, .min = 0, .max = 1e6, .by_name = true,
     .brief = "what a GPU costs by the hour, for 'cost' of results; or, where hardware is compared, by the names of platforms or "
              "GPUs: {dgx-h100: 2.50 $/h, dgx-b200: 5 $/h}; a platform's goes before its GPU's, unless 'gpu' puts another GPU into it; "
              "of 'parts' the mean of their GPUs"},
    {.key = "plan", AT(scenario, search), .kind = FIELD_RECORD, .table = &search_table, .load = search_load,
     .brief = "what 'dtsim plan' searches; other commands ignore it"},
};
const struct table scenario_table = {TABLE("scenario", "one training iteration", scenario, scenario_fields)};

/* A table whose further keys depend on what is read is the strategy's: they are options of the schedules. */
static const struct field *option_named(const char *key, size_t length)
{
    const struct field *field = NULL;

    for (size_t i = 0; !field && schedule_at(i); i++)
        if (schedule_at(i)->options)
            field = field_at(schedule_at(i)->options, key, length);
    return field;
}

const struct field *scenario_field(const char *path)
{
    const struct table *table = &scenario_table;
    const struct field *field = NULL;
    bool item = false;   /* a number must come next: one of a list; or a key of the one mapping that stands for it */

    for (;; path++) {
        size_t length = strcspn(path, ".");

        if (item && length && strspn(path, "0123456789") == length) {
            item = false;
        } else if (item && !field->single) {
            return NULL;
        } else {
            field = table ? field_at(table, path, length) : NULL;
            if (!field && table && table->extension)
                field = option_named(path, length);
            if (!field)
                return NULL;
            table = field->table;
            item = field->kind == FIELD_LIST || field->kind == FIELD_INTS || field->kind == FIELD_CHOICES;
        }
        path += length;
        if (!*path)
            return field;
    }
}

int scenario_set(struct arena *arena, struct node *root, const char *set, struct error *err)
{
    const char *path = arena_strndup(arena, set, strcspn(set, "="));

    return field_open(arena, &scenario_table, root, path, err) || conf_set(arena, root, set, err) ? -1 : 0;
}
