#include <stdlib.h>

#include "base/base.h"
#include "cli/cmd.h"
#include "evidence/evidence.h"
#include "evidence/first.h"
#include "validate/validation.h"
#include "view/view.h"

enum { OPT_ROWS, OPT_JOBS, OPT_SUMMARY, OPT_STRICT, OPT_JSON, OPT_MARKDOWN, OPT_ERRORS, OPT_FIRST_ERRORS, OPT_MEMORY_ERRORS, OPT_REGRET };

struct papers {
    struct paper *papers;
    struct validation *validations;
    size_t count;
};

static bool held(const struct validation *validation)
{
    struct bar_result bars[BARS];
    size_t count = validation_bars(validation, bars);

    for (size_t i = 0; i < count; i++)
        if (!bars[i].passed)
            return false;
    return true;
}

/* All of them before the first is simulated, which may take minutes. */
static int load_papers(struct papers *papers, const struct arguments *arguments, struct error *err)
{
    int rc = 0;

    for (int i = 0; i < arguments->npositional; i++)
        if (paper_load(arguments->positional[i], &papers->papers[papers->count++], err))
            rc = -1;
    return rc;
}

/* Every table as soon as it is there: some take minutes. */
static int print_paper(const struct papers *papers, size_t index, const char *const *options,
                       const struct first_errors *firsts, struct error *err)
{
    const struct validation *validation = &papers->validations[index];
    int rc = 0;

    if (options[OPT_JSON])
        return 0;
    if (options[OPT_REGRET] || options[OPT_FIRST_ERRORS]) {
        if (options[OPT_REGRET])
            validation_print_regret(validation, stdout);
        else
            validation_print_first_errors(validation, stdout);
        fflush(stdout);
        return 0;
    }
    if (options[OPT_MARKDOWN] && !index)
        validation_print_markdown(NULL, stdout);
    if (options[OPT_MARKDOWN])
        validation_print_markdown(validation, stdout);
    if (options[OPT_ERRORS] && !index)
        validation_print_errors(NULL, firsts, stdout, err);
    if (options[OPT_ERRORS])
        rc = validation_print_errors(validation, firsts, stdout, err);
    if (options[OPT_MEMORY_ERRORS] && !index)
        validation_print_memory_errors(NULL, stdout);
    if (options[OPT_MEMORY_ERRORS])
        validation_print_memory_errors(validation, stdout);
    if (!options[OPT_MARKDOWN] && !options[OPT_ERRORS] && !options[OPT_MEMORY_ERRORS]) {
        if (index)
            putchar('\n');
        validation_print(validation, options[OPT_SUMMARY], stdout);
    }
    fflush(stdout);
    return rc;
}

/* Errors are joined to first errors that each table has; first ones are made of tables that have none. */
static int check_firsts(const struct papers *papers, const char *const *options, struct arena *arena,
                        struct first_errors *firsts, struct error *err)
{
    if (!options[OPT_ERRORS] && !options[OPT_FIRST_ERRORS])
        return 0;
    if (first_errors_load(arena, firsts, err))
        return -1;
    for (size_t i = 0; i < papers->count; i++) {
        const struct paper *paper = &papers->papers[i];

        if (options[OPT_ERRORS] && !first_errors_have(firsts, paper->name))
            error_add(err, EXIT_INPUT, (struct loc){.file = paper->file}, "scenarios/paper/first.tsv has no row of the table; "
                      "expected the rows that 'dtsim validate --first-errors %s' prints, from before anybody works on it",
                      paper->file);
        if (options[OPT_FIRST_ERRORS] && first_errors_have(firsts, paper->name))
            error_add(err, EXIT_INPUT, (struct loc){.file = paper->file}, "scenarios/paper/first.tsv has the table's first "
                      "errors; expected a new table");
    }
    return err->count ? -1 : 0;
}

/* A line for each table, below them all, and how sure predictions are. */
static void print_lines(const struct papers *papers, const struct evidence *evidence)
{
    size_t largest[2] = {0};

    putchar('\n');
    validation_print_line(NULL, stdout);
    for (size_t i = 0; i < papers->count; i++) {
        validation_print_line(&papers->validations[i], stdout);
        largest[0] += papers->validations[i].largest[0];
        largest[1] += papers->validations[i].largest[1];
    }
    validation_print_largest(largest, stdout);
    validation_print_sure(papers->validations, papers->count, evidence, stdout);
}

static int run_papers(struct papers *papers, const struct arguments *arguments,
                      struct validation_options *options, struct error *err)
{
    const char *const *values = arguments->values;
    const struct evidence *evidence = NULL;
    struct first_errors firsts = {0};
    struct arena arena = {0};
    int rc = load_papers(papers, arguments, err) || evidence_load(&arena, &evidence, err) ||
             check_firsts(papers, values, &arena, &firsts, err) ? -1 : 0;

    options->firsts = values[OPT_ERRORS] ? &firsts : NULL;
    for (size_t i = 0; !rc && i < papers->count; i++) {
        rc = validation_init(&papers->validations[i], &papers->papers[i], options, err);
        if (!rc)
            rc = print_paper(papers, i, values, &firsts, err);
    }
    if (!rc && values[OPT_JSON])
        json_print_all(view_list(&validation_view, papers->validations, papers->count, sizeof *papers->validations), stdout);
    else if (!rc && !values[OPT_MARKDOWN] && !values[OPT_ERRORS] && !values[OPT_MEMORY_ERRORS] &&
             !values[OPT_REGRET] && !values[OPT_FIRST_ERRORS] && papers->count > 1)
        print_lines(papers, evidence);
    arena_release(&arena);
    return rc;
}

static int validate_main(const struct arguments *arguments)
{
    struct papers papers = {0};
    struct error err = {0};
    struct validation_options options = {
        .jobs = (size_t)arguments->numbers[OPT_JOBS], .rows = arguments->values[OPT_ROWS], .sets = arguments->sets,
        .nsets = arguments->nsets, .configured = arguments->values[OPT_REGRET],
    };
    bool missed = false, ran;
    int code;

    papers.papers = xcalloc((size_t)arguments->npositional, sizeof *papers.papers);
    papers.validations = xcalloc((size_t)arguments->npositional, sizeof *papers.validations);
    ran = !run_papers(&papers, arguments, &options, &err);
    for (size_t i = 0; ran && arguments->values[OPT_STRICT] && i < papers.count; i++)
        missed |= !held(&papers.validations[i]);
    code = report_as(&err, arguments->values[OPT_JSON] && !ran);      /* a failed row has its errors in the document */
    for (size_t i = 0; i < papers.count; i++) {
        validation_release(&papers.validations[i]);
        paper_release(&papers.papers[i]);
    }
    free(papers.validations);
    free(papers.papers);
    return code == EXIT_OK && missed ? EXIT_SOME_FAILED : code;
}

static const struct option options[] = {
    [OPT_ROWS] = {"--rows", "ID,...", .help = "only these rows; bars are not checked, because they are for all rows"},
    [OPT_JOBS] = JOBS_OPTION("rows simulated at once; left out: one a processor"),
    [OPT_SUMMARY] = {"--summary",
        .help = "a table's errors alone, not its rows; of several tables also the errors by software and by profile, and how many "
        "rows have an expected error, and are within it. Without it, rows that differ in micro-batches alone also give the "
        "time of each, and the rest"},
    [OPT_STRICT] = {"--strict", .help = "exit with 3 where a bar is missed that a file sets itself", .without = "--rows"},
    [OPT_JSON] = {"--json", .help = "every row with all its metrics, or with the errors why it failed",
        .without = "--first-errors --regret"},
    [OPT_MARKDOWN] = {"--markdown",
        .help = "a table's errors as lines of a document, such as scenarios/paper/README.md",
        .without = "--json --first-errors --regret"},
    [OPT_ERRORS] = {"--errors",
        .help = "prints scenarios/paper/errors.tsv: each row's error, and the properties by which other work is like it; 'dtsim "
        "run' derives its expected error from that file. Joins the first errors to it, from before anybody worked on a "
        "table: they are kept by hand in scenarios/paper/first.tsv", .without = "--json --first-errors --regret"},
    [OPT_FIRST_ERRORS] = {"--first-errors",
        .help = "prints the rows that a new table adds to scenarios/paper/first.tsv", .without = "--rows --set --regret"},
    [OPT_MEMORY_ERRORS] = {"--memory-errors",
        .help = "the same of measured peaks of memory: scenarios/paper/memory.tsv", .without = "--json --first-errors --regret"},
    [OPT_REGRET] = {"--regret",
        .help = "how much slower the row that is predicted to be fastest is than the row that was, among rows of one model, "
        "software, format, number of GPUs and number of samples"},
    SET_OPTION("PATH=VALUE", "change every row"),
    {"PAPER", .help = "a file of scenarios/paper, see 'dtsim help paper'"},
};

const struct command cmd_validate = {
    .name = "validate",
    .arguments = "PAPER...",
    .least = 1, .most = ARGS_MAX,
    .brief = "Simulates published measurements and prints how far off the predictions are.",
    .examples = "  dtsim validate scenarios/paper/narayanan-sc21-table1.yaml\n"
                "  dtsim validate scenarios/paper/*.yaml --summary\n"
                "  dtsim validate scenarios/paper/zero-bubble-throughput.yaml --set software.scatter_gather=false\n",
    .options = options, .noptions = COUNT(options),
    .more = "Each row is predicted twice: as its file configures it, and plainly, from what a user knows: the model, the "
            "cluster, the batch, the degrees, the formats and the name of the software. How 'dtsim run' derives its "
            "expected error: a published run is alike if it has the scenario's software, profile, format (fp16 counts as "
            "bf16), schedule and dispatcher, if both or neither have experts, and if GPUs, sample, micro-batch and NIC "
            "differ by a factor of four at most. Runs that are alike count with today's error. Others count with their "
            "first error, with less weight the more they differ. All tables have the same weight. The expected error of a "
            "ratio of two runs comes from pairs of rows of one table, group, software, profile and model. An error is the "
            "predicted time over the measured one, less 1: positive is too slow. Rates are converted.\n",
    .main = validate_main,
};
