/* Hybrids and Megatron-LM: launches of published models have their parameters to the last digit (the counts of tests/unit/job/
 * model/pattern.c), and a random hybrid that is emitted is the same model when it is imported again, layer by layer; what has no
 * letter there is refused. */
#include "simulated.h"

#include "base/random.h"
#include "emit/emit.h"
#include "launch/launch.h"
#include "megatron/megatron.h"
#include "trials.h"

enum { ROUNDS = 240 };

#define COMMON \
    " --seq-length 4096 --max-position-embeddings 4096 --position-embedding-type none --untie-embeddings-and-output-weights " \
    "--normalization RMSNorm --disable-bias-linear --micro-batch-size 1 --global-batch-size 1024 --bf16 "
#define GROUPS(heads, groups, size) \
    "--num-attention-heads " #heads " --group-query-attention --num-query-groups " #groups " --kv-channels " #size " "
#define EXPERTS(count, top, width, shared) \
    "--num-experts " #count " --moe-router-topk " #top " --moe-ffn-hidden-size " #width \
    " --moe-shared-expert-intermediate-size " #shared " --moe-grouped-gemm "
#define ME6 "MEMEMEMEMEME"

static const struct { double parameters; const char *launch; } published[] = {
    {8100852736, "pretrain_mamba.py --num-layers 52 --hidden-size 4096 " GROUPS(32, 8, 128) "--ffn-hidden-size 21504 --squared-relu "
     "--vocab-size 131072 --is-hybrid-model --hybrid-override-pattern M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"},
    {8888227328, "pretrain_mamba.py --num-layers 56 --hidden-size 4480 " GROUPS(40, 8, 128) "--ffn-hidden-size 15680 --squared-relu "
     "--vocab-size 131072 --mamba-num-heads 128 --mamba-head-dim 80 "
     "--hybrid-override-pattern M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"},
    {31577940288, "pretrain_hybrid.py --hidden-size 2688 " GROUPS(32, 2, 128) EXPERTS(128, 6, 1856, 3712) "--squared-relu "
     "--moe-router-enable-expert-bias --vocab-size 131072 --mamba-num-heads 64 "
     "--hybrid-layer-pattern 'MEMEM*EMEMEM*EMEMEM*EMEMEM*|EMEMEM*EMEMEMEM*EMEMEMEME' --pipeline-model-parallel-size 2"},
    {120668707840, "pretrain_hybrid.py --hidden-size 4096 " GROUPS(32, 2, 128) EXPERTS(512, 22, 2688, 5376) "--squared-relu "
     "--moe-router-enable-expert-bias --moe-latent-size 1024 --vocab-size 131072 --mamba-num-heads 128 "
     "--hybrid-layer-pattern " ME6 ME6 ME6 ME6 ME6 ME6 "M*M*M*M*E*E*E*E*"},
    {79674391296, "pretrain_gpt.py --num-layers 48 --hidden-size 2048 " GROUPS(16, 2, 256) EXPERTS(512, 10, 512, 512)
     "--moe-shared-expert-gate --qk-layernorm --attention-output-gate --swiglu --vocab-size 151936 --experimental-attention-variant "
     "gated_delta_net --linear-attention-freq 4"},
    {79674391296, "pretrain_gpt.py --num-layers 48 --hidden-size 2048 " GROUPS(16, 2, 256) EXPERTS(512, 10, 512, 512)
     "--moe-shared-expert-gate --qk-layernorm --attention-output-gate --swiglu --vocab-size 151936 --experimental-attention-variant "
     "gated_delta_net --linear-attention-freq '([1]*3+[0]*1)*12'"},
};

/* The scenario of a launch; false: it is refused. */
static bool import(const char *text, struct scenario *scenario, struct error *err)
{
    struct arena *arena = xcalloc(1, sizeof *arena);          /* the scenario has texts of it until the program ends */
    const struct launch_set sets[] = {{"nnodes", "16"}, {"nproc_per_node", "8"}};
    struct import_options options = {.sets = sets, .nsets = COUNT(sets)};
    struct launch launch = {0};
    const char *comment;
    char *notes = NULL;
    size_t size;
    FILE *out = open_memstream(&notes, &size);
    struct node *root = NULL;

    arena->cache = files_once();
    if (!launch_parse(arena, "a command", text, strlen(text), &launch, err))
        root = megatron_scenario(arena, &launch, &options, &comment, out, err);
    fclose(out);
    free(notes);
    launch_release(&launch);
    return root && !scenario_read(arena, root, NULL, 0, "run", scenario, err);
}

static void test_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(published); i++) {
        struct scenario scenario = {0};
        struct error err = {0};
        char text[2048];

        snprintf(text, sizeof text, "torchrun %s%s\n", published[i].launch, COMMON);
        if (!import(text, &scenario, &err))
            fail_msg("%s\n%s", text, err.messages[0].text);
        if (model_parameters(&scenario.model) != published[i].parameters)
            fail_msg("%.0f parameters instead of %.0f:\n%s", model_parameters(&scenario.model), published[i].parameters, text);
        scenario_release(&scenario);
        error_release(&err);
    }
}

/* A pattern of single letters, or of parentheses; the number of its layers. */
static int write_pattern(uint64_t round, char *text)
{
    static const char *const units[] = {"M", "M", "G", "*", "-", "E", "(G-)", "(GE)", "(*-)", "(*E)", "(GE)", "(M-)", "(G)", "L", "K"};
    size_t first = round % 2 ? 0 : 6, count = round % 2 ? 6 : 5;
    int layers = 4 * (1 + (int)(random_bits(round, 1) % 6));

    *text = '\0';
    if (round % 12 == 11)
        count = COUNT(units) - first;
    for (int i = 0; i < layers; i++)
        strcat(text, units[first + random_bits(round, 100 + (uint64_t)i) % count]);
    return layers;
}

static void write_scenario(uint64_t round, char *text, size_t size)
{
    static const char *const software[] = {"megatron-core", "megatron-core-2025", "megatron-core-2026"};
    static const char *const strategies[] = {"", "pipeline: 2", "pipeline: 4", "pipeline: 2, schedule: interleaved, chunks: 2",
                                             "tensor: 2, sequence_parallel: true", "zero: 1, pipeline: 2, split: auto", "context: 2"};
    static const char *const ahead[] = {"", "", "", "mtp: 1, ", "mtp: 2, "};
    char pattern[512], keys[512] = "";
    int layers = write_pattern(round, pattern);
    bool later = random_bits(round, 4) % 6 == 0, twice = random_bits(round, 5) % 3 == 0;

    if (strchr(pattern, 'M'))
        strcat(keys, random_bits(round, 6) % 2 ? "mamba: {heads: 32, head_size: 64, state: 128, groups: 8}, " :
                     "mamba: {heads: 16, head_size: 32, state: 64, groups: 2}, ");
    if (strchr(pattern, 'G') || strchr(pattern, 'K'))
        strcat(keys, random_bits(round, 7) % 2 ? "delta: {key_heads: 16, key_size: 128, value_heads: 32, value_size: 128}, " :
                     "delta: {key_heads: 8, key_size: 64, value_heads: 8, value_size: 64, conv: 3}, ");
    if (strchr(pattern, 'L'))
        strcat(keys, "linear: {heads: 16, head_size: 64}, ");
    if (strchr(pattern, 'E'))
        strcat(keys, random_bits(round, 8) % 2 ? "experts: 8, experts_per_token: 2, expert_ffn: 512, router_bias: true, " :
                     "experts: 16, experts_per_token: 4, expert_latent: 256, shared_experts: 1, shared_ffn: 768, expert_ffn: 512, ");
    snprintf(text, size,
             "cluster: {platform: dgx-h100, nodes: 16}\nbatch: {global: 1024, micro: 1}\nmodel: {transformer: {pattern: \"%s%s\", "
             "layers: %d, %s%shidden: 1024, heads: 16, kv_heads: 4, ffn: 3072, mlp: swiglu, sequence: 2048, vocabulary: 32000, "
             "positions: 0, norm: rmsnorm, bias: false, dropout: 0%s}}\nstrategy: {%s}\n"
             "memory: {precision: mixed-bf16, enforce: false}\nsoftware: {like: %s}\n", pattern,
             later ? strchr(pattern, 'E') ? "/*E" : "/*-" : "", twice ? 2 * layers : layers, keys,
             ahead[random_bits(round, 9) % COUNT(ahead)], random_bits(round, 10) % 3 ? "" : ", attention_gate: true",
             strategies[random_bits(round, 2) % COUNT(strategies)], software[random_bits(round, 3) % COUNT(software)]);
}

static void check_same(const struct scenario *one, const struct scenario *other, const char *text, const char *command)
{
    const struct transformer *a = one->model.transformer, *b = other->model.transformer;

    if (a->layers != b->layers || a->mtp != b->mtp || model_parameters(&one->model) != model_parameters(&other->model))
        fail_msg("another model:\n%s\n%s", text, command);
    for (int i = 0; i < a->layers + (a->mtp > 0); i++) {
        struct halves ours = transformer_halves(a, i), theirs = transformer_halves(b, i);

        if (ours.mixer != theirs.mixer || ours.mlp != theirs.mlp || ours.experts != theirs.experts)
            fail_msg("layer %d differs:\n%s\n%s", i, text, command);
    }
    if (plan_virtual_stages(&one->plan) != plan_virtual_stages(&other->plan))
        fail_msg("other stages:\n%s\n%s", text, command);
}

static void test_round_trips(void **state)
{
    int read = 0, done = 0, letters = 0;

    (void)state;
    for (uint64_t round = 1; round <= (uint64_t)trials(ROUNDS); round++) {
        struct arena arena = {.cache = files_once()};
        struct scenario scenario = {0}, again = {0};
        struct error err = {0};
        struct node *root;
        char text[4096], *command = NULL, *remarks = NULL;
        size_t length, size;
        FILE *out = open_memstream(&command, &length), *notes = open_memstream(&remarks, &size);

        write_scenario(round, text, sizeof text);
        assert_int_equal(conf_parse(&arena, "random.yaml", text, strlen(text), &root, &err), 0);
        if (!scenario_read(&arena, root, NULL, 0, "random", &scenario, &err)) {
            int rc = emit_megatron(&scenario, out, notes, &err);
            const char *pattern = scenario.model.transformer->pattern;

            fflush(out);
            read++;
            if (!rc && (strchr(pattern, 'L') || strchr(pattern, 'K') || strstr(pattern, "(M") || strstr(pattern, "(G)")))
                fail_msg("it has no letter for this:\n%s\n%s", text, command);
            if (rc && error_exit_code(&err) != EXIT_INFEASIBLE)
                fail_msg("%s\n%s", text, err.messages[0].text);
            fflush(notes);
            if (!rc && strchr(pattern, 'G') && scenario.parallelism.context > 1 && !strstr(remarks, "core_v0.18"))
                fail_msg("core_v0.17 does not take this, which nobody says:\n%s\n%s", text, command);
            if (!rc && !import(command, &again, &err))
                fail_msg("%s\n%s", command, err.messages[0].text);
            if (!rc)
                check_same(&scenario, &again, text, command);
            done += !rc;
            letters += !rc && *pattern != '(';
        }
        fclose(out);
        fclose(notes);
        free(command);
        free(remarks);
        error_release(&err);
        scenario_release(&again);
        scenario_release(&scenario);
    }
    print_message("%d of %d hybrids were emitted, %d of letters\n", done, read, letters);
    assert_true(letters > read / 8 && done - letters > read / 8);
}

/* A model with every kind of layer that there can be has its stages. */
static void test_kinds(void **state)
{
    static const char text[] =
        "cluster: {platform: dgx-h100, nodes: 1}\nbatch: {global: 8, micro: 1}\nmodel: {transformer: {pattern: "
        "M-*EGKL(M-)(*-)(G-)(K-)(L-)(ME)(*E)(GE)(KE)(LE)/*E, mtp: 1, hidden: 1024, heads: 16, kv_heads: 4, ffn: 3072, mlp: swiglu, "
        "sequence: 2048, vocabulary: 32000, positions: 0, norm: rmsnorm, bias: false, dropout: 0, window: 256, full_every: 2, "
        "mamba: {heads: 32, head_size: 64, state: 128, groups: 8}, linear: {heads: 16, head_size: 64}, "
        "delta: {key_heads: 16, key_size: 128, value_heads: 16, value_size: 128}, experts: 8, experts_per_token: 2}}\n"
        "strategy: {tensor: 2, sequence_parallel: true}\nmemory: {enforce: false}\nsoftware: {like: megatron-core}\n";
    struct arena arena = {.cache = files_once()};
    struct scenario scenario = {0};
    struct workload workload = {0};
    struct error err = {0};
    struct node *root;

    (void)state;
    assert_int_equal(conf_parse(&arena, "kinds.yaml", text, strlen(text), &root, &err), 0);
    if (scenario_read(&arena, root, NULL, 0, "kinds", &scenario, &err) || workload_init(&workload, &scenario, &err))
        fail_msg("%s", err.messages[0].text);
    assert_true(workload.stages[0].layers == scenario.model.transformer->layers);
    workload_release(&workload);
    scenario_release(&scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_kinds), cmocka_unit_test(test_round_trips)};

    return cmocka_run_group_tests_name("hybrid_launch", tests, NULL, NULL);
}
