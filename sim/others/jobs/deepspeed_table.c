/* deepspeed_table: the keys of DeepSpeed's JSON (deepspeedai/DeepSpeed: runtime/constants.py, runtime/config.py,
 * runtime/zero/config.py and offload_config.py at 1b88ac36; docs/_pages/config-json.md). */
#include "jobs/jobs_internal.h"

#define MAPPED(type, text, ...) {.name = text, .class = ARGUMENT_MAPPED, .kind = type, __VA_ARGS__}
#define READ(text, type, initial) MAPPED(type, text, .fallback = initial)
#define IDLE(text) {.name = text, .class = ARGUMENT_IDLE, .kind = KIND_ANY}
#define LACKS(text, type, initial, reason) \
    {.name = text, .class = ARGUMENT_LACKS, .kind = type, .fallback = initial, .why = reason}
#define ZERO "zero_optimization."

static const struct argument_row rows[] = {
    READ("train_batch_size", KIND_INT, NULL),
    READ("train_micro_batch_size_per_gpu", KIND_INT, NULL),
    READ("gradient_accumulation_steps", KIND_INT, NULL),
    READ("gradient_clipping", KIND_NUMBER, "0"),
    READ("fp16.enabled", KIND_BOOL, "false"),
    READ("bf16.enabled", KIND_BOOL, "false"),
    READ("data_types.grad_accum_dtype", KIND_WORD, NULL),
    READ("communication_data_type", KIND_WORD, NULL),
    READ("optimizer.type", KIND_WORD, "AdamW"),
    READ("activation_checkpointing.partition_activations", KIND_BOOL, "false"),
    READ("activation_checkpointing.cpu_checkpointing", KIND_BOOL, "false"),
    LACKS("activation_checkpointing.number_checkpoints", KIND_INT, NULL,
          "the model's code says which inputs are kept; give "
          "memory: recompute"),
    LACKS("activation_checkpointing.synchronize_checkpoint_boundary", KIND_FLAG, NULL,
          "no stage waits at its checkpoints"),
    LACKS("activation_checkpointing.contiguous_memory_optimization", KIND_FLAG, NULL,
          "kept inputs are not copied into one "
          "buffer"),
    IDLE("activation_checkpointing.profile"),

    READ(ZERO "stage", KIND_INT, "0"),
    READ(ZERO "overlap_comm", KIND_BOOL, NULL),
    READ(ZERO "reduce_scatter", KIND_BOOL, "true"),
    READ(ZERO "contiguous_gradients", KIND_BOOL, "true"),
    READ(ZERO "reduce_bucket_size", KIND_NUMBER, "5e8"),
    READ(ZERO "offload_optimizer.device", KIND_WORD, "none"),
    READ(ZERO "offload_param.device", KIND_WORD, "none"),
    READ(ZERO "cpu_offload", KIND_BOOL, "false"), /* the name before offload_optimizer */
    READ(ZERO "cpu_offload_param", KIND_BOOL, "false"),
    READ(ZERO "stage3_prefetch_bucket_size", KIND_NUMBER, "5e7"),
    READ(ZERO "stage3_max_live_parameters", KIND_NUMBER, "1e9"),
    READ(ZERO "stage3_max_reuse_distance", KIND_NUMBER, "1e9"),
    READ(ZERO "stage3_param_persistence_threshold", KIND_NUMBER, "1e5"),
    READ(ZERO "mics_shard_size", KIND_INT, "-1"),
    LACKS(ZERO "zero_hpz_partition_size", KIND_INT, "1", "there is no second copy of the weights in each node"),
    LACKS(ZERO "zero_quantized_weights", KIND_FLAG, NULL, "weights are gathered in their own format"),
    LACKS(ZERO "zero_quantized_nontrainable_weights", KIND_FLAG, NULL, "frozen weights have their own format"),
    LACKS(ZERO "zero_quantized_gradients", KIND_FLAG, NULL, "gradients are scattered in their own format"),
    LACKS(ZERO "offload_optimizer.ratio", KIND_NUMBER, "1.0", "all states are on the host, or none"),
    LACKS(ZERO "allgather_bucket_size", KIND_NUMBER, "5e8", "updated weights are gathered at once"),
    LACKS(ZERO "allgather_partitions", KIND_BOOL, "true", "updated weights are gathered, not broadcast"),
    LACKS(ZERO "round_robin_gradients", KIND_FLAG, NULL, "gradients go to the host in their own order"),
    LACKS(ZERO "use_multi_rank_bucket_allreduce", KIND_BOOL, "true", "a bucket is one collective"),
    LACKS(ZERO "sub_group_size", KIND_NUMBER, "1e9", "all parameters of a GPU are updated at once"),
    LACKS(ZERO "mics_hierarchical_params_gather", KIND_FLAG, NULL, "a gather has one level"),
    LACKS(ZERO "stage3_module_granularity_threshold", KIND_INT, "0", "each module is gathered by itself"),
    LACKS(ZERO "stage3_use_all_reduce_for_fetch_params", KIND_FLAG, NULL, "weights are gathered"),
    LACKS(ZERO "stage3_allgather_sequential", KIND_FLAG, NULL, "weights are gathered in one collective for a module"),
    LACKS(ZERO "stage3_model_persistence_threshold", KIND_NUMBER, NULL,
          "the number of parameters that stay whole has no limit"),
    LACKS(ZERO "zenflow", KIND_ANY, NULL, "the optimizer step waits for the backward"),
    IDLE(ZERO "offload_optimizer.pin_memory"),
    IDLE(ZERO "offload_optimizer.buffer_count"),
    IDLE(ZERO "offload_optimizer.fast_init"),
    IDLE(ZERO "offload_param.pin_memory"),
    IDLE(ZERO "offload_param.buffer_count"),
    IDLE(ZERO "offload_param.buffer_size"),
    IDLE(ZERO "offload_param.max_in_cpu"),
    IDLE(ZERO "cpu_offload_use_pin_memory"),
    IDLE(ZERO "offload_optimizer.nvme_path"),
    IDLE(ZERO "offload_param.nvme_path"),
    IDLE(ZERO "offload_optimizer.pipeline_read"),
    IDLE(ZERO "offload_optimizer.pipeline_write"),
    IDLE(ZERO "stage3_gather_16bit_weights_on_model_save"),
    IDLE(ZERO "stage3_gather_fp16_weights_on_model_save"),
    IDLE(ZERO "load_from_fp32_weights"),
    IDLE(ZERO "elastic_checkpoint"),
    IDLE(ZERO "ignore_unused_parameters"),
    IDLE(ZERO "memory_efficient_linear"),
    IDLE(ZERO "override_module_apply"),
    IDLE(ZERO "log_trace_cache_warnings"),
    IDLE(ZERO "enable_sanity_checks"),
    IDLE(ZERO "pipeline_loading_checkpoint"),
    IDLE(ZERO "legacy_stage1"),

    READ("pipeline.stages", KIND_WORD, "1"),
    READ("pipeline.partition", KIND_WORD, NULL),
    IDLE("pipeline.seed_layers"),
    READ("pipeline.activation_checkpoint_interval", KIND_INT, "0"),
    READ("tensor_parallel.autotp_size", KIND_INT, "1"),
    LACKS("compression_training", KIND_ANY, NULL, "the model is whole"),
    LACKS("progressive_layer_drop.enabled", KIND_FLAG, NULL, "no layer is left out"),
    LACKS("curriculum_learning.enabled", KIND_FLAG, NULL, "the sequence has its full length"),
    LACKS("flops_profiler.enabled", KIND_FLAG, NULL, "nothing measures"),
    LACKS("wall_clock_breakdown", KIND_FLAG, NULL, "the GPUs do not wait for timers"),
    LACKS("sparse_gradients", KIND_FLAG, NULL, "gradients of embeddings are dense"),
    LACKS("sparse_attention.mode", KIND_WORD, "dense", "attention is dense"),
    LACKS("amp.enabled", KIND_FLAG, NULL, "Apex's mixed precision is not there; give bf16 or fp16"),
    LACKS("torch_autocast.enabled", KIND_FLAG, NULL, "PyTorch's autocast is not there; give bf16 or fp16"),
    LACKS("compile.enabled", KIND_FLAG, NULL, "the model is not compiled"),
    LACKS("compile.deepcompile", KIND_FLAG, NULL, "the model is not compiled"),
    LACKS("aio", KIND_ANY, NULL, "no disk holds states"),

    /* of the loss, the data, logs and whole runs */
    IDLE("fp16.auto_cast"),
    IDLE("fp16.loss_scale"),
    IDLE("fp16.initial_scale_power"),
    IDLE("fp16.loss_scale_window"),
    IDLE("fp16.hysteresis"),
    IDLE("fp16.min_loss_scale"),
    IDLE("fp16.consecutive_hysteresis"),
    IDLE("prescale_gradients"),
    IDLE("gradient_predivide_factor"),
    IDLE("steps_per_print"),
    IDLE("dump_state"),
    IDLE("zero_allow_untested_optimizer"),
    IDLE("zero_force_ds_cpu_optimizer"),
    IDLE("optimizer.legacy_fusion"),
    IDLE("checkpoint"),
    IDLE("dataloader_drop_last"),
    IDLE("disable_allgather"),
    IDLE("seq_parallel_communication_data_type"),
    IDLE("memory_breakdown"),
};
/* Everything below these is of the optimizer's numbers, logs and the search for a configuration. */
static const char *const idle_below[] = {"optimizer.params",    "scheduler",
                                         "tensorboard",         "wandb",
                                         "csv_monitor",         "comet",
                                         "comms_logger",        "elasticity",
                                         "autotuning",          "checkpoint",
                                         "data_efficiency",     "flops_profiler",
                                         "curriculum_learning", "progressive_layer_drop",
                                         "eigenvalue"};
static const struct argument_row idle_row = IDLE("optimizer.params, scheduler, logs");
/* The same of what is not simulated. */
static const char *const lacking_below[] = {"compression_training", "aio", ZERO "zenflow"};

static const struct argument_row *row_at(size_t index)
{
    return index < COUNT(rows) ? &rows[index] : index == COUNT(rows) ? &idle_row : NULL;
}

static bool below(const char *name, const char *folder)
{
    size_t length = strlen(folder);

    return !strncmp(name, folder, length) && name[length] == '.';
}

/* Whether a key is a row's, by its name or by the field's own, of which stage3_... is an alias (runtime/zero/config.py). */
static bool is_row(const struct argument_row *row, const char *name)
{
    const char prefix[] = ZERO "stage3_";

    return text_same(row->name, name) || (!strncmp(row->name, prefix, sizeof prefix - 1) && below(name, "zero_optimization") &&
                                          text_same(row->name + sizeof prefix - 1, name + sizeof ZERO - 1));
}

static const struct argument_row *find(const char *name, bool log)
{
    /* comments: DeepSpeed passes over what it does not know at the top, and there alone */
    if (strchr("_#/", *name) || below(name, "comment") || text_same(name, "comment"))
        return &idle_row;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (is_row(&rows[i], name))
            return &rows[i];
    for (size_t i = 0; i < COUNT(lacking_below); i++)
        if (below(name, lacking_below[i]))
            return find(lacking_below[i], log);
    for (size_t i = 0; i < COUNT(idle_below); i++)
        if (below(name, idle_below[i]))
            return &idle_row;
    return NULL;
}

const struct argument_table deepspeed_keys = {.framework = "DeepSpeed", .dashes = "", .at = row_at, .find = find};
