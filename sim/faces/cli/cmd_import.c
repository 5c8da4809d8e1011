#include <string.h>

#include "base/base.h"
#include "cli/cmd.h"
#include "collective/collective.h"
#include "config/conf_text.h"
#include "files/look.h"
#include "import/import_kineto.h"
#include "import/import_nccl.h"
#include "import/nccl_fit.h"
#include "import/nccl_run.h"
#include "import/pipedream_profile.h"
#include "jobs/jobs.h"
#include "launch/dialect.h"
#include "schedule/order.h"

/* The command line's options for a file. */
struct import_hints {
    struct nccl_hints nccl;
    struct import_options launch;
    const char *platform;            /* whose profile nccl-tests correct; NULL: none is */
    const char *kind;                /* the word for the kind of file */
};
/* What a file becomes, as a tree; NULL where the file is wrong, or where it was printed already. */
typedef struct node *importer(struct arena *arena, const char *path, const struct import_hints *hints,
                              struct error *err);

static struct node *put_mapping(struct arena *arena, struct node *mapping, const char *key)
{
    struct node *value = node_mapping(arena);

    node_put(arena, mapping, key, value);
    return value;
}

static void put_number(struct arena *arena, struct node *mapping, const char *key, int value)
{
    node_put(arena, mapping, key, node_scalar(arena, arena_printf(arena, "%d", value), false));
}

/* Which stages take how long, nobody knows from an order alone: a backward twice as long as a forward is usual. */
static struct node *import_order(struct arena *arena, const char *path, const struct import_hints *hints,
                                 struct error *err)
{
    struct node *root = node_mapping(arena), *strategy, *stages;
    struct order order;

    (void)hints;
    if (order_load(arena, path, (struct loc){0}, RECOMPUTE_WITH_GRADIENT, &order, err))
        return NULL;
    stages = put_mapping(arena, put_mapping(arena, root, "model"), "stages");
    node_put(arena, stages, "forward", node_scalar(arena, "1 s", false));
    node_put(arena, stages, "backward", node_scalar(arena, "2 s", false));
    node_put(arena, root, "cluster", node_scalar(arena, "ideal", false));
    put_number(arena, put_mapping(arena, root, "batch"), "micro_batches", order.micro_batches);
    strategy = put_mapping(arena, root, "strategy");
    node_put(arena, put_mapping(arena, strategy, "schedule"), "csv", node_scalar(arena, path, text_is_special(path)));
    put_number(arena, strategy, "pipeline", order.ranks);
    if (order.chunks > 1)
        put_number(arena, strategy, "chunks", order.chunks);
    return root;
}

static struct node *import_pipedream(struct arena *arena, const char *path, const struct import_hints *hints,
                                     struct error *err)
{
    (void)hints;
    return pipedream_profile_load(arena, path, err);
}

static struct node *import_nccl(struct arena *arena, const char *path, const struct import_hints *hints,
                                struct error *err)
{
    struct node *table = import_nccl_load(arena, path, &hints->nccl, stderr, err);

    return table && hints->platform ? nccl_fit(arena, table, hints->platform, stderr, err) : table;
}

/* What a framework is launched with. A comment stands above the scenario: it is printed here. */
static struct node *import_framework(struct arena *arena, const char *path, const struct import_hints *hints, struct error *err)
{
    framework_import(arena, hints->kind, path, &hints->launch, stdout, stderr, err);
    return NULL;
}

/* Samples are no tree: they are printed as they are read. */
static struct node *import_trace(struct arena *arena, const char *path, const struct import_hints *hints,
                                 struct error *err)
{
    bool standard = !strcmp(path, "-");
    FILE *trace = standard ? stdin : look_open_stream(path, err);

    (void)arena;
    (void)hints;
    if (trace)
        import_kineto(trace, standard ? "standard input" : path, stdout, stderr, err);
    if (trace && !standard)
        fclose(trace);
    return NULL;
}

/* `most`: arguments, this word and the file included. */
static const struct import { const char *name; importer *import; int most; } imports[] = {
    {"pytorch-schedule", import_order, 2},
    {"nccl-tests", import_nccl, 2},
    {"pipedream-profile", import_pipedream, 2},
    {"kineto", import_trace, 2},
    {"megatron", import_framework, ARGS_MAX},
    {"deepspeed", import_framework, 2},
    {"torchtitan", import_framework, 2},
    {"transformers", import_framework, 3},
    {"bridge", import_framework, 2},
    {"nemo", import_framework, 2},
    {"torchtitan-2026", import_framework, 2},
    {"axolotl", import_framework, 2},
    {"llama-factory", import_framework, 2},
}, own = {"", import_framework, ARGS_MAX};

enum { OPT_OP, OPT_RANKS, OPT_PER_NODE, OPT_CLUSTER, OPT_STRICT, OPT_HF_CONFIG, OPT_ENV, OPT_READ, OPT_LAUNCH, OPT_TRUST, OPT_PLATFORM };

static const char *import_name(size_t i)
{
    return i < COUNT(imports) ? imports[i].name : NULL;
}

/* NAME=VALUE behind --set or --env. */
static int pair_parse(const struct command *command, struct arena *arena, const char *option, const char *text,
                      struct launch_set *pair)
{
    const char *equals = strchr(text, '=');

    if (!equals || equals == text)
        return usage_error(command, "%s: expected NAME=VALUE, found '%s'", option, text);
    *pair = (struct launch_set){arena_strndup(arena, text, (size_t)(equals - text)), equals + 1};
    return ARGS_DONE;
}

/* What the options say of a launch. */
static int launch_options(const struct arguments *arguments, struct arena *arena, struct import_options *hints)
{
    struct launch_set *sets = ARENA_ARRAY(arena, struct launch_set, arguments->nsets + 1);
    struct launch_set *environment = ARENA_ARRAY(arena, struct launch_set, arguments->ngiven + 1);
    const char **folders = ARENA_ARRAY(arena, const char *, arguments->ngiven + 1);
    size_t nenvironment = 0, nfolders = 0;
    int code = ARGS_DONE;

    for (size_t i = 0; i < arguments->nsets && code == ARGS_DONE; i++)
        code = pair_parse(arguments->command, arena, "--set", arguments->sets[i], &sets[i]);
    for (size_t i = 0; i < arguments->ngiven && code == ARGS_DONE; i++)
        if (arguments->given[i].option == OPT_READ)
            folders[nfolders++] = arguments->given[i].value;
        else if (arguments->given[i].option == OPT_ENV)
            code = pair_parse(arguments->command, arena, "--env", arguments->given[i].value, &environment[nenvironment++]);
    *hints = (struct import_options){arguments->values[OPT_CLUSTER], arguments->values[OPT_STRICT] != NULL,
                                     arguments->values[OPT_HF_CONFIG], sets, arguments->nsets, environment, nenvironment,
                                     arguments->positional + 2, folders, arguments->command->held > 0,
                                     arguments->values[OPT_TRUST] != NULL, (int)arguments->numbers[OPT_LAUNCH]};
    return code;
}

static int import_main(const struct arguments *arguments)
{
    struct arena arena = {0};
    struct error err = {0};
    const struct import *import = (size_t)arguments->first < COUNT(imports) ? &imports[arguments->first] : &own;
    struct import_hints hints = {.nccl = {arguments->values[OPT_OP], (int)arguments->numbers[OPT_RANKS],
                                          (int)arguments->numbers[OPT_PER_NODE]},
                                 .platform = arguments->values[OPT_PLATFORM], .kind = arguments->positional[0]};
    struct node *root;
    int code;

    if (arguments->npositional > import->most)
        return usage_error(arguments->command, "unexpected argument '%s'", arguments->positional[import->most]);
    code = launch_options(arguments, &arena, &hints.launch);
    if (code != ARGS_DONE) {
        arena_release(&arena);
        return code;
    }
    root = import->import(&arena, arguments->positional[1], &hints, &err);
    if (root)
        node_print(root, stdout);
    arena_release(&arena);
    return report(&err);
}

#define OTHERS "torchtitan-2026 axolotl llama-factory OTHER"
static const struct option options[] = {
    [OPT_OP] = {"--op", "OPERATION",
        .help = "what a file measured that does not say so (older versions): all_reduce, ...",
        OPTION_CHOICE, .words = {"operation", collective_op_names, NULL}, .with = "nccl-tests"},
    [OPT_RANKS] = {"--ranks", "N",
        .help = "how many ranks it ran on, where it has no lines '#  Rank  0 ...' or a shortened list; busbw / algbw must agree",
        OPTION_COUNT, 2, NCCL_MOST_RANKS, .with = "nccl-tests"},
    [OPT_PER_NODE] = {"--per-node", "M",
        .help = "how many of them are in a node; left out: they fill whole nodes",
        OPTION_COUNT, 1, NCCL_MOST_RANKS, .with = "nccl-tests"},
    [OPT_CLUSTER] = {"--cluster", "NAME",
        .help = "its GPUs: dtsim list platforms, or a file; left out: dgx-h100 with the fewest nodes that hold the degrees, unless "
        "the launcher or the log says how many GPUs", .with = "megatron deepspeed torchtitan transformers bridge nemo " OTHERS},
    [OPT_STRICT] = {"--strict",
        .help = "warnings are errors", .with = "megatron deepspeed torchtitan transformers bridge nemo " OTHERS},
    [OPT_HF_CONFIG] = {"--hf-config", "CONFIG",
        .help = "the model: a Hugging Face config.json; left out where the file says the model or dtsim has it",
        .with = "deepspeed torchtitan transformers bridge nemo " OTHERS},
    [OPT_ENV] = {"--env", "NAME=VALUE",
        .help = "a variable with which the script begins; else what launchers set (SLURM_NNODES)", .many = true, .with = "megatron OTHER"},
    [OPT_READ] = {"--read", "FOLDER", .help = "the script may read it", .many = true, .with = "megatron OTHER"},
    [OPT_LAUNCH] = {"--launch", "N",
        .help = "the Nth of the script's launches; left out: the first one with a model", OPTION_COUNT, 1, 1000, .with = "megatron OTHER"},
    [OPT_TRUST] = {"--trust", .help = "run it also without Landlock; it can read all your files then", .with = "megatron OTHER"},
    [OPT_PLATFORM] = {"--platform", "NAME",
        .help = "instead of the table a communication profile: the platform's, with latencies and rates by protocol fitted to what was "
        "measured; cluster: {platform: NAME, communication: FILE} uses it. stderr says how well it fits, and what the sizes do not tell",
        .with = "nccl-tests"},
    {"--set", "NAME=VALUE", .help = "an argument (num-layers=32), or nnodes and nproc_per_node", OPTION_SET, .many = true,
        .with = "megatron deepspeed torchtitan transformers bridge nemo " OTHERS},
    {"pytorch-schedule",
        .help = "the order in which each pipeline rank computes, as PyTorch dumps it (compute only): a line a rank, cells <virtual "
        "stage><kind><micro-batch> from 0 between commas: 0F0,0B0 kinds: F forward, B backward, I and W its halves for "
        "input and weights, R recomputation; @0 or @1 behind a cell of two directions; (1F1;0B0)OVERLAP_F_B, or O, runs two as one; empty: "
        "idle"},
    {"nccl-tests",
        .help = "what a program of nccl-tests printed, or wrote with -J: a table of 'dtsim collective --table'. Where no platform has such GPUs, put "
        "yours under 'cluster'. Marks that others put before each line are skipped: mpirun --tag-output, srun --label, "
        "kubectl logs --prefix, timestamps. Rows that are left out are named on stderr"},
    {"pipedream-profile",
        .help = "graph.txt of PipeDream's profiler: a model's layers with the times of its minibatch, which is the scenario's "
        "micro-batch. Branches: layers stand one after the other; the boundary is all that a cut there sends, each tensor "
        "once. Nodes 'Input' take no time: theirs was spent waiting for data"},
    {"kineto",
        .help = "the trace of a training step on one GPU by PyTorch's profiler (record_shapes=True): samples of its kernels for "
        "'dtsim calibrate'; what torch.compile fuses or a CUDA graph runs is no operation that it knows. Comments name what "
        "is left out, stderr the share of the kernels' time that the samples hold"},
    {"megatron",
        .help = "how Megatron-LM or Megatron-DeepSpeed was launched: a scenario with its model, degrees, batch and memory, and the "
        "software with its switches. FILE is a script of bash with its ARGUMENTS, a list of arguments, or a log with the "
        "arguments that it printed. bash runs the script in a child that reads the script's folder and writes nothing; "
        "programs like torchrun or rm do not start, their words are taken. stderr says what became of each argument: in the "
        "scenario, default, without effect on the time, or not simulated (a warning); an unknown one is an error"},
    {"deepspeed",
        .help = "DeepSpeed's JSON: batch, ZeRO, offloading, formats. A value \"auto\" is an error that names the key: give it by "
        "--set"},
    {"torchtitan", .help = "the TOML of a torchtitan job: degrees, schedule, batch, activation checkpointing, compile, float8"},
    {"transformers", .help = "TrainingArguments (YAML, JSON), and Accelerate's and DeepSpeed's files"},
    {"bridge", .help = "the YAML of Megatron Bridge: overrides, or all keys as ConfigContainer.to_yaml writes them"},
    {"nemo", .help = "the YAML of a NeMo 2 recipe, as --to-yaml writes it"},
    {"torchtitan-2026", .help = "a configuration in Python, as 'dtsim emit torchtitan-2026' writes it: lines config.KEY = VALUE; nothing is run"},
    {"axolotl", .help = "Axolotl's YAML"},
    {"llama-factory", .help = "LLaMA-Factory's YAML"},
    {"OTHER", .help = "another framework, by a YAML file that says what its arguments mean: a path, or a name in platforms/dialects, whose "
        "README.md describes it"},
};

const struct command cmd_import = {
    .name = "import",
    .arguments = "KIND FILE [ARGUMENTS...]",
    .least = 2, .most = ARGS_MAX - 1,
    .brief = "Prints a scenario, a model or measurements, made from another program's file.",
    .examples = "  dtsim import pytorch-schedule order.csv > order.yaml && dtsim show order.yaml --figure\n"
                "  dtsim show scenario.yaml --orders > order.csv     writes such a file\n"
                "  dtsim import nccl-tests all_reduce.log > table.yaml && dtsim collective table.yaml --table\n"
                "  dtsim import nccl-tests all_reduce.log --platform dgx-h100 > mine.yaml     cluster.communication=./mine.yaml\n"
                "  dtsim import pipedream-profile graph.txt > model.yaml     a scenario names it: "
                "{preset: ./model.yaml}\n"
                "  dtsim import kineto trace.json > samples.csv && dtsim calibrate fit samples.csv -o gpu.yaml\n"
                "  zcat trace.json.gz | dtsim import kineto - > samples.csv\n"
                "  dtsim import megatron train.sh --cluster dgx-a100 > run.yaml && dtsim run run.yaml\n"
                "  dtsim import deepspeed ds.json --hf-config config.json --set nnodes=2 --set nproc_per_node=8 "
                "> run.yaml\n"
                "  dtsim import torchtitan llama3_8b.toml > run.yaml\n"
                "  dtsim import bridge run_config.yaml > run.yaml\n",
    .first = {"kind of file", NULL, import_name},
    .other = dialect_is_there,
    .options = options, .noptions = COUNT(options),
    .more = "\n"
            "The scenario of a schedule names the file as it is given here, seen from the scenario's folder. Its stages "
            "take 1 s forward and 2 s backward on a free network: put your model and cluster there.\n",
    .main = import_main,
};
