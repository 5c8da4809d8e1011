/* Graphs of PipeDream's profiler: the tensors that cross a cut, against the definition, on random graphs; the order;
 * the profiles of PipeDream's repository where they are at hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "import/pipedream_profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"

enum { NODES = 24 };

static struct arena arena;
static struct error err;

static int release(void **state)
{
    (void)state;
    error_release(&err);
    arena_release(&arena);
    return 0;
}

static struct node *parse(const char *text)
{
    return pipedream_profile_parse(&arena, "graph.txt", text, strlen(text), &err);
}

static double number(const struct node *layer, const char *key)
{
    return strtod(node_get(layer, key)->text, NULL);
}

/* Node i reads some earlier nodes; its output is 2^i bytes, so that a sum tells which outputs it has. Every third node
 * is free. Ids are shuffled in the file. */
static char *random_graph(int round, bool edges[NODES][NODES])
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    for (int i = NODES - 1; i >= 0; i--) {
        int cost = i % 3 != 1;

        fprintf(out, "node%d -- Layer(%d) -- forward_compute_time=%d.000, backward_compute_time=%d.000, "
                "activation_size=%ld.0, parameter_size=0.000\n", i, i, cost * (i + 1), cost * 2 * (i + 1), 1L << i);
        for (int j = 0; j < i; j++)
            edges[j][i] = j == i - 1 || random_share(7, (uint64_t)((round * NODES + i) * NODES + j)) < 0.1;
    }
    for (int i = 0; i < NODES; i++)
        for (int j = 0; j < i; j++)
            if (edges[j][i])
                fprintf(out, "\tnode%d -- node%d\n", j, i);
    fclose(out);
    return text;
}

/* By definition: a cut behind node `last` sends the output of each node up to there that a later one reads. */
static long crossing(bool edges[NODES][NODES], int last)
{
    long bytes = 0;

    for (int j = 0; j <= last; j++) {
        bool read = false;

        for (int i = last + 1; i < NODES; i++)
            read |= edges[j][i];
        bytes += read ? 1L << j : 0;
    }
    return bytes;
}

static void boundary_is_what_a_cut_sends(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        bool edges[NODES][NODES] = {{false}};
        char *text = random_graph(round, edges);
        struct node *root = parse(text), *layers = node_get(root, "layers");
        size_t at = 0;

        assert_non_null(root);
        for (int i = 0; i < NODES; i++) {
            bool free_next = i + 1 < NODES && (i + 1) % 3 == 1;

            if (i % 3 == 1)
                continue;
            assert_string_equal(node_get(layers->items[at], "name")->text, arena_printf(&arena, "node%d Layer", i));
            assert_true(number(layers->items[at], "forward") == i + 1);
            assert_true(number(layers->items[at], "backward") == 2 * (i + 1));
            assert_true(number(layers->items[at], "activation") == (double)(1L << i));
            assert_true(number(layers->items[at], "boundary") == (double)crossing(edges, i + free_next));
            at++;
        }
        assert_int_equal(at, layers->count);
        free(text);
    }
}

/* A node's input may stand anywhere in the file, and the ids need not follow the order of the graph. */
static void order_follows_edges(void **state)
{
    (void)state;
    static const char text[] =
        "b -- B -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=8 -- stage_id=0\n"
        "a -- A -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=4 -- "
        "stage_id=1\r\n"
        "\tb -- a\n";
    const struct node *layers = node_get(parse(text), "layers");

    assert_string_equal(node_get(layers->items[0], "name")->text, "b B");
    assert_string_equal(node_get(layers->items[1], "name")->text, "a A");
    assert_true(number(layers->items[0], "parameters") == 2);
}

/* What the repository's profiles hold in sum; the time of "Input", which is the loader's, is left out. */
static void published_profiles(void **state)
{
    (void)state;
    static const struct { const char *name; double forward, backward, parameters; } sums[] = {
        {"alexnet", 680.7 - 635.902, 40.52, 244.4e6},
        {"gnmt_large", 182.56, 337.89, 1110.9e6},
        {"resnet50", 201.45 - 18.962, 260.93, 102.2e6},
        {"vgg16", 251.87 - 17.972, 438.63, 553.4e6},
    };

    for (size_t i = 0; i < COUNT(sums); i++) {
        const char *path = arena_printf(&arena, DTSIM_SOURCE_DIR "/../shared/validation/data/pipedream_profiles/"
                                        "%s_graph.txt", sums[i].name);
        double forward = 0, backward = 0, parameters = 0;
        const struct node *layers;

        if (access(path, R_OK)) {
            print_message("skipped: no %s\n", path);
            skip();
        }
        layers = node_get(pipedream_profile_load(&arena, path, &err), "layers");
        assert_non_null(layers);
        for (size_t j = 0; j < layers->count; j++) {
            forward += number(layers->items[j], "forward");
            backward += number(layers->items[j], "backward");
            parameters += number(layers->items[j], "parameters");
        }
        assert_true(fabs(forward - sums[i].forward) < 0.01);
        assert_true(fabs(backward - sums[i].backward) < 0.01);
        assert_true(fabs(4 * parameters - sums[i].parameters) < 0.05e6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(boundary_is_what_a_cut_sends, release),
        cmocka_unit_test_teardown(order_follows_edges, release),
        cmocka_unit_test_teardown(published_profiles, release),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
