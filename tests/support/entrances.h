/* entrances: through which command each kind of file comes in, for torture/mutate.c and fuzz/command.c. */
#ifndef DTSIM_ENTRANCES_H
#define DTSIM_ENTRANCES_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "child_command.h"
#include "files/digest.h"
#include "files/json.h"
#include "hardware/communication.h"
#include "hardware/gpu.h"
#include "kernels/profile.h"
#include "scenario/train_section.h"
#include "software/software.h"
#include "sweep/sweep.h"
#include "validate/paper.h"
#include "validate/published.h"

enum { ENTRANCE_WORDS = 9 };
enum text_kind { TREE, JSON, LINES, WORDS };     /* YAML; a JSON value, or one a line; anything else */
struct entrance {
    const char *files;           /* a folder, or a file; of a folder those that end with `ends` */
    const char *ends;
    enum text_kind text;
    const char *changed;         /* the file that is written, */
    const char *words[ENTRANCE_WORDS + 1];       /* and the command that reads it: "@" in a word */
    const struct table *table;   /* of the whole file; or NULL */
    const char *judged;          /* of which keys a value of another kind must be refused: those with this part in their
                                    path; NULL: none, as the command needs few of the file */
};

#define HERE DTSIM_SOURCE_DIR "/"
#define FIRST HERE "scenarios/first.yaml"
#define TORTURE HERE "tests/torture/samples/"
#define FUZZ HERE "tests/fuzz/"
#define BUDGET "5 s"
#define ON_FIRST(set) {"check", FIRST, "--set", set, "--set", "simulation.engine=ideal", "--budget", BUDGET}
#define CHECK {"check", "@", "--budget", BUDGET}

static const struct entrance entrances[] = {
    {FIRST, "", TREE, "changed.yaml", CHECK, &scenario_table, ""},
    {TORTURE "sweep.yaml", "", TREE, "changed.yaml", CHECK, &sweep_table, ""},
    {HERE "scenarios/tour", ".yaml", TREE, "changed.yaml", CHECK, NULL, ""},
    {HERE "scenarios/methods", ".yaml", TREE, "changed.yaml", CHECK, NULL, ""},
    {HERE "scenarios/training", ".yaml", TREE, "changed.yaml", CHECK, NULL, ""},
    {TORTURE "train.yaml", "", TREE, "changed.yaml",
     {"train", "@", "--trials", "2", "--engine", "ideal", "--budget", BUDGET, "--json"}, NULL, ""},
    {TORTURE "plan.yaml", "", TREE, "changed.yaml", {"plan", "@", "-j", "1", "--budget", BUDGET}, NULL, ""},
    {HERE "scenarios/plan", ".yaml", TREE, "changed.yaml", CHECK, NULL, ""},
    {HERE "scenarios/sweeps", ".yaml", TREE, "changed.yaml", CHECK, NULL, ""},
    {HERE "scenarios/models", ".yaml", TREE, "changed.yaml", ON_FIRST("model={preset: @}"), NULL, ""},
    {FUZZ "hf_config_corpus", ".json", JSON, "changed.json", ON_FIRST("model={hf_config: @}"), NULL, NULL},
    {HERE "platforms", ".yaml", TREE, "changed.yaml", ON_FIRST("cluster=@"), &cluster_table, ""},
    {HERE "platforms/gpus", ".yaml", TREE, "changed.yaml", ON_FIRST("cluster.gpu=@"), &gpu_table, ""},
    {HERE "platforms/communication", ".yaml", TREE, "changed.yaml", ON_FIRST("cluster.communication=@"),
     &communication_table, ""},
    {HERE "platforms/networks", ".yaml", TREE, "changed.yaml", ON_FIRST("cluster.network.name=@"), NULL, ""},
    {HERE "platforms/software", ".yaml", TREE, "changed.yaml", ON_FIRST("software=@"), &software_file_table, ""},
    {HERE "platforms/failures", ".yaml", TREE, "changed.yaml", ON_FIRST("train={steps: 9, failures: {source: @}}"),
     &failures_file_table, ""},
    {HERE "calibration/data", ".yaml", TREE, "changed.yaml", ON_FIRST("costs={gpu: calibrated, profile: @}"),
     &profile_table, ""},
    {HERE "scenarios/paper", ".yaml", TREE, "changed.yaml", {"validate", "--rows=", "@"}, &paper_table, NULL},
    {HERE "scenarios/paper/collectives/a100-8.yaml", "", TREE, "changed.yaml",
     {"collective", "--table", "--engine", "ideal", "@", "--budget", BUDGET}, &published_table, ""},
    {FUZZ "order_corpus", ".csv", WORDS, "changed.csv", ON_FIRST("strategy.schedule={csv: @}"), NULL, ""},
    {FUZZ "order_corpus", ".csv", WORDS, "changed.csv", {"import", "pytorch-schedule", "@"}, NULL, ""},
    {FUZZ "samples_corpus", ".csv", WORDS, "changed.csv", {"calibrate", "fit", "@"}, NULL, ""},
    {FUZZ "import_nccl_corpus", ".log", WORDS, "changed.log", {"import", "nccl-tests", "@"}, NULL, ""},
    {FUZZ "pipedream_profile_corpus", ".txt", WORDS, "changed.txt", {"import", "pipedream-profile", "@"}, NULL, ""},
    {FUZZ "kineto_corpus", ".json", JSON, "changed.json", {"import", "kineto", "@"}, NULL, NULL},
    {FUZZ "launch_corpus", ".txt .sh", WORDS, "changed.txt", {"import", "megatron", "@"}, NULL, ""},
    {FUZZ "job_file_corpus", ".json", JSON, "changed.json", {"import", "deepspeed", "@"}, NULL, ""},
    {FUZZ "job_file_corpus", ".toml", WORDS, "changed.toml", {"import", "torchtitan", "@"}, NULL, ""},
    {FUZZ "job_file_corpus/bridge.yaml", "", TREE, "changed.yaml", {"import", "bridge", "@"}, NULL, NULL},
    {FUZZ "job_file_corpus/nemo.yaml", "", TREE, "changed.yaml", {"import", "nemo", "@"}, NULL, NULL},
    {FUZZ "failure_trace_corpus", ".csv", WORDS, "changed.csv", ON_FIRST("train={steps: 9, failures: {trace: @}}"), NULL, ""},
    {TORTURE "anchors.yaml", "", TREE, "changed.yaml",
     {"run", TORTURE "anchored.yaml", "--anchor", "@", "--engine", "ideal", "--budget", BUDGET}, NULL, NULL},
    {"store/shard-1-of-1.jsonl", "", LINES, "changed-store/shard-1-of-1.jsonl", {"results", "changed-store"}, NULL, "metrics."},
    {"run/result.json", "", JSON, "changed-run/result.json", {"compare", "changed-run"}, NULL, NULL},
    {"run/result.json", "", JSON, "changed-run/result.json", {"explain", "changed-run"}, NULL, NULL},
    {"run/result.json", "", JSON, "changed-run/result.json", {"trace", "changed-run", "-o", "trace.json"}, NULL, NULL},
    {"tables/spans.tsv", "", WORDS, "changed-tables/spans.tsv",
     {"trace", "changed-tables", "--all", "-o", "trace.json"}, NULL, NULL},
    {"tables/groups.tsv", "", WORDS, "changed-groups/groups.tsv",
     {"report", "changed-groups", "-o", "page.html"}, NULL, NULL},
    {"tables/memory.tsv", "", WORDS, "changed-memory/memory.tsv",
     {"trace", "changed-memory", "-o", "trace.json"}, NULL, NULL},
    {"tables/utilization.tsv", "", WORDS, "changed-utilization/utilization.tsv",
     {"report", "changed-utilization", "-o", "page.html"}, NULL, NULL},
    {"tables/links.tsv", "", WORDS, "changed-links/links.tsv", {"report", "changed-links", "-o", "page.html"}, NULL, NULL},
    {"planned/shard-1-of-1.jsonl", "", LINES, "changed-planned/shard-1-of-1.jsonl", {"results", "changed-planned"}, NULL,
     "metrics."},
    {"planned/plan.json", "", JSON, "changed-planned/plan.json", {"report", "changed-planned", "-o", "page.html"}, NULL, NULL},
};

/* Results to be changed, in the folder at hand: the rows of a sweep and of a plan, and folders of runs, one for each table
 * that is changed. */
static inline void entrances_prepare(void)
{
    static const char *const commands[][8] = {
        {"sweep", TORTURE "sweep.yaml", "-j", "1", "-o", "store"},
        {"run", FIRST, "--engine", "ideal", "-o", "run"},
        {"run", FIRST, "--engine", "ideal", "-o", "changed-run"},
        {"run", TORTURE "train.yaml", "--engine", "ideal", "-o", "tables"},
        {"run", TORTURE "train.yaml", "--engine", "ideal", "-o", "changed-tables"},
        {"run", TORTURE "train.yaml", "--engine", "ideal", "-o", "changed-groups"},
        {"run", TORTURE "train.yaml", "--engine", "ideal", "-o", "changed-memory"},
        {"run", TORTURE "train.yaml", "--engine", "ideal", "-o", "changed-utilization"},
        {"run", TORTURE "train.yaml", "--engine", "ideal", "-o", "changed-links"},
        {"plan", TORTURE "plan.yaml", "-j", "1", "-o", "planned"},
        {"plan", TORTURE "plan.yaml", "-j", "1", "-o", "changed-planned"},
    };

    for (size_t i = 0; i < COUNT(commands); i++) {
        pid_t pid = child_fork();
        int status;

        if (!pid) {
            if (!freopen("/dev/null", "wb", stdout) || !freopen("/dev/null", "wb", stderr))
                _exit(99);
            _exit(command_code(commands[i]));
        }
        if (waitpid(pid, &status, 0) != pid || status != 0)
            BUG("dtsim %s: exit code %d", commands[i][0], WEXITSTATUS(status));
    }
    BUG_IF(mkdir("changed-store", 0700));
}

static inline int entrance_by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The paths of the entrance's files, which the arena keeps; ends in NULL. */
static inline const char **entrance_files(struct arena *arena, const struct entrance *entrance)
{
    struct dirent **list;
    struct stat st;
    const char **paths;
    size_t found = 0;
    int count;

    if (!stat(entrance->files, &st) && S_ISREG(st.st_mode)) {
        paths = ARENA_ARRAY(arena, const char *, 2);
        paths[0] = entrance->files;
        paths[1] = NULL;
        return paths;
    }
    count = scandir(entrance->files, &list, NULL, entrance_by_name);
    if (count < 0)
        BUG("%s: no such folder", entrance->files);
    paths = ARENA_ARRAY(arena, const char *, (size_t)count + 1);
    for (int i = 0; i < count; i++) {
        const char *ends = strrchr(list[i]->d_name, '.');

        paths[found] = arena_printf(arena, "%s/%s", entrance->files, list[i]->d_name);
        if (!stat(paths[found], &st) && S_ISREG(st.st_mode) && ends && word_in(entrance->ends, ends))
            found++;
        free(list[i]);
    }
    free(list);
    BUG_IF(!found);
    paths[found] = NULL;
    return paths;
}

/* Writes the changed file. A table's new digest goes into its result.json, so that the table itself is read. */
static inline void entrance_write(const struct entrance *entrance, const void *data, size_t size)
{
    const char *slash = strchr(entrance->changed, '/');
    FILE *out = fopen(entrance->changed, "wb");
    char path[256], name[256], hex[DIGEST_HEX];
    struct digest digest;
    json_t *result;

    BUG_IF(!out || fwrite(data, 1, size, out) != size);
    BUG_IF(fclose(out));
    if (!slash || strcmp(entrance->changed + strlen(entrance->changed) - 4, ".tsv"))
        return;
    snprintf(path, sizeof path, "%.*s/result.json", (int)(slash - entrance->changed), entrance->changed);
    snprintf(name, sizeof name, "%.*s", (int)strlen(slash) - 5, slash + 1);
    digest_init(&digest);
    digest_add(&digest, data, size);
    result = json_load_file(path, 0, NULL);
    BUG_IF(!result);
    json_put(json_object_get(result, "tables_xxh128"), name, json_string(digest_end(&digest, hex)));
    BUG_IF(json_dump_file(result, path, 0));
    json_decref(result);
}

/* Runs the entrance's command on the changed file in this process, within a budget where it has one; its exit code. */
static inline int entrance_run(const struct entrance *entrance, const char *budget)
{
    struct arena arena = {0};
    const char *words[ENTRANCE_WORDS + 1] = {NULL};
    int code;

    for (size_t i = 0; entrance->words[i]; i++) {
        const char *word = strcmp(entrance->words[i], BUDGET) ? entrance->words[i] : budget, *at = strchr(word, '@');

        words[i] = at ? arena_printf(&arena, "%.*s%s%s", (int)(at - word), word, entrance->changed, at + 1) : word;
    }
    code = command_code(words);
    arena_release(&arena);
    return code;
}

#endif
