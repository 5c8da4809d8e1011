/* The sandbox: what it lets through, and that hostile scripts of bash change nothing, read nothing outside of their folders,
 * and leave no process, also with the version of Landlock that Debian 12 has. */
#include "process/sandbox.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* %s: a folder of the person's, outside of what the child may read. Each tries to change it or to tell the word in its file. */
static const char *const hostile[] = {
    "echo x > %1$s/new", "echo x >> %1$s/secret", "echo x >| %1$s/secret", ": > %1$s/secret", "{ echo x; } > %1$s/new",
    "for i in 1; do echo x; done > %1$s/secret", "(echo x) >> %1$s/secret", "exec > %1$s/new; echo x", "exec 3<> %1$s/secret; echo x >&3",
    "f() { echo x; } > %1$s/new; f", "if true; then echo x; fi > %1$s/secret", "echo x | { read y; echo $y; } > %1$s/new",
    "cat %1$s/secret >&200", "read x < %1$s/secret; echo $x >&200", "echo $(<%1$s/secret) >&200", "mapfile x < %1$s/secret; echo $x >&200",
    "source %1$s/secret >&200 2>&1", "exec 4< %1$s/secret; cat <&4 >&200", "cat < <(cat %1$s/secret) >&200", "cat %1$s/link >&200",
    "sed p %1$s/secret >&200", "awk 1 %1$s/secret >&200", "head -c 9 %1$s/secret >&200", "cd %1$s && cat secret >&200",
    "cat ~/.ssh/* /etc/shadow %1$s/secret >&200", "printf '%%s' %1$s/* >&200; cat %1$s/* >&200",
    "rm -rf %1$s", "/bin/rm -rf %1$s", "\\rm %1$s/secret", "command rm %1$s/secret", "env rm %1$s/secret", "exec /usr/bin/rm %1$s/secret",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/rm %1$s/secret", "/lib64/ld-linux-x86-64.so.2 /usr/bin/cat %1$s/secret >&200",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/python3 -c 'open(\"%1$s/new\",\"w\")'", "PATH=/usr/bin:/bin; rm %1$s/secret; cp %1$s/secret x; cat x >&200",
    "PATH=/usr/bin; mv %1$s/secret %1$s/new; ln -s %1$s/secret x; cat x >&200", "PATH=/usr/bin; chmod 777 %1$s/secret; touch -d 2000-01-01 %1$s/secret",
    "PATH=/usr/bin; python3 -c 'import os; os.remove(\"%1$s/secret\")'", "sed -i s/a/b/ %1$s/secret", "awk 'BEGIN { print 1 > \"%1$s/new\" }'",
    "awk 'BEGIN { system(\"rm %1$s/secret\") }'", "sed 'w %1$s/new' <<< x", "sed '1e rm %1$s/secret' <<< x", "sort -o %1$s/new <<< x",
    "sed -n 'R %1$s/secret' <<< x >&200", "awk 'BEGIN { while ((getline x < \"%1$s/secret\") > 0) print x }' >&200",
    "export LD_PRELOAD=%1$s/secret; cat /dev/null", "BASH_ENV=%1$s/secret bash -c 'echo $word' >&200", "enable -f %1$s/secret x",
    "trap 'echo x > %1$s/new' EXIT TERM INT HUP DEBUG ERR", "coproc { echo x > %1$s/new; }", "echo x > >(cat > %1$s/new)",
    "echo x > /dev/tcp/127.0.0.1/1", "exec 5<> /dev/tcp/127.0.0.1/1", "cat < /dev/udp/127.0.0.1/1", "kill -9 $PPID; kill -9 -1", "kill -TERM 0",
    "for ((i = 2; i < 99999; i += 97)); do kill -9 $i; done", "ulimit -f unlimited; ulimit -u unlimited; echo x > %1$s/new",
    "umask 0; : > x; PATH=/usr/bin; chmod +x x; ./x", "(trap '' TERM HUP INT; read x <> <(:)) & disown", "set -m; (read x <> <(:)) & bg",
    "(((read x <> <(:)) &) &) &", "bash -c 'read x <> <(:)' & disown -a", "echo x > /proc/$PPID/mem", "cat /proc/$PPID/environ >&200; cat /proc/1/root%1$s/secret >&200",
    "history -s x; history -a %1$s/secret", "echo x > /dev/..%1$s/new", "cd /dev/fd && echo x > ../..%1$s/new",
    "exec 3>> %1$s/secret; echo x >&3", "echo x > /proc/self/root%1$s/new", "cat /proc/self/root%1$s/secret /proc/self/cwd/../../%1$s/secret >&200",
};
/* Each reaches a limit. */
static const struct { const char *script, *limit; } endless[] = {
    {":(){ :|:& }; :", "500 forks"}, {"f() { f & f; }; f", "500 forks"}, {"while :; do (:); done", "500 forks"},
    {"while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done >&200", "1 MiB of output"},
    {"for ((i = 0; ; i++)); do printf '%900000s' > f$i; done", "8 MiB of files"}, {"trap '' TERM; while :; do :; done", "5 s"},
    {"x=xxxxxxxxxxxxxxxx; for i in {1..40}; do (while ((${#x} < 16000000)); do x=$x$x; done; sed p) & done; wait", "256 MiB of memory"},
    {"x=xxxxxxxxxxxxxxxx; for i in {1..30}; do (((while ((${#x} < 16000000)); do x=$x$x; done; while :; do :; done) &) &); done; "
     "while :; do :; done", "256 MiB of memory"},
};

/* The processes of this machine that have this word among theirs. */
static int processes(const char *word)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    int count = 0;

    while (folder && (entry = readdir(folder))) {
        char path[300], text[4096] = "";
        FILE *file;
        size_t length;

        snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
        file = fopen(path, "r");
        if (!file)
            continue;
        length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        for (size_t i = 0; i < length; i++)
            if (!strncmp(text + i, word, strlen(word)))
                count++;
    }
    if (folder)
        closedir(folder);
    return count;
}

static void run(int abi, const char *script, struct sandbox_run *result)
{
    struct sandbox sandbox = {.abi = abi, .trust = abi < 0};
    struct error err = {0};
    char path[300], mark[300], place[300];

    assert_int_equal(sandbox_open(&sandbox, "bash cat sed awk seq sort head", &err), 0);
    snprintf(path, sizeof path, "PATH=%s/bin", sandbox.folder);
    snprintf(place, sizeof place, "TMPDIR=%s", sandbox.folder);
    snprintf(mark, sizeof mark, "MARK=%s", sandbox.folder);
    if (sandbox_start(&sandbox, (const char *[]){"bash", "-c", script, NULL}, (const char *[]){path, mark, place, NULL}, result, &err))
        fail_msg("%s: %s", script, err.messages[0].text);
    if (processes(mark))
        fail_msg("%s: a process is left", script);
    sandbox_close(&sandbox);
    assert_int_equal(access(path + strlen("PATH="), F_OK), -1);
}

/* The folder as it was: its names, its file's bytes, mode and time. */
static bool is_whole(const char *folder, const struct stat *was)
{
    char path[300], text[32] = "";
    struct stat now, same;
    FILE *file;

    snprintf(path, sizeof path, "%s/new", folder);
    if (!lstat(path, &now))
        return false;
    snprintf(path, sizeof path, "%s/secret", folder);
    file = fopen(path, "r");
    if (!file)
        return false;
    if (!fgets(text, sizeof text, file))
        *text = '\0';
    fclose(file);
    same = *was;
    return !stat(path, &now) && now.st_mode == same.st_mode && now.st_mtime == same.st_mtime && now.st_size == same.st_size &&
           !strcmp(text, "word=Xyzzy\n");
}

static void try_all(int abi)
{
    char folder[] = "/tmp/dtsim-hostile-XXXXXX", path[300], link_path[300];
    struct stat was;
    FILE *file;

    if (abi >= 0 && !sandbox_abi()) {
        print_message("skipped: this kernel has no Landlock\n");
        skip();
    }
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/secret", folder);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    file = fopen(path, "w");
    fputs("word=Xyzzy\n", file);
    fclose(file);
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_equal(stat(path, &was), 0);
    for (size_t i = 0; i < COUNT(hostile); i++) {
        struct sandbox_run result;
        char script[1024];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(script, sizeof script, hostile[i], folder);
#pragma GCC diagnostic pop
        run(abi, script, &result);
        if ((strstr(result.said, "Xyzzy") || strstr(result.words, "Xyzzy")) && abi >= 0)
            fail_msg("%s: it read the file: %s%s", script, result.said, result.words);
        if (!is_whole(folder, &was))
            fail_msg("%s: it changed the folder", script);
        sandbox_run_release(&result);
    }
    unlink(path);
    unlink(link_path);
    assert_int_equal(rmdir(folder), 0);
}

static void test_hostile(void **state)
{
    (void)state;
    try_all(0);
}

static void test_hostile_debian_12(void **state)
{
    (void)state;
    try_all(2);
}

/* Where a person trusts a script and there is no Landlock, it reads what it wants, and changes nothing. */
static void test_hostile_trusted(void **state)
{
    (void)state;
    try_all(-1);
}

static void test_limits(void **state)
{
    (void)state;
    if (!sandbox_abi())
        skip();
    for (size_t i = 0; i < COUNT(endless); i++) {
        struct sandbox_run result;

        run(0, endless[i].script, &result);
        if (!result.killed || strcmp(result.killed, endless[i].limit))
            fail_msg("%s: expected %s, found %s", endless[i].script, endless[i].limit, result.killed ? result.killed : "nothing");
        sandbox_run_release(&result);
    }
}

/* Where the process that runs a script is killed, its folder goes, and the script's processes. */
static void test_killed(void **state)
{
    struct sandbox *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char mark[300];
    int left = 0;

    (void)state;
    if (!sandbox_abi())
        skip();
    for (int trial = 0; trial < 8; trial++) {
        pid_t pid = fork();

        if (!pid) {
            struct sandbox_run result;
            struct error err = {0};

            sandbox_open(shared, "bash cat", &err);
            snprintf(mark, sizeof mark, "MARK=%s", shared->folder);
            sandbox_start(shared, (const char *[]){"bash", "-c", "trap '' TERM; (while :; do echo x > y; done) & while :; do :; done", NULL},
                          (const char *[]){mark, NULL}, &result, &err);
            _exit(0);
        }
        usleep(trial % 2 ? 100000U : 2000U * (unsigned)trial);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        snprintf(mark, sizeof mark, "MARK=%s", shared->folder);
        for (int tries = 0; tries < 100 && (!tries || left); tries++) {
            usleep(20000);
            left = *shared->folder && shared->folder[strlen(shared->folder) - 1] != 'X' && (!access(shared->folder, F_OK) || processes(mark));
        }
        assert_int_equal(left, 0);
    }
    munmap(shared, sizeof *shared);
}

/* What scripts need works: pipes, here-documents of any length, files of the private folder, programs of the list. */
static void test_works(void **state)
{
    static const struct { const char *script, *said; } cases[] = {
        {"seq 3 | { read x; echo $x; } >&200", "1\n"}, {"cat <<E >&200\na\nE", "a\n"}, {"echo a > f; cat f >&200", "a\n"},
        {"read x <<< $(printf '%070000d' 1); echo ${#x} >&200", "70000\n"}, {"cat < <(echo b) >&200", "b\n"}, {"(exit 3); echo $? >&200", "3\n"},
        {"echo x > /nowhere/else; echo $? >&200", "0\n"}, {"nowhere; echo $? >&200", "127\n"}, {"awk 'BEGIN { print 2^3 }' >&200", "8\n"},
    };

    (void)state;
    if (!sandbox_abi())
        skip();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sandbox_run result;

        run(0, cases[i].script, &result);
        if (strcmp(result.said, cases[i].said))
            fail_msg("%s: expected %s, found %s%s", cases[i].script, cases[i].said, result.said, result.words);
        sandbox_run_release(&result);
    }
}

/* A program that may not start is told by the name that it was given. */
static void test_refused(void **state)
{
    struct sandbox_run result;

    (void)state;
    if (!sandbox_abi())
        skip();
    run(0, "/opt/torchrun 1; /usr/bin/id", &result);
    assert_int_equal(result.refused.count, 2);
    assert_string_equal(result.refused.items[0], "/opt/torchrun");
    sandbox_run_release(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_works), cmocka_unit_test(test_refused), cmocka_unit_test(test_limits), cmocka_unit_test(test_killed),
                                       cmocka_unit_test(test_hostile), cmocka_unit_test(test_hostile_debian_12),
                                       cmocka_unit_test(test_hostile_trusted)};

    return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}
