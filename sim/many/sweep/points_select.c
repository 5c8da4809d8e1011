/* The points that a sweep consists of: combinations that no constraint drops. */
#include <stdlib.h>

#include "base/base.h"
#include "base/random.h"
#include "expression/expression.h"
#include "sweep/points_internal.h"

/* The first constraint that drops the point, or their number. `depths`: only those of SIZE_MAX are asked; NULL: all. */
static int first_drop(struct moment *moment, const size_t *depths, size_t *constraint, struct error *err)
{
    const struct points *points = moment->points;
    bool dropped = false;

    for (*constraint = 0; *constraint < points->constraints.count; ++*constraint) {
        if (depths && depths[*constraint] != SIZE_MAX)
            continue;
        if (moment_drops(moment, &points->constraints.items[*constraint], &dropped, err))
            return -1;
        if (dropped)
            break;
    }
    return 0;
}

int points_dropped(const struct points *points, uint64_t number, size_t *constraint, struct error *err)
{
    struct moment moment;
    int rc;

    moment_init(&moment, points);
    moment_set(&moment, number);
    rc = first_drop(&moment, NULL, constraint, err);
    moment_release(&moment);
    return rc;
}

/* Looks at one combination. `depths`: what else is asked of it was asked on the way (walk). */
static int consider(struct moment *moment, uint64_t number, const size_t *depths, size_t most, struct selection *selection,
                    struct error *err)
{
    size_t constraint;

    moment_set(moment, number);
    if (first_drop(moment, depths, &constraint, err))
        return -1;
    selection->looked++;
    if (constraint < moment->points->constraints.count) {
        selection->dropped[constraint]++;
        return 0;
    }
    for (size_t d = 0; d < moment->points->nderived; d++)
        if (moment_derived(moment, d, err))
            return -1;
    if (selection->count == most)
        return error_add(err, EXIT_INPUT, moment->points->loc, "more than %zu points remain; expected fewer (where, "
                         "sample), or a higher --max", most);
    *GROW(selection) = number;
    return 0;
}

static int too_many(const struct points *points, struct error *err)
{
    const char *product = "";
    struct arena arena = {0};

    for (size_t d = 0; d < points->zips.count; d++)
        product = arena_printf(&arena, "%s%s%zu (%s)", product, d ? " x " : "", points->zips.items[d].length,
                               points->axes.items[points->zips.items[d].first].name);
    error_add(err, EXIT_INPUT, points->loc, "%s are more than %d combinations; expected fewer, or a sample of them "
              "(sample: {n: 1000})", product, POINTS_LOOKED);
    arena_release(&arena);
    return -1;
}

/* The combinations that are looked through, an axis after the other: what a constraint drops by the first axes is not looked at
 * by the others. */
struct walk {
    struct moment moment;
    size_t *depths;              /* by constraint: with how many zips it is decided; SIZE_MAX: with all, or an error said so */
    uint64_t *behind;            /* by depth: combinations of the zips from there on */
    size_t most;
    uint64_t visits;
    struct selection *selection;
};

/* With how many zips a constraint is decided; SIZE_MAX: it asks for what follows from whole points. */
static size_t depth_of(const struct points *points, const struct constraint *constraint)
{
    size_t depth = 0, names = points->axes.count + points->nderived + points->lookups.count;

    for (size_t name = 0; name < names; name++) {
        bool uses = constraint->expression && expression_uses(constraint->expression, (int)name);

        for (size_t i = 0; i < constraint->count; i++)
            uses |= constraint->names[i] == name;
        if (uses && name >= points->axes.count &&
            (name < points->axes.count + points->nderived ||
             points->lookups.items[name - points->axes.count - points->nderived].resolved))
            return SIZE_MAX;
        if (uses && name < points->axes.count && points_zip_of(points, name) + 1 > depth)
            depth = points_zip_of(points, name) + 1;
    }
    return depth;
}

/* Whether it is asked with so many zips: where it is decided, or, of a rule of its own, where one more of its axes is known. */
static bool is_asked(const struct walk *walk, size_t c, size_t depth)
{
    const struct points *points = walk->moment.points;
    const struct constraint *constraint = &points->constraints.items[c];
    bool reads = false;

    if (!constraint->asks || !constraint->count)
        return walk->depths[c] == depth;
    for (size_t i = 0; i < constraint->count && depth; i++)
        reads |= points_zip_of(points, constraint->names[i]) == depth - 1;
    return reads;
}

/* Whether a constraint drops all combinations that begin so. One that fails is asked again of each whole point that is left,
 * whose message it then is. */
static bool drops_all(struct walk *walk, size_t depth)
{
    const struct points *points = walk->moment.points;

    for (size_t c = 0; c < points->constraints.count; c++) {
        struct error found = {0};
        bool dropped = false;

        if (!is_asked(walk, c, depth))
            continue;
        if (moment_drops(&walk->moment, &points->constraints.items[c], &dropped, &found))
            walk->depths[c] = SIZE_MAX, dropped = false;
        error_release(&found);
        if (!dropped)
            continue;
        walk->selection->dropped[c] += walk->behind[depth];
        walk->selection->looked += walk->behind[depth];
        return true;
    }
    return false;
}

static int walk_on(struct walk *walk, size_t depth, uint64_t number, struct error *err)
{
    const struct points *points = walk->moment.points;

    walk->moment.chosen = depth;
    if (walk->visits++ == POINTS_LOOKED)
        return too_many(points, err);
    if (drops_all(walk, depth))
        return 0;
    if (depth == points->zips.count)
        return consider(&walk->moment, number, walk->depths, walk->most, walk->selection, err);
    for (size_t i = 0; i < points->zips.items[depth].length; i++) {
        walk->moment.choice[depth] = i;
        if (walk_on(walk, depth + 1, number * points->zips.items[depth].length + i, err))
            return -1;
    }
    return 0;
}

/* Keeps all combinations that no constraint drops. */
static int walk_all(const struct points *points, size_t most, struct selection *selection, struct error *err)
{
    size_t depth = points->zips.count, constraints = points->constraints.count;
    struct walk walk = {.most = most, .selection = selection, .depths = xcalloc(constraints + 1, sizeof *walk.depths),
                        .behind = xcalloc(depth + 1, sizeof *walk.behind)};
    int rc;

    moment_init(&walk.moment, points);
    for (size_t c = 0; c < constraints; c++)
        walk.depths[c] = depth_of(points, &points->constraints.items[c]);
    for (walk.behind[depth] = 1; depth-- > 0;)
        walk.behind[depth] = walk.behind[depth + 1] * points->zips.items[depth].length;
    rc = walk_on(&walk, 0, 0, err);
    moment_release(&walk.moment);
    free(walk.depths);
    free(walk.behind);
    return rc;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

int points_select(const struct points *points, size_t most, struct selection *selection, struct error *err)
{
    uint64_t combinations = points_combinations(points);
    size_t wanted = points->sample ? (size_t)points->sample : SIZE_MAX;
    struct moment moment;
    int rc = 0;

    *selection = (struct selection){.dropped = xcalloc(points->constraints.count, sizeof *selection->dropped)};
    if (combinations == UINT64_MAX || (!points->sample && !points->constraints.count && combinations > POINTS_LOOKED))
        return too_many(points, err);
    if (!points->sample && combinations)
        rc = walk_all(points, most, selection, err);
    moment_init(&moment, points);
    for (uint64_t i = 0; !rc && points->sample && i < combinations && selection->count < wanted; i++) {
        uint64_t number = points->sample ? random_permuted((uint64_t)points->seed, i, combinations) : i;

        if (i == POINTS_LOOKED)
            rc = error_add(err, EXIT_INPUT, points->loc, "of %d combinations that were drawn %zu remain; expected %d "
                           "(sample): where and exclude drop nearly all", POINTS_LOOKED, selection->count,
                           points->sample);
        else
            rc = consider(&moment, number, NULL, most, selection, err);
    }
    moment_release(&moment);
    array_sort(selection->items, selection->count, sizeof *selection->items, compare_numbers);
    for (size_t i = 0; i < points->nincluded && !rc; i++)
        *GROW(selection) = combinations + i;
    return rc;
}

void selection_release(struct selection *selection)
{
    free(selection->items);
    free(selection->dropped);
    *selection = (struct selection){0};
}
