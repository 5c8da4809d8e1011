/* Each planner's plan against all possible plans, on random chains: none is better by the planner's objective, and the
 * plan has the value that the planner gives. */
#include "planners.h"

#include "planners/alpa.h"
#include "text.h"

enum { CHAINS = 500, LAYERS_MOST = 10, DEVICES_MOST = 8 };

struct chain {
    struct planner_layer layers[LAYERS_MOST];
    size_t count;
    int devices;
    double bandwidth;
    int micro_batches;
};

static int random_below(uint64_t *seed, int limit)
{
    return (int)(next(seed) % (uint64_t)limit);
}

/* Most are short; one in 50 has all layers and devices. */
static struct chain random_chain(uint64_t *seed, int number)
{
    bool full = number % 50 == 0;
    struct chain chain = {.count = full ? LAYERS_MOST : 1 + (size_t)random_below(seed, 7)};

    chain.devices = full ? DEVICES_MOST : 1 + random_below(seed, 5);
    chain.bandwidth = 1 + random_below(seed, 20);
    chain.micro_batches = 8 + random_below(seed, 8);
    for (size_t i = 0; i < chain.count; i++) {
        chain.layers[i].seconds = 1 + random_below(seed, 9);
        chain.layers[i].weights = random_below(seed, 10);
        chain.layers[i].output = random_below(seed, 10);
    }
    return chain;
}

/* Visits all divisions of the layers from `begin` on into stages on all devices that are left. */
struct visitor {
    const struct chain *chain;
    double (*score)(const struct visitor *visitor, const struct planned *plan);
    const void *question;
    struct planned plan;
    double best;
};

static void visit(struct visitor *visitor, size_t begin, int devices)
{
    if (begin == visitor->chain->count) {
        if (devices == 0)
            visitor->best = fmin(visitor->best, visitor->score(visitor, &visitor->plan));
        return;
    }
    for (size_t end = begin + 1; end <= visitor->chain->count; end++)
        for (int data = 1; data <= devices; data++) {
            visitor->plan.stages[visitor->plan.count++] = (struct planned_stage){begin, end, data, 1, 0};
            visit(visitor, end, devices - data);
            visitor->plan.count--;
        }
}

static void expect_best(const struct chain *chain, double (*score)(const struct visitor *, const struct planned *),
                        const void *question, const struct planned *planned)
{
    struct visitor *visitor = xcalloc(1, sizeof *visitor);

    visitor->chain = chain;
    visitor->score = score;
    visitor->question = question;
    visitor->best = INFINITY;
    visit(visitor, 0, chain->devices);
    if (isfinite(visitor->best)) {
        expect_close(planned->objective, visitor->best);
        expect_close(score(visitor, planned), visitor->best);
    } else {
        assert_true(isinf(planned->objective));
    }
    free(visitor);
}

static double seconds_of(const struct chain *chain, const struct planned_stage *stage, double *weights)
{
    double seconds = 0;

    *weights = 0;
    for (size_t i = stage->begin; i < stage->end; i++) {
        seconds += chain->layers[i].seconds;
        *weights += chain->layers[i].weights;
    }
    return seconds;
}

static double pipedream_score(const struct visitor *visitor, const struct planned *plan)
{
    const struct pipedream *question = visitor->question;
    double most = 0, weights, bandwidth = visitor->chain->bandwidth;

    for (size_t i = 0; i < plan->count; i++) {
        const struct planned_stage *stage = &plan->stages[i];
        double seconds = seconds_of(visitor->chain, stage, &weights), m = stage->data;

        if (question->straight && stage->data > 1)
            return INFINITY;
        if (!question->paper) {
            most = fmax(most, (seconds + 4 * (m - 1) / m * weights / bandwidth) / m);
            continue;
        }
        most = fmax(most, fmax(seconds / m, 2 * (m - 1) / m * weights / bandwidth));
        if (stage->end < visitor->chain->count)
            most = fmax(most, 2 * visitor->chain->layers[stage->end - 1].output / bandwidth);
    }
    return most;
}

static void test_pipedream(void **state)
{
    uint64_t seed = 19;

    (void)state;
    for (int i = 0; i < CHAINS; i++) {
        struct chain chain = random_chain(&seed, i);
        const struct pipedream_level level = {chain.devices, chain.bandwidth};
        struct planned planned;

        for (int form = 0; form < 3; form++) {
            const struct pipedream question = {chain.layers, chain.count, &level, 1, form == 1, form == 2};

            pipedream_plan(&question, &planned);
            expect_best(&chain, pipedream_score, &question, &planned);
        }
    }
}

/* Alpa's question about a chain: stages behind one keep its micro-batches in memory. */
struct limited {
    const struct chain *chain;
    double memory;
};

static double alpa_cost(const void *context, const struct planned_stage *stage, int *behind)
{
    const struct limited *limited = context;
    double weights, seconds = seconds_of(limited->chain, stage, &weights);
    double held = (double)(stage->end - stage->begin) / stage->data;

    *behind = (int)fmin(LAYERS_MOST, floor((limited->memory - weights) / held)) - 1;
    return seconds / stage->data + weights * (stage->data - 1) / stage->data / limited->chain->bandwidth;
}

static double alpa_score(const struct visitor *visitor, const struct planned *plan)
{
    double sum = 0, most = 0;

    for (size_t i = 0; i < plan->count; i++) {
        int behind;
        double cost = alpa_cost(visitor->question, &plan->stages[i], &behind);

        if ((plan->stages[i].data & (plan->stages[i].data - 1)) || behind < (int)(plan->count - 1 - i))
            return INFINITY;
        sum += cost;
        most = fmax(most, cost);
    }
    return sum + (visitor->chain->micro_batches - 1) * most;
}

static void test_alpa(void **state)
{
    const struct planned_stage submeshes[] = {{0, 0, 1, 1, 0}, {0, 0, 2, 1, 0}, {0, 0, 4, 1, 0}, {0, 0, 8, 1, 0}};
    uint64_t seed = 22;

    (void)state;
    for (int i = 0; i < CHAINS; i++) {
        struct chain chain = random_chain(&seed, i);
        struct limited limited = {&chain, i % 2 ? 1e9 : 10 + random_below(&seed, 40)};
        struct planned planned;

        alpa_plan(&(struct alpa){chain.count, chain.devices, chain.micro_batches, submeshes, COUNT(submeshes),
                                 alpa_cost, &limited},
                  &planned);
        expect_best(&chain, alpa_score, &limited, &planned);
    }
}

static double dapple_visit(const struct visitor *visitor, const struct planned *plan)
{
    return dapple_score(visitor->question, plan);
}

/* The paper's search keeps one plan of the first layers alone, so it could miss the best one; here it never does. */
static void test_dapple(void **state)
{
    uint64_t seed = 21;
    int same = 0;

    (void)state;
    for (int i = 0; i < CHAINS; i++) {
        struct chain chain = random_chain(&seed, i);
        double exchange[DEVICES_MOST + 1];
        struct dapple question = {chain.layers,
                                  chain.count,
                                  chain.devices,
                                  chain.micro_batches,
                                  chain.bandwidth,
                                  exchange,
                                  1.0 / 3,
                                  false,
                                  0};
        struct visitor *visitor = xcalloc(1, sizeof *visitor);
        struct planned planned;

        for (int r = 0; r <= DEVICES_MOST; r++)
            exchange[r] = r <= 4 ? 8 : 2;
        dapple_plan(&question, &planned);
        expect_best(&chain, dapple_visit, &question, &planned);
        question.paper = true;
        dapple_plan(&question, &planned);
        visitor->chain = &chain;
        visitor->score = dapple_visit;
        visitor->question = &question;
        visitor->best = INFINITY;
        visit(visitor, 0, chain.devices);
        expect_close(dapple_score(&question, &planned), planned.objective);
        assert_true(planned.objective > visitor->best * (1 - 1e-9));
        same += planned.objective < visitor->best * (1 + 1e-9);
        free(visitor);
    }
    assert_int_equal(same, CHAINS);
}

/* Piper, on chains: every division, every degree, every set of recomputed layers. */
static double piper_stage_best(const struct piper *question, size_t begin, size_t end, size_t t, int data, int sum)
{
    int flying = (sum + data - 1) / data;
    double best = INFINITY;

    for (unsigned set = 0; set < 1u << (end - begin); set++) {
        double seconds = 0, memory = 0;

        for (size_t i = begin; i < end; i++) {
            const struct piper_option *option = &question->nodes[i].options[t][set >> (i - begin) & 1];
            double bytes = i == begin && begin > 0 ? 2 * question->edges[begin - 1].bytes : 0;

            bytes += i + 1 == end && end < question->nnodes ? 2 * question->edges[end - 1].bytes : 0;
            seconds += (option->seconds + bytes / question->bandwidth) / data;
            seconds += 4.0 * (data - 1) * option->weights / (data * question->micro_batches * question->bandwidth);
            memory += option->held * flying + option->fixed;
        }
        if (memory <= question->memory)
            best = fmin(best, seconds);
    }
    return best;
}

/* The layers up to `end` are divided from the last stage on; `sum` of the data degrees behind them. */
static double piper_best(const struct piper *question, size_t end, int devices, int sum)
{
    double best = INFINITY;

    if (end == 0)
        return 0;
    for (size_t begin = 0; begin < end; begin++)
        for (size_t t = 0; t < question->ntensors; t++)
            for (int d = 1; d * question->tensors[t] <= devices; d++) {
                double own;

                if (question->micro_batches % d || sum + d > question->micro_batches)
                    continue;
                own = piper_stage_best(question, begin, end, t, d, sum + d);
                if (own < best)
                    best = fmin(best,
                                fmax(own, piper_best(question, begin, devices - d * question->tensors[t], sum + d)));
            }
    return best;
}

static struct piper_node random_node(uint64_t *seed)
{
    double seconds = 1 + random_below(seed, 9);
    double weights = random_below(seed, 8);
    double held = 1 + random_below(seed, 5);
    struct piper_node node;

    for (int t = 0; t < 2; t++)
        for (int o = 0; o < 2; o++)
            node.options[t][o] = (struct piper_option){
                seconds / (t ? 1.7 : 1) * (o ? 1.3 : 1),
                weights / (t + 1),
                held / (t + 1) / (o ? 3 : 1),
                weights / 2,
            };
    return node;
}

static void test_piper(void **state)
{
    static const int tensors[] = {1, 2};
    uint64_t seed = 20;
    int same = 0, feasible = 0;

    (void)state;
    for (int i = 0; i < CHAINS; i++) {
        size_t count = i % 50 ? 1 + (size_t)random_below(&seed, 4) : 6;
        struct piper_node nodes[6];
        struct piper_edge edges[5];
        struct piper question = {.nodes = nodes,
                                 .edges = edges,
                                 .nnodes = count,
                                 .nedges = count - 1,
                                 .tensors = tensors,
                                 .ntensors = COUNT(tensors)};
        struct planned released, whole;
        double best;

        question.micro_batches = 4 + 2 * random_below(&seed, 4);
        question.devices = 1 + random_below(&seed, 6);
        question.bandwidth = 1 + random_below(&seed, 8);
        question.memory = 6 + random_below(&seed, 20);
        for (size_t n = 0; n < count; n++)
            nodes[n] = random_node(&seed);
        for (int e = 0; e + 1 < (int)count; e++)
            edges[e] = (struct piper_edge){e, e + 1, random_below(&seed, 6), 0, 0};
        best = piper_best(&question, count, question.devices, 0);
        piper_plan(&question, &released);
        question.memory = 1e9;               /* nothing is recomputed */
        piper_plan(&question, &whole);
        expect_close(whole.objective, piper_best(&question, count, question.devices, 0));
        if (isinf(best)) {
            assert_true(isinf(released.objective));
            continue;
        }
        assert_true(released.objective > best * (1 - 1e-9));
        same += released.objective < best * (1 + 1e-9);
        feasible++;
    }
    print_message("%d of %d are feasible; the released knapsack finds the best of %d\n", feasible, CHAINS, same);
    assert_true(feasible > CHAINS / 2 && same > feasible / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipedream),
        cmocka_unit_test(test_alpa),
        cmocka_unit_test(test_dapple),
        cmocka_unit_test(test_piper),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
