/* Who may include whom, read off the sources: what keeps a schedule, a collective, an engine or a chart to itself. */
#include "sources.h"

#include <sys/stat.h>

/* What the order of rooms does not say: who alone sees a library, and who sees less than all that is before it. */
struct library_rule {
    const char *files;               /* a path's beginning, below the sources */
    const char *except;              /* of these names (between spaces), or NULL */
    const char *may;                 /* beginnings of this program's headers it may include (between spaces), or NULL:
                                      * any */
    const char *may_not;             /* beginnings of headers it must not include (between spaces), or NULL */
};

static const struct library_rule rules[] = {
    {"", " sim/lib/config/conf.c ", NULL, " yaml.h "},
    {"", " sim/faces/modules/simgrid.c sim/faces/modules/simgrid_reader.c ", NULL, " simgrid/ xbt/ "},
    {"", " sim/faces/modules/mpi.c ", NULL, " mpi.h "},
    {"", " sim/lib/files/packed.c ", NULL, " zlib.h "},
    {"sim/output/tables/recorded", NULL, " base/ files/ tables/recorded.h ", NULL},
    {"sim/faces/page/", NULL, " base/ files/ view/ store/store.h results/ tables/recorded.h page/ ", NULL},
    {"sim/output/trace/", NULL, " base/ files/ tables/recorded.h trace/ ", NULL},
    {"", " sim/faces/modules/sqlite.c ", NULL, " sqlite3.h "},
    {"", " sim/faces/modules/http.c ", NULL, " microhttpd.h "},
    {"sim/faces/modules/http", NULL, " base/ app/http.h ", NULL},
    {"", " sim/many/calibrate/fit.c sim/many/validate/validation.c ", NULL, " gsl/ "},
    {"", " calibration/ ", NULL, " cuda cublas cudnn nccl "},
    {"calibration/", NULL, " base/ bench_options.h case.h case_list.h device.h device_kernels.h flash_graph.h "
     "flash_plan.h format.h kernels.h product.h reference.h reference_product.h sample.h statistics.h ", NULL},
    {"calibration/case", NULL, " base/ case.h case_list.h format.h kernels.h ", " cuda "},
    {"calibration/format", NULL, " base/ format.h ", " cuda "},
    {"strategies/collectives/", NULL, " collective/collective.h fold.h once_round.h pieces.h rooted.h ", NULL},
    {"strategies/blocks/", NULL, " model/operator.h ", NULL},
    {"strategies/", " strategies/blocks/ strategies/collectives/ ", " base/ schedule/schedule.h ", NULL},  /* and headers of that folder */
    {"plots/", NULL, " base/ files/ chart.h curves.h gantt.h heat.h list.h pareto.h plot.h records.h rows.h ", NULL},
    {"sim/machine/engine/", NULL, " base/ process/ topology/simgrid_file.h hardware/cluster.h engine/ ", NULL},
    {"sim/machine/engine/flows", NULL, " base/ hardware/cluster.h engine/event_heap.h engine/sharing.h engine/flows ", NULL},
    {"sim/faces/modules/simgrid", NULL, " base/ process/child.h topology/simgrid_file.h hardware/cluster.h engine/ modules/simgrid_ ", NULL},
    {"sim/faces/cli/", NULL, NULL, " modules/ "},
    {"sim/machine/engine/program", NULL, " base/ engine/program ", NULL},
    {"sim/machine/collective/", NULL, " base/ topology/torus.h hardware/cluster.h engine/ collective/ strategies/collectives/list.h ", NULL},
    {"sim/job/schedule/", NULL, " base/ config/field.h schedule/ strategies/list.h ", NULL},
    {"sim/iteration/run/metric", NULL, " base/ files/json.h view/view.h hardware/precision.h model/model.h engine/program.h schedule/schedule.h evidence/anchor.h "
     "scenario/scenario.h stage/memory.h workload/workload.h lower/lower.h lower/window.h run/energy.h run/account.h "
     "run/metrics.h run/certainty.h ", " kernels/ "},
    {"sim/many/calibrate/fit", NULL, " base/ calibrate/fit.h ", NULL},
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

/* The place of a path's room in the list; -1: it is none of them. `in` is where the path begins: "sim/", or "" for the path of
 * an include, which does not say the wing. */
static int place_of(const char *path, const char *in)
{
    for (size_t i = 0; i < COUNT(rooms); i++) {
        const char *room = *in ? rooms[i] : strchr(rooms[i], '/') + 1;
        size_t length = strlen(room);

        if (!strncmp(path, in, strlen(in)) && !strncmp(path + strlen(in), room, length) &&
            path[strlen(in) + length] == '/')
            return (int)i;
    }
    return -1;
}

/* A file of sim/ includes files of its room or of rooms before it, by room and name; private headers only of its room. The
 * lists of strategies are the exception, as they stand for all schedules, collectives and parts of layers. */
static void check_room(const char *path, const char *header)
{
    int own = place_of(path, "sim/"), other = place_of(header, "");

    if (own < 0)
        fail_msg("%s stands in no room of the list in sources.h", path);
    if (!strcmp(header, own == place_of("schedule/", "") ? "strategies/list.h" : "strategies/collectives/list.h") &&
        (own == place_of("schedule/", "") || own == place_of("collective/", "")))
        return;
    if (!strcmp(header, "strategies/blocks/list.h") && own == place_of("model/", ""))
        return;
    if (!strncmp(header, "plots/", 6) && own == place_of("cli/", ""))
        return;
    if (other < 0)
        fail_msg("%s includes %s; expected a room of sim/ and a name", path, header);
    if (other > own)
        fail_msg("%s includes %s, which stands behind it in the list of sources.h", path, header);
    if (other != own && strstr(header, "_internal.h"))
        fail_msg("%s includes %s, which is private to its room", path, header);
}

static void check_include(const struct library_rule *rule, const char *path, const char *header, bool own)
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
            check_room(path, header);
        for (size_t i = 0; i < COUNT(rules); i++)
            if (!strncmp(path, rules[i].files, strlen(rules[i].files)) && !listed(rules[i].except, path))
                check_include(&rules[i], path, header, open == '"');
    }
}

/* What only the files of a path read or do, in sim/: others ask a function. */
static const struct { const char *path, *text, *expected; } privates[] = {
    {"sim/machine/hardware/", "cluster->kinds", "a function of hardware/cluster.h"},
    {"sim/machine/hardware/", "cluster->part", "a function of hardware/cluster.h"},
    {"sim/machine/hardware/", "cluster->network", "a function of hardware/cluster.h"},
    {"sim/machine/hardware/", "->cluster.kinds", "a function of hardware/cluster.h"},
    {"sim/machine/hardware/", "->cluster.part", "a function of hardware/cluster.h"},
    {"sim/machine/hardware/", "->cluster.network", "a function of hardware/cluster.h"},
    {"sim/job/scenario/", "parallelism.tensor", "scenario_tensor of a rank, or scenario_most_tensor"},
    {"sim/job/scenario/", "spec->tensor", "scenario_tensor of a rank, or scenario_most_tensor"},
    {"sim/job/scenario/", "struct scenario scenario = *", "scenario_settled"},
    {"sim/job/ sim/iteration/run/attempt.c", "scenario_vary(", "an attempt"},
};

static void check_privates(const char *path, const char *text)
{
    for (size_t i = 0; i < COUNT(privates) && !strncmp(path, "sim/", 4); i++) {
        const char *own = privates[i].path, *other = strchr(own, ' ');
        size_t length = strcspn(own, " ");

        if (strncmp(path, own, length) && (!other || strcmp(path, other + 1)) && strstr(text, privates[i].text))
            fail_msg("%s has %s; expected %s", path, privates[i].text, privates[i].expected);
    }
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
    for (size_t f = 0; f < COUNT(rooms) + COUNT(others); f++) {
        const char *name = f < COUNT(rooms) ? rooms[f] : others[f - COUNT(rooms)];
        char tests[512], folder[64];
        struct dirent **entries;

        snprintf(tests, sizeof tests, "%s/tests/unit/%s", DTSIM_SOURCE_DIR, name);
        snprintf(folder, sizeof folder, "%s%s", f < COUNT(rooms) ? "sim/" : "", name);
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

/* Folders of a folder of the sources, each with its path below them. */
static void each_folder(const char *folder, void (*check)(const char *path))
{
    char path[600];
    struct dirent **entries;
    struct stat status;

    snprintf(path, sizeof path, "%s/%s", DTSIM_SOURCE_DIR, folder);
    int count = scandir(path, &entries, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", DTSIM_SOURCE_DIR, folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && !stat(path, &status) && S_ISDIR(status.st_mode))
            check(path + strlen(DTSIM_SOURCE_DIR) + 1);
        free(entries[i]);
    }
    assert_true(count > 0);
    free(entries);
}

static void check_is_room(const char *path)
{
    char inside[640];

    snprintf(inside, sizeof inside, "%s/", path);
    if (place_of(inside, "sim/") < 0)
        fail_msg("%s is no room of the list in sources.h", path);
}

static void check_wing(const char *path)
{
    each_folder(path, check_is_room);
}

/* Wings hold the rooms of the list and nothing else. */
static void test_rooms(void **state)
{
    (void)state;
    each_folder("sim", check_wing);
}

/* No two files of sim/ have one name, and no two structs of its headers: a name says which. */
static struct { char name[64], path[128]; } taken[4096];
static size_t taken_count;

static void take(const char *name, size_t length, const char *path)
{
    assert_true(taken_count < COUNT(taken) && length < sizeof taken->name);
    for (size_t i = 0; i < taken_count; i++)
        if (strlen(taken[i].name) == length && !strncmp(name, taken[i].name, length))
            fail_msg("%s: %s is also a name of %s", path, taken[i].name, taken[i].path);
    snprintf(taken[taken_count].name, sizeof taken->name, "%.*s", (int)length, name);
    snprintf(taken[taken_count++].path, sizeof taken->path, "%s", path);
}

static void take_names(const char *path, const char *text)
{
    static const char begin[] = "\nstruct ";
    const char *name = strrchr(path, '/') + 1;

    if (strncmp(path, "sim/", 4))
        return;
    take(name, strlen(name), path);
    for (const char *at = strstr(name, ".h") ? strstr(text, begin) : NULL; at; at = strstr(at + 1, begin)) {
        const char *word = at + strlen("\n");
        size_t length = strcspn(word, "{;(*\n");

        if (word[length] == '{')
            take(word, length, path);
    }
}

static void test_unique(void **state)
{
    (void)state;
    each_source(take_names);
    assert_true(taken_count > 1000);
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
    each_source(check_privates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rooms), cmocka_unit_test(test_unique), cmocka_unit_test(test_unit_names),
        cmocka_unit_test(test_includes), cmocka_unit_test(test_members),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests_name("layering", tests, NULL, NULL);
}
