/* entrances: through which command each kind of file comes in, for mutate.c. */
#ifndef DTSIM_ENTRANCES_H
#define DTSIM_ENTRANCES_H

#include "hardware/communication.h"
#include "hardware/gpu.h"
#include "kernels/profile.h"
#include "software/software.h"
#include "sweep/sweep.h"
#include "training/training.h"
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
#define ON_FIRST(set) {"check", FIRST, "--set", set, "--set", "simulation.engine=ideal", "--budget", "5 s"}
#define CHECK {"check", "@", "--budget", "5 s"}

static const struct entrance entrances[] = {
    {FIRST, "", TREE, "changed.yaml", CHECK, &scenario_table, ""},
    {TORTURE "sweep.yaml", "", TREE, "changed.yaml", CHECK, &sweep_table, ""},
    {HERE "scenarios/tour", ".yaml", TREE, "changed.yaml", CHECK, NULL, ""},
    {HERE "scenarios/methods", ".yaml", TREE, "changed.yaml", CHECK, NULL, ""},
    {HERE "scenarios/training", ".yaml", TREE, "changed.yaml", CHECK, NULL, ""},
    {TORTURE "train.yaml", "", TREE, "changed.yaml",
     {"train", "@", "--trials", "2", "--engine", "ideal", "--budget", "5 s", "--json"}, NULL, ""},
    {TORTURE "plan.yaml", "", TREE, "changed.yaml", {"plan", "@", "-j", "1"}, NULL, ""},
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
     {"collective", "--table", "--engine", "ideal", "@", "--budget", "5 s"}, &published_table, ""},
    {FUZZ "order_corpus", ".csv", WORDS, "changed.csv", ON_FIRST("strategy.schedule={csv: @}"), NULL, ""},
    {FUZZ "samples_corpus", ".csv", WORDS, "changed.csv", {"calibrate", "fit", "@"}, NULL, ""},
    {FUZZ "import_nccl_corpus", ".log", WORDS, "changed.log", {"import", "nccl-tests", "@"}, NULL, ""},
    {FUZZ "pipedream_profile_corpus", ".txt", WORDS, "changed.txt", {"import", "pipedream-profile", "@"}, NULL, ""},
    {FUZZ "kineto_corpus", ".json", JSON, "changed.json", {"import", "kineto", "@"}, NULL, NULL},
    {FUZZ "launch_corpus", ".txt .sh", WORDS, "changed.txt", {"import", "megatron", "@"}, NULL, ""},
    {FUZZ "job_file_corpus", ".json", JSON, "changed.json", {"import", "deepspeed", "@"}, NULL, ""},
    {FUZZ "job_file_corpus", ".toml", WORDS, "changed.toml", {"import", "torchtitan", "@"}, NULL, ""},
    {"store/shard-1-of-1.jsonl", "", LINES, "changed-store/shard-1-of-1.jsonl", {"results", "changed-store"}, NULL, "metrics."},
    {"run/result.json", "", JSON, "changed-run/result.json", {"compare", "changed-run"}, NULL, NULL},
    {"run/result.json", "", JSON, "changed-run/result.json", {"explain", "changed-run"}, NULL, NULL},
    {"run/result.json", "", JSON, "changed-run/result.json", {"trace", "changed-run", "-o", "trace.json"}, NULL, NULL},
};

#endif
