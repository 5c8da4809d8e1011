#include <string.h>

#include "base/base.h"
#include "base/progress.h"
#include "cli/cmd.h"
#include "cli/methods_table.h"
#include "engine/replay.h"
#include "files/json.h"
#include "report/outcome.h"
#include "results/compared.h"
#include "view/view.h"

enum { OPT_JSON, OPT_CSV, OPT_MARKDOWN, OPT_METHODS, OPT_ENGINE,
       OPT_KEYS };

static void print(const struct compared *compared, enum compare_format format, bool keys)
{
    json_t *json = format < COMPARE_MARKDOWN ? compared_json(compared) : NULL;

    if (format == COMPARE_JSON)
        json_print(json, stdout);
    else if (format == COMPARE_CSV)
        view_csv(&compared_view, json, stdout);
    else
        compared_print(compared, format == COMPARE_MARKDOWN, keys, stdout);
    json_decref(json);
}

/* How many scenarios the budget was enough for. */
static int check_budget(const struct compared *compared, struct error *err)
{
    size_t stopped = 0;

    for (size_t i = 0; i < compared->rows.count; i++)
        stopped += outcome_of(compared->rows.items[i].row) == OUTCOME_TIMEOUT;
    if (!stopped)
        return 0;
    return error_add(err, EXIT_STOPPED, (struct loc){0}, "stopped by --budget: %zu of %zu scenarios have no numbers",
                     stopped, compared->rows.count);
}

/* A wrong command line has no table, nor has one whose scenarios can all not be read. Otherwise a row says what is
 * wrong with its scenario; the place is printed on stderr. */
static int compare_scenarios(const struct arguments *arguments, enum compare_format format)
{
    struct progress progress;
    struct compared compared = {.progress = &progress};
    struct error err = {0};
    const char *engine = arguments->values[OPT_ENGINE];
    struct arena arena = {0};
    int failed = 0, code;

    progress_begin(&progress, "--budget", arguments->budget.seconds, arguments->budget.bytes);
    if (engine)
        engine = arena_printf(&arena, "simulation.engine=%s", engine);
    for (int i = 0; i < arguments->npositional; i++)
        failed += compared_add(&compared, arguments->positional[i], arguments->sets, arguments->nsets, engine,
                               arguments->npositional > 1, &err) != 0;
    progress_end(&progress);
    if (error_exit_code(&err) != EXIT_USAGE && failed < arguments->npositional) {
        print(&compared, format, arguments->values[OPT_KEYS] != NULL);
        code = check_budget(&compared, &err) ? EXIT_STOPPED : err.count ? EXIT_SOME_FAILED : EXIT_OK;
        report(&err);
    } else {
        code = report_as(&err, format == COMPARE_JSON);
    }
    compared_release(&compared);
    arena_release(&arena);
    return code;
}

/* Refuses keys that no number of the table depends on. */
static int check_sets(const struct arguments *arguments, struct error *err)
{
    static const struct { const char *section, *instead; } unread[] = {{"train", "'dtsim train' or 'dtsim sweep'"}, {"plan", "'dtsim plan'"}};
    int rc = 0;

    for (size_t i = 0; i < arguments->nsets; i++)
        for (size_t k = 0; k < COUNT(unread); k++) {
            size_t length = strlen(unread[k].section);
            char shown[4 * CLIP_SIZE];

            if (!strncmp(arguments->sets[i], unread[k].section, length) && strchr(".=", arguments->sets[i][length]))
                rc = error_add(err, EXIT_USAGE, (struct loc){.file = arguments->command->name}, "--set %s: compare simulates iterations, "
                               "which do not depend on '%s'; expected %s, which read it",
                               text_clip(arguments->sets[i], shown, sizeof shown), unread[k].section, unread[k].instead);
        }
    return rc;
}

static int compare_main(const struct arguments *arguments)
{
    struct error err = {0};
    const char *const *values = arguments->values;
    enum compare_format format = values[OPT_JSON] ? COMPARE_JSON : values[OPT_CSV] ? COMPARE_CSV :
                                 values[OPT_MARKDOWN] ? COMPARE_MARKDOWN : COMPARE_TEXT;
    int code;

    if (check_sets(arguments, &err))
        return report_as(&err, format == COMPARE_JSON);
    if (!arguments->values[OPT_METHODS])
        return compare_scenarios(arguments, format);
    if (!methods_print(arguments, format, &err) || error_exit_code(&err) == EXIT_USAGE)
        return report_as(&err, format == COMPARE_JSON);
    code = err.count ? EXIT_SOME_FAILED : EXIT_OK;
    report(&err);
    return code;
}

static const struct option options[] = {
    [OPT_JSON] = {"--json", .help = "for programs, in SI units", .one_of = 1},
    [OPT_CSV] = {"--csv", .help = "the same", .one_of = 1},
    [OPT_MARKDOWN] = {"--markdown", .help = "the table for a document", .one_of = 1},
    [OPT_METHODS] = {"--methods",
        .help = "what each way of training computes and sends, and the largest batch that fits", .without = "--engine --budget"},
    [OPT_ENGINE] = ENGINE_OPTION("simgrid, fast or ideal, whatever the scenarios say (if they say nothing: fast)"),
    [OPT_KEYS] = {"--keys", .help = "column heads are keys, as --json has them, not words for them"},
    SET_OPTION("PATH=V1,V2,...", "change every scenario; several values give a row each"),
    BUDGET_OPTION(BUDGET_HELP " and all rows that were simulated"),
    {"SCENARIO", .help = "a file, or a sweep file with all its points"},
    {"DIR", .help = "what 'dtsim run -o DIR' wrote"},
};

const struct command cmd_compare = {
    .name = "compare",
    .arguments = "SCENARIO|DIR...",
    .least = 1, .most = ARGS_MAX,
    .brief = "Compares scenarios: throughput, speed-up, time, bubble, utilization, communication, MFU and memory.",
    .examples = "  dtsim compare gpipe.yaml 1f1b.yaml\n"
                "  dtsim compare scenario.yaml --set strategy.schedule=gpipe,1f1b,interleaved\n"
                "  dtsim compare out/before out/after\n"
                "  dtsim compare scenarios/methods/*.yaml --methods --markdown\n",
    .options = options, .noptions = COUNT(options),
    .more = "Other rows are compared with the first. Values that all rows share stand above the table. A table is as wide "
            "as the terminal, or as the variable COLUMNS says; without both it is as wide as its text. A scenario that is "
            "refused or that does not fit in memory is a row that says why; the exit code is 3 if one could not be read.\n",
    .main = compare_main,
};
