/* own: a framework that a file of platforms/dialects/ describes, and no code: its rows are asked in the order of the file, before
 * and behind the number of replicas is known. */
#include "jobs/jobs_internal.h"

#include "jobs/toml.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/dialect.h"
#include "launch/imported.h"
#include "launch/launch.h"
#include "megatron/megatron.h"

static long long number_at(const struct imported *m, const char *path, long long otherwise)
{
    const struct node *node = node_at(m->root, path);

    return node && node->text ? strtoll(node->text, NULL, 10) : otherwise;
}

static void ask_rows(struct imported *m, bool quiet)
{
    m->quiet = quiet;
    for (const char *at = m->dialect->order; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (quiet || at != m->dialect->order)
            imported_rows(m, arena_strndup(m->arena, at, strcspn(at, " ")));
    if (quiet)
        return;
    imported_plain(m);
    imported_unread(m);
}

/* An argument that has an effect is read by a key or a row. */
static int check_read(const struct dialect *dialect, struct error *err)
{
    for (size_t i = 0; i < dialect->own; i++) {
        const struct argument_row *argument = &dialect->rows[i];
        bool read = argument->path || argument->class != ARGUMENT_MAPPED;

        for (size_t k = 0; k < dialect->pairs.count && !read; k++)
            for (size_t t = 0; t < dialect->pairs.items[k].say.count; t++)
                read |= !strcmp(dialect->pairs.items[k].say.terms[t].key, argument->name);
        if (!read)
            return error_add(err, EXIT_INPUT, argument->loc, "nobody reads '%s'; expected a key 'is', 'idle' or 'lacks', or a row "
                             "that says it", argument->name);
    }
    return 0;
}

static int build(struct imported *m, struct node *model)
{
    long long gpus, data, global, micro, world = imported_world(m);

    if (check_read(m->dialect, m->err) || imported_sort(m) || job_model(m, model) < 0)
        return -1;
    m->whole = true;
    m->software = m->dialect->software ? m->dialect->software : "pytorch-ddp";
    imported_put(m, "software.like", "%s", m->software);
    ask_rows(m, true);
    gpus = number_at(m, "strategy.tensor", 1) * number_at(m, "strategy.pipeline", 1) * number_at(m, "strategy.context", 1);
    if (gpus < 1 || gpus > 1 << 20)
        return error_add(m->err, EXIT_INPUT, m->launch->loc, "expected degrees of 1 to %d GPUs in all, found %lld", 1 << 20, gpus);
    global = number_at(m, "batch.global", 0);
    micro = number_at(m, "batch.micro", 0);
    if (!world)
        world = gpus * number_at(m, "strategy.data", 0);
    data = imported_cluster(m, gpus, 1, micro > 0 && global % micro == 0 ? global / micro : 0, world);
    if (!data)
        return -1;
    ask_rows(m, false);
    if (micro > 0 && !node_at(m->root, "batch.global") && !node_at(m->root, "batch.micro_batches"))
        imported_put(m, "batch.global", "%lld", micro * data);
    return m->err->count ? -1 : 0;
}

static void add_line(struct arena *arena, struct launch *launch, const char *name, const char *value, int line)
{
    struct launch_argument *argument = GROW(&launch->arguments);
    size_t length = strlen(value);

    if (length > 1 && (*value == '"' || *value == '\'') && value[length - 1] == *value)
        value = arena_strndup(arena, value + 1, length - 2);
    else if (!strcmp(value, "True") || !strcmp(value, "False"))
        value = *value == 'T' ? "true" : "false";
    *argument = (struct launch_argument){name, {launch->file, line, 1}, ARENA_ARRAY(arena, struct launch_word, 1), 1};
    argument->values[0] = (struct launch_word){value, argument->loc};
}

/* The text before a comment of Python, without blanks at its end. */
static const char *without_comment(struct arena *arena, const char *text, size_t length)
{
    char quote = '\0';
    size_t i = 0;

    for (; i < length && (quote || text[i] != '#'); i++)
        if (quote ? text[i] == quote : text[i] == '"' || text[i] == '\'')
            quote = quote ? '\0' : text[i];
    while (i && (text[i - 1] == ' ' || text[i - 1] == '\t' || text[i - 1] == '\r'))
        i--;
    return arena_strndup(arena, text, i);
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* Assignments of Python, "config.SECTION.KEY = VALUE", as emit writes them: one function, without conditions and loops. Nothing
 * is run; any other line is an error, as what it sets would be missing. The function that the configuration begins with is the
 * argument "config", where the dialect has one. */
static int read_python(struct arena *arena, const struct dialect *dialect, const char *text, struct launch *launch,
                       struct error *err)
{
    static const char begin[] = "config.", base[] = "config = ";
    int line = 1, functions = 0;

    launch->log = launch->keys = true;
    launch->loc = (struct loc){.file = launch->file};
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n', line++) {
        const char *here = at + strspn(at, " \t"), *code = without_comment(arena, here, strcspn(here, "\n"));
        const char *equal = strstr(code, " = ");
        size_t length = strlen(code);

        if (begins(code, begin) && equal)
            add_line(arena, launch, arena_strndup(arena, code + strlen(begin), (size_t)(equal - code) - strlen(begin)), equal + 3,
                     line);
        else if (begins(code, base) && length > strlen(base) + 2 && !strcmp(code + length - 2, "()")) {
            if (dialect_row(dialect, "config", false) && code[strlen(base)] != '<')
                add_line(arena, launch, "config", arena_strndup(arena, code + strlen(base), length - strlen(base) - 2), line);
        }
        else if (!(!length || begins(code, "import ") || begins(code, "from ") || begins(code, "return config") ||
                   (begins(code, "def ") && !functions++) || (length > 5 && begins(code, "\"\"\"") && !strcmp(code + length - 3, "\"\"\""))))
            return error_add(err, EXIT_INPUT, (struct loc){launch->file, line, 1 + (int)(here - at)}, "this line of Python is not read, "
                             "and what it sets would be missing; expected one function with lines such as config.SECTION.KEY = VALUE");
    }
    return launch->arguments.count ? 0 : error_add(err, EXIT_INPUT, launch->loc, "no line says config.SECTION.KEY = VALUE");
}

static int read_text(struct arena *arena, const struct dialect *dialect, const struct job_text *job, struct launch *launch,
                     struct error *err)
{
    const char *form = dialect->form;
    struct node *root = NULL;

    if (!strcmp(form, "arguments"))
        return launch_parse(arena, job->file, job->text, job->length, launch, err);
    if (!strcmp(form, "python"))
        return read_python(arena, dialect, arena_strndup(arena, job->text, job->length), launch, err);
    return (!strcmp(form, "toml") ? toml_parse : conf_parse)(arena, job->file, job->text, job->length, &root, err) ||
           job_arguments(arena, root, launch, err) ? -1 : 0;
}

static struct node *scenario_of(struct imported *m, struct node *model, int rc, const char **comment, FILE *notes)
{
    rc = imported_end(m, rc ? rc : build(m, model), notes);
    *comment = m->comment;
    return rc ? NULL : m->root;
}

struct node *own_scenario(struct arena *arena, const struct job_text *job, const char **comment, FILE *notes,
                          struct error *err)
{
    struct launch launch = {.file = job->file};
    struct imported m = {.arena = arena, .launch = &launch, .options = job->options, .err = err};
    int rc = imported_begin(&m, job->dialect) ? -1 : read_text(arena, m.dialect, job, &launch, err);
    struct node *root = scenario_of(&m, job->model, rc, comment, notes);

    launch_release(&launch);
    return root;
}

/* A script, which bash reads. */
static int import_launch(struct imported *m, const char *path, const char *kind, FILE *out, FILE *notes)
{
    const char *comment = "";
    struct node *root = scenario_of(m, NULL, launch_load(m->arena, path, m->options, m->launch, m->err), &comment, notes);
    int rc = root ? imported_print(root, m->launch->file, kind, comment, out, m->err) : -1;

    launch_release(m->launch);
    return rc;
}

int framework_import(struct arena *arena, const char *framework, const char *path, const struct import_options *options, FILE *out,
                     FILE *notes, struct error *err)
{
    static const struct job_kind kinds[] = {
        {"deepspeed", deepspeed_scenario, false}, {"torchtitan", torchtitan_scenario, false},
        {"transformers", transformers_scenario, false}, {"bridge", bridge_scenario, false}, {"nemo", nemo_scenario, false},
    };
    struct launch launch = {.file = path};
    struct imported m = {.arena = arena, .launch = &launch, .options = options, .err = err};
    struct job_kind kind = {framework, own_scenario, true};

    if (!strcmp(framework, "megatron"))
        return megatron_import(arena, path, options, out, notes, err);
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (!strcmp(framework, kinds[i].name))
            return job_import(arena, path, &kinds[i], options, out, notes, err);
    if (imported_begin(&m, framework))
        return -1;
    if (m.dialect->reader)
        kind.read = transformers_scenario;
    return !m.dialect->reader && !strcmp(m.dialect->form, "arguments") ? import_launch(&m, path, framework, out, notes) :
           job_import(arena, path, &kind, options, out, notes, err);
}
