/* emit_megatron_fit: what Megatron-LM's own checks refuse before the first iteration ends, said of the scenario. The
 * rules are those of core_v0.19.0: training/arguments.py (validate_args), core/transformer/transformer_config.py and
 * core/optimizer/optimizer_config.py (__post_init__), core/transformer/moe/moe_layer.py (forward). */
#include "emit/emit_megatron.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "scenario/scenario.h"

#define SHAPE "model.transformer."

/* What it refuses: whether that is so here, the key that decides it, and a sentence that begins with an argument. */
struct fit_rule { bool broken; const char *path, *text; };

static void apply(struct emit *e, const struct fit_rule *rules, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct node *node = node_at(e->scenario->node, rules[i].path);

        if (rules[i].broken)
            error_add(err, EXIT_INFEASIBLE, node ? node->loc : (struct loc){.file = e->scenario->name},
                      "%s cannot be told to Megatron Core: %s", rules[i].path, rules[i].text);
    }
}

static bool truth(const struct emit *e, const char *path)
{
    return emit_is(e, path, "true");
}

static void fit_model(struct emit *e, struct error *err)
{
    long tensor = emit_number(e, "strategy.tensor"), heads = emit_number(e, SHAPE "heads");
    long groups = emit_number(e, SHAPE "kv_heads"), context = emit_number(e, "strategy.context");
    long sequence = emit_number(e, SHAPE "sequence"), positions = emit_number(e, SHAPE "positions");
    const struct fit_rule rules[] = {
        {heads % tensor != 0, "strategy.tensor",
         arena_printf(e->arena, "--num-attention-heads %ld is no multiple of --tensor-model-parallel-size %ld", heads, tensor)},
        {groups && groups != heads && groups % tensor && tensor % groups, "strategy.tensor",
         arena_printf(e->arena, "--num-query-groups %ld and --tensor-model-parallel-size %ld: expected one to divide the other",
                      groups, tensor)},
        {context > 1 && sequence % (2 * context), "strategy.context",
         arena_printf(e->arena, "--seq-length %ld is no multiple of twice --context-parallel-size %ld", sequence, context)},
        {emit_number(e, SHAPE "mtp") && positions, SHAPE "mtp",
         "--mtp-num-layers goes with rotary positions alone; expected 'positions: 0'"},
    };

    apply(e, rules, COUNT(rules), err);
}

static void fit_experts(struct emit *e, struct error *err)
{
    long tensor = emit_number(e, "strategy.tensor"), split = emit_number(e, "strategy.expert_tensor");
    bool once = emit_is(e, "software.dispatch", "once");
    const struct fit_rule rules[] = {
        {truth(e, SHAPE "bias") && (split ? split : tensor) > 1, "strategy.expert_tensor",
         "--expert-tensor-parallel-size: experts with biases are not divided; expected 'expert_tensor: 1', or a model with "
         "'bias: false'"},
        {tensor > 1 && !truth(e, "strategy.sequence_parallel"), "strategy.sequence_parallel",
         "--sequence-parallel: layers with experts need it where --tensor-model-parallel-size is above 1; expected true"},
        {once && emit_is(e, "strategy.dispatcher", "deepep") && strtod(emit_text(e, "strategy.capacity_factor"), NULL) > 0,
         "strategy.capacity_factor", "--moe-pad-expert-input-to-capacity does not go with DeepEP; expected another dispatcher"},
    };

    if (emit_number(e, SHAPE "experts"))
        apply(e, rules, COUNT(rules), err);
}

static void fit_recompute(struct emit *e, struct error *err)
{
    bool grouped = emit_number(e, SHAPE "experts") && emit_is(e, "software.fused_experts", "false");
    const struct fit_rule rules[] = {
        {emit_recomputes(e, "activation") && !grouped, "memory.recompute",
         "--recompute-modules moe_act needs experts and --moe-grouped-gemm"},
        {emit_recomputes(e, "latent") && !emit_number(e, SHAPE "kv_rank"), "memory.recompute",
         "--recompute-modules mla_up_proj needs --multi-latent-attention"},
    };

    apply(e, rules, COUNT(rules), err);
}

static void fit_overlap(struct emit *e, struct error *err)
{
    bool batches = emit_is(e, "strategy.overlap_dispatch", "micro-batches");
    bool shared = emit_is(e, "strategy.overlap_dispatch", "shared-experts");
    bool gathered = emit_is(e, "strategy.dispatcher", "allgather");
    bool alone = emit_number(e, "strategy.pipeline") > 1 && emit_number(e, "strategy.chunks") <= 1;
    bool full = emit_is(e, "memory.recompute", "full") || emit_is(e, "memory.recompute.mode", "full");
    const struct fit_rule rules[] = {
        {batches && alone, "strategy.overlap_dispatch",
         "--overlap-moe-expert-parallel-comm needs virtual stages where --pipeline-model-parallel-size is above 1; expected "
         "'schedule: interleaved'"},
        {batches && (full || emit_recomputes(e, "experts")), "memory.recompute",
         "--overlap-moe-expert-parallel-comm goes with selective recomputation without the experts' alone"},
        {batches && emit_is(e, "memory.precision", "fp32"), "memory.precision",
         "--overlap-moe-expert-parallel-comm needs --bf16 or --fp16"},
        {batches && emit_number(e, SHAPE "mtp") > 1, SHAPE "mtp",
         "--overlap-moe-expert-parallel-comm goes with one layer of --mtp-num-layers at most"},
        {(batches || shared) && gathered, "strategy.dispatcher",
         "--moe-token-dispatcher-type allgather overlaps with nothing; expected alltoall, deepep or hybridep"},
        {shared && emit_recomputes(e, "shared-experts"), "memory.recompute",
         "--recompute-modules shared_experts does not go with --moe-shared-expert-overlap"},
    };

    apply(e, rules, COUNT(rules), err);
}

static void fit_optimizer(struct emit *e, struct error *err)
{
    long zero = emit_number(e, "strategy.zero"), tensor = emit_number(e, "strategy.tensor");
    const char *optimizer = emit_text(e, "memory.optimizer");
    bool adam = !strncmp(optimizer, "adam", 4) && strcmp(optimizer, "adafactor");
    bool aware = strstr(emit_text(e, "memory.offload"), "optimizer") || emit_is(e, "software.master", "half") ||
                 (adam && strcmp(optimizer, "adam"));
    bool virtual = emit_number(e, "strategy.chunks") > 1;
    const struct fit_rule rules[] = {
        {aware && zero < 1, "strategy.zero",
         "--use-precision-aware-optimizer, which offloading and narrow states need, goes with --use-distributed-optimizer; "
         "expected 'zero: 1'"},
        {aware && !adam, "memory.optimizer",
         "--use-precision-aware-optimizer, which offloading and narrow states need, goes with Adam alone"},
        {zero > 1 && !adam && strcmp(optimizer, "momentum"), "memory.optimizer",
         "--use-megatron-fsdp goes with --optimizer adam or sgd"},
        {!strcmp(optimizer, "muon") && emit_is(e, "memory.precision", "mixed-fp16"), "memory.precision",
         "--optimizer muon does not go with --fp16"},
        {truth(e, "software.overlap_gathers") && zero == 1 && !emit_is(e, "strategy.data_parallel", "ddp"),
         "software.overlap_gathers", "--overlap-param-gather goes with --overlap-grad-reduce; expected 'data_parallel: ddp'"},
        {truth(e, "software.overlap_products") && (tensor == 1 || !truth(e, "strategy.sequence_parallel")),
         "software.overlap_products", "--tp-comm-overlap goes with --sequence-parallel and a tensor degree above 1"},
        {virtual && emit_number(e, "strategy.pipeline") == 2 && emit_is(e, "software.overlap_p2p", "false"),
         "software.overlap_p2p", "--no-overlap-p2p-communication with virtual stages needs more than two pipeline ranks"},
    };

    apply(e, rules, COUNT(rules), err);
}

/* Megatron Core knows the width of all shared experts alone: as many of an expert's width, or one. */
static void put_shared(struct emit *e, struct node *tree, struct error *err)
{
    long width = emit_number(e, SHAPE "shared_ffn"), each = emit_number(e, SHAPE "expert_ffn");
    long count = each && width % each == 0 ? width / each : 1;

    if (width)
        conf_put(e->arena, tree, SHAPE "shared_experts", node_scalar(e->arena, arena_printf(e->arena, "%ld", count), false),
                 e->scenario->node->loc, err);
}

int emit_megatron_fit(struct emit *e, struct node *tree, struct error *err)
{
    bool unsaid = emit_number(e, SHAPE "experts") && emit_number(e, "strategy.expert") > 1 &&
                  !*emit_text(e, "strategy.dispatcher");
    int before = err->count;

    /* releases differ in what they do where nobody says it; what is simulated then is DISPATCHER_ALLTOALL */
    if (unsaid && conf_put(e->arena, tree, "strategy.dispatcher", node_scalar(e->arena, "alltoall", false),
                           e->scenario->node->loc, err))
        return -1;
    if (unsaid)
        e->remark = "note: strategy.dispatcher is not said; what is simulated is written, alltoall";
    emit_megatron_fit_hybrid(e, tree, err);
    put_shared(e, tree, err);
    fit_model(e, err);
    fit_experts(e, err);
    fit_recompute(e, err);
    fit_overlap(e, err);
    fit_optimizer(e, err);
    return err->count == before ? 0 : -1;
}
