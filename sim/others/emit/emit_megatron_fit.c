/* emit_megatron_fit: what a launch must say and a scenario leaves open, and what Megatron-LM's own checks refuse. */
#include "emit/emit_megatron.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/dialect.h"
#include "launch/dialect_rows.h"
#include "scenario/scenario.h"

#define SHAPE "model.transformer."

struct fit { struct emit *e; struct error *err; };

/* What is left out is 0. */
static const char *at_path(void *context, const char *path)
{
    const char *text = emit_text(((struct fit *)context)->e, path);

    return *text ? text : "0";
}

static const char *nothing(void *context, const char *name)
{
    (void)context, (void)name;
    return NULL;
}

static bool all(void *context, const struct dialect_row *row)
{
    (void)context, (void)row;
    return true;
}

static void tell(void *context, const struct dialect_row *row, const char *message)
{
    const struct fit *fit = context;
    const struct node *node = node_at(fit->e->scenario->node, row->at);

    error_add(fit->err, EXIT_INFEASIBLE, node ? node->loc : (struct loc){.file = fit->e->scenario->name},
              "%s cannot be told to Megatron Core: %s", row->at, message);
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
    const struct dialect *dialect = e->dialect->like ? e->dialect->like : e->dialect;
    const struct dialect_ways ways = {true, all, at_path, nothing, NULL, at_path, tell, &(struct fit){e, err}};
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
    dialect_rows_apply(e->arena, &dialect->pairs, "cannot", &ways);
    return err->count == before ? 0 : -1;
}
