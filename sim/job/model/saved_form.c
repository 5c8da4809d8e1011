/* Which forms of kept tensors (struct saved_form) do not go with the rest. */
#include "model/model.h"

#include "base/base.h"
#include "config/conf.h"

static const char *few_bit_fault(const struct transformer *shape, const struct shard *shard)
{
    if (shape->mlp == MLP_SQUARED_RELU || shape->mlp == MLP_XIELU || (shape->mlp == MLP_SWIGLU && shape->ways.fused_kernels))
        return "saves nothing of a squared ReLU or an xIELU, or of a fused SwiGLU, which keeps its two inputs: it would need the SiLU's "
               "result instead of the gate, as large; expected software without fused kernels, or 'mlp: gelu'";
    if (shard->recomputed >> MODULE_ACTIVATION & 1)
        return "does not go with recomputation of the activation function (recompute: modules), which needs its input";
    return NULL;
}

/* Products in 8 or 4 bits have copies of their inputs of their own. */
static const char *narrow_fault(const struct shard *shard)
{
    return !shard->fp8 ? NULL : "does not go with products in 8 or 4 bits, which keep narrow copies of their inputs; "
                                "expected 'precision: mixed-bf16' or the like";
}

static const char *randomized_fault(const struct transformer *shape, const struct shard *shard)
{
    if (shape->experts || shape->kv_rank)
        return "does not know how rows of experts, or latent vectors, are projected; expected a dense model without "
               "latent attention";
    if (shard->lora)
        return "does not go with lora, whose frozen weights need no inputs kept; expected either";
    if (shard->sequence_parallel)
        return "does not go with sequence_parallel, whose GPUs keep shares of inputs: a projection is of whole inputs; "
               "expected 'sequence_parallel: false'";
    if (shard->recomputed)
        return "does not go with 'recompute: modules', which computes inputs again instead of keeping them; expected "
               "none, selective, full or optimal";
    return narrow_fault(shard);
}

static const char *quantized_fault(const struct transformer *shape, const struct shard *shard)
{
    (void)shape;
    if (shard->saved.activations_bits == 1)
        return "1 leaves two values to choose from; expected 2 to 8 bits, or 0";
    if (shard->recomputed)
        return "does not go with 'recompute: modules', which keeps some tensors as they are; expected none, selective, "
               "full or optimal";
    return narrow_fault(shard);
}

/* Why blocks cannot keep what they save in one of the forms; NULL: they can. */
static const char *any_fault(const struct transformer *shape, const struct shard *shard)
{
    if (!shape)
        return "needs a transformer; this model does not say which tensors it keeps";
    if (shard->formula == ACTIVATIONS_RAJBHANDARI)
        return "does not go with 'activations: rajbhandari', which counts values of a fixed size; expected korthikanti";
    if (shard->recompute == RECOMPUTE_OPERATORS)
        return "does not go with 'recompute: operators', which keeps results of GEMMs and computes the rest again";
    return NULL;
}

int saved_form_check(const struct transformer *shape, const struct shard *shard, const struct node *memory,
                     struct error *err)
{
    const struct {
        const char *key;
        bool said;
        const char *(*fault)(const struct transformer *shape, const struct shard *shard);
    } forms[] = {
        {"few_bit", shard->saved.few_bit > 0, few_bit_fault},
        {"randomized_linear", shard->saved.randomized_linear > 0, randomized_fault},
        {"activations_bits", shard->saved.activations_bits > 0, quantized_fault},
    };
    int rc = 0;

    for (size_t i = 0; i < COUNT(forms); i++) {
        const char *fault = !forms[i].said ? NULL : any_fault(shape, shard);

        if (forms[i].said && !fault)
            fault = forms[i].fault(shape, shard);
        if (fault)
            rc = error_clash(err, node_loc(memory, forms[i].key), "memory: %s: %s", forms[i].key, fault);
    }
    return rc;
}
