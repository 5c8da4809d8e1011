#include "run/certainty.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

/* Share by which NICs may differ and count as the same: the evidence has whole Mb/s. */
static const double NIC_ROUNDED = 1e-3;

static double measured_share(const struct cost_bases *bases)
{
    double measured = 0, all = 0;

    for (enum kernel_kind kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        for (enum cost_basis basis = 0; basis < BASIS_COUNT; basis++) {
            all += bases->seconds[kind][basis];
            measured += basis == BASIS_MEASURED ? bases->seconds[kind][basis] : 0;
        }
    return all > 0 ? measured / all : 0;
}

/* The model's title, or what a person would call it by; a title is a user's text, and errors.tsv a file of one line a row. */
static void name_model(const struct model *model, char *text, size_t size)
{
    const struct transformer *shape = model->transformer;

    if (model->title)
        snprintf(text, size, "%s", model->title);
    else if (shape)
        snprintf(text, size, "%d blocks of %d", shape->layers, shape->hidden);
    else
        snprintf(text, size, "given");
    for (; *text; text++)
        *text = (unsigned char)*text < ' ' ? ' ' : *text;
}

struct likeness likeness_of(const struct scenario *scenario, const struct metrics *metrics)
{
    bool timed = model_is_timed(&scenario->model), calibrated = scenario->costs.gpu == COST_CALIBRATED;
    const char *software = scenario->software.like, *family = scenario->software.names.family;
    const struct transformer *shape = scenario->model.transformer;
    struct likeness likeness = {
        .gpus = scenario_gpus(scenario), .measured = measured_share(&metrics->bases),
        .exposed = metrics->iteration_time > 0 ? metrics->exposed_communication / metrics->iteration_time : 0,
    };

    if (shape) {
        likeness.experts = shape->experts;
        likeness.sequence = shape->sequence;
        likeness.tokens = fmax(1, round(1.0 * scenario->batch.micro * shape->sequence / scenario->parallelism.context));
    }
    name_model(&scenario->model, likeness.model, sizeof likeness.model);
    snprintf(likeness.schedule, sizeof likeness.schedule, "%s", scenario_schedule(scenario)->name);
    if (!scenario->cluster.ideal && scenario_gpus(scenario) > cluster_node_gpus(&scenario->cluster, 0))
        likeness.nic = cluster_nic_rate(&scenario->cluster, 0);
    snprintf(likeness.software, sizeof likeness.software, "%s", software ? software : "none");
    snprintf(likeness.family, sizeof likeness.family, "%s", family ? family : "none");
    snprintf(likeness.costs, sizeof likeness.costs, "%s",
             timed ? "given" : calibrated ? scenario->costs.profile : "roofline");
    snprintf(likeness.format, sizeof likeness.format, "%s",
             timed ? "given" : dtype_names[precision_products(&scenario->memory.precision)]);
    return likeness;
}

bool likeness_exists(const struct scenario *scenario)
{
    return !scenario->cluster.ideal;
}

/* What a profile's error on its kernels is of an iteration; of those that it has no record of nothing is stated. */
static double stated_error(const struct metrics *metrics, const struct costs_spec *costs)
{
    double seconds = 0;
    bool stated = false;

    for (enum kernel_kind kind = 0; costs->loaded && kind < KERNEL_KIND_COUNT; kind++) {
        double error = profile_error(costs->loaded, kind);

        for (int basis = 0; basis < BASIS_DATA_SHEET && !isnan(error); basis++) {
            stated |= metrics->bases.seconds[kind][basis] > 0;
            seconds += error * metrics->bases.seconds[kind][basis];
        }
    }
    return stated ? seconds / metrics->iteration_time : NAN;
}

/* What the times of kernels stand on; NULL: most of them on measured ones. */
static const char *unlike_costs(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics)
{
    const struct costs_spec *costs = &scenario->costs;
    const char *title = cluster_sheet(&scenario->cluster, 0)->title;
    double sheet = 0, all = 0;

    if (model_is_timed(&scenario->model))
        return "its kernel times are given";
    if (costs->gpu == COST_ROOFLINE)
        return arena_printf(arena, "its kernel times come from the data sheet of %s, not from measured kernels", title);
    if (costs->loaded && costs->loaded->changed)
        return arena_printf(arena, "the data sheet of %s is changed", title);
    for (enum kernel_kind kind = 0; metrics && kind < KERNEL_KIND_COUNT; kind++)
        for (enum cost_basis basis = 0; basis < BASIS_COUNT; basis++) {
            all += metrics->bases.seconds[kind][basis];
            sheet += basis == BASIS_DATA_SHEET ? metrics->bases.seconds[kind][basis] : 0;
        }
    return sheet <= all / 2 ? NULL :
           arena_printf(arena, "most of its kernel times come from the data sheet of %s", title);
}

/* What its network has that no published run's has, or NULL. */
static const char *unlike_network(struct arena *arena, const struct scenario *scenario)
{
    const struct evidence *evidence = scenario->evidence;
    double nic = cluster_nic_rate(&scenario->cluster, 0);
    bool slower;
    char own[32], other[32];

    if (scenario->cluster.ideal)
        return "its network takes no time";
    if (!evidence || evidence->slowest_nic == 0 || scenario_gpus(scenario) <= cluster_node_gpus(&scenario->cluster, 0))
        return NULL;
    slower = nic < evidence->slowest_nic * (1 - NIC_ROUNDED);
    if (!slower && nic <= evidence->fastest_nic * (1 + NIC_ROUNDED))
        return NULL;
    return arena_printf(arena, "its NICs have %s, and those of published runs at %s %s",
                        unit_format_short(UNIT_BANDWIDTH, nic, own, sizeof own), slower ? "least" : "most",
                        unit_format_short(UNIT_BANDWIDTH, slower ? evidence->slowest_nic : evidence->fastest_nic, other,
                                          sizeof other));
}

const char *certainty_nearest(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics)
{
    struct likeness likeness = likeness_of(scenario, metrics);

    return evidence_nearest(arena, scenario->evidence, &likeness);
}

/* certainty_unlike's sentence without the nearest run. */
static const char *reasons_unlike(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics)
{
    unsigned uneven = scenario_uneven(scenario);
    const char *const reasons[] = {
        unlike_costs(arena, scenario, metrics),
        scenario->costs.speed == 1 ? NULL : arena_printf(arena, "costs.speed is %g", scenario->costs.speed),
        unlike_network(arena, scenario),
        uneven & UNEVEN_GPUS ? "some of its GPUs are slower (stragglers)" : NULL,
        uneven & UNEVEN_LINKS ? "some of its NICs are slower (slow_links)" : NULL,
        scenario->simulation.jitter > 0 ? "its kernels vary at random (jitter)" : NULL,
    };
    const char *text = NULL;

    for (size_t i = 0; i < COUNT(reasons); i++)
        if (reasons[i])
            text = arena_printf(arena, "%s%s", text ? arena_printf(arena, "%s; ", text)
                                                    : "no published run is like this: ", reasons[i]);
    return text;
}

/* To given times no published run is nearest. */
const char *certainty_unlike(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics)
{
    const char *text = reasons_unlike(arena, scenario, metrics), *nearest;

    if (!text || !metrics || model_is_timed(&scenario->model))
        return text;
    nearest = certainty_nearest(arena, scenario, metrics);
    return nearest ? arena_printf(arena, "%s; %s", text, nearest) : text;
}

struct expectation certainty_expect(const struct scenario *scenario, const struct metrics *metrics)
{
    struct likeness likeness = likeness_of(scenario, metrics);
    struct arena arena = {0};
    bool unlike = reasons_unlike(&arena, scenario, metrics) != NULL;

    arena_release(&arena);
    return unlike ? (struct expectation){NAN, NAN, NAN} : evidence_expect(scenario->evidence, &likeness, NULL);
}

void certainty_state(struct metrics *metrics, const struct scenario *scenario)
{
    struct expectation expectation = certainty_expect(scenario, metrics);

    metrics->stated_error = stated_error(metrics, &scenario->costs);
    metrics->expected_error = expectation.error;
    metrics->expected_longer = expectation.longer;
}
