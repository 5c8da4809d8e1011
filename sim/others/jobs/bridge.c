/* bridge: the scenario of a configuration of Megatron Bridge, as a person writes it or as ConfigContainer.to_yaml prints
 * it. Its keys find Megatron-LM's rows (platforms/dialects/bridge.yaml); several keys that say one argument together are read here. */
#include "jobs/bridge_internal.h"

#include "huggingface/hf_config.h"
#include "megatron/megatron.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/named.h"
#include "launch/dialect.h"
#include "launch/imported.h"
#include "launch/launch.h"

static const struct { const char *torch, *name; } formats[] = {
    {"torch.float32", "fp32"}, {"torch.float", "fp32"}, {"torch.bfloat16", "bf16"}, {"torch.float16", "fp16"},
    {"torch.half", "fp16"}, {"torch.uint8", "fp8"},
};

/* A mapping that stands for one value: a function, a number format, a member of an enumeration. NULL: it does not. */
static struct node *value_of(struct arena *arena, const struct node *mapping)
{
    const struct node *target = node_get(mapping, "_target_"), *name = node_get(mapping, "_name_");
    const char *text = name && name->text ? name->text : target && target->text ? target->text : NULL, *dot;
    struct node *value;

    for (size_t i = 0; i < mapping->count; i++)
        if (mapping->keys[i][0] != '_')
            return NULL;
    if (!text)
        return NULL;
    dot = strrchr(text, '.');
    for (size_t i = 0; i < COUNT(formats); i++)
        if (!strcmp(text, formats[i].torch))
            text = formats[i].name;
    if (text == (target ? target->text : NULL) && dot)
        text = dot + 1;
    value = node_scalar(arena, text, true);
    value->loc = mapping->loc;
    return value;
}

struct node *bridge_plain(struct arena *arena, const struct node *node)
{
    struct node *plain;

    if (node->kind != NODE_MAPPING)
        return (struct node *)node;
    plain = value_of(arena, node);
    if (plain)
        return plain;
    plain = node_mapping(arena);
    plain->loc = node->loc;
    for (size_t i = 0; i < node->count; i++)
        if (node->keys[i][0] != '_') {
            node_put(arena, plain, node->keys[i], bridge_plain(arena, node->items[i]));
            plain->key_locs[plain->count - 1] = node->key_locs[i];
        }
    return plain;
}

/* The last value of a key; NULL: left out. */
static struct launch_argument *argument_of(const struct imported *m, const char *key)
{
    for (size_t i = m->launch->arguments.count; i-- > 0;)
        if (!strcmp(m->launch->arguments.items[i].name, key))
            return &m->launch->arguments.items[i];
    return NULL;
}

static const char *text_of(const struct imported *m, const char *key)
{
    const struct launch_argument *argument = argument_of(m, key);

    for (size_t i = m->options->nsets; i-- > 0;)
        if (!strcmp(m->options->sets[i].name, key))
            return m->options->sets[i].value;
    return argument && argument->count ? argument->values[0].text : NULL;
}

static bool is_true(const struct imported *m, const char *key)
{
    const char *text = text_of(m, key);

    return text && (!strcmp(text, "true") || !strcmp(text, "True"));
}

static struct loc place(const struct imported *m, const char *key)
{
    const struct launch_argument *argument = argument_of(m, key);

    return argument ? argument->loc : m->launch->loc;
}

/* An argument of Megatron-LM, at the place of the key that says it. */
static void add(struct imported *m, const char *name, const char *value, const char *key)
{
    struct loc loc = place(m, key);
    struct launch_argument *argument = GROW(&m->launch->arguments);

    *argument = (struct launch_argument){name, loc, ARENA_ARRAY(m->arena, struct launch_word, 1), 1};
    argument->values[0] = (struct launch_word){value, loc};
}

static void drop(struct imported *m, const char *key)
{
    struct launch_arguments *arguments = &m->launch->arguments;
    size_t kept = 0;

    for (size_t i = 0; i < arguments->count; i++)
        if (strcmp(arguments->items[i].name, key))
            arguments->items[kept++] = arguments->items[i];
    arguments->count = kept;
}

/* A printed configuration says each key. */
static void drop_defaults(struct imported *m)
{
    struct launch_arguments *arguments = &m->launch->arguments;
    size_t kept = 0;

    for (size_t i = 0; i < arguments->count; i++) {
        const char *value = dialect_printed(m->dialect, arguments->items[i].name);

        if (!value || arguments->items[i].count != 1 || strcmp(arguments->items[i].values[0].text, value))
            arguments->items[kept++] = arguments->items[i];
    }
    arguments->count = kept;
}

static void add_recipe(struct imported *m, const char *name, const char *key)
{
    const struct node *recipes = node_get(m->dialect->tables, "recipes");
    char *plain = arena_strdup(m->arena, name);
    bool bf16, neither = false;

    for (char *c = plain; *c; c++)
        *c = *c == '-' ? '_' : *c;
    bf16 = strstr(plain, "bf16") != NULL;
    if (!strcmp(plain, "32") || !strcmp(plain, "fp32"))
        return;
    if (bf16 || strstr(plain, "16_mixed") || strstr(plain, "fp16"))
        add(m, bf16 ? "bf16" : "fp16", "True", key);
    else
        neither = true;
    for (size_t i = 0; !neither && i < recipes->count; i++) {
        const struct node *means = recipes->items[i];

        for (size_t k = 0; strstr(plain, recipes->keys[i]) && k < means->count; k++)
            add(m, means->keys[k], means->items[k]->text, key);
        if (strstr(plain, recipes->keys[i]))
            return;
    }
    if (neither || strstr(plain, "fp8") || strstr(plain, "fp4"))
        error_add(m->err, EXIT_INPUT, place(m, key), "%s: there is no recipe '%.60s'; expected one of mixed_precision.py "
                  "such as bf16_mixed", key, name);
}

/* Formats: a recipe by its name, or its fields; and that in which gradients are summed. */
static void add_precision(struct imported *m, bool printed)
{
    const char *key = text_of(m, "mixed_precision") ? "mixed_precision" : "mixed_precision.precision";
    const char *recipe = text_of(m, key), *reduce = text_of(m, "mixed_precision.grad_reduce_in_fp32");
    bool fields = text_of(m, "mixed_precision.bf16") || text_of(m, "mixed_precision.fp16") || reduce;
    bool plain = text_of(m, "model.bf16") || text_of(m, "model.fp16") || text_of(m, "model.params_dtype"), fp16, wide;

    if (recipe)
        add_recipe(m, recipe, key);
    if (!recipe && !fields && !plain && !printed) {
        imported_remark(m, "formats: not said; bf16_mixed, as the recipes of Megatron Bridge have it");
        add(m, "bf16", "True", key);
        recipe = "bf16_mixed";
    }
    fp16 = is_true(m, "mixed_precision.fp16") || is_true(m, "model.fp16") || (text_of(m, "fp16") && !fields);
    wide = recipe ? !fp16 : fields;
    if (reduce || (!recipe && !fields && text_of(m, "ddp.grad_reduce_in_fp32")))
        wide = is_true(m, reduce ? "mixed_precision.grad_reduce_in_fp32" : "ddp.grad_reduce_in_fp32");
    if (fp16 && wide)
        add(m, "accumulate-allreduce-grads-in-fp32", "True", "mixed_precision.grad_reduce_in_fp32");
    else if (!fp16 && !wide && (text_of(m, "bf16") || is_true(m, "mixed_precision.bf16") || is_true(m, "model.bf16")))
        add(m, "grad-reduce-in-bf16", "True", "mixed_precision.grad_reduce_in_fp32");
}

static void add_activation(struct imported *m)
{
    const char *name = text_of(m, "model.activation_func"), *hidden = text_of(m, "model.hidden_size");
    bool gated = is_true(m, "model.gated_linear_unit");

    name = name ? name : "gelu";
    if (gated && (!strcmp(name, "silu") || !strcmp(name, "swish")))
        add(m, "swiglu", "True", "model.gated_linear_unit");
    else if (gated && (strstr(name, "gelu")))
        add(m, "quick-geglu", "True", "model.gated_linear_unit");
    else if (!gated && !strcmp(name, "squared_relu"))
        add(m, "squared-relu", "True", "model.activation_func");
    else if (gated || (strcmp(name, "gelu") && strcmp(name, "relu") && strcmp(name, "silu")))
        error_add(m->err, EXIT_INPUT, place(m, "model.activation_func"), "model.activation_func: %.60s%s is not simulated; "
                  "expected gelu, relu, silu or squared_relu, or silu with model.gated_linear_unit", name,
                  gated ? " with model.gated_linear_unit" : "");
    else if (strcmp(name, "gelu"))
        launch_warn(m->launch, m->arena, place(m, "model.activation_func"), "model.activation_func: %s is simulated as GELU, "
                    "which has the same two GEMMs", name);
    if (gated && hidden && !text_of(m, "model.ffn_hidden_size"))      /* core/transformer/transformer_config.py */
        add(m, "ffn-hidden-size", arena_printf(m->arena, "%lld", 4 * strtoll(hidden, NULL, 10)), "model.hidden_size");
}

static void add_shape(struct imported *m, bool printed)
{
    const char *groups = text_of(m, "model.num_query_groups"), *heads = text_of(m, "model.num_attention_heads");
    const char *size = text_of(m, "model.vocab_size");

    if (groups && (!heads || strcmp(groups, heads)))
        add(m, "group-query-attention", "True", "model.num_query_groups");
    if (size)
        add(m, is_true(m, "model.should_pad_vocab") ? "vocab-size" : "padded-vocab-size", size, "model.vocab_size");
    if (!printed && !text_of(m, "model.cross_entropy_loss_fusion"))     /* models/gpt_provider.py */
        add(m, "cross-entropy-loss-fusion", "True", "model.cross_entropy_loss_fusion");
    add_activation(m);
}

/* A switch of the gradients' exchange: comm_overlap goes before ddp, and has a value of its own where it is there
 * (comm_overlap.py, _get_optimizer_overlap_cfgs). */
static void settle(struct imported *m, const char *name, const char *argument, const char *own)
{
    const char *first = arena_printf(m->arena, "comm_overlap.%s", name), *second = arena_printf(m->arena, "ddp.%s", name);
    const char *value = text_of(m, first) ? text_of(m, first) : own ? own : text_of(m, second);
    const char *key = text_of(m, first) || !text_of(m, second) ? first : second;

    if (!value)
        return;
    add(m, argument, value, key);
    drop(m, first);
    drop(m, second);
    drop(m, arena_printf(m->arena, "optimizer.%s", name));
}

static void add_overlap(struct imported *m)
{
    bool has = false, own;

    for (size_t i = 0; i < m->launch->arguments.count; i++)
        has |= !strncmp(m->launch->arguments.items[i].name, "comm_overlap.", strlen("comm_overlap."));
    own = has && (is_true(m, "ddp.use_distributed_optimizer") || is_true(m, "optimizer.use_distributed_optimizer"));
    settle(m, "overlap_grad_reduce", "overlap-grad-reduce", own ? "True" : NULL);
    settle(m, "overlap_param_gather", "overlap-param-gather", own ? "True" : NULL);
    settle(m, "bucket_size", "ddp-bucket-size", own ? "134217728" : NULL);
}

static const char *joined(struct imported *m, const struct launch_argument *argument, const char *between)
{
    const char *text = "";

    for (size_t i = 0; i < argument->count; i++)
        text = arena_printf(m->arena, "%s%s%s", text, i ? between : "", argument->values[i].text);
    return text;
}

static void set_text(struct imported *m, struct launch_argument *argument, const char *text)
{
    argument->values = ARENA_ARRAY(m->arena, struct launch_word, 1);
    argument->values[0] = (struct launch_word){text, argument->loc};
    argument->count = 1;
}

/* [[embedding, decoder], [decoder, loss]] as Et|tL. */
static void join_layout(struct imported *m, struct launch_argument *argument)
{
    static const struct { const char *word; char letter; } letters[] = {
        {"embedding", 'E'}, {"decoder", 't'}, {"mtp", 'm'}, {"loss", 'L'},
    };
    const char *text = joined(m, argument, "|");
    char *flat = arena_strdup(m->arena, text), *to = flat;

    if (!strstr(text, "decoder"))
        return;
    for (const char *at = text; *at;) {
        size_t i = 0;

        while (i < COUNT(letters) && strncmp(at, letters[i].word, strlen(letters[i].word)))
            i++;
        if (i < COUNT(letters))
            *to++ = letters[i].letter;
        else if (!strchr("[], '\"", *at))
            *to++ = *at;
        at += i < COUNT(letters) ? strlen(letters[i].word) : 1;
    }
    *to = '\0';
    set_text(m, argument, flat);
}

static void join_lists(struct imported *m)
{
    struct launch_argument *layers = argument_of(m, "model.moe_layer_freq"), *ranks;

    if (layers && layers->count > 1)
        set_text(m, layers, arena_printf(m->arena, "[%s]", joined(m, layers, ",")));
    ranks = argument_of(m, "model.pipeline_model_parallel_layout");
    if (ranks)
        join_layout(m, ranks);
}

/* The share of the optimizer's states that is on the host is 0 where it is left out. */
static void check_offload(struct imported *m)
{
    const char *share = text_of(m, "optimizer.optimizer_offload_fraction");

    if (!is_true(m, "optimizer.optimizer_cpu_offload"))
        drop(m, "optimizer.optimizer_offload_fraction");
    if (!is_true(m, "optimizer.optimizer_cpu_offload") || (share && strtod(share, NULL) > 0))
        return;
    launch_warn(m->launch, m->arena, place(m, "optimizer.optimizer_cpu_offload"), "optimizer.optimizer_cpu_offload has no "
                "effect: optimizer.optimizer_offload_fraction is 0%s", share ? "" : ", its default");
    drop(m, "optimizer.optimizer_cpu_offload");
}

/* The shape of the network where the file leaves it to a class or to Hugging Face. 0 or -1. */
static int put_shape(struct imported *m, const char *class)
{
    static const struct data_kind kind = {"scenarios/models", "model", NULL};
    struct hf_config config = {0};
    struct node *file, *layers, *preset;
    const char *path = NULL;

    if (!m->options->hf_config && (text_of(m, "model.num_layers") || !class))
        return 0;
    if (m->options->hf_config && hf_config_read(m->arena, m->options->hf_config, NULL, &config, m->err))
        return -1;
    preset = class ? node_get(node_get(m->dialect->tables, "classes"), class) : NULL;
    if (!config.shape && preset)
        path = data_resolve(m->arena, &kind, preset->text, m->launch->loc, m->err);
    if (path && conf_load(m->arena, path, &file, m->err))
        return -1;
    if (path)
        config.shape = node_get(file, "transformer");
    if (!config.shape)
        return 0;
    m->shaped = true;
    node_put(m->arena, node_get(m->root, "model"), "transformer", config.shape);
    layers = node_get(config.shape, "layers");
    if (layers && layers->text && !text_of(m, "model.num_layers"))
        add(m, "num-layers", layers->text, "model");
    if (config.note)
        launch_warn(m->launch, m->arena, (struct loc){.file = m->options->hf_config}, "%s", config.note);
    return 0;
}

/* Switches that the performance recipes of `software` set to other values: where no key gives them, they have the
 * defaults of Megatron Core's classes. */
static void put_switches(struct imported *m, const char *software)
{
    const struct node *switches = node_get(m->dialect->tables, "switches");
    const struct node *said_already = node_get(m->root, "software"), *precision = node_at(m->root, "memory.precision");
    bool mixed = precision && strcmp(precision->text, "fp32"), narrow = mixed && strpbrk(precision->text, "48");

    imported_put(m, "software.like", "%s", software);
    for (size_t i = 0; i < switches->count; i++)
        if (!node_get(said_already, switches->keys[i]) && (narrow || strcmp(switches->keys[i], "fp8_weights")) &&
            (mixed || strcmp(switches->keys[i], "gradients")))
            imported_put(m, arena_printf(m->arena, "software.%s", switches->keys[i]), "%s", switches->items[i]->text);
}

int bridge_build(struct imported *m, const char *class, const char *software, bool printed)
{
    int mistakes = m->err->count;

    m->launch->keys = !printed;
    drop_defaults(m);
    join_lists(m);
    check_offload(m);
    add_precision(m, printed);
    add_overlap(m);
    add_shape(m, printed);
    if (put_shape(m, class) || megatron_build(m))
        return -1;
    if (megatron_core(m)) {
        m->software = software;
        put_switches(m, software);
    }
    return m->err->count > mistakes ? -1 : 0;
}
