/* The bound of a workload, which a plan prunes by: no engine gives a shorter iteration, on random scenarios of all kinds
 * and on networks that take no time. And it is no empty promise: on such networks it is near the iteration. */
#include "plan/bound.h"
#include "random_scenario.h"
#include "simulated.h"

enum { SCENARIOS = 800 };

struct seen { int bounded, near; };

static void look(struct seen *seen, const char *text, enum engine engine, bool free_network)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    struct scenario scenario = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct simulate_options options;
    struct measure measure;
    double bound;

    if (!conf_parse(&arena, "random", text, strlen(text), &root, &err) &&
        !scenario_read(&arena, root, NULL, 0, "random", &scenario, &err) && !workload_init(&workload, &scenario, &err)) {
        options = simulate_numbers_of(&scenario);
        options.engine = engine;
        options.free_network = free_network;
        measure_init(&measure, engine, &scenario.cluster);
        bound = workload_bound(&workload, free_network ? NULL : &measure);
        measure_release(&measure);
        if (!simulate(&workload, options, &run, &err) && bound > 0) {
            double time = run.metrics.iteration_time;

            if (bound > time * (1 + 1e-9))
                fail_msg("the bound is %.12g s, the iteration takes %.12g s on %s%s:\n%s", bound, time,
                         engine_names[engine], free_network ? " and a free network" : "", text);
            seen->bounded++;
            seen->near += bound > 0.9 * time;
        }
    }
    run_release(&run);
    workload_release(&workload);
    scenario_release(&scenario);
    arena_release(&arena);
    error_release(&err);
}

static void bounds_hold(void **state)
{
    struct seen real = {0}, free_network = {0};
    uint64_t seed = 33;

    (void)state;
    for (int i = 0; i < SCENARIOS; i++) {
        char *text = random_scenario(1, &seed);

        look(&real, text, i % 8 ? ENGINE_FAST : ENGINE_IDEAL, false);
        look(&free_network, text, ENGINE_IDEAL, true);
        free(text);
    }
    print_message("%d bounds, %d of them within a tenth; on a free network %d, %d\n", real.bounded, real.near,
                  free_network.bounded, free_network.near);
    assert_true(real.bounded > SCENARIOS / 4);
    assert_true(free_network.near > free_network.bounded / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
