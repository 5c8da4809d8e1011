/* Collectives folded on networks with narrow links take exactly as long as whole ones, on every engine. */
#include "whole_collective.h"

/* Trees with narrow uplinks, tori and dragonflies of nodes with several NICs. */
static struct cluster random_network(uint64_t *seed)
{
    static const char *const tori[] = {"[2, 2]", "[4]", "[4, 4]", "[2, 5]", "[6]", "[2, 2, 4]", "[4, 2]", "[3, 4]"};
    int nodes[] = {4, 4, 16, 10, 6, 16, 8, 12}, t = random_below(seed, (int)COUNT(tori)), kind = random_below(seed, 4);
    int gpus = 1 + random_below(seed, 4);
    const char *topology = arena_printf(&arena, "dims: %s, link: %d GB/s, hop: %d us", tori[t],
                                        1 + random_below(seed, 60), random_below(seed, 3));

    if (kind == 1)
        topology = arena_printf(&arena, "groups: %d, routers: 2, nodes_per_router: %d, global_links: 2, link: %d GB/s, "
                                "routing: %s", 2 + random_below(seed, 2), 1 + random_below(seed, 2),
                                1 + random_below(seed, 60), random_below(seed, 2) ? "minimal" : "valiant");
    else if (kind == 2)
        topology = arena_printf(&arena, "levels: [{leaf_nodes: 2, oversubscription: %d}, {units: 2, oversubscription: %d, "
                                "latency: %d us}]", 1 + random_below(seed, 4), 1 + random_below(seed, 4),
                                random_below(seed, 4));
    return load_good(arena_printf(&arena, "{%sgpus_per_node: %d, inside: {bandwidth: %d GB/s, latency: 1 us}, network: "
                                  "{bandwidth: %d GB/s, latency: 5 us, nics: %d, topology: {%s}}}",
                                  kind == 1 ? "" : kind == 2 ? "nodes: 8, " : arena_printf(&arena, "nodes: %d, ", nodes[t]),
                                  gpus, 50 + random_below(seed, 500), 5 + random_below(seed, 45),
                                  random_below(seed, 2) ? gpus : 1, topology));
}

/* What goes along a torus, and channels that meet on narrow links behind their NICs. */
static void networks_take_as_long(void **state)
{
    uint64_t seed = 5 + seed_base();
    int tori = 0, channels_folded = 0, members, channels;

    (void)state;
    for (int i = 0; i < trials(400); i++) {
        struct question question = {.cluster = random_network(&seed), .ngroups = 1};
        int gpus = question.cluster.kinds[0].gpus;

        question.n = gpus * question.cluster.nodes;
        memcpy(question.gpus, identity(), (size_t)question.n * sizeof(int));
        question.collective = cluster_wraps(&question.cluster) && i % 2 ? &collective_torus
                                                                        : any_collective(&question.cluster, &seed);
        if (question.collective->torus) {    /* one GPU a node */
            question.n = question.cluster.nodes;
            for (int m = 0; m < question.n; m++)
                question.gpus[m] = m * gpus;
        }
        struct placed_group group = placed_group_of(&question.cluster, question.gpus, question.n);
        question.channels = question.collective->torus ? 1 : random_below(&seed, 4) ? gpus : 1 + random_below(&seed, gpus);
        question.bytes = (const double[]){1, 5e4, 7e7}[random_below(&seed, 3)];
        if (!collective_runs_in(question.collective, &group) ||
            collective_messages(question.collective, &(struct task){.n = question.n, .per_node = 1, .torus = group.torus}) *
                    question.channels > 8000)
            continue;
        check_question(&question);
        if (folds(&question, &members, &channels)) {
            tori += question.collective->torus;
            channels_folded += channels < question.channels;
        }
    }
    print_message("%d tori folded, channels of %d collectives\n", tori, channels_folded);
    assert_true(one_in() > 4 || (tori > trials(20) && channels_folded > trials(20)));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(networks_take_as_long)};

    return cmocka_run_group_tests_name("collective networks", tests, NULL, NULL);
}
