/* Small instances of each planner whose optimum was found by hand and by enumeration: what a paper's form and its
 * released program's form choose, which differ. */
#include "planners.h"

#include "planners/alpa.h"
#include "planners/mcmc.h"
#include "planners/two_bw.h"
#include "planners/varuna.h"

static const struct planner_layer four[] = {{4, 1, 8}, {2, 1, 4}, {2, 1, 2}, {8, 10, 1}};
static const struct planner_layer six[] = {{3, 2, 9}, {5, 2, 6}, {2, 2, 3}, {6, 4, 3}, {4, 4, 2}, {1, 20, 1}};

static void test_pipedream(void **state)
{
    const struct pipedream_level three = {3, 10}, four_machines = {4, 5};
    struct pipedream first = {.layers = four, .count = 4, .levels = &three, .nlevels = 1};
    struct pipedream second = {.layers = six, .count = 6, .levels = &four_machines, .nlevels = 1};
    struct planned planned;

    (void)state;
    pipedream_plan(&first, &planned);
    expect_plan(&planned, 6.1, "0-2 x 1, 2-4 x 2");
    pipedream_plan(&second, &planned);
    expect_plan(&planned, 6.2, "0-3 x 2, 3-4 x 1, 4-6 x 1");
    first.paper = second.paper = true;
    pipedream_plan(&first, &planned);
    expect_plan(&planned, 16.0 / 3, "0-4 x 3");
    pipedream_plan(&second, &planned);
    expect_plan(&planned, 16.0 / 3, "0-4 x 3, 4-6 x 1");
}

static void test_two_bw(void **state)
{
    const double depth[] = {0, 1, 1, 1, 1, 1, 1, 1, 1}, width[] = {0, 100, 100, 100, 100, 1, 1, 1, 1};
    const struct {
        int width, depth;
        double cost, memory;
    } table[] = {
        {1, 8, 1.8, 10.4},
        {2, 4, 1.0, 14.4},
        {4, 2, 1.0, 22.4},
        {8, 1, 7.0, 38.4},
    };
    struct two_bw question = {8, 8, 1, 0.5, 0.2, 0.9, 4, depth, width, INFINITY};
    struct planned planned;
    double memory;

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        expect_close(two_bw_cost(&question, table[i].width, table[i].depth, &memory), table[i].cost);
        expect_close(memory, table[i].memory);
    }
    two_bw_plan(&question, &planned);
    expect_plan(&planned, 1.0, "0-2 x 2, 2-4 x 2, 4-6 x 2, 6-8 x 2");
    question.memory = 12;
    two_bw_plan(&question, &planned);
    assert_int_equal(planned.count, 8);
    expect_close(planned.objective, 1.8);
}

/* A layer without recomputation, and with it, on one device; on two it computes 0.55 or 0.6 times as long and holds
 * half. Recomputing takes 1.3 times as long and leaves a quarter. */
static struct piper_node piper_layer(double seconds, double halved, double weights, double held, double fixed)
{
    struct piper_node node;

    for (int t = 0; t < 2; t++)
        for (int o = 0; o < 2; o++)
            node.options[t][o] = (struct piper_option){
                (t ? halved : seconds) * (o ? 1.3 : 1),
                weights / (t + 1),
                held / (t + 1) / (o ? 4 : 1),
                fixed / (t + 1),
            };
    return node;
}

static void test_piper(void **state)
{
    const struct piper_node first[] = {
        piper_layer(4, 2.2, 6, 2, 3),
        piper_layer(4, 2.2, 6, 2, 3),
        piper_layer(10, 5.2, 12, 2, 6),
    };
    const struct piper_node second[] = {
        piper_layer(2, 1.3, 1, 4, 1),
        piper_layer(3, 1.8, 1, 4, 1),
        piper_layer(3, 1.8, 1, 4, 1),
        piper_layer(2, 1.3, 6, 1, 3),
    };
    const struct piper_edge edges[] = {{0, 1, 1, 0, 0}, {1, 2, 1, 0, 0}, {2, 3, 1, 0, 0}};
    const int tensors[] = {1, 2};
    struct planned planned;

    (void)state;
    struct piper question = {first, edges, 3, 2, tensors, 2, 8, 6, 4, 9, 0, 0};

    piper_plan(&question, &planned);
    expect_plan(&planned, 4.5125, "0-1 x 1, 1-3 x 2 on 2");
    question = (struct piper){second, edges, 4, 3, tensors, 2, 6, 6, 2, 9, 0, 0};
    piper_plan(&question, &planned);
    expect_plan(&planned, 3.0, "0-2 x 3, 2-3 x 2, 3-4 x 1");
    assert_int_equal(planned.stages[0].recomputed, 2);
    assert_int_equal(planned.stages[1].recomputed, 0);
}

struct shared {
    const double *seconds;
    double exchange;
};

static double alpa_cost(const void *context, const struct planned_stage *stage, int *behind)
{
    const struct shared *shared = context;
    double sum = 0;

    (void)behind;
    for (size_t i = stage->begin; i < stage->end; i++)
        sum += shared->seconds[i] / stage->data + shared->exchange * (stage->data - 1) / stage->data;
    return sum;
}

static void test_alpa(void **state)
{
    const double first[] = {4, 2, 2, 8}, second[] = {3, 5, 2, 6, 4};
    const struct planned_stage submeshes[] = {{0, 0, 1, 1, 0}, {0, 0, 2, 1, 0}, {0, 0, 4, 1, 0}, {0, 0, 8, 1, 0}};
    const struct shared shared[] = {{first, 1.2}, {second, 0.5}};
    struct planned planned;

    (void)state;
    alpa_plan(&(struct alpa){4, 4, 8, submeshes, 3, alpa_cost, &shared[0]}, &planned);
    expect_plan(&planned, 44.8, "0-1 x 1, 1-3 x 1, 3-4 x 2");
    alpa_plan(&(struct alpa){5, 8, 4, submeshes, 4, alpa_cost, &shared[1]}, &planned);
    expect_plan(&planned, 17.75, "0-3 x 4, 3-5 x 4");
}

static void test_dapple(void **state)
{
    const struct planner_layer first[] = {{6, 1, 0.3}, {6, 1, 0.3}, {3, 4, 0.3}, {3, 40, 0}};
    const struct planner_layer second[] = {{3, 1, 0.8}, {6, 1, 0.2}, {6, 2, 0.8}, {3, 8, 0.2}, {3, 60, 0}};
    const double exchange[] = {0, 0, 2, 2, 2};
    struct dapple one = {first, 4, 3, 6, 4, exchange, 1.0 / 3, false, 0};
    struct dapple two = {second, 5, 4, 8, 4, exchange, 1.0 / 3, false, 0};
    struct planned planned;

    (void)state;
    dapple_plan(&one, &planned);
    expect_plan(&planned, 48.3, "0-1 x 1, 1-2 x 1, 2-4 x 1");
    dapple_plan(&two, &planned);
    expect_plan(&planned, 63.8, "0-1 x 1, 1-3 x 2, 3-5 x 1");
    one.paper = two.paper = true;
    dapple_plan(&one, &planned);
    expect_plan(&planned, 43.15, "0-2 x 2, 2-4 x 1");
    dapple_plan(&two, &planned);
    expect_plan(&planned, 56.0, "0-4 x 3, 4-5 x 1");
}

static bool varuna_fits(const void *context, const struct varuna_choice *choice)
{
    const int *cuts = context;

    return (3 + choice->micro) * (*cuts / choice->depth) <= 40;
}

static double varuna_seconds(const void *context, const struct varuna_choice *choice)
{
    const int *cuts = context;
    int own = *cuts / choice->depth;

    return (choice->micro_batches + choice->depth - 1) * own * (0.2 + choice->micro) +
           2.0 * (choice->data - 1) / choice->data * own * 3;
}

static void test_varuna(void **state)
{
    const int cuts = 12;
    struct varuna question = {cuts, 12, 96, varuna_fits, varuna_seconds, &cuts};
    struct varuna_choice choice = varuna_plan(&question);

    (void)state;
    expect_close(choice.seconds, 148.8);
    assert_true(choice.depth == 2 && choice.data == 6 && choice.micro == 2 && choice.micro_batches == 8);
    question.gpus = 10;
    choice = varuna_plan(&question);
    expect_close(choice.seconds, 174.0);
    assert_true(choice.depth == 2 && choice.data == 5 && choice.micro == 2 && choice.micro_batches == 10);
}

/* Operators on 1, 2 or 4 devices: each computes a share and exchanges with the others; neighbours of unequal degrees
 * move what is between them. */
struct operators {
    size_t count;
    const double *seconds, *exchange;
    double change;
};
enum { DEGREES = 3 };
static const int degrees[DEGREES] = {1, 2, 4};

static double operators_cost(const void *context, const int *state)
{
    const struct operators *operators = context;
    double sum = 0;

    for (size_t i = 0; i < operators->count; i++) {
        int degree = degrees[state[i]];

        sum += operators->seconds[i] / degree + operators->exchange[i] * (degree - 1);
        sum += i && state[i] != state[i - 1] ? operators->change : 0;
    }
    return sum;
}

/* Of 10 seeds, how many find the optimum from all operators on 4 devices. */
static int found(const struct operators *operators, long budget, double optimum)
{
    int hits = 0;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        int configurations[8], chosen[8];
        struct mcmc chain = {.operators = operators->count,
                             .configurations = configurations,
                             .cost = operators_cost,
                             .context = operators,
                             .alpha = 1.2,
                             .budget = budget,
                             .seed = seed};
        double cost;

        for (size_t i = 0; i < operators->count; i++) {
            configurations[i] = DEGREES;
            chosen[i] = DEGREES - 1;
        }
        cost = mcmc_search(&chain, chosen);
        expect_close(cost, operators_cost(operators, chosen));
        assert_true(cost > optimum - 1e-9);
        hits += cost < optimum + 1e-9;
    }
    return hits;
}

static void test_mcmc(void **state)
{
    const double seconds[] = {8, 2, 6, 4, 8, 2, 5, 5}, first[] = {0.1, 3, 0.2, 2, 0.1, 3};
    const double second[] = {0.1, 2, 2, 2, 0.1, 2, 1, 0.3};

    (void)state;
    assert_true(found(&(struct operators){6, seconds, first, 0.7}, 600, 18.2) >= 9);
    assert_true(found(&(struct operators){8, seconds, second, 1.1}, 3000, 28.8) >= 9);
}

enum { STATES = DEGREES * DEGREES * DEGREES, EVERY = 40, SEEN = 20000 };
struct histogram {
    long steps, counts[STATES];
};

static void count_state(void *visitor, const int *state)
{
    struct histogram *histogram = visitor;

    if (histogram->steps++ % EVERY == 0)
        histogram->counts[state[0] + DEGREES * state[1] + DEGREES * DEGREES * state[2]]++;
}

/* A chain that is left alone is in each state as often as exp(-alpha cost) says: chi-square over 27 states, of steps so
 * far from each other that they hardly depend on each other. 26 degrees of freedom: above 54 in one case of 1,000. */
static void test_histogram(void **state)
{
    const double seconds[] = {1.6, 0.4, 1.2}, exchange[] = {0.1, 0.3, 0.2};
    const struct operators operators = {3, seconds, exchange, 0.2};
    struct histogram histogram = {0};
    int start[] = {0, 0, 0}, configurations[] = {DEGREES, DEGREES, DEGREES};
    struct mcmc chain = {.operators = 3,
                         .configurations = configurations,
                         .cost = operators_cost,
                         .context = &operators,
                         .alpha = 1.2,
                         .budget = (long)EVERY * SEEN - 1,
                         .seed = 5,
                         .stays = true,
                         .visit = count_state,
                         .visitor = &histogram};
    double weights[STATES], sum = 0, chi = 0;

    (void)state;
    mcmc_search(&chain, start);
    for (int i = 0; i < STATES; i++) {
        const int one[] = {i % DEGREES, i / DEGREES % DEGREES, i / DEGREES / DEGREES};

        weights[i] = exp(-chain.alpha * operators_cost(&operators, one));
        sum += weights[i];
    }
    for (int i = 0; i < STATES; i++) {
        double expected = SEEN * weights[i] / sum, off = (double)histogram.counts[i] - expected;

        chi += off * off / expected;
    }
    print_message("chi-square %.1f\n", chi);
    assert_true(chi < 54);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipedream), cmocka_unit_test(test_two_bw),    cmocka_unit_test(test_piper),
        cmocka_unit_test(test_alpa),      cmocka_unit_test(test_dapple),    cmocka_unit_test(test_varuna),
        cmocka_unit_test(test_mcmc),      cmocka_unit_test(test_histogram),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
