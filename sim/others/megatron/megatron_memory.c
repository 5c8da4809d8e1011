/* megatron_memory: number formats, optimizer, recomputation, and the switches of the software. */
#include "megatron/megatron_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "launch/imported.h"

static bool narrow(const struct imported *m)
{
    return imported_given(m, "fp8-format") || imported_given(m, "fp4-format");
}

static void put_precision(struct imported *m)
{
    static const struct { const char *recipe, *precision; } recipes[] = {
        {"delayed", "mixed-fp8"}, {"tensorwise", "mixed-fp8"}, {"blockwise", "mixed-fp8-block"}, {"mxfp8", "mixed-mxfp8"},
    };
    const char *recipe = imported_word(m, "fp8-recipe"), *precision = NULL;

    if (imported_given(m, "fp16") && imported_given(m, "bf16"))
        imported_refuse(m, "fp16", "does not go with %s; expected one of them", imported_shown(m, "bf16"));
    if (imported_given(m, "fp4-format"))
        precision = "mixed-nvfp4";
    for (size_t i = 0; imported_given(m, "fp8-format") && !precision && i < COUNT(recipes); i++)
        if (!strcmp(recipe, recipes[i].recipe))
            precision = recipes[i].precision;
    if (narrow(m) && !precision) {
        imported_refuse(m, "fp8-recipe", "%s is not simulated; expected delayed, tensorwise, blockwise or mxfp8", recipe);
        return;
    }
    imported_put(m, "memory.precision", "%s", precision ? precision : imported_given(m, "bf16") ? "mixed-bf16" :
                 imported_given(m, "fp16") ? "mixed-fp16" : "fp32");
}

/* Adam's moments where --use-precision-aware-optimizer chooses their formats. */
static const char *adam(struct imported *m)
{
    const char *first = imported_word(m, "exp-avg-dtype"), *second = imported_word(m, "exp-avg-sq-dtype");

    if (!imported_given(m, "use-precision-aware-optimizer") || (!strcmp(first, "fp32") && !strcmp(second, "fp32")))
        return "adam";
    if (strcmp(first, second))
        imported_warn(m, "exp-avg-sq-dtype", "both moments are simulated in the format of %s, %s",
                      imported_shown(m, "exp-avg-dtype"), first);
    return !strcmp(first, "fp8") ? "adam-8bit" : !strcmp(first, "fp32") ? "adam" : "adam-half";
}

static void put_optimizer(struct imported *m)
{
    static const struct { const char *theirs, *ours; } names[] = {
        {"sgd", "momentum"}, {"lion", "momentum"}, {"lamb", "lamb"}, {"adafactor", "adafactor"},
        {"muon", "muon"}, {"dist_muon", "muon"},
    };
    const char *name = imported_word(m, "optimizer"), *ours = NULL;

    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(name, names[i].theirs))
            ours = names[i].ours;
    if (!strcmp(name, "adam") || !strcmp(name, "adamw"))
        ours = adam(m);
    if (!strcmp(name, "ademamix")) {
        imported_warn(m, "optimizer", "ademamix is simulated as adam, which keeps one moment less (4 bytes of each parameter "
                      "that a GPU updates) and reads and writes it less often");
        ours = "adam";
    }
    if (!ours)
        imported_refuse(m, "optimizer", "%s is not simulated; expected adam, sgd, lion, lamb, adafactor or muon; to see "
                        "another give --set optimizer=adam", name);
    else
        imported_put(m, "memory.optimizer", "%s", ours);
    if (imported_given(m, "optimizer-cpu-offload") || imported_given(m, "cpu-optimizer"))
        imported_put(m, "memory.offload", "[optimizer]");
}

bool megatron_core(const struct imported *m)
{
    return !strcmp(m->software, "megatron-core") || !strcmp(m->software, "megatron-core-2026");
}

bool megatron_muon(const struct imported *m)
{
    const char *name = imported_word(m, "optimizer");

    return !strcmp(name, "muon") || !strcmp(name, "dist_muon");
}

bool megatron_owners(const struct imported *m)
{
    return !strcmp(imported_word(m, "optimizer"), "dist_muon") ||
           (megatron_muon(m) && imported_given(m, "use-layer-wise-distributed-optimizer"));
}

/* Megatron Core, core/optimizer/emerging_optimizers.py. */
static void put_muon(struct imported *m)
{
    const char *mode = imported_word(m, "muon-tp-mode");

    if (!mode)
        mode = "duplicated";
    if (imported_given(m, "fp16"))
        imported_refuse(m, "fp16", "does not go with %s; expected bf16", imported_shown(m, "optimizer"));
    if (strcmp(mode, "duplicated") && strcmp(mode, "blockwise") && strcmp(mode, "distributed"))
        imported_refuse(m, "muon-tp-mode", "%s is not simulated; expected blockwise, duplicated or distributed", mode);
    else if (imported_number(m, "tensor-model-parallel-size") > 1)
        imported_put(m, "software.muon_tensor", "%s", mode);
    if (imported_given(m, "muon-no-split-qkv"))
        imported_put(m, "software.muon_split_qkv", "false");
}

/* --recompute-modules; core_attn alone is the default. */
static void put_modules(struct imported *m)
{
    static const struct { const char *theirs, *ours; } names[] = {
        {"layernorm", "norms"}, {"moe_act", "activation"}, {"mla_up_proj", "latent"}, {"core_attn", "core"},
        {"mlp", "mlp"}, {"moe", "experts"}, {"shared_experts", "shared-experts"},
    };
    const struct launch_argument *modules = imported_given(m, "recompute-modules");
    const char *list = "";

    for (size_t i = 0; modules && i < modules->count; i++) {
        const char *ours = NULL;

        for (size_t k = 0; k < COUNT(names); k++)
            if (!strcmp(modules->values[i].text, names[k].theirs))
                ours = names[k].ours;
        if (ours)
            list = arena_printf(m->arena, "%s%s%s", list, *list ? ", " : "", ours);
        else
            imported_refuse(m, "recompute-modules", "%s is not simulated; expected core_attn, layernorm, moe_act, "
                            "mla_up_proj, mlp, moe or shared_experts", modules->values[i].text);
    }
    if (*list && strcmp(list, "core"))
        imported_put(m, "memory.recompute", "{mode: modules, modules: [%s]}", list);
    else
        imported_put(m, "memory.recompute", "selective");
}

static void put_full(struct imported *m, const char *method, long count)
{
    if (!strcmp(method, "block"))
        imported_put(m, "memory.recompute", "{mode: full, blocks: %ld}", count);
    else if (count > 1)
        imported_put(m, "memory.recompute", "{mode: full, every: %ld}", count);
    else
        imported_put(m, "memory.recompute", "full");
}

static void put_recompute(struct imported *m)
{
    const char *granularity = imported_word(m, "recompute-granularity"), *method = imported_word(m, "recompute-method");
    const char *older = imported_word(m, "activations-checkpoint-method");
    bool old = imported_given(m, "checkpoint-activations") || older;
    long count = imported_number(m, imported_given(m, "checkpoint-num-layers") ? "checkpoint-num-layers" :
                                 "activations-checkpoint-num-layers");

    if (granularity && !strcmp(granularity, "full"))
        put_full(m, method ? method : "uniform", imported_number(m, "recompute-num-layers"));
    else if (granularity || imported_given(m, "recompute-activations"))
        put_modules(m);
    else if (old)
        put_full(m, older ? older : "uniform", count);
}

void megatron_memory(struct imported *m)
{
    put_precision(m);
    put_optimizer(m);
    put_recompute(m);
}

/* Bytes of a gradient as it is added up and sent: --bf16 switches --accumulate-allreduce-grads-in-fp32 on. */
static int gradient_bytes(const struct imported *m)
{
    bool half = imported_given(m, "grad-reduce-in-bf16") || (imported_given(m, "use-precision-aware-optimizer") &&
                                                             !strcmp(imported_word(m, "main-grads-dtype"), "bf16"));

    if (imported_given(m, "fp16"))
        return imported_given(m, "accumulate-allreduce-grads-in-fp32") ? 4 : 2;
    return imported_given(m, "bf16") && half ? 2 : 4;
}

/* core/distributed: buckets of max(40 M, 1 M x data) elements where gradients overlap; one bucket where not. */
static void put_data_parallel(struct imported *m, long data)
{
    long context = imported_number(m, "context-parallel-size"), elements = imported_number(m, "ddp-bucket-size");
    bool mixed = imported_given(m, "fp16") || imported_given(m, "bf16");
    int accesses = 4;                                    /* as platforms/software/megatron-core.yaml has it */

    imported_put(m, "strategy.data_parallel", imported_given(m, "overlap-grad-reduce") ? "ddp" : "synchronous");
    if (imported_given(m, "overlap-grad-reduce")) {
        if (!elements)
            elements = data * context > 40 ? 1000000 * data * context : 40000000;
        imported_put(m, "software.first_bucket", "%ld B", elements * gradient_bytes(m));
        imported_put(m, "software.bucket", "%ld B", elements * gradient_bytes(m));
    }
    if (imported_given(m, "overlap-param-gather") && (imported_given(m, "use-distributed-optimizer") || megatron_owners(m)))
        imported_put(m, "software.overlap_gathers", "true");
    if (mixed)
        imported_put(m, "software.gradients", gradient_bytes(m) == 4 ? "fp32" : "half");
    accesses -= imported_given(m, "ddp-average-in-collective") ? 2 : 0;
    accesses -= imported_given(m, "no-check-for-nan-in-loss-and-grad") ? 1 : 0;
    if (accesses != 4)
        imported_put(m, "software.gradient_accesses", "%d", accesses);
}

static void put_attention(struct imported *m)
{
    const char *backend = imported_word(m, "attention-backend");
    long version = imported_number(m, "flash-attention-version");
    bool fused = strcmp(imported_word(m, "transformer-impl"), "local") != 0 || imported_given(m, "use-flash-attn");

    fused = fused && !strstr(backend, "unfused") && !strstr(backend, "local");
    if (!fused)
        imported_put(m, "software.flash_attention", "false");
    else if (strstr(backend, "fused"))
        imported_put(m, "software.attention", "cudnn");
    else if (version == 2 || version == 3)
        imported_put(m, "software.attention", "flash-%ld", version);
    else if (version)
        imported_warn(m, "flash-attention-version", "%ld is not known; the newest measured kernels are taken", version);
}

/* Older releases and forks exchange gradients in their own way. */
static void warn_other_software(struct imported *m)
{
    static const char *const switches[] = {
        "overlap-grad-reduce", "overlap-param-gather", "ddp-bucket-size", "ddp-average-in-collective",
        "grad-reduce-in-bf16", "accumulate-allreduce-grads-in-fp32", "no-check-for-nan-in-loss-and-grad", "tp-comm-overlap",
        "cross-entropy-loss-fusion",
    };

    for (size_t i = 0; i < COUNT(switches) && !m->launch->log; i++)
        if (imported_given(m, switches[i]))
            imported_warn(m, switches[i], "is not simulated with software %s, which the other arguments mean", m->software);
    if (imported_given(m, "DDP-impl") && !strcmp(imported_word(m, "DDP-impl"), "torch"))
        imported_put(m, "strategy.data_parallel", "ddp");
    if (imported_given(m, "use-flash-attn"))
        imported_put(m, "software.flash_attention", "true");
}

void megatron_software(struct imported *m, long data)
{
    bool half = !strcmp(imported_word(m, "main-params-dtype"), "fp16") && imported_given(m, "use-precision-aware-optimizer");

    imported_put(m, "software.like", "%s", m->software);
    if (strtod(imported_word(m, "clip-grad"), NULL) == 0)
        imported_put(m, "software.clip_gradients", "false");
    if (half)
        imported_put(m, "software.master", "half");
    if (megatron_muon(m))
        put_muon(m);
    if (!megatron_core(m)) {
        warn_other_software(m);
        return;
    }
    put_data_parallel(m, data);
    put_attention(m);
    if (imported_given(m, "tp-comm-overlap") && imported_given(m, "sequence-parallel"))
        imported_put(m, "software.overlap_products", "true");
    if (imported_given(m, "cross-entropy-loss-fusion"))
        imported_put(m, "software.cross_entropy", strcmp(imported_word(m, "cross-entropy-fusion-impl"), "te") ?
                     "compiled" : "fused");
}
