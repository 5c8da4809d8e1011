/* Other programs as children: found before the change of folder and never in a relative one, ended with their parent and
 * at the limit of time. */
#include "plot_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static char text[200];

/* Runs words in the folder, and gives what tool_run does. */
static int run(const char *folder, const char *const *words, double seconds, int *status)
{
    return tool_run(&(struct tool){folder, words, STDOUT_FILENO, seconds}, text, sizeof text, status);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* A folder of charts that holds a program of the tool's name. */
static void relative_folders_do_not_count(void **state)
{
    static const char *const paths[] = {"", ".", ":", "bin", "./bin:/nonexistent", "::/nonexistent:.", "../x/bin"};
    const char *const words[] = {"dtsim-tool", NULL};
    const char *folder = arena_printf(&arena, "%s/trap", root), *bin = arena_printf(&arena, "%s/bin", folder);
    const char *before = arena_strdup(&arena, getenv("PATH"));
    int status;

    (void)state;
    assert_int_equal(mkdir(folder, 0700) || mkdir(bin, 0700), 0);
    for (int i = 0; i < 2; i++) {
        const char *file = arena_printf(&arena, "%s/dtsim-tool", i ? bin : folder);

        put(file, "#!/bin/sh\necho trapped\n");
        assert_int_equal(chmod(file, 0700), 0);
    }
    for (size_t i = 0; i < COUNT(paths); i++) {
        setenv("PATH", paths[i], 1);
        assert_int_equal(run(folder, words, 9, &status), ENOENT);
    }
    setenv("PATH", arena_printf(&arena, "bin:%s", bin), 1);      /* named from the root it counts */
    assert_int_equal(run("/", words, 9, &status), 0);
    assert_string_equal(text, "trapped\n");
    setenv("PATH", before, 1);
}

static void runs_in_its_folder(void **state)
{
    const char *const words[] = {"sh", "-c", "pwd; cat; echo no >&2; exit 3", NULL}, *const absent[] = {"sh", NULL};
    int status = 0;

    (void)state;
    assert_int_equal(run("/usr", words, 9, &status), 0);
    assert_string_equal(text, "/usr\n");         /* no input, and the other output is thrown away */
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_int_equal(run("/nonexistent", absent, 9, &status), ENOENT);
}

static void is_killed_at_its_limit(void **state)
{
    static const char *const scripts[] = {"sleep 100", "sleep 100 & sleep 100", "exec >/dev/null 2>&1; sleep 100",
                                          "while :; do echo x; done"};

    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++) {
        const char *const words[] = {"sh", "-c", scripts[i], NULL};
        double begun = now();
        int status = 0;

        assert_int_equal(run("/", words, 0.2, &status), ETIMEDOUT);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_true(now() - begun > 0.19 && now() - begun < 20);
    }
}

/* Whether a process runs; one that is dead and for which nobody waits does not. */
static bool runs(int process)
{
    char path[64], how = 'Z';
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", process);
    file = fopen(path, "r");
    if (file && fscanf(file, "%*d %*s %c", &how) != 1)
        how = 'Z';
    if (file)
        fclose(file);
    return how != 'Z';
}

static void ends_with_its_parent(void **state)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    int ends[2], tool, tries = 0, status;
    char line[32] = "";
    pid_t parent;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    parent = fork();
    if (!parent) {                       /* its tool writes its own number into the pipe */
        const char *const words[] = {"sh", "-c", arena_printf(&arena, "echo $$ >/proc/%d/fd/%d; exec sleep 100",
                                                              (int)getpid(), ends[1]), NULL};

        run("/", words, 60, &status);
        _exit(0);
    }
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    tool = atoi(line);
    assert_true(tool > 1 && runs(tool));
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    while (runs(tool) && tries++ < 1000)
        nanosleep(&moment, NULL);
    assert_true(tries < 1000);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relative_folders_do_not_count),
        cmocka_unit_test(runs_in_its_folder),
        cmocka_unit_test(is_killed_at_its_limit),
        cmocka_unit_test(ends_with_its_parent),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
