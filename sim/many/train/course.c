#include "train/course.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "run/energy.h"

/* A course in the making. */
struct making {
    struct course *course;
    const struct scenario *scenario;
    const struct interval *every;        /* NULL: no checkpoints */
    double validation, validated_every;  /* s; steps; 0: none */
    double since_steps, since_seconds;   /* of work since the last checkpoint was begun */
    double zone_seconds;                 /* of work in the last zone */
};

static double clock_of(const struct course *course)
{
    return course->useful + course->stalls + course->validations;
}

/* A checkpoint begins now. One that is still being written is waited for. */
static void mark(struct making *making, const struct zone *zone, bool last)
{
    struct course *course = making->course;
    const struct checkpoint_cost *cost = &zone->cost;
    double wait = fmax(0, course->marks.items[course->marks.count - 1].safe - clock_of(course));
    double stall = wait + (last ? cost->write : cost->block);

    if (!making->every)
        return;
    *GROW(&course->marks) = (struct mark){
        .resumes = clock_of(course) + stall, .safe = clock_of(course) + wait + cost->write, .step = course->steps,
    };
    course->stalls += stall;
    course->gpu_seconds += stall * zone->paid;
    course->joules += stall * zone->idle_power;
    course->checkpoints++;
    making->since_steps = making->since_seconds = 0;
}

/* The number of steps of `step` s until the next checkpoint; INFINITY: there are none. */
static double until_mark(const struct making *making, double seconds)
{
    double least = 1;

    if (!making->every)
        return INFINITY;
    if (!isnan(making->every->steps))
        return making->every->steps - making->since_steps;
    if (making->every->automatic)        /* where steps are shorter too, no checkpoint waits for the one before */
        least = fmax(1, ceil((making->course->marks.items[making->course->marks.count - 1].safe - clock_of(making->course)) /
                     seconds * (1 - 1e-12)));
    return fmax(least, ceil((making->every->seconds - making->since_seconds) / seconds - 0.5));
}

/* Where `auto` chooses, and checkpoints are written beside the training: the steps that are left are divided equally, so
 * that the last checkpoint does not wait for one that was begun shortly before it either. */
static double divide_rest(const struct making *making, const struct zone *zone, double marked, double rest)
{
    double interval = marked + making->since_steps, work = rest + making->since_steps;

    if (!making->every || !making->every->automatic || !isfinite(marked) || zone->cost.write <= zone->cost.block)
        return marked;
    return ceil(work / fmax(1, floor(work / interval))) - making->since_steps;
}

static void add_milestone(struct course *course, const struct stretch *stretch, const struct step *step)
{
    struct milestone last = course->milestones.items[course->milestones.count - 1];

    *GROW(&course->milestones) = (struct milestone){
        .clock = clock_of(course), .steps = course->steps, .samples = last.samples + stretch->steps * step->samples,
        .tokens = last.tokens + stretch->steps * step->tokens,
    };
}

/* A stretch. Its last step is the training's last one, or the last one on this number of GPUs (`ends`). */
static int add_stretch(struct making *making, const struct stretch *stretch, const struct step *step, struct zone *zone,
                       bool ends, struct error *err)
{
    struct course *course = making->course;
    double base = course->useful, done = 0;

    while (done < stretch->steps) {
        double marked = until_mark(making, step->seconds), rest = stretch->steps - done, count;
        double validated = making->validated_every > 0 ?
            making->validated_every - fmod(course->steps, making->validated_every) : INFINITY;

        if (ends)
            marked = divide_rest(making, zone, marked, rest);
        count = fmin(fmin(marked, rest), validated);
        done += count;
        course->steps += count;
        course->useful = base + done * step->seconds;
        making->since_steps += count;
        making->since_seconds += count * step->seconds;
        if (count == validated) {
            course->validations += making->validation;
            course->gpu_seconds += making->validation * step->paid;
            course->joules += making->validation * step->power;
        }
        if (count == marked || (ends && done == stretch->steps))
            mark(making, zone, ends && done == stretch->steps);
        if (course->marks.count > COURSE_MARKS)
            return error_add(err, EXIT_INFEASIBLE, node_loc(making->scenario->train->node, "checkpoint"),
                             "train: checkpoint: "
                             "every: that makes more than %d checkpoints; expected a longer interval",
                             COURSE_MARKS);
    }
    course->gpu_seconds += stretch->steps * step->seconds * step->paid;
    course->joules += stretch->steps * step->seconds * step->power;
    making->zone_seconds += stretch->steps * step->seconds;
    zone->power += (step->power - zone->power) * stretch->steps * step->seconds / making->zone_seconds;
    zone->end = clock_of(course);
    add_milestone(course, stretch, step);
    return 0;
}

/* The zone of a step: the last one, if it has as many GPUs. */
static int zone_of(struct making *making, const struct steps *steps, const struct step *step, struct zone **zone,
                   struct error *err)
{
    struct course *course = making->course;
    struct zone new = {
        .pace = 1, .nodes = step->nodes,
        .gpus = step->gpus, .paid = step->paid, .idle_power = step->idle_power};

    if (!course->zones.count || course->zones.items[course->zones.count - 1].gpus != step->gpus) {
        if (making->every && checkpoint_cost(making->scenario, steps, step, &new.cost, err))
            return -1;
        *GROW(&course->zones) = new;
        making->zone_seconds = 0;
    }
    *zone = &course->zones.items[course->zones.count - 1];
    return 0;
}

/* s that a training stands still for a loss that costs no work: said, or of the processes and the copy of what a node
 * holds, which its neighbour or its like in another replica sends. */
static int reroute_of(const struct making *making, const struct steps *steps, const struct shape *shape,
                      double *seconds, struct error *err)
{
    const struct training_spec *train = making->scenario->train;
    double bytes, share = fmin(1, 1 / (shape->stage_nodes * shape->pipeline));

    *seconds = train->elastic->reroute;
    if (!isnan(*seconds) || train->elastic->system == ELASTIC_VARUNA)
        return 0;
    if (checkpoint_bytes(making->scenario, steps, &bytes, err))
        return error_add(err, EXIT_INPUT, train->elastic->node->loc,
                         "train: elastic: missing key 'reroute', the time that a loss "
                         "stops the training: it follows from the bytes of a checkpoint, which are not known");
    *seconds = (train->restart ? train->restart->init : 0) +
               share * bytes /
                   (cluster_node_nics(&making->scenario->cluster, 0) * cluster_nic_rate(&making->scenario->cluster, 0));
    return 0;
}

/* The only zone of a shape. Its steps and validations take a number of seconds for each second of the scenario's; its
 * stalls are as long as its checkpoints take there. */
static int zone_of_shape(const struct making *making, const struct steps *steps, const struct shape *shape,
                         double seconds, struct zone *zone, struct error *err)
{
    struct course *course = making->course;
    const struct zone *full = course->zones.items;
    struct step step = *steps_of(steps, steps->stretches.items);
    double works = (course->useful + course->validations) / step.seconds, stalls = course->stalls;

    step.nodes = shape->nodes;
    step.gpus = shape->gpus;
    *zone = (struct zone){.end = full->end, .nodes = shape->nodes, .gpus = shape->gpus,
                          .paid = full->paid - (full->nodes - shape->nodes) * cluster_node_gpus(&making->scenario->cluster, 0)};
    zone->idle_power = full->idle_power - energy_power(making->scenario, full->paid - zone->paid, full->nodes - shape->nodes,
                                                       (struct occupation){0, 0});
    if (making->every && checkpoint_cost(making->scenario, steps, &step, &zone->cost, err))
        return -1;
    stalls *= full->cost.block > 0 ? zone->cost.block / full->cost.block : 1;
    zone->pace = course->end / (works * seconds + stalls);
    zone->power = (works * seconds * shape->power + stalls * zone->idle_power) / (works * seconds + stalls);
    return reroute_of(making, steps, shape, &zone->reroute, err);
}

/* The training on fewer nodes, and with holes. */
static int shrink(const struct making *making, const struct steps *steps, struct error *err)
{
    struct course *course = making->course;
    const struct elastic_spec *spec = making->scenario->train->elastic;
    struct zone *full = course->zones.items, whole;
    struct shape *own;
    double longer = spec->system == ELASTIC_REDUNDANCY ? 1 + spec->redundant : 1;

    course->step = steps_of(steps, steps->stretches.items)->seconds;
    if (shapes_init(&course->shapes, making->scenario, err))
        return -1;
    course->shrunk = xcalloc((size_t)full->nodes + 1, sizeof *course->shrunk);
    own = &course->shapes.on[full->nodes];
    own->seconds = course->step;
    own->power = steps_of(steps, steps->stretches.items)->power;
    if (zone_of_shape(making, steps, own, own->seconds * longer, &whole, err))
        return -1;
    full->reroute = whole.reroute;
    full->pace = longer == 1 ? 1 : whole.pace;
    for (int nodes = 0; nodes < full->nodes; nodes++)
        if (course->shapes.on[nodes].nodes &&
            zone_of_shape(making, steps, &course->shapes.on[nodes], course->shapes.on[nodes].seconds * longer,
                          &course->shrunk[nodes], err))
            return -1;
    if (spec->system != ELASTIC_REDUNDANCY)
        return 0;
    course->holed = xcalloc((size_t)full->nodes + 1, sizeof *course->holed);
    for (int nodes = 0; nodes <= full->nodes; nodes++)
        if (course->shapes.on[nodes].holed_seconds > 0 &&
            zone_of_shape(making, steps, &course->shapes.on[nodes], course->shapes.on[nodes].holed_seconds * longer,
                          &course->holed[nodes], err))
            return -1;
    return 0;
}

int course_init(struct course *course, const struct scenario *scenario, const struct steps *steps,
                const struct interval *every, struct error *err)
{
    const struct validation_spec *validation = scenario->train->validation;
    struct making making = {
        .course = course, .scenario = scenario, .every = every,
        .validation = validation ? validation->time : 0,
        .validated_every = validation ? validation->interval.steps : 0,
    };
    double validations = 0;

    *course = (struct course){0};
    *GROW(&course->marks) = (struct mark){0};
    *GROW(&course->milestones) = (struct milestone){0};
    for (size_t i = 0; i < steps->stretches.count && validation; i++)
        validations += steps->stretches.items[i].steps / validation->interval.steps;
    if (validation && validations > COURSE_MARKS)
        return error_add(err, EXIT_INFEASIBLE, node_loc(validation->node, "every"),
                         "train: validation: every: that makes %.3g "
                         "validations; expected at most %d",
                         validations, COURSE_MARKS);
    for (size_t i = 0; i < steps->stretches.count; i++) {
        const struct stretch *stretch = &steps->stretches.items[i];
        const struct step *step = steps_of(steps, stretch);
        bool ends = i + 1 == steps->stretches.count || steps_of(steps, stretch + 1)->gpus != step->gpus;
        struct zone *zone;

        if (zone_of(&making, steps, step, &zone, err) || add_stretch(&making, stretch, step, zone, ends, err))
            return -1;
    }
    course->end = clock_of(course);
    return scenario->train->elastic ? shrink(&making, steps, err) : 0;
}

void course_release(struct course *course)
{
    shapes_release(&course->shapes);
    free(course->shrunk);
    free(course->holed);
    free(course->marks.items);
    free(course->zones.items);
    free(course->milestones.items);
    *course = (struct course){0};
}

size_t course_mark(const struct course *course, size_t from, double clock)
{
    const struct mark *marks = course->marks.items;
    size_t to = from + 1, step = 1;

    while (to < course->marks.count && marks[to].safe <= clock) {
        from = to;
        to += step *= 2;
    }
    to = to < course->marks.count ? to : course->marks.count;
    while (to - from > 1) {
        size_t middle = from + (to - from) / 2;

        if (marks[middle].safe <= clock)
            from = middle;
        else
            to = middle;
    }
    return from;
}

struct milestone course_at(const struct course *course, double clock)
{
    const struct milestone *after = course->milestones.items + 1, *before = after - 1;
    const struct milestone *last = course->milestones.items + course->milestones.count - 1;
    double share;

    while (after < last && after->clock < clock)
        before = after++;
    if (after > last || clock >= last->clock)
        return *last;
    share = (clock - before->clock) / (after->clock - before->clock);
    return (struct milestone){
        .clock = clock, .steps = before->steps + share * (after->steps - before->steps),
        .samples = before->samples + share * (after->samples - before->samples),
        .tokens = before->tokens + share * (after->tokens - before->tokens),
    };
}

const struct zone *course_zone(const struct course *course, double clock)
{
    const struct zone *zone = course->zones.items, *last = zone + course->zones.count - 1;

    while (zone < last && zone->end <= clock)
        zone++;
    return zone;
}

double course_step_begin(const struct course *course, size_t mark, double clock)
{
    double from = course->marks.items[mark].resumes;

    return from + floor(fmax(0, clock - from) / course->step) * course->step;
}

double course_steps_since(const struct course *course, size_t mark, double clock)
{
    const struct mark *from = &course->marks.items[mark];
    double ahead = course->end - from->resumes, steps = course->steps - from->step;

    if (mark + 1 < course->marks.count) {
        ahead = from[1].resumes - from->resumes;
        steps = from[1].step - from->step;
    }
    return ahead > 0 ? floor(fmin(1, (clock - from->resumes) / ahead) * steps) : 0;
}
