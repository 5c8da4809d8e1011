#include "cli/cmd.h"
#include "cli/explained.h"

#include "engine/replay.h"
#include "files/json.h"
#include "report/explanation.h"
#include "view/view.h"

enum { OPT_ENGINE, OPT_JSON, OPT_MARKDOWN };

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

static int explain_main(const struct arguments *arguments)
{
    struct printing printing = {.arguments = arguments};
    struct error err = {0};

    explain(&(struct explain_request){
        .path = arguments->positional[0], .sets = arguments->sets, .nsets = arguments->nsets,
        .engine = arguments->values[OPT_ENGINE] ? (int)arguments->numbers[OPT_ENGINE] : -1, .budget = arguments->budget,
        .written = arguments->values[OPT_JSON] || arguments->values[OPT_MARKDOWN] ? NULL : stdout,
        .take = print, .context = &printing,
    }, &err);
    return report_as(&err, arguments->values[OPT_JSON] && !printing.printed);
}

static const struct option options[] = {
    [OPT_ENGINE] = ENGINE_OPTION(ENGINE_HELP),
    [OPT_JSON] = {"--json", .help = "for programs; its keys: dtsim help result", .one_of = 1},
    [OPT_MARKDOWN] = {"--markdown", .help = "the tables for a document", .one_of = 1},
    SET_OPTION("PATH=VALUE", "change the scenario"),
    BUDGET_OPTION(BUDGET_HELP " and a message of how far it came"),
    {"DIR",
        .help = "a folder that 'dtsim run -o DIR' wrote: its scenario is simulated again, and must take as long as its result says"},
    {"SCENARIO", .help = "a file, or - for standard input"},
};

const struct command cmd_explain = {
    .name = "explain",
    .arguments = "DIR|SCENARIO",
    .least = 1, .most = 1,
    .brief = "Says where the time went: why ranks wait, the critical path, and what would gain how much.",
    .examples = "  dtsim explain scenarios/tour/04-1f1b.yaml\n"
                "  dtsim explain out --engine ideal          the scenario of 'dtsim run -o out' once more\n"
                "  dtsim explain scenario.yaml --json | jq '.what_if[0]'\n",
    .options = options, .noptions = COUNT(options),
    .more = "\n"
            "Each 'what if' is simulated, in about twenty simulations. Below each stand the changes of the scenario, from a "
            "short list, that come nearest to it, and the time of an iteration with each change.\n",
    .main = explain_main,
};
