/* Who may include whom, read off the sources: what keeps a schedule, a collective, an engine or a chart to itself. */
#include "simulated.h"

#include <dirent.h>

struct rule {
    const char *files;               /* a path's beginning, below the sources */
    const char *except;              /* of these names (between spaces), or NULL */
    const char *may;                 /* own headers it may include (between spaces), or NULL: any */
    const char *may_not;             /* beginnings of headers it must not include (between spaces), or NULL */
};

static const struct rule rules[] = {
    {"", " sim/conf.c ", NULL, " yaml.h "},
    {"", " sim/replay_simgrid.c ", NULL, " simgrid/ xbt/ "},
    {"", " sim/fit.c sim/validation.c ", NULL, " gsl/ "},
    {"sim/fit", NULL, " base.h fit.h ", NULL},
    {"sim/kernel_time", NULL, " kernel_time.h cost.h ", NULL},
    {"", " calibration/ ", NULL, " cuda cublas cudnn nccl "},
    {"calibration/", NULL, " base.h bench_options.h case.h device.h device_kernels.h flash_graph.h flash_plan.h "
     "kernels.h reference.h sample.h statistics.h ", NULL},
    {"calibration/case", NULL, " base.h case.h kernels.h ", " cuda "},
    {"strategies/collectives/", NULL, " collective.h fold.h once_round.h pieces.h list.h ", NULL},
    {"strategies/", " strategies/collectives/ ", " schedule.h base.h ", NULL},      /* and headers of that folder */
    {"plots/", NULL, " base.h chart.h fit_chart.h gantt.h plot.h tsv.h ", NULL},
    {"sim/replay", NULL, " base.h program.h cluster.h agenda.h child.h replay.h replay_simgrid.h ", NULL},
    {"sim/agenda", NULL, " base.h program.h cluster.h agenda.h ", NULL},
    {"sim/child", NULL, " base.h child.h ", NULL},
    {"sim/platform", NULL, " base.h cluster.h replay.h ", NULL},
    {"sim/metrics", NULL, " metrics.h lower.h memory.h base.h ", " simgrid/ cost.h "},
    {"sim/memory", " sim/memory_advice.c ", " memory.h memory_advice.h metrics.h stage.h program.h base.h ",
     " simgrid/ cost.h "},
    {"sim/program", NULL, " base.h program.h ", NULL},
    {"sim/schedule", NULL, " schedule.h field.h base.h list.h ", NULL},
    {"sim/order", NULL, " order.h order_internal.h schedule.h base.h ", NULL},
    {"sim/collective", NULL, " base.h program.h cluster.h collective.h drawing.h seating.h collectives/list.h ", NULL},
    {"sim/base", NULL, " base.h ", NULL},
    {"sim/units", NULL, " base.h units.h ", NULL},
    {"sim/conf", NULL, " base.h conf.h conf_node.h conf_text.h units.h ", NULL},
};

static const char *const folders[] = {"sim", "plots", "strategies", "strategies/collectives", "calibration"};

/* Whether one of the words between spaces is `name`, or (whole false) is how it begins. */
static bool listed(const char *words, const char *name, bool whole)
{
    for (const char *word = words, *end; word && *++word; word = end) {
        end = strchr(word, ' ');
        if (!end)
            return false;
        if (!strncmp(word, name, (size_t)(end - word)) && (!whole || !name[end - word]))
            return true;
    }
    return false;
}

static void check_include(const struct rule *rule, const char *path, const char *header, bool own)
{
    char beside[512];

    snprintf(beside, sizeof beside, "%s/strategies/%s", DTSIM_SOURCE_DIR, header);
    if (own && !strncmp(path, "strategies/", 11) && access(beside, F_OK) == 0)
        return;
    if (listed(rule->may_not, header, false) || (own && rule->may && !listed(rule->may, header, true)))
        fail_msg("%s includes %s; the rule is: %s%s%s%s", path, header, rule->may ? "only" : "",
                 rule->may ? rule->may : "", rule->may_not ? " never" : "", rule->may_not ? rule->may_not : "");
}

static void check_file(const char *path, const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char header[128], open;

        if (sscanf(line, "#include %c%127[^>\"\n]", &open, header) != 2)
            continue;
        for (size_t i = 0; i < COUNT(rules); i++)
            if (!strncmp(path, rules[i].files, strlen(rules[i].files)) && !listed(rules[i].except, path, false))
                check_include(&rules[i], path, header, open == '"');
    }
}

static int is_source(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot && (!strcmp(dot, ".c") || !strcmp(dot, ".h"));
}

/* Calls `check` for every source with its path below the sources and its text. */
static void each_source(void (*check)(const char *path, const char *text))
{
    int files = 0;

    for (size_t f = 0; f < COUNT(folders); f++) {
        struct dirent **entries;
        char folder[512], path[1024];
        int count;

        snprintf(folder, sizeof folder, "%s/%s", DTSIM_SOURCE_DIR, folders[f]);
        count = scandir(folder, &entries, is_source, alphasort);
        assert_true(count > 0);
        for (int i = 0; i < count; i++, files++) {
            char *text;

            snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
            text = read_file(path);
            check(path + strlen(DTSIM_SOURCE_DIR) + 1, text);
            free(text);
            free(entries[i]);
        }
        free(entries);
    }
    assert_true(files > 50);
}

static void test_includes(void **state)
{
    (void)state;
    each_source(check_file);
}

/* A schedule or a collective is named by its own file and by its line of list.h, by nobody else. */
static const char *const symbols[] = {
#define SCHEDULE(name) "strategy_" #name,
#include "list.h"
#undef SCHEDULE
#define COLLECTIVE(name) "collective_" #name,
#include "collectives/list.h"
#undef COLLECTIVE
};

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

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
        bool schedule = !strncmp(symbols[i], "strategy_", 9);

        snprintf(own, sizeof own, "strategies/%s%s.c", schedule ? "" : "collectives/", strchr(symbols[i], '_') + 1);
        if (strcmp(path, own) && names(text, symbols[i]))
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_includes),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests_name("layering", tests, NULL, NULL);
}
