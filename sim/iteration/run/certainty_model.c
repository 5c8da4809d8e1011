/* certainty_model: what a model has of which nobody published a run, or whose kernels nobody measured. */
#include "run/certainty.h"

#include "base/base.h"
#include "kernels/cost.h"
#include "model/model.h"
#include "scenario/scenario.h"

/* How many times longer kernels of mixers may take, which nobody has measured: one kernel in the place of Mamba-2's five, which
 * latency and bytes bound, is 1.5 to 2.5 times as fast (PyTorch blog of February 2026, "Accelerating Mamba2 with Kernel Fusion",
 * A100 and H100): about twice as long, and nearly all within twice that much. */
static const double MIXER_UNSURE = 1;

/* How far off models are of which no run is published here: predictions of ViT's times that others published are 8 to 55 % too
 * short. */
static const double MODEL_UNSURE = 0.3;

/* Of the time of all kernels. */
static double mixers_share(const struct metrics *metrics)
{
    return metrics->bases.unmeasured > 0 ? metrics->bases.unmeasured / cost_bases_total(&metrics->bases) : 0;
}

/* What no published run's model has; NULL: nothing. */
static const char *unpublished(const struct scenario *scenario)
{
    const struct transformer *shape = scenario->model.transformer;

    return shape && shape->vision ? "images" : shape && shape->encoder && shape->encoder->mels ? "sounds" : NULL;
}

const char *certainty_model(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics)
{
    double share = mixers_share(metrics);
    const char *what = unpublished(scenario);

    return what      ? arena_printf(arena, "no published run here is of a model of %s", what) :
           share > 0 ? arena_printf(arena, "%.2g %% of its kernels' time is of recurrences and convolutions that nobody "
                                    "has measured", 100 * share) :
                       NULL;
}

double certainty_model_unsure(const struct scenario *scenario, const struct metrics *metrics)
{
    return MIXER_UNSURE * mixers_share(metrics) + (unpublished(scenario) ? MODEL_UNSURE : 0);
}
