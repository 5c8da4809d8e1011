/* emit: what to launch. */
#include <string.h>

#include "base/base.h"
#include "cli/cmd.h"
#include "emit/emit.h"
#include "launch/dialect.h"
#include "scenario/scenario.h"

static const char *framework_candidate(size_t i, const void *context)
{
    (void)context;
    return emitted_at(i) ? emitted_at(i)->name : NULL;
}

static int emit_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    struct arena arena = {0};
    struct scenario scenario;
    const struct emitted *framework = NULL;
    int code = arguments_parse(command, argc, argv, 2, 2, &arguments);

    if (code != ARGS_DONE)
        return code;
    for (size_t i = 0; emitted_at(i); i++)
        if (!strcmp(emitted_at(i)->name, arguments.positional[0]))
            framework = emitted_at(i);
    if (!framework && !dialect_is_there(&arena, arguments.positional[0], &err)) {
        const char *meant = nearest(arguments.positional[0], framework_candidate, NULL);

        arena_release(&arena);
        return usage_error(command,
                           meant ? "unknown framework '%s'; did you mean '%s'?" :
                                   "unknown framework '%s'; expected megatron, torchtitan, deepspeed or bridge",
                           arguments.positional[0], meant);
    }
    if (!scenario_load(arguments.positional[1], arguments.sets, arguments.nsets, NULL, &scenario, &err))
        framework ? framework->emit(&scenario, stdout, stderr, &err) :
                    emit_own(arguments.positional[0], &scenario, stdout, stderr, &err);
    arena_release(&arena);
    code = report(&err);
    scenario_release(&scenario);
    return code;
}

static const char **words(struct arena *arena, struct error *err)
{
    size_t count = 0;
    const char **names;

    (void)err;
    while (emitted_at(count))
        count++;
    names = ARENA_ARRAY(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        names[i] = emitted_at(i)->name;
    return names;
}

const struct command cmd_emit = {
    .name = "emit",
    .usage = "megatron SCENARIO | torchtitan SCENARIO | deepspeed SCENARIO | bridge SCENARIO | DIALECT SCENARIO [--set PATH=VALUE]...",
    .brief = "Writes what to launch, so that a framework runs a scenario.",
    .examples = "  dtsim emit megatron run.yaml > args.txt        dtsim import megatron reads it back\n"
                "  dtsim emit torchtitan run.yaml > job.toml\n"
                "  dtsim emit deepspeed run.yaml > ds_config.json\n",
    .options = "  megatron            a command that Megatron-LM's checks pass (core_v0.19.0): for the release that 'software:'\n"
               "                      names (megatron-core, megatron-core-2025, megatron-core-2026), and an error where that one\n"
               "                      lacks an argument; else a note says which releases take it\n"
               "  torchtitan          the TOML of a job; models that torchtitan does not name are left to you\n"
               "  deepspeed           DeepSpeed's JSON; the model and the number of GPUs are its program's and its "
               "launcher's\n"
               "  bridge              keys of Megatron Bridge that replace a recipe's, as its scripts take them; it is not a whole\n"
               "                      ConfigContainer, whose file has _target_ in each section, a scheduler and data\n"
               "  DIALECT             another framework: torchtitan-2026 (a configuration in Python), or a YAML file that says what its\n"
               "                      arguments mean (platforms/dialects/README.md)\n"
               "  --set PATH=VALUE    change the scenario; may be repeated\n"
               "\nWhat is written is read back and compared. What the framework cannot be told is an error (exit 5) "
               "that names the\n"
               "key. Where the scenario's software is another framework's, a note on stderr says which switches "
               "differ. Data,\n"
               "tokenizer, learning rates, checkpoints and the address of the first node are yours.\n",
    .words = words,
    .main = emit_main,
};
