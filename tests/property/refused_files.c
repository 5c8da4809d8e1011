/* Files that the system does not let a command open, read or list, one at a time: the n-th call fails, for every n. Then
 * the command ends with a message that names the file and says why, or its output is what it is without failures. It
 * never takes another file, or fewer. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#include "child_command.h"
#include "refused_calls.h"
#include "trials.h"

/* A command's output. */
struct output { int code; char *out, *err; };

static const char *folder;       /* of the files that commands read; the working directory */

static char *whole(const char *path)
{
    struct error err = {0};
    size_t length;
    char *text = file_read(path, "file", 16 << 20, (struct loc){0}, &length, &err);

    assert_non_null(text);
    return text;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Runs the command in a child process in which that call fails. */
static struct output run_with(const char *const *words, int at, int why, struct fault *seen)
{
    struct fault *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct output output;
    int status;
    pid_t pid;

    assert_true(shared != MAP_FAILED);
    shared->at = at;
    shared->why = why;
    pid = child_fork();
    if (!pid) {
        if (!freopen("output.out", "wb", stdout) || !freopen("output.err", "wb", stderr))
            _exit(99);
        fault = shared;
        output.code = command_code(words);
        fflush(NULL);
        _exit(output.code);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    output.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    output.out = whole("output.out");
    output.err = whole("output.err");
    *seen = *shared;
    munmap(shared, sizeof *shared);
    return output;
}

static void output_release(struct output *output)
{
    free(output->out);
    free(output->err);
}

/* What the command left behind: the rows of the sweep. */
static const char rows[] = "rows/shard-1-of-1.jsonl";

static void set_rows(const char *text)
{
    if (text)
        write_text(rows, text);
}

/* What messages name: the path without a hidden name, under which a file or a folder is made until it is whole. */
static const char *named(char *path)
{
    char *end = strstr(path, ".new"), *begin = end;

    while (begin && begin > path && begin[-1] != '/')
        begin--;
    if (begin && *begin == '.' && end[4] == '/')
        memmove(begin, end + 5, strlen(end + 5) + 1);
    else if (begin > path && *begin == '.' && !end[4])
        begin[-1] = '\0';
    return path;
}

/* Each call of the command fails once (or a sample of the calls: one in one_in()), with another error than the one
 * before. `step`: how many calls go forward at a time, for commands that do the same to many files. `before`: the rows
 * before each time; `after`: the rows in the end. Commands that need a tool that is not installed are left out. */
static void refuse_each(const char *const *words, int step, const char *before, const char *after)
{
    static const int why[] = {EMFILE, EIO, EACCES};
    struct fault fault_seen;
    struct output plain, output;
    int refused = 0, calls;

    set_rows(before);
    plain = run_with(words, 0, 0, &fault_seen);
    calls = fault_seen.calls;
    if (plain.code == EXIT_NO_TOOL) {
        printf("skipped: %s, for its tool is not installed\n", words[0]);
        output_release(&plain);
        return;
    }
    if (plain.code)
        fail_msg("%s: exit %d: %s", words[0], plain.code, plain.err);
    for (int at = 1; at <= calls; at += one_in() * (at < 60 || at > calls - 100 ? 1 : step)) {
        set_rows(before);
        output = run_with(words, at, why[at % (int)COUNT(why)], &fault_seen);
        assert_true(fault_seen.struck);
        if (output.code == 0 && strcmp(output.out, plain.out))
            fail_msg("%s: call %d, of '%s', fails: exit 0 and another output:\n%s", words[0], at, fault_seen.path,
                     output.out);
        if (output.code && (!strstr(output.err, strerror(fault_seen.why)) ||
                          (!strstr(output.err, fault_seen.path) && !strstr(output.err, named(fault_seen.path)))))
            fail_msg("%s: call %d, of '%s', fails: exit %d and\n%s", words[0], at, fault_seen.path, output.code,
                     output.err);
        if (output.code < 0 || output.code > 7)
            fail_msg("%s: call %d, of '%s', fails: exit %d", words[0], at, fault_seen.path, output.code);
        refused += output.code != 0;
        if (after) {
            struct output again = {0};
            char *now;

            if (output.code)
                again = run_with(words, 0, 0, &fault_seen);
            now = whole(rows);
            if (again.code || strcmp(now, after))
                fail_msg("%s: call %d fails; in the end the rows are others:\n%s", words[0], at, now);
            free(now);
            output_release(&again);
        }
        output_release(&output);
    }
    assert_true(refused > 0);
    output_release(&plain);
}

static void test_run(void **state)
{
    (void)state;
    refuse_each((const char *[]){"run", "scenario.yaml", NULL}, 1, NULL, NULL);
    refuse_each((const char *[]){"check", "sweep.yaml", NULL}, 1, NULL, NULL);
    refuse_each((const char *[]){"explain", "scenario.yaml", NULL}, 1, NULL, NULL);
    refuse_each((const char *[]){"compare", "scenario.yaml", NULL}, 1, NULL, NULL);
    refuse_each((const char *[]){"collective", "mine.yaml", "--ranks", "4", "--bytes", "1 MB", NULL}, 1, NULL, NULL);
}

static void test_results_of_a_run(void **state)
{
    struct fault fault_seen;
    struct output output;

    (void)state;
    refuse_each((const char *[]){"run", "scenario.yaml", "-o", "out", NULL}, 1, NULL, NULL);
    output = run_with((const char *[]){"run", "scenario.yaml", "-o", "out", NULL}, 0, 0, &fault_seen);
    assert_int_equal(output.code, 0);
    output_release(&output);
    refuse_each((const char *[]){"explain", "out", NULL}, 1, NULL, NULL);
    refuse_each((const char *[]){"compare", "out", NULL}, 1, NULL, NULL);
    refuse_each((const char *[]){"plot", "breakdown", "out", "-o", "breakdown.pdf", NULL}, 1, NULL, NULL);
}

/* Files that others wrote, and published measurements. */
static void test_files_of_others(void **state)
{
    static const char *const imports[][2] = {
        {"nccl-tests", "import_nccl_corpus/all_reduce.log"}, {"pytorch-schedule", "order_corpus/1f1b.csv"},
        {"pipedream-profile", "pipedream_profile_corpus/graph.txt"}, {"kineto", "kineto_corpus/trace0.json"},
    };
    struct arena arena = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(imports); i++)
        refuse_each((const char *[]){"import", imports[i][0], arena_printf(&arena, DTSIM_SOURCE_DIR "/tests/fuzz/%s",
                                                                           imports[i][1]), NULL}, 1, NULL, NULL);
    refuse_each((const char *[]){"validate", "-j", "1", DTSIM_SOURCE_DIR "/scenarios/paper/gpipe.yaml", NULL}, 1, NULL,
                NULL);
    arena_release(&arena);
}

static void test_lists(void **state)
{
    (void)state;
    refuse_each((const char *[]){"list", NULL}, 7, NULL, NULL);
    refuse_each((const char *[]){"help", "a100-80gb", NULL}, 1, NULL, NULL);
    refuse_each((const char *[]){"completion", "words", "--", "help", "gpt", NULL}, 7, NULL, NULL);
}

/* A sweep that goes on after two of its rows: in the end it has the rows of an undisturbed sweep. */
static void test_sweep(void **state)
{
    const char *const words[] = {"sweep", "sweep.yaml", "-o", "rows", "-j", "1", "--engine", "ideal", NULL};
    struct fault fault_seen;
    struct output output;
    char *all, *some;

    (void)state;
    output = run_with(words, 0, 0, &fault_seen);
    if (output.code)
        fail_msg("%s", output.err);
    output_release(&output);
    all = whole(rows);
    some = strdup(all);
    *(strchr(strchr(strchr(some, '\n') + 1, '\n') + 1, '\n') + 1) = '\0';
    refuse_each(words, 11, some, all);
    refuse_each((const char *[]){"results", "rows", NULL}, 1, all, NULL);
    refuse_each((const char *[]){"report", "rows", "-o", "page.html", NULL}, 3, all, NULL);
    free(all);
    free(some);
}

static int make_files(void **state)
{
    static char path[] = "/tmp/dtsim-refused-XXXXXX";
    static const char scenario[] = "model: {preset: gpt2-124m}\ncluster: mine.yaml\nbatch: {global: 16, micro: 1}\n"
                                   "strategy: {pipeline: 2}\nmemory: {precision: mixed-bf16}\n"
                                   "simulation: {engine: fast}\n";

    (void)state;
    if (!mkdtemp(path) || chdir(path))
        return -1;
    folder = path;
    write_text("mine.yaml", "platform: dgx-a100\nnodes: 1\ngpus_per_node: 4\n");
    write_text("scenario.yaml", scenario);
    write_text("sweep.yaml", "base: scenario.yaml\nsweep:\n  let: {twice: 2 * strategy.tensor}\n"
               "  grid: {strategy.tensor: [1, 2], strategy.schedule: [1f1b, gpipe]}\n  where: strategy.data > 0 and twice < 8\n");
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static int remove_files(void **state)
{
    (void)state;
    return chdir("/") || nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_results_of_a_run),
        cmocka_unit_test(test_files_of_others),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
