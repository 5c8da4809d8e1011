/* A command that is emitted for Megatron-LM has only arguments, and values, of the release that the scenario's software is.
 * megatron_parsers.tsv has what the parsers of six releases take (parse_args of megatron/training/arguments.py, asked in
 * November 2026 with torch stubbed), an argument a row: nothing (-), any value (+), or its choices. */
#include "simulated.h"

#include "base/random.h"
#include "emit/emit.h"
#include "files/tsv.h"
#include "launch/dialect.h"
#include "launch/launch.h"
#include "trials.h"

enum { ROUNDS = 1200, RELEASES = 6 };
static const int sampled[RELEASES] = {8, 12, 13, 15, 17, 19};
/* What software files stand for, and which of the releases above these are; none: all are right that the newest is. */
static const struct { const char *software; int first, last; } software[] = {
    {"megatron-core", 0, 5}, {"megatron-core-2025", 2, 3}, {"megatron-core-2026", 4, 5}, {"none", 5, 5},
};
struct known { const char *name, *takes[RELEASES]; };
static struct { struct known *items; size_t count, capacity; } parsers;

static void read_parsers(struct arena *arena)
{
    static const char *const columns[] = {"argument", "core_v0.8.0", "core_v0.12.3", "core_v0.13.1", "core_v0.15.3",
                                          "core_v0.17.1", "core_v0.19.0", NULL};
    struct error err = {0};
    struct tsv tsv = {0};

    assert_int_equal(tsv_open(&tsv, DTSIM_SOURCE_DIR "/tests/property/megatron_parsers.tsv", columns, &err), 0);
    while (tsv_next(&tsv, &err)) {
        struct known *known = GROW(&parsers);

        known->name = arena_strdup(arena, tsv_text(&tsv, 0));
        for (int i = 0; i < RELEASES; i++)
            known->takes[i] = arena_strdup(arena, tsv_text(&tsv, i + 1));
    }
    assert_int_equal(err.count, 0);
    tsv_release(&tsv);
}

/* Whether the parser of a release takes an argument with that value; "": whatever the value is. */
static bool takes(const char *argument, const char *value, int release)
{
    for (size_t i = 0; i < parsers.count; i++) {
        const char *choices = parsers.items[i].takes[release];
        size_t length = strlen(value);

        if (strcmp(parsers.items[i].name, argument) != 0)
            continue;
        if (!*value || strcmp(choices, "+") == 0)
            return strcmp(choices, "-") != 0;
        for (const char *at = choices; *at; at += strcspn(at, ","), at += *at == ',')
            if (strcspn(at, ",") == length && !strncmp(at, value, length))
                return true;
    }
    return false;
}

/* What the dialect says of releases is what the parsers say. */
static void test_dialect(void **state)
{
    struct arena *arena = *state;
    struct error err = {0};
    const struct dialect *megatron = dialect_load(arena, "megatron", &err);
    int bounded = 0;

    assert_non_null(megatron);
    for (size_t i = 0; i < megatron->count; i++) {
        const struct argument_row *row = &megatron->rows[i];

        for (int k = 0; k < RELEASES; k++) {
            bool said = !row->fork && row->since <= sampled[k] && (!row->until || row->until >= sampled[k]);

            if ((row->since || row->until || row->fork || row->path) && said != takes(row->name, "", k))
                fail_msg("--%s: core_v0.%d %s it", row->name, sampled[k], said ? "lacks" : "has");
        }
        for (const char *at = row->newer; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
            const char *value = arena_printf(arena, "%.*s", (int)strcspn(at, "="), at);

            for (int k = 0; k < RELEASES; k++)
                if ((dialect_since(row, value) <= sampled[k]) != takes(row->name, value, k))
                    fail_msg("--%s %s: core_v0.%d is another one", row->name, value, sampled[k]);
        }
        bounded += row->since || row->until;
    }
    assert_true(bounded > 60);
}

/* Values of which each scenario has one; "": left out. */
static const struct { const char *part, *values[8]; } keys[] = {
    {"strategy", {"tensor: 1", "tensor: 4, sequence_parallel: true", "tensor: 2, sequence_parallel: true"}},
    {"strategy", {"", "pipeline: 2", "pipeline: 4, schedule: interleaved, chunks: 2", "pipeline: 4, split: [6, 9, 9, 8]"}},
    {"strategy", {"zero: 0", "zero: 1", "zero: 1", "zero: 1", "zero: 1", "zero: 2", "zero: 3"}},
    {"strategy", {"", "", "context: 2"}},
    {"strategy", {"", "data_parallel: ddp"}},
    {"experts", {"", "expert: 4", "expert: 8, dispatcher: deepep", "expert: 4, expert_tensor: 1"}},
    {"memory", {"precision: mixed-bf16", "precision: mixed-bf16", "precision: mixed-fp16", "precision: mixed-fp8",
                "precision: mixed-fp8-block"}},
    {"memory", {"", "", "recompute: full", "recompute: selective", "recompute: {mode: modules, modules: [norms, mlp]}"}},
    {"memory", {"", "", "", "", "offload: [optimizer]", "optimizer: adam-8bit", "optimizer: adam-half", "optimizer: muon"}},
    {"software", {"", "", "", "cross_entropy: compiled", "gradients: half", "scatter_gather: false"}},
};

#define HYBRID(keys) \
    "transformer: {layers: 32, hidden: 1024, heads: 16, positions: 0, bias: false, sequence: 4096, vocabulary: 32000, dropout: 0, " \
    "norm: rmsnorm, mlp: swiglu, ffn: 4096, delta: {key_heads: 16, key_size: 64, value_heads: 16, value_size: 64}, " keys "}"
/* Those of odd rounds have experts. */
static const char *const models[2][2] = {
    {"preset: llama3-8b", HYBRID("pattern: M-*-G-M-, mamba: {heads: 16, head_size: 64, state: 128, groups: 4}")},
    {"preset: mixtral-8x7b", HYBRID("pattern: (GE)(*-)(GE)(*E), attention_gate: true, experts: 8, experts_per_token: 2, "
                                    "expert_latent: 512")},
};

static void write_scenario(uint64_t round, const char *like, char *text, size_t size)
{
    static const char *const parts[] = {"strategy", "memory", "software"};
    size_t at = (size_t)snprintf(text, size, "cluster: {platform: dgx-h100, nodes: 64}\nbatch: {global: 512, micro: 1}\n"
                                 "model: {%s}\n", models[round % 2][random_bits(round, 99) % 2]);

    for (size_t p = 0; p < COUNT(parts); p++) {
        at += (size_t)snprintf(text + at, size - at, "%s: {%s%s", parts[p], p == 0 ? "" : p == 1 ? "enforce: false" : "like: ",
                               p == 2 ? like : "");
        for (size_t k = 0; k < COUNT(keys); k++) {
            uint64_t count = 0;
            const char *value;

            if (strcmp(keys[k].part, parts[p]) != 0 && !(round % 2 && p == 0 && !strcmp(keys[k].part, "experts")))
                continue;
            while (count < COUNT(keys[k].values) && keys[k].values[count])
                count++;
            value = keys[k].values[random_bits(round, k) % count];
            at += (size_t)snprintf(text + at, size - at, "%s%s", *value && text[at - 1] != '{' ? ", " : "", value);
        }
        at += (size_t)snprintf(text + at, size - at, "}\n");
    }
}

/* Each argument is one of a release that the software is. 1: it was emitted. */
static int check(struct arena *arena, const struct scenario *scenario, size_t s)
{
    char *text = NULL, *remarks = NULL;
    size_t length, size;
    FILE *out = open_memstream(&text, &length), *notes = open_memstream(&remarks, &size);
    struct error err = {0};
    struct launch launch = {0};
    int done = !emit_megatron(scenario, out, notes, &err);

    fclose(out);
    fclose(notes);
    if (done)
        assert_int_equal(launch_parse(arena, "a command", text, length, &launch, &err), 0);
    for (size_t i = 0; i < launch.arguments.count; i++) {
        const struct launch_argument *argument = &launch.arguments.items[i];
        bool found = false;

        for (int k = software[s].first; k <= software[s].last; k++)
            found |= takes(argument->name, argument->count == 1 ? argument->values[0].text : "", k);
        if (!found)
            fail_msg("%s has no --%s %s:\n%s", software[s].software, argument->name,
                     argument->count ? argument->values[0].text : "", text);
    }
    launch_release(&launch);
    error_release(&err);
    free(text);
    free(remarks);
    return done;
}

static void test_releases(void **state)
{
    struct arena *arena = *state;
    int done[COUNT(software)] = {0};

    for (uint64_t round = 1; round <= (uint64_t)trials(ROUNDS); round++) {
        size_t s = round / 2 % COUNT(software);
        struct scenario scenario = {0};
        struct error err = {0};
        struct node *root;
        char text[4096];

        write_scenario(round, software[s].software, text, sizeof text);
        assert_int_equal(conf_parse(arena, "random.yaml", text, strlen(text), &root, &err), 0);
        if (!scenario_read(&(struct arena){.cache = files_once()}, root, NULL, 0, "random", &scenario, &err))
            done[s] += check(arena, &scenario, s);
        error_release(&err);
        scenario_release(&scenario);
    }
    for (size_t s = 0; s < COUNT(software); s++) {
        print_message("%s: %d were emitted\n", software[s].software, done[s]);
        assert_true(done[s] > 0);
    }
}

static int begin(void **state)
{
    struct arena *arena = xcalloc(1, sizeof *arena);

    arena->cache = files_once();
    read_parsers(arena);
    *state = arena;
    return 0;
}

static int end(void **state)
{
    free(parsers.items);
    arena_release(*state);
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dialect), cmocka_unit_test(test_releases)};

    return cmocka_run_group_tests_name("emitted_releases", tests, begin, end);
}
