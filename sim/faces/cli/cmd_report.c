#include "cli/cmd.h"
#include "cli/explained.h"
#include "cli/key_list.h"
#include "files/look.h"
#include "page/page.h"
#include "store/store.h"
#include "train/training.h"

#include "base/base.h"
#include "report/explanation.h"
#include "results/results.h"
#include "tables/tables.h"
#include "view/view.h"

enum { OPT_OUT, OPT_RANKS, OPT_NO_WHAT_IF, OPT_LIGHT, OPT_DARK };

/* explain's callback: *context gets it as JSON. Where another build wrote the folder and the run now takes another time,
 * the page would mix two runs: then nothing. */
static void take(const struct explanation *explanation, const struct explain_expected *expected, void *context)
{
    if (expected->agrees)
        *(json_t **)context = view_json(&explanation_view, explanation);
    else
        fputs("note: the page has no critical path and no what-if: they would be of another time than its numbers\n",
              stderr);
}

/* The page, with what is explained where it was; an error of the explanation comes after the page is written. */
static void write_page(const struct arguments *arguments, struct page_request *request, struct error *err)
{
    json_t *explanation = NULL;

    if (!arguments->values[OPT_NO_WHAT_IF])
        explain(&(struct explain_request){.path = request->input, .engine = -1, .budget = arguments->budget, .take = take,
                                          .context = &explanation}, err);
    if (err->count && !explanation) {
        error_add(err, EXIT_USAGE, (struct loc){0}, "there is no page: its critical path and what-if take simulations; "
                  "--no-what-if leaves them out");
        return;
    }
    request->explanation = explanation;
    page_of_run(request, stdout, err);
    json_decref(explanation);
}

/* results_read's callback: orders rows by the sweep's first objective, else by throughput. */
static void choose(struct results *results, const void *context)
{
    const struct key_list *by = context;

    if (by->count)
        results_sort(results, by->keys[0], by->largest[0]);
}

/* Reads and ranks the rows of a sweep. */
static int read_rows(const char *folder, struct results *results, struct error *err)
{
    struct key_list by;
    struct results_question question = {.choose = choose, .context = &by};

    if (results_open(&folder, 1, results, err))
        return -1;
    key_list_objectives(results, &by);
    if (!by.count)
        key_list_throughput(results, &by);
    if (results_read(results, &question, err))
        return -1;
    if (by.count)
        results_rank(results, by.keys[0], by.largest[0]);
    return 0;
}

/* The page of a sweep or a plan; of a plan that replayed nothing, without `rows`. */
static void write_rows(const struct page_request *request, bool rows, struct error *err)
{
    struct results results = {.ranked = -1};

    if (!rows || !read_rows(request->input, &results, err))
        page_of_rows(request, &results, stdout, err);
    if (results.other_builds)
        fprintf(stderr, "rows that another build wrote are left out: %zu\n", results.other_builds);
    results_release(&results);
}

/* What is there to report of. */
enum subject { OF_RUN, OF_ROWS, OF_PLAN, OF_TRAINING, OF_VALIDATION };

static int find_subject(const char *path, enum subject *subject, struct error *err)
{
    char *plan = xprintf("%s/plan.json", path);
    bool rows = false, training = false;
    enum look there, planned;
    int rc = look_at(path, &there, err) || look_at(plan, &planned, err) ? -1 : 0;

    free(plan);
    *subject = OF_VALIDATION;
    if (rc || there == LOOK_FILE)
        return rc;
    if (store_holds_rows(path, &rows, err) || (!rows && page_is_training(path, &training, err)))
        return -1;
    *subject = rows ? OF_ROWS : planned == LOOK_FILE ? OF_PLAN : training ? OF_TRAINING : OF_RUN;
    return 0;
}

static int report_main(const struct arguments *arguments)
{
    struct error err = {0};
    struct page_request request;
    enum subject subject;

    request = (struct page_request){
        .input = arguments->positional[0], .out = arguments->values[OPT_OUT], .ranks = arguments->values[OPT_RANKS],
        .theme = arguments->values[OPT_LIGHT] ? "light" : arguments->values[OPT_DARK] ? "dark" : NULL,
    };
    if (find_subject(request.input, &subject, &err))
        return report(&err);
    if (subject != OF_RUN && (arguments->values[OPT_RANKS] || arguments->values[OPT_NO_WHAT_IF]))
        return usage_error(arguments->command, "--ranks and --no-what-if: of a run only, and '%s' is none", request.input);
    if (subject == OF_VALIDATION)
        page_of_validation(&request, stdout, &err);
    else if (subject == OF_ROWS || subject == OF_PLAN)
        write_rows(&request, subject == OF_ROWS, &err);
    else if (subject == OF_TRAINING && training_check(request.input, &err) >= 0)
        page_of_training(&request, stdout, &err);
    else if (subject == OF_RUN && !page_check_size(&request, &err) && result_check(request.input, &err) >= 0)
        write_page(arguments, &request, &err);
    return report(&err);
}

static const struct option options[] = {
    [OPT_OUT] = {"-o", "FILE", .help = "the page. Default: report.html in the folder, or next to the file"},
    [OPT_RANKS] = {"--ranks", "LIST",
        .help = "the spans of these ranks alone, such as 0-7,12; the page of a long run is smaller then"},
    [OPT_NO_WHAT_IF] = {"--no-what-if",
        .help = "neither critical path nor what would gain how much, for which the scenario is simulated again, about twenty times, "
        "as by 'dtsim explain DIR'"},
    [OPT_LIGHT] = {"--light", .help = "how the page looks first. Default: as the reader's system has it", .one_of = 1},
    [OPT_DARK] = {"--dark", .help = "the same", .one_of = 1},
    BUDGET_OPTION("of these simulations: " BUDGET_HELP),
    {"DIR", .help = "the folder of a 'dtsim run -o' or a 'dtsim train -o'"},
    {"STORE", .help = "the folder of a 'dtsim sweep -o' or 'dtsim plan -o'"},
    {"VALIDATED", .help = "a file of 'dtsim validate --json': predicted against measured, by table and software"},
};

const struct command cmd_report = {
    .name = "report",
    .arguments = "DIR|STORE|VALIDATED",
    .least = 1, .most = 1,
    .brief = "Writes a run, a sweep, a plan or a training as one HTML page that any browser opens.",
    .examples = "  dtsim run scenario.yaml -o out && dtsim report out       # open out/report.html in a browser\n"
                "  dtsim report out -o for-a-colleague.html --light\n"
                "  dtsim sweep sweep.yaml -o rows && dtsim report rows   # table, heat map, front\n"
                "  dtsim plan scenario.yaml -o plan && dtsim report plan # the same, and how the search ended\n"
                "  dtsim train scenario.yaml -o days && dtsim report days\n"
                "  dtsim validate scenarios/paper/*.yaml --json >validate.json && dtsim report validate.json\n",
    .no_set = "--set: the report is of a run that has ended; 'dtsim run --set ... -o DIR' makes another",
    .options = options, .noptions = COUNT(options),
    .more = "\n"
            "The page is one file that asks nobody for anything: it can be sent by mail and opened anywhere. It needs a "
            "browser of 2023 or later. It shows the numbers of DIR/result.json, and in its timeline the spans of "
            "DIR/spans.tsv to 1 ns. A rank is a rank of spans.tsv: one pipeline rank of a replica, whose tensor group acts "
            "as one.\n",
    .main = report_main,
};
