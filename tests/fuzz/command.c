/* Whatever the bytes of a file that a command reads, in one process: no crash, no leak, no hang, and an exit code of the
 * contract. The first byte says which command, and so which kind of file. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/decimal.h"
#include "cli/cmd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char first[] = DTSIM_SOURCE_DIR "/scenarios/first.yaml";
/* "@": the file's path, also within a word. A budget of time and memory is part of each that simulates. */
static const char *const commands[][7] = {
    {"check", "@", "--set", "simulation.engine=ideal", "--budget", "1 s"},       /* scenarios and sweeps */
    {"check", first, "--set", "software=@", "--budget", "1 s"},
    {"check", first, "--set", "cluster=@", "--budget", "1 s"},
    {"check", first, "--set", "cluster.gpu=@", "--budget", "1 s"},
    {"check", first, "--set", "cluster.communication=@", "--budget", "1 s"},
    {"check", first, "--set", "costs={gpu: calibrated, profile: @}", "--budget", "1 s"},
    {"check", first, "--set", "strategy.schedule={csv: @}", "--budget", "1 s"},
    {"validate", "--rows=", "@"},
    {"results", "@"},
    {"calibrate", "check", first, "@"},
    {"import", "nccl-tests", "@"},
    {"import", "kineto", "@"},
    {"import", "pytorch-schedule", "@"},
    {"import", "megatron", "@"},
};

static const struct command *command_of(const char *name)
{
    for (size_t i = 0; command_at(i); i++)
        if (strcmp(command_at(i)->name, name) == 0)
            return command_at(i);
    BUG("no command '%s'", name);
}

/* What commands print goes nowhere; what the sanitizers say still goes to where it was. */
static void silence(void)
{
    static bool silent;

    if (!silent) {
        memory_cpp_begin();
        stdout = fopen("/dev/null", "w");
        stderr = fopen("/dev/null", "w");
        BUG_IF(!stdout || !stderr);
        silent = true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *const *words = commands[size ? data[0] % COUNT(commands) : 0];
    char *argv[COUNT(commands[0]) + 1] = {NULL};
    int file = memfd_create("fuzz", 0), argc = 0, code;

    silence();
    BUG_IF(file < 0 || (size && write(file, data + 1, size - 1) != (ssize_t)size - 1));
    for (; argc < (int)COUNT(commands[0]) && words[argc]; argc++) {
        const char *at = strchr(words[argc], '@');

        argv[argc] = at ? xprintf("%.*s/proc/self/fd/%d%s", (int)(at - words[argc]), words[argc], file, at + 1)
                        : xstrdup(words[argc]);
    }
    code = command_run(command_of(argv[0]), argc, argv);
    BUG_IF(code < 0 || code > 7);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    close(file);
    return 0;
}
