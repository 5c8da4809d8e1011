#include "cli/cmd.h"
#include "cli/explained.h"

#include "files/json.h"
#include "report/explanation.h"
#include "view/view.h"

enum { OPT_ENGINE, OPT_JSON, OPT_MARKDOWN, OPT_BUDGET };
static const char *const options[] = {
    [OPT_ENGINE] = "--engine=", [OPT_JSON] = "--json", [OPT_MARKDOWN] = "--markdown", [OPT_BUDGET] = BUDGET_OPTION,
};

/* How it is printed, and whether it was. */
struct printing { const struct arguments *arguments; bool printed; };

/* explain's callback. */
static void print(const struct explanation *explanation, const struct explain_expected *expected, void *context)
{
    struct printing *printing = context;

    if (printing->arguments->values[OPT_JSON]) {
        json_t *json = view_json(&explanation_view, explanation);

        if (expected->other_build && expected->seconds > 0)      /* that folder's numbers may be others */
            json_put(json, "folder_iteration_time_s", json_real(expected->seconds));
        json_print_all(json, stdout);
    } else if (printing->arguments->values[OPT_MARKDOWN]) {
        explanation_markdown(explanation, stdout);
    } else {
        explanation_print(explanation, stdout);
    }
    printing->printed = true;
}

static int explain_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct printing printing = {.arguments = &arguments};
    struct error err = {0};
    enum engine engine;
    int code = arguments_parse(command, argc, argv, 1, 1, &arguments);

    if (code == ARGS_DONE && arguments.values[OPT_ENGINE])
        code = engine_parse(command, arguments.values[OPT_ENGINE], &engine);
    if (code != ARGS_DONE)
        return code;
    if (arguments.values[OPT_JSON] && arguments.values[OPT_MARKDOWN])
        return usage_error(command, "expected one of --json, --markdown");
    explain(&(struct explain_request){
        .path = arguments.positional[0], .sets = arguments.sets, .nsets = arguments.nsets,
        .engine = arguments.values[OPT_ENGINE] ? (int)engine : -1, .budget = arguments.budget,
        .written = arguments.values[OPT_JSON] || arguments.values[OPT_MARKDOWN] ? NULL : stdout,
        .take = print, .context = &printing,
    }, &err);
    return report_as(&err, arguments.values[OPT_JSON] && !printing.printed);
}

const struct command cmd_explain = {
    .name = "explain",
    .usage = "DIR | SCENARIO [--engine simgrid|fast|ideal] [--set PATH=VALUE]... [--json | --markdown]\n"
             "       [--budget LIMIT]...",
    .brief = "Says where the time went: why ranks wait, the critical path, and what would gain how much.",
    .examples = "  dtsim explain scenarios/tour/04-1f1b.yaml\n"
                "  dtsim explain out --engine ideal          the scenario of 'dtsim run -o out' once more\n"
                "  dtsim explain scenario.yaml --json | jq '.what_if[0]'\n",
    .options = "  DIR                 a folder that 'dtsim run -o DIR' wrote: its scenario is simulated again, and must\n"
               "                      take as long as its result says\n"
               "  SCENARIO            a file, or - for standard input\n"
               "  --engine ENGINE     simgrid or fast (flows share links), or ideal (nothing contends)\n"
               "  --set PATH=VALUE    change the scenario; may be repeated\n"
               "  --json              for programs, in SI units: idle (each rank's waits: bubble_s, while the rank that\n"
               "                      it waits for computes, and exposed_s, for communication that nothing hides),\n"
               "                      critical_path (by kind, by rank, every piece), what_if (critical_path_s: the most\n"
               "                      that the critical path lets it gain), busiest_links (where the network has links\n"
               "                      besides NICs: busy, a share of the iteration); for a folder of another build also\n"
               "                      folder_iteration_time_s, as its result has it\n"
               "  --markdown          the tables for a document\n"
               "  --budget LIMIT      end after this wall time ('30 s') or before this process needs more memory\n"
               "                      ('4 GiB') with exit code 7 and a message of how far it came; may be given twice\n"
               "\n"
               "Each 'what if' is simulated, in about twenty simulations. Below each stand the changes of the scenario,\n"
               "from a short list, that come nearest to it, and the time of an iteration with each change.\n",
    .accepts = options,
    .naccepts = COUNT(options),
    .main = explain_main,
};
