/* launch_ranks: how many processes a launch starts, on how many nodes, as the programs that start them say it: torchrun,
 * srun and the #SBATCH lines of its job, qsub and its #PBS lines, mpirun, deepspeed, accelerate. Each process has one GPU.
 * Defaults:
 *
 *   torchrun       --nnodes 1, --nproc_per_node 1 (docs.pytorch.org/docs/stable/elastic/run.html)
 *   srun           one task a node (slurm.schedmd.com/srun.html); options that it is not given are those of #SBATCH
 *   deepspeed      all GPUs of this node, or of those of a hostfile (deepspeed.ai/getting-started)
 *   accelerate     what its configuration file says */
#include "launch/launch_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

enum { UNSAID = 0, UNKNOWN = -1, ALL = -2, MOST = 1 << 20 };      /* instead of a number; ALL: all GPUs of a node */

struct words { const struct launch_word *items; size_t count; };
/* A number that a launch says; 0: it does not; below 0: it is not known. */
struct launch_number { long long value; struct loc loc; const char *unknown; };    /* unknown: what holds it, or NULL */
/* What Slurm or PBS is asked for: nodes, tasks, tasks a node, GPUs a node. */
struct launch_slurm { struct launch_number nodes, tasks, per_node, gpus; };

bool launch_same_name(const char *said, const char *name)
{
    while (*said && (*said == *name || (*said == '_' && *name == '-'))) {
        said++;
        name++;
    }
    return !*said && !*name;
}

/* A number of nodes, tasks or GPUs; "h100:8" and "gpu:h100:8" too. */
static long long number(const char *text)
{
    const char *colon = strrchr(text, ':');
    char *end;
    long long value = strtoll(colon && !isdigit((unsigned char)*text) ? colon + 1 : text, &end, 10);

    if (!strcmp(text, "gpu") || !strcmp(text, "auto"))
        return ALL;
    if (!strncmp(end, ":", 1) && strtoll(end + 1, &end, 10) != value)
        return UNKNOWN;
    return !*end && value > 0 && value <= MOST ? value : UNKNOWN;
}

/* What a word says of an option (-N4, --nodes=4, or by the next word); NULL: it is another one. */
static const char *value_of(struct arena *arena, const struct launch_word *word, bool last, const char *name)
{
    const char *text = word->text, *equals = strchr(text, '=');

    if (equals && *text == '-' && launch_same_name(arena_strndup(arena, text, (size_t)(equals - text)), name))
        return equals + 1;
    if (launch_same_name(text, name))
        return last ? NULL : word[1].text;
    return strlen(name) == 2 && !strncmp(text, name, 2) && isdigit((unsigned char)text[2]) ? text + 2 : NULL;
}

/* The value of the last option of those names ("-N --nodes") among the words; NULL: none is there. */
static const struct launch_word *find(struct arena *arena, struct words words, const char *names)
{
    struct launch_word *found = NULL;

    for (size_t i = 0; i < words.count; i++)
        for (const char *at = names; *at; at += strcspn(at, " "), at += *at == ' ') {
            const char *name = arena_strndup(arena, at, strcspn(at, " "));
            const char *value = value_of(arena, &words.items[i], i + 1 == words.count, name);

            if (value) {
                found = arena_alloc(arena, sizeof *found);
                *found = (struct launch_word){value, words.items[i].loc};
            }
        }
    return found;
}

static void take(struct arena *arena, struct words words, const char *names, struct launch_number *to)
{
    const struct launch_word *word = find(arena, words, names);

    if (word)
        *to = (struct launch_number){number(word->text), word->loc, launch_unknown(arena, word->text)};
}

/* --gres=gpu:8,nvme:1: the part of the GPUs. */
static void take_gres(struct arena *arena, struct words words, struct launch_number *to)
{
    const struct launch_word *word = find(arena, words, "--gres");
    const char *gpu = word ? strstr(word->text, "gpu") : NULL;

    if (gpu)
        *to = (struct launch_number){.value = gpu[3] == ':' ? number(arena_strndup(arena, gpu, strcspn(gpu, ",("))) : 1,
                                     .loc = word->loc};
}

/* "4" behind one of those names ("select= nodes=") in PBS's list, -l select=4:ngpus=8. */
static void take_listed(const struct launch_word *list, const char *first, const char *second, struct launch_number *to)
{
    const char *at = strstr(list->text, first);

    at = at ? at + strlen(first) : (at = strstr(list->text, second)) ? at + strlen(second) : NULL;
    if (at && strtoll(at, NULL, 10) > 0 && strtoll(at, NULL, 10) <= MOST)
        *to = (struct launch_number){.value = strtoll(at, NULL, 10), .loc = list->loc};
}

static void read_slurm(struct arena *arena, struct words words, struct launch_slurm *slurm)
{
    for (size_t i = 0; i + 1 < words.count; i++)
        if (!strcmp(words.items[i].text, "-l")) {
            take_listed(&words.items[i + 1], "select=", "nodes=", &slurm->nodes);
            take_listed(&words.items[i + 1], "mpiprocs=", "ppn=", &slurm->per_node);
            take_listed(&words.items[i + 1], "ngpus=", "gpus=", &slurm->gpus);
        }
    take(arena, words, "-N --nodes", &slurm->nodes);
    take(arena, words, "-n --ntasks", &slurm->tasks);
    take(arena, words, "--ntasks-per-node --tasks-per-node", &slurm->per_node);
    take_gres(arena, words, &slurm->gpus);
    take(arena, words, "--gpus-per-node", &slurm->gpus);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The program that starts processes which a word names; NULL: none. */
static const char *starter(const char *text)
{
    static const struct { const char *word, *name; } names[] = {
        {"torchrun", "torchrun"}, {"torch.distributed.run", "torchrun"}, {"torch.distributed.launch", "torchrun"},
        {"srun", "srun"}, {"sbatch", "sbatch"}, {"salloc", "sbatch"}, {"qsub", "sbatch"}, {"mpirun", "mpirun"}, {"mpiexec", "mpirun"},
        {"mpiexec.hydra", "mpirun"}, {"orterun", "mpirun"}, {"prun", "mpirun"}, {"aprun", "mpirun"}, {"ibrun", "srun"}, {"deepspeed", "deepspeed"},
        {"accelerate", "accelerate"},
    };

    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(last_part(text), names[i].word))
            return names[i].name;
    return NULL;
}

/* What the starters of a launch say. */
struct starters {
    struct arena *arena;
    struct launch *launch;
    struct launch_slurm slurm;
    struct launch_number nodes, per_node, world;
    bool srun, processes;                    /* processes: a starter says how many there are */
    bool vague;                              /* what a variable holds is not known; it may be options */
};

static void read_torchrun(struct starters *s, struct words words, struct loc loc)
{
    s->nodes = s->per_node = (struct launch_number){.value = UNSAID, .loc = loc};
    take(s->arena, words, "--nnodes", &s->nodes);
    take(s->arena, words, "--nproc-per-node", &s->per_node);
    if (!s->nodes.value && !s->vague)
        s->nodes.value = 1;
    if (!s->per_node.value && !s->vague)
        s->per_node.value = 1;
    s->processes = true;
}

static void read_mpirun(struct starters *s, struct words words)
{
    const struct launch_word *map = find(s->arena, words, "--map-by -map-by");
    const char *ppr = map ? strstr(map->text, "ppr:") : NULL;

    take(s->arena, words, "-np --np -n -c", &s->world);
    take(s->arena, words, "-npernode --npernode -N -ppn --ppn -perhost", &s->per_node);
    if (ppr && strstr(ppr, ":node"))
        s->per_node = (struct launch_number){.value = strtoll(ppr + 4, NULL, 10), .loc = map->loc};
    if (s->world.value > 0 && s->per_node.value > 0)
        s->nodes = (struct launch_number){.value = (s->world.value + s->per_node.value - 1) / s->per_node.value, .loc = s->world.loc};
    s->processes = true;
}

static void read_deepspeed(struct starters *s, struct words words, struct loc loc)
{
    bool hosts = find(s->arena, words, "-H --hostfile -i --include -e --exclude") != NULL;

    s->nodes = s->per_node = (struct launch_number){.value = UNSAID, .loc = loc};
    take(s->arena, words, "--num-nodes", &s->nodes);
    take(s->arena, words, "--num-gpus", &s->per_node);
    if (!s->nodes.value)
        s->nodes.value = hosts || s->vague || !s->per_node.value ? UNKNOWN : 1;
    if (!s->per_node.value)
        s->per_node.value = hosts || s->vague ? UNKNOWN : ALL;
    s->processes = true;
}

static void read_accelerate(struct starters *s, struct words words)
{
    take(s->arena, words, "--num-processes", &s->world);
    take(s->arena, words, "--num-machines", &s->nodes);
    if (s->world.value > 0 && s->nodes.value > 0 && s->world.value % s->nodes.value == 0)
        s->per_node = (struct launch_number){.value = s->world.value / s->nodes.value, .loc = s->world.loc};
    s->processes = true;
}

/* Each starter has the words up to the next one. */
static void read_starters(struct starters *s, struct words words)
{
    for (size_t i = 0; i < words.count; i++) {
        const char *name = starter(words.items[i].text);
        struct words own = {words.items + i + 1, 0};

        if (!name)
            continue;
        while (i + 1 + own.count < words.count && !starter(own.items[own.count].text))
            own.count++;
        s->vague = false;
        for (size_t k = 0; k < own.count; k++)
            s->vague |= own.items[k].text[0] == MARK_BEGIN && (!k || own.items[k - 1].text[0] != '-' ||
                                                              strchr(own.items[k - 1].text, '='));
        if (!strcmp(name, "srun") || !strcmp(name, "sbatch"))
            read_slurm(s->arena, own, &s->slurm);
        s->srun |= !strcmp(name, "srun");
        if (!strcmp(name, "torchrun"))
            read_torchrun(s, own, words.items[i].loc);
        else if (!strcmp(name, "mpirun"))
            read_mpirun(s, own);
        else if (!strcmp(name, "deepspeed"))
            read_deepspeed(s, own, words.items[i].loc);
        else if (!strcmp(name, "accelerate"))
            read_accelerate(s, own);
    }
}

/* srun PROGRAM: each task is a process. */
static void count_tasks(struct starters *s)
{
    const struct launch_slurm *slurm = &s->slurm;

    s->nodes = slurm->nodes;
    s->per_node = slurm->per_node;
    s->world = slurm->tasks;
    if (!s->per_node.value && s->nodes.value > 0 && s->world.value > 0 && s->world.value % s->nodes.value == 0)
        s->per_node = (struct launch_number){.value = s->world.value / s->nodes.value, .loc = s->world.loc};
    else if (!s->per_node.value && !s->world.value && s->nodes.value)
        s->per_node = (struct launch_number){.value = 1, .loc = s->nodes.loc};
}

/* What Slurm says instead of what is not known. Where both say it they must agree. */
static void compare(struct starters *s, struct launch_number *said, const struct launch_number *slurm, const char *name,
                    const char *what)
{
    if (slurm->value <= 0)
        return;
    if (said->value == UNKNOWN || said->value == ALL || (!said->value && s->vague)) {
        launch_warn(s->launch, s->arena, slurm->loc, "%lld %s are taken, as Slurm is asked for; the launch says it by what is "
                    "not known here", slurm->value, what);
        *said = *slurm;
    } else if (said->value > 0 && said->value != slurm->value) {
        *GROW(&s->launch->doubts) = (struct launch_doubt){
            name, arena_printf(s->arena, "Slurm is asked for %lld %s in line %d; the launch in line %d is for %lld", slurm->value,
                               what, slurm->loc.line, said->loc.line, said->value), said->loc};
    }
}

static void put(struct starters *s, const char *name, const struct launch_number *number)
{
    struct launch_argument *argument;

    if (number->value <= 0 && number->unknown)
        *GROW(&s->launch->doubts) = (struct launch_doubt){
            name, arena_printf(s->arena, "%s is not known here; give %s%s%s--set %s=N", number->unknown,
                               *number->unknown == '$' ? "" : "--env ", *number->unknown == '$' ? "" : number->unknown,
                               *number->unknown == '$' ? "" : "=N or ", name), number->loc};
    if (number->value <= 0 && number->value != ALL)
        return;
    argument = GROW(&s->launch->launcher);
    *argument = (struct launch_argument){name, number->loc, ARENA_ARRAY(s->arena, struct launch_word, 1), 1};
    argument->values[0] = (struct launch_word){number->value == ALL ? "gpu" : arena_printf(s->arena, "%lld", number->value),
                                              number->loc};
}

/* The commands around, from the outermost one. */
static void read_around(struct starters *s, const struct bash_command *command)
{
    if (!command)
        return;
    read_around(s, command->outer);
    read_starters(s, (struct words){command->words, command->count});
}

void launch_ranks(struct arena *arena, const struct launch_words *words, size_t program, const struct bash_command *command,
                  struct launch *launch)
{
    struct starters s = {.arena = arena, .launch = launch};

    read_around(&s, command ? command->outer : NULL);
    read_starters(&s, (struct words){words->items, program});
    if (s.srun && !s.processes) {
        count_tasks(&s);
    } else if (s.processes) {
        compare(&s, &s.nodes, &s.slurm.nodes, "nnodes", "nodes");
        compare(&s, &s.per_node, &s.slurm.gpus, "nproc-per-node", "GPUs of a node");
    }
    put(&s, "nnodes", &s.nodes);
    put(&s, "nproc-per-node", &s.per_node);
    put(&s, "world-size", &s.world);
}

void launch_variables(struct arena *arena, const struct bash_command *command, FILE *out)
{
    struct launch nobody = {0};
    struct starters s = {.arena = arena, .launch = &nobody};
    struct launch_number tasks;

    read_around(&s, command);
    tasks = s.slurm.tasks;
    if (!tasks.value && s.slurm.nodes.value > 0 && s.slurm.per_node.value > 0)
        tasks.value = s.slurm.nodes.value * s.slurm.per_node.value;
    const struct { const char *name; long long value; } variables[] = {
        {"SLURM_NNODES", s.slurm.nodes.value}, {"SLURM_JOB_NUM_NODES", s.slurm.nodes.value}, {"SLURM_NTASKS", tasks.value},
        {"SLURM_NPROCS", tasks.value}, {"SLURM_NTASKS_PER_NODE", s.slurm.per_node.value},
        {"SLURM_GPUS_ON_NODE", s.slurm.gpus.value}, {"SLURM_GPUS_PER_NODE", s.slurm.gpus.value},
    };

    for (size_t i = 0; i < COUNT(variables); i++)
        if (variables[i].value > 0)
            fprintf(out, "export %s=%lld\n", variables[i].name, variables[i].value);
    launch_release(&nobody);
}

bool launch_is_count(const char *name)
{
    static const char *const names[] = {"nnodes", "nproc-per-node", "nodes", "N", "n", "ntasks", "ntasks-per-node", "gpus-per-node",
                                        "gres", "np", "npernode", "map-by", "num-nodes", "num-gpus", "num-processes",
                                        "num-machines"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (launch_same_name(name, names[i]))
            return true;
    return false;
}
