/* Who may include whom, read off the sources: what keeps a schedule, a collective, an engine or a chart to itself. */
#include "sources.h"

/* What the order of folders does not say: who alone sees a library, and who sees less than all that is above it. */
struct rule {
    const char *files;               /* a path's beginning, below the sources */
    const char *except;              /* of these names (between spaces), or NULL */
    const char *may;                 /* beginnings of this program's headers it may include (between spaces), or NULL:
                                      * any */
    const char *may_not;             /* beginnings of headers it must not include (between spaces), or NULL */
};

static const struct rule rules[] = {
    {"", " sim/config/conf.c ", NULL, " yaml.h "},
    {"", " sim/modules/simgrid.c sim/modules/simgrid_file.c ", NULL, " simgrid/ xbt/ "},
    {"", " sim/modules/mpi.c ", NULL, " mpi.h "},
    {"", " sim/files/packed.c ", NULL, " zlib.h "},
    {"sim/recorded/", NULL, " base/ files/ recorded/ ", NULL},
    {"sim/page/", NULL, " base/ files/ store/store.h results/ recorded/ page/ ", NULL},
    {"sim/trace/", NULL, " base/ files/ recorded/ trace/ ", NULL},
    {"", " sim/modules/sqlite.c ", NULL, " sqlite3.h "},
    {"", " sim/modules/http.c ", NULL, " microhttpd.h "},
    {"sim/modules/http", NULL, " base/ app/http.h ", NULL},
    {"", " sim/calibrate/fit.c sim/validate/validation.c ", NULL, " gsl/ "},
    {"", " calibration/ ", NULL, " cuda cublas cudnn nccl "},
    {"calibration/", NULL, " base/ bench_options.h case.h case_list.h device.h device_kernels.h flash_graph.h "
     "flash_plan.h format.h kernels.h product.h reference.h reference_product.h sample.h statistics.h ", NULL},
    {"calibration/case", NULL, " base/ case.h case_list.h format.h kernels.h ", " cuda "},
    {"calibration/format", NULL, " base/ format.h ", " cuda "},
    {"strategies/collectives/", NULL, " collective/collective.h fold.h once_round.h pieces.h ", NULL},
    {"strategies/", " strategies/collectives/ ", " base/ schedule/schedule.h ", NULL},  /* and headers of that folder */
    {"plots/", NULL, " base/ files/ chart.h curves.h gantt.h heat.h list.h pareto.h plot.h records.h rows.h ", NULL},
    {"sim/engine/", NULL, " base/ process/ topology/simgrid_file.h hardware/cluster.h flows/flows.h engine/ ", NULL},
    {"sim/flows/", NULL, " base/ hardware/cluster.h flows/ ", NULL},
    {"sim/modules/simgrid", NULL, " base/ process/child.h topology/simgrid_file.h hardware/cluster.h engine/ modules/simgrid_ ", NULL},
    {"sim/cli/", NULL, NULL, " modules/ "},
    {"sim/engine/program", NULL, " base/ engine/program ", NULL},
    {"sim/collective/", NULL, " base/ cache/ topology/torus.h hardware/cluster.h engine/ collective/ strategies/collectives/list.h ", NULL},
    {"sim/schedule/", NULL, " base/ cache/ config/field.h schedule/ strategies/list.h ", NULL},
    {"sim/run/metric", NULL, " base/ precision/precision.h model/model.h engine/program.h schedule/schedule.h evidence/anchor.h "
     "scenario/scenario.h stage/memory.h workload/workload.h lower/lower.h lower/window.h energy/energy.h run/account.h "
     "run/metrics.h run/certainty.h ", " kernels/ "},
    {"sim/calibrate/fit", NULL, " base/ calibrate/fit.h ", NULL},
};

/* Whether the name begins with one of the words between spaces. */
static bool listed(const char *words, const char *name)
{
    for (const char *word = words, *end; word && *++word; word = end) {
        end = strchr(word, ' ');
        if (!end)
            return false;
        if (!strncmp(word, name, (size_t)(end - word)))
            return true;
    }
    return false;
}

/* The place of a path's first folder in the list of floors; -1: it is none of them. */
static int floor_of(const char *path)
{
    for (size_t i = 0; i < COUNT(floors); i++)
        if (!strncmp(path, floors[i], strlen(floors[i])) && path[strlen(floors[i])] == '/')
            return (int)i;
    return -1;
}

/* A file of sim/ includes files of its folder or of folders above, by folder and name; private headers only of its
 * folder. The two lists of strategies are the exception, as they stand for all schedules and collectives. */
static void check_floor(const char *path, const char *header)
{
    int own = floor_of(path + strlen("sim/")), other = floor_of(header);

    if (own < 0)
        fail_msg("%s stands in no folder of the list in this test", path);
    if (!strcmp(header, own == floor_of("schedule/") ? "strategies/list.h" : "strategies/collectives/list.h") &&
        (own == floor_of("schedule/") || own == floor_of("collective/")))
        return;
    if (!strncmp(header, "plots/", 6) && own == floor_of("cli/"))
        return;
    if (other < 0)
        fail_msg("%s includes %s; expected a folder of sim/ and a name", path, header);
    if (other > own)
        fail_msg("%s includes %s, which stands below it", path, header);
    if (other != own && strstr(header, "_internal.h"))
        fail_msg("%s includes %s, which is private to its folder", path, header);
}

static void check_include(const struct rule *rule, const char *path, const char *header, bool own)
{
    char strategies[512];

    snprintf(strategies, sizeof strategies, "%s/strategies/%s", DTSIM_SOURCE_DIR, header);
    if (own && !strncmp(path, "strategies/", 11) && access(strategies, F_OK) == 0)
        return;
    if (listed(rule->may_not, header) || (own && rule->may && !listed(rule->may, header)))
        fail_msg("%s includes %s; the rule is: %s%s%s%s", path, header, rule->may ? "only" : "",
                 rule->may ? rule->may : "", rule->may_not ? " never" : "", rule->may_not ? rule->may_not : "");
}

static void check_file(const char *path, const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char header[128], open;

        if (sscanf(line, "#include %c%127[^>\"\n]", &open, header) != 2)
            continue;
        if (open == '"' && !strncmp(path, "sim/", 4))
            check_floor(path, header);
        for (size_t i = 0; i < COUNT(rules); i++)
            if (!strncmp(path, rules[i].files, strlen(rules[i].files)) && !listed(rules[i].except, path))
                check_include(&rules[i], path, header, open == '"');
    }
}

/* What a cluster is made of is private to sim/hardware/: other rooms ask functions of a GPU or of a node. */
static void check_members(const char *path, const char *text)
{
    static const char *const members[] = {
        "cluster->kinds", "cluster->part", "cluster->network", "->cluster.kinds", "->cluster.part", "->cluster.network",
    };

    for (size_t i = 0; i < COUNT(members) && !strncmp(path, "sim/", 4) && strncmp(path, "sim/hardware/", 13); i++)
        if (strstr(text, members[i]))
            fail_msg("%s reads %s; expected a function of hardware/cluster.h", path, members[i]);
}

/* Whether the folder has a module that the test's name begins with: chain.c, or chain_table.c, of chain; decimal.h. */
static bool tests_a_module(const char *folder, const char *test)
{
    char path[1100];

    for (const char *end = test + 1; *end; end++)
        for (const char *type = "ch"; *type; type++) {
            snprintf(path, sizeof path, "%s/%s/%.*s.%c", DTSIM_SOURCE_DIR, folder, (int)(end - test), test, *type);
            if ((*end == '_' || *end == '.') && access(path, F_OK) == 0)
                return true;
        }
    return false;
}

/* tests/unit/ mirrors sim/, and plots/ and calibration/ too: a test is named after the module that it tests. */
static void test_unit_names(void **state)
{
    static const char *const others[] = {"plots", "calibration"};

    (void)state;
    for (size_t f = 0; f < COUNT(floors) + COUNT(others); f++) {
        const char *name = f < COUNT(floors) ? floors[f] : others[f - COUNT(floors)];
        char tests[512], folder[64];
        struct dirent **entries;

        snprintf(tests, sizeof tests, "%s/tests/unit/%s", DTSIM_SOURCE_DIR, name);
        snprintf(folder, sizeof folder, "%s%s", f < COUNT(floors) ? "sim/" : "", name);
        int count = scandir(tests, &entries, is_source, alphasort);

        for (int i = 0; i < count; i++) {
            if (!tests_a_module(folder, entries[i]->d_name))
                fail_msg("%s/%s: %s has no module of that name", tests, entries[i]->d_name, folder);
            free(entries[i]);
        }
        if (count >= 0)
            free(entries);
    }
}

/* sim/ holds the folders of the list and nothing else; a folder is small enough to be looked through. */
static void test_folders(void **state)
{
    enum { MOST = 16 };
    struct dirent **entries;
    int count = scandir(DTSIM_SOURCE_DIR "/sim", &entries, NULL, alphasort);

    (void)state;
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char folder[300];

        snprintf(folder, sizeof folder, "%s/", name);
        if (name[0] != '.' && floor_of(folder) < 0)
            fail_msg("sim/%s is no folder of the list in this test", name);
        snprintf(folder, sizeof folder, "sim/%s", name);
        if (name[0] != '.' && strcmp(name, "cli") && each_of(folder, NULL) > MOST)
            fail_msg("sim/%s holds more than %d files", name, MOST);
        free(entries[i]);
    }
    free(entries);
}

static void test_includes(void **state)
{
    (void)state;
    each_source(check_file);
}

/* Only its own file and its line of list.h name a schedule or a collective; but an all-reduce names its halves. */
static const char *const symbols[] = {
#define SCHEDULE(name) "schedule_" #name,
#include "strategies/list.h"
#undef SCHEDULE
#define COLLECTIVE(name) "collective_" #name,
#include "strategies/collectives/list.h"
#undef COLLECTIVE
};

static bool names(const char *text, const char *symbol)
{
    size_t length = strlen(symbol);

    for (const char *at = text; (at = strstr(at, symbol)); at += length)
        if ((at == text || !is_word(at[-1])) && !is_word(at[length]))
            return true;
    return false;
}

static void check_names(const char *path, const char *text)
{
    for (size_t i = 0; i < COUNT(symbols); i++) {
        char own[128];
        bool schedule = !strncmp(symbols[i], "schedule_", 9);

        snprintf(own, sizeof own, "strategies/%s%s.c", schedule ? "" : "collectives/", strchr(symbols[i], '_') + 1);
        if (strcmp(path, own) && (schedule || strncmp(path, "strategies/collectives/", 23)) && names(text, symbols[i]))
            fail_msg("%s names %s, which only %s and its list may", path, symbols[i], own);
        if (!strcmp(path, own) && !names(text, symbols[i]))
            fail_msg("%s does not define %s", path, symbols[i]);
    }
}

static void test_names(void **state)
{
    (void)state;
    each_source(check_names);
}

static void test_members(void **state)
{
    (void)state;
    each_source(check_members);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders), cmocka_unit_test(test_unit_names),
        cmocka_unit_test(test_includes), cmocka_unit_test(test_members),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests_name("layering", tests, NULL, NULL);
}
