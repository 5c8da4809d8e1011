#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/key_list.h"

enum { OPT_TOP, OPT_BY, OPT_PER, OPT_PARETO, OPT_SHOW, OPT_WHERE, OPT_CSV, OPT_MARKDOWN, OPT_JSON };
static const char *const options[] = {
    [OPT_TOP] = "--top=", [OPT_BY] = "--by=", [OPT_PER] = "--per=", [OPT_PARETO] = "--pareto=", [OPT_SHOW] = "--show=",
    [OPT_WHERE] = "--where=", [OPT_CSV] = "--csv", [OPT_MARKDOWN] = "--markdown", [OPT_JSON] = "--json",
};
enum { TOP = 10 };

static int front(struct results *results, const struct key_list *list)
{
    results_keep_numbers(results, list->keys, list->count);
    results_front(results, list->keys, list->largest, list->count);
    return 0;
}

/* Chooses and orders rows as the options say; else as the sweep's file does, else by throughput. Programs get all rows:
 * those without the numbers that order them come last. */
static int choose(struct results *results, const char *const *values, bool people, struct error *err)
{
    struct key_list by, per = {.count = 0}, pareto;
    int order = results_default_order(results);

    key_list_objectives(results, &by);
    if (values[OPT_PARETO])
        return key_list_read(results, values[OPT_PARETO], "--pareto", &pareto, err) ? -1 : front(results, &pareto);
    if ((values[OPT_BY] && key_list_read(results, values[OPT_BY], "--by", &by, err)) ||
        (values[OPT_PER] && key_list_read(results, values[OPT_PER], "--per", &per, err)))
        return -1;
    if (by.count > 1 && people && !values[OPT_BY] && !per.count)
        return front(results, &by);
    if (people || per.count)
        results_keep_numbers(results, by.keys, by.count);
    if (!by.count && order >= 0)
        results_sort(results, order, true);
    for (size_t i = by.count; i-- > 0;)          /* the first one decides, as the order is stable */
        results_sort(results, by.keys[i], by.largest[i]);
    if (per.count)
        results_per(results, per.keys[0], 1);
    if (by.count || order >= 0)
        results_rank(results, by.count ? by.keys[0] : order, by.count ? by.largest[0] : true);
    return 0;
}

static int print_chosen(struct results *results, const char *const *values, enum results_format format, size_t most,
                        struct error *err)
{
    int *columns = xcalloc(results->keys.count + KEYS_MOST, sizeof *columns);
    struct key_list shown;
    size_t count;
    int rc = choose(results, values, format == FORMAT_TEXT || format == FORMAT_MARKDOWN, err);

    count = results_columns(results, format, columns);
    if (!rc && values[OPT_SHOW]) {
        rc = key_list_read(results, values[OPT_SHOW], "--show", &shown, err);
        memcpy(columns, shown.keys, sizeof shown.keys);
        count = shown.count;
    }
    if (!rc && (results->rows.count || format == FORMAT_CSV))
        results_print(results, format, columns, count, most, stdout);
    if (!rc && results->rows.count && format == FORMAT_TEXT && results->ranked >= 0 && !values[OPT_SHOW]) {
        fputc('\n', stdout);
        results_explain_ranks(results, stdout);
    }
    free(columns);
    return rc;
}

/* The table and, for people, how all points ended. */
static int print_folders(const char *const *folders, size_t nfolders, const char *const *values,
                         enum results_format format, size_t most, struct error *err)
{
    struct results results;
    char *outcome = NULL;
    size_t size;
    FILE *out = open_memstream(&outcome, &size);
    int rc = results_load(folders, nfolders, &results, err) ||
             (values[OPT_WHERE] && results_where(&results, values[OPT_WHERE], err)) ? -1 : 0;

    BUG_IF(!out);
    if (!rc)
        results_print_outcome(&results, out);
    fclose(out);
    if (!rc && !(rc = print_chosen(&results, values, format, most, err)) && format == FORMAT_TEXT)
        printf("%s%s", results.rows.count ? "\n" : "", outcome);
    if (!rc && results.other_builds)
        fprintf(stderr, "%zu rows that another build wrote are left out\n", results.other_builds);
    results_release(&results);
    free(outcome);
    return rc;
}

int results_summary(const char *folder, size_t most, struct error *err)
{
    const char *values[COUNT(options)] = {NULL};

    return print_folders(&folder, 1, values, FORMAT_TEXT, most, err);
}

static int results_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    enum results_format format = FORMAT_TEXT;
    size_t top = SIZE_MAX, formats = 0;
    int code = arguments_parse(command, argc, argv, options, COUNT(options), 1, ARGS_MAX, &arguments);

    if (code != ARGS_DONE)
        return code;
    for (int i = OPT_CSV; i <= OPT_JSON; i++)
        if (arguments.values[i]) {
            format = i == OPT_CSV ? FORMAT_CSV : i == OPT_MARKDOWN ? FORMAT_MARKDOWN : FORMAT_JSON;
            formats++;
        }
    if (formats > 1)
        return usage_error(command, "expected one of --csv, --markdown, --json");
    if (arguments.nsets)
        return usage_error(command, "--set changes no rows; --where chooses among them");
    if (arguments.values[OPT_TOP])
        code = count_parse(command, "--top", arguments.values[OPT_TOP], 1000000000, &top);
    else if (format == FORMAT_TEXT || format == FORMAT_MARKDOWN)
        top = TOP;
    if (code != ARGS_DONE)
        return code;
    print_folders(arguments.positional, (size_t)arguments.npositional, arguments.values, format, top, &err);
    return report(&err);
}

const struct command cmd_results = {
    .name = "results",
    .usage = "DIR... [--top K] [--by KEY] [--per KEY] [--pareto KEYS] [--where EXPRESSION] [--show KEYS]\n"
             "       [--csv | --markdown | --json]",
    .brief = "Prints the rows of sweeps: the best, the best of each group, those that none betters, why others failed.",
    .examples = "  dtsim results llama.sweep\n"
                "  dtsim results llama.sweep --by iteration_time_s --top 5 --where 'strategy.tensor <= 8'\n"
                "  dtsim results llama.sweep --pareto iteration_time_s,peak_memory_bytes\n"
                "  dtsim results llama.sweep --per cluster.nodes --show cluster.nodes,strategy.tensor,mfu\n"
                "  dtsim results shards/* --csv > all.csv\n",
    .options = "  DIR...              folders that 'dtsim sweep' wrote, or files in them; all rows count as one table\n"
               "  --top K             so many rows; left out: 10, and all for programs\n"
               "  --by KEY            the best first; left out: as the sweep's file says, or the highest throughput\n"
               "  --per KEY           the best one of each value of KEY\n"
               "  --pareto KEYS       rows that no other one betters in all KEYS\n"
               "  --where EXPRESSION  only rows for which it is true, such as 'mfu > 0.4 && strategy.tensor < 8'\n"
               "  --show KEYS         these columns\n"
               "  --csv               all columns, SI units\n"
               "  --markdown          the table for a document\n"
               "  --json              whole rows, JSON Lines\n"
               "KEY is a path or name that the sweep sets, a metric of result.json (breakdown_s.bubble is one of its\n"
               "breakdown), gpus, memory_margin_bytes, extrapolated_share, rank, status, engine, rule, reason or id. The\n"
               "best is the largest of rates and shares of use, and else the smallest; KEY:min and KEY:max say\n"
               "otherwise.\n",
    .main = results_main,
};
