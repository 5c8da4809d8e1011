#include <string.h>

#include "base/base.h"
#include "cli/cmd.h"
#include "config/conf_text.h"
#include "files/look.h"
#include "import/import_kineto.h"
#include "import/import_nccl.h"
#include "import/nccl_run.h"
#include "import/pipedream_profile.h"
#include "jobs/jobs.h"
#include "launch/dialect.h"
#include "megatron/megatron.h"
#include "schedule/order.h"

/* The command line's options for a file. */
struct import_hints {
    struct nccl_hints nccl;
    struct import_options launch;
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
    return import_nccl_load(arena, path, &hints->nccl, stderr, err);
}

/* A comment stands above the scenario: it is printed here. */
static struct node *import_megatron(struct arena *arena, const char *path, const struct import_hints *hints,
                                    struct error *err)
{
    megatron_import(arena, path, &hints->launch, stdout, stderr, err);
    return NULL;
}

static struct node *import_deepspeed(struct arena *arena, const char *path, const struct import_hints *hints,
                                     struct error *err)
{
    deepspeed_import(arena, path, &hints->launch, stdout, stderr, err);
    return NULL;
}

static struct node *import_torchtitan(struct arena *arena, const char *path, const struct import_hints *hints,
                                      struct error *err)
{
    torchtitan_import(arena, path, &hints->launch, stdout, stderr, err);
    return NULL;
}

static struct node *import_transformers(struct arena *arena, const char *path, const struct import_hints *hints,
                                        struct error *err)
{
    transformers_import(arena, path, &hints->launch, stdout, stderr, err);
    return NULL;
}

static struct node *import_bridge(struct arena *arena, const char *path, const struct import_hints *hints,
                                  struct error *err)
{
    bridge_import(arena, path, &hints->launch, stdout, stderr, err);
    return NULL;
}

static struct node *import_nemo(struct arena *arena, const char *path, const struct import_hints *hints,
                                struct error *err)
{
    nemo_import(arena, path, &hints->launch, stdout, stderr, err);
    return NULL;
}

/* Of a framework that a file describes. */
static struct node *import_own(struct arena *arena, const char *path, const struct import_hints *hints, struct error *err)
{
    own_import(arena, hints->kind, path, &hints->launch, stdout, stderr, err);
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

static const struct import { const char *name; importer *import; } imports[] = {
    {"pytorch-schedule", import_order},
    {"nccl-tests", import_nccl},
    {"pipedream-profile", import_pipedream},
    {"kineto", import_trace},
    {"megatron", import_megatron},
    {"deepspeed", import_deepspeed},
    {"torchtitan", import_torchtitan},
    {"transformers", import_transformers},
    {"bridge", import_bridge},
    {"nemo", import_nemo},
};

enum { OPT_OP, OPT_RANKS, OPT_PER_NODE, OPT_CLUSTER, OPT_STRICT, OPT_HF_CONFIG, OPT_ENV, OPT_READ, OPT_LAUNCH, OPT_TRUST };
static const char *const options[] = {[OPT_OP] = "--op=", [OPT_RANKS] = "--ranks=", [OPT_PER_NODE] = "--per-node=",
                                      [OPT_CLUSTER] = "--cluster=", [OPT_STRICT] = "--strict",
                                      [OPT_HF_CONFIG] = "--hf-config=", [OPT_ENV] = "--env=", [OPT_READ] = "--read=",
                                      [OPT_LAUNCH] = "--launch=", [OPT_TRUST] = "--trust"};

static const char *import_candidate(size_t i, const void *context)
{
    (void)context;
    return i < COUNT(imports) ? imports[i].name : NULL;
}

static int unknown_kind(const struct command *command, const char *kind)
{
    const char *meant = nearest(kind, import_candidate, NULL);

    if (meant)
        return usage_error(command, "unknown kind of file '%s'; did you mean '%s'?", kind, meant);
    return usage_error(command, "unknown kind of file '%s'; expected pytorch-schedule, nccl-tests, "
                       "pipedream-profile, kineto, megatron, deepspeed, torchtitan, transformers, bridge or nemo", kind);
}

/* What the options say of a file of nccl-tests. */
static int hints_parse(const struct command *command, const struct arguments *arguments, struct nccl_hints *hints)
{
    static const char *const names[] = {[OPT_RANKS] = "--ranks", [OPT_PER_NODE] = "--per-node"};
    enum collective_op op;
    int code;

    *hints = (struct nccl_hints){.op = arguments->values[OPT_OP]};
    if (hints->op && (code = op_parse(command, hints->op, &op)) != ARGS_DONE)
        return code;
    for (int i = OPT_RANKS; i <= OPT_PER_NODE; i++) {
        size_t value = 0;

        if (arguments->values[i] &&
            (code = count_parse(command, names[i], arguments->values[i], NCCL_MOST_RANKS, &value)) != ARGS_DONE)
            return code;
        *(i == OPT_RANKS ? &hints->ranks : &hints->per_node) = (int)value;
    }
    return hints->ranks == 1 ? usage_error(command, "--ranks: a collective has at least 2 ranks, found '1'") :
                               ARGS_DONE;
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
static int launch_options(const struct command *command, const struct arguments *arguments, struct arena *arena,
                          struct import_options *hints)
{
    struct launch_set *sets = ARENA_ARRAY(arena, struct launch_set, arguments->nsets + 1);
    struct launch_set *environment = ARENA_ARRAY(arena, struct launch_set, arguments->ngiven + 1);
    const char **folders = ARENA_ARRAY(arena, const char *, arguments->ngiven + 1);
    size_t nenvironment = 0, nfolders = 0, launch = 0;
    int code = ARGS_DONE;

    for (size_t i = 0; i < arguments->nsets && code == ARGS_DONE; i++)
        code = pair_parse(command, arena, "--set", arguments->sets[i], &sets[i]);
    for (size_t i = 0; i < arguments->ngiven && code == ARGS_DONE; i++)
        if (arguments->given[i].option == OPT_READ)
            folders[nfolders++] = arguments->given[i].value;
        else if (arguments->given[i].option == OPT_ENV)
            code = pair_parse(command, arena, "--env", arguments->given[i].value, &environment[nenvironment++]);
    if (code == ARGS_DONE && arguments->values[OPT_LAUNCH])
        code = count_parse(command, "--launch", arguments->values[OPT_LAUNCH], 1000, &launch);
    *hints = (struct import_options){arguments->values[OPT_CLUSTER], arguments->values[OPT_STRICT] != NULL,
                                     arguments->values[OPT_HF_CONFIG], sets, arguments->nsets, environment, nenvironment,
                                     arguments->positional + 2, folders, arguments->values[OPT_TRUST] != NULL, (int)launch};
    return code;
}

/* Whether the file says how a training was launched. */
static bool is_launch(importer *import)
{
    return import == import_megatron || import == import_deepspeed || import == import_torchtitan ||
           import == import_transformers || import == import_bridge || import == import_nemo || import == import_own;
}

/* Options that go with other kinds of files. */
static int refuse_options(const struct command *command, const struct arguments *arguments, importer *import)
{
    for (size_t i = 0; i < COUNT(options); i++) {
        bool goes = i <= OPT_PER_NODE ? import == import_nccl : i >= OPT_ENV ? import == import_megatron || import == import_own :
                    is_launch(import) && (i != OPT_HF_CONFIG || import != import_megatron);

        if (arguments->values[i] && !goes)
            return usage_error(command, "%.*s goes with %s", (int)strcspn(options[i], "="), options[i],
                               i <= OPT_PER_NODE ? "nccl-tests" : i >= OPT_ENV ? "megatron" : i == OPT_HF_CONFIG ? "deepspeed, torchtitan, transformers, bridge and nemo" :
                               "megatron, deepspeed, torchtitan, transformers, bridge and nemo");
    }
    if (arguments->npositional > (import == import_transformers ? 3 : 2) && import != import_megatron)
        return usage_error(command, "unexpected argument '%s'",
                           arguments->positional[import == import_transformers ? 3 : 2]);
    if (arguments->nsets && !is_launch(import))
        return usage_error(command, "--set changes a scenario; expected a kind of file and the file");
    return ARGS_DONE;
}

static int import_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct arena arena = {0};
    struct error err = {0};
    static const struct import own = {"", import_own};
    const struct import *import = NULL;
    struct node *root;
    struct import_hints hints;
    int code = arguments_parse(command, argc, argv, 2, ARGS_MAX - 1, &arguments);

    if (code != ARGS_DONE)
        return code;
    for (size_t i = 0; i < COUNT(imports); i++)
        if (!strcmp(arguments.positional[0], imports[i].name))
            import = &imports[i];
    if (!import && dialect_is_there(&arena, arguments.positional[0], &err))
        import = &own;
    if (!import) {
        arena_release(&arena);
        return err.count ? report(&err) : unknown_kind(command, arguments.positional[0]);
    }
    code = refuse_options(command, &arguments, import->import);
    if (code == ARGS_DONE)
        code = hints_parse(command, &arguments, &hints.nccl);
    if (code == ARGS_DONE)
        code = launch_options(command, &arguments, &arena, &hints.launch);
    if (code != ARGS_DONE) {
        arena_release(&arena);
        return code;
    }
    hints.kind = arguments.positional[0];
    root = import->import(&arena, arguments.positional[1], &hints, &err);
    if (root)
        node_print(root, stdout);
    arena_release(&arena);
    return report(&err);
}

static const char **words(struct arena *arena, struct error *err)
{
    const char **names = ARENA_ARRAY(arena, const char *, COUNT(imports) + 1);

    (void)err;
    for (size_t i = 0; i < COUNT(imports); i++)
        names[i] = imports[i].name;
    return names;
}

const struct command cmd_import = {
    .name = "import",
    .usage = "pytorch-schedule FILE | nccl-tests FILE [--op OPERATION] [--ranks N] [--per-node M] | "
             "pipedream-profile FILE | kineto FILE | "
             "megatron FILE [ARGUMENTS...] [--env NAME=VALUE]... [--read FOLDER]... [--launch N] [--trust] | "
             "deepspeed FILE --hf-config CONFIG | torchtitan FILE [--hf-config CONFIG] | "
             "transformers FILE [ACCELERATE] --hf-config CONFIG | bridge FILE [--hf-config CONFIG] | nemo FILE [--hf-config CONFIG] | DIALECT FILE "
             "[--cluster NAME] [--strict] [--set NAME=VALUE]...",
    .brief = "Prints a scenario, a model or measurements, made from another program's file.",
    .examples = "  dtsim import pytorch-schedule order.csv > order.yaml && dtsim show order.yaml --figure\n"
                "  dtsim show scenario.yaml --orders > order.csv     writes such a file\n"
                "  dtsim import nccl-tests all_reduce.log > table.yaml && dtsim collective table.yaml --table\n"
                "  dtsim import pipedream-profile graph.txt > model.yaml     a scenario names it: "
                "{preset: ./model.yaml}\n"
                "  dtsim import kineto trace.json > samples.csv && dtsim calibrate fit samples.csv -o gpu.yaml\n"
                "  zcat trace.json.gz | dtsim import kineto - > samples.csv\n"
                "  dtsim import megatron train.sh --cluster dgx-a100 > run.yaml && dtsim run run.yaml\n"
                "  dtsim import deepspeed ds.json --hf-config config.json --set nnodes=2 --set nproc_per_node=8 "
                "> run.yaml\n"
                "  dtsim import torchtitan llama3_8b.toml > run.yaml\n"
                "  dtsim import bridge run_config.yaml > run.yaml\n",
    .options = "  pytorch-schedule    the order in which each pipeline rank computes, as PyTorch dumps it "
               "(compute only):\n"
               "                      a line a rank, cells <virtual stage><kind><micro-batch> from 0 between commas: "
               "0F0,0B0\n"
               "                      kinds: F forward, B backward, I and W its halves for input and weights, "
               "R recomputation;\n"
               "                      @0 or @1 behind a cell of two directions; (1F1;0B0)O runs two as one; "
               "empty: idle\n"
               "  nccl-tests          what a program of nccl-tests printed: a table of 'dtsim collective --table'. "
               "Where no platform\n"
               "                      has such GPUs, put yours under 'cluster'. Marks before lines (mpirun "
               "--tag-output,\n"
               "                      timestamps) are skipped. Rows that are left out are named on stderr\n"
               "  pipedream-profile   graph.txt of PipeDream's profiler: a model's layers with the times of its "
               "minibatch, which is the\n"
               "                      scenario's micro-batch. Branches: layers stand one after the other; the "
               "boundary is all that a cut\n"
               "                      there sends, each tensor once. Nodes 'Input' take no time: theirs was spent "
               "waiting for data\n"
               "  kineto              the trace of a training step on one GPU by PyTorch's profiler (record_shapes=True): "
               "samples of\n"
               "                      its kernels for 'dtsim calibrate'; what torch.compile fuses or a CUDA graph runs is no "
               "operation that\n"
               "                      it knows. Comments name what is left out, stderr the share of the kernels' time that the "
               "samples hold\n"
               "  megatron            how Megatron-LM or Megatron-DeepSpeed was launched: a scenario with its model, "
               "degrees, batch and\n"
               "                      memory, and the software with its switches. FILE is a script of bash with its ARGUMENTS, a list "
               "of arguments,\n"
               "                      or a log with the arguments that it printed. bash runs the script in a child that reads the "
               "script's\n"
               "                      folder and writes nothing; programs like torchrun or rm do not start, their words are taken. "
               "stderr says what became of each argument: in the "
               "scenario,\n"
               "                      default, without effect on the time, or not simulated (a warning); an unknown one is an "
               "error\n"
               "  deepspeed           DeepSpeed's JSON: batch, ZeRO, offloading, formats. A value \"auto\" is an error that names "
               "the key:\n"
               "                      give it by --set\n"
               "  torchtitan          the TOML of a torchtitan job: degrees, schedule, batch, activation checkpointing, compile, "
               "float8\n"
               "  transformers        TrainingArguments (YAML, JSON), and Accelerate's and DeepSpeed's files\n"
               "  bridge              the YAML of Megatron Bridge: overrides, or all keys as ConfigContainer.to_yaml writes them\n"
               "  nemo                the YAML of a NeMo 2 recipe, as --to-yaml writes it\n"
               "  DIALECT             another framework, by a YAML file: platforms/dialects/README.md\n"
               "  --hf-config CONFIG  the model: a Hugging Face config.json; left out where the file says the model or dtsim has "
               "it\n"
               "  --cluster NAME      its GPUs: dtsim list platforms, or a file; left out: dgx-h100 with the fewest nodes "
               "that hold the\n"
               "                      degrees, unless the launcher or the log says how many GPUs\n"
               "  --set NAME=VALUE    an argument (num-layers=32), or nnodes and nproc_per_node\n"
               "  --env NAME=VALUE    a variable with which the script begins; else what launchers set "
               "(SLURM_NNODES)\n"
               "  --read FOLDER       the script may read it\n"
               "  --launch N          the Nth of the script's launches; left out: the first one with a model\n"
               "  --trust             run it also without Landlock; it can read all your files then\n"
               "  --strict            warnings are errors\n"
               "  --op OPERATION      what a file of nccl-tests measured that does not say so (older versions): "
               "all_reduce, ...\n"
               "  --ranks N           how many ranks it ran on, where it has no lines '#  Rank  0 ...' or a shortened "
               "list; busbw / algbw\n"
               "                      must agree\n"
               "  --per-node M        how many of them are in a node; left out: they fill whole nodes\n"
               "\nThe scenario of a schedule names the file as it is given here, seen from the scenario's folder. Its "
               "stages take\n"
               "1 s forward and 2 s backward on a free network: put your model and cluster there.\n",
    .words = words,
    .accepts = options,
    .naccepts = COUNT(options),
    .main = import_main,
};
