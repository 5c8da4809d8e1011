/* emit_megatron: the arguments of Megatron-LM. Rows of its table that name a key are turned round; what megatron_*.c
 * reads is written here. */
#include "emit/emit_megatron.h"

#include "emit/emit_rows.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "scenario/scenario.h"

#define SHAPE "model.transformer."

/* A 0 or 1 for each layer. */
static void say_flags(struct emit *e, const char *name, const char *flags)
{
    const char *text = "";

    for (const char *at = flags; *at; at += strspn(at, *at == '0' ? "0" : "1"))
        text = arena_printf(e->arena, "%s%s[%c]*%zu", text, *text ? "+" : "", *at, strspn(at, *at == '0' ? "0" : "1"));
    emit_say_text(e, name, arena_printf(e->arena, "(%s)", text));
}

/* N, where every Nth layer has no linear attention, and no other. */
static void say_linear(struct emit *e, const char *flags)
{
    size_t every = strspn(flags, "1") + 1;
    bool regular = true;

    for (size_t i = 0; flags[i]; i++)
        regular &= (flags[i] == '0') == ((i + 1) % every == 0);
    if (regular)
        emit_say(e, "linear-attention-freq", "%zu", every);
    else
        say_flags(e, "linear-attention-freq", flags);
}

/* What the layers of a hybrid have. */
static void say_mixers(struct emit *e)
{
    enum mixes mixes = emit_megatron_mixes(e);
    bool newer = emit_has(e, "hybrid-layer-pattern");

    if (mixes == MIXES_LETTERS) {
        emit_say_text(e, newer ? "hybrid-layer-pattern" : "hybrid-override-pattern", emit_megatron_letters(e));
        emit_say_text(e, "spec", "megatron.core.models.mamba.mamba_layer_specs,mamba_stack_spec");
        if (!newer && emit_has(e, "is-hybrid-model"))
            emit_say_text(e, "is-hybrid-model", "true");
    }
    if (mixes == MIXES_LINEAR) {
        emit_say_text(e, "experimental-attention-variant", "gated_delta_net");
        say_linear(e, emit_megatron_linear(e));
    }
    if (mixes != MIXES_NONE) {
        emit_say_rows(e, "mamba");
        emit_say_rows(e, "delta");
    }
}

static void say_experts(struct emit *e)
{
    long long dense = emit_number(e, SHAPE "dense_layers"), layers = emit_number(e, SHAPE "layers");

    if (!emit_number(e, SHAPE "experts"))
        return;
    emit_say_rows(e, "experts");
    if (emit_megatron_mixes(e) == MIXES_LINEAR) {
        if (strchr(emit_megatron_experts(e), '0'))
            say_flags(e, "moe-layer-freq", emit_megatron_experts(e));
    } else if (dense) {
        emit_say(e, "moe-layer-freq", "([0]*%lld+[1]*%lld)", dense, layers - dense);
    } else if (emit_number(e, SHAPE "moe_every") > 1) {
        emit_say(e, "moe-layer-freq", "%lld", emit_number(e, SHAPE "moe_every"));
    }
    emit_say_rows(e, "routing");
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
    long long ahead = emit_number(e, SHAPE "mtp");

    for (size_t i = 0; i < split->count; i++) {
        long long blocks = strtoll(split->items[i]->text, NULL, 10);

        text = blocks > 1 ? arena_printf(e->arena, "%s%st*%lld", text, i ? "|" : "", blocks) :
               arena_printf(e->arena, "%s%s%s", text, i ? "|" : "", blocks ? "t" : "");
    }
    text = arena_printf(e->arena, "%s%sL", text, ahead > 1 ? arena_printf(e->arena, "m*%lld", ahead) : ahead ? "m" : "");
    emit_say_text(e, "pipeline-model-parallel-layout", text);
}

static void say_strategy(struct emit *e)
{
    long long chunks = emit_megatron_mixes(e) == MIXES_LETTERS || has_layout(e) ? 1 : emit_number(e, "strategy.chunks");

    emit_say_rows(e, "begin");
    if (chunks > 1 && emit_has(e, "num-virtual-stages-per-pipeline-rank"))
        emit_say(e, "num-virtual-stages-per-pipeline-rank", "%lld", chunks);
    else if (chunks > 1)
        emit_say(e, "num-layers-per-virtual-pipeline-stage", "%lld",
            emit_number(e, SHAPE "layers") / (chunks * emit_number(e, "strategy.pipeline")));
    emit_say_rows(e, "group");
    if (has_layout(e) && emit_megatron_mixes(e) != MIXES_LETTERS)
        say_layout(e);
    emit_say_rows(e, "context");
    emit_say_rows(e, "zero");
    emit_say_rows(e, "exchange");
}

/* Bytes of a bucket are those of its gradients. */
static void say_bucket(struct emit *e)
{
    if (emit_differs(e, "software.bucket") && emit_is(e, "strategy.data_parallel", "ddp"))
        emit_say(e, "ddp-bucket-size", "%.0f", e->scenario->parallelism.bucket / emit_gradient_bytes(e));
}

void emit_megatron_say(struct emit *e)
{
    e->said = node_mapping(e->arena);
    emit_say_rows(e, "plain");
    emit_say_rows(e, "positions");
    say_mixers(e);
    emit_say_rows(e, "mlp");
    emit_say_rows(e, "attention");
    say_experts(e);
    say_strategy(e);
    emit_say_rows(e, "memory");
    emit_say_rows(e, "switches");
    say_bucket(e);
    emit_say_rows(e, "core");
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
    emit_print_arguments(e);
    fputc('\n', e->out);
}
