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

/* One argument: "--name value", or without the value. */
static void say(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct emit *e, const char *format, ...)
{
    va_list arguments;

    fputs(" \\\n    --", e->out);
    va_start(arguments, format);
    vfprintf(e->out, format, arguments);
    va_end(arguments);
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

/* A list with blanks for commas. */
static const char *words(struct arena *arena, const char *list)
{
    char *text = arena_strdup(arena, list);

    for (char *c = text; *c; c++)
        *c = *c == ',' ? ' ' : *c;
    return text;
}

static void say_row(void *context, const struct dialect_row *row, const char *name, const char *value)
{
    struct emit *e = context;
    const struct dialect *dialect = e->dialect->like ? e->dialect->like : e->dialect;
    const struct argument_row *argument = dialect_row(dialect, name, false);
    bool number = argument->kind == KIND_INT || argument->kind == KIND_NUMBER;
    const char *usual = argument->fallback ? argument->fallback : number ? "0" : "";

    (void)row;
    node_put(e->arena, e->said, name, node_scalar(e->arena, value, true));
    if (!strcmp(value, "true"))
        say(e, "%s", name);
    else if (argument->kind == KIND_LIST && !argument->joined)
        say(e, "%s %s", name, words(e->arena, value));
    else if (argument->kind != KIND_FLAG && (argument->told || (number ? strtod(value, NULL) != strtod(usual, NULL) :
                                                                strcmp(value, usual) != 0)))
        say(e, "%s %s", name, word(e, value));
}

/* Writes what the rows of a part of the dialect say. */
static void say_rows(struct emit *e, const char *part)
{
    const struct dialect *dialect = e->dialect->like ? e->dialect->like : e->dialect;
    const struct dialect_ways ways = {true, is_wanted, at_path, said, say_row, at_path, e};

    dialect_rows_apply(e->arena, &dialect->pairs, part, &ways);
}

#define SHAPE "model.transformer."

/* A 0 or 1 for each layer. */
static void say_flags(struct emit *e, const char *name, const char *flags)
{
    const char *text = "";

    for (const char *at = flags; *at; at += strspn(at, *at == '0' ? "0" : "1"))
        text = arena_printf(e->arena, "%s%s[%c]*%zu", text, *text ? "+" : "", *at, strspn(at, *at == '0' ? "0" : "1"));
    say(e, "%s %s", name, word(e, arena_printf(e->arena, "(%s)", text)));
}

/* N, where every Nth layer has no linear attention, and no other. */
static void say_linear(struct emit *e, const char *flags)
{
    size_t every = strspn(flags, "1") + 1;
    bool regular = true;

    for (size_t i = 0; flags[i]; i++)
        regular &= (flags[i] == '0') == ((i + 1) % every == 0);
    if (regular)
        say(e, "linear-attention-freq %zu", every);
    else
        say_flags(e, "linear-attention-freq", flags);
}

/* What the layers of a hybrid have. */
static void say_mixers(struct emit *e)
{
    enum mixes mixes = emit_megatron_mixes(e);
    bool newer = emit_has(e, "hybrid-layer-pattern");

    if (mixes == MIXES_LETTERS)
        say(e, "%s %s \\\n    --spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec%s",
            newer ? "hybrid-layer-pattern" : "hybrid-override-pattern", word(e, emit_megatron_letters(e)),
            newer || !emit_has(e, "is-hybrid-model") ? "" : " \\\n    --is-hybrid-model");
    if (mixes == MIXES_LINEAR) {
        say(e, "experimental-attention-variant gated_delta_net");
        say_linear(e, emit_megatron_linear(e));
    }
    if (mixes != MIXES_NONE) {
        say_rows(e, "mamba");
        say_rows(e, "delta");
    }
}

static void say_model(struct emit *e)
{
    long positions = emit_number(e, SHAPE "positions");

    if (!positions)
        say(e, "position-embedding-type rope");
    /* validate_args asks for it whatever the positions are, and for no less than the length of a sample */
    say(e, "max-position-embeddings %ld", positions ? positions : emit_number(e, SHAPE "sequence"));
    say(e, "vocab-size %ld", emit_number(e, SHAPE "vocabulary"));
    say_mixers(e);
    say_rows(e, "mlp");
    say_rows(e, "attention");
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
        say(e, "moe-layer-freq %s", word(e, arena_printf(e->arena, "([0]*%ld+[1]*%ld)", dense, layers - dense)));
    } else if (emit_number(e, SHAPE "moe_every") > 1) {
        say(e, "moe-layer-freq %ld", emit_number(e, SHAPE "moe_every"));
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
    say(e, "pipeline-model-parallel-layout %s", word(e, text));
}

static void say_strategy(struct emit *e)
{
    static const char *const shards[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    long zero = emit_number(e, "strategy.zero"), replicas = scenario_replicas(e->scenario);
    long shard = emit_number(e, "strategy.shard"), chunks = emit_number(e, "strategy.chunks");

    if (emit_is(e, "strategy.sequence_parallel", "true"))
        say(e, "sequence-parallel");
    if (emit_megatron_mixes(e) == MIXES_LETTERS)          /* the letters say it */
        chunks = 1;
    if (chunks > 1 && !has_layout(e) && emit_has(e, "num-virtual-stages-per-pipeline-rank"))
        say(e, "num-virtual-stages-per-pipeline-rank %ld", chunks);
    else if (chunks > 1 && !has_layout(e))
        say(e, "num-layers-per-virtual-pipeline-stage %ld",
            emit_number(e, SHAPE "layers") / (chunks * emit_number(e, "strategy.pipeline")));
    if (emit_number(e, "strategy.micro_batch_group") && emit_differs(e, "strategy.micro_batch_group"))
        say(e, "microbatch-group-size-per-virtual-pipeline-stage %ld", emit_number(e, "strategy.micro_batch_group"));
    if (has_layout(e) && emit_megatron_mixes(e) != MIXES_LETTERS)
        say_layout(e);
    say_rows(e, "context");
    if (zero == 1 && !emit_is(e, "memory.optimizer", "muon"))
        say(e, "use-distributed-optimizer");
    if (zero > 1 && zero < 4)
        say(e, "use-megatron-fsdp \\\n    --ckpt-format fsdp_dtensor \\\n    --data-parallel-sharding-strategy %s", shards[zero]);
    if (zero == 1 && shard && shard < replicas && replicas % shard == 0)
        say(e, "num-distributed-optimizer-instances %ld", replicas / shard);
    if (emit_is(e, "strategy.data_parallel", "ddp"))
        say(e, "overlap-grad-reduce");
}

static void say_recompute(struct emit *e)
{
    static const struct { const char *theirs, *ours; } names[] = {
        {"layernorm", "norms"}, {"moe_act", "activation"}, {"mla_up_proj", "latent"}, {"core_attn", "core"},
        {"mlp", "mlp"}, {"moe", "experts"}, {"shared_experts", "shared-experts"},
    };
    const char *mode = emit_text(e, "memory.recompute.mode");
    long every = emit_number(e, "memory.recompute.every");

    if (!*mode)
        mode = emit_text(e, "memory.recompute");
    if (!strcmp(mode, "selective"))
        say(e, "recompute-granularity selective");
    if (!strcmp(mode, "full") && *emit_text(e, "memory.recompute.blocks"))
        say(e, "recompute-granularity full \\\n    --recompute-method block \\\n    --recompute-num-layers %ld",
            emit_number(e, "memory.recompute.blocks"));
    else if (!strcmp(mode, "full"))
        say(e, "recompute-granularity full \\\n    --recompute-method uniform \\\n    --recompute-num-layers %ld",
            every > 1 ? every : 1);
    if (!strcmp(mode, "modules")) {
        say(e, "recompute-granularity selective \\\n    --recompute-modules");
        for (size_t i = 0; i < COUNT(names); i++)
            if (emit_recomputes(e, names[i].ours))
                fprintf(e->out, " %s", names[i].theirs);
    }
}

static void say_memory(struct emit *e)
{
    static const struct { const char *ours, *theirs; } precisions[] = {
        {"mixed-bf16", "bf16"},
        {"mixed-fp16", "fp16"},
        {"mixed-fp8", "bf16 \\\n    --fp8-format hybrid"},
        {"mixed-fp8-block", "bf16 \\\n    --fp8-format hybrid \\\n    --fp8-recipe blockwise"},
        {"mixed-mxfp8", "bf16 \\\n    --fp8-format hybrid \\\n    --fp8-recipe mxfp8"},
        {"mixed-nvfp4", "bf16 \\\n    --fp4-format e2m1"},
    };
    bool eight = emit_is(e, "memory.optimizer", "adam-8bit"), half = emit_is(e, "memory.optimizer", "adam-half");
    bool offload = strstr(emit_text(e, "memory.offload"), "optimizer") != NULL;
    bool master = emit_is(e, "software.master", "half"), muon = emit_is(e, "memory.optimizer", "muon");

    for (size_t i = 0; i < COUNT(precisions); i++)
        if (emit_is(e, "memory.precision", precisions[i].ours))
            say(e, "%s", precisions[i].theirs);
    /* with delayed scales, which are the default, it recomputes neither */
    if (emit_is(e, "memory.precision", "mixed-fp8") && (emit_recomputes(e, "norms") || emit_recomputes(e, "activation")))
        say(e, "fp8-recipe tensorwise");
    if (emit_is(e, "memory.optimizer", "momentum"))        /* it has neither lamb nor adafactor, which forks have */
        say(e, "optimizer sgd");
    /* 0.16 and 0.17 refuse --use-distributed-optimizer with Muon; later releases still know dist_muon (arguments.py). */
    if (muon)
        say(e, "optimizer %s", emit_number(e, "strategy.zero") == 1 ? "dist_muon" : "muon");
    if (muon && emit_number(e, "strategy.tensor") > 1)
        say(e, "muon-tp-mode %s", emit_text(e, "software.muon_tensor"));
    if (muon && emit_is(e, "software.muon_split_qkv", "false"))
        say(e, "muon-no-split-qkv");
    if (eight || half || master || offload)                /* the optimizer on the host is a part of that one */
        say(e, "use-precision-aware-optimizer");
    if (eight || half)
        say(e, "exp-avg-dtype %s \\\n    --exp-avg-sq-dtype %s", eight ? "fp8" : "bf16", eight ? "fp8" : "bf16");
    if (master)
        say(e, "main-params-dtype fp16");
    if (offload)
        say(e, "optimizer-cpu-offload");
    say_recompute(e);
}

/* Switches that the scenario's software may have otherwise than megatron-core. */
static void say_software(struct emit *e)
{
    long accesses = emit_number(e, "software.gradient_accesses");
    bool fp16 = emit_is(e, "memory.precision", "mixed-fp16"), half = emit_gradient_bytes(e) == 2;

    if (fp16 && !half)
        say(e, "accumulate-allreduce-grads-in-fp32");
    if (!fp16 && half)
        say(e, "grad-reduce-in-bf16");
    if (emit_differs(e, "software.bucket") && emit_is(e, "strategy.data_parallel", "ddp"))
        say(e, "ddp-bucket-size %.0f", e->scenario->parallelism.bucket / emit_gradient_bytes(e));
    if (emit_is(e, "software.overlap_gathers", "true") && emit_number(e, "strategy.zero") == 1)
        say(e, "overlap-param-gather");
    if (accesses == 2 || accesses == 1)
        say(e, "ddp-average-in-collective");
    if (accesses == 3 || accesses == 1)
        say(e, "no-check-for-nan-in-loss-and-grad");
    if (emit_is(e, "software.clip_gradients", "false"))
        say(e, "clip-grad 0");
    if (emit_is(e, "software.overlap_products", "true"))
        say(e, "tp-comm-overlap");
    if (emit_is(e, "software.flash_attention", "false"))
        say(e, "attention-backend unfused");
    else if (emit_is(e, "software.attention", "cudnn"))
        say(e, "attention-backend fused");
    else if (emit_is(e, "software.attention", "flash-2") || emit_is(e, "software.attention", "flash-3"))
        say(e, "flash-attention-version %s", emit_text(e, "software.attention") + strlen("flash-"));
    if (emit_is(e, "software.cross_entropy", "compiled"))  /* that of Transformer Engine is refused by 0.19 */
        say(e, "cross-entropy-loss-fusion");
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
    e->said = node_mapping(e->arena);
    say_rows(e, "plain");
    say_model(e);
    say_experts(e);
    say_strategy(e);
    say_memory(e);
    say_software(e);
    fputc('\n', e->out);
}
