#include "lower/window.h"

#include <stdlib.h>

#include "base/base.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* The whole iteration; or the steady state, leaving out the first quarter of the updates that rank 0 makes before its
 * last forward. Too few of them: everything, which says that it is not steady. */
struct window window_of(const struct scenario *scenario, const struct timeline *timeline)
{
    const struct program *program = timeline->program;
    int steps = scenario->parallelism.local_steps;
    struct window window = {.to = timeline_length(timeline), .updates = steps, .all = steps};
    struct { double *items; size_t count, capacity; } ends = {0};
    double last_forward = 0;

    if (!scenario_schedule(scenario)->asynchronous)
        return window;
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        if (program->lanes.items[op->lane].rank != 0)
            continue;
        if (op->what == WHAT_FORWARD)
            last_forward = timeline->start[i];
        if (op->what == WHAT_UPDATE)
            *GROW(&ends) = timeline->end[i];
    }
    window.updates = window.all = (int)ends.count;
    size_t steady = 0;
    while (steady < ends.count && ends.items[steady] <= last_forward)
        steady++;
    if (steady >= 2 && ends.items[steady - 1] > ends.items[steady / 4])
        window = (struct window){ends.items[steady / 4], ends.items[steady - 1], (int)(steady - 1 - steady / 4),
                                 (int)ends.count, true};
    free(ends.items);
    return window;
}

double window_update(const struct window *window)
{
    return (window->to - window->from) / window->updates;
}
