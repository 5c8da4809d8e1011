#include "import/nccl_fit.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "collective/measure.h"
#include "config/field.h"
#include "config/named.h"
#include "hardware/cluster.h"
#include "hardware/communication.h"
#include "validate/published.h"

#define SMALL 65536.0            /* B up to which latencies decide a time; beyond, rates do too */
/* The first factor multiplies latencies. Each of the others multiplies the rates of one protocol. */
enum { FACTORS = 1 + PROTOCOL_COUNT, ROUNDS = 3, STEPS = 16 };
#define WIDEST 1.4               /* the most that the logarithm of all factors together may be, */
#define NARROW 0.4               /* and by which one of them may differ from these in a round */
#define MOST_OFF 0.5             /* rows that are further off with every factor are none of such a platform */

struct fitting {
    struct arena *arena;
    const struct node *base;         /* the platform's profile */
    struct published published;
    double factors[FACTORS];
    bool told[FACTORS];
    bool inside, network;            /* the rows cross links of these */
    struct error *err;
};

static const struct scaled { const char *key; enum unit unit; } scaled[] = {
    {"launch", UNIT_TIME}, {"inside", UNIT_TIME}, {"spanning", UNIT_TIME}, {"step", UNIT_TIME}, {"all_reduce_step", UNIT_TIME},
    {"network", UNIT_TIME}, {"network_single", UNIT_TIME}, {"inside_share", UNIT_NUMBER}, {"network_share", UNIT_NUMBER},
    {"inside_most", UNIT_BANDWIDTH}, {"network_most", UNIT_BANDWIDTH}, {"nic_most", UNIT_BANDWIDTH},
};

/* Whether the rows cross what the key is of. */
static bool is_crossed(const struct fitting *fitting, const char *key)
{
    static const char *const network[] = {"network", "spanning", "nic_"};
    bool of_network = false;

    for (size_t i = 0; i < COUNT(network); i++)
        of_network |= !strncmp(key, network[i], strlen(network[i]));
    return of_network ? fitting->network : fitting->inside || strncmp(key, "inside", 6);
}

/* Whether the rows depend on this part of the profile. All-to-alls have a part of their own; no row is of a single message. */
static bool is_measured(const struct fitting *fitting, const char *part)
{
    const struct published_row *row = fitting->published.rows.items;

    return strcmp(part, "send") && !strcmp(part, "all_to_all") == (row->op == COLLECTIVE_ALL_TO_ALL);
}

/* A value times its factor; a share of a data sheet's rate is at most 1. */
static struct node *scale_value(const struct fitting *fitting, const char *key, struct node *value, int protocol)
{
    char text[64], why[128];
    double number;

    for (size_t i = 0; i < COUNT(scaled) && value->kind == NODE_SCALAR; i++)
        if (!strcmp(key, scaled[i].key) && is_crossed(fitting, key) && !unit_parse(scaled[i].unit, value->text, &number, why, sizeof why)) {
            number *= fitting->factors[scaled[i].unit == UNIT_TIME ? 0 : 1 + protocol];
            if (scaled[i].unit == UNIT_NUMBER)
                snprintf(text, sizeof text, "%.4g", fmin(1, number));
            else
                unit_format(scaled[i].unit, number, text, sizeof text);
            return node_scalar(fitting->arena, text, false);
        }
    return value;
}

/* A copy of the tree. Values under a protocol's name are multiplied by that protocol's factor, all other values by Simple's. */
static struct node *scale_tree(const struct fitting *fitting, const struct node *tree, int protocol)
{
    struct node *copy = node_mapping(fitting->arena);

    copy->loc = tree->loc;
    for (size_t i = 0; i < tree->count; i++) {
        int own = protocol;

        for (int p = 0; p < PROTOCOL_COUNT; p++)
            own = !strcasecmp(tree->keys[i], protocol_names[p]) ? p : own;
        node_put(fitting->arena, copy, tree->keys[i], tree->items[i]->kind != NODE_MAPPING ?
                 scale_value(fitting, tree->keys[i], tree->items[i], own) :
                 tree == fitting->base && !is_measured(fitting, tree->keys[i]) ? tree->items[i] : scale_tree(fitting, tree->items[i], own));
    }
    return copy;
}

/* The root mean square of the rows' log errors with the factors, and how many rows each protocol has; NaN after an error. */
static double error_with(struct fitting *fitting, int uses[PROTOCOL_COUNT])
{
    struct communication *own = (struct communication *)(uintptr_t)cluster_communication(&fitting->published.cluster, ~0u), parsed;
    const struct communication before = *own;
    struct measure measure;
    double squares = 0;
    int rc = field_parse(fitting->arena, &communication_table, scale_tree(fitting, fitting->base, PROTOCOL_SIMPLE), &parsed, fitting->err);

    if (rc)
        return NAN;
    parsed.launch = before.launch;
    parsed.nics = before.nics;
    *own = parsed;
    measure_init(&measure, ENGINE_FAST, &fitting->published.cluster);
    for (size_t i = 0; i < fitting->published.rows.count && !rc; i++) {
        const struct published_row *row = (const struct published_row *)fitting->published.rows.items + i;
        struct measured measured;

        rc = published_simulate(&fitting->published, row, &measure, &measured, fitting->err);
        if (rc)
            break;
        squares += pow(log(measured.seconds / published_seconds(row)), 2);
        if (uses && row->bytes > SMALL && measured.protocol != PROTOCOL_NONE)
            uses[measured.protocol]++;
    }
    measure_release(&measure);
    *own = before;
    return rc ? NAN : sqrt(squares / (double)fitting->published.rows.count);
}

/* Multiplies a factor; FACTORS: all that the rows tell, so that every time is multiplied. */
static void move_factor(struct fitting *fitting, const double from[FACTORS], int factor, double by)
{
    for (int i = 0; i < FACTORS; i++)
        if (i == factor)
            fitting->factors[i] = from[i] * by;
        else
            fitting->factors[i] = from[i] * (factor == FACTORS && fitting->told[i] ? i ? 1 / by : by : 1);
}

/* Narrows one factor, or all together, to the best by the golden section of its logarithm, as far as `widest` from what it is; it
 * stays where none is better than `error`. */
static double fit_factor(struct fitting *fitting, int factor, double widest, double error)
{
    const double section = (sqrt(5) - 1) / 2;
    double low = -widest, high = widest, best = error, from[FACTORS];

    memcpy(from, fitting->factors, sizeof from);
    for (int i = 0; i < STEPS; i++) {
        double near = high - section * (high - low), far = low + section * (high - low), one, other;

        move_factor(fitting, from, factor, exp(near));
        one = error_with(fitting, NULL);
        move_factor(fitting, from, factor, exp(far));
        other = error_with(fitting, NULL);
        if (isnan(one) || isnan(other))
            return NAN;
        *(one <= other ? &high : &low) = one <= other ? far : near;
        best = fmin(one, other);
    }
    move_factor(fitting, from, factor, best < error ? exp((low + high) / 2) : 1);
    return fmin(best, error);
}

/* Which factors the rows tell: that of latencies two small ones, a protocol's rates two large ones that use it. */
static void find_told(struct fitting *fitting, const int uses[PROTOCOL_COUNT])
{
    int small = 0;

    for (size_t i = 0; i < fitting->published.rows.count; i++)
        small += ((const struct published_row *)fitting->published.rows.items + i)->bytes <= SMALL;
    fitting->told[0] = small >= 2;
    for (int p = 0; p < PROTOCOL_COUNT; p++)
        fitting->told[1 + p] = uses[p] >= 2;
}

/* Which links the rows cross. */
static void find_crossed(struct fitting *fitting)
{
    int whole = cluster_node_gpus(&fitting->published.cluster, 0);

    for (size_t i = 0; i < fitting->published.rows.count; i++) {
        const struct published_row *row = (const struct published_row *)fitting->published.rows.items + i;
        int each = row->per_node ? row->per_node : whole;

        fitting->inside |= each > 1;
        fitting->network |= row->ranks > each;
    }
}

static int check_fit(const struct fitting *fitting, const char *platform, double after)
{
    struct loc loc = {.file = "--platform"};
    bool any = false;

    for (int i = 0; i < FACTORS; i++)
        any |= fitting->told[i];
    if (!any)
        return error_add(fitting->err, EXIT_INPUT, loc, "nothing can be fitted: neither two sizes of at most 64 KiB nor two larger ones of "
                         "one protocol; leave --platform out");
    if (exp(after) - 1 > MOST_OFF)
        return error_add(fitting->err, EXIT_INPUT, loc, "with the best factors the rows are still %.0f %% off %s (root mean square); "
                         "expected measurements of such nodes; is a row no measurement of the network?", 100 * (exp(after) - 1), platform);
    return 0;
}

/* Refuses a platform whose GPU the log does not name. `said`: the cluster that the log names, or NULL. */
static int check_gpu(struct fitting *fitting, struct node *said, const char *platform)
{
    struct arena *arena = fitting->arena;
    struct error unheard = {0};
    struct cluster of_log = {0};
    const char *theirs = NULL, *ours = cluster_gpu_name(&fitting->published.cluster, 0);

    if (said && !cluster_load(arena, said, &of_log, &unheard))
        theirs = cluster_gpu_name(&of_log, 0);
    error_release(&unheard);
    return theirs && ours && strcmp(theirs, ours) ?
           error_add(fitting->err, EXIT_INPUT, (struct loc){.file = "--platform"}, "%s has %s, and the log names %s; expected a platform "
                     "of these", platform, ours, theirs) : 0;
}

static void say_factors(const struct fitting *fitting, double before, double after, FILE *notes)
{
    fprintf(notes, "%zu rows: %.1f %% off with the platform's own profile, %.1f %% with this one (root mean square)\n",
            fitting->published.rows.count, 100 * (exp(before) - 1), 100 * (exp(after) - 1));
    for (int i = 0; i < FACTORS; i++) {
        const char *of = i ? protocol_names[i - 1] : "";

        if (fitting->told[i])
            fprintf(notes, "%s%s x %.3f\n", i ? "rates of " : "latencies", of, fitting->factors[i]);
        else
            fprintf(notes, "%s%s: as the platform's; fewer than two rows %s\n", i ? "rates of " : "latencies", of,
                    i ? "of more than 64 KiB use it" : "have 64 KiB or less");
    }
    if (!fitting->network || !fitting->inside)
        fprintf(notes, "%s: not measured, as the platform's\n", fitting->network ? "links inside of nodes" : "the network between nodes");
}

/* The tree of the platform's profile. */
static const struct node *base_of(struct arena *arena, const char *platform, struct error *err)
{
    static const struct data_kind platforms = {"platforms", "platform", NULL}, profiles = {"platforms/communication", "communication profile", NULL};
    struct loc loc = {.file = "--platform"};
    const char *path = data_resolve(arena, &platforms, platform, loc, err);
    struct node *root = NULL;
    const struct node *said;

    if (!path || conf_load(arena, path, &root, err))
        return NULL;
    said = node_get(root, "communication");
    said = said && said->kind == NODE_MAPPING ? node_get(said, "profile") : said;
    if (!said || said->kind != NODE_SCALAR || !strcmp(said->text, "none"))
        return error_add(err, EXIT_INPUT, loc, "%s has no communication profile that measurements could correct", platform), NULL;
    path = data_resolve(arena, &profiles, said->text, said->loc, err);
    return path && !conf_load(arena, path, &root, err) ? root : NULL;
}

struct node *nccl_fit(struct arena *arena, struct node *table, const char *platform, FILE *notes, struct error *err)
{
    struct fitting fitting = {.arena = arena, .base = base_of(arena, platform, err), .err = err};
    struct node *cluster = node_mapping(arena), *said = node_get(table, "cluster"), *profile;
    int uses[PROTOCOL_COUNT] = {0};
    double before, after;

    node_put(arena, cluster, "platform", node_scalar(arena, platform, true));
    node_put(arena, table, "cluster", cluster);
    if (!fitting.base || published_read(arena, table, &fitting.published, err))
        return NULL;
    if (check_gpu(&fitting, said, platform))
        return NULL;
    find_crossed(&fitting);
    for (int i = 0; i < FACTORS; i++)
        fitting.factors[i] = 1;
    before = after = error_with(&fitting, uses);
    find_told(&fitting, uses);
    after = isnan(after) ? after : fit_factor(&fitting, FACTORS, WIDEST, after);
    for (int round = 0; round < ROUNDS && !isnan(after); round++) {
        double last = after;

        for (int i = 0; i < FACTORS && !isnan(after); i++)
            after = fitting.told[i] ? fit_factor(&fitting, i, NARROW, after) : after;
        if (after > 0.99 * last)
            break;
    }
    if (isnan(after) || check_fit(&fitting, platform, after))
        return NULL;
    say_factors(&fitting, before, after, notes);
    profile = scale_tree(&fitting, fitting.base, PROTOCOL_SIMPLE);
    node_put(arena, profile, "title", node_scalar(arena, arena_printf(arena, "measured on %s", platform), true));
    return profile;
}
