/* transformers_table: the keys of Transformers' TrainingArguments (huggingface/transformers, src/transformers/training_args.py
 * at 008e5743, and those of release 4). */
#include "jobs/transformers_internal.h"

#include "base/base.h"
#include "config/field.h"

#define MAPPED(type, text, ...) {.name = text, .class = ARGUMENT_MAPPED, .kind = type, __VA_ARGS__}
#define READ(text, type, initial) MAPPED(type, text, .fallback = initial)
#define LACKS(text, type, initial, reason) \
    {.name = text, .class = ARGUMENT_LACKS, .kind = type, .fallback = initial, .why = reason}
#define MAKES(text, reason) {.name = text, .class = ARGUMENT_REFUSED, .kind = KIND_ANY, .why = reason}

static const struct argument_row rows[] = {
    READ("per_device_train_batch_size", KIND_INT, "8"),
    READ("gradient_accumulation_steps", KIND_INT, "1"),
    READ("bf16", KIND_BOOL, "false"),
    READ("fp16", KIND_BOOL, "false"),
    READ("tf32", KIND_BOOL, "false"),
    READ("gradient_checkpointing", KIND_BOOL, "false"),
    READ("max_grad_norm", KIND_NUMBER, "1.0"),
    READ("optim", KIND_WORD, "adamw_torch_fused"),
    READ("deepspeed", KIND_ANY, NULL),
    READ("fsdp", KIND_LIST, NULL),
    READ("fsdp_config.activation_checkpointing", KIND_BOOL, "false"),
    READ("fsdp_config.reshard_after_forward", KIND_WORD, "true"),
    READ("max_length", KIND_INT, NULL),                            /* of TRL's SFTConfig, max_seq_length of older ones */
    READ("max_seq_length", KIND_INT, NULL),
    LACKS("torch_compile", KIND_FLAG, NULL, "the model is not compiled"),
    LACKS("use_liger_kernel", KIND_FLAG, NULL, "kernels are PyTorch's own"),
    LACKS("ddp_bucket_cap_mb", KIND_INT, "25", "buckets have the default size"),
    LACKS("group_by_length", KIND_FLAG, NULL, "each sample has the full length"),
    LACKS("auto_find_batch_size", KIND_FLAG, NULL, "the batch is as it is given"),
    LACKS("torch_dtype", KIND_WORD, "float32", "weights have a master copy in fp32"),
    LACKS("dtype", KIND_WORD, "float32", "weights have a master copy in fp32"),
    LACKS("torch_empty_cache_steps", KIND_INT, NULL, "the allocator's cache is never emptied"),
    LACKS("neftune_noise_alpha", KIND_NUMBER, NULL, "no kernel adds noise to embeddings"),
    LACKS("fsdp_config.forward_prefetch", KIND_FLAG, NULL, "the forward gathers when it needs weights"),
    LACKS("fsdp_config.backward_prefetch", KIND_WORD, "backward_pre", "gathers run before the backward that needs them"),
    LACKS("gradient_checkpointing_kwargs.use_reentrant", KIND_BOOL, "false", "recomputation ends early"),
    MAKES("use_peft", "adapters are trained"), MAKES("lora_r", "adapters are trained"),
    MAKES("load_in_4bit", "weights are quantized"), MAKES("load_in_8bit", "weights are quantized"),
    MAKES("tp_size", "tensors are divided"), MAKES("parallelism_config", "tensors or samples are divided"),
    MAKES("use_cpu", "no GPU computes"), MAKES("no_cuda", "no GPU computes"),
};
static const struct argument_row idle_row = {.name = "data, logs, checkpoints, evaluation and rates", .class = ARGUMENT_IDLE,
                                             .kind = KIND_ANY};

/* What says nothing of an iteration's time: words with which a key begins, and whole keys. */
static bool is_idle(const char *name)
{
    static const char *const begins[] = {"adam_", "eval_", "save_", "logging_", "log_", "lr_", "push_to_hub", "hub_", "dataloader_",
                                         "dataset_", "report_", "run_", "warmup_", "load_best", "metric_", "ddp_", "jit_", "include_",
                                         "dataset", "remove_", "label_", "per_device_eval", "fsdp_config.", "data_", "_", "optim_"};

    for (size_t i = 0; i < COUNT(begins); i++)
        if (!strncmp(name, begins[i], strlen(begins[i])))
            return true;
    return word_in("output_dir overwrite_output_dir do_train do_eval do_predict num_train_epochs max_steps learning_rate "
                   "weight_decay seed data_seed full_determinism disable_tqdm resume_from_checkpoint ignore_data_skip "
                   "past_index project trackio_space_id local_rank prediction_loss_only greater_is_better "
                   "restore_callback_states_from_checkpoint average_tokens_across_devices batch_eval_metrics bf16_full_eval "
                   "fp16_full_eval gradient_checkpointing_kwargs packing enable_jit_checkpoint accelerator_config "
                   "model_name_or_path model_revision trust_remote_code skip_memory_metrics debug length_column_name", name);
}

static const struct argument_row *row_at(size_t index)
{
    return index < COUNT(rows) ? &rows[index] : index == COUNT(rows) ? &idle_row : NULL;
}

static const struct argument_row *find(const char *name, bool log)
{
    (void)log;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t length = strlen(rows[i].name);

        if (text_same(rows[i].name, name) || (rows[i].kind == KIND_ANY && !strncmp(rows[i].name, name, length) && name[length] == '.'))
            return &rows[i];
    }
    return is_idle(name) ? &idle_row : NULL;
}

const struct argument_table transformers_keys = {.framework = "TrainingArguments", .dashes = "", .at = row_at, .find = find};
