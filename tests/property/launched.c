/* Arguments of Megatron-LM, each alone and several at random: what is imported is a scenario that reads. Its values may not
 * go together (EXIT_INFEASIBLE), but each key exists and may have its value. */
#include "simulated.h"

#include "base/random.h"
#include "megatron/megatron.h"

enum { ROUNDS = 400 };

static const char model[] = "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048\n"
                            "--micro-batch-size 1 --global-batch-size 64 --vocab-size 32000\n";

static const char *const choices[] = {
    "--tensor-model-parallel-size 2", "--tensor-model-parallel-size 8", "--pipeline-model-parallel-size 2",
    "--pipeline-model-parallel-size 4", "--num-layers-per-virtual-pipeline-stage 1", "--context-parallel-size 2",
    "--num-virtual-stages-per-pipeline-rank 2", "--microbatch-group-size-per-virtual-pipeline-stage 4",
    "--cp-comm-type allgather", "--sequence-parallel", "--expert-model-parallel-size 2", "--expert-tensor-parallel-size 1",
    "--use-tp-pp-dp-mapping", "--use-distributed-optimizer", "--num-distributed-optimizer-instances 2",
    "--overlap-grad-reduce", "--overlap-param-gather", "--ddp-bucket-size 1000000", "--ddp-average-in-collective",
    "--grad-reduce-in-bf16", "--accumulate-allreduce-grads-in-fp32", "--use-megatron-fsdp",
    "--data-parallel-sharding-strategy optim_grads_params", "--use-torch-fsdp2", "--zero-stage 1", "--bf16", "--fp16",
    "--fp8-format hybrid", "--fp8-recipe blockwise", "--fp8-param-gather", "--use-precision-aware-optimizer",
    "--main-params-dtype fp16", "--main-grads-dtype bf16", "--exp-avg-dtype bf16", "--optimizer sgd", "--optimizer lamb",
    "--optimizer muon", "--optimizer dist_muon", "--muon-tp-mode distributed", "--muon-no-split-qkv",
    "--optimizer-cpu-offload", "--clip-grad 0", "--recompute-activations", "--recompute-granularity full",
    "--recompute-granularity selective", "--recompute-method block", "--recompute-num-layers 2",
    "--recompute-modules layernorm moe_act", "--checkpoint-activations", "--activations-checkpoint-method uniform",
    "--DDP-impl torch", "--transformer-impl local", "--attention-backend fused", "--flash-attention-version 3",
    "--use-flash-attn", "--tp-comm-overlap", "--no-rope-fusion", "--no-gradient-accumulation-fusion",
    "--no-async-tensor-model-parallel-allreduce", "--no-overlap-p2p-communication", "--cross-entropy-loss-fusion",
    "--cross-entropy-fusion-impl te", "--use-transformer-engine-op-fuser", "--no-check-for-nan-in-loss-and-grad",
    "--ffn-hidden-size 4096", "--swiglu", "--quick-geglu", "--kv-channels 128", "--group-query-attention",
    "--num-query-groups 8", "--position-embedding-type rope", "--max-position-embeddings 4096",
    "--make-vocab-size-divisible-by 64", "--normalization RMSNorm", "--disable-bias-linear", "--add-qkv-bias",
    "--hidden-dropout 0.0", "--attention-dropout .1", "--window-size 128,0", "--window-attn-skip-freq 2",
    "--multi-latent-attention", "--q-lora-rank 64", "--num-experts 8", "--moe-ffn-hidden-size 512",
    "--moe-layer-freq 2", "--moe-layer-freq [0]*2+[1]*6", "--moe-shared-expert-intermediate-size 512",
    "--moe-expert-capacity-factor 1.5", "--moe-pad-expert-input-to-capacity", "--moe-token-dispatcher-type alltoall",
    "--moe-token-dispatcher-type flex", "--moe-grouped-gemm", "--moe-router-force-load-balancing",
    "--untie-embeddings-and-output-weights", "--embed-layernorm", "--decoder-first-pipeline-num-layers 2",
    "--pipeline-model-parallel-layout Et*3|t*5L", "--account-for-loss-in-pipeline-split",
    "--torch-fsdp2-no-reshard-after-forward", "--no-scatter-gather-tensors-in-pipeline",
};

/* The scenario of the text reads back. Adds to *read where it does, to *clash where its values do not go together. */
static void check(const char *text, const char *name, int *read, int *clash)
{
    struct import_options options = {0};
    struct launch launch = {0};
    struct arena arena = {0};
    struct error err = {0}, wrong = {0};
    struct scenario scenario = {0};
    const char *comment;
    char *notes = NULL;
    size_t size;
    FILE *out = open_memstream(&notes, &size);
    struct node *root = NULL;

    if (!launch_parse(&arena, name, text, strlen(text), &launch, &err))
        root = megatron_scenario(&arena, &launch, &options, &comment, out, &err);
    fclose(out);
    if (root) {
        struct arena own = {.cache = files_once()};
        struct node *again;
        char *yaml = NULL;

        out = open_memstream(&yaml, &size);
        node_print(root, out);
        fclose(out);
        assert_int_equal(conf_parse(&own, "run.yaml", yaml, size, &again, &wrong), 0);
        if (!scenario_read(&own, again, NULL, 0, "run", &scenario, &wrong))
            ++*read;
        else if (error_exit_code(&wrong) == EXIT_INFEASIBLE)
            ++*clash;
        else
            fail_msg("%s\nbecame\n%s\n%s", text, yaml, wrong.messages[0].text);
        scenario_release(&scenario);
        free(yaml);
    } else {
        assert_true(err.count > 0);
    }
    error_release(&wrong);
    error_release(&err);
    launch_release(&launch);
    arena_release(&arena);
    free(notes);
}

static void test_random_lists(void **state)
{
    int read = 0, clash = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        char text[8192];
        int count = (int)(random_bits(7, (uint64_t)round) % 9), length = snprintf(text, sizeof text, "%s", model);

        for (int i = 0; i < count; i++)
            length += snprintf(text + length, sizeof text - (size_t)length, "%s\n",
                               choices[random_bits((uint64_t)round + 100, (uint64_t)i) % COUNT(choices)]);
        check(text, "list.txt", &read, &clash);
    }
    assert_true(read > ROUNDS / 3);
}

/* Each argument alone, too. */
static void test_each(void **state)
{
    int read = 0, clash = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(choices); i++) {
        char text[1024];

        snprintf(text, sizeof text, "%s--bf16 %s\n", model, choices[i]);
        check(text, "one.txt", &read, &clash);
    }
    assert_true(read > (int)COUNT(choices) * 2 / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each), cmocka_unit_test(test_random_lists)};

    return cmocka_run_group_tests_name("launched", tests, NULL, NULL);
}
