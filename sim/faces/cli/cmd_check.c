#include <stdlib.h>
#include <string.h>

#include "auto/auto.h"
#include "base/progress.h"
#include "base/sheet.h"
#include "cli/help.h"
#include "cli/said.h"
#include "cli/sweep_plan.h"
#include "config/conf.h"
#include "files/json.h"
#include "report/caveats.h"
#include "report/result.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "sweep/points.h"
#include "sweep/sweep.h"
#include "view/say.h"
#include "view/view.h"
#include "workload/workload.h"

/* A lower probability that a scenario fits is said. */
static const double SURE = 0.99;

enum { OPT_MEMORY, OPT_VALUES, OPT_JSON };

static void warn_of_memory(const struct run *run)
{
    char shortage[160];

    if (memory_lack(run) > 0)
        fprintf(stderr, "warning: %s; 'dtsim run' refuses it, 'dtsim check --memory' says what would help\n",
                memory_shortage(run, shortage, sizeof shortage));
    else if (run->metrics.ranks && run->metrics.fits >= 0.005 && run->metrics.fits < SURE)
        fprintf(stderr, "note: memory: it fits with a probability of %.0f %%, by how far off published peaks are\n",
                100 * run->metrics.fits);
}

#define PLACE(ROW) \
    ROW(file, json_words(it->file), "where the value stands") \
    ROW(line, json_integer(it->line), "of it") \
    ROW(column, json_integer(it->column), "of it")
VIEW(place_view, struct loc, it, PLACE)

/* {path: where its value stands}; a value that nobody wrote is the default. */
static void add_origins(json_t *origins, struct arena *arena, const char *path, const struct node *node)
{
    const struct loc *loc = &node->loc;
    bool whole = node->kind == NODE_SCALAR || !node->count;

    for (size_t i = 0; i < node->count && !whole; i++) {
        const char *key = node->kind == NODE_MAPPING ? node->keys[i] : arena_printf(arena, "%zu", i);

        add_origins(origins, arena, *path ? arena_printf(arena, "%s.%s", path, key) : key, node->items[i]);
    }
    if (whole)
        json_put(origins, path, !loc->file ? json_string("default") : loc->line == 0 ? json_words(loc->file) :
                 view_json(&place_view, loc));
}

static json_t *origins_json(const struct node *root)
{
    struct arena arena = {0};
    json_t *origins = json_object();

    add_origins(origins, &arena, "", root);
    arena_release(&arena);
    return origins;
}

#define FITS(ROW) \
    ROW(peak_memory_bytes, json_real(it->metrics.peak_memory), "of the fullest GPU") \
    ROW(room_bytes, json_finite(it->metrics.peak_room), "what that GPU may hold; null: not known") \
    ROW(fits, json_boolean(memory_lack(it) <= 0), "whether it fits") \
    ROW(fits_probability, json_finite(it->metrics.fits), "as in result.json")
VIEW(fits_view, struct run, it, FITS)

/* What is said of a scenario; `run` NULL: its memory is not known. */
struct checked { const struct scenario *scenario; const struct node *root; const struct run *run; };

#define CHECKED(ROW) \
    ROW(scenario, node_json(it->root), "with every default") \
    ROW(origins, origins_json(it->root), "by path: where its value stands (file, line, column); 'default': nobody wrote it", \
        .form = VIEW_MAP) \
    ROW(notes, caveats_json(it->scenario, NULL), "what to know before relying on the numbers") \
    ROW(memory, it->run ? view_json(&fits_view, it->run) : NULL, "left out: not known", .of = &fits_view)
VIEW_SHARED(check_view, struct checked, it, CHECKED)

/* Whether it fits: with advice an error, else a warning; prints the scenario `root` as JSON unless that is NULL. Whether that was
 * printed. */
static bool check_memory(const struct workload *workload, bool strict, const struct node *root, struct error *err)
{
    struct simulate_options how = memory_options_of(workload->scenario);
    struct run run = {0};
    int rc = strict ? simulate_advised(workload, how, &run, err) : simulate(workload, how, &run, err);

    progress_end(workload->scenario->progress);
    if (root && !err->count)
        view_print(&check_view, &(struct checked){workload->scenario, root, rc ? NULL : &run}, stdout);
    else if (!root && !rc && !err->count)
        warn_of_memory(&run);
    run_release(&run);
    return !err->count;
}

/* Checks the sweep itself and every value of an axis, and prints what a dry run tells of its points. */
static int check_sweep(const struct arguments *arguments)
{
    struct sweep sweep = {0};
    struct selection selection = {0};
    struct error err = {0};
    bool json = arguments->values[OPT_JSON];
    int code, rc = sweep_load(arguments->positional[0], arguments->sets, arguments->nsets, NULL, &sweep, &err) ||
                   points_select(&sweep.points, POINTS_MOST, &selection, &err);

    if (!rc && json)
        sweep_plan_print_json(&sweep.points, &selection);
    else if (!rc)
        sweep_plan_print(&sweep.points, &selection);
    selection_release(&selection);
    code = report_as(&err, json && rc);
    sweep_release(&sweep);
    return code;
}

/* Prints the scenario for people, or all that is known of it for programs; whether it was printed. */
static bool print_scenario(const struct arguments *arguments, const struct workload *workload, struct error *err)
{
    struct arena arena = {0};
    const struct node *root = scenario_dump(&arena, workload->scenario);
    bool strict = arguments->values[OPT_MEMORY], printed = true;

    if (arguments->values[OPT_JSON]) {
        printed = check_memory(workload, strict, root, err);
    } else {
        node_print_origins(root, stdout);
        caveats_print(workload->scenario, NULL, stderr);
        check_memory(workload, strict, NULL, err);
    }
    arena_release(&arena);
    return printed;
}

#define VALUE(ROW) \
    ROW(value, json_words(it->value), "of the key") \
    ROW(goes, json_boolean(!it->why), "with the rest of the scenario") \
    ROW(said, json_boolean(it->said), "whether it is the scenario's") \
    ROW(why, it->why ? json_words(it->why) : json_null(), "it does not go; null: it does") \
    ROW(but, it->but ? json_words(it->but) : json_null(), "what is against it; null: nothing")
VIEW(value_view, struct asked_value, it, VALUE)

#define VALUES(ROW) \
    ROW(path, json_words(it->path), "the key") \
    ROW(values, view_list(&value_view, it->items, it->count, sizeof *it->items), "that it may have", .form = VIEW_LIST, \
        .of = &value_view)
VIEW_SHARED(values_view, struct asked_values, it, VALUES)

static void print_values(const struct asked_values *values)
{
    const struct say_column columns[] = {
        {values->path, NULL, "{value}[?said  (as it is)]"}, {"goes", NULL, "[?why no|?but but|yes]"},
        {"why not, or what is against it", NULL, "[{why}|{but}]"},
    };
    struct sheet sheet = {.left = 3};
    json_t *list = view_list(&value_view, values->items, values->count, sizeof *values->items);

    say_table(list, columns, COUNT(columns), &sheet, false, stdout);
    printf("\n%zu of %zu go with the rest of the scenario\n", values->going, values->count);
    json_decref(list);
}

static int load_tree(struct arena *arena, const char *path, const char *const *sets, size_t nsets, struct node **root,
                     struct error *err)
{
    int rc = scenario_tree(arena, path, root, err);

    for (size_t i = 0; i < nsets && !rc; i++)
        rc = scenario_set(arena, *root, sets[i], err);
    return rc;
}

int asked_find(struct asked *asked, const char *path, const char *const *sets, size_t nsets, const char *question,
               struct error *err)
{
    struct node *root;

    *asked = (struct asked){.arena.cache = &asked->cache};
    cache_init(&asked->cache, CACHE_BYTES);
    return load_tree(&asked->arena, path, sets, nsets, &root, err) ||
           values_ask(&asked->arena, root, question, "scenario", &asked->values, err) ? -1 : 0;
}

void asked_release(struct asked *asked)
{
    arena_release(&asked->arena);
    cache_release(&asked->cache);
}

/* Which values of a key go with the rest, which may be no scenario as it is. */
static int check_values(const struct arguments *arguments)
{
    bool json = arguments->values[OPT_JSON];
    struct error err = {0};
    struct asked asked;
    int code, rc = asked_find(&asked, arguments->positional[0], arguments->sets, arguments->nsets,
                              arguments->values[OPT_VALUES], &err);

    if (!rc && json)
        view_print(&values_view, &asked.values, stdout);
    else if (!rc)
        print_values(&asked.values);
    code = report_as(&err, json && rc);
    if (!rc && !asked.values.going)
        code = EXIT_INFEASIBLE;
    asked_release(&asked);
    return code;
}

static bool same_loc(const struct loc *a, const struct loc *b)
{
    return a->file && b->file && !strcmp(a->file, b->file) && a->line == b->line && a->column == b->column;
}

/* The path of the value or the key at that place; NULL: there is none. */
static const char *path_at(struct arena *arena, const char *path, const struct node *node, const struct loc *loc)
{
    const char *found = NULL;

    for (size_t i = 0; i < node->count && !found; i++) {
        const struct node *item = node->items[i];
        const struct loc *key = node->kind == NODE_MAPPING ? &node->key_locs[i] : &item->loc;
        const char *name = node->kind == NODE_MAPPING ? node->keys[i] : arena_printf(arena, "%zu", i);

        name = *path ? arena_printf(arena, "%s.%s", path, name) : name;
        found = item->kind == NODE_SCALAR && (same_loc(&item->loc, loc) || same_loc(key, loc)) ? name :
                path_at(arena, name, item, loc);
    }
    return found;
}

/* The key whose value was refused first, where a file says it; NULL: there is none. */
static const char *refused_path(struct arena *arena, const struct arguments *arguments, const struct error *err)
{
    struct error ignored = {0};
    struct node *root;
    const char *path = NULL;

    if (err->count && err->messages[0].code == EXIT_INFEASIBLE && strcmp(arguments->positional[0], "-") &&
        !load_tree(arena, arguments->positional[0], arguments->sets, arguments->nsets, &root, &ignored))
        path = path_at(arena, "", root, &err->messages[0].loc);
    error_release(&ignored);
    return path;
}

/* Which other values of a key go with the rest. */
static void say_values(const struct arguments *arguments, const char *path)
{
    struct error ignored = {0};
    struct asked asked;
    const char *going = "";

    if (!asked_find(&asked, arguments->positional[0], arguments->sets, arguments->nsets, path, &ignored) &&
        asked.values.going) {
        for (size_t i = 0; i < asked.values.count; i++)
            if (!asked.values.items[i].why)
                going = arena_printf(&asked.arena, "%s%s%s", going, *going ? ", " : "", asked.values.items[i].value);
        fprintf(stderr, "%s: these go with the rest of the scenario: %s ('dtsim check --values %s' says why others do "
                "not)\n", path, going, path);
    }
    error_release(&ignored);
    asked_release(&asked);
}

/* What is read counts too. */
static int loaded_in_time(struct progress *progress, struct error *err)
{
    progress_step(progress, "loading", 0, 0, 0);
    progress_end(progress);
    return progress_check(progress, err);
}

static int check_main(const struct arguments *arguments)
{
    struct error err = {0};
    struct scenario scenario;
    struct workload workload = {0};
    struct progress progress;
    struct arena arena = {0};
    const char *refused;
    bool sweep, printed = false;
    int code, rc;

    if (arguments->values[OPT_VALUES])
        return check_values(arguments);
    progress_begin(&progress, "--budget", arguments->budget.seconds, arguments->budget.bytes);
    if (sweep_is(arguments->positional[0], &progress, &sweep, &err))
        return report_as(&err, arguments->values[OPT_JSON]);
    if (sweep)
        return check_sweep(arguments);
    rc = scenario_load(arguments->positional[0], arguments->sets, arguments->nsets, &progress, &scenario, &err);
    if (!rc && !loaded_in_time(&progress, &err) && !workload_init(&workload, &scenario, &err) &&
        !loaded_in_time(&progress, &err))
        printed = print_scenario(arguments, &workload, &err);
    refused = printed || arguments->values[OPT_JSON] ? NULL : refused_path(&arena, arguments, &err);
    code = report_as(&err, arguments->values[OPT_JSON] && !printed);
    if (refused)
        say_values(arguments, refused);
    arena_release(&arena);
    workload_release(&workload);
    scenario_release(&scenario);
    return code;
}

static const struct option options[] = {
    [OPT_MEMORY] = {"--memory",
        .help = "a scenario that does not fit in memory is an error that says what would help (exit code 5), not a warning"},
    [OPT_VALUES] = {"--values", "PATH[=V1,V2,...]",
        .help = "which values of this key are valid with the rest of the scenario, and why others are not; the scenario itself may "
        "be invalid. Candidates are the names of a choice, or numbers that follow from the model and the cluster; others: "
        "--values PATH=V1,V2. Exit code 5: no value is valid", .without = "--memory --budget"},
    [OPT_JSON] = {"--json", .help = "for programs; its keys: dtsim help result; errors are JSON too"},
    SET_OPTION("PATH=VALUE", "change the scenario"),
    BUDGET_OPTION("of a scenario: " BUDGET_HELP),
    {"SCENARIO", .help = "a file, or - for standard input"},
    {"SWEEP", .help = "a file of 'dtsim sweep': how many points it has, and what dropped others"},
};

const struct command cmd_check = {
    .name = "check",
    .arguments = "SCENARIO|SWEEP",
    .least = 1, .most = 1,
    .brief = "Checks a scenario and prints every value and where it comes from, or a sweep and prints its points.",
    .examples = "  dtsim check scenario.yaml\n"
                "  dtsim check scenario.yaml --set strategy.tensor=4 > resolved.yaml\n"
                "  dtsim check scenario.yaml --values strategy.schedule\n",
    .options = options, .noptions = COUNT(options),
    .main = check_main,
};
