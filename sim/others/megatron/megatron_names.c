/* megatron_names: all other arguments of Megatron-LM (NVIDIA/Megatron-LM d98e8a64), which no key of a scenario says. */
#include "megatron/megatron_names.h"

#include "config/field.h"

#define IDLE(name) {name, ARGUMENT_IDLE, KIND_ANY, .fallback = NULL}
#define LACKS(name) {name, ARGUMENT_LACKS, KIND_ANY, .fallback = NULL}
#define MAKES(name, what) {name, ARGUMENT_REFUSED, KIND_ANY, .why = what}

static const struct argument_row others[] = {
    /* Where data and checkpoints are, what is logged, what the optimizer's numbers are, how the weights begin,
     * evaluation, inference. */
    IDLE("adam-beta1"), IDLE("adam-beta2"), IDLE("adam-eps"), IDLE("adlr-autoresume"),
    IDLE("adlr-autoresume-interval"), IDLE("allow-ambiguous-pad-tokens"), IDLE("app-tag-run-name"),
    IDLE("app-tag-run-version"), IDLE("apply-layernorm-1p"), IDLE("apply-wd-to-qk-layernorm"),
    IDLE("async-ckpt-cpu-priority"), IDLE("async-ckpt-io-priority"), IDLE("async-ckpt-use-cpu-shm"),
    IDLE("async-strategy"), IDLE("auto-detect-ckpt-format"), IDLE("bert-embedder-type"), IDLE("bert-load"),
    IDLE("block-data-path"), IDLE("cache-mla-latents"), IDLE("calc-ft-timeouts"),
    IDLE("chat-template"), IDLE("check-for-large-grads"), IDLE("check-for-spiky-loss"),
    IDLE("ckpt-assume-constant-structure"), IDLE("ckpt-convert-format"), IDLE("ckpt-convert-save"),
    IDLE("ckpt-convert-update-legacy-dist-opt-format"), IDLE("ckpt-drop-redundant-extra-state"),
    IDLE("ckpt-fully-parallel-load-exchange-algo"), IDLE("ckpt-fully-parallel-load-per-rank-objects"),
    IDLE("ckpt-fully-parallel-load-process-group"), IDLE("ckpt-fully-parallel-save"),
    IDLE("ckpt-fully-parallel-save-process-group"), IDLE("ckpt-pg-tensors-cache-create"),
    IDLE("ckpt-pg-tensors-cache-path"), IDLE("ckpt-step"), IDLE("classes-fraction"), IDLE("config-logger-dir"),
    IDLE("data-args-path"), IDLE("data-cache-path"),
    IDLE("data-parallel-random-init"), IDLE("data-path"), IDLE("data-per-class-fraction"),
    IDLE("dataloader-defer-npy-index-mmap"), IDLE("dataloader-fast-cache-load"),
    IDLE("dataloader-inter-document-masking"), IDLE("dataloader-type"),
    IDLE("decode-only-cuda-graphs"), IDLE("decoupled-lr"), IDLE("decoupled-min-lr"),
    IDLE("disable-gloo-process-groups"), IDLE("disable-msc"), IDLE("disable-straggler-on-startup"),
    IDLE("dist-ckpt-format"), IDLE("dist-ckpt-optim-fully-reshardable"), IDLE("dist-ckpt-save-pre-mcore-014"),
    IDLE("dist-ckpt-strictness"), IDLE("dist-ckpt-workers"), IDLE("distrib-optim-fully-reshardable-mem-efficient"),
    IDLE("distributed-backend"), IDLE("distributed-timeout-minutes"), IDLE("distributed-timeout-seconds-after-init"),
    IDLE("dump-param-to-param-group-map"), IDLE("embedding-init-method-std"), IDLE("embedding-path"),
    IDLE("enable-chunked-prefill"), IDLE("enable-experimental"), IDLE("enable-ft-package"), IDLE("enable-msc"),
    IDLE("end-weight-decay"), IDLE("eod-mask-loss"), IDLE("error-injection-rate"), IDLE("error-injection-type"),
    IDLE("eval-global-batch-size"), IDLE("eval-interval"), IDLE("eval-iters"), IDLE("eval-micro-batch-size"),
    IDLE("evidence-data-path"), IDLE("exit-interval"), IDLE("exit-on-missing-checkpoint"), IDLE("exit-signal"),
    IDLE("exit-signal-handler"), IDLE("exit-signal-handler-for-dataloader"), IDLE("exit-signal-handler-for-training"),
    IDLE("fim-data"), IDLE("fim-eod-token"), IDLE("fim-fragment-rate"), IDLE("fim-middle-token"),
    IDLE("fim-no-prefix"), IDLE("fim-pad-token"), IDLE("fim-prefix-token"), IDLE("fim-rate"),
    IDLE("fim-split-sample"), IDLE("fim-spm-rate"), IDLE("fim-suffix-token"), IDLE("finetune"), IDLE("flash-decode"),
    IDLE("flight-recorder-dump-path"), IDLE("flight-recorder-include-stack-trace"),
    IDLE("flight-recorder-trace-buffer-size"), IDLE("fp8-amax-compute-algo"), IDLE("fp8-amax-history-len"),
    IDLE("fp8-interval"), IDLE("fp8-margin"), IDLE("fp8-quantizer-factory"), IDLE("ft-num-warmup-iters"),
    IDLE("full-validation"), IDLE("glu-linear-offset"), IDLE("gpu-sniff-test-interval"), IDLE("head-lr-mult"),
    IDLE("hysteresis"), IDLE("ict-load"), IDLE("indexer-batch-size"), IDLE("indexer-log-interval"),
    IDLE("inference-batch-times-seqlen-threshold"), IDLE("inference-coordinator-port"),
    IDLE("inference-cuda-graph-all-prefills"), IDLE("inference-cuda-graph-max-tokens"),
    IDLE("inference-cuda-graph-scope"), IDLE("inference-disable-ep-consensus"),
    IDLE("inference-disable-triton-nvls-kernels"), IDLE("inference-dynamic-batching"),
    IDLE("inference-dynamic-batching-async-sched-mode"), IDLE("inference-dynamic-batching-block-size"),
    IDLE("inference-dynamic-batching-buffer-size-gb"),
    IDLE("inference-dynamic-batching-cuda-graph-mixed-prefill-count"),
    IDLE("inference-dynamic-batching-cuda-graph-sizing-distribution"),
    IDLE("inference-dynamic-batching-logprobs-mode"), IDLE("inference-dynamic-batching-mamba-memory-ratio"),
    IDLE("inference-dynamic-batching-max-requests"), IDLE("inference-dynamic-batching-max-tokens"),
    IDLE("inference-dynamic-batching-num-cuda-graphs"), IDLE("inference-dynamic-batching-paused-buffer-size-gb"),
    IDLE("inference-dynamic-batching-prefix-caching"),
    IDLE("inference-dynamic-batching-prefix-caching-coordinator-policy"),
    IDLE("inference-dynamic-batching-prefix-caching-eviction-policy"),
    IDLE("inference-dynamic-batching-prefix-caching-mamba-gb"),
    IDLE("inference-dynamic-batching-prefix-caching-routing-alpha"),
    IDLE("inference-dynamic-batching-sampling-backend"),
    IDLE("inference-dynamic-batching-track-generated-token-events"),
    IDLE("inference-dynamic-batching-track-paused-request-events"),
    IDLE("inference-dynamic-batching-unified-memory-level"), IDLE("inference-fuse-tp-communication"),
    IDLE("inference-grouped-gemm-backend"), IDLE("inference-logging-step-interval"), IDLE("inference-max-requests"),
    IDLE("inference-max-seq-length"), IDLE("inference-moe-disable-fused-quant-kernels"),
    IDLE("inference-moe-token-dispatcher-type"), IDLE("inference-rng-tracker"), IDLE("inference-shards"),
    IDLE("inference-text-gen-server-logging"), IDLE("inference-use-synchronous-zmq-collectives"),
    IDLE("inference-wandb-logging"), IDLE("init-method-std"), IDLE("init-method-xavier-uniform"),
    IDLE("init-model-with-meta-device"), IDLE("initial-loss-scale"), IDLE("inprocess-active-world-size"),
    IDLE("inprocess-barrier-timeout"), IDLE("inprocess-completion-timeout"), IDLE("inprocess-empty-cuda-cache"),
    IDLE("inprocess-granularity"), IDLE("inprocess-hard-timeout"), IDLE("inprocess-heartbeat-interval"),
    IDLE("inprocess-heartbeat-timeout"), IDLE("inprocess-last-call-wait"), IDLE("inprocess-max-iterations"),
    IDLE("inprocess-monitor-process-interval"), IDLE("inprocess-monitor-thread-interval"),
    IDLE("inprocess-progress-watchdog-interval"), IDLE("inprocess-soft-timeout"),
    IDLE("inprocess-termination-grace-time"), IDLE("iter-per-epoch"), IDLE("iterations-to-skip"),
    IDLE("lazy-mpu-init"), IDLE("lion-beta1"), IDLE("lion-beta2"), IDLE("load"), IDLE("load-main-params-from-ckpt"),
    IDLE("local-rank"), IDLE("log-device-memory-used"), IDLE("log-energy"), IDLE("log-interval"),
    IDLE("log-memory-interval"), IDLE("log-memory-to-tensorboard"), IDLE("log-progress"), IDLE("log-straggler"),
    IDLE("log-throughput"), IDLE("log-timers-to-tensorboard"), IDLE("log-batch-size-to-tensorboard"), IDLE("log-validation-ppl-to-tensorboard"),
    IDLE("log-world-size-to-tensorboard"), IDLE("logging-level"), IDLE("logits-load-decode-threads"),
    IDLE("logits-load-dir"), IDLE("logits-load-ignore-errors"), IDLE("logits-load-kd-loss-alpha"),
    IDLE("logits-load-msc-prefetch-depth"), IDLE("logits-load-prefetch-factor"), IDLE("logits-save-dir"),
    IDLE("logits-save-dtype"), IDLE("logits-save-top-k"), IDLE("logits-save-top-p"), IDLE("logits-save-top-p-min-k"),
    IDLE("loss-scale"), IDLE("loss-scale-window"), IDLE("lr"), IDLE("lr-decay-iters"), IDLE("lr-decay-samples"),
    IDLE("lr-decay-steps"), IDLE("lr-decay-style"), IDLE("lr-warmup-fraction"), IDLE("lr-warmup-init"),
    IDLE("lr-warmup-iters"), IDLE("lr-warmup-samples"), IDLE("lr-warmup-steps"), IDLE("lr-wsd-decay-iters"),
    IDLE("lr-wsd-decay-samples"), IDLE("lr-wsd-decay-style"), IDLE("manual-gc"), IDLE("manual-gc-interval"),
    IDLE("mask-factor"), IDLE("mask-prob"), IDLE("mask-type"), IDLE("max-tokens-to-oom"),
    IDLE("memory-snapshot-path"), IDLE("merge-file"), IDLE("mid-level-dataset-surplus"), IDLE("min-loss-scale"),
    IDLE("min-lr"), IDLE("mlp-chunks-for-prefill"), IDLE("mock-data"), IDLE("moe-apply-probs-on-input"),
    IDLE("moe-aux-loss-coeff"), IDLE("moe-pad-experts-for-cuda-graph-inference"),
    IDLE("moe-per-layer-logging"), IDLE("moe-router-bias-update-rate"), IDLE("moe-router-enable-expert-bias"),
    IDLE("moe-router-load-balancing-type"), IDLE("moe-router-pre-softmax"), IDLE("moe-router-quantile-balancing-ema"),
    IDLE("moe-router-score-function"), IDLE("moe-router-topk-scaling-factor"), IDLE("moe-token-drop-policy"),
    IDLE("moe-upcycling-granularity"), IDLE("moe-use-upcycling"), IDLE("moe-z-loss-coeff"), IDLE("mrope-section"),
    IDLE("mtp-loss-scaling-factor"), IDLE("mscale"), IDLE("mscale-all-dim"), IDLE("multiple-validation-sets"), IDLE("nccl-all-reduce-for-prefill"),
    IDLE("no-barrier-with-level-1-timing"), IDLE("no-ckpt-load-validate-sharding-integrity"),
    IDLE("no-create-attention-mask-in-dataloader"), IDLE("no-data-sharding"),
    IDLE("no-flight-recorder-dump-on-timeout"), IDLE("no-flight-recorder-extra-dump-on-exec"),
    IDLE("no-flight-recorder-include-only-active"), IDLE("no-initialization"), IDLE("no-load-optim"),
    IDLE("no-load-rng"), IDLE("no-log-loss-scale-to-tensorboard"), IDLE("no-manual-gc-eval"),
    IDLE("no-mmap-bin-files"), IDLE("no-one-logger"),
    IDLE("no-save-optim"), IDLE("no-save-rng"), IDLE("no-save-tokenizer-assets"), IDLE("no-strict-fsdp-dtensor-load"),
    IDLE("no-tokenizer-sentencepiece-ignore-extra-whitespaces"), IDLE("no-use-tokenizer-model-from-checkpoint-args"),
    IDLE("no-weight-decay-cond-type"), IDLE("no-yarn-correction-range-round-to-int"),
    IDLE("non-persistent-global-ckpt-dir"), IDLE("non-persistent-local-ckpt-algo"),
    IDLE("non-persistent-local-ckpt-dir"), IDLE("norm-epsilon"), IDLE("null-tokenizer-eod-id"),
    IDLE("null-tokenizer-pad-id"), IDLE("num-classes"), IDLE("num-dataset-builder-threads"),
    IDLE("num-speculative-tokens"), IDLE("num-workers"), IDLE("nvtx-ranges"), IDLE("object-storage-cache-path"),
    IDLE("one-logger-async"), IDLE("one-logger-project"), IDLE("one-logger-run-name"), IDLE("onnx-safe"),
    IDLE("otel-enabled"), IDLE("otel-service-name"), IDLE("otel-span-groups"), IDLE("output-bert-embeddings"),
    IDLE("override-ckpt-iteration"), IDLE("override-opt-param-scheduler"), IDLE("override-opt_param-scheduler"),
    IDLE("per-dataset-sequences-path"), IDLE("per-split-data-args-path"), IDLE("persistent-save-interval"),
    IDLE("phase-transition-iterations"), IDLE("pretrained-checkpoint"), IDLE("profile"), IDLE("profile-ranks"),
    IDLE("profile-step-end"), IDLE("profile-step-start"), IDLE("pytorch-profiler-collect-callstack"),
    IDLE("pytorch-profiler-collect-chakra"), IDLE("pytorch-profiler-collect-shapes"), IDLE("record-memory-history"),
    IDLE("record-shapes"), IDLE("refit-method"), IDLE("replication-jump"), IDLE("rerun-mode"),
    IDLE("reset-position-ids"), IDLE("result-rejected-tracker-filename"), IDLE("rope-scaling-factor"),
    IDLE("rope-type"), IDLE("rotary-base"), IDLE("rotary-interleaved"), IDLE("rotary-percent"),
    IDLE("rotary-scaling-factor"), IDLE("rotary-seq-len-interpolation-factor"), IDLE("run-workload-inspector-server"),
    IDLE("sample-rate"), IDLE("save"), IDLE("save-activations-interval"), IDLE("save-dgrads-interval"),
    IDLE("save-params-interval"), IDLE("save-retain-interval"), IDLE("save-tokens-per-expert-interval"),
    IDLE("save-wgrads-interval"), IDLE("seed"), IDLE("sft-tokenizer-prompt-format"), IDLE("sgd-momentum"),
    IDLE("short-seq-prob"), IDLE("split"), IDLE("start-eval-at-iter"), IDLE("start-weight-decay"),
    IDLE("straggler-ctrlr-port"), IDLE("straggler-minmax-count"),
    IDLE("te-rng-tracker"), IDLE("tensorboard-dir"), IDLE("tensorboard-log-interval"), IDLE("tensorboard-queue-size"),
    IDLE("test-data-path"), IDLE("test-mode"), IDLE("tiktoken-num-special-tokens"), IDLE("tiktoken-pattern"),
    IDLE("timing-log-level"), IDLE("timing-log-option"), IDLE("titles-data-path"),
    IDLE("tokenizer-hf-no-include-special-tokens"), IDLE("tokenizer-hf-no-use-fast"), IDLE("tokenizer-metadata"),
    IDLE("tokenizer-model"), IDLE("tokenizer-sentencepiece-legacy"), IDLE("tokenizer-special-tokens"),
    IDLE("tp-comm-bootstrap-backend"), IDLE("train-data-path"), IDLE("trust-remote-code"),
    IDLE("use-checkpoint-opt-param-scheduler"), IDLE("use-checkpoint-opt_param-scheduler"),
    IDLE("use-cpu-initialization"), IDLE("use-dist-ckpt"), IDLE("use-gigatoken"), IDLE("use-legacy-static-engine"),
    IDLE("use-mcore-models"), IDLE("use-mup"), IDLE("use-one-sent-docs"), IDLE("use-persistent-ckpt-worker"),
    IDLE("use-pytorch-profiler"), IDLE("use-rope-scaling"), IDLE("use-same-sampling-seed-across-dp-ranks"),
    IDLE("valid-data-path"), IDLE("validation-set-names"), IDLE("verify-integrity"), IDLE("vocab-extra-ids"),
    IDLE("vocab-file"), IDLE("wandb-entity"), IDLE("wandb-exp-name"), IDLE("wandb-project"), IDLE("wandb-save-dir"),
    IDLE("warmup"), IDLE("wd-incr-steps"), IDLE("weight-decay"), IDLE("weight-decay-incr-style"),
    IDLE("wsd-decay-steps"), IDLE("yarn-beta-fast"), IDLE("yarn-beta-slow"),
    IDLE("yarn-correction-range-round-to-int"), IDLE("yarn-original-max-position-embeddings"),

    /* Another model. */
    MAKES("attention-output-gate", "attention has a gate at its output"),
    MAKES("enable-mhc-connections", "blocks have hyper-connections"),
    MAKES("experimental-attention-variant", "attention is of another kind"),
    MAKES("freeze-all-layers", "no block's weights are trained"),
    MAKES("heterogeneous-layers-config-encoded-json", "blocks differ by a file of their own"),
    MAKES("heterogeneous-layers-config-path", "blocks differ by a file of their own"),
    MAKES("hybrid-layer-pattern", "blocks have state-space layers"),
    MAKES("hybrid-override-pattern", "blocks have state-space layers"),
    MAKES("is-hybrid-model", "blocks have state-space layers"),
    MAKES("linear-attention-freq", "blocks have linear attention"),
    MAKES("moe-latent-size", "experts compute in a latent space"),
    MAKES("mtp-hybrid-override-pattern", "blocks have state-space layers"),
    {"spec", ARGUMENT_REFUSED, KIND_ANY, .words = "local te", .why = "code of its own makes the blocks"},
    MAKES("vision-pretraining", "images are what is learned from"),

    /* Other kinds of training, other kernels, formats and overlaps. */
    LACKS("activation-func-clamp-value"), LACKS("activation-offload-fraction"),
    LACKS("apply-query-key-layer-scaling"), LACKS("apply-residual-connection-post-layernorm"),
    LACKS("attention-softmax-in-fp32"), LACKS("batch-invariant-backend"),
    LACKS("batch-invariant-mode"), LACKS("bert-no-binary-head"), LACKS("biencoder-projection-dim"),
    LACKS("biencoder-shared-query-context-model"), LACKS("check-weight-hash-across-dp-replicas-interval"),
    LACKS("cpu-offloading-retain-pinned-cpu-buffers"), LACKS("cuda-graph-modules"), LACKS("cuda-graph-scope"),
    LACKS("cuda-graph-warmup-steps"), LACKS("ddp-param-name-patterns-for-fp32-local-accumulation"),
    LACKS("ddp-reduce-scatter-with-fp32-accumulation"), LACKS("decoder-num-layers"), LACKS("decoder-seq-length"),
    LACKS("decrease-batch-size-if-needed"), LACKS("delay-offload-until-cuda-graph"),
    LACKS("delta-offload-bytes-across-pp-ranks"), LACKS("dino-bottleneck-size"), LACKS("dino-freeze-last-layer"),
    LACKS("dino-head-hidden-size"), LACKS("dino-local-crops-number"), LACKS("dino-local-img-size"),
    LACKS("dino-norm-last-layer"), LACKS("dino-teacher-temp"), LACKS("dino-warmup-teacher-temp"),
    LACKS("dino-warmup-teacher-temp-epochs"), LACKS("disable-bf16-reduced-precision-matmul"),
    LACKS("disable-jit-fuser"), LACKS("disable-mamba-mem-eff-path"), LACKS("disable-symmetric-registration"),
    LACKS("dsa-indexer-head-dim"), LACKS("dsa-indexer-k-norm-epsilon"), LACKS("dsa-indexer-k-norm-fp32"),
    LACKS("dsa-indexer-loss-coeff"), LACKS("dsa-indexer-n-heads"), LACKS("dsa-indexer-rope-interleaved"),
    LACKS("dsa-indexer-skip-topk-offset"), LACKS("dsa-indexer-topk"), LACKS("dsa-indexer-topk-freq"),
    LACKS("dsa-indexer-use-sparse-loss"), LACKS("dsa-kernel-backend"), LACKS("enable-cuda-graph"),
    LACKS("enable-full-sharding-in-hsdp"), LACKS("encoder-num-layers"),
    LACKS("ep-overlap-early-attn-memory-release"),
    LACKS("expert-tensor-parallel-num-weight-shards"), LACKS("external-cuda-graph"), LACKS("fake-process-group"),
    LACKS("fine-grained-offloading-max-inflight-offloads"), LACKS("fp16-lm-cross-entropy"),
    LACKS("fp32-residual-connection"), LACKS("fp4-param-gather"), LACKS("fp4-quantizer-factory"), LACKS("fp4-recipe"),
    LACKS("fp8-output-proj"), LACKS("fsdp-db-use-persist-buf-on-alloc-fail"),
    LACKS("fsdp-double-buffer"), LACKS("fsdp-manual-registration"), LACKS("fused-residual-rmsnorm"),
    LACKS("gdp-cutedsl-kernel"), LACKS("gdp-num-chunk-states-to-recompute"), LACKS("gdp-num-householder"),
    LACKS("grpo-clamp-eps-lower"), LACKS("grpo-clamp-eps-upper"), LACKS("grpo-entropy-term-weight"),
    LACKS("grpo-filter-groups-with-same-reward"), LACKS("grpo-group-size"), LACKS("grpo-iterations"),
    LACKS("grpo-kl-beta"), LACKS("grpo-prompts-per-step"), LACKS("gtp-expert-remat-nccl-ub"),
    LACKS("gtp-remat-nccl-ub"), LACKS("gtp-remat-opt-in-modules"),
    LACKS("gtp-remat-reduce-scatter-with-fp32-accumulation"),
    LACKS("high-priority-a2a-comm-stream"),
    LACKS("high-priority-stream-groups"), LACKS("hybrid-context-parallel"),
    LACKS("ict-head-size"), LACKS("img-h"), LACKS("img-w"),
    LACKS("keep-fp8-transpose-cache"), LACKS("kitchen-attention-backend"),
    LACKS("kitchen-config-file"), LACKS("kitchen-recipe-number"), LACKS("langrl-env-config"),
    LACKS("linear-conv-kernel-dim"), LACKS("linear-key-head-dim"),
    LACKS("linear-num-key-heads"), LACKS("linear-num-value-heads"), LACKS("linear-value-head-dim"),
    LACKS("log-max-attention-logit"), LACKS("log-num-zeros-in-grad"), LACKS("log-params-norm"),
    LACKS("mamba-head-dim"), LACKS("mamba-inference-conv-states-dtype"), LACKS("mamba-inference-ssm-states-dtype"),
    LACKS("mamba-num-groups"), LACKS("mamba-num-heads"), LACKS("mamba-state-dim"),
    LACKS("mamba-training-ssm-states-dtype"), LACKS("max-seqlen-per-dp-cp-rank"),
    LACKS("megatron-fsdp-enable-fine-grained-param-gather"), LACKS("megatron-fsdp-grad-comm-dtype"),
    LACKS("megatron-fsdp-main-grads-dtype"), LACKS("megatron-fsdp-main-params-dtype"),
    LACKS("megatron-fsdp-max-pool-double-buffer"), LACKS("megatron-fsdp-version"), LACKS("mhc-init-gating-factor"),
    LACKS("mhc-num-residual-streams"), LACKS("mhc-recompute-layer-num"), LACKS("mhc-sinkhorn-iterations"),
    LACKS("min-offloaded-tensor-size"), LACKS("mla-down-proj-fusion"), LACKS("mlp-chunks-for-training"),
    LACKS("moe-combine-bwd-dtype"), LACKS("moe-deepep-num-sms"), LACKS("moe-dispatch-fwd-dtype"),
    LACKS("moe-enable-routing-replay"), LACKS("moe-expert-rank-capacity-factor"),
    LACKS("moe-flex-dispatcher-num-sms"), LACKS("moe-hybridep-num-blocks-permute"),
    LACKS("moe-hybridep-num-blocks-unpermute"), LACKS("moe-hybridep-num-sms"),
    LACKS("moe-hybridep-num-sms-preprocessing"), LACKS("moe-hybridep-pad-uneven-dispatch-inputs"),
    LACKS("moe-layer-recompute"), LACKS("moe-mlp-glu-interleave-size"),
    LACKS("moe-ncclep-zero-copy"), LACKS("moe-paged-stash"), LACKS("moe-paged-stash-buffer-size-factor-cpu"),
    LACKS("moe-paged-stash-buffer-size-factor-cuda"), LACKS("moe-paged-stash-page-size"),
    LACKS("moe-permute-fusion-into-hybridep"), LACKS("moe-router-dtype"), LACKS("moe-router-force-biased"),
    LACKS("moe-router-padding-for-fp8"), LACKS("moe-router-padding-for-quantization"),
    LACKS("moe-routing-trace-capture-hidden-states"), LACKS("moe-routing-trace-capture-logits"),
    LACKS("moe-routing-trace-dump-weights"), LACKS("moe-routing-trace-max-training-iters"),
    LACKS("moe-routing-trace-path"), LACKS("moe-shared-expert-gate"), LACKS("moe-shared-expert-glu-interleave-size"),
    LACKS("moe-single-grouped-bias"), LACKS("moe-single-grouped-weight"), LACKS("moe-use-grouped-tensor"),
    LACKS("mtp-detach-heads"), LACKS("mtp-hsm"),
    LACKS("mtp-standalone"), LACKS("mtp-use-repeated-layer"),
    IDLE("muon-coefficient-type"), IDLE("muon-extra-scale-factor"), IDLE("muon-momentum"), IDLE("muon-nesterov"),
    IDLE("muon-scale-mode"),
    LACKS("mup-attn-scale-power"), LACKS("mup-base-head-dim"), LACKS("mup-base-hidden-size"),
    LACKS("mup-embedding-mult"), LACKS("mup-output-mult"), LACKS("mup-width-mult"),
    LACKS("nccl-communicator-config-path"), LACKS("no-align-grad-reduce"), LACKS("no-align-param-gather"),
    LACKS("no-clone-scatter-output-in-embedding"), LACKS("no-dsa-indexer-rotate-activation"),
    LACKS("no-dsa-indexer-scoring-relu"), LACKS("no-fp8-wgrad"), LACKS("no-gradient-reduce-div-fusion"),
    LACKS("no-pad-vocab-size"), LACKS("no-rope-freq"), LACKS("no-tp-comm-bulk-dgrad"), LACKS("no-tp-comm-bulk-wgrad"),
    LACKS("no-tp-comm-overlap-ag"), LACKS("no-tp-comm-overlap-rs"), LACKS("no-tp-comm-split-ag"),
    LACKS("no-tp-comm-split-rs"), LACKS("no-use-layer-wise-param-layout"), LACKS("num-channels"),
    LACKS("num-layers-at-end-in-bf16"), LACKS("num-layers-at-start-in-bf16"), LACKS("offload-modules"),
    LACKS("openai-gelu"), LACKS("optimizer-cuda-graph"), LACKS("output-logit-dtype"),
    LACKS("overlap-cpu-optimizer-d2h-h2d"), LACKS("overlap-dispatch-backward-with-experts-wgrad"), LACKS("patch-dim"),
    LACKS("perform-rl-step"), LACKS("pipeline-model-parallel-comm-backend"), LACKS("qk-clip"), LACKS("qk-clip-alpha"),
    LACKS("qk-clip-threshold"), LACKS("qk-l2-norm"), LACKS("query-in-block-prob"),
    LACKS("relative-attention-max-distance"), LACKS("relative-attention-num-buckets"), LACKS("reset-attention-mask"),
    LACKS("retriever-report-topk-accuracies"), LACKS("retriever-score-scaling"),
    LACKS("reuse-grad-buf-for-mxfp8-param-ag"), LACKS("rl-consumption-granularity"), LACKS("rl-default-temperature"),
    LACKS("rl-default-top-k"), LACKS("rl-default-top-p"), LACKS("rl-durable-rollout-bank"),
    LACKS("rl-generation-lag"), LACKS("rl-importance-sampling-truncation-coef"),
    LACKS("rl-inference-expert-model-parallel-size"), LACKS("rl-inference-expert-tensor-model-parallel-size"),
    LACKS("rl-inference-logprobs-is-correction"), LACKS("rl-inference-model-unified-memory-level"),
    LACKS("rl-inference-parsers"), LACKS("rl-inference-pipeline-model-parallel-size"),
    LACKS("rl-inference-tensor-model-parallel-size"), LACKS("rl-kv-cache-management-mode"),
    LACKS("rl-max-inflight-requests"), LACKS("rl-offload-inference-model-weights-when-idle"),
    LACKS("rl-offload-optimizer-during-inference"), LACKS("rl-partial-rollouts"), LACKS("rl-persist-cuda-graphs"),
    LACKS("rl-profile"), LACKS("rl-profile-dir"), LACKS("rl-prompts-per-eval"), LACKS("rl-rollout-bank-dir"),
    LACKS("rl-rollout-bank-max-bytes"), LACKS("rl-sequence-packing-algo"),
    LACKS("rl-sequence-packing-max-sequences-per-bin"), LACKS("rl-skip-bos-token"),
    LACKS("rl-submission-granularity"), LACKS("rl-training-cuda-graphs"), LACKS("rl-use-sequence-packing"),
    LACKS("rl-verify-model-weights-swap"), LACKS("sft"), LACKS("sharp-enabled-group"), LACKS("skip-train"),
    LACKS("softmax-type"), LACKS("swin-backbone-type"), LACKS("symmetric-ar-type"),
    LACKS("te-precision-config-file"), LACKS("tensor-parallel-num-weight-shards"), LACKS("tp-comm-overlap-cfg"),
    LACKS("tp-comm-overlap-rs-dgrad"), LACKS("train-sync-interval"), LACKS("use-checkpoint-args"),
    LACKS("use-fused-weighted-squared-relu"), LACKS("use-grouped-gemm-for-dense-mlp"),
    LACKS("use-grouped-gemm-for-shared-expert"), LACKS("use-kitchen-attention"),
    LACKS("use-mp-args-from-checkpoint-args"), LACKS("use-ring-exchange-p2p"), LACKS("use-te-activation-func"),
    LACKS("use-torch-optimizer-for-cpu-offload"), LACKS("vision-backbone-type"),
    LACKS("vision-pretraining-type"), LACKS("wgrad-deferral-limit"), LACKS("yaml-cfg"),
};

/* What Megatron-LM works out and prints among its arguments. */
static const char *const inner[] = {
    "consumed-train-samples", "consumed-valid-samples", "curr-iteration", "data-parallel-size", "do-test", "do-train",
    "do-valid", "iteration", "params-dtype", "rank", "skipped-train-samples",
    "transformer-pipeline-model-parallel-size", "variable-seq-lengths",
    "world-size",
};

const struct argument_row *megatron_other_at(size_t index)
{
    return index < COUNT(others) ? &others[index] : NULL;
}

bool megatron_is_inner(const char *name)
{
    for (size_t i = 0; i < COUNT(inner); i++)
        if (text_same(inner[i], name))
            return true;
    return false;
}

/* The programs in the folder of Megatron-LM, of today (d98e8a64) and of older releases. */
bool megatron_is_own(const char *program)
{
    const char *slash = strrchr(program, '/');

    return word_in("pretrain_gpt.py pretrain_gpt2.py pretrain_bert.py pretrain_t5.py pretrain_ict.py pretrain_mamba.py pretrain_hybrid.py "
                   "pretrain_vlm.py pretrain_retro.py pretrain_gpt_core.py pretrain_vision_classify.py "
                   "pretrain_vision_dino.py pretrain_vision_inpaint.py train_rl.py", slash ? slash + 1 : program);
}

/* What trains nothing, by the name's first word, and what is a place, by its last one. */
static bool is_beside(const char *name)
{
    size_t first = strcspn(name, "-_"), last = strlen(name);

    while (last && !strchr("-_", name[last - 1]))
        last--;
    for (const char *at = "sglang vllm rollout eval log tensorboard wandb save load "; *at; at += strcspn(at, " ") + 1)
        if (strcspn(at, " ") == first && !strncmp(at, name, first))
            return true;
    return word_in("path dir file folder checkpoint", name + last);
}

bool megatron_is_shape(const char *name)
{
    char part[40];

    for (const char *at = name; !is_beside(name) && *at; at += strcspn(at, "-_"), at += *at != '\0') {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(at, "-_"), at);
        if (word_in("layer layers hidden head heads attention attn ffn mlp intermediate expert experts moe router vocab "
                    "vocabulary norm layernorm rmsnorm rotary rope alibi position positional embedding embeddings kv qk qkv "
                    "window lora adapter peft freeze vision vit image model mtp mtps activation swiglu gelu task "
                    "parallel parallelism tensor pipeline recompute recomputation offload precision dtype fp8 quantize", part))
            return true;
    }
    return false;
}
