#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cmd.h"
#include "cli/key_list.h"
#include "results/database.h"
#include "store/tally.h"

enum { OPT_TOP, OPT_BY, OPT_PER, OPT_PARETO, OPT_WHERE, OPT_SHOW, OPT_KEYS, OPT_CSV, OPT_MARKDOWN, OPT_JSON, OPT_SQLITE };
enum { TOP = 10 };

/* Which rows are asked for, and in which order. */
struct wanted {
    struct key_list by, per;
    bool front;                  /* the rows that no other one betters in what `by` names */
    bool numbers;                /* they must have the numbers that order them, else they come last */
    bool well;                   /* they must have ended well */
    size_t most;
};

static void choose(struct results *results, const void *context)
{
    const struct wanted *wanted = context;
    const struct key_list *by = &wanted->by;

    if (wanted->well)
        results_keep_numbers(results, by->keys, wanted->numbers ? by->count : 0);
    if (wanted->front) {
        results_front(results, by->keys, by->largest, by->count, (struct results_keys){NULL, 0});
        return;
    }
    for (size_t i = by->count; i-- > 0;)         /* the first one decides, as the order is stable */
        results_sort(results, by->keys[i], by->largest[i]);
    if (wanted->per.count)
        results_per(results, (struct results_keys){wanted->per.keys, 1}, 1);
    results_keep_first(results, wanted->most);
}

/* Programs get all rows; people those alone that have what orders them. */
static int read_wanted(const struct results *results, const char *const *values, bool people, size_t most,
                       struct wanted *wanted, struct error *err)
{
    bool objectives;

    /* One more than is shown: the last one may share its rank with the next. */
    *wanted = (struct wanted){.most = most < SIZE_MAX ? most + 1 : most};
    key_list_objectives(results, &wanted->by);
    objectives = wanted->by.count > 0;
    wanted->numbers = values[OPT_BY] || objectives;
    if (!objectives)
        key_list_throughput(results, &wanted->by);
    if (values[OPT_PARETO]) {
        wanted->front = wanted->numbers = wanted->well = true;
        return key_list_read(results, values[OPT_PARETO], "--pareto", &wanted->by, err);
    }
    if ((values[OPT_BY] && key_list_read(results, values[OPT_BY], "--by", &wanted->by, err)) ||
        (values[OPT_PER] && key_list_read(results, values[OPT_PER], "--per", &wanted->per, err)))
        return -1;
    wanted->well = people || wanted->per.count;
    wanted->front = people && objectives && wanted->by.count > 1 && !values[OPT_BY] && !wanted->per.count;
    return 0;
}

/* How many rows people do not see, and why. */
static void print_left_out(const struct results *results, const struct wanted *wanted, size_t most)
{
    size_t all = results->tally.ended[OUTCOME_OK], shown = results->rows.count < most ? results->rows.count : most;

    if (wanted->front && all > results->rows.count) {
        printf("\nPareto front: %zu of %zu rows; %zu are left out, as another is at least as good in each of ",
               results->rows.count, all, all - results->rows.count);
        for (size_t i = 0; i < wanted->by.count; i++)
            printf("%s%s", i ? ", " : "", results->keys.items[wanted->by.keys[i]].name);
        puts(" and better in one, or they lack one of these numbers");
    }
    if (shown && shown < (wanted->front ? results->rows.count : all) && !wanted->per.count)
        printf("\nshown: %zu of %zu rows (--top)\n", shown, wanted->front ? results->rows.count : all);
}

static int print_rows(const struct results *results, const char *const *values, const struct wanted *wanted,
                      struct results_look *look, struct error *err)
{
    int *columns = xcalloc(results->keys.count + KEYS_MOST, sizeof *columns);
    struct key_list shown;
    int rc = 0;

    look->count = results_columns(results, look->format, columns);
    look->columns = columns;
    look->all = values[OPT_SHOW] != NULL;
    look->keys = values[OPT_KEYS] != NULL;
    if (values[OPT_SHOW]) {
        rc = key_list_read(results, values[OPT_SHOW], "--show", &shown, err);
        memcpy(columns, shown.keys, sizeof shown.keys);
        look->count = shown.count;
    }
    if (!rc && values[OPT_SQLITE])
        rc = database_write(results, columns, look->count, look->most, values[OPT_SQLITE], err);
    else if (!rc && (results->rows.count || look->format == FORMAT_CSV))
        results_print(results, look, stdout);
    if (!rc && look->format == FORMAT_TEXT)
        print_left_out(results, wanted, look->most);
    if (!rc && results->rows.count && look->format == FORMAT_TEXT && results->ranked >= 0 && !values[OPT_SHOW]) {
        fputc('\n', stdout);
        results_explain_ranks(results, stdout);
    }
    free(columns);
    return rc;
}

/* The first key that orders the rows and that they have. */
static void rank(struct results *results, const struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->by.count && !wanted->front; i++)
        if (results->keys.items[wanted->by.keys[i]].number) {
            results_rank(results, wanted->by.keys[i], wanted->by.largest[i]);
            return;
        }
}

/* The table and, for people, how all points ended. */
static int print_folders(const char *const *folders, size_t nfolders, const char *const *values,
                         struct results_look look, struct error *err)
{
    bool people = look.format == FORMAT_TEXT || look.format == FORMAT_MARKDOWN;
    struct wanted wanted;
    const struct results_question question = {values[OPT_WHERE], choose, &wanted};
    struct results results;
    int rc = results_open(folders, nfolders, &results, err) ||
             read_wanted(&results, values, people, look.most, &wanted, err) ||
             results_read(&results, &question, err) ? -1 : 0;

    if (!rc) {
        rank(&results, &wanted);
        rc = print_rows(&results, values, &wanted, &look, err);
    }
    if (!rc && look.format == FORMAT_TEXT) {
        fputs(results.rows.count ? "\n" : "", stdout);
        tally_print(&results.tally, stdout);
    } else if (!rc && people && tally_failed(&results.tally)) {
        fputs("\n- ", stdout);
        tally_print_failed(&results.tally, stdout);
        fputc('\n', stdout);
    }
    if (!rc && results.other_builds)
        fprintf(stderr, "rows that another build wrote are left out: %zu\n", results.other_builds);
    results_release(&results);
    return rc;
}

int results_summary(const char *folder, size_t most, struct error *err)
{
    const char *values[OPT_SQLITE + 1] = {NULL};

    return print_folders(&folder, 1, values, (struct results_look){.format = FORMAT_TEXT, .most = most}, err);
}

static int results_main(const struct arguments *arguments)
{
    struct error err = {0};
    enum results_format format = FORMAT_TEXT;
    size_t top = SIZE_MAX;

    for (int i = OPT_CSV; i <= OPT_SQLITE; i++)
        if (arguments->values[i])
            format = i == OPT_MARKDOWN ? FORMAT_MARKDOWN : i == OPT_JSON ? FORMAT_JSON : FORMAT_CSV;
    if (arguments->values[OPT_TOP])
        top = (size_t)arguments->numbers[OPT_TOP];
    else if (format == FORMAT_TEXT || format == FORMAT_MARKDOWN)
        top = TOP;
    print_folders(arguments->positional, (size_t)arguments->npositional, arguments->values,
                  (struct results_look){.format = format, .most = top}, &err);
    return report_as(&err, format == FORMAT_JSON);
}

static const struct option options[] = {
    [OPT_TOP] = {"--top", "K", .help = "print K rows; left out: 10, and all for programs", OPTION_COUNT, 1, 1000000000},
    [OPT_BY] = {"--by", "KEY", .help = "the best first; left out: as the sweep's file says, or the highest throughput"},
    [OPT_PER] = {"--per", "KEY", .help = "the best row for each value of KEY"},
    [OPT_PARETO] = {"--pareto", "KEYS", .help = "the Pareto front: rows that no other row beats in all KEYS"},
    [OPT_WHERE] = {"--where", "EXPRESSION", .help = "only rows for which it is true, such as 'mfu > 0.4 && strategy.tensor < 8'"},
    [OPT_SHOW] = {"--show", "KEYS", .help = "these columns"},
    [OPT_KEYS] = {"--keys", .help = "column heads are the keys that --by and --show take, not words for them"},
    [OPT_CSV] = {"--csv", .help = "all columns, SI units", .one_of = 1},
    [OPT_MARKDOWN] = {"--markdown", .help = "the table for a document", .one_of = 1},
    [OPT_JSON] = {"--json", .help = "whole rows, JSON Lines", .one_of = 1},
    [OPT_SQLITE] = {"--sqlite", "FILE",
        .help = "the columns of --csv as table 'rows' of an SQLite file, which is replaced", .one_of = 1},
    {"DIR...", .help = "folders that 'dtsim sweep' wrote, or files in them; all rows count as one table"},
};

const struct command cmd_results = {
    .name = "results",
    .arguments = "DIR...",
    .least = 1, .most = ARGS_MAX,
    .brief = "Prints the rows of sweeps: the best, the best of each group, those that no other beats, why others failed.",
    .examples = "  dtsim results llama.sweep\n"
                "  dtsim results llama.sweep --by iteration_time_s --top 5 --where 'strategy.tensor <= 8'\n"
                "  dtsim results llama.sweep --pareto iteration_time_s,peak_memory_bytes\n"
                "  dtsim results llama.sweep --per cluster.nodes --show cluster.nodes,strategy.tensor,mfu\n"
                "  dtsim results shards/* --csv > all.csv\n",
    .no_set = "--set changes no rows; --where chooses among them",
    .options = options, .noptions = COUNT(options),
    .more = "KEY is a path or name that the sweep sets, a metric of result.json (breakdown_s.bubble is one of its "
            "breakdown), gpus, memory_margin_bytes, extrapolated_share, verified_iteration_time_s, status, engine, "
            "verified_engine, software, in_framework (whether the software's release has this schedule, ZeRO stage and "
            "recomputation; null: not known), rule, reason, id, or rank (rows that cannot be told apart share a rank). For "
            "rates and shares of use the largest value is the best, for all other keys the smallest; KEY:min and KEY:max "
            "say otherwise. Values that all rows share stand above the table, unless --show names them. A table is as wide "
            "as the terminal, or as the variable COLUMNS says; without both it is as wide as its text.\n",
    .main = results_main,
};
