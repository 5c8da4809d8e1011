/* bash: the sandbox in which bash runs the script, and the records that come out of it. */
#include "launch/bash_internal.h"

#include <ctype.h>
#include <dirent.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "config/field.h"
#include "process/sandbox.h"

/* Programs that make text of text, of names of paths or of numbers. */
static const char pure[] = "awk basename bash bc cat comm cut dirname expr false fold getopt grep egrep fgrep head join nl od "
                           "paste printf readlink realpath rev sed seq sort tac tail test tr true uniq wc yes";

enum { MOST_RUNS = 4, MOST_LINKS = 2000 };

const char *launch_unknown(struct arena *arena, const char *text)
{
    const char *begin = strchr(text, MARK_BEGIN), *end = begin ? strchr(begin, MARK_END) : NULL;

    size_t length = !begin ? 0 : end ? (size_t)(end - begin - 1) : strlen(begin + 1);

    return !begin ? NULL : arena_printf(arena, "%s%.*s", begin[1] == '#' ? "$" : "", (int)length - (begin[1] == '#'),
                                        begin + 1 + (begin[1] == '#'));
}

static bool in_word(char c)
{
    return c && !isspace((unsigned char)c) && !strchr("\"'(){};=$`&|<>", c);
}

struct loc bash_place(const struct bash_script *script, const char *word, struct loc otherwise)
{
    size_t length = strlen(word), found = 0;
    struct loc place = otherwise;
    const char *line = script->text, *end = script->text + script->length, *next;

    for (int n = 1; length && line < end; n++, line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *at = line;

        stop = stop ? stop : end;
        next = stop + 1;
        while (at < stop && isspace((unsigned char)*at))
            at++;
        if (at < stop && *at == '#' && strncmp(at, "#SBATCH", 7) && strncmp(at, "#PBS", 4))
            continue;
        for (; at + length <= stop; at++)
            if (!strncmp(at, word, length) && (at == line || !in_word(at[-1])) && (at + length == end || !in_word(at[length])) &&
                !found++)
                place = (struct loc){script->file, n, (int)(at - line) + 1};
    }
    return found == 1 ? place : otherwise;
}

/* The place that a record says: a line of the script; of another file or of a text in the script: the line of the command that
 * runs it. */
static struct loc place_of(const struct bash_reader *reader, const char *file, const char *line,
                           const struct bash_command *outer)
{
    long long number = strtoll(line, NULL, 10);
    int at = number > 0 && number <= BASH_MAX_BYTES ? (int)number : 1;

    if (!strcmp(file, reader->path))
        return (struct loc){reader->script->file, at, 1};
    if (outer || *file != '/' || access(file, R_OK))
        return outer ? outer->loc : (struct loc){reader->script->file, 1, 1};
    return (struct loc){arena_strdup(reader->arena, file), at, 1};
}

struct bash_command *bash_record(const struct bash_reader *reader, const char *name, const char *text, size_t length,
                                 const struct bash_commands *earlier)
{
    static const char *const kinds[] = {[BASH_COMMAND] = "command", [BASH_CAPTURED] = "captured", [BASH_EXIT] = "exit",
                                        [BASH_ABSENT] = "absent", [BASH_ARRAY] = "array", [BASH_HEADER] = "header"};
    enum { KIND, OUTER, LINE, PLACE, FIRST };
    struct bash_command *command = arena_alloc(reader->arena, sizeof *command);
    size_t count = 0, kind = 0;
    const char **words;

    for (size_t i = 0; i < length; i++)
        count += !text[i];
    words = ARENA_ARRAY(reader->arena, const char *, count + 1);
    count = 0;
    for (size_t i = 0; i < length; i += strlen(text + i) + 1)
        words[count++] = arena_strdup(reader->arena, text + i);
    if (count <= FIRST)
        return NULL;
    while (kind < COUNT(kinds) && strcmp(kinds[kind], words[KIND]))
        kind++;
    *command = (struct bash_command){.kind = (enum bash_kind)kind, .name = arena_strdup(reader->arena, name)};
    for (size_t i = 0; i < earlier->count; i++)
        if (!strcmp(earlier->items[i]->name, words[OUTER]))
            command->outer = earlier->items[i];
    command->loc = place_of(reader, words[PLACE], words[LINE], command->outer);
    command->count = count - FIRST;
    command->words = ARENA_ARRAY(reader->arena, struct launch_word, command->count);
    for (size_t i = FIRST; i < count; i++)
        command->words[i - FIRST] = (struct launch_word){words[i], command->loc};
    return kind < COUNT(kinds) ? command : NULL;
}

/* The records up to now, in the order in which they were said. */
static void take_records(const struct bash_reader *reader, const char *said, struct bash_commands *commands)
{
    for (const char *at = said, *end; (end = strchr(at, '\n')); at = end + 1) {
        const char *name = arena_strndup(reader->arena, at, (size_t)(end - at));
        size_t length;
        char *text = *name == '?' ? NULL : sandbox_get(&reader->sandbox, name, &length);
        struct bash_command *command = text ? bash_record(reader, name, text, length, commands) : NULL;

        if (command)
            *GROW(commands) = command;
        free(text);
    }
}

struct answering { struct bash_reader *reader; struct bash_commands commands; };

/* The variables that a command gives to the script that it runs. */
static void answer(void *context, const char *name, FILE *out)
{
    struct answering *answering = context;
    char said[256];

    snprintf(said, sizeof said, "%s\n", name);
    take_records(answering->reader, said, &answering->commands);
    if (answering->commands.count && !strcmp(answering->commands.items[answering->commands.count - 1]->name, name))
        answering->reader->script->variables(answering->reader->arena, answering->commands.items[answering->commands.count - 1], out);
}

static const char **environment_of(const struct bash_reader *reader, const struct bash_world *world)
{
    const struct bash_script *script = reader->script;
    const char **list = ARENA_ARRAY(reader->arena, const char *, 16 + script->nenvironment + world->nmarks), **at = list;
    struct arena *arena = reader->arena;
    const char *folder = reader->sandbox.folder;

    for (size_t i = 0; i < world->nmarks; i++)
        *at++ = arena_printf(arena, "%s=%s", world->marks[i].name, world->marks[i].value);
    for (size_t i = 0; i < script->nenvironment; i++)
        *at++ = arena_printf(arena, "%s=%s", script->environment[i].name, script->environment[i].value);
    *at++ = arena_printf(arena, "PATH=%s/bin", folder);
    *at++ = arena_printf(arena, "TMPDIR=%s", folder);
    *at++ = arena_printf(arena, "BASH_ENV=%s/bin/.handler", folder);
    *at++ = arena_printf(arena, "__dir=%s", folder);
    *at++ = arena_printf(arena, "__gpus=%lld", script->gpus);
    *at++ = arena_printf(arena, "__fails=%d", world->fails);
    *at++ = arena_printf(arena, "__prints=%s", world->prints ? world->prints : "");
    *at++ = world->passes ? "__pass=1" : "__pass=";
    *at++ = world->arrays ? "__arrays=1" : "__arrays=";
    *at++ = "LC_ALL=C";
    *at++ = "TZ=UTC0";
    *at++ = "__outer=";
    *at++ = "__begun=";
    *at = NULL;
    return list;
}

/* What bash says of lines of the script, "FILE: line N: ...", and programs of their files, "cat: FILE: ...". */
static void take_remarks(const struct bash_reader *reader, const char *words, struct bash_commands *commands)
{
    static const char mark[] = ": line ";
    size_t folder = strlen(reader->sandbox.folder);

    for (const char *at = words, *end; (end = strchr(at, '\n')); at = end + 1) {
        const char *line = arena_strndup(reader->arena, at, (size_t)(end - at)), *text = strstr(line, ": ");
        const char *name = text ? arena_strndup(reader->arena, line, (size_t)(text - line)) : "";
        struct bash_remark remark = {{reader->script->file, 0, 0}, line};
        const char *own = name + (strncmp(name, reader->sandbox.folder, folder) || name[folder] != '/' ? 0 : folder + 1);

        if (!text || word_in("bin/bash bash", own))
            continue;
        if (!strncmp(text, mark, sizeof mark - 1) && strstr(text + 2, ": ")) {
            remark.loc = (struct loc){strcmp(name, reader->path) ? own : reader->script->file, atoi(text + sizeof mark - 1), 1};
            remark.text = arena_printf(reader->arena, "bash says: %s", strstr(text + 2, ": ") + 2);
        } else if (!strcmp(name, reader->path)) {
            remark.text = arena_printf(reader->arena, "bash says: %s", text + 2);
        } else if (!word_in(pure, name)) {
            continue;
        }
        if (commands->remarks.count < ERROR_MAX)
            *GROW(&commands->remarks) = remark;
    }
}

/* Functions for programs that are called by their paths, or that a script's own PATH finds: bash has no other way to hand over
 * their words. Whether there is a new one. */
static bool add_functions(struct bash_reader *reader, const struct sandbox_run *run)
{
    size_t before = reader->nfunctions;

    for (size_t i = 0; i < run->refused.count; i++) {
        const char *name = run->refused.items[i], *text;
        bool plain = true;

        for (const char *c = name; *c; c++)
            plain &= isalnum((unsigned char)*c) || strchr("_./+-", *c);
        text = arena_printf(reader->arena, "function %s() { (__launch \"${BASH_LINENO[0]}\" \"${BASH_SOURCE[1]}\" %s \"$@\"); }\n",
                            name, name);
        if (!plain || strstr(reader->functions, text))
            continue;
        reader->functions = arena_printf(reader->arena, "%s%s", reader->functions, text);
        reader->nfunctions++;
    }
    return reader->nfunctions > before;
}

static int run_once(struct bash_reader *reader, const struct bash_world *world, struct sandbox_run *run, struct error *err)
{
    struct answering answering = {.reader = reader};
    const char *text = reader->functions, **words;
    size_t count = 0;
    int rc;

    while (reader->script->arguments && reader->script->arguments[count])
        count++;
    words = ARENA_ARRAY(reader->arena, const char *, count + 3);
    words[0] = "bash";
    words[1] = reader->path;
    for (size_t i = 0; i < count; i++)
        words[i + 2] = reader->script->arguments[i];
    for (size_t i = 0; bash_handler[i]; i++)
        text = arena_printf(reader->arena, "%s%s", text, bash_handler[i]);
    reader->sandbox.answer = answer;
    reader->sandbox.context = &answering;
    rc = sandbox_put(&reader->sandbox, "bin/.handler", text, strlen(text), err);
    if (!rc)
        rc = sandbox_start(&reader->sandbox, words, environment_of(reader, world), run, err);
    free(answering.commands.items);
    return rc;
}

int bash_run(struct bash_reader *reader, const struct bash_world *world, struct bash_commands *commands,
               struct error *err)
{
    bool again = true;
    int rc = 0;

    *commands = (struct bash_commands){0};
    for (int i = 0; i < MOST_RUNS && again && !rc; i++) {
        struct sandbox_run run = {0};

        bash_commands_release(commands);
        rc = run_once(reader, world, &run, err);
        again = !rc && add_functions(reader, &run);
        if (!rc) {
            take_records(reader, run.said, commands);
            take_remarks(reader, run.words, commands);
            commands->killed = run.killed;
        }
        sandbox_run_release(&run);
    }
    return rc;
}

void bash_commands_release(struct bash_commands *commands)
{
    free(commands->items);
    free(commands->remarks.items);
    *commands = (struct bash_commands){0};
}

/* Links to what stands beside the script, so that its relative paths are found from the working folder. */
static void link_files(const struct bash_reader *reader, const char *folder)
{
    DIR *opened = opendir(folder);
    const struct dirent *entry;

    for (int i = 0; opened && i < MOST_LINKS && (entry = readdir(opened)); i++) {
        const char *target = arena_printf(reader->arena, "%s/%s", folder, entry->d_name);

        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            symlink(target, arena_printf(reader->arena, "%s/%s", reader->sandbox.folder, entry->d_name)))
            continue;                /* "bin" is the sandbox's own */
    }
    if (opened)
        closedir(opened);
}

/* Whether `home` is the folder, or lies in it. Both may lead through links; `folder` has none. */
static bool lies_in(const char *home, const char *folder)
{
    char *real = home ? realpath(home, NULL) : NULL;
    size_t length = strlen(folder);
    bool lies = real && !strncmp(real, folder, length) && (!real[length] || real[length] == '/');

    free(real);
    return lies;
}

/* Whether a folder holds all that a person has: then the script alone is read, not what is beside it. */
static bool is_home(const char *folder)
{
    const struct passwd *person = getpwuid(getuid());

    return !strcmp(folder, "/") || lies_in(getenv("HOME"), folder) || lies_in(person ? person->pw_dir : NULL, folder);
}

/* A script that is no file, or whose lines end as Windows has it, is run as a copy. */
static int copy_script(struct bash_reader *reader, struct error *err)
{
    const struct bash_script *script = reader->script;
    char *text = xcalloc(1, script->length + 1);
    const char *name = reader->path ? strrchr(reader->path, '/') + 1 : ".script";
    size_t length = 0;
    int rc = 0;

    for (size_t i = 0; i < script->length; i++)
        if (script->text[i] != '\r' || i + 1 == script->length || script->text[i + 1] != '\n')
            text[length++] = script->text[i];
    if (!reader->path || length < script->length) {
        reader->path = arena_printf(reader->arena, "%s/%s", reader->sandbox.folder, name);
        rc = sandbox_put(&reader->sandbox, name, text, length, err);
    }
    free(text);
    return rc;
}

int bash_reader_open(struct bash_reader *reader, struct arena *arena, const struct bash_script *script, struct error *err)
{
    char *path = realpath(script->file, NULL), *slash;
    size_t count = 0;
    const char **read;
    int rc;

    *reader = (struct bash_reader){.script = script, .arena = arena, .functions = ""};
    while (script->folders && script->folders[count])
        count++;
    read = ARENA_ARRAY(arena, const char *, count + 2);
    for (size_t i = 0; i < count; i++)
        read[i] = script->folders[i];
    reader->path = path ? arena_strdup(arena, path) : NULL;
    slash = path ? strrchr(path, '/') : NULL;
    if (slash)
        slash[slash == path] = '\0';
    if (path)
        read[count] = is_home(path) ? reader->path : arena_strdup(arena, path);
    reader->sandbox.read = read;
    reader->sandbox.trust = script->trust;
    rc = sandbox_open(&reader->sandbox, pure, err);
    if (!rc && path && !is_home(path))
        link_files(reader, path);
    free(path);
    return rc ? -1 : copy_script(reader, err);
}

void bash_reader_close(struct bash_reader *reader)
{
    sandbox_close(&reader->sandbox);
}
