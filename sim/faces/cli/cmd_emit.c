/* emit: what to launch. */

#include "base/base.h"
#include "cli/cmd.h"
#include "emit/emit.h"
#include "launch/dialect.h"
#include "scenario/scenario.h"

static int emit_main(const struct arguments *arguments)
{
    const struct emitted *framework = emitted_at((size_t)arguments->first);
    struct error err = {0};
    struct scenario scenario;
    int code;

    if (!scenario_load(arguments->positional[1], arguments->sets, arguments->nsets, NULL, &scenario, &err))
        framework ? framework->emit(&scenario, stdout, stderr, &err) :
                    emit_own(arguments->positional[0], &scenario, stdout, stderr, &err);
    code = report(&err);
    scenario_release(&scenario);
    return code;
}

static const struct option options[] = {
    SET_OPTION("PATH=VALUE", "change the scenario"),
    {"megatron",
        .help = "a command that Megatron-LM's checks pass (core_v0.19.0): for the release that 'software:' names (megatron-core, "
        "megatron-core-2025, megatron-core-2026), and an error where that one lacks an argument; else a note says which "
        "releases take it"},
    {"torchtitan", .help = "the TOML of a job; models that torchtitan does not name are left to you"},
    {"deepspeed", .help = "DeepSpeed's JSON; the model and the number of GPUs are its program's and its launcher's"},
    {"bridge",
        .help = "keys of Megatron Bridge that replace a recipe's, as its scripts take them; it is not a whole ConfigContainer, "
        "whose file has _target_ in each section, a scheduler and data"},
    {"torchtitan-2026", .help = "a configuration in Python, as torchtitan takes it since it reads no TOML"},
    {"OTHER", .help = "another framework, by a YAML file that says what its arguments mean: a path, or a name in platforms/dialects, whose "
        "README.md describes it"},
};

const struct command cmd_emit = {
    .name = "emit",
    .arguments = "FRAMEWORK SCENARIO",
    .least = 2, .most = 2,
    .brief = "Writes what to launch, so that a framework runs a scenario.",
    .examples = "  dtsim emit megatron run.yaml > args.txt        dtsim import megatron reads it back\n"
                "  dtsim emit torchtitan run.yaml > job.toml\n"
                "  dtsim emit deepspeed run.yaml > ds_config.json\n",
    .first = {"framework", NULL, emitted_name},
    .other = dialect_is_there,
    .options = options, .noptions = COUNT(options),
    .more = "\n"
            "What is written is read back and compared. What the framework cannot be told is an error (exit 5) that names "
            "the key. Where the scenario's software is another framework's, a note on stderr says which switches differ. "
            "Data, tokenizer, learning rates, checkpoints and the address of the first node are yours.\n",
    .main = emit_main,
};
