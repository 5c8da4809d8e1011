/* megatron_memory: number formats, optimizer, recomputation, and the switches of the software. */
#include "megatron/megatron_internal.h"

#include <stdlib.h>

static bool narrow(const struct megatron *m)
{
    return megatron_given(m, "fp8-format") || megatron_given(m, "fp4-format");
}

static void put_precision(struct megatron *m)
{
    static const struct { const char *recipe, *precision; } recipes[] = {
        {"delayed", "mixed-fp8"}, {"tensorwise", "mixed-fp8"}, {"blockwise", "mixed-fp8-block"}, {"mxfp8", "mixed-mxfp8"},
    };
    const char *recipe = megatron_word(m, "fp8-recipe"), *precision = NULL;

    if (megatron_given(m, "fp16") && megatron_given(m, "bf16"))
        megatron_refuse(m, "fp16", "does not go with --bf16; expected one of them");
    if (megatron_given(m, "fp4-format"))
        precision = "mixed-nvfp4";
    for (size_t i = 0; megatron_given(m, "fp8-format") && !precision && i < COUNT(recipes); i++)
        if (!strcmp(recipe, recipes[i].recipe))
            precision = recipes[i].precision;
    if (narrow(m) && !precision) {
        megatron_refuse(m, "fp8-recipe", "%s is not simulated; expected delayed, tensorwise, blockwise or mxfp8", recipe);
        return;
    }
    megatron_put(m, "memory.precision", "%s", precision ? precision : megatron_given(m, "bf16") ? "mixed-bf16" :
                 megatron_given(m, "fp16") ? "mixed-fp16" : "fp32");
}

/* Adam's moments where --use-precision-aware-optimizer chooses their formats. */
static const char *adam(struct megatron *m)
{
    const char *first = megatron_word(m, "exp-avg-dtype"), *second = megatron_word(m, "exp-avg-sq-dtype");

    if (!megatron_given(m, "use-precision-aware-optimizer") || (!strcmp(first, "fp32") && !strcmp(second, "fp32")))
        return "adam";
    if (strcmp(first, second))
        megatron_warn(m, "exp-avg-sq-dtype", "both moments are simulated in the format of --exp-avg-dtype, %s", first);
    return !strcmp(first, "fp8") ? "adam-8bit" : !strcmp(first, "fp32") ? "adam" : "adam-half";
}

static void put_optimizer(struct megatron *m)
{
    static const struct { const char *theirs, *ours; } names[] = {
        {"sgd", "momentum"}, {"lion", "momentum"}, {"lamb", "lamb"}, {"adafactor", "adafactor"},
    };
    const char *name = megatron_word(m, "optimizer"), *ours = NULL;

    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(name, names[i].theirs))
            ours = names[i].ours;
    if (!strcmp(name, "adam") || !strcmp(name, "adamw"))
        ours = adam(m);
    if (!strcmp(name, "ademamix")) {
        megatron_warn(m, "optimizer", "ademamix is simulated as adam, which keeps one moment less (4 bytes of each parameter "
                      "that a GPU updates) and reads and writes it less often");
        ours = "adam";
    }
    if (!ours)
        megatron_refuse(m, "optimizer", "%s is not simulated; expected adam, sgd, lion, lamb or adafactor; to see another "
                        "give --set optimizer=adam", name);
    else
        megatron_put(m, "memory.optimizer", "%s", ours);
    if (megatron_given(m, "optimizer-cpu-offload") || megatron_given(m, "cpu-optimizer"))
        megatron_put(m, "memory.offload", "[optimizer]");
}

/* --recompute-modules; core_attn alone is the default. */
static void put_modules(struct megatron *m)
{
    static const struct { const char *theirs, *ours; } names[] = {
        {"layernorm", "norms"}, {"moe_act", "activation"}, {"mla_up_proj", "latent"},
    };
    const struct launch_argument *modules = megatron_given(m, "recompute-modules");
    const char *list = "";
    bool attention = !modules || !modules->count;

    for (size_t i = 0; modules && i < modules->count; i++) {
        const char *ours = NULL;

        for (size_t k = 0; k < COUNT(names); k++)
            if (!strcmp(modules->values[i].text, names[k].theirs))
                ours = names[k].ours;
        if (!strcmp(modules->values[i].text, "core_attn"))
            attention = true;
        else if (ours)
            list = arena_printf(m->arena, "%s%s%s", list, *list ? ", " : "", ours);
        else
            megatron_refuse(m, "recompute-modules", "%s is not simulated; expected core_attn, layernorm, moe_act or "
                            "mla_up_proj", modules->values[i].text);
    }
    if (*list && attention)
        megatron_warn(m, "recompute-modules", "the attention core (core_attn) is not recomputed beside other modules");
    if (*list)
        megatron_put(m, "memory.recompute", "{mode: modules, modules: [%s]}", list);
    else
        megatron_put(m, "memory.recompute", "selective");
}

static void put_full(struct megatron *m, const char *method, long count)
{
    if (!strcmp(method, "block"))
        megatron_put(m, "memory.recompute", "{mode: full, blocks: %ld}", count);
    else if (count > 1)
        megatron_put(m, "memory.recompute", "{mode: full, every: %ld}", count);
    else
        megatron_put(m, "memory.recompute", "full");
}

static void put_recompute(struct megatron *m)
{
    const char *granularity = megatron_word(m, "recompute-granularity"), *method = megatron_word(m, "recompute-method");
    const char *older = megatron_word(m, "activations-checkpoint-method");
    bool old = megatron_given(m, "checkpoint-activations") || older;
    long count = megatron_number(m, megatron_given(m, "checkpoint-num-layers") ? "checkpoint-num-layers" :
                                 "activations-checkpoint-num-layers");

    if (granularity && !strcmp(granularity, "full"))
        put_full(m, method ? method : "uniform", megatron_number(m, "recompute-num-layers"));
    else if (granularity || megatron_given(m, "recompute-activations"))
        put_modules(m);
    else if (old)
        put_full(m, older ? older : "uniform", count);
}

void megatron_memory(struct megatron *m)
{
    put_precision(m);
    put_optimizer(m);
    put_recompute(m);
}

/* Bytes of a gradient as it is added up and sent: --bf16 switches --accumulate-allreduce-grads-in-fp32 on. */
static int gradient_bytes(const struct megatron *m)
{
    bool half = megatron_given(m, "grad-reduce-in-bf16") || (megatron_given(m, "use-precision-aware-optimizer") &&
                                                             !strcmp(megatron_word(m, "main-grads-dtype"), "bf16"));

    if (megatron_given(m, "fp16"))
        return megatron_given(m, "accumulate-allreduce-grads-in-fp32") ? 4 : 2;
    return megatron_given(m, "bf16") && half ? 2 : 4;
}

/* core/distributed: buckets of max(40 M, 1 M x data) elements where gradients overlap; one bucket where not. */
static void put_data_parallel(struct megatron *m, long data)
{
    long context = megatron_number(m, "context-parallel-size"), elements = megatron_number(m, "ddp-bucket-size");
    bool mixed = megatron_given(m, "fp16") || megatron_given(m, "bf16");
    int accesses = 4;                                    /* as platforms/software/megatron-core.yaml has it */

    megatron_put(m, "strategy.data_parallel", megatron_given(m, "overlap-grad-reduce") ? "ddp" : "synchronous");
    if (megatron_given(m, "overlap-grad-reduce")) {
        if (!elements)
            elements = data * context > 40 ? 1000000 * data * context : 40000000;
        megatron_put(m, "software.first_bucket", "%ld B", elements * gradient_bytes(m));
        megatron_put(m, "software.bucket", "%ld B", elements * gradient_bytes(m));
    }
    if (megatron_given(m, "overlap-param-gather") && megatron_given(m, "use-distributed-optimizer"))
        megatron_put(m, "software.overlap_gathers", "true");
    if (mixed)
        megatron_put(m, "software.gradients", gradient_bytes(m) == 4 ? "fp32" : "half");
    accesses -= megatron_given(m, "ddp-average-in-collective") ? 2 : 0;
    accesses -= megatron_given(m, "no-check-for-nan-in-loss-and-grad") ? 1 : 0;
    if (accesses != 4)
        megatron_put(m, "software.gradient_accesses", "%d", accesses);
}

static void put_attention(struct megatron *m)
{
    const char *backend = megatron_word(m, "attention-backend");
    long version = megatron_number(m, "flash-attention-version");
    bool fused = strcmp(megatron_word(m, "transformer-impl"), "local") != 0 || megatron_given(m, "use-flash-attn");

    fused = fused && !strstr(backend, "unfused") && !strstr(backend, "local");
    if (!fused)
        megatron_put(m, "software.flash_attention", "false");
    else if (strstr(backend, "fused"))
        megatron_put(m, "software.attention", "cudnn");
    else if (version == 2 || version == 3)
        megatron_put(m, "software.attention", "flash-%ld", version);
    else if (version)
        megatron_warn(m, "flash-attention-version", "%ld is not known; the newest measured kernels are taken", version);
}

/* Older releases and forks exchange gradients in their own way. */
static void warn_other_software(struct megatron *m)
{
    static const char *const switches[] = {
        "overlap-grad-reduce", "overlap-param-gather", "ddp-bucket-size", "ddp-average-in-collective",
        "grad-reduce-in-bf16", "accumulate-allreduce-grads-in-fp32", "no-check-for-nan-in-loss-and-grad", "tp-comm-overlap",
        "cross-entropy-loss-fusion",
    };

    for (size_t i = 0; i < COUNT(switches) && !m->launch->log; i++)
        if (megatron_given(m, switches[i]))
            megatron_warn(m, switches[i], "is not simulated with software %s, which the other arguments mean", m->software);
    if (megatron_given(m, "DDP-impl") && !strcmp(megatron_word(m, "DDP-impl"), "torch"))
        megatron_put(m, "strategy.data_parallel", "ddp");
    if (megatron_given(m, "use-flash-attn"))
        megatron_put(m, "software.flash_attention", "true");
}

void megatron_software(struct megatron *m, long data)
{
    bool half = !strcmp(megatron_word(m, "main-params-dtype"), "fp16") && megatron_given(m, "use-precision-aware-optimizer");

    megatron_put(m, "software.like", "%s", m->software);
    if (strtod(megatron_word(m, "clip-grad"), NULL) == 0)
        megatron_put(m, "software.clip_gradients", "false");
    if (half)
        megatron_put(m, "software.master", "half");
    if (strcmp(m->software, "megatron-core")) {
        warn_other_software(m);
        return;
    }
    put_data_parallel(m, data);
    put_attention(m);
    if (megatron_given(m, "tp-comm-overlap") && megatron_given(m, "sequence-parallel"))
        megatron_put(m, "software.overlap_products", "true");
    if (megatron_given(m, "cross-entropy-loss-fusion"))
        megatron_put(m, "software.cross_entropy", strcmp(megatron_word(m, "cross-entropy-fusion-impl"), "te") ?
                     "compiled" : "fused");
}
