/* Whatever the bytes of a file that a command reads, in one process: no crash, no leak, no hang, and an exit code of the
 * contract. command.sh runs it for each kind of file. The environment says which:
 *   DTSIM_FUZZ_ENTRANCE    which of entrances[] (support/entrances.h), from 0; exit code 99: there are no more
 *   DTSIM_FUZZ_SEEDS       a folder that gets the files of this kind which are in the repository
 * It works in the folder at hand, which is empty at first. */
#include "entrances.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { LARGEST_SEED = 32 << 10, NO_MORE = 99 };

static const struct entrance *entrance;

static void write_seeds(const char *folder)
{
    struct arena arena = {0};
    const char **paths = entrance_files(&arena, entrance);

    for (size_t i = 0; paths[i]; i++) {
        struct error err = {0};
        size_t length;
        char *text = file_read(paths[i], "file", 64 << 20, (struct loc){0}, &length, &err);
        FILE *out;

        BUG_IF(!text);
        if (length <= LARGEST_SEED) {
            BUG_IF(!(out = fopen(arena_printf(&arena, "%s/%zu", folder, i), "wb")));
            fwrite(text, 1, length, out);
            fclose(out);
        }
        free(text);
    }
    arena_release(&arena);
}

/* What commands print goes nowhere; what the sanitizers say still goes to where it was. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *number = getenv("DTSIM_FUZZ_ENTRANCE"), *seeds = getenv("DTSIM_FUZZ_SEEDS");
    size_t at = number ? strtoul(number, NULL, 10) : 0;

    (void)argc, (void)argv;
    if (at >= COUNT(entrances))
        _exit(NO_MORE);
    entrance = &entrances[at];
    printf("%s: dtsim %s\n", entrance->files, entrance->words[0]);
    entrances_prepare();
    if (seeds)
        write_seeds(seeds);
    stdout = fopen("/dev/null", "w");
    stderr = fopen("/dev/null", "w");
    BUG_IF(!stdout || !stderr);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int code;

    entrance_write(entrance, data, size);
    code = entrance_run(entrance, "1 s");
    BUG_IF(code < 0 || code > EXIT_STOPPED);
    return 0;
}
