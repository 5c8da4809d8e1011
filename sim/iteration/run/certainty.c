#include "run/certainty.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "evidence/evidence.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "kernels/profile.h"
#include "layout/layout.h"
#include "model/model.h"
#include "scenario/scenario.h"

/* How far off the time of a transfer is on a link whose rates are estimates, or that is unlike all of published runs: of the
 * collectives on such links that are published (EFA, RoCE, Slingshot: scenarios/paper/collectives) 6 of 10 are within this,
 * and all within twice as much. */
static const double LINK_UNSURE = 0.35;

/* How many times longer attention may take whose fused kernels do not run on the GPU: they are 2 to 4 times as fast as
 * attention that is written out (Dao et al. 2022, "FlashAttention", arXiv 2205.14135). */
static const double ATTENTION_UNSURE = 2;

/* Share by which NICs may differ and count as the same: the evidence has whole Mb/s. */
static const double NIC_ROUNDED = 1e-3;

static double measured_share(const struct cost_bases *bases)
{
    double measured = 0, all = cost_bases_total(bases);

    for (enum kernel_kind kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        measured += bases->seconds[kind][BASIS_MEASURED];
    return all > 0 ? measured / all : 0;
}

/* A title is a user's text, and errors.tsv a file of one line a row. */
void certainty_name_model(const struct model *model, char *text, size_t size)
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

/* B/s of the slowest NIC of the kinds of node on which the scenario runs. */
static double slowest_nic(const struct scenario *scenario)
{
    const struct cluster *cluster = &scenario->cluster;
    double slowest = INFINITY;

    for (int kind = 0; kind < cluster_kinds(cluster); kind++)
        if (layout_kind_seats(&scenario->layout, kind) > 0)
            slowest = fmin(slowest, cluster_nic_rate(cluster, cluster_kind_node(cluster, kind)));
    return slowest;
}

/* What kernel times of a kind of GPU stand on. */
enum basis { ON_PROFILE, ON_SCALED, ON_SHEET, MOSTLY_ON_SHEET };
static enum basis basis_of_kind(const struct scenario *scenario, int kind_of_node, const struct metrics *metrics)
{
    const struct kernel_costs *costs = &scenario->kernels[kind_of_node];
    double sheet = 0, all = 0;

    if (costs->model.source == COST_ROOFLINE)
        return ON_SHEET;
    if (costs->model.profile && costs->model.profile->changed)
        return ON_SCALED;
    for (enum kernel_kind kind = 0; metrics && kind < KERNEL_KIND_COUNT; kind++)
        for (enum cost_basis basis = 0; basis < BASIS_COUNT; basis++) {
            all += metrics->bases.seconds[kind][basis];
            sheet += basis == BASIS_DATA_SHEET ? metrics->bases.seconds[kind][basis] : 0;
        }
    return sheet > all / 2 ? MOSTLY_ON_SHEET : ON_PROFILE;
}

/* Whether a GPU that it runs on has kernels that nobody measured. Scaled times are no surer than times from a data
 * sheet. Published runs on nodes of several kinds stand on a data sheet too, and none has unequal degrees. */
static bool on_sheets(const struct scenario *scenario, const struct metrics *metrics)
{
    bool sheets = scenario->layout.mixed || scenario->views;

    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++)
        sheets |= layout_kind_seats(&scenario->layout, kind) > 0 && basis_of_kind(scenario, kind, metrics) != ON_PROFILE;
    return sheets;
}

static double exposed_share(const struct metrics *metrics)
{
    return metrics->iteration_time > 0 ? metrics->exposed_communication / metrics->iteration_time : 0;
}

struct likeness likeness_of(const struct scenario *scenario, const struct metrics *metrics)
{
    static const char *const dispatches[] = ENUM_NAMES(TOKEN_DISPATCHERS), *const optimizer_names[] = ENUM_NAMES(OPTIMIZERS);
    const struct kernel_costs *costs = scenario_first_costs(scenario);
    bool timed = model_is_timed(&scenario->model);
    const struct software_names *names = &scenario->software.names;
    const struct lora *lora = scenario->memory.lora;
    const char *software = scenario->software.like;
    struct arena arena = {0};
    const char *gpu = scenario_gpu_names(&arena, scenario, -1);
    const struct transformer *shape = scenario->model.transformer;
    struct likeness likeness = {
        .gpus = scenario_gpus(scenario), .measured = measured_share(&metrics->bases),
        .exposed = exposed_share(metrics),
    };

    if (shape) {
        likeness.experts = shape->experts;
        likeness.sequence = shape->sequence + (shape->encoder ? shape->encoder->sequence : 0);
        likeness.tokens = fmax(1, round(scenario->batch.micro * likeness.sequence / scenario->parallelism.context));
    }
    if (likeness.experts > 0)
        snprintf(likeness.dispatch, sizeof likeness.dispatch, "%s", dispatches[scenario->parallelism.dispatcher]);
    certainty_name_model(&scenario->model, likeness.model, sizeof likeness.model);
    snprintf(likeness.gpu, sizeof likeness.gpu, "%s", gpu ? gpu : "");
    arena_release(&arena);
    snprintf(likeness.schedule, sizeof likeness.schedule, "%s", scenario_schedule(scenario)->name);
    if (!scenario->cluster.ideal && scenario_spans_nodes(scenario))
        likeness.nic = slowest_nic(scenario);
    snprintf(likeness.software, sizeof likeness.software, "%s", software ? software : "none");
    snprintf(likeness.family, sizeof likeness.family, "%s", names->family ? names->family : "none");
    snprintf(likeness.runtime, sizeof likeness.runtime, "%s", names->runtime ? names->runtime : "none");
    snprintf(likeness.costs, sizeof likeness.costs, "%s",
             timed ? "given" : on_sheets(scenario, metrics) ? "roofline" : costs->profile);
    snprintf(likeness.format, sizeof likeness.format, "%s",
             timed ? "given" : dtype_names[precision_products(&scenario->memory.precision)]);
    snprintf(likeness.adapters, sizeof likeness.adapters, "%s",
             !lora ? "" : lora->weights != LORA_WEIGHTS_FULL ? "nf4" : "lora");
    snprintf(likeness.states, sizeof likeness.states, "%s", optimizer_names[scenario->memory.precision.optimizer]);
    snprintf(likeness.optimizer, sizeof likeness.optimizer, "%s",
             scenario->memory.precision.optimizer == OPTIMIZER_MUON ? "muon" : "");
    return likeness;
}

bool likeness_exists(const struct scenario *scenario)
{
    return !scenario->cluster.ideal;
}

/* What a profile's error on its kernels is of an iteration; of those that it has no record of nothing is stated. */
static double stated_error(const struct metrics *metrics, const struct kernel_costs *costs)
{
    double seconds = 0;
    bool stated = false;

    for (enum kernel_kind kind = 0; costs->model.profile && kind < KERNEL_KIND_COUNT; kind++) {
        double error = profile_error(costs->model.profile, kind);

        for (int basis = 0; basis < BASIS_DATA_SHEET && !isnan(error); basis++) {
            stated |= metrics->bases.seconds[kind][basis] > 0;
            seconds += error * metrics->bases.seconds[kind][basis];
        }
    }
    return stated ? seconds / metrics->iteration_time : NAN;
}

const char *certainty_sheets(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics)
{
    for (int kind = 0; !model_is_timed(&scenario->model) && kind < cluster_kinds(&scenario->cluster); kind++) {
        int gpu = cluster_kind_gpu(&scenario->cluster, kind);
        const char *title = cluster_sheet(&scenario->cluster, gpu)->title;
        const char *changes = gpu_changes(arena, cluster_gpu_spec(&scenario->cluster, gpu));

        if (layout_kind_seats(&scenario->layout, kind) == 0)
            continue;
        switch (basis_of_kind(scenario, kind, metrics)) {
        case ON_PROFILE:
            break;
        case ON_SCALED:
            return arena_printf(arena, "kernels of %s%s%s were not measured: those of %s are scaled by the data sheets", title,
                                *changes ? " with " : "", changes, scenario->kernels[kind].profile);
        case ON_SHEET:
            return arena_printf(arena, "its kernel times come from the data sheet of %s, not from measured kernels", title);
        case MOSTLY_ON_SHEET:
            return arena_printf(arena, "most of its kernel times come from the data sheet of %s", title);
        }
    }
    return scenario->layout.mixed ? "its nodes are of several kinds; few published runs have such nodes" :
           scenario->views        ? "its pipeline ranks have unequal degrees; no published run has that" : NULL;
}

const char *certainty_attention(struct arena *arena, const struct scenario *scenario)
{
    const struct transformer *shape = scenario->model.transformer;

    for (int kind = 0; shape && shape->ways.flash_attention && kind < cluster_kinds(&scenario->cluster); kind++) {
        const struct gpu *gpu = cluster_sheet(&scenario->cluster, cluster_kind_gpu(&scenario->cluster, kind));
        enum attention_generation called = scenario->kernels[kind].model.attention;
        double needed = attention_capability(called);

        if (layout_kind_seats(&scenario->layout, kind) > 0 && gpu->compute_capability > 0 && gpu->compute_capability < needed)
            return arena_printf(arena, "%s need compute capability %.1f or more, and %s has %.1f",
                                called == ATTENTION_FLASH_1 ? "FlashAttention's kernels" :
                                                              "FlashAttention-2 and cuDNN's fused attention",
                                needed, gpu->title, gpu->compute_capability);
    }
    return NULL;
}

const char *certainty_links(struct arena *arena, const struct scenario *scenario)
{
    const struct evidence *evidence = scenario->evidence;
    const char *estimates = scenario_gpus(scenario) == 1 ? NULL :
                            cluster_estimates(arena, &scenario->cluster, scenario_spans_nodes(scenario));
    double nic = slowest_nic(scenario);
    bool slower;
    char own[32], other[32];

    if (estimates)
        return arena_printf(arena, "rates of its links are estimates (%s)", estimates);
    if (!evidence || evidence->slowest_nic == 0 || scenario->cluster.ideal || !scenario_spans_nodes(scenario))
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
static const char *reasons_unlike(struct arena *arena, const struct scenario *scenario)
{
    const char *const reasons[] = {
        model_is_timed(&scenario->model) ? "its kernel times are given" : NULL,
        scenario->costs.speed == 1 ? NULL : arena_printf(arena, "costs.speed is %g", scenario->costs.speed),
        scenario->cluster.ideal ? "its network takes no time" : NULL,
        scenario->cluster.gpu_slower && scenario->uneven & UNEVEN_GPUS ?
            scenario->simulation.stragglers.count ? "some of its GPUs are slower (stragglers)" :
                                                    "some of its GPUs are slower (a part's 'slower')" : NULL,
        scenario->cluster.nic_shares && scenario->uneven & UNEVEN_LINKS ?
            "some of its NICs are slower (slow_links)" : NULL,
        scenario->simulation.jitter > 0 ? "its kernels vary at random (jitter)" : NULL,
    };
    const char *text = NULL;

    for (size_t i = 0; i < COUNT(reasons); i++)
        if (reasons[i])
            text = arena_printf(arena, "%s%s", text ? arena_printf(arena, "%s; ", text)
                                                    : "no published run is like this: ", reasons[i]);
    return text;
}

/* The nearest published run; there is none where times are given. */
const char *certainty_unlike(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics)
{
    const char *text = reasons_unlike(arena, scenario), *nearest;

    if (!text || !metrics || model_is_timed(&scenario->model))
        return text;
    nearest = certainty_nearest(arena, scenario, metrics);
    return nearest ? arena_printf(arena, "%s; %s", text, nearest) : text;
}

static bool is_unlike(const struct scenario *scenario)
{
    struct arena arena = {0};
    bool unlike = reasons_unlike(&arena, scenario) != NULL;

    arena_release(&arena);
    return unlike;
}

/* No profile has memory-efficient attention: its times are of other kernels, or of the GPU's products. */
static bool attention_unmeasured(const struct scenario *scenario)
{
    const struct transformer *shape = scenario->model.transformer;

    for (int kind = 0; shape && shape->ways.flash_attention && kind < cluster_kinds(&scenario->cluster); kind++)
        if (layout_kind_seats(&scenario->layout, kind) > 0 && scenario->kernels[kind].model.attention == ATTENTION_EFFICIENT)
            return true;
    return false;
}

double certainty_unsure(const struct scenario *scenario, const struct metrics *metrics)
{
    bool unmeasured = attention_unmeasured(scenario);
    struct arena arena = {0};
    double attention = cost_bases_of(&metrics->bases, KERNEL_ATTENTION), all = cost_bases_total(&metrics->bases);
    double unsure = certainty_links(&arena, scenario) ? LINK_UNSURE * exposed_share(metrics) : 0;

    unsure += certainty_model_unsure(scenario, metrics);
    unmeasured |= certainty_attention(&arena, scenario) != NULL;
    unsure += all > 0 && unmeasured ? ATTENTION_UNSURE * attention / all : 0;
    arena_release(&arena);
    return unsure;
}

static struct expectation expect(const struct scenario *scenario, const struct metrics *metrics)
{
    struct likeness likeness = likeness_of(scenario, metrics);
    struct expectation expectation;

    if (is_unlike(scenario))
        return (struct expectation){NAN, NAN, NAN};
    expectation = evidence_expect(scenario->evidence, &likeness, NULL);
    expectation.error += certainty_unsure(scenario, metrics);
    return expectation;
}

struct ratio_expectation certainty_ratio(const struct scenario *scenario, const struct metrics *metrics)
{
    struct likeness likeness = likeness_of(scenario, metrics);
    struct ratio_expectation ratio;
    double unsure;

    if (is_unlike(scenario))
        return (struct ratio_expectation){NAN, NAN};
    ratio = evidence_recall_ratio(scenario->arena.cache, scenario->evidence, &likeness);
    unsure = certainty_unsure(scenario, metrics);
    return (struct ratio_expectation){ratio.within + unsure, ratio.most + 2 * unsure};
}

void certainty_state(struct metrics *metrics, const struct scenario *scenario)
{
    struct expectation expectation = expect(scenario, metrics);
    struct ratio_expectation ratio = certainty_ratio(scenario, metrics);

    metrics->stated_error = stated_error(metrics, scenario_first_costs(scenario));
    metrics->expected_error = expectation.error;
    metrics->expected_longer = expectation.longer;
    metrics->expected_alike = expectation.alike;
    metrics->expected_ratio = ratio.within;
    metrics->expected_ratio_most = ratio.most;
}

/* How far the replays' times are from the median, as a share; 0: there are none. */
static double lockstep_spread(const struct metrics *metrics)
{
    double time = metrics->iteration_time, from = metrics->iteration_time_p10, to = metrics->iteration_time_p90;

    return isnan(metrics->lockstep) ? 0 : fmax(to - time, time - from) / time;
}

void certainty_spread(struct metrics *metrics)
{
    double spread = lockstep_spread(metrics);

    if (!isnan(metrics->expected_error))
        metrics->expected_error = fmax(metrics->expected_error, spread);
    if (!isnan(metrics->expected_ratio)) {
        metrics->expected_ratio = fmax(metrics->expected_ratio, spread);
        metrics->expected_ratio_most = fmax(metrics->expected_ratio_most, 2 * spread);
    }
}

void certainty_memory(struct metrics *metrics, const struct scenario *scenario)
{
    struct arena arena = {0};
    struct likeness likeness = likeness_of(scenario, metrics);
    bool runs = !certainty_attention(&arena, scenario);

    arena_release(&arena);
    if (model_is_timed(&scenario->model) || !runs)
        return;
    for (enum peak_kind kind = 0; kind < PEAK_KIND_COUNT; kind++)
        metrics->peaks[kind] = evidence_expect_peak(scenario->evidence, kind, &likeness, NULL);
    metrics->fits = evidence_fits(scenario->evidence, &likeness, metrics->peak_memory, metrics->peak_room);
}
