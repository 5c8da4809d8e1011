/* emit_megatron: the arguments of Megatron-LM. Rows of its table that name a key are turned round; what megatron_*.c
 * reads is written here. */
#include "emit/emit_megatron.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "launch/dialect.h"
#include "launch/dialect_rows.h"
#include "scenario/scenario.h"

/* An argument and its value; of a flag "true". */
static void say(struct emit *e, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(struct emit *e, const char *name, const char *format, ...)
{
    char text[64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    node_put(e->arena, e->said, name, node_scalar(e->arena, arena_strdup(e->arena, text), true));
}

static void say_text(struct emit *e, const char *name, const char *text)
{
    node_put(e->arena, e->said, name, node_scalar(e->arena, text, true));
}

/* A value as one word of a shell's. */
static const char *word(const struct emit *e, const char *text)
{
    const char *made = "";

    if (text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:+=-")] == '\0')
        return text;
    for (; strchr(text, '\''); text = strchr(text, '\'') + 1)
        made = arena_printf(e->arena, "%s%.*s'\\''", made, (int)strcspn(text, "'"), text);
    return arena_printf(e->arena, "'%s%s'", made, text);
}

/* A row that says what a launch without it means anyhow is left out. Where the release lacks an argument of a row, others may
 * say the same; where none does, the row is written, and settle_release refuses the argument by its name. */
static bool is_wanted(void *context, const struct dialect_row *row)
{
    const struct emit *e = context;
    bool differs = !row->needed;

    for (size_t i = 0; i < row->say.count; i++) {
        const struct dialect_term *term = &row->say.terms[i];
        bool has = emit_has(e, term->key) || (term->count && !strcmp(term->items[0].text, "false"));

        if (!has && !e->release.last)
            return false;
        differs &= has;
    }
    for (size_t i = 0; i < row->is.count; i++)
        differs |= emit_differs(e, row->is.terms[i].key);
    return row->is.count && differs;
}

static const char *at_path(void *context, const char *path)
{
    const char *text = emit_text(context, path);

    return *text ? text : NULL;
}

/* What the command says already of an argument. */
static const char *said(void *context, const char *name)
{
    const struct emit *e = context;

    return e->said ? node_get(e->said, name) ? node_get(e->said, name)->text : NULL : NULL;
}

static void say_row(void *context, const struct dialect_row *row, const char *name, const char *value)
{
    (void)row;
    say_text(context, name, value);
}

/* Writes what the rows of a part of the dialect say. */
static void say_rows(struct emit *e, const char *part)
{
    const struct dialect *dialect = e->dialect->like ? e->dialect->like : e->dialect;
    const struct dialect_ways ways = {true, is_wanted, at_path, said, say_row, at_path, NULL, e};

    dialect_rows_apply(e->arena, &dialect->pairs, part, &ways);
}

#define SHAPE "model.transformer."

/* A 0 or 1 for each layer. */
static void say_flags(struct emit *e, const char *name, const char *flags)
{
    const char *text = "";

    for (const char *at = flags; *at; at += strspn(at, *at == '0' ? "0" : "1"))
        text = arena_printf(e->arena, "%s%s[%c]*%zu", text, *text ? "+" : "", *at, strspn(at, *at == '0' ? "0" : "1"));
    say_text(e, name, arena_printf(e->arena, "(%s)", text));
}

/* N, where every Nth layer has no linear attention, and no other. */
static void say_linear(struct emit *e, const char *flags)
{
    size_t every = strspn(flags, "1") + 1;
    bool regular = true;

    for (size_t i = 0; flags[i]; i++)
        regular &= (flags[i] == '0') == ((i + 1) % every == 0);
    if (regular)
        say(e, "linear-attention-freq", "%zu", every);
    else
        say_flags(e, "linear-attention-freq", flags);
}

/* What the layers of a hybrid have. */
static void say_mixers(struct emit *e)
{
    enum mixes mixes = emit_megatron_mixes(e);
    bool newer = emit_has(e, "hybrid-layer-pattern");

    if (mixes == MIXES_LETTERS) {
        say_text(e, newer ? "hybrid-layer-pattern" : "hybrid-override-pattern", emit_megatron_letters(e));
        say_text(e, "spec", "megatron.core.models.mamba.mamba_layer_specs,mamba_stack_spec");
        if (!newer && emit_has(e, "is-hybrid-model"))
            say_text(e, "is-hybrid-model", "true");
    }
    if (mixes == MIXES_LINEAR) {
        say_text(e, "experimental-attention-variant", "gated_delta_net");
        say_linear(e, emit_megatron_linear(e));
    }
    if (mixes != MIXES_NONE) {
        say_rows(e, "mamba");
        say_rows(e, "delta");
    }
}

static void say_experts(struct emit *e)
{
    long dense = emit_number(e, SHAPE "dense_layers"), layers = emit_number(e, SHAPE "layers");

    if (!emit_number(e, SHAPE "experts"))
        return;
    say_rows(e, "experts");
    if (emit_megatron_mixes(e) == MIXES_LINEAR) {
        if (strchr(emit_megatron_experts(e), '0'))
            say_flags(e, "moe-layer-freq", emit_megatron_experts(e));
    } else if (dense) {
        say(e, "moe-layer-freq", "([0]*%ld+[1]*%ld)", dense, layers - dense);
    } else if (emit_number(e, SHAPE "moe_every") > 1) {
        say(e, "moe-layer-freq", "%ld", emit_number(e, SHAPE "moe_every"));
    }
    say_rows(e, "routing");
}

/* Whether it is told which stage has which blocks, and so how many virtual stages there are. */
static bool has_layout(const struct emit *e)
{
    const struct node *split = node_at(e->tree, "strategy.split");

    return split && split->count >= 2;
}

/* t*4 for four blocks; E before the first stage, m for multi-token prediction and L behind the last. */
static void say_layout(struct emit *e)
{
    const struct node *split = node_at(e->tree, "strategy.split");
    const char *text = "E";
    long ahead = emit_number(e, SHAPE "mtp");

    for (size_t i = 0; i < split->count; i++) {
        long blocks = strtol(split->items[i]->text, NULL, 10);

        text = blocks > 1 ? arena_printf(e->arena, "%s%st*%ld", text, i ? "|" : "", blocks) :
               arena_printf(e->arena, "%s%s%s", text, i ? "|" : "", blocks ? "t" : "");
    }
    text = arena_printf(e->arena, "%s%sL", text, ahead > 1 ? arena_printf(e->arena, "m*%ld", ahead) : ahead ? "m" : "");
    say_text(e, "pipeline-model-parallel-layout", text);
}

static void say_strategy(struct emit *e)
{
    long chunks = emit_megatron_mixes(e) == MIXES_LETTERS || has_layout(e) ? 1 : emit_number(e, "strategy.chunks");

    say_rows(e, "begin");
    if (chunks > 1 && emit_has(e, "num-virtual-stages-per-pipeline-rank"))
        say(e, "num-virtual-stages-per-pipeline-rank", "%ld", chunks);
    else if (chunks > 1)
        say(e, "num-layers-per-virtual-pipeline-stage", "%ld",
            emit_number(e, SHAPE "layers") / (chunks * emit_number(e, "strategy.pipeline")));
    say_rows(e, "group");
    if (has_layout(e) && emit_megatron_mixes(e) != MIXES_LETTERS)
        say_layout(e);
    say_rows(e, "context");
    say_rows(e, "zero");
    say_rows(e, "exchange");
}

/* Bytes of a bucket are those of its gradients. */
static void say_bucket(struct emit *e)
{
    if (emit_differs(e, "software.bucket") && emit_is(e, "strategy.data_parallel", "ddp"))
        say(e, "ddp-bucket-size", "%.0f", e->scenario->parallelism.bucket / emit_gradient_bytes(e));
}

void emit_megatron_say(struct emit *e)
{
    e->said = node_mapping(e->arena);
    say_rows(e, "plain");
    say_rows(e, "positions");
    say_mixers(e);
    say_rows(e, "mlp");
    say_rows(e, "attention");
    say_experts(e);
    say_strategy(e);
    say_rows(e, "memory");
    say_rows(e, "switches");
    say_bucket(e);
    say_rows(e, "core");
}

bool emit_megatron_prints(const struct emit *e, size_t i)
{
    const struct dialect *dialect = e->dialect->like ? e->dialect->like : e->dialect;
    const struct argument_row *row = dialect_row(dialect, e->said->keys[i], false);
    const char *value = e->said->items[i]->text;
    bool number = row->kind == KIND_INT || row->kind == KIND_NUMBER;
    const char *usual = row->fallback ? row->fallback : number ? "0" : "";

    return row->told || !strcmp(value, "true") ||
           (row->kind != KIND_FLAG && (number ? strtod(value, NULL) != strtod(usual, NULL) : strcmp(value, usual) != 0));
}

/* The items of a list, each by their word. */
static void print_items(const struct emit *e, const struct argument_row *row, const char *list)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        fprintf(e->out, " %s", dialect_word(e->arena, row, arena_strndup(e->arena, at, strcspn(at, ",")), true));
}

static void print_arguments(const struct emit *e)
{
    for (size_t i = 0; i < e->said->count; i++) {
        const struct argument_row *row = dialect_row(e->dialect, e->said->keys[i], false);
        const char *value = e->said->items[i]->text;

        if (!emit_megatron_prints(e, i))
            continue;
        fprintf(e->out, " \\\n    --%s", e->said->keys[i]);
        if (row->kind == KIND_ANY ? strcmp(value, "true") : row->kind == KIND_LIST && !row->joined)
            print_items(e, row, value);
        else if (row->kind != KIND_FLAG && row->kind != KIND_ANY)
            fprintf(e->out, " %s", word(e, value));
    }
}

void emit_megatron_write(struct emit *e)
{
    int gpus = scenario_gpus(e->scenario), per_node = cluster_node_gpus(&e->scenario->cluster, 0);
    int nodes = per_node > 0 ? (gpus + per_node - 1) / per_node : 1;

    /* validate_args: before Blackwell one connection keeps the order of exchanges and kernels; FSDP wants several */
    if (emit_number(e, "strategy.zero") < 2 && (emit_number(e, "strategy.tensor") > 1 || emit_number(e, "strategy.context") > 1) &&
        !emit_is(e, "strategy.overlap_dispatch", "micro-batches"))
        fputs("CUDA_DEVICE_MAX_CONNECTIONS=1 ", e->out);
    fprintf(e->out, "torchrun --nnodes %d --nproc_per_node %d %s", nodes, gpus / nodes,
            emit_is(e, SHAPE "causal", "false") ? "pretrain_bert.py" :
            emit_megatron_mixes(e) == MIXES_LETTERS ? "pretrain_mamba.py" : "pretrain_gpt.py");
    emit_megatron_say(e);
    print_arguments(e);
    fputc('\n', e->out);
}
