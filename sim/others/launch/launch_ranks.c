/* launch_ranks: how many processes a launch starts, on how many nodes, as the programs that start them say it: torchrun,
 * srun and the #SBATCH lines of its job, mpirun, deepspeed, accelerate. Each process has one GPU. Defaults:
 *
 *   torchrun       --nnodes 1, --nproc_per_node 1 (docs.pytorch.org/docs/stable/elastic/run.html)
 *   srun           one task a node (slurm.schedmd.com/srun.html); options that it is not given are those of #SBATCH
 *   deepspeed      all GPUs of this node, or of those of a hostfile (deepspeed.ai/getting-started)
 *   accelerate     what its configuration file says */
#include "launch/launch.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

enum { UNSAID = 0, UNKNOWN = -1, ALL = -2, MOST = 1 << 20 };      /* instead of a number; ALL: all GPUs of a node */

struct words { const struct shell_word *items; size_t count; };

static bool same_name(const char *said, const char *name)
{
    while (*said && (*said == *name || (*said == '_' && *name == '-'))) {
        said++;
        name++;
    }
    return !*said && !*name;
}

/* A number of nodes, tasks or GPUs; "h100:8" and "gpu:h100:8" too. */
static long number(const char *text)
{
    const char *colon = strrchr(text, ':');
    char *end;
    long value = strtol(colon && !isdigit((unsigned char)*text) ? colon + 1 : text, &end, 10);

    if (!strcmp(text, "gpu") || !strcmp(text, "auto"))
        return ALL;
    if (!strncmp(end, ":", 1) && strtol(end + 1, &end, 10) != value)
        return UNKNOWN;
    return !*end && value > 0 && value <= MOST ? value : UNKNOWN;
}

/* The value of the last option of those names ("-N --nodes") among the words; NULL: none is there. */
static const struct shell_word *find(struct arena *arena, struct words words, const char *names)
{
    struct shell_word *found = NULL;

    for (const char *at = names; *at; at += strcspn(at, " "), at += *at == ' ') {
        const char *name = arena_strndup(arena, at, strcspn(at, " "));
        size_t length = strlen(name);

        for (size_t i = 0; i < words.count; i++) {
            const char *text = words.items[i].text, *equals = strchr(text, '='), *value = NULL;

            if (equals && *text == '-' && same_name(arena_strndup(arena, text, (size_t)(equals - text)), name))
                value = equals + 1;
            else if (same_name(text, name) && i + 1 < words.count)
                value = words.items[i + 1].text;
            else if (length == 2 && !strncmp(text, name, 2) && isdigit((unsigned char)text[2]))
                value = text + 2;                            /* -N4 */
            if (value) {
                found = arena_alloc(arena, sizeof *found);
                *found = (struct shell_word){value, words.items[i].loc};
            }
        }
    }
    return found;
}

static void take(struct arena *arena, struct words words, const char *names, struct launch_number *to)
{
    const struct shell_word *word = find(arena, words, names);

    if (word)
        *to = (struct launch_number){number(word->text), word->loc};
}

/* --gres=gpu:8,nvme:1: the part of the GPUs. */
static void take_gres(struct arena *arena, struct words words, struct launch_number *to)
{
    const struct shell_word *word = find(arena, words, "--gres");
    const char *gpu = word ? strstr(word->text, "gpu") : NULL;

    if (gpu)
        *to = (struct launch_number){gpu[3] == ':' ? number(arena_strndup(arena, gpu, strcspn(gpu, ",("))) : 1, word->loc};
}

static void read_slurm(struct arena *arena, struct words words, struct launch_slurm *slurm)
{
    take(arena, words, "-N --nodes", &slurm->nodes);
    take(arena, words, "-n --ntasks", &slurm->tasks);
    take(arena, words, "--ntasks-per-node --tasks-per-node", &slurm->per_node);
    take_gres(arena, words, &slurm->gpus);
    take(arena, words, "--gpus-per-node", &slurm->gpus);
}

/* The words of a comment's line. */
static struct words split_line(struct arena *arena, const char *line, size_t length, struct loc loc)
{
    struct shell_word *items = ARENA_ARRAY(arena, struct shell_word, length + 1);
    size_t count = 0;

    for (size_t i = 0; i < length && line[i] != '#';) {
        size_t n = 0;

        while (i + n < length && !isspace((unsigned char)line[i + n]))
            n++;
        if (n)
            items[count++] = (struct shell_word){arena_strndup(arena, line + i, n),
                                                 {loc.file, loc.line, loc.column + (int)i}};
        i += n + 1;
    }
    return (struct words){items, count};
}

void launch_slurm_read(struct arena *arena, const char *file, const char *text, size_t length, struct launch_slurm *slurm)
{
    int line = 0;

    for (const char *at = text, *end = text + length, *next; at < end; at = next) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        line++;
        stop = stop ? stop : end;
        next = stop + 1;
        while (at < stop && isspace((unsigned char)*at))
            at++;
        if (at < stop && *at != '#')
            return;                                          /* Slurm reads comments before the first command */
        if (stop - at > 7 && !strncmp(at, "#SBATCH", 7) && isspace((unsigned char)at[7]))
            read_slurm(arena, split_line(arena, at + 7, (size_t)(stop - at - 7), (struct loc){file, line, 8}), slurm);
    }
}

/* Variables that Slurm sets for a job. */
size_t launch_slurm_variables(struct arena *arena, const struct launch_slurm *slurm, struct shell_given *given)
{
    struct launch_number tasks = slurm->tasks;
    size_t count = 0;

    if (!tasks.value && slurm->nodes.value > 0 && slurm->per_node.value > 0)
        tasks = (struct launch_number){slurm->nodes.value * slurm->per_node.value, slurm->per_node.loc};
    const struct { const char *name; struct launch_number number; } names[] = {
        {"SLURM_NNODES", slurm->nodes}, {"SLURM_JOB_NUM_NODES", slurm->nodes}, {"SLURM_NTASKS", tasks},
        {"SLURM_NPROCS", tasks}, {"SLURM_NTASKS_PER_NODE", slurm->per_node}, {"SLURM_GPUS_ON_NODE", slurm->gpus},
        {"SLURM_GPUS_PER_NODE", slurm->gpus},
    };

    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i].number.value > 0)
            given[count++] = (struct shell_given){
                {names[i].name, arena_printf(arena, "%ld", names[i].number.value)}, names[i].number.loc};
    return count;
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
        {"srun", "srun"}, {"sbatch", "sbatch"}, {"salloc", "sbatch"}, {"mpirun", "mpirun"}, {"mpiexec", "mpirun"},
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
    s->nodes = s->per_node = (struct launch_number){UNSAID, loc};
    take(s->arena, words, "--nnodes", &s->nodes);
    take(s->arena, words, "--nproc-per-node", &s->per_node);
    if (!s->nodes.value && !s->vague && s->per_node.value)
        s->nodes.value = 1;
    if (!s->per_node.value && !s->vague && s->nodes.value)
        s->per_node.value = 1;
    s->processes = true;
}

static void read_mpirun(struct starters *s, struct words words)
{
    const struct shell_word *map = find(s->arena, words, "--map-by -map-by");
    const char *ppr = map ? strstr(map->text, "ppr:") : NULL;

    take(s->arena, words, "-np --np -n -c", &s->world);
    take(s->arena, words, "-npernode --npernode -N -ppn --ppn -perhost", &s->per_node);
    if (ppr && strstr(ppr, ":node"))
        s->per_node = (struct launch_number){strtol(ppr + 4, NULL, 10), map->loc};
    if (s->world.value > 0 && s->per_node.value > 0)
        s->nodes = (struct launch_number){(s->world.value + s->per_node.value - 1) / s->per_node.value, s->world.loc};
    s->processes = true;
}

static void read_deepspeed(struct starters *s, struct words words, struct loc loc)
{
    bool hosts = find(s->arena, words, "-H --hostfile -i --include -e --exclude") != NULL;

    s->nodes = s->per_node = (struct launch_number){UNSAID, loc};
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
        s->per_node = (struct launch_number){s->world.value / s->nodes.value, s->world.loc};
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
        s->per_node = (struct launch_number){s->world.value / s->nodes.value, s->world.loc};
    else if (!s->per_node.value && !s->world.value && s->nodes.value)
        s->per_node = (struct launch_number){1, s->nodes.loc};
}

/* What Slurm says instead of what is not known, or beside it. */
static void compare(struct starters *s, struct launch_number *said, const struct launch_number *slurm, const char *what)
{
    if (slurm->value <= 0)
        return;
    if (said->value == UNKNOWN || said->value == ALL || (!said->value && s->vague)) {
        launch_warn(s->launch, s->arena, slurm->loc, "%ld %s are taken, as Slurm is asked for; the launch says it by what is "
                    "not known here", slurm->value, what);
        *said = *slurm;
    } else if (said->value > 0 && said->value != slurm->value) {
        launch_warn(s->launch, s->arena, slurm->loc, "Slurm is asked for %ld %s; the launch in line %d is for %ld, which are "
                    "taken", slurm->value, what, said->loc.line, said->value);
    }
}

static void put(struct starters *s, const char *name, const struct launch_number *number)
{
    struct launch_argument *argument;

    if (number->value <= 0 && number->value != ALL)
        return;
    argument = GROW(&s->launch->launcher);
    *argument = (struct launch_argument){name, number->loc, ARENA_ARRAY(s->arena, struct shell_word, 1), 1};
    argument->values[0] = (struct shell_word){number->value == ALL ? "gpu" : arena_printf(s->arena, "%ld", number->value),
                                              number->loc};
}

void launch_ranks(struct arena *arena, const struct shell_command *command, size_t program,
                  const struct launch_slurm *slurm, struct launch *launch)
{
    struct starters s = {.arena = arena, .launch = launch, .slurm = *slurm};

    read_starters(&s, (struct words){command->outer, command->nouter});
    read_starters(&s, (struct words){command->words, program});
    if (s.srun && !s.processes) {
        count_tasks(&s);
    } else if (s.processes) {
        compare(&s, &s.nodes, &s.slurm.nodes, "nodes");
        compare(&s, &s.per_node, &s.slurm.gpus, "GPUs of a node");
    }
    put(&s, "nnodes", &s.nodes);
    put(&s, "nproc-per-node", &s.per_node);
    put(&s, "world-size", &s.world);
}
