/* Files of every kind with one value replaced by another: no command crashes or hangs on one. It ends with an exit code
 * of the contract, and with a message where that is not 0. Values are those of the files that come with dtsim, each key
 * once for each kind of file, and every path of a scenario. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "child_command.h"
#include "config/conf.h"
#include "sweep/paths.h"

enum { SECONDS = 20,             /* that one command may take */
       HUGE_LENGTH = 5000 };

static const char first[] = DTSIM_SOURCE_DIR "/scenarios/first.yaml";

/* What replaces a value. */
static const char *const mutants[] = {
    "null", "{}", "[]", "\"\"", "huge", "7", "-1e300", "true", "word", "{a: 1}", "[[1]]", "[null]", "{a: null}",
    "5e-324 unit", "1e308 unit",         /* of numbers: with the unit that they have */
};

/* A command on the changed file, "@" in its words. */
struct kind {
    const char *folder;          /* of the files */
    const char *words[6];        /* NULL-terminated */
};
static const struct kind kinds[] = {
    {"scenarios/tour", {"check", "@"}},
    {"scenarios/methods", {"check", "@"}},
    {"scenarios/sweeps", {"check", "@"}},
    {"scenarios/models", {"check", first, "--set", "model={preset: @}"}},
    {"platforms", {"check", first, "--set", "cluster=@"}},
    {"platforms/gpus", {"check", first, "--set", "cluster.gpu=@"}},
    {"platforms/communication", {"check", first, "--set", "cluster.communication=@"}},
    {"platforms/software", {"check", first, "--set", "software=@"}},
    {"calibration/data", {"check", first, "--set", "costs={gpu: calibrated, profile: @}"}},
    {"scenarios/paper", {"validate", "--rows=", "@"}},
};
/* Keys that no file of a kind has. */
static const char every_key[] =
    "base: {model: {stages: {forward: 1 s, backward: 2 s}}, cluster: ideal, batch: {micro_batches: 2}}\n"
    "sweep:\n"
    "  grid: {strategy.pipeline: [1, 2], batch.micro_batches: {range: [1, 4]}, strategy.schedule: {pow2: [1, 2]}}\n"
    "  zip: [{name: [a, b], simulation.engine: [ideal, fast]}]\n"
    "  let: {x: strategy.pipeline * 2, y: x + 1}\n"
    "  where: [x > 1, y < 99]\n"
    "  include: [{strategy.pipeline: 4}]\n"
    "  exclude: [{strategy.pipeline: 2, name: a}, x == 3]\n"
    "  sample: {n: 3, seed: 2}\n"
    "report: {objectives: {iteration_time_s: min, tokens_per_s: max}, top: 3}\n"
    "verify: 1\n";

struct test {
    struct { char what[8192]; size_t tried; } *now;      /* shared memory: what is being tried, and how many were */
    struct { const char **items; size_t count, capacity; } seen;       /* keys of the kind */
    struct arena arena;
};

static struct test *test;

/* Runs the command in this process, its output into files. */
static void run(const char *const *words)
{
    long said;
    int code;

    rewind(stderr);
    alarm(SECONDS);
    code = command_code(words);
    alarm(0);
    said = ftell(stderr);
    if (code < 0 || code > EXIT_STOPPED || code == EXIT_UNEXPECTED || (code && said <= 0))
        _exit(100 + code);
}

/* Runs it on the file, and says so in shared memory. */
static void run_on(const char *const *words, const char *path, const char *what)
{
    struct arena arena = {0};
    const char *all[8] = {NULL};

    for (size_t i = 0; words[i]; i++) {
        const char *at = strchr(words[i], '@');

        all[i] = at ? arena_printf(&arena, "%.*s%s%s", (int)(at - words[i]), words[i], path, at + 1) : words[i];
    }
    snprintf(test->now->what, sizeof test->now->what, "%s", what);
    test->now->tried++;
    run(all);
    arena_release(&arena);
}

static struct node *mutant_of(struct arena *arena, const char *text, const struct node *own)
{
    char huge[HUGE_LENGTH + 1], *unit = NULL;
    struct error err = {0};
    struct node *root;

    memset(huge, 'x', HUGE_LENGTH);
    huge[HUGE_LENGTH] = '\0';
    if (own->kind == NODE_SCALAR)
        strtod(own->text, &unit);
    if (unit && unit > own->text && strstr(text, " unit"))
        return node_scalar(arena, arena_printf(arena, "%.*s%s", (int)strcspn(text, " "), text, unit), false);
    if (!strcmp(text, "huge"))
        return node_scalar(arena, arena_strdup(arena, huge), true);
    assert_int_equal(conf_parse(arena, "mutant", text, strlen(text), &root, &err), 0);
    return root;
}

static bool seen_before(const char *key)
{
    for (size_t i = 0; i < test->seen.count; i++)
        if (!strcmp(test->seen.items[i], key))
            return true;
    *GROW(&test->seen) = arena_strdup(&test->arena, key);
    return false;
}

/* A file while its values are replaced. */
struct mutation {
    const struct kind *kind;
    const char *path, *changed;  /* the file, and the one that is written */
    const struct node *root;
    struct arena arena;
};

static void try_one(struct mutation *mutation, struct node **slot, const char *key)
{
    struct node *own = *slot;

    for (size_t m = 0; m < COUNT(mutants); m++) {
        FILE *out = fopen(mutation->changed, "wb");

        BUG_IF(!out);
        *slot = mutant_of(&mutation->arena, mutants[m], own);
        node_print(slot == (struct node **)(uintptr_t)&mutation->root ? *slot : mutation->root, out);
        fclose(out);
        run_on(mutation->kind->words, mutation->changed,
               arena_printf(&mutation->arena, "%s: %s: %s", mutation->path, key, mutants[m]));
    }
    *slot = own;
}

/* Every value below the node whose key this kind has not had yet; items of a list are one. */
static void try_all(struct mutation *mutation, struct node *node, const char *key)
{
    for (size_t i = 0; i < node->count; i++) {
        const char *name = node->kind == NODE_MAPPING ? node->keys[i] : "[]";
        const char *inner = arena_printf(&mutation->arena, "%s.%s", key, name);

        if (!seen_before(inner))
            try_one(mutation, &node->items[i], inner);
        if (node->items[i]->kind != NODE_SCALAR)
            try_all(mutation, node->items[i], inner);
    }
}

static void mutate_text(const struct kind *kind, const char *path, const char *text, size_t length)
{
    struct mutation mutation = {.kind = kind, .path = path, .changed = "changed.yaml"};
    struct error err = {0};
    struct node *root;

    if (conf_parse(&mutation.arena, path, text, length, &root, &err))
        BUG("%s", err.messages[0].text);
    mutation.root = root;
    if (!seen_before(""))
        try_one(&mutation, (struct node **)(uintptr_t)&mutation.root, "");
    try_all(&mutation, root, "");
    arena_release(&mutation.arena);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void mutate_folder(const struct kind *kind)
{
    struct arena *arena = &test->arena;
    const char *folder = arena_printf(arena, DTSIM_SOURCE_DIR "/%s", kind->folder), **paths;
    struct { const char **items; size_t count, capacity; } list = {0};
    DIR *dir = opendir(folder);

    BUG_IF(!dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (strlen(entry->d_name) > 5 && !strcmp(entry->d_name + strlen(entry->d_name) - 5, ".yaml"))
            *GROW(&list) = arena_printf(arena, "%s/%s", folder, entry->d_name);
    closedir(dir);
    paths = list.items;
    BUG_IF(!list.count);
    qsort(paths, list.count, sizeof *paths, by_name);
    for (size_t i = 0; i < list.count; i++) {
        struct error err = {0};
        size_t length;
        char *text = file_read(paths[i], "file", 16 << 20, (struct loc){0}, &length, &err);

        BUG_IF(!text);
        mutate_text(kind, paths[i], text, length);
        free(text);
    }
    free(list.items);
}

/* Every path of a scenario set to every mutant. */
static void set_paths(void)
{
    const char **paths = path_list(&test->arena), *words[] = {"check", first, "--set", "@", NULL};

    for (size_t i = 0; paths[i]; i++) {
        bool known = seen_before(paths[i]);

        for (size_t m = 0; !known && m < COUNT(mutants); m++) {
            const char *set = arena_printf(&test->arena, "%s=%s", paths[i], mutants[m]);

            run_on(words, set, set);
        }
    }
}

static void mutate(const struct kind *kind)
{
    if (!kind)
        set_paths();
    else if (kind->folder)
        mutate_folder(kind);
    else
        mutate_text(kind, "every_key", every_key, strlen(every_key));
}

/* A process tries all of a kind; where it ends early the parent says at what. */
static void try_kind(const struct kind *kind)
{
    struct test own = {.now = mmap(NULL, sizeof *own.now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    int status;
    pid_t pid;

    assert_true(own.now != MAP_FAILED);
    test = &own;
    pid = child_fork();
    if (!pid) {
        if (!freopen("/dev/null", "wb", stdout) || !freopen("said", "wb", stderr))
            _exit(99);
        mutate(kind);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("%s: %s", strsignal(WTERMSIG(status)), own.now->what);
    if (WEXITSTATUS(status))
        fail_msg("exit code %d, or no message: %s", WEXITSTATUS(status) - 100, own.now->what);
    printf("%s: %zu\n", !kind ? "paths" : kind->folder ? kind->folder : "keys of a sweep", own.now->tried);
    assert_true(own.now->tried >= 10 * COUNT(mutants));
    munmap(own.now, sizeof *own.now);
}

static void test_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++)
        try_kind(&kinds[i]);
}

static void test_sweep_keys(void **state)
{
    (void)state;
    try_kind(&(struct kind){NULL, {"check", "@"}});
}

static void test_scenario_keys(void **state)
{
    (void)state;
    try_kind(NULL);
}

static char folder[] = "/tmp/dtsim-mutated-XXXXXX";

static int make_folder_of_tests(void **state)
{
    (void)state;
    return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink("changed.yaml");
    unlink("said");
    return chdir("/") || rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep_keys),
        cmocka_unit_test(test_scenario_keys),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, make_folder_of_tests, remove_folder);
}
