/* bridge_table: the keys of Megatron Bridge (NVIDIA-NeMo/Megatron-Bridge at 067f987d, August 2026:
 * src/megatron/bridge/training/config.py, mixed_precision.py and comm_overlap.py, models/gpt_provider.py), whose
 * classes extend Megatron Core's (NVIDIA/Megatron-LM at d98e8a64: core/transformer/transformer_config.py,
 * core/model_parallel_config.py, core/distributed/distributed_data_parallel_config.py,
 * core/optimizer/optimizer_config.py). */
#include "jobs/bridge_table.h"

#include "base/base.h"
#include "megatron/megatron_table.h"

/* Keys that are not "model." and the argument's name; the first one of an argument is the one that is written. */
static const struct { const char *key, *argument; } names[] = {
    {"train.micro_batch_size", "micro-batch-size"},
    {"train.global_batch_size", "global-batch-size"},
    {"train.rampup_batch_size", "rampup-batch-size"},
    {"train.step_batch_size_schedule", "step-batch-size-schedule"},
    {"train.empty_unused_memory_level", "empty-unused-memory-level"},
    {"model.seq_length", "seq-length"},
    {"dataset.seq_length", "seq-length"},
    {"dataset.sequence_length", "seq-length"},               /* releases of 2025 */
    {"model.num_moe_experts", "num-experts"},
    {"model.add_bias_linear", "disable-bias-linear"},
    {"model.share_embeddings_and_output_weights", "untie-embeddings-and-output-weights"},
    {"model.apply_rope_fusion", "no-rope-fusion"},
    {"model.gradient_accumulation_fusion", "no-gradient-accumulation-fusion"},
    {"model.masked_softmax_fusion", "no-masked-softmax-fusion"},
    {"model.bias_dropout_fusion", "no-bias-dropout-fusion"},
    {"model.persist_layer_norm", "no-persist-layer-norm"},
    {"model.overlap_p2p_comm", "no-overlap-p2p-communication"},
    {"model.overlap_p2p_comm_warmup_flush", "overlap-p2p-communication-warmup-flush"},
    {"model.virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
    {"model.microbatch_group_size_per_vp_stage", "microbatch-group-size-per-virtual-pipeline-stage"},
    {"model.num_layers_in_first_pipeline_stage", "decoder-first-pipeline-num-layers"},
    {"model.num_layers_in_last_pipeline_stage", "decoder-last-pipeline-num-layers"},
    {"model.layernorm_epsilon", "norm-epsilon"},
    {"model.rope_scaling", "use-rope-scaling"},
    {"model.seq_len_interpolation_factor", "rotary-seq-len-interpolation-factor"},
    {"model.use_te_rng_tracker", "te-rng-tracker"},
    {"mixed_precision.bf16", "bf16"},
    {"model.bf16", "bf16"},
    {"optimizer.bf16", "bf16"},
    {"mixed_precision.fp16", "fp16"},
    {"model.fp16", "fp16"},
    {"optimizer.fp16", "fp16"},
    {"mixed_precision.fp8", "fp8-format"},
    {"model.fp8", "fp8-format"},
    {"mixed_precision.fp8_recipe", "fp8-recipe"},
    {"model.fp8_recipe", "fp8-recipe"},
    {"optimizer.fp8_recipe", "fp8-recipe"},
    {"mixed_precision.fp8_param_gather", "fp8-param-gather"},
    {"mixed_precision.fp8_param", "fp8-param-gather"},
    {"mixed_precision.fp8_params", "fp8-param-gather"},      /* NeMo 2 */
    {"model.fp8_param", "fp8-param-gather"},
    {"ddp.fp8_param_gather", "fp8-param-gather"},
    {"mixed_precision.fp4", "fp4-format"},
    {"model.fp4", "fp4-format"},
    {"mixed_precision.first_last_layers_bf16", "first-last-layers-bf16"},
    {"model.first_last_layers_bf16", "first-last-layers-bf16"},
    {"ddp.overlap_grad_reduce", "overlap-grad-reduce"},
    {"comm_overlap.overlap_grad_reduce", "overlap-grad-reduce"},
    {"ddp.overlap_param_gather", "overlap-param-gather"},
    {"comm_overlap.overlap_param_gather", "overlap-param-gather"},
    {"optimizer.overlap_param_gather", "overlap-param-gather"},
    {"ddp.bucket_size", "ddp-bucket-size"},
    {"comm_overlap.bucket_size", "ddp-bucket-size"},
    {"ddp.num_buckets", "ddp-num-buckets"},
    {"ddp.use_distributed_optimizer", "use-distributed-optimizer"},
    {"optimizer.use_distributed_optimizer", "use-distributed-optimizer"},
    {"ddp.num_distributed_optimizer_instances", "num-distributed-optimizer-instances"},
    {"ddp.average_in_collective", "ddp-average-in-collective"},
    {"ddp.check_for_nan_in_grad", "no-check-for-nan-in-loss-and-grad"},
    {"ddp.pad_buckets_for_high_nccl_busbw", "ddp-pad-buckets-for-high-nccl-busbw"},
    {"ddp.nccl_ub", "use-nccl-ub"},
    {"ddp.use_megatron_fsdp", "use-megatron-fsdp"},
    {"ddp.data_parallel_sharding_strategy", "data-parallel-sharding-strategy"},
    {"ddp.outer_dp_sharding_strategy", "outer-dp-sharding-strategy"},
    {"ddp.suggested_communication_unit_size", "suggested-communication-unit-size"},
    {"optimizer.overlap_param_gather_with_optimizer_step", "overlap-param-gather-with-optimizer-step"},
    {"comm_overlap.overlap_param_gather_with_optimizer_step", "overlap-param-gather-with-optimizer-step"},
    {"optimizer.optimizer", "optimizer"},
    {"optimizer.muon_tp_mode", "muon-tp-mode"},
    {"optimizer.muon_split_qkv", "muon-no-split-qkv"},
    {"optimizer.muon_num_ns_steps", "muon-num-ns-steps"},
    {"optimizer.muon_fp32_matmul_prec", "muon-fp32-matmul-prec"},
    {"optimizer.muon_scalar_optimizer", "muon-scalar-optimizer"},
    {"optimizer.muon_use_syrk", "muon-use-syrk"},
    {"optimizer.clip_grad", "clip-grad"},
    {"optimizer.use_precision_aware_optimizer", "use-precision-aware-optimizer"},
    {"optimizer.main_grads_dtype", "main-grads-dtype"},
    {"optimizer.main_params_dtype", "main-params-dtype"},
    {"optimizer.exp_avg_dtype", "exp-avg-dtype"},
    {"optimizer.exp_avg_sq_dtype", "exp-avg-sq-dtype"},
    {"optimizer.optimizer_cpu_offload", "optimizer-cpu-offload"},
    {"optimizer.optimizer_offload_fraction", "optimizer-offload-fraction"},
    {"optimizer.pin_cpu_grads", "no-pin-cpu-grads"},
    {"optimizer.pin_cpu_params", "no-pin-cpu-params"},
    {"optimizer.overlap_cpu_optimizer_d2h_h2d", "overlap-cpu-optimizer-d2h-h2d"},
    {"model.tp_comm_overlap", "tp-comm-overlap"},
    {"comm_overlap.tp_comm_overlap", "tp-comm-overlap"},
    {"comm_overlap.overlap_p2p_comm", "no-overlap-p2p-communication"},
    {"comm_overlap.defer_embedding_wgrad_compute", "defer-embedding-wgrad-compute"},
    {"model.defer_embedding_wgrad_compute", "defer-embedding-wgrad-compute"},
    {"comm_overlap.overlap_moe_expert_parallel_comm", "overlap-moe-expert-parallel-comm"},
    {"model.overlap_moe_expert_parallel_comm", "overlap-moe-expert-parallel-comm"},
    {"comm_overlap.delay_wgrad_compute", "delay-wgrad-compute"},
    {"model.delay_wgrad_compute", "delay-wgrad-compute"},
    {"ddp.delay_wgrad_compute", "delay-wgrad-compute"},
    {"tokenizer.vocab_size", "vocab-size"},
    {"tokenizer.padded_vocab_size", "padded-vocab-size"},
    {"tokenizer.tokenizer_type", "tokenizer-type"},
};

#define READ(text) {.name = text, .class = ARGUMENT_MAPPED, .kind = KIND_ANY}
#define IDLE(text) {.name = text, .class = ARGUMENT_IDLE, .kind = KIND_ANY}
#define LACKS(text, initial, reason) \
    {.name = text, .class = ARGUMENT_LACKS, .kind = KIND_FLAG, .fallback = initial, .why = reason}

/* Keys that Megatron-LM has no argument for. bridge.c reads those that are mapped. */
static const struct argument_row rows[] = {
    READ("mixed_precision"), READ("mixed_precision.grad_reduce_in_fp32"), READ("mixed_precision.precision"),
    READ("ddp.grad_reduce_in_fp32"), READ("model.activation_func"), READ("model.gated_linear_unit"),
    READ("model.vocab_size"), READ("model.should_pad_vocab"), READ("model.params_dtype"),
    {.name = "peft.dim", .class = ARGUMENT_MAPPED, .kind = KIND_INT},
    READ("peft.target_modules"), IDLE("peft.alpha"), IDLE("peft.lora_A_init_method"), IDLE("peft.lora_B_init_method"),
    IDLE("peft.dropout_position"), LACKS("peft.dropout", "0.0", "adapters drop nothing"),
    {.name = "peft", .class = ARGUMENT_MAPPED, .kind = KIND_ANY},
    {.name = "peft.exclude_modules", .class = ARGUMENT_LACKS, .kind = KIND_ANY, .why = "all blocks have the adapters"},
    {.name = "peft.a2a_experimental", .class = ARGUMENT_LACKS, .kind = KIND_ANY, .fallback = "false",
     .why = "adapters are exchanged as the layers that they belong to"},
    LACKS("model.bias_activation_fusion", "true", "bias and activation stay fused"),
    LACKS("model.qk_l2_norm", NULL, "no kernel scales queries and keys by their length"),
    LACKS("model.cpu_offloading", NULL, "activations stay on the GPU"),
    LACKS("model.dense_grouped_gemm", NULL, "GEMMs of dense layers are single ones"),
    LACKS("mixed_precision.fp8_dot_product_attention", NULL, "the core of attention is not in fp8"),
    LACKS("mixed_precision.fp8_multi_head_attention", NULL, "the core of attention is not in fp8"),
    LACKS("mixed_precision.reuse_grad_buf_for_mxfp8_param_ag", NULL, "gathered weights have a buffer of their own"),
    LACKS("ddp.align_param_gather", NULL, "each chunk gathers its weights when it can"),
    LACKS("comm_overlap.align_param_gather", NULL, "each chunk gathers its weights when it can"),
    IDLE("model.init_method"), IDLE("model.output_layer_init_method"), IDLE("model.embedding_init_method"),
    IDLE("model.perform_initialization"), IDLE("model.pipeline_dtype"), IDLE("model.autocast_dtype"),
    IDLE("model.enable_autocast"), IDLE("model.autocast_enabled"), IDLE("model.transformer_layer_spec"),
    IDLE("model.hf_model_id"), IDLE("model.hf_model_revision"), IDLE("model.generation_config"),
    IDLE("model.parallel_output"), IDLE("model.deallocate_pipeline_outputs"), IDLE("model.variable_seq_lengths"),
    IDLE("model.scatter_embedding_sequence_parallel"), IDLE("model.batch_p2p_comm"), IDLE("model.batch_p2p_sync"),
    IDLE("model.memory_efficient_layer_norm"), IDLE("model.tp_comm_overlap_cfg"), IDLE("model.tp_only_amax_red"),
    IDLE("model.wgrad_deferral_limit"), IDLE("model.logit_dtype"), IDLE("model.attention_softmax_in_fp32"),
    IDLE("model.yarn_rotary_scaling_factor"), IDLE("model.yarn_mscale"), IDLE("model.yarn_mscale_all_dim"),
    IDLE("model.original_max_position_embeddings"), IDLE("model.beta_fast"), IDLE("model.beta_slow"),
    IDLE("model.num_layers_at_start_in_bf16"), IDLE("model.num_layers_at_end_in_bf16"),
    IDLE("model.layernorm_zero_centered_gamma"), IDLE("model.softmax_scale"), IDLE("model.pipeline_model_parallel_comm_backend"),
    IDLE("model.clone_scatter_output_in_embedding"), IDLE("model.cross_entropy_fusion_impl_options"),
    IDLE("mixed_precision.params_dtype"), IDLE("mixed_precision.pipeline_dtype"), IDLE("mixed_precision.autocast_dtype"),
    IDLE("mixed_precision.autocast_enabled"), IDLE("mixed_precision.fp8_wgrad"),
    IDLE("mixed_precision.num_layers_at_start_in_bf16"), IDLE("mixed_precision.num_layers_at_end_in_bf16"),
    IDLE("mixed_precision.fp4_param"), IDLE("comm_overlap.tp_comm_overlap_cfg"), IDLE("comm_overlap.batch_p2p_comm"),
    IDLE("comm_overlap.wgrad_deferral_limit"), IDLE("comm_overlap.data_parallel_size"),
    IDLE("optimizer.params_dtype"), IDLE("optimizer.store_param_remainders"), IDLE("optimizer.decoupled_weight_decay"),
    IDLE("optimizer.muon_momentum"), IDLE("optimizer.muon_nesterov"), IDLE("optimizer.muon_use_nesterov"),
    IDLE("optimizer.muon_scale_mode"), IDLE("optimizer.muon_extra_scale_factor"), IDLE("optimizer.muon_coefficient_type"),
    IDLE("optimizer.log_num_zeros_in_grad"), IDLE("optimizer.barrier_with_L1_time"),
    IDLE("train.num_epochs"), IDLE("train.check_optimizer_step_success"), IDLE("train.skip_sync_grad_norm_across_mp"),
    IDLE("train.train_sync_interval"), IDLE("train.skip_train"),
};
/* Sections of names, data, logs, checkpoints and evaluation. */
static const char *const idle_sections[] = {
    "rng", "rerun_state_machine", "validation", "scheduler", "dataset", "logger", "tokenizer", "checkpoint", "dist", "ft",
    "straggler", "nvrx_straggler", "profiling", "tensor_inspect", "inprocess_restart", "env_vars",
    "optimizer_config_override_provider",
};
static const struct argument_row idle_row = IDLE("rng, scheduler, dataset, logger, tokenizer, checkpoint, ...");
static const char *const sections[] = {"model", "train", "optimizer", "ddp", "mixed_precision", "comm_overlap"};

/* Values of keys that a printed configuration says although nobody chose them. */
static const struct { const char *key, *value; } defaults[] = {
    {"model.softmax_type", "vanilla"}, {"model.qk_clip_alpha", "0.5"}, {"model.qk_clip_threshold", "100"},
    {"model.dsa_indexer_topk_freq", "1"}, {"model.dsa_kernel_backend", "none"},
    {"model.dsa_indexer_rotate_activation", "true"}, {"model.dsa_indexer_scoring_relu", "true"},
    {"model.linear_conv_kernel_dim", "4"}, {"model.linear_key_head_dim", "128"}, {"model.linear_value_head_dim", "128"},
    {"model.linear_num_key_heads", "16"}, {"model.linear_num_value_heads", "32"}, {"model.mup_width_mult", "1.0"},
    {"model.mup_embedding_mult", "1.0"}, {"model.mup_output_mult", "1.0"}, {"model.mup_attn_scale_power", "1.0"},
    {"model.kitchen_attention_backend", "sdpa"}, {"model.moe_dispatch_fwd_dtype", "bf16"},
    {"model.moe_combine_bwd_dtype", "bf16"}, {"model.moe_hybridep_num_sms_preprocessing", "108"},
    {"model.cuda_graph_use_single_mempool", "true"}, {"model.cuda_graph_warmup_steps", "3"},
    {"model.cuda_graph_modules", "full"}, {"model.mhc_num_residual_streams", "4"}, {"model.mhc_sinkhorn_iterations", "20"},
    {"model.mhc_init_gating_factor", "0.01"}, {"model.batch_invariant_backend", "te_native"},
    {"model.inference_sampling_seed", "42"}, {"model.mamba_state_dim", "128"}, {"model.mamba_head_dim", "64"},
    {"model.mamba_num_groups", "8"}, {"model.gdp_num_householder", "3"}, {"model.use_mamba_mem_eff_path", "true"},
    {"model.gdp_num_chunk_states_to_recompute", "2"}, {"model.mlp_chunks_for_training", "1"},
    {"model.min_offloaded_tensor_size", "1048576"}, {"model.activation_offload_fraction", "1.0"},
    {"model.moe_paged_stash_page_size", "64"}, {"model.moe_paged_stash_buffer_size_factor_cuda", "1.1"},
    {"model.moe_paged_stash_buffer_size_factor_cpu", "0.0"}, {"model.gtp_weight_remat_size", "1"},
    {"model.expert_gtp_weight_remat_size", "1"}, {"model.tp_comm_bulk_wgrad", "true"},
    {"model.tp_comm_bulk_dgrad", "true"}, {"model.tp_comm_overlap_ag", "true"}, {"model.tp_comm_overlap_rs", "true"},
    {"model.tp_comm_split_ag", "true"}, {"model.tp_comm_split_rs", "true"}, {"model.cpu_offloading_activations", "true"},
    {"model.fp4_recipe", "nvfp4"}, {"mixed_precision.fp4_recipe", "nvfp4"}, {"model.fp8_wgrad", "true"},
    {"ddp.megatron_fsdp_version", "1"}, {"ddp.gradient_reduce_div_fusion", "true"},
    {"ddp.fsdp_all_gather_in_start_param_sync", "true"}, {"ddp.megatron_fsdp_main_params_dtype", "fp32"},
};

static bool same(const char *text, const char *part, size_t length)
{
    return strlen(part) == length && !strncmp(text, part, length);
}

const char *bridge_default(const char *key)
{
    for (size_t i = 0; i < COUNT(defaults); i++)
        if (!strcmp(defaults[i].key, key))
            return defaults[i].value;
    return NULL;
}

static const struct argument_row *row_at(size_t index)
{
    return index < COUNT(rows) ? &rows[index] : index == COUNT(rows) ? &idle_row : megatron_row_at(index - COUNT(rows) - 1);
}

static const char *first_key(const char *argument)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(names[i].argument, argument))
            return names[i].key;
    return NULL;
}

/* The row of "section.name_of_argument". An argument that another key says is not found. */
static const struct argument_row *find_in_section(const char *key, const char *dot)
{
    const struct argument_row *row;
    char dashed[128];
    size_t length = strlen(dot + 1);
    bool known = false;

    for (size_t i = 0; i < COUNT(sections); i++)
        known |= same(key, sections[i], (size_t)(dot - key));
    if (!known || length >= sizeof dashed)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        dashed[i] = (char)(dot[1 + i] == '_' ? '-' : dot[1 + i]);
    row = megatron_row(dashed, true);
    return row && !first_key(row->name) ? row : NULL;
}

static const struct argument_row *find(const char *name, bool log)
{
    const char *dot = strchr(name, '.');
    size_t length = dot ? (size_t)(dot - name) : strlen(name);

    (void)log;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(names[i].key, name))
            return megatron_row(names[i].argument, false);
    if (!strcmp(name, idle_row.name))
        return &idle_row;
    for (size_t i = 0; i < COUNT(idle_sections); i++)
        if (same(name, idle_sections[i], length))
            return &idle_row;
    return dot ? find_in_section(name, dot) : megatron_row(name, false);
}

const char *bridge_key(struct arena *arena, const char *argument, bool *inverse)
{
    const struct argument_row *row = megatron_row(argument, false);
    const char *key = row ? first_key(row->name) : NULL;
    char *text;

    *inverse = row && row->logged && *row->logged == '!';
    if (key)
        return key;
    text = (char *)arena_printf(arena, "model.%s", argument);
    for (char *c = text; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return text;
}

static const char *shown(struct arena *arena, const char *name)
{
    bool inverse;

    return megatron_row(name, false) ? bridge_key(arena, name, &inverse) : name;
}

const struct argument_table bridge_keys = {
    .framework = "Megatron Bridge", .dashes = "", .at = row_at, .find = find, .is_inner = NULL, .shown = shown,
};
