/* Oobleck's shapes (Jang et al. 2023, "Oobleck: Resilient Distributed Training of Large Models Using Pipeline
 * Templates", SOSP, arXiv 2309.08125): replicas of unequal numbers of stages, of whole nodes each, side by side, with
 * micro-batches so that they end together. A step takes as long as that of the slowest replica; each is simulated among
 * as many alike, with which it exchanges gradients. Here at most two templates stand side by side. */
#include "course/shapes_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "hardware/cluster.h"

/* The time of a template next to that many replicas: a step of b micro-batches takes about first + b each seconds. */
struct template
{
    bool runs;
    double first, each;
};

/* All templates. */
struct templates {
    struct making *making;
    int *stages, *nodes;     /* of each of them, ascending */
    int count, most;         /* templates; replicas at most */
    struct template *mixed; /* [replicas][template] */
};

/* Two templates side by side, `deep` replicas of the second one, and the micro-batches of a replica of each. */
struct pair {
    int replicas, deep, first, second, micro[2];
    double seconds;
};

static struct template *template_of(const struct templates *templates, int replicas, int number)
{
    return &templates->mixed[replicas * templates->count + number];
}

/* That number of replicas of a template. */
static struct shape alike(const struct templates *templates, int replicas, int number)
{
    return (struct shape){
        .nodes = templates->nodes[number] * replicas,
        .gpus = templates->stages[number] * templates->making->stage_gpus * replicas,
        .replicas = replicas,
        .pipeline = templates->stages[number],
        .stage_nodes = (double)templates->nodes[number] / templates->stages[number],
    };
}

/* Two numbers of micro-batches, near the number that each replica has. */
static int measure(const struct templates *templates, int replicas, int number, struct error *err)
{
    struct template *template = template_of(templates, replicas, number);
    int few = templates->making->micro_batches / replicas, many;
    double seconds = 0;

    few = few ? few : 1;
    many = few + (few + 1) / 2;
    for (int i = 0; i < 2; i++) {
        struct shape shape = alike(templates, replicas, number);
        int rc = shape_simulate(templates->making, &shape, i ? many : few, NULL, err);

        if (rc)
            return rc < 0 ? -1 : 0;
        template->each = (shape.seconds - seconds) / (i ? many - few : 1);
        seconds = shape.seconds;
    }
    template->first = fmax(0, seconds - many * template->each);
    template->runs = template->each > 0;
    return 0;
}

static double ends(const struct template *template, int micro)
{
    return template->first + micro * template->each;
}

/* The micro-batches with which both templates end soonest, at the same time but for whole ones. */
static void share_out(const struct templates *templates, struct pair *pair)
{
    const struct template *first = template_of(templates, pair->replicas, pair->first);
    const struct template *second = template_of(templates, pair->replicas, pair->second);
    int total = templates->making->micro_batches, shallow = pair->replicas - pair->deep;
    double level = (total + shallow * first->first / first->each + pair->deep * second->first / second->each) /
                   (shallow / first->each + pair->deep / second->each);
    int about = (int)floor((level - first->first) / first->each);

    pair->seconds = INFINITY;
    for (int micro = about - 1; micro <= about + 2; micro++) {
        int left = total - shallow * micro, other = pair->deep && left > 0 ? (left + pair->deep - 1) / pair->deep :
                                                    pair->deep             ? 1 :
                                                                             0;
        double seconds = fmax(shallow ? ends(first, micro) : 0, pair->deep ? ends(second, other) : 0);

        if (micro < 1 || (!pair->deep && left > 0) || seconds >= pair->seconds)
            continue;
        pair->seconds = seconds;
        pair->micro[0] = micro;
        pair->micro[1] = other;
    }
}

/* The best pair of so many replicas on so many nodes, if it is better than `best`. As many replicas as the nodes allow
 * are of the deeper template. */
static void search(const struct templates *templates, int replicas, int nodes, struct pair *best)
{
    for (int first = 0; first < templates->count; first++)
        for (int second = first; second < templates->count; second++) {
            int left = nodes - replicas * templates->nodes[first],
                more = templates->nodes[second] - templates->nodes[first];
            struct pair pair = {.replicas = replicas, .first = first, .second = second};

            if (left < 0)
                return;
            pair.deep = more ? left / more : 0;
            if ((more && (!pair.deep || pair.deep >= replicas)) || !template_of(templates, replicas, first)->runs ||
                !template_of(templates, replicas, second)->runs)
                continue;
            share_out(templates, &pair);
            if (pair.seconds < best->seconds)
                *best = pair;
        }
}

/* Simulates what the estimates chose. */
static int take(const struct templates *templates, const struct pair *pair, struct error *err)
{
    int shallow = pair->replicas - pair->deep;
    struct shape shape = alike(templates, pair->replicas, pair->first);

    shape.nodes = shallow * templates->nodes[pair->first] + pair->deep * templates->nodes[pair->second];
    shape.gpus = (shallow * templates->stages[pair->first] + pair->deep * templates->stages[pair->second]) *
                 templates->making->stage_gpus;
    shape.deep = pair->deep;
    shape.deep_pipeline = pair->deep ? templates->stages[pair->second] : 0;
    for (int i = 0; i < (pair->deep ? 2 : 1); i++) {
        int number = i ? pair->second : pair->first, count = i ? pair->deep : shallow;
        struct shape own = alike(templates, pair->replicas, number);
        int rc = shape_simulate(templates->making, &own, pair->micro[i], NULL, err);

        if (rc)
            return rc < 0 ? -1 : 0;
        shape.seconds = fmax(shape.seconds, own.seconds);
        shape.power += own.power / pair->replicas * count;
    }
    shape_take(templates->making->shapes, &shape);
    return 0;
}

/* A stage on whole nodes, or whole stages on a node; left out where a template is larger than the cluster. */
static void list_templates(struct templates *templates)
{
    const struct elastic_spec *spec = templates->making->scenario->train->elastic;
    int node = cluster_node_gpus(&templates->making->scenario->cluster, 0), stage = templates->making->stage_gpus;
    int nodes = templates->making->shapes->nodes;

    for (int used = 1; used <= nodes; used++) {
        bool wanted = !spec->pipeline.count && used * node % stage == 0;

        for (size_t i = 0; i < spec->pipeline.count; i++)
            wanted |= ((const int *)spec->pipeline.items)[i] * stage == used * node;
        if (!wanted)
            continue;
        templates->nodes[templates->count] = used;
        templates->stages[templates->count++] = used * node / stage;
    }
}

static int measure_all(const struct templates *templates, int least, struct error *err)
{
    int nodes = templates->making->shapes->nodes;

    for (int replicas = least; replicas <= templates->most; replicas++)
        for (int number = 0; number < templates->count; number++)
            if ((replicas - 1) * templates->nodes[0] + templates->nodes[number] < nodes &&
                measure(templates, replicas, number, err))
                return -1;
    return 0;
}

int shapes_add_templates(struct making *making, struct error *err)
{
    int whole = making->shapes->nodes, least = making->scenario->train->elastic->least, rc = 0;
    struct templates templates = {.making = making};

    templates.stages = xcalloc((size_t)whole + 1, sizeof *templates.stages);
    templates.nodes = xcalloc((size_t)whole + 1, sizeof *templates.nodes);
    list_templates(&templates);
    templates.most = templates.count ? whole / templates.nodes[0] : 0;
    templates.most = templates.most < making->micro_batches ? templates.most : making->micro_batches;
    if ((double)(templates.most + 1) * templates.count > MOST_SHAPES * 100.0)
        rc = error_add(err, EXIT_INFEASIBLE, making->scenario->train->node->loc,
                       "train: elastic: %d templates beside up to %d replicas are too many; expected fewer numbers of "
                       "stages ('pipeline')",
                       templates.count, templates.most);
    if (rc)
        templates.most = 0;
    templates.mixed = xcalloc((size_t)(templates.most + 1) * (size_t)(templates.count + 1), sizeof *templates.mixed);
    rc = rc ? rc : measure_all(&templates, least, err);
    for (int nodes = 1; nodes < whole && !rc; nodes++) {
        struct pair best = {.seconds = INFINITY};

        for (int replicas = least; replicas <= templates.most; replicas++)
            search(&templates, replicas, nodes, &best);
        rc = isinf(best.seconds) ? 0 : take(&templates, &best, err);
    }
    free(templates.stages);
    free(templates.nodes);
    free(templates.mixed);
    return rc;
}
