/* A scenario that is emitted for a framework and imported back is the same scenario, and is emitted as the same bytes.
 * The scenarios are random, with keys that frameworks have in common. A key that a framework does not have is an error
 * that names it. */
#include "simulated.h"

#include "base/random.h"
#include "emit/emit.h"
#include "jobs/jobs.h"
#include "megatron/megatron.h"
#include "trials.h"

enum { ROUNDS = 2000, SAMPLE = 150, LEAST = 5 }; /* scenarios for each framework: all, or a sample; at least LEAST of
                                                  * six are emitted */

static int rounds(void)
{
    return one_in() == 1 ? ROUNDS : SAMPLE * 4 / one_in();
}


static const struct { const char *name, *software; } frameworks[] = {
    {"megatron", "megatron-core-2026"}, {"torchtitan", "torchtitan-2025"},
    {"deepspeed", "deepspeed"}, {"bridge", "megatron-bridge"},
};
/* A key and the values that it may have; "": it is left out. With a framework: that one alone;
 * Megatron Bridge has Megatron-LM's. */
static const struct { const char *part, *values[6], *framework;
} keys[] = {
    {"strategy", {"tensor: 1", "tensor: 2", "tensor: 4"}, "megatron"},
    {"strategy", {"tensor: 1", "tensor: 1", "tensor: 2"}, "deepspeed"},
    {"strategy",
     {"tensor: 1", "tensor: 2, sequence_parallel: true", "tensor: 4, sequence_parallel: true"},
     "torchtitan"},
    {"strategy",
     {"pipeline: 1", "pipeline: 1", "pipeline: 2", "pipeline: 4", "pipeline: 4, schedule: interleaved, chunks: 2",
      "pipeline: 4, schedule: 1f1b, split: [3, 2, 2, 1]"},
     NULL},
    {"strategy", {"data: 2", "data: 4", "data: 8"}, NULL},
    {"strategy", {"zero: 0", "zero: 1", "zero: 1", "zero: 2", "zero: 3"}, "megatron"},
    {"strategy", {"zero: 0", "zero: 1", "zero: 1", "zero: 2", "zero: 3"}, "deepspeed"},
    {"strategy", {"zero: 3", "zero: 3", "zero: 3", "zero: 3, shard: 2", "zero: 1"}, "torchtitan"},
    {"strategy", {"", "", "context: 2", "context: 2, context_attention: all-gather"}, "megatron"},
    {"strategy", {"", "", "context: 2", "context: 2, context_attention: all-gather"}, "torchtitan"},
    {"strategy", {"", "sequence_parallel: true"}, "megatron"},
    {"strategy", {"", "data_parallel: ddp", "data_parallel: synchronous"}, "megatron"},
    {"strategy", {"", "data_parallel: ddp", "data_parallel: synchronous"}, "deepspeed"},
    {"strategy", {"", "", "", "schedule: zb-h1"}, NULL},
    {"batch", {"micro: 1, global: 64", "micro: 2, global: 64", "micro: 1, global: 32"}, NULL},
    {"memory",
     {"precision: mixed-bf16", "precision: mixed-bf16", "precision: mixed-fp16", "precision: fp32",
      "precision: mixed-fp8", "precision: bf16"},
     NULL},
    {"memory",
     {"", "recompute: full", "recompute: selective", "recompute: {mode: full, every: 2}", "recompute: operators",
      "recompute: {mode: full, blocks: 1}"},
     "megatron"},
    {"memory", {"", "", "recompute: {mode: full, every: 2}"}, "deepspeed"},
    {"memory", {"", "recompute: full", "recompute: operators", "recompute: {mode: full, share: 0.5}"}, "torchtitan"},
    {"memory", {"", "", "offload: [optimizer]", "optimizer: lamb", "optimizer: momentum", "optimizer: muon"}, "megatron"},
    {"memory", {"", "", "offload: [optimizer]", "optimizer: lamb", "optimizer: momentum", "optimizer: muon"}, "deepspeed"},
    {"memory", {"", "", "", "", "offload: [weights, optimizer]"}, "torchtitan"},
    {"software", {"", "", "clip_gradients: false"}, NULL},
    {"software", {"", "", "overlap_gathers: true"}, "megatron"},
    {"software", {"", "fused_optimizer: false"}, "torchtitan"},
    {"software", {"", "", "first_bucket: 80 MB, bucket: 80 MB"}, "megatron"},
    {"model",
     {"", "mlp: swiglu", "kv_heads: 4", "norm: rmsnorm", "experts: 8, experts_per_token: 2, expert_ffn: 512"},
     NULL},
    {"model", {"", "", "dropout: 0, attention_dropout: 0", "tied: false", "bias: false, qkv_bias: false"}, NULL},
};

/* A random scenario, as YAML. */
static void write_scenario(int round, const char *framework, const char *software, char *text, size_t size)
{
    static const char *const parts[] = {"model", "batch", "strategy", "memory", "software"};
    static const char *const begins[] = {
        "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 2048, vocabulary: 32000",
        "batch: {",
        "strategy: {",
        "memory: {enforce: false",
        "software: {like: ",
    };
    const char *like = strcmp(framework, "bridge") ? framework : "megatron";
    size_t at = (size_t)snprintf(text, size, "cluster: {platform: dgx-h100, nodes: 128}\n");

    for (size_t p = 0; p < COUNT(parts); p++) {
        bool first = !strcmp(parts[p], "batch") || !strcmp(parts[p], "strategy");

        at += (size_t)snprintf(text + at, size - at, "%s%s", begins[p], !strcmp(parts[p], "software") ? software : "");
        for (size_t k = 0; k < COUNT(keys); k++) {
            int values = 0;
            const char *value;

            if (strcmp(keys[k].part, parts[p]) || (keys[k].framework && strcmp(keys[k].framework, like)))
                continue;
            while (values < 6 && keys[k].values[values])
                values++;
            value = keys[k].values[random_bits((uint64_t)round, k) % (uint64_t)values];
            /* one schedule alone */
            if (!*value || (!strcmp(value, "schedule: zb-h1") && strstr(text, "schedule:")))
                continue;
            at += (size_t)snprintf(text + at, size - at, "%s%s", first ? "" : ", ", value);
            first = false;
        }
        at += (size_t)snprintf(text + at, size - at, "%s}\n", p ? "" : "}");
    }
}

/* The imported scenario of what was emitted, on the cluster of the first one. */
static struct node *import(struct arena *arena, const char *framework, const char *text, size_t length, int gpus,
                           struct node *model, FILE *notes, struct error *err)
{
    char number[16];
    struct launch_set sets[] = {{"nnodes", "1"}, {"nproc_per_node", number}};
    struct import_options options = {.sets = sets, .nsets = COUNT(sets)};
    const char *comment;
    struct launch launch = {0};
    struct node *root = NULL;

    snprintf(number, sizeof number, "%d", gpus);
    if (!strcmp(framework, "torchtitan"))
        return torchtitan_scenario(arena, &(struct job_text){"job.toml", text, length, &options, model, NULL}, &comment, notes,
                                   err);
    if (!strcmp(framework, "deepspeed"))
        return deepspeed_scenario(arena, &(struct job_text){"ds.json", text, length, &options, model, NULL}, &comment, notes,
                                  err);
    if (!strcmp(framework, "bridge"))
        return bridge_scenario(arena, &(struct job_text){"bridge.yaml", text, length, &options, NULL, NULL}, &comment, notes,
                               err);
    if (!launch_parse(arena, "args.txt", text, length, &launch, err))
        root = megatron_scenario(arena, &launch, &options, &comment, notes, err);
    launch_release(&launch);
    if (root)                                                /* no launch says its release */
        node_put(arena, node_get(root, "software"), "like", node_scalar(arena, "megatron-core-2026", false));
    return root;
}

/* The keys that a job has in torchtitan v0.2.0 (torchtitan/config/job_config.py), of those that a scenario may say. */
static const struct { const char *section, *keys; } titan[] = {
    {"[model]", "name flavor converters"},
    {"[training]", "local_batch_size global_batch_size seq_len max_norm dtype mixed_precision_param mixed_precision_reduce "
                   "enable_cpu_offload"},
    {"[optimizer]", "name implementation"},
    {"[compile]", "enable components"},
    {"[parallelism]", "data_parallel_replicate_degree data_parallel_shard_degree fsdp_reshard_after_forward "
                      "tensor_parallel_degree enable_async_tensor_parallel context_parallel_degree "
                      "context_parallel_rotate_method expert_parallel_degree expert_tensor_parallel_degree "
                      "pipeline_parallel_degree pipeline_parallel_schedule pipeline_parallel_microbatch_size "
                      "pipeline_parallel_layers_per_stage pipeline_parallel_first_stage_less_layers "
                      "pipeline_parallel_last_stage_less_layers"},
    {"[activation_checkpoint]", "mode selective_ac_option"},
};

/* torchtitan ends where a key is not one of its section's. */
static void check_titan(const char *text)
{
    const char *known = NULL;

    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char line[256], *end;

        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (*line == '[') {
            known = NULL;
            for (size_t i = 0; i < COUNT(titan); i++)
                known = strcmp(line, titan[i].section) ? known : titan[i].keys;
            assert_non_null(known);
        } else if (*line && *line != '#') {
            end = strchr(line, ' ');
            assert_non_null(end);
            *end = '\0';
            if (!known || !word_in(known, line))
                fail_msg("torchtitan has no '%s' there:\n%s", line, text);
        }
    }
}

static char *emitted_text(size_t f, const struct scenario *scenario, size_t *length, FILE *notes, struct error *err)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);

    for (size_t i = 0; emitted_at(i); i++)
        if (!strcmp(emitted_at(i)->name, frameworks[f].name))
            emitted_at(i)->emit(scenario, out, notes, err);
    fclose(out);
    if (!strcmp(frameworks[f].name, "torchtitan"))
        check_titan(text);
    return text;
}

/* 1: it was emitted, and came back. */
static int check(size_t f, int round)
{
    static const char *const parts[] = {"model", "batch", "strategy", "memory", "software"};
    char yaml[4096];
    struct arena arena = {.cache = files_once()}, other = {0};
    struct error err = {0};
    struct scenario scenario = {0}, again = {0};
    struct node *root;
    size_t length, second;
    char *text, *same, *notes_text = NULL;
    size_t notes_length;
    FILE *notes = open_memstream(&notes_text, &notes_length);
    int done = 0;

    write_scenario(round, frameworks[f].name, frameworks[f].software, yaml, sizeof yaml);
    assert_int_equal(conf_parse(&arena, "random.yaml", yaml, strlen(yaml), &root, &err), 0);
    if (scenario_read(&arena, root, NULL, 0, "random", &scenario, &err)) {
        if (error_exit_code(&err) != EXIT_INFEASIBLE)
            fail_msg("%s\n%s", yaml, err.messages[0].text);
        error_release(&err);
        scenario_release(&scenario);
        fclose(notes);
        free(notes_text);
        return 0;
    }
    text = emitted_text(f, &scenario, &length, notes, &err);
    fflush(notes);
    if (err.count) {
        assert_int_equal(length, 0);
        if (error_exit_code(&err) != EXIT_INFEASIBLE && error_exit_code(&err) != EXIT_INPUT)
            fail_msg("%s\n%s", yaml, err.messages[0].text);
    } else if (!strstr(notes_text, " will have ")) {     /* the words of a note on what will differ */
        struct node *tree = scenario_dump(&other, &scenario), *back;

        root = import(&other, frameworks[f].name, text, length, scenario_gpus(&scenario), node_get(tree, "model"),
                      notes, &err);
        if (!root)
            fail_msg("%s\nbecame\n%s\n%s", yaml, text, err.messages[0].text);
        node_put(&other, root, "cluster", node_get(scenario.node, "cluster"));
        node_put(&other, node_get(root, "memory"), "enforce", node_scalar(&other, "false", false));
        assert_int_equal(scenario_read(&(struct arena){.cache = files_once()}, root, NULL, 0, "random", &again, &err), 0);
        back = scenario_dump(&other, &again);
        for (size_t p = 0; p < COUNT(parts); p++)
            if (!node_equal(node_get(tree, parts[p]), node_get(back, parts[p])))
                fail_msg("%s of\n%s\ncomes back as\n%s\nnot\n%s\nfrom\n%s", parts[p], yaml,
                         node_flow(&other, node_get(back, parts[p])), node_flow(&other, node_get(tree, parts[p])),
                         text);
        same = emitted_text(f, &again, &second, notes, &err);
        assert_string_equal(same, text);
        free(same);
        done = 1;
    }
    fclose(notes);
    free(notes_text);
    free(text);
    error_release(&err);
    scenario_release(&again);
    scenario_release(&scenario);
    arena_release(&other);
    return done;
}

static void test_round_trips(void **state)
{
    int done = 0;

    (void)state;
    for (size_t f = 0; f < COUNT(frameworks); f++) {
        int own = 0;

        for (int round = 0; round < rounds(); round++)
            own += check(f, round);
        print_message("%s: %d of %d were emitted\n", frameworks[f].name, own, rounds());
        assert_true(own > rounds() / 10);
        done += own;
    }
    assert_true(done >= LEAST * rounds() / 6);
}

/* Keys of a preset's model, and of changes of one, that no launch says: they are refused as those of a scenario's own; but not where
 * they say what is so without them (NULL). */
static void test_presets(void **state)
{
    static const struct { const char *key, *model; } models[] = {
        {"post_norms", "preset: llama3-8b, with: {post_norms: true}"}, {"head_bias", "preset: llama3-8b, with: {head_bias: true}"},
        {"projection_bias", "preset: llama2-7b, with: {projection_bias: true}"},
        {"final_norm", "preset: llama3-8b, with: {final_norm: false}"}, {"final_norm", "preset: bert-large"},
        {"chunked", "preset: llama3-8b, with: {window: 512, chunked: true}"},
        {"embedding_size", "preset: gpt3-175b, with: {embedding_size: 1024}"},
        {NULL, "preset: llama2-7b, with: {projection_bias: false, kv_heads: 32, embedding_size: 4096, attention_dropout: 0}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(models) * COUNT(frameworks); i++) {
        size_t f = i % COUNT(frameworks), m = i / COUNT(frameworks), length;
        struct arena arena = {.cache = files_once()};
        struct error err = {0};
        struct scenario scenario = {0};
        struct node *root;
        char yaml[512], *text, *said = NULL;
        FILE *notes = open_memstream(&said, &length);
        bool named = false;

        if (!strcmp(frameworks[f].name, "deepspeed") || !strcmp(frameworks[f].name, "torchtitan")) {    /* their files have no model */
            fclose(notes);
            free(said);
            continue;
        }
        snprintf(yaml, sizeof yaml, "cluster: {platform: dgx-h100, nodes: 16}\nbatch: {micro: 1, global: 128}\nmodel: {%s}\n"
                 "strategy: {zero: 1}\nmemory: {precision: mixed-bf16, enforce: false}\nsoftware: {like: %s}\n", models[m].model,
                 frameworks[f].software);
        assert_int_equal(conf_parse(&arena, "preset.yaml", yaml, strlen(yaml), &root, &err), 0);
        if (scenario_read(&arena, root, NULL, 0, "preset", &scenario, &err))
            fail_msg("%s\n%s", yaml, err.messages[0].text);
        text = emitted_text(f, &scenario, &length, notes, &err);
        for (int k = 0; k < err.count; k++)
            named |= !models[m].key || strstr(err.messages[k].text, models[m].key);
        if (named != (models[m].key != NULL))
            fail_msg("%s by %s: %s\n%s", models[m].model, frameworks[f].name, err.count ? err.messages[0].text : "not refused", text);
        fclose(notes);
        free(said);
        free(text);
        error_release(&err);
        scenario_release(&scenario);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trips), cmocka_unit_test(test_presets)};

    return cmocka_run_group_tests_name("emitted", tests, NULL, NULL);
}
