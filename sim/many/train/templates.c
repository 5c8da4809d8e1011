/* Oobleck's shapes (Jang et al. 2023, "Oobleck: Resilient Distributed Training of Large Models Using Pipeline
 * Templates", SOSP, arXiv 2309.08125). A template is a number of stages, on whole nodes. Replicas of unequal templates
 * train together; they get as many micro-batches as let them end together. Here a shape has at most two templates.
 *
 * A step takes as long as its slowest replica. A replica is simulated in a job of equal replicas, with which it
 * exchanges gradients; there are as many as in the shape. */
#include "train/shapes_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "hardware/cluster.h"

/* Times of one template in a job of some number of equal replicas: a step of b micro-batches takes about
 * first + b x each seconds. `runs`: false: it does not fit, or was not measured. */
struct template
{
    bool runs;
    double first, each;
};

/* All templates. */
struct templates {
    struct making *making;
    int *stages, *nodes;     /* [template]: ascending */
    int count, most;         /* templates; replicas at most */
    struct template *measured;       /* [replicas][template] */
};

/* A shape of two templates, or of one (deep: 0). */
struct pair {
    int replicas, deep;      /* of both templates; of the second one, which has more stages */
    int first, second;       /* templates */
    int micro[2];            /* micro-batches of a replica of each */
    double seconds;          /* of a step, by the templates' times */
};

static struct template *template_of(const struct templates *templates, int replicas, int number)
{
    return &templates->measured[replicas * templates->count + number];
}

/* A shape of equal replicas of a template. Its times are not simulated yet. */
static struct shape shape_of(const struct templates *templates, int replicas, int number)
{
    return (struct shape){
        .nodes = templates->nodes[number] * replicas,
        .gpus = templates->stages[number] * templates->making->stage_gpus * replicas,
        .replicas = replicas,
        .pipeline = templates->stages[number],
        .stage_nodes = (double)templates->nodes[number] / templates->stages[number],
    };
}

/* Finds a template's times in a job of equal replicas: simulates two numbers of micro-batches, near the number that
 * each replica has. Returns -1 on an error; a template that does not run is none. */
static int measure(const struct templates *templates, int replicas, int number, struct error *err)
{
    struct template *template = template_of(templates, replicas, number);
    int few = templates->making->micro_batches / replicas, many;
    double seconds = 0;

    few = few ? few : 1;
    many = few + (few + 1) / 2;
    for (int i = 0; i < 2; i++) {
        struct shape shape = shape_of(templates, replicas, number);
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

static double template_seconds(const struct template *template, int micro)
{
    return template->first + micro * template->each;
}

/* Sets the micro-batches with which both templates end soonest. With fractions of micro-batches all replicas would end
 * at the same time, `level`: a replica has (level - first) / each micro-batches, and they add up to the total. The
 * first template's best whole number is near to its fraction. */
static void divide_micro_batches(const struct templates *templates, struct pair *pair)
{
    const struct template *first = template_of(templates, pair->replicas, pair->first);
    const struct template *second = template_of(templates, pair->replicas, pair->second);
    int total = templates->making->micro_batches, shallow = pair->replicas - pair->deep;
    double level = (total + shallow * first->first / first->each + pair->deep * second->first / second->each) /
                   (shallow / first->each + pair->deep / second->each);
    int about = (int)floor((level - first->first) / first->each);

    pair->seconds = INFINITY;
    for (int micro = about - 1; micro <= about + 2; micro++) {
        int left = total - shallow * micro, other = 0;
        double seconds;

        if (pair->deep)
            other = left > 0 ? (left + pair->deep - 1) / pair->deep : 1;
        seconds = fmax(shallow ? template_seconds(first, micro) : 0, pair->deep ? template_seconds(second, other) : 0);
        if (micro < 1 || (!pair->deep && left > 0) || seconds >= pair->seconds)
            continue;
        pair->seconds = seconds;
        pair->micro[0] = micro;
        pair->micro[1] = other;
    }
}

/* Sets `best` to the fastest pair of that number of replicas on that number of nodes, if one is faster. As many
 * replicas as the nodes allow are of the deeper template. */
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
            divide_micro_batches(templates, &pair);
            if (pair.seconds < best->seconds)
                *best = pair;
        }
}

/* Simulates the pair that the estimates chose, and keeps it as a shape. */
static int simulate_pair(const struct templates *templates, const struct pair *pair, struct error *err)
{
    int shallow = pair->replicas - pair->deep;
    struct shape shape = shape_of(templates, pair->replicas, pair->first);

    shape.nodes = shallow * templates->nodes[pair->first] + pair->deep * templates->nodes[pair->second];
    shape.gpus = (shallow * templates->stages[pair->first] + pair->deep * templates->stages[pair->second]) *
                 templates->making->stage_gpus;
    shape.deep = pair->deep;
    shape.deep_pipeline = pair->deep ? templates->stages[pair->second] : 0;
    for (int i = 0; i < (pair->deep ? 2 : 1); i++) {
        int number = i ? pair->second : pair->first, count = i ? pair->deep : shallow;
        struct shape part = shape_of(templates, pair->replicas, number);
        int rc = shape_simulate(templates->making, &part, pair->micro[i], NULL, err);

        if (rc)
            return rc < 0 ? -1 : 0;
        shape.seconds = fmax(shape.seconds, part.seconds);
        shape.power += part.power / pair->replicas * count;
    }
    shape_take(templates->making->shapes, &shape);
    return 0;
}

/* Lists the templates that fill whole nodes: all of them, or those whose numbers of stages are in `pipeline`. One that
 * is larger than the cluster is left out. */
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

/* Measures each template where a shape may have it: in a job of `replicas`, the others of which need a node number at
 * least as the smallest template does. */
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
                       "train: elastic: %d templates with up to %d replicas are too many; expected fewer numbers of "
                       "stages ('pipeline')",
                       templates.count, templates.most);
    if (rc)
        templates.most = 0;
    templates.measured =
        xcalloc((size_t)(templates.most + 1) * (size_t)(templates.count + 1), sizeof *templates.measured);
    rc = rc ? rc : measure_all(&templates, least, err);
    for (int nodes = 1; nodes < whole && !rc; nodes++) {
        struct pair best = {.seconds = INFINITY};

        for (int replicas = least; replicas <= templates.most; replicas++)
            search(&templates, replicas, nodes, &best);
        rc = isinf(best.seconds) ? 0 : simulate_pair(&templates, &best, err);
    }
    free(templates.stages);
    free(templates.nodes);
    free(templates.measured);
    return rc;
}
