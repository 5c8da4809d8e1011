/* Folded collectives take exactly as long as whole ones, which are written, lowered and replayed too. */
#include "whole_collective.h"

#include "collective/dag.h"

static const enum collective_op ops[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_GATHER};

static bool waits_for(const struct dag *dag, size_t list, uint32_t wait)
{
    for (size_t i = dag->first[list]; i < dag->first[list + 1]; i++)
        if (dag->waits.items[i] == wait)
            return true;
    return false;
}

/* List `image` of the folded ring waits for the images of the messages that `list` of the whole ring waits for, and for
 * no others. */
static void check_waits(const struct dag *whole, size_t list, const struct dag *folded, size_t image)
{
    size_t n = (size_t)whole->n, few = (size_t)folded->n, nmessages = whole->messages.count;

    assert_int_equal(whole->first[list + 1] - whole->first[list], folded->first[image + 1] - folded->first[image]);
    for (size_t i = whole->first[list]; i < whole->first[list + 1]; i++) {
        size_t wait = whole->waits.items[i];
        size_t like = wait < nmessages ? wait / n * few + wait % n % few :
                      folded->messages.count + (wait - nmessages) % few;

        assert_true(waits_for(folded, image, (uint32_t)like));
    }
}

/* Rank r + few does the same as rank r in every step, and waits for the same. If n is a multiple of `few`, the whole
 * ring is the folded one repeated, message by message. For any other n this holds for the ranks that are not at the
 * wrap. */
static void check_folded(const struct collective *collective, int n, int few)
{
    struct dag whole, folded;

    dag_init(&whole, collective, &(struct task){.n = n, .per_node = 1, .bytes = 1e6});
    dag_init(&folded, collective, &(struct task){.n = n, .per_node = 1, .bytes = 1e6, .folded = few});
    assert_int_equal(folded.n, few);
    assert_int_equal(folded.chunks, whole.chunks);
    assert_int_equal(whole.messages.count % (size_t)n, 0);
    assert_int_equal(folded.messages.count / (size_t)few, whole.messages.count / (size_t)n);
    for (size_t i = 0; i < whole.messages.count; i++) {
        const struct message *message = &whole.messages.items[i];
        size_t image = i / (size_t)n * (size_t)few + (size_t)(message->src % few);
        const struct message *like = &folded.messages.items[image];

        assert_int_equal(message->src, i % (size_t)n);
        assert_int_equal(message->dst, (message->src + 1) % n);
        assert_int_equal(like->src, message->src % few);
        assert_int_equal(like->dst, (like->src + 1) % few);
        assert_true(like->step == message->step && like->nchunks == message->nchunks);
        assert_true(like->combine == message->combine);
        if (n % few == 0 || (message->src > 0 && message->src < n - 1))
            check_waits(&whole, i, &folded, image);
    }
    for (int r = n % few ? 1 : 0; r < n; r++)
        check_waits(&whole, whole.messages.count + (size_t)r, &folded, folded.messages.count + (size_t)(r % few));
    dag_release(&whole);
    dag_release(&folded);
}

static void whole_rings_repeat_folded_ones(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(ops); k++)
        for (int per_node = 1; per_node <= 8; per_node++)
            for (int nodes = 2; nodes <= 9; nodes++)
                check_folded(collective_find(ops[k], "ring"), nodes * per_node, 2 * per_node);
}

/* The first GPUs of a platform whose node has this number of GPUs and NICs; with its library's profile, or none. */
static struct cluster nodes_like(const char *platform, int nodes, int gpus, int nics)
{
    if (platform)
        return load_good(arena_printf(&arena, "{platform: %s, nodes: %d, gpus_per_node: %d, network: {nics: %d}}",
                                      platform, nodes, gpus, nics));
    return make_cluster(nodes, gpus, nics);
}

/* Whole nodes: every platform's protocols, NICs shared or not, all channels and some of them. */
static void whole_nodes_take_as_long(void **state)
{
    static const char *const platforms[] = {NULL, "dgx-a100", "dgx-h100"};
    static const int shapes[][2] = {{1, 1}, {2, 1}, {2, 2}, {4, 1}, {4, 2}, {4, 4}, {8, 2}, {8, 8}};
    bool used[PROTOCOL_COUNT] = {false};
    int folded = 0, members, channels;

    (void)state;
    for (int i = 0; i < (int)COUNT(shapes) * 7; i++) {
        const char *platform = platforms[i % (int)COUNT(platforms)];
        const int *shape = shapes[i / 7 % (int)COUNT(shapes)];
        int nodes = 2 + i % 7;
        struct question question = {
            .cluster = nodes_like(platform, nodes, shape[0], shape[1]), .ngroups = 1, .n = nodes * shape[0],
        };
        struct placed_group group = placed_group_of(&question.cluster, identity(), question.n);

        memcpy(question.gpus, identity(), (size_t)question.n * sizeof(int));
        for (int k = 0; k < 3; k++) {
            question.collective = collective_find(ops[(i + k) % 3], "ring");
            question.bytes = (const double[]){3e3, 1e6, 1e9}[k];
            question.channels = k == i % 5 ? 1 + i % 4 : placed_group_channels(&group);
            if (question.n * question.n * question.channels > (k == i % 7 ? 9000 : 2000))
                continue;
            int protocol = check_question(&question);
            if (protocol != PROTOCOL_NONE)
                used[protocol] = true;
            folded += folds(&question, &members, &channels);
        }
    }
    assert_true(used[PROTOCOL_LL] && used[PROTOCOL_LL128] && used[PROTOCOL_SIMPLE]);
    assert_true(folded > 70);
}

/* Sums in the switches between any number of nodes, trees and halving on every platform, all channels and some. */
static void algorithms_of_libraries_take_as_long(void **state)
{
    static const char *const names[] = {"nvls", "double-tree", "hierarchical", "halving-doubling", "butterfly", "tree"};
    int folded = 0, members, channels;

    (void)state;
    for (int i = 0; i < (int)COUNT(names) * 12; i++) {
        int nodes = 2 + i / (int)COUNT(names), gpus = (const int[]){8, 4, 2, 6}[i % 4];
        struct question question = {
            .cluster = nodes_like(i % 3 == 1 && i % (int)COUNT(names) ? "dgx-a100" : "dgx-h100", nodes, gpus, gpus),
            .ngroups = 1, .n = nodes * gpus,
            .collective = collective_find(COLLECTIVE_ALL_REDUCE, names[i % (int)COUNT(names)]),
        };
        assert_true(question.n <= (int)COUNT(question.gpus));
        for (int m = 0; m < question.n; m++)
            question.gpus[m] = m;
        question.bytes = (const double[]){3e3, 1e6, 3e7}[i % 5 % 3];
        struct placed_group group = placed_group_of(&question.cluster, question.gpus, question.n);

        question.channels = i % 4 ? placed_group_channels(&group) : 1 + i % 3;
        if (!collective_runs_on(question.collective, &question.cluster))
            continue;
        check_question(&question);
        folded += folds(&question, &members, &channels);
    }
    assert_true(folded > 40);
}

static void shuffle(int *items, int n, uint64_t *seed)
{
    for (int i = n - 1; i > 0; i--) {
        int other = random_below(seed, i + 1), item = items[i];

        items[i] = items[other];
        items[other] = item;
    }
}

static struct cluster random_cluster(uint64_t *seed)
{
    int gpus = 1 + random_below(seed, 6), nics = random_below(seed, 2) ? gpus : 1 + random_below(seed, gpus);
    struct cluster cluster = make_cluster(2 + random_below(seed, 6), gpus, nics);

    cluster.kinds[0].nics.bandwidth = 1e9 * (1 + random_below(seed, 100));
    cluster.kinds[0].nics.latency = 1e-6 * random_below(seed, 10);
    if (random_below(seed, 2))
        cluster.network.topology = (struct topology){
            .kind = TOPOLOGY_LEAF_SPINE, .leaf_nodes = 1 + random_below(seed, 3),
            .oversubscription = 1 + 0.5 * random_below(seed, 5),
        };
    return cluster;
}

/* Groups in the same places of each node, node by node. Now and then a group begins on another node or is in any order,
 * or all groups are placed at random. */
static void random_groups(struct question *question, uint64_t *seed)
{
    const struct cluster *cluster = &question->cluster;
    int gpus = cluster->kinds[0].gpus, nodes[8], places[8], kind = random_below(seed, 8);

    memcpy(nodes, identity(), sizeof nodes);
    memcpy(places, identity(), sizeof places);
    shuffle(nodes, cluster->nodes, seed);
    if (random_below(seed, 2))
        shuffle(places, gpus, seed);
    question->ngroups = 1 + random_below(seed, 2) * random_below(seed, gpus);
    int each = gpus / question->ngroups, count = 2 + random_below(seed, cluster->nodes - 1);
    if (random_below(seed, 2))
        each = 1 + random_below(seed, each);
    question->n = each * count;
    question->channels = random_below(seed, 2) ? each : 1 + random_below(seed, 6);
    for (int i = 0; i < question->ngroups * question->n; i++) {
        int group = i / question->n, start = kind == 2 && group == question->ngroups - 1;

        question->gpus[i] = nodes[(i % question->n / each + start) % count] * gpus + places[group * each + i % each];
    }
    if (kind == 0)
        shuffle(question->gpus, question->ngroups * question->n, seed);
    else if (kind == 1)
        shuffle(question->gpus + (question->ngroups - 1) * question->n, question->n, seed);
}

/* Every collective that is folded takes the time of the whole one; one that cannot be folded is not. Half are rings. */
static void random_groups_take_as_long(void **state)
{
    uint64_t seed = 11;
    int folded = 0, fewer_channels = 0, several = 0, whole = 0, nodes = 0, trees = 0, members, channels;

    (void)state;
    for (int i = 0; i < trials(600); i++) {
        struct question question = {.cluster = random_cluster(&seed)};
        const struct collective *used;

        random_groups(&question, &seed);
        used = question.collective = i % 2 ? collective_find(ops[random_below(&seed, 3)], "ring")
                                           : any_collective(&question.cluster, &seed);
        question.bytes = (const double[]){1, 5e4, 7e7}[random_below(&seed, 3)];
        if (collective_messages(used, &(struct task){.n = question.n, .per_node = 1}) * question.ngroups *
                question.channels > 8000)
            continue;
        check_question(&question);
        if (folds(&question, &members, &channels)) {
            folded++;
            fewer_channels += channels < question.channels;
            several += question.ngroups > 1;
            nodes += !used->ring && members < question.n;
            trees += !strcmp(used->name, "double-tree");
        } else {
            whole++;
        }
    }
    print_message("%d folded, %d of them with fewer channels, %d of several groups, %d by nodes, %d trees; %d whole\n",
                  folded, fewer_channels, several, nodes, trees, whole);
    assert_true(folded > trials(40) && fewer_channels > trials(4) && several > trials(8) && whole > trials(50));
    assert_true(one_in() > 1 || (nodes > 2 && trees > 0));      /* of these a sample may have none */
}

static int members_of(struct cluster cluster, const char *name, int n, const int *gpus, int *channels)
{
    struct question question = {.cluster = cluster, .ngroups = 1, .n = n, .channels = 4, .bytes = 1e6,
                                .collective = collective_find(COLLECTIVE_ALL_REDUCE, name)};
    int members = n;

    *channels = question.channels;
    memcpy(question.gpus, gpus, (size_t)n * sizeof *gpus);
    folds(&question, &members, channels);
    return members;
}

static void only_alike_nodes_are_folded(void **state)
{
    struct cluster cluster = make_cluster(8, 4, 4), narrow = cluster;
    int channels;

    (void)state;
    assert_int_equal(members_of(cluster, "ring", 32, identity(), &channels), 8);
    assert_int_equal(channels, 1);
    assert_int_equal(members_of(cluster, "ring", 8, identity(), &channels), 8);      /* folds channels only */
    assert_int_equal(channels, 1);
    assert_int_equal(members_of(cluster, "ring", 4, identity(), &channels), 4);      /* one node */
    assert_int_equal(channels, 4);
    assert_int_equal(members_of(make_cluster(8, 4, 1), "ring", 32, identity(), &channels), 8);
    assert_int_equal(channels, 4);                                                   /* that share a NIC */
    assert_int_equal(members_of(make_cluster(8, 8, 4), "ring", 64, identity(), &channels), 16);
    assert_int_equal(channels, 1);                                                   /* between the two GPUs of a NIC */
    assert_int_equal(members_of(cluster, "ring", 31, identity(), &channels), 31);    /* one GPU is missing */
    assert_int_equal(members_of(cluster, "hierarchical", 32, identity(), &channels), 8);
    assert_int_equal(members_of(cluster, "butterfly", 32, identity(), &channels), 8);
    assert_int_equal(members_of(cluster, "halving-doubling", 16, identity(), &channels), 8);
    assert_int_equal(members_of(cluster, "halving-doubling", 24, identity(), &channels), 24);    /* no power of two */
    assert_int_equal(channels, 1);                                                   /* but one channel for all */
    assert_int_equal(members_of(cluster, "double-tree", 32, identity(), &channels), 32);
    assert_int_equal(channels, 1);
    narrow.network.topology = (struct topology){
        .kind = TOPOLOGY_LEAF_SPINE, .leaf_nodes = 4, .oversubscription = 4,
    };
    assert_int_equal(members_of(narrow, "ring", 32, identity(), &channels), 8);      /* as wide as a node's NICs */
    narrow.network.topology.oversubscription = 5;
    assert_int_equal(members_of(narrow, "ring", 32, identity(), &channels), 32);
    assert_int_equal(members_of(narrow, "ring", 16, identity(), &channels), 8);      /* of one leaf */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_rings_repeat_folded_ones), cmocka_unit_test(whole_nodes_take_as_long),
        cmocka_unit_test(algorithms_of_libraries_take_as_long), cmocka_unit_test(random_groups_take_as_long),
        cmocka_unit_test(only_alike_nodes_are_folded),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
