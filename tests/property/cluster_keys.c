/* No key of a cluster is ignored in silence: whoever changes one sees a number move, an error, or a note that names it.
 * The keys come from the cluster's table, so that a new one is tried by itself. */
#include "simulated.h"

/* What the keys are set on. Together they have every part of a cluster in use. */
#define GIVEN "simulation: {engine: fast}\nmodel: {stages: {forward: 10 ms, backward: 20 ms, parameters: 1 M}}\n"
#define MODEL "simulation: {engine: fast}\nmodel: {transformer: {layers: 2, hidden: 256, heads: 8, sequence: 128, vocabulary: 1024}}\n"
static const char *const bases[] = {
    MODEL "cluster: {platform: dgx-h100, nodes: 2}\nbatch: {global: 8, micro: 1}\nstrategy: {tensor: 2}\n",
    MODEL "cluster: {platform: dgx-a100, nodes: 4, communication: none, network: {topology: {leaf_nodes: 2, "
    "oversubscription: 4}}}\nbatch: {global: 16, micro: 1}\nstrategy: {tensor: 2, pipeline: 2}\n",
    MODEL "cluster: {platform: dgx-a100, nodes: 2, communication: {profile: nccl-ampere, nics: first}, host: {across: "
    "100 GB/s}}\nbatch: {global: 16, micro: 1}\nstrategy: {tensor: 4}\n",
    MODEL "cluster: {platform: dgx-2, nodes: 1, gpus_per_node: 4}\nbatch: {global: 8, micro: 1}\n"
    "memory: {offload: [optimizer, weights]}\nstrategy: {zero: 1}\n",
    MODEL "cluster: {platform: dgx-h100, nodes: 2, network: {name: ethernet-25g, bandwidth: 200 Gb/s}}\n"
    "batch: {global: 16, micro: 1}\n",
    MODEL "cluster: {platform: l40s-pcie, nodes: 2}\nbatch: {global: 16, micro: 1}\n",
    MODEL "cluster: {gpus_per_node: 4, gpu: a100-80gb, nodes: 2, inside: {bandwidth: 200 GB/s, latency: 1 us}, "
    "network: {bandwidth: 25 GB/s, latency: 2 us, nics: 2}}\nbatch: {global: 8, micro: 1}\n",
    MODEL "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 8, micro: 1}\ncosts: {gpu: roofline}\n",
    MODEL "cluster: {platform: dgx-h100, nodes: 1, gpus_per_node: 1}\nbatch: {global: 2, micro: 1}\n",
    GIVEN "cluster: {platform: ideal, gpu: a40, nodes: 1, gpus_per_node: 4}\nbatch: {micro_batches: 4}\n"
    "strategy: {pipeline: 4}\n",
};

/* Values that a field may have; not all are allowed everywhere. */
static const double numbers[] = {1e-7, 0.1, 0.5, 1e7, 2e10, 1e15};
static const char *const counts[] = {"1", "2", "4", "8"};
static const struct { const char *path, *values[4]; } texts[] = {
    {"communication.profile", {"nccl-hopper", "nccl-pcie", "none"}},
    {"gpu.name", {"v100-32gb", "b200-180gb"}},
    {"inside.mesh", {"[{gpus: 4, share: 0.5}]", "[{gpus: 2, share: 0.1}, {gpus: 8, share: 0.1}]"}},
    {"network.name", {"ethernet-25g", "efa"}},
    {"network.share", {"0.001"}},    /* so little that nothing else is a bottleneck */
    {"network.topology.kind", {NULL}},           /* another topology is another network, whose keys are tried themselves */
    {"network.topology.unit_nodes", {NULL}},     /* with a NIC a node a rail is one switch; unit topology tries them */
    {"network.topology.across_rails", {NULL}},
    {"network.topology.levels", {"[{leaf_nodes: 1, oversubscription: 100}]", "[{leaf_nodes: 2, oversubscription: 100}]"}},
    {"network.topology.dims", {"[2]", "[4]"}},
    {"network.topology.xml", {NULL}},            /* another program's links and routes: unit simgrid_file tries them */
    {"network.topology.hosts", {NULL}},          /* of its hosts */
    {"network.topology.wrap", {"true", "false"}},
    {"network.title", {NULL}},       /* names, and what notes say of numbers */
    {"network.estimate", {NULL}},
    {"title", {NULL}},               /* a name, of which no number depends */
    {"inside.link", {NULL}},         /* the class of the links in results */
    {"between", {NULL}},
    {"parts", {NULL}},               /* other clusters, each with these keys (parts.c) */
    {"platform", {NULL}},            /* another platform is another cluster, whose keys are tried themselves */
};

struct result { char *numbers; json_t *notes; struct node *cluster; struct arena arena; };

static void result_release(struct result *result)
{
    free(result->numbers);
    json_decref(result->notes);
    arena_release(&result->arena);
}

/* Simulates the text's scenario. False: an error, which must be about the key or about other keys of the text. */
static bool result_of(const char *text, struct result *result, struct error *err)
{
    struct simulated simulated = {.text = NULL};
    bool good = !load_text(text, &simulated.scenario, err) && !simulated_run(&simulated, err);

    *result = (struct result){0};
    if (good) {
        json_t *json = result_json(&simulated.run);

        result->notes = json_incref(json_object_get(json, "notes"));
        json_object_del(json, "notes");
        json_object_del(json, "scenario");
        result->numbers = json_dumps(json, JSON_SORT_KEYS);
        result->cluster = field_dump(&result->arena, &cluster_table, &simulated.scenario.cluster);
        json_decref(json);
    }
    simulated_release(&simulated);
    return good;
}

/* Whether a note that the base does not have names the path or the part that it belongs to. */
static bool notes_name(const struct result *result, const struct result *base, const char *path)
{
    const char *key = strrchr(path, '.') ? strrchr(path, '.') + 1 : path;
    char part[64];
    size_t i, k;
    json_t *item, *other;

    snprintf(part, sizeof part, "cluster.%.*s:", (int)strcspn(path, "."), path);
    json_array_foreach(result->notes, i, item) {
        const char *note = json_string_value(item);
        bool old = false;

        json_array_foreach(base->notes, k, other)
            old |= json_equal(item, other);
        if (!old && (strstr(note, key) || strstr(note, part)))
            return true;
    }
    return false;
}

/* What came of a key's values: a number moved, or nothing fits any more; a note or an error says that it does not;
 * nothing. */
struct tried { int moved, told, silent; };

static void try_value(const char *text, const struct result *base, const char *path, const char *value,
                      struct tried *tried)
{
    struct arena arena = {0};
    struct error err = {0};
    struct result result;
    struct node *root;
    char *changed = NULL;
    size_t size;
    FILE *out = open_memstream(&changed, &size);

    assert_int_equal(conf_parse(&arena, "base", text, strlen(text), &root, &err), 0);
    assert_int_equal(field_open(&arena, &cluster_table, node_get(root, "cluster"), path, &err), 0);
    assert_int_equal(conf_set(&arena, root, arena_printf(&arena, "cluster.%s=%s", path, value), &err), 0);
    node_print(root, out);
    fclose(out);
    if (!result_of(changed, &result, &err)) {
        const char *message = err.messages[0].text;

        tried->moved += err.messages[0].code == EXIT_INFEASIBLE;
        tried->told += strstr(message, "has no effect") || strstr(message, "the ideal cluster has no ") ||
                       strstr(message, "the ideal cluster's takes no time");
    } else if (strcmp(result.numbers, base->numbers) != 0) {
        tried->moved++;
    } else if (notes_name(&result, base, path)) {
        tried->told++;
    } else if (!node_equal(result.cluster, base->cluster)) {
        tried->silent++;
    }
    result_release(&result);
    error_release(&err);
    arena_release(&arena);
    free(changed);
}

/* A value may be no bottleneck, but then another one is. */
static void try_field(const char *text, const struct result *base, const char *path, const struct field *field)
{
    struct tried tried = {0, 0, 0};
    bool known = false;

    for (size_t i = 0; i < COUNT(texts); i++)
        for (size_t k = 0; !strcmp(path, texts[i].path) && (known = true) && texts[i].values[k]; k++)
            try_value(text, base, path, texts[i].values[k], &tried);
    for (size_t i = 0; field->kind == FIELD_QUANTITY && i < COUNT(numbers); i++) {
        char value[48];

        try_value(text, base, path, unit_format(field->unit, numbers[i], value, sizeof value), &tried);
    }
    for (size_t i = 0; field->kind == FIELD_INT && !known && i < COUNT(counts); i++)
        try_value(text, base, path, counts[i], &tried);
    for (size_t i = 0; field->kind == FIELD_CHOICE && !known && field->choices[i]; i++)
        try_value(text, base, path, field->choices[i], &tried);
    if (!known && field->kind != FIELD_QUANTITY && field->kind != FIELD_INT && field->kind != FIELD_CHOICE)
        fail_msg("cluster.%s: no values to try: add some", path);
    if (tried.silent && !tried.moved)
        fail_msg("cluster.%s changes nothing, and nothing says so, in\n%s", path, text);
}

/* All keys below the path, "" or one that ends with a dot. */
static void try_table(const char *text, const struct result *base, const struct table *table, const char *path)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        char *below, *own;

        assert_true(asprintf(&own, "%s%s", path, field->key) >= 0);
        assert_true(asprintf(&below, "%s.", own) >= 0);
        if (field->kind == FIELD_RECORD || field->kind == FIELD_OPTIONAL)
            try_table(text, base, field->table, below);
        else
            try_field(text, base, own, field);
        free(own);
        free(below);
    }
}

static void no_key_is_ignored(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bases); i++) {
        struct result base;
        struct error err = {0};

        if (!result_of(bases[i], &base, &err))
            fail_at(bases[i], &err);
        try_table(bases[i], &base, &cluster_table, "");
        result_release(&base);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(no_key_is_ignored)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
