/* emit_megatron_fit: what a launch must say and a scenario leaves open. */
#include "emit/emit_megatron.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "scenario/scenario.h"

#define SHAPE "model.transformer."

/* Megatron Core knows the width of all shared experts alone: as many of an expert's width, or one. */
static void put_shared(struct emit *e, struct node *tree, struct error *err)
{
    long long width = emit_number(e, SHAPE "shared_ffn"), each = emit_number(e, SHAPE "expert_ffn");
    long long count = each && width % each == 0 ? width / each : 1;

    if (width)
        conf_put(e->arena, tree, SHAPE "shared_experts", node_scalar(e->arena, arena_printf(e->arena, "%lld", count), false),
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
    return err->count == before ? 0 : -1;
}
