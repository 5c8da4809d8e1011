/* A command that is emitted for Megatron-LM starts there: a shell takes it apart into the arguments that it is to have,
 * and these keep the rules of Megatron-LM's own checks (core_v0.19.0: training/arguments.py, validate_args;
 * core/transformer/transformer_config.py and core/optimizer/optimizer_config.py, __post_init__), which stand here as
 * tables. The scenarios are all of the tour and of the methods, and the networks of scenarios/models with random
 * strategies. What would break a rule is refused with its argument. */
#include "simulated.h"

#include "base/random.h"
#include "emit/emit.h"
#include "launch/launch.h"
#include "trials.h"

#include <glob.h>

enum { ROUNDS = 400 };

/* An argument, and those of which it needs one. */
static const struct { const char *argument, *others; } needs[] = {
    {"num-layers", "max-position-embeddings"},
    {"use-megatron-fsdp", "ckpt-format"},
    {"ckpt-format", "use-megatron-fsdp"},
    {"optimizer-cpu-offload", "use-precision-aware-optimizer"},
    {"use-precision-aware-optimizer", "use-distributed-optimizer use-megatron-fsdp"},
    {"exp-avg-dtype", "use-precision-aware-optimizer"},
    {"main-params-dtype", "use-precision-aware-optimizer"},
    {"overlap-param-gather", "overlap-grad-reduce"},
    {"tp-comm-overlap", "sequence-parallel"},
    {"mtp-num-layers", "position-embedding-type"},
    {"squared-relu", "disable-bias-linear no-bias-gelu-fusion"},
    {"hierarchical-context-parallel-sizes", "cp-comm-type"},
    {"moe-pad-expert-input-to-capacity", "moe-expert-capacity-factor"},
    {"recompute-method", "recompute-num-layers"},
};
/* Two arguments that do not go together. */
static const struct { const char *one, *other; } excludes[] = {
    {"pipeline-model-parallel-layout", "num-virtual-stages-per-pipeline-rank"},
    {"pipeline-model-parallel-layout", "num-layers-per-virtual-pipeline-stage"},
    {"multi-latent-attention", "group-query-attention"},
    {"fp16", "bf16"},
    {"fp8-format", "fp4-format"},
    {"overlap-moe-expert-parallel-comm", "recompute-method"},
    {"overlap-moe-expert-parallel-comm", "moe-shared-expert-overlap"},
    {"cross-entropy-loss-fusion", "cross-entropy-fusion-impl"},
};
/* Words that an argument may have. */
static const struct { const char *argument, *words; } words[] = {
    {"optimizer", "adam sgd muon dist_muon lion soap adaptive_muon"},
    {"ckpt-format", "fsdp_dtensor"},
    {"moe-token-dispatcher-type", "allgather alltoall flex"},
    {"recompute-granularity", "full selective"},
    {"recompute-method", "uniform block"},
    {"normalization", "LayerNorm RMSNorm"},
};

/* The arguments of a command, without dashes, and their first values. */
struct said { struct launch launch; const char *text; };

static const struct launch_argument *find(const struct said *said, const char *name)
{
    for (size_t i = 0; i < said->launch.arguments.count; i++)
        if (!strcmp(said->launch.arguments.items[i].name, name))
            return &said->launch.arguments.items[i];
    return NULL;
}

static long number(const struct said *said, const char *name, long otherwise)
{
    const struct launch_argument *argument = find(said, name);

    return argument ? strtol(argument->values[0].text, NULL, 10) : otherwise;
}

static bool has_value(const struct said *said, const char *name, const char *value)
{
    const struct launch_argument *argument = find(said, name);
    bool found = false;

    for (size_t i = 0; argument && i < argument->count; i++)
        found |= !strcmp(argument->values[i].text, value);
    return found;
}

static void check_tables(const struct said *said)
{
    for (size_t i = 0; i < COUNT(needs); i++) {
        bool found = !find(said, needs[i].argument);

        for (size_t k = 0; k < said->launch.arguments.count; k++)
            found |= word_in(needs[i].others, said->launch.arguments.items[k].name);
        if (!found)
            fail_msg("--%s needs one of %s:\n%s", needs[i].argument, needs[i].others, said->text);
    }
    for (size_t i = 0; i < COUNT(excludes); i++)
        if (find(said, excludes[i].one) && find(said, excludes[i].other))
            fail_msg("--%s goes with no --%s:\n%s", excludes[i].one, excludes[i].other, said->text);
    for (size_t i = 0; i < COUNT(words); i++) {
        const struct launch_argument *argument = find(said, words[i].argument);

        if (argument && !word_in(words[i].words, argument->values[0].text))
            fail_msg("--%s has no %s:\n%s", words[i].argument, argument->values[0].text, said->text);
    }
}

/* What its checks count. */
static void check_numbers(const struct said *said)
{
    long tensor = number(said, "tensor-model-parallel-size", 1), pipeline = number(said, "pipeline-model-parallel-size", 1);
    long chunks = number(said, "num-virtual-stages-per-pipeline-rank", 1), heads = number(said, "num-attention-heads", 0);
    long groups = number(said, "num-query-groups", heads), sequence = number(said, "seq-length", 0);
    long context = number(said, "context-parallel-size", 1), experts = number(said, "num-experts", 0);
    bool fsdp = find(said, "use-megatron-fsdp") != NULL, one = strstr(said->text, "CUDA_DEVICE_MAX_CONNECTIONS=1 ") == said->text;
    const char *wrong = NULL;

    if (number(said, "max-position-embeddings", 0) < sequence)
        wrong = "--max-position-embeddings is below --seq-length";
    if (heads % tensor || (groups % tensor && tensor % groups))
        wrong = "heads do not divide over tensor ranks";
    if (context > 1 && sequence % (2 * context))
        wrong = "a sample does not divide over context ranks";
    if (number(said, "num-layers", 0) % (pipeline * chunks) && !find(said, "pipeline-model-parallel-layout"))
        wrong = "layers do not divide over stages";
    if (experts && tensor > 1 && !find(said, "sequence-parallel"))
        wrong = "experts and tensor ranks without --sequence-parallel";
    if (experts && !find(said, "disable-bias-linear") && number(said, "expert-tensor-parallel-size", tensor) > 1)
        wrong = "experts with biases are divided";
    if (number(said, "moe-router-topk", 2) == 1 && !find(said, "moe-router-pre-softmax"))
        wrong = "one expert a token without --moe-router-pre-softmax";
    if (number(said, "expert-model-parallel-size", 1) > 1 && !find(said, "moe-token-dispatcher-type"))
        wrong = "the dispatcher is left to the release";
    if (fsdp && find(said, "optimizer") && strcmp(find(said, "optimizer")->values[0].text, "sgd") != 0)
        wrong = "FSDP goes with Adam and SGD alone";
    if (fsdp ? one : (tensor > 1 || context > 1) && !one && !find(said, "overlap-moe-expert-parallel-comm"))
        wrong = "CUDA_DEVICE_MAX_CONNECTIONS";
    if (has_value(said, "recompute-modules", "moe_act") && !find(said, "moe-grouped-gemm"))
        wrong = "moe_act without --moe-grouped-gemm";
    if (has_value(said, "recompute-modules", "mla_up_proj") && !find(said, "multi-latent-attention"))
        wrong = "mla_up_proj without --multi-latent-attention";
    if ((has_value(said, "recompute-modules", "moe_act") || has_value(said, "recompute-modules", "layernorm")) &&
        find(said, "fp8-format") && !find(said, "fp8-recipe"))
        wrong = "delayed scales and recomputed norms or activations";
    if (wrong)
        fail_msg("%s:\n%s", wrong, said->text);
}

/* Whether there is a bash. */
static bool has_bash(void)
{
    static int there = -1;

    if (there < 0)
        there = system("bash -c : >/dev/null 2>&1") == 0;
    return there;
}

/* bash takes it apart into the words that were read here. The program is a function that prints its arguments. */
static void check_shell(const struct said *said, const char *path)
{
    char line[4096], *command = NULL;
    size_t at = 0, value = 0;
    FILE *file = fopen(path, "w"), *shell;
    bool begun = false;

    assert_non_null(file);
    assert_true(fputs(said->text, file) >= 0 && fclose(file) == 0);
    assert_true(asprintf(&command, "bash -n %s && bash -c 'torchrun() { printf \"%%s\\n\" \"$@\"; }; . %s'", path, path) > 0);
    shell = popen(command, "r");
    assert_non_null(shell);
    while (fgets(line, sizeof line, shell)) {
        const struct launch_argument *argument = at < said->launch.arguments.count ? &said->launch.arguments.items[at] : NULL;
        char wanted[4096];

        line[strcspn(line, "\n")] = '\0';
        if (!begun) {
            begun = strstr(line, ".py") != NULL;
            continue;
        }
        assert_non_null(argument);
        if (value)
            snprintf(wanted, sizeof wanted, "%s", argument->values[value - 1].text);
        else
            snprintf(wanted, sizeof wanted, "--%s", argument->name);
        assert_string_equal(line, wanted);
        at += value == argument->count;
        value = value == argument->count ? 0 : value + 1;
    }
    if (pclose(shell) != 0 || at != said->launch.arguments.count)
        fail_msg("bash does not read it:\n%s", said->text);
    free(command);
}

/* 1: it was emitted; 0: it was refused, and the message says more than that. */
static int check(const struct scenario *scenario, const char *path)
{
    struct arena arena = {0};
    struct error err = {0};
    struct said said = {0};
    char *text = NULL, *remarks = NULL;
    size_t length, size;
    FILE *out = open_memstream(&text, &length), *notes = open_memstream(&remarks, &size);
    int done = !emit_megatron(scenario, out, notes, &err);

    fclose(out);
    fclose(notes);
    if (done) {
        said.text = text;
        assert_int_equal(launch_parse(&arena, "a command", text, length, &said.launch, &err), 0);
        check_tables(&said);
        check_numbers(&said);
        if (has_bash())
            check_shell(&said, path);
        launch_release(&said.launch);
    } else if (error_exit_code(&err) != EXIT_INFEASIBLE) {
        fail_msg("%s: %s", scenario->name, err.messages[0].text);     /* a refusal, and no command that cannot be read back */
    }
    free(text);
    free(remarks);
    error_release(&err);
    arena_release(&arena);
    return done;
}

static int check_files(const char *pattern, const char *path)
{
    glob_t files;
    int done = 0;

    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct scenario scenario = {0};
        struct error err = {0};

        if (!load_once(files.gl_pathv[i], NULL, 0, &scenario, &err))
            done += check(&scenario, path);
        error_release(&err);
        scenario_release(&scenario);
    }
    globfree(&files);
    return done;
}

static void test_files(void **state)
{
    char path[] = "/tmp/dtsim-emitted-XXXXXX";
    int tour, methods;

    (void)state;
    assert_true(close(mkstemp(path)) == 0);
    if (!has_bash())
        print_message("bash is not there: its part is skipped\n");
    tour = check_files(DTSIM_SOURCE_DIR "/scenarios/tour/*.yaml", path);
    methods = check_files(DTSIM_SOURCE_DIR "/scenarios/methods/*.yaml", path);
    print_message("%d scenarios of the tour and %d methods were emitted\n", tour, methods);
    assert_true(tour >= 12 && methods >= 7);
    unlink(path);
}

/* Values of which each scenario has one; "": left out. Those of `experts` are for networks that have some. */
static const struct { const char *part, *values[8]; } keys[] = {
    {"model", {"", "", "sequence: 2048", "sequence: 1000"}},
    {"strategy", {"tensor: 1", "tensor: 2", "tensor: 4, sequence_parallel: true", "tensor: 2, sequence_parallel: true"}},
    {"strategy", {"", "pipeline: 2", "pipeline: 4", "pipeline: 4, schedule: interleaved, chunks: 2",
                  "pipeline: 2, schedule: interleaved, chunks: 2, split: auto", "pipeline: 4, split: auto"}},
    {"strategy", {"zero: 0", "zero: 1", "zero: 1", "zero: 2", "zero: 3"}},
    {"strategy", {"", "", "", "context: 2"}},
    {"strategy", {"", "", "data_parallel: ddp", "data_parallel: synchronous"}},
    {"experts", {"", "expert: 4", "expert: 8, dispatcher: alltoall", "expert: 8, dispatcher: deepep",
                  "expert: 4, dispatcher: allgather", "expert: 4, overlap_dispatch: micro-batches"}},
    {"memory", {"precision: mixed-bf16", "precision: mixed-bf16", "precision: mixed-fp16", "precision: mixed-fp8",
                "precision: fp32"}},
    {"memory", {"", "", "recompute: full", "recompute: selective", "recompute: {mode: modules, modules: [activation]}",
                "recompute: {mode: modules, modules: [norms, mlp]}", "recompute: {mode: modules, modules: [norms, latent]}",
                "recompute: {mode: modules, modules: [shared-experts]}"}},
    {"memory", {"", "", "", "offload: [optimizer]", "optimizer: adam-8bit", "optimizer: momentum", "optimizer: lamb"}},
    {"software", {"", "", "", "", "overlap_gathers: true", "overlap_products: true", "cross_entropy: fused"}},
};

/* A scenario of a network of scenarios/models, as YAML. */
static void write_scenario(uint64_t round, const char *preset, char *text, size_t size)
{
    static const char *const parts[] = {"model", "strategy", "memory", "software"};
    bool experts = !strcmp(preset, "deepseek-v3") || !strcmp(preset, "mixtral-8x7b");
    size_t at = (size_t)snprintf(text, size, "cluster: {platform: dgx-h100, nodes: 64}\nbatch: {global: 512, micro: 1}\n");

    for (size_t p = 0; p < COUNT(parts); p++) {
        const char *begin = p == 0 ? "preset: " : p == 2 ? "enforce: false" : p == 3 ? "like: megatron-core-2026" : "";
        bool first = p == 1;

        at += (size_t)snprintf(text + at, size - at, "%s: {%s%s", parts[p], begin, p == 0 ? preset : "");
        for (size_t k = 0; k < COUNT(keys); k++) {
            uint64_t count = 0;
            const char *value;

            if (strcmp(keys[k].part, parts[p]) != 0 && !(experts && p == 1 && !strcmp(keys[k].part, "experts")))
                continue;
            while (count < COUNT(keys[k].values) && keys[k].values[count])
                count++;
            value = keys[k].values[random_bits(round, k) % count];
            if (*value)
                at += (size_t)snprintf(text + at, size - at, "%s%s", first ? "" : ", ", value);
            first &= !*value;
        }
        at += (size_t)snprintf(text + at, size - at, "}\n");
    }
}

static void test_networks(void **state)
{
    static const char *const presets[] = {"deepseek-v3", "mixtral-8x7b", "llama3-8b", "llama2-70b", "gpt2-1.5b", "gpt3-175b",
                                          "megatron-7.5b", "mixtral-8x7b", "bert-large"};
    char path[] = "/tmp/dtsim-emitted-XXXXXX", text[4096];
    int done = 0, read = 0;

    (void)state;
    assert_true(close(mkstemp(path)) == 0);
    /* These rounds each week: other ones draw pipelines of which `split: auto` takes minutes to find the best. */
    for (uint64_t round = 1; round <= (uint64_t)trials(ROUNDS); round++) {
        struct arena arena = {.cache = files_once()};
        struct error err = {0};
        struct scenario scenario = {0};
        struct node *root;

        write_scenario(round, presets[round % COUNT(presets)], text, sizeof text);
        assert_int_equal(conf_parse(&arena, "random.yaml", text, strlen(text), &root, &err), 0);
        if (!scenario_read(&arena, root, NULL, 0, "random", &scenario, &err)) {
            read++;
            done += check(&scenario, path);
        }
        error_release(&err);
        scenario_release(&scenario);
    }
    print_message("%d of %d scenarios were emitted\n", done, read);
    assert_true(done > read / 10 && done > trials(ROUNDS) / 40);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_networks)};

    return cmocka_run_group_tests_name("emitted_launch", tests, NULL, NULL);
}
