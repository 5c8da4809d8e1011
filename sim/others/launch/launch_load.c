/* launch_load: which kind of text a file is. */
#include "launch/launch_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"
#include "launch/bash.h"

/* Whether the text begins, behind comments, with an argument: then it is a list. */
static bool is_list(const char *text, size_t length)
{
    size_t i = text_mark(text, length);

    while (i < length && (isspace((unsigned char)text[i]) || text[i] == '#'))
        if (text[i++] == '#')
            while (i < length && text[i] != '\n')
                i++;
    return i + 2 < length && text[i] == '-' && text[i + 1] == '-' && isalpha((unsigned char)text[i + 2]);
}

/* Files that no shell reads. */
static bool is_other(const char *file)
{
    static const char *const ends[] = {".yaml", ".yml", ".json", ".toml", ".py"};
    size_t length = strlen(file);

    for (size_t i = 0; i < COUNT(ends); i++)
        if (length > strlen(ends[i]) && !strcmp(file + length - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

int launch_load(struct arena *arena, const char *path, const struct import_options *options, struct launch *launch,
                struct error *err)
{
    bool standard = !strcmp(path, "-");
    const char *file = standard ? "standard input" : path;
    size_t length;
    char *text = file_read(standard ? "/dev/stdin" : path, "launch script", LAUNCH_MAX_BYTES, (struct loc){.file = file},
                           &length, err);
    int rc;

    launch->file = file;
    if (!text)
        return -1;
    if (launch_log_is(text, length) || is_list(text, length))
        rc = launch_parse(arena, file, text, length, launch, err);
    else if (is_other(file))
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = file}, "is no script of bash, no list of arguments and no log; YAML, "
                       "JSON and TOML are read by the kinds deepspeed, torchtitan, bridge and nemo (dtsim help import)");
    else if (length > BASH_MAX_BYTES)
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = file}, "holds more than 1 MiB; expected a launch script");
    else if (!(rc = launch_check_text(file, text, length, err)))
        rc = launch_script(arena, file, text, length, options, launch, err) ? -1 : 0;
    if (!rc && !launch->arguments.count && !launch->log)
        rc = launch_refuse_empty(launch, err);
    free(text);
    return rc;
}
