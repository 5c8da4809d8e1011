/* How long an iteration takes with more and more tensor parallelism: cc example.c $(pkg-config --cflags --libs dtsim) */
#include <dtsim.h>
#include <stdio.h>

static const char scenario[] = "model: {preset: gpt2-355m}\n"
                               "cluster: {platform: dgx-a100, nodes: 2}\n"
                               "batch: {global: 64, micro: 1}\n"
                               "strategy: {schedule: 1f1b, pipeline: 2}\n";

int main(void)
{
    struct dtsim *dtsim = dtsim_open(NULL);
    char change[40];

    for (int tensor = 1; tensor <= 16; tensor *= 2) {
        dtsim_scenario(dtsim, "example", scenario);
        snprintf(change, sizeof change, "strategy.tensor=%d", tensor);
        dtsim_set(dtsim, change);
        if (dtsim_simulate(dtsim, NULL) == DTSIM_OK)
            printf("tensor %d: %.3f s, bubble %.1f %%\n", tensor, dtsim_metric(dtsim, "iteration_time_s"),
                   100 * dtsim_metric(dtsim, "bubble_fraction"));
        else
            printf("tensor %d: %s", tensor, dtsim_errors(dtsim));
    }
    dtsim_close(dtsim);
    return 0;
}
