/* megatron: puts the parts together, and says what became of each argument. */
#include "megatron/megatron_internal.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdlib.h>

void megatron_put(struct megatron *m, const char *path, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    struct node *value;

    va_start(arguments, format);
    BUG_IF(vsnprintf(text, sizeof text, format, arguments) < 0);
    va_end(arguments);
    if (!conf_parse(m->arena, path, text, strlen(text), &value, m->err))
        conf_put(m->arena, m->root, path, value, (struct loc){.file = path}, m->err);
}

void megatron_remark(struct megatron *m, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    m->comment = arena_printf(m->arena, "%s# %s\n", m->comment, text);
}

/* DeepSpeed's arguments, or those that only a Megatron-LM of 2021 takes, tell the release. */
static const char *software_of(const struct megatron *m)
{
    static const char *const deepspeed[] = {"deepspeed", "deepspeed-config", "zero-stage",
                                            "deepspeed-activation-checkpointing"};
    static const char *const older[] = {"activations-checkpoint-method", "checkpoint-activations", "DDP-impl"};

    for (size_t i = 0; i < COUNT(deepspeed); i++)
        if (megatron_given(m, deepspeed[i]))
            return "megatron-deepspeed";
    for (size_t i = 0; i < COUNT(older); i++)
        if (megatron_given(m, older[i]))
            return "megatron-lm-2021";
    return megatron_given(m, "use-torch-fsdp2") ? "pytorch-fsdp" : "megatron-core";
}

/* What a word there is here: "LayerNorm=layernorm RMSNorm=rmsnorm". */
static const char *translated(struct arena *arena, const char *words, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = words; at && (at = strstr(at, word)); at++)
        if ((at == words || at[-1] == ' ') && at[length] == '=')
            return arena_strndup(arena, at + length + 1, strcspn(at + length + 1, " "));
    return NULL;
}

/* Arguments whose row names a key. */
static void put_plain(struct megatron *m)
{
    const struct argument_row *row;

    for (size_t i = 0; (row = megatron_row_at(i)); i++) {
        const struct launch_argument *argument = m->given[i];
        const char *value = !argument ? NULL : argument->count ? argument->values[0].text : row->words;

        if (!argument || !row->path)
            continue;
        if (row->kind == KIND_WORD && row->words && !(value = translated(m->arena, row->words, value))) {
            megatron_refuse(m, row->name, "'%.60s' is not simulated; expected one of (theirs=here) %s",
                            argument->values[0].text, row->words);
            continue;
        }
        if (row->kind == KIND_INT)
            value = arena_printf(m->arena, "%ld", strtol(value, NULL, 10));
        else if (row->kind == KIND_NUMBER)
            value = arena_printf(m->arena, "%g", strtod(value, NULL));
        megatron_put(m, row->path, "%s", value);
    }
}

static void warn_lacking(struct megatron *m)
{
    const struct argument_row *row;

    for (size_t i = 0; (row = megatron_row_at(i)); i++)
        if (m->given[i] && row->class == ARGUMENT_LACKS)
            launch_warn(m->launch, m->arena, m->given[i]->loc, "--%s is not simulated%s%s", row->name, row->why ? ": " : "",
                        row->why ? row->why : "");
}

static int by_place(const void *a, const void *b)
{
    const struct launch_warning *first = a, *second = b;
    int line = (first->loc.line > second->loc.line) - (first->loc.line < second->loc.line);
    int column = (first->loc.column > second->loc.column) - (first->loc.column < second->loc.column);

    return line ? line : column ? column : strcmp(first->text, second->text);
}

static void print_warnings(const struct launch *launch, FILE *notes)
{
    if (launch->warnings.count)
        qsort(launch->warnings.items, launch->warnings.count, sizeof *launch->warnings.items, by_place);
    for (size_t i = 0; i < launch->warnings.count; i++) {
        const struct launch_warning *warning = &launch->warnings.items[i];

        text_write(TEXT_LINE, warning->loc.file, notes);
        if (warning->loc.line)
            fprintf(notes, ":%d:%d", warning->loc.line, warning->loc.column);
        fputs(": warning: ", notes);
        text_write(TEXT_LINE, warning->text, notes);
        fputc('\n', notes);
    }
}

/* The arguments of a class, by name. */
static const char *list_class(const struct megatron *m, enum argument_class class, bool given, size_t *count)
{
    const struct argument_row *row;
    const char *list = "";

    *count = 0;
    for (size_t i = 0; (row = megatron_row_at(i)); i++) {
        if (row->class != class || (m->given[i] != NULL) != given || (!given && (!row->fallback || !megatron_has_needs(m, row))))
            continue;
        ++*count;
        list = arena_printf(m->arena, "%s%s%s%s%s", list, *list ? ", " : "", row->name, given ? "" : " ",
                            given ? "" : row->fallback);
    }
    return list;
}

static void print_list(struct arena *arena, size_t count, const char *title, const char *names, FILE *notes)
{
    const char *text = arena_printf(arena, "%zu %s%s%s", count, title, count ? ": " : "", names);

    text_wrap(text, 0, 2, text_width(notes), notes);
}

static void print_classes(const struct megatron *m, FILE *notes)
{
    size_t idle, defaults;
    const char *idles = list_class(m, ARGUMENT_IDLE, true, &idle);
    const char *left_out = list_class(m, ARGUMENT_MAPPED, false, &defaults);

    fprintf(notes, "%zu arguments are in the scenario, with software %s\n", m->counts[ARGUMENT_MAPPED], m->software);
    print_list(m->arena, defaults, "are left out and have Megatron-LM's defaults", left_out, notes);
    print_list(m->arena, idle, "have no effect on the time of an iteration", idles, notes);
    fprintf(notes, "%zu have an effect that is not simulated\n", m->counts[ARGUMENT_LACKS]);
}

static int refuse_warnings(const struct launch *launch, struct error *err)
{
    for (size_t i = 0; i < launch->warnings.count; i++)
        error_add(err, EXIT_INPUT, launch->warnings.items[i].loc, "%s", launch->warnings.items[i].text);
    return launch->warnings.count ? -1 : 0;
}

/* The parts in the order in which one needs another. */
static int build(struct megatron *m)
{
    long data;

    if (megatron_sort(m))
        return -1;
    m->software = software_of(m);
    put_plain(m);
    warn_lacking(m);
    megatron_model(m);
    if (m->err->count)
        return -1;
    megatron_experts(m);
    data = megatron_cluster(m);
    if (!data)
        return -1;
    megatron_strategy(m, data);
    megatron_memory(m);
    megatron_software(m, data);
    return m->err->count ? -1 : 0;
}

struct node *megatron_scenario(struct arena *arena, struct launch *launch, const struct megatron_options *options,
                               const char **comment, FILE *notes, struct error *err)
{
    static const char *const parts[] = {"model", "cluster", "batch", "strategy", "memory", "software"};
    struct megatron m = {.arena = arena, .launch = launch, .options = options, .comment = "", .err = err};
    int rc;

    m.root = node_mapping(arena);
    for (size_t i = 0; i < COUNT(parts); i++)
        node_put(arena, m.root, parts[i], node_mapping(arena));
    rc = build(&m);
    if (options->strict)
        rc |= refuse_warnings(launch, err);
    else
        print_warnings(launch, notes);
    if (rc)
        return NULL;
    print_classes(&m, notes);
    *comment = m.comment;
    return m.root;
}

int megatron_import(struct arena *arena, const char *path, const struct megatron_options *options, FILE *out,
                    FILE *notes, struct error *err)
{
    struct launch launch = {0};
    const char *comment = "";
    struct node *root = NULL;

    if (!launch_load(arena, path, options->sets, options->nsets, &launch, err))
        root = megatron_scenario(arena, &launch, options, &comment, notes, err);
    if (root) {
        fputs("# From ", out);
        text_write(TEXT_LINE, launch.file, out);
        fputs(", by dtsim import megatron.\n", out);
        fputs(comment, out);
        node_print(root, out);
    }
    launch_release(&launch);
    return root ? 0 : -1;
}
