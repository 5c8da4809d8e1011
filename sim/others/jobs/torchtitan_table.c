/* torchtitan_table: the keys of torchtitan's TOML (pytorch/torchtitan at 000204a4, July 2025:
 * torchtitan/config/job_config.py); keys of older and newer releases say so. */
#include "jobs/jobs_internal.h"

#define MAPPED(type, text, ...) {.name = text, .class = ARGUMENT_MAPPED, .kind = type, __VA_ARGS__}
#define READ(text, type, initial) MAPPED(type, text, .fallback = initial)
#define IDLE(text) {.name = text, .class = ARGUMENT_IDLE, .kind = KIND_ANY}
#define LACKS(text, type, initial, reason) \
    {.name = text, .class = ARGUMENT_LACKS, .kind = type, .fallback = initial, .why = reason}

static const struct argument_row rows[] = {
    READ("model.name", KIND_WORD, "llama3"),
    READ("model.flavor", KIND_WORD, "debugmodel"),
    READ("model.converters", KIND_LIST, NULL),
    READ("training.local_batch_size", KIND_INT, "8"),
    READ("training.batch_size", KIND_INT, NULL), /* its name before June 2025 */
    READ("training.global_batch_size", KIND_INT, "-1"),
    READ("training.seq_len", KIND_INT, "2048"),
    READ("training.max_norm", KIND_NUMBER, "1.0"),
    READ("training.dtype", KIND_WORD, "float32"),
    READ("training.mixed_precision_param", KIND_WORD, "bfloat16"),
    MAPPED(KIND_WORD, "training.mixed_precision_reduce", .fallback = "float32", .path = "software.gradients",
           .words = "float32=widened bfloat16=half"),
    READ("training.enable_cpu_offload", KIND_BOOL, "false"),
    READ("training.compile", KIND_BOOL, "false"),
    READ("compile.enable", KIND_BOOL, "false"), /* since August 2025, for training.compile */
    READ("compile.components", KIND_LIST, NULL),
    READ("optimizer.name", KIND_WORD, "AdamW"),
    READ("optimizer.implementation", KIND_WORD, "fused"),
    READ("optimizer.fused", KIND_BOOL, NULL), /* before 2025 */
    READ("activation_checkpoint.mode", KIND_WORD, "selective"),
    READ("activation_checkpoint.selective_ac_option", KIND_WORD, "2"),
    READ("parallelism.data_parallel_replicate_degree", KIND_INT, "1"),
    READ("parallelism.data_parallel_shard_degree", KIND_INT, "-1"),
    READ("parallelism.fsdp_reshard_after_forward", KIND_WORD, "default"),
    READ("parallelism.tensor_parallel_degree", KIND_INT, "1"),
    READ("parallelism.enable_async_tensor_parallel", KIND_BOOL, "false"),
    READ("parallelism.pipeline_parallel_degree", KIND_INT, "1"),
    READ("parallelism.pipeline_parallel_schedule", KIND_WORD, "1F1B"),
    READ("parallelism.pipeline_parallel_microbatch_size", KIND_INT, "1"),
    READ("parallelism.pipeline_parallel_layers_per_stage", KIND_INT, NULL),
    READ("parallelism.pipeline_parallel_split_points", KIND_LIST, NULL),
    READ("parallelism.pipeline_parallel_first_stage_less_layers", KIND_INT, "1"),
    READ("parallelism.pipeline_parallel_last_stage_less_layers", KIND_INT, "1"),
    READ("parallelism.context_parallel_degree", KIND_INT, "1"),
    READ("parallelism.context_parallel_rotate_method", KIND_WORD, "allgather"),
    READ("parallelism.expert_parallel_degree", KIND_INT, "1"),
    READ("parallelism.expert_tensor_parallel_degree", KIND_INT, NULL),
    READ("float8.recipe_name", KIND_WORD, NULL),
    READ("quantize.linear.float8.recipe_name", KIND_WORD, NULL), /* since September 2025 */
    READ("mx.recipe_name", KIND_WORD, "mxfp8"),
    LACKS("float8.enable_fsdp_float8_all_gather", KIND_FLAG, NULL, "weights are gathered in bf16"),
    LACKS("quantize.linear.float8.enable_fsdp_float8_all_gather", KIND_FLAG, NULL, "weights are gathered in bf16"),
    LACKS("float8.precompute_float8_dynamic_scale_for_fsdp", KIND_FLAG, NULL, "scales are computed with each cast"),
    LACKS("quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", KIND_FLAG, NULL,
          "scales are computed with each "
          "cast"),
    LACKS("float8.filter_fqns", KIND_ANY, NULL, "all GEMMs of blocks are in fp8"),
    LACKS("quantize.linear.float8.filter_fqns", KIND_ANY, NULL, "all GEMMs of blocks are in fp8"),
    LACKS("float8.moe_fqns_prototype", KIND_ANY, NULL, "GEMMs of experts have the format of the others"),
    LACKS("float8.emulate", KIND_FLAG, NULL, "GEMMs are in fp8"),
    LACKS("float8.force_recompute_fp8_weight_in_bwd", KIND_FLAG, NULL, "weights are cast in the forward alone"),
    LACKS("parallelism.pipeline_parallel_schedule_csv", KIND_WORD, "",
          "the schedule of the file is not taken; give "
          "strategy: schedule: {csv: FILE}"),
    LACKS("parallelism.enable_compiled_autograd", KIND_FLAG, NULL, "the backward is not compiled by itself"),
    LACKS("parallelism.disable_loss_parallel", KIND_FLAG, NULL, "the tensor group divides the loss"),
    LACKS("parallelism.module_fqns_per_model_part", KIND_ANY, NULL,
          "stages get as even a number of blocks as possible; give "
          "strategy: split"),
    LACKS("optimizer.early_step_in_backward", KIND_FLAG, NULL, "the optimizer step waits for the backward"),
    LACKS("training.deterministic", KIND_FLAG, NULL, "kernels are the fastest ones"),
    LACKS("training.debug_moe_force_load_balance", KIND_FLAG, NULL,
          "tokens go to experts as the model's expert_skew says"),
    LACKS("fault_tolerance.enable", KIND_FLAG, NULL, "replicas are never lost"),
    LACKS("fault_tolerance.semi_sync_method", KIND_WORD, NULL, "replicas all-reduce gradients in each iteration"),
    LACKS("activation_checkpoint.early_stop", KIND_FLAG, NULL, "a recomputation goes to its end"),

    IDLE("training.steps"),
    IDLE("training.dataset"),
    IDLE("training.dataset_path"),
    IDLE("training.gc_freq"),
    IDLE("training.gc_debug"),
    IDLE("training.seed"),
    IDLE("training.warmup_steps"),
    IDLE("model.tokenizer_path"),
    IDLE("model.hf_assets_path"),
    IDLE("model.print_after_conversion"),
    IDLE("model.norm_type"),
    IDLE("optimizer.lr"),
    IDLE("optimizer.beta1"),
    IDLE("optimizer.beta2"),
    IDLE("optimizer.eps"),
    IDLE("optimizer.weight_decay"),
    IDLE("activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns"),
    IDLE("mx.filter_fqns"),
    IDLE("mx.mxfp8_dim1_cast_kernel_choice"),
    IDLE("float8.enable_float8_linear"),
};
/* Tables of names, logs, checkpoints and evaluation. */
static const char *const idle_tables[] = {"job",  "profiling",         "metrics",         "lr_scheduler", "checkpoint",
                                          "comm", "memory_estimation", "fault_tolerance", "experimental", "validation",
                                          "debug"};
static const struct argument_row idle_row = IDLE("job, profiling, metrics, lr_scheduler, checkpoint, validation");
/* [experimental] and [training] had the degrees of [parallelism] before 2025. */
static const char *const older_tables[] = {"experimental.", "training."};

static const struct argument_row *row_at(size_t index)
{
    return index < COUNT(rows) ? &rows[index] : index == COUNT(rows) ? &idle_row : NULL;
}

static const struct argument_row *find_exact(const char *name)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        if (text_same(rows[i].name, name))
            return &rows[i];
    return NULL;
}

static const struct argument_row *find(const char *name, bool log)
{
    const struct argument_row *row = find_exact(name);

    (void)log;
    for (size_t i = 0; !row && i < COUNT(older_tables); i++) {
        size_t length = strlen(older_tables[i]);
        char moved[256];

        if (!strncmp(name, older_tables[i], length)) {
            snprintf(moved, sizeof moved, "parallelism.%s", name + length);
            row = find_exact(moved);
        }
    }
    for (size_t i = 0; !row && i < COUNT(idle_tables); i++) {
        size_t length = strlen(idle_tables[i]);

        if (!strncmp(name, idle_tables[i], length) && name[length] == '.')
            row = &idle_row;
    }
    return row;
}

const struct argument_table torchtitan_keys = {.framework = "torchtitan", .dashes = "", .at = row_at, .find = find};
