/* The planners against the output of their authors' programs, on the profiles of these programs. */
#include "planners.h"
#include "trials.h"

/* PipeDream's profiles of VGG-16 and AlexNet, without the input: us of forward and backward of a minibatch, and B of
 * weights, of each layer (msr-fiddle/pipedream 7db6a1c, profiler/image_classification/profiles/NAME/graph.txt, MIT
 * licence). */
struct profiled { double us, weights; };
static const struct profiled vgg16[] = {
    {46920, 7168}, {9999, 0}, {159531, 147712}, {9766, 0}, {9374, 0}, {54803, 295424}, {5097, 0}, {75441, 590336},
    {5133, 0}, {4999, 0}, {29149, 1180672}, {2757, 0}, {44481, 2360320}, {3103, 0}, {48133, 2360320}, {2870, 0},
    {2682, 0}, {23823, 4720640}, {1722, 0}, {37259, 9439232}, {1527, 0}, {40445, 9439232}, {1523, 0}, {1583, 0},
    {12989, 9439232}, {1050, 0}, {11466, 9439232}, {653, 0}, {12690, 9439232}, {630, 0}, {787, 0}, {0, 0}, {0, 0},
    {7050, 411058176}, {407, 0}, {0, 0}, {1443, 67125248}, {309, 0}, {0, 0}, {941, 16388000},
};
static const struct profiled alexnet[] = {
    {28721, 93184}, {1546, 0}, {1904, 0}, {8740, 1229568}, {1335, 0}, {1440, 0}, {9870, 2655744}, {696, 0},
    {11620, 3539968}, {727, 0}, {8312, 2360320}, {700, 0}, {697, 0}, {0, 0}, {0, 0}, {0, 0}, {4809, 151011328},
    {510, 0}, {0, 0}, {2441, 67125248}, {326, 0}, {927, 16388000},
};

/* What optimizer/optimizer_graph_hierarchical.py of that commit finds; stages NULL: several plans are as good. */
static const struct pipedream_case {
    const struct profiled *profile;
    size_t count;
    struct pipedream_level levels[2];
    size_t nlevels;
    bool straight;
    double seconds;
    const char *stages;
} pipedream_cases[] = {
    {vgg16, COUNT(vgg16), {{4, 1.25e9}}, 1, false, 0.17449849920000002, "0-15 x 3, 15-40 x 1"},
    /* not the 15-1 that the paper publishes */
    {vgg16, COUNT(vgg16), {{16, 1.25e9}}, 1, false, 0.0465874887308642, NULL},
    {vgg16, COUNT(vgg16), {{4, 12.5e9}, {4, 1.25e9}}, 2, false, 0.04400263050666666, "0-16 x 12, 16-25 x 3, 25-40 x 1"},
    {vgg16, COUNT(vgg16), {{8, 25e9}, {2, 3.125e9}}, 2, false, 0.0463845862, "0-8 x 8, 8-25 x 7, 25-40 x 1"},
    {vgg16, COUNT(vgg16), {{4, 1.25e9}}, 1, true, 0.21645, NULL},
    {alexnet, COUNT(alexnet), {{4, 1.25e9}}, 1, false, 0.0229012016, "0-6 x 2, 6-9 x 1, 9-22 x 1"},
    {alexnet, COUNT(alexnet), {{16, 1.25e9}}, 1, false, 0.0070595952, NULL},
    {alexnet, COUNT(alexnet), {{4, 12.5e9}, {4, 1.25e9}}, 2, false, 0.00591824272, NULL},
    {alexnet, COUNT(alexnet), {{8, 25e9}, {2, 3.125e9}}, 2, false, 0.005510967377777777,
     "0-6 x 8, 6-12 x 6, 12-17 x 1, 17-22 x 1"},
    {alexnet, COUNT(alexnet), {{4, 1.25e9}}, 1, true, 0.028721, NULL},
};

static void test_pipedream(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(pipedream_cases); i++) {
        const struct pipedream_case *found = &pipedream_cases[i];
        struct planner_layer layers[64];
        struct planned planned;

        for (size_t l = 0; l < found->count; l++)
            layers[l] = (struct planner_layer){1e-6 * found->profile[l].us, found->profile[l].weights, 0};
        pipedream_plan(&(struct pipedream){layers, found->count, found->levels, found->nlevels, false, found->straight},
                       &planned);
        if (found->stages)
            expect_plan(&planned, found->seconds, found->stages);
        else
            expect_close(planned.objective, found->seconds);
    }
}

/* Piper's BERT-32 on A100s (msr-fiddle/piper d7fc8cf, inputs/bert32a100.json, MIT licence): us of forward and backward
 * of each of 32 transformer layers on 1, 2, 4 and 8 devices, then the same with recomputation. */
enum { TENSORS = 4, LAYERS = 32 };
static const double transformer_us[LAYERS][2 * TENSORS] = {
    {30492, 18696, 11928, 9396, 40685, 24891, 15604, 12056},
    {30474, 18721, 11886, 9333, 40657, 24887, 15600, 12285},
    {30479, 18733, 12048, 9427, 40680, 24776, 15549, 11855},
    {30452, 18727, 11990, 9383, 40668, 24752, 15568, 11865},
    {30484, 18728, 11886, 9457, 40651, 24744, 15587, 11728},
    {30372, 18702, 11997, 9393, 40675, 24727, 16281, 11753},
    {30345, 18725, 11927, 9461, 40636, 24760, 15575, 11695},
    {30307, 18678, 11943, 9495, 40553, 24824, 15567, 11716},
    {30394, 18698, 11880, 9477, 40568, 24789, 15551, 11764},
    {30361, 18699, 11968, 9327, 40829, 24757, 15633, 11711},
    {30290, 18717, 11992, 9342, 40829, 24812, 15567, 11748},
    {30285, 18691, 11921, 9414, 40801, 24875, 15557, 11697},
    {30307, 18702, 11943, 9363, 40873, 24768, 15560, 11757},
    {30304, 18666, 11904, 9349, 40784, 24780, 15579, 11775},
    {30324, 18696, 11914, 9393, 40744, 24789, 15559, 11713},
    {30288, 18679, 11913, 9344, 40884, 24792, 15561, 11704},
    {30474, 18743, 11894, 9329, 40636, 24763, 15561, 11752},
    {30479, 18679, 11975, 9402, 40553, 24793, 15563, 11699},
    {30452, 18715, 11899, 9384, 40568, 24821, 15551, 11695},
    {30484, 18701, 11928, 9348, 40829, 24767, 15552, 11713},
    {30372, 18680, 11927, 9354, 40829, 24795, 15563, 11753},
    {30345, 18730, 11924, 9347, 40801, 24801, 15560, 11687},
    {30307, 18682, 11937, 9318, 40873, 24791, 15567, 11716},
    {30394, 18701, 11936, 9325, 40784, 24743, 15555, 11725},
    {30361, 18696, 11930, 9319, 40744, 24771, 15548, 11725},
    {30290, 18713, 11953, 9333, 40884, 24764, 15567, 11697},
    {30285, 18713, 11946, 9330, 40636, 24772, 15571, 11743},
    {30307, 18672, 11932, 9355, 40553, 24777, 15564, 11748},
    {30304, 18690, 11907, 9367, 40568, 24797, 15561, 11745},
    {30324, 18684, 11926, 9373, 40829, 24807, 15560, 11753},
    {30288, 18731, 11916, 9317, 40829, 24781, 15576, 11881},
    {30324, 18678, 11896, 9328, 40801, 24779, 15556, 11725},
};
static const double transformer_weights[] = {176997120, 88510080, 44266560, 22144800};
static const double transformer_held[] = {606478336, 341581824, 208543744, 142811136};
static const double transformer_fixed[2][TENSORS] = {
    {353994240, 177020160, 88533120, 44289600}, {912500224, 470367488, 248711296, 138604096},
};
static const double embedding_us[2][TENSORS] = {{1116, 3278, 3786, 4097}, {1413, 4851, 4745, 5120}};
static const double embedding_weights[] = {200824320, 104348160, 56110080, 31991040};
static const double embedding_held[] = {1982464, 1987072, 2052608, 1987072};
static const double embedding_fixed[2][TENSORS] = {
    {401648640, 208696320, 112220160, 63982080}, {403614720, 210667008, 114190848, 65952768},
};
static const double tokens = 8192, mask = 16777216, boundary = 31457280, kept = 48234496, pooler = 14749440;

/* Nodes: tokens, embedding, their types, the mask that all transformer layers read, those layers, the pooler. */
enum { TOKENS, EMBEDDING, TYPES, MASK, FIRST, POOLER = FIRST + LAYERS, NODES };
struct graph { struct piper_node nodes[NODES]; struct piper_edge edges[2 * LAYERS + 4]; size_t nedges; };

static void fill_nodes(struct graph *graph, int t, int o)
{
    for (int n = 0; n < NODES; n++)
        graph->nodes[n].options[t][o] = (struct piper_option){0, 0, n == MASK ? mask : tokens, 0};
    graph->nodes[POOLER].options[t][o] = (struct piper_option){0, pooler, boundary, 2 * pooler};
    graph->nodes[EMBEDDING].options[t][o] = (struct piper_option){
        1e-6 * embedding_us[o][t], embedding_weights[t], o ? 2 * tokens : embedding_held[t], embedding_fixed[o][t],
    };
    for (int l = 0; l < LAYERS; l++)
        graph->nodes[FIRST + l].options[t][o] = (struct piper_option){
            1e-6 * transformer_us[l][o * TENSORS + t], transformer_weights[t], o ? kept : transformer_held[t],
            transformer_fixed[o][t],
        };
}

static void fill_graph(struct graph *graph)
{
    const struct piper_edge ends[] = {
        {TOKENS, EMBEDDING, tokens, tokens, tokens}, {TYPES, EMBEDDING, tokens, tokens, tokens},
        {EMBEDDING, FIRST, boundary, boundary, boundary}, {MASK, FIRST, mask, mask, mask},
        {POOLER - 1, POOLER, boundary, boundary, boundary},
    };

    for (int t = 0; t < TENSORS; t++)
        for (int o = 0; o < 2; o++)
            fill_nodes(graph, t, o);
    memcpy(graph->edges, ends, sizeof ends);
    graph->nedges = COUNT(ends);
    for (int l = FIRST + 1; l < POOLER; l++) {        /* the bytes of the two inputs are exchanged in that file */
        graph->edges[graph->nedges++] = (struct piper_edge){MASK, l, boundary, mask, boundary};
        graph->edges[graph->nedges++] = (struct piper_edge){l - 1, l, mask, boundary, mask};
    }
}

static void test_piper(void **state)
{
    static const int tensors[] = {1, 2, 4, 8};
    const double gib = 1073741824;
    const struct { int devices; double memory; int micro_batches; double seconds; } cases[] = {
        {8, 2, 1920, INFINITY}, {8, 8, 1920, 0.16585575}, {32, 8, 1920, 0.041515450442}, {8, 80, 1920, 0.12200726935},
        {8, 8, 512, 0.16585575}, {32, 2, 1920, 0.0665495}, {32, 80, 1920, 0.030844048209},
        {64, 8, 1920, 0.020200550294}, {128, 8, 1920, 0.010120880324},
    };
    struct graph graph;
    struct planned planned;

    (void)state;
    fill_graph(&graph);
    for (size_t i = 0; i < COUNT(cases) && (cases[i].devices <= 32 || one_in() == 1); i++) {
        struct piper question = {graph.nodes, graph.edges, NODES, graph.nedges, tensors, TENSORS,
                                 cases[i].micro_batches, cases[i].devices, 25 * gib, cases[i].memory * gib, 0, 0};

        piper_plan(&question, &planned);
        if (!(fabs(planned.objective - cases[i].seconds) < 1e-9 || planned.objective == cases[i].seconds))
            fail_msg("%d devices of %g GiB: %.12g instead of %.12g", cases[i].devices, cases[i].memory,
                     planned.objective, cases[i].seconds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pipedream), cmocka_unit_test(test_piper)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
