/* Every number of a transformer's layers, of 10,000 random shapes, degrees, memory policies and ways to compute them,
 * as digests of 100 cases each. They hold a change of code that must not change a number. Whoever changes a number
 * makes them anew and says so in the commit: DTSIM_DIGESTS=tests/property/layer_digests.txt DTSIM_TESTS=all
 * build/tests/test_layer_digests DTSIM_LAYERS=SEED prints the numbers of one case instead. */
#include "model_files.h"
#include "trials.h"

#include <inttypes.h>

enum { CASES = 100, GROUPS = 100 };

/* ---- random cases ---- */

static uint64_t seed;

/* A number from 0 to n - 1. It depends on the key, not on the order of the draws, which a compiler may choose. */
static int draw(const char *key, int n)
{
    uint64_t hash = seed * 0x9e3779b97f4a7c15u;

    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
    hash ^= hash >> 29;
    return (int)((hash * 0xbf58476d1ce4e5b9u >> 33) % (uint64_t)n);
}

/* True in one of n cases. */
static bool chance(const char *key, int n)
{
    return draw(key, n) == 0;
}

static const char *flag(const char *key, int n)
{
    return arena_printf(&arena, ", %s: %s", key, chance(key, n) ? "true" : "false");
}

static const char *random_experts(void)
{
    int experts = 8 << draw("experts", 4);

    return arena_printf(&arena,
                        ", experts: %d, experts_per_token: %d, expert_ffn: %d, moe_every: %d, dense_layers: %d"
                        "%s, router: %s, routed_rows: %s%s",
                        experts, 1 + draw("experts_per_token", 4), 64 * (1 + draw("expert_ffn", 20)),
                        1 + draw("moe_every", 2), draw("dense_layers", 2),
                        chance("has shared", 2) ? arena_printf(&arena, ", shared_experts: %d%s",
                                                               1 + draw("shared_experts", 2), flag("shared_gate", 3)) :
                                                  "",
                        (const char *const[]){"fused", "indices", "masks"}[draw("router", 3)],
                        (const char *const[]){"copies", "indices", "operators"}[draw("routed_rows", 3)],
                        flag("fused_experts", 2));
}

static const char *random_attention(int sequence)
{
    bool causal = !chance("encoder", 4), window = causal && chance("windowed", 4);

    return arena_printf(
        &arena, ", causal: %s%s%s", causal ? "true" : "false",
        window ? arena_printf(&arena, ", window: %d, full_every: %d%s", sequence / (2 << draw("window", 3)),
                              draw("full_every", 3), flag("chunked", 3)) :
                 "",
        chance("latent", 4) ?
            arena_printf(&arena, ", kv_rank: %d, rope_head_size: 32, value_head_size: %d, positions: 0%s",
                         128 << draw("kv_rank", 2), 32 << draw("value_head_size", 2),
                         chance("q latent", 2) ? arena_printf(&arena, ", q_rank: %d", 192 << draw("q_rank", 2)) : "") :
            arena_printf(&arena, ", kv_heads: %d, qk_norm: %s%s%s%s", 1 << draw("kv_heads", 5),
                         (const char *const[]){"none", "head", "width"}[draw("qk_norm", 3)], flag("fused_qkv", 2),
                         flag("gathered_qkv", 2), chance("says groups", 3) ? "" : flag("repeated_groups", 2)));
}

static const char *random_ways(void)
{
    return arena_printf(
        &arena, "%s%s%s%s%s%s%s%s%s%s%s", flag("flash_attention", 2), flag("fused_kernels", 2),
        chance("says gate", 2) ? flag("fused_gate", 2) : "", flag("fused_gelu", 2), flag("multiplied_mask", 3),
        flag("scores_in_place", 3), flag("softmax_in_fours", 3), chance("says norm", 2) ? flag("fused_norm", 2) : "",
        flag("widened_norms", 3), chance("says bias", 2) ? flag("fused_bias", 2) : "",
        chance("says rotary", 3) ?
            arena_printf(&arena, ", rotary: %s",
                         (const char *const[]){"fused", "complex", "halves", "matrices"}[draw("rotary", 4)]) :
            "");
}

static const char *random_model(int sequence)
{
    bool rotary = chance("turned", 2), masked = chance("masked", 8), mtp = !masked && chance("mtp", 5),
         parallel = chance("parallel", 5);
    const char *attention = random_attention(sequence);
    bool latent = strstr(attention, "kv_rank") != NULL;
    int hidden = 512 << draw("hidden", 3);

    return arena_printf(
        &arena,
        "transformer: {layers: %d, hidden: %d, heads: 32, head_size: %d, sequence: %d, vocabulary: %d, ffn: %d, "
        "norm: %s, mlp: %s, dropout: %s, head: %s, mtp: %d%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s}",
        1 + draw("layers", 3), hidden, 16 << draw("head_size", 3), sequence, 1000 * (1 + draw("vocabulary", 60)),
        64 * (8 + draw("ffn", 80)), (const char *const[]){"layernorm", "rmsnorm"}[draw("norm", 2)],
        (const char *const[]){"gelu", "swiglu", "squared-relu"}[draw("mlp", 3)], chance("dropout", 3) ? "0.1" : "0",
        masked                        ? "masked-language-model" :
        chance("headless", 9) && !mtp ? "none" :
                                        "language-model",
        mtp, rotary && !latent ? ", positions: 0" : "", rotary && !latent ? flag("alibi", 5) : "",
        parallel ? ", parallel: true" : flag("post_norms", 5), flag("qkv_bias", 2), flag("bias", 2),
        flag("head_bias", 4), flag("tied", 2), flag("final_norm", 2), flag("embedding_norm", 4),
        chance("types", 5) ? ", token_types: 2" : "", chance("embedding_size", 5) ? ", embedding_size: 256" : "",
        chance("limit", 3) ? ", swiglu_limit: 7" : "", attention, chance("has experts", 3) ? random_experts() : "",
        random_ways());
}

static struct lora *random_lora(void)
{
    struct lora *lora = ARENA_ARRAY(&arena, struct lora, 1);
    int *targets = ARENA_ARRAY(&arena, int, LORA_TARGET_COUNT);

    *lora = (struct lora){.rank = 8 << draw("rank", 3), .weights = draw("nf4", 3)};
    for (int target = 0; target < LORA_TARGET_COUNT; target++)
        if (chance("targets", 2))
            targets[lora->targets.count++] = target;
    lora->targets.items = targets;
    return lora;
}

static struct shard random_shard(void)
{
    static const int modes[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_OPERATORS, RECOMPUTE_MODULES,
                                RECOMPUTE_FULL};
    struct shard shard = {.micro = 1 + draw("micro", 4),
                          .tensor = 1 << draw("tensor", 4),
                          .dtype = chance("fp32", 4) ? DTYPE_FP32 : DTYPE_BF16};

    shard.recompute = (enum recompute)modes[draw("recompute", COUNT(modes))];
    shard.recomputed = shard.recompute == RECOMPUTE_MODULES ? (unsigned)draw("modules", 1 << MODULE_COUNT) : 0;
    shard.sequence_parallel = shard.tensor > 1 && chance("sequence_parallel", 2);
    shard.gathers_apart = chance("gathers_apart", 2);
    shard.fp8 = shard.dtype == DTYPE_BF16 && chance("narrow", 3);
    shard.narrow = !shard.fp8 ?
                       DTYPE_BF16 :
                       (const enum dtype[]){DTYPE_FP8, DTYPE_FP8_BLOCK, DTYPE_MXFP8, DTYPE_NVFP4}[draw("format", 4)];
    shard.fp8_kept = chance("fp8_kept", 2);
    if (chance("context", 3)) {
        shard.context = 2 << draw("degree", 2);
        shard.ulysses = chance("ulysses", 3) ? 2 : 1;
        shard.blocks_apart = chance("blocks_apart", 3);
        shard.ring = chance("ring", 2);
    } else if (chance("sliced", 4)) {
        shard.slices = 2 << draw("slices", 2);
        shard.slice = draw("slice", shard.slices);
    }
    shard.expert_tensor = chance("expert_tensor", 2) ? 1 : 0;
    shard.dispatch_group = 1 << draw("group", 4);
    shard.dispatch_nodes = 1 << draw("nodes", 2);
    shard.dispatch_once = chance("once", 3);
    shard.dispatch_gathers = chance("gathers", 6);
    shard.capacity = chance("capacity", 5) ? 1.25 : 0;
    shard.lora = chance("lora", 4) ? random_lora() : NULL;
    shard.formula = chance("rajbhandari", 8) ? ACTIVATIONS_RAJBHANDARI : ACTIVATIONS_KORTHIKANTI;
    shard.saved = (struct saved_form){.few_bit = chance("few_bit", 5) ? 2 : 0,
                                      .randomized_linear = chance("randomized", 5) ? 0.25 : 0,
                                      .activations_bits = chance("quantized", 5) ? 4 : 0};
    shard.cross_entropy = (enum cross_entropy)draw("cross_entropy", 6);
    shard.measured = chance("measured", 6);
    return shard;
}

/* ---- the numbers of a layer, as text ---- */

static char text[1 << 20];
static size_t used;

static void put(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    used += (size_t)vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    assert_true(used < sizeof text);
}

static void put_numbers(const char *name, const double *numbers, size_t count)
{
    put("%s", name);
    for (size_t i = 0; i < count; i++)
        put(" %a", numbers[i]);
    put("\n");
}

static void put_kernel(const struct operator *op, const struct kernel *kernel)
{
    bool forward = kernel->phase == PHASE_FORWARD;

    put("%s %d %d %d %d %d %d %d %d marks %d%d%d%d%d", kernel->name, kernel->product, kernel->kind, kernel->dtype,
        kernel->layout, kernel->class, kernel->launches, kernel->parts, kernel->causal, op->modules >> MODULE_CORE & 1,
        op->loss, forward && op->again, op->half == HALF_ATTENTION, forward && op->ends);
    put_numbers("",
                (const double[]){kernel->batch, kernel->m, kernel->n, kernel->k, kernel->flop, kernel->efficiency,
                                 kernel->bytes, kernel->unvectorized, kernel->skew.exponent, kernel->window,
                                 kernel->sliced},
                11);
}

static void put_exchanges(const struct layer *layer, bool modules)
{
    struct sends sums = layer_sends(layer, SENT_SUM, false), inputs = layer_sends(layer, SENT_INPUT, false),
                 dispatches = layer_sends(layer, SENT_ROWS, false), rows = layer_sends(layer, SENT_ROW_SUMS, false);
    const enum sending again[] = {SENT_SUM, SENT_ROWS, SENT_ROW_SUMS, SENT_KEYS};
    double delivered = 0, gathers = 0;

    put("exchanges %d %d %d\n", sums.forward, dispatches.forward, rows.forward);
    put("exchanges %d %d %d\n", inputs.backward, dispatches.backward, rows.backward);
    for (int phase = PHASE_BACKWARD_WEIGHT; phase < PHASE_COUNT; phase++)
        put("exchanges 0 0 0\n");
    for (enum column_product i = 0; i < COLUMN_COUNT; i++)
        put("column %d %d\n", layer_column(layer, i) ? layer_column(layer, i)->product : PRODUCT_NONE,
            layer_behind(layer, i) ? layer_behind(layer, i)->product : PRODUCT_NONE);
    for (size_t i = 0; i < layer->noperators; i++)
        gathers += layer->operators[i].gathers, delivered += layer->operators[i].delivered;
    put("gathers %.0f again", gathers);
    for (size_t i = 0; i < COUNT(again); i++)
        put(" %d", modules ? layer_sends(layer, again[i], true).forward : 0);
    put("\n");
    put_numbers("bytes",
                (const double[]){layer->all_reduce_bytes, dispatches.bytes, rows.bytes,
                                 layer_sends(layer, SENT_QKV, false).bytes, layer_sends(layer, SENT_HEADS, false).bytes,
                                 delivered, layer_keys(layer)},
                7);
}

static void put_phase(const struct layer *layer, const struct operator *op, enum phase phase)
{
    for (size_t k = op->first; k < op->first + op->nkernels; k++)
        if (layer->kernels[k].phase == phase)
            put_kernel(op, &layer->kernels[k]);
}

static void put_layer(const struct layer *layer, bool modules)
{
    put("%s %d\n", layer->name, layer->role);
    put_numbers("numbers",
                (const double[]){layer->parameters, layer->divided_parameters, layer->frozen, layer->packed,
                                 layer->tied, layer->activation, layer->checkpoint, layer->within,
                                 layer->workspace.forward, layer->workspace.backward, layer->selective_activation,
                                 layer->selective_workspace.forward, layer->selective_workspace.backward, layer->output,
                                 layer->loss_activation, layer->boundary},
                16);
    for (size_t i = 0; i < layer->ntensors; i++) {
        const struct matrix *matrix = &layer->matrices[i];

        put("tensor %d %d", i + layer->ndivided >= layer->ntensors, matrix->expert);
        put_numbers("",
                    (const double[]){layer->tensors[i], layer->rows[i], matrix->out, matrix->in, matrix->count,
                                     matrix->parts[0], matrix->parts[1], matrix->parts[2], (double)matrix->cut},
                    9);
    }
    for (size_t i = 0; i < layer->nlinears; i++)
        put_numbers("linear",
                    (const double[]){(double)layer->linears[i].place, layer->linears[i].out, layer->linears[i].in}, 3);
    for (size_t i = 0; i < layer->nsaved; i++) {
        put("saved %s %d", layer->saved[i].name, layer->saved[i].core);
        put_numbers("", &layer->saved[i].bytes, 1);
    }
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        put("phase %d\n", phase);
        for (size_t i = 0; i < layer->noperators; i++)
            put_phase(layer, &layer->operators[i], (enum phase)phase);
    }
    put_exchanges(layer, modules);
}

/* Leaves out what a scenario with such a model refuses. */
static void leave_out(const struct transformer *shape, struct shard *shard)
{
    bool unlike = shape->experts || shape->kv_rank;

    if (unlike)
        shard->formula = ACTIVATIONS_KORTHIKANTI;
    if (shard->lora && shard->fp8)
        ((struct lora *)(uintptr_t)shard->lora)->weights = LORA_WEIGHTS_FULL;
    if (shard->recompute == RECOMPUTE_OPERATORS &&
        (unlike || shard->lora || shard->context > 1 || shard->formula == ACTIVATIONS_RAJBHANDARI))
        shard->recompute = RECOMPUTE_NONE;
    if (saved_form_check(shape, shard, shape->node, &error))
        shard->saved = (struct saved_form){0};
    error_release(&error);
    memset(&error, 0, sizeof error);
}

/* The seed's model and shard; both live in the arena. */
static struct model random_case(uint64_t number, struct shard *shard)
{
    struct model model;

    seed = number;
    model = load_good(random_model(512 << draw("sequence", 3)));
    *shard = random_shard();
    leave_out(model.transformer, shard);
    return model;
}

/* Writes all numbers of the seed's case into `text`. A tensor degree that does not divide the shape leaves its message.
 */
static void put_case(uint64_t number)
{
    struct model model;
    struct shard shard;
    const struct layer *layers;
    size_t count;

    used = 0;
    model = random_case(number, &shard);
    put("%s\n", model_parameters(&model) > 0 ? "" : "no parameters");
    put_numbers("model",
                (const double[]){model_parameters(&model), model_active_parameters(&model),
                                 model_flop(&model, shard.lora, NULL)},
                3);
    if (model_layers(&arena, &model, &shard, (struct loc){0}, &layers, &count, &error))
        put("%s\n", error.messages[0].text);
    else
        for (size_t i = 0; i < count; i++)
            put_layer(&layers[i], shard.recompute == RECOMPUTE_MODULES);
    forget(NULL);
}

/* FNV-1a. */
static uint64_t digest(uint64_t hash)
{
    for (size_t i = 0; i < used; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

static void numbers_stay(void **unused)
{
    const char *path = getenv("DTSIM_DIGESTS");
    FILE *file = fopen(path ? path : DTSIM_SOURCE_DIR "/tests/property/layer_digests.txt", path ? "w" : "r");

    (void)unused;
    assert_non_null(file);
    for (int group = 0; group < GROUPS; group++) {
        uint64_t hash = 0xcbf29ce484222325u, expected = 0;
        bool asked = path || tried();

        for (int i = 0; asked && i < CASES; i++) {
            put_case((uint64_t)(group * CASES + i + 1));
            hash = digest(hash);
        }
        if (path)
            fprintf(file, "%016" PRIx64 "\n", hash);
        else if (fscanf(file, "%" SCNx64, &expected) != 1)
            fail_msg("no digest of group %d", group);
        if (!path && asked && hash != expected)
            fail_msg("a number of the cases %d to %d is another one; DTSIM_LAYERS=SEED prints them", group * CASES + 1,
                     (group + 1) * CASES);
    }
    fclose(file);
}

/* A backward that computes again holds no more than one that finds everything kept. */
static void recomputation_holds_no_more(void **unused)
{
    (void)unused;
    for (uint64_t number = 1; number <= 400; number++) {
        struct shard shard, plain;
        struct model model = random_case(number, &shard);
        const struct layer *layers, *whole;
        size_t count;

        plain = shard;
        plain.recompute = RECOMPUTE_NONE;
        plain.recomputed = 0;
        /* which counts no core of attention; eager operators keep results that no backward needs */
        if (shard.formula == ACTIVATIONS_RAJBHANDARI ||
            (shard.recompute == RECOMPUTE_OPERATORS && !model.transformer->ways.fused_kernels) ||
            model_layers(&arena, &model, &plain, (struct loc){0}, &whole, &count, &error))
            count = 0; /* or a tensor degree does not divide the shape */
        else
            model_layers(&arena, &model, &shard, (struct loc){0}, &layers, &count, &error);
        for (size_t i = 0; i < count; i++)
            if (layers[i].activation + layers[i].workspace.backward >
                (whole[i].activation + whole[i].workspace.backward) * (1 + 1e-12))
                fail_msg("case %d, layer %zu: %g B are held, %g B without recomputation", (int)number, i,
                         layers[i].activation + layers[i].workspace.backward,
                         whole[i].activation + whole[i].workspace.backward);
        forget(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(numbers_stay, forget),
                                       cmocka_unit_test_teardown(recomputation_holds_no_more, forget)};
    const char *number = getenv("DTSIM_LAYERS");

    if (number) {
        put_case(strtoull(number, NULL, 10));
        return puts(text) < 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
