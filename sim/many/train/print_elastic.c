/* What is printed of a training that goes on with fewer nodes. */
#include "train/training.h"

#include "base/units.h"

enum { SHAPES_PRINTED = 8 };

static void print_replicas(int replicas, int stages, FILE *out)
{
    fprintf(out, "%d replica%s of %d stage%s", replicas, replicas == 1 ? "" : "s", stages, stages == 1 ? "" : "s");
}

static void print_shape(const struct shape *shape, FILE *out)
{
    char text[48];

    fprintf(out, "  %d node%s: ", shape->nodes, shape->nodes == 1 ? "" : "s");
    print_replicas(shape->replicas - shape->deep, shape->pipeline, out);
    if (shape->deep) {
        fputs(" and ", out);
        print_replicas(shape->deep, shape->deep_pipeline, out);
    }
    fprintf(out, ", a step takes %s", unit_format_short(UNIT_TIME, shape->seconds, text, sizeof text));
    if (shape->holed_seconds > 0)
        fprintf(out, ", with a lost neighbour's work %s",
                unit_format_short(UNIT_TIME, shape->holed_seconds, text, sizeof text));
    fputc('\n', out);
}

/* The largest first. */
void training_print_elastic(const struct training *training, FILE *out)
{
    const struct course *course = &training->course;
    int printed = 0, more = 0;

    if (!course->shrunk)
        return;
    fputs("on fewer nodes\n", out);
    for (int nodes = course->shapes.nodes - !course->holed; nodes > 0; nodes--) {
        const struct shape *shape = &course->shapes.on[nodes];

        if (shape->nodes != nodes || printed == SHAPES_PRINTED) {
            more += shape->nodes == nodes;
            continue;
        }
        print_shape(shape, out);
        printed++;
    }
    if (more)
        fprintf(out, "  and %d more shapes (--json)\n", more);
    if (!printed)
        fputs("  it waits: none of fewer replicas runs\n", out);
}

const char *training_elastic_note(const struct training *training)
{
    static const char *const notes[] = {
        [ELASTIC_VARUNA] =
            "on fewer nodes the batch stays as it is, idle nodes do not fail, GPU-hours are of the nodes that train, "
            "and nodes that come back are taken when the next checkpoint is finished",
        [ELASTIC_REDUNDANCY] =
            "redundancy: the neighbour of a lost node does the work of both, and all wait for it; holes are filled "
            "after the step in which nodes come back; the work since the last checkpoint is lost where two "
            "neighbours are",
        [ELASTIC_TEMPLATES] =
            "templates: a loss costs the step under way, not the work since the last checkpoint, unless all replicas "
            "lose the same layers at once; at most two numbers of stages stand side by side",
        [ELASTIC_LIVEPUT] =
            "liveput: the nodes of the time ahead are known exactly, where Parcae predicts them; a loss costs the "
            "step under way, unless all replicas lose the same stage at once",
    };

    return notes[training->scenario->train->elastic->system];
}

bool training_keeps_work(const struct training *training)
{
    const struct elastic_spec *elastic = training->scenario->train->elastic;

    return elastic && elastic->system != ELASTIC_VARUNA;
}

int training_faster_shape(const struct training *training)
{
    const struct shapes *shapes = &training->course.shapes;

    for (int nodes = 1; training->course.shrunk && nodes < shapes->nodes; nodes++)
        if (shapes->on[nodes].nodes == nodes && shapes->on[nodes].seconds < shapes->on[shapes->nodes].seconds)
            return nodes;
    return 0;
}
