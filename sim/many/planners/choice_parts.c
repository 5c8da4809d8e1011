/* What the planners' questions share: a choice, what runs it, and what it says. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/base.h"
#include "planners/choice_internal.h"

int choice_samples(const struct profiled *profiled)
{
    return profiled->scenario->batch.global;
}

struct planner_layer *choice_layers(struct planner_choices *choices, const struct profiled *profiled, size_t k)
{
    struct planner_layer *layers = ARENA_ARRAY(&choices->arena, struct planner_layer, profiled->count);

    for (size_t i = 0; i < profiled->count; i++) {
        const struct profiled_layer *layer = &profiled->layers[k][i];

        layers[i] = (struct planner_layer){layer->forward + layer->backward, layer->weights,
                                           profiled_output(profiled, k, i)};
    }
    return layers;
}

bool choice_runs(const struct profiled *profiled, const struct planned *planned, bool divides)
{
    for (size_t i = 1; i < planned->count; i++)
        if (planned->stages[i].data != planned->stages[0].data ||
            planned->stages[i].tensor != planned->stages[0].tensor)
            return false;
    return planned->count > 0 && (!divides || profiled_divides(profiled, planned->stages[0].data));
}

/* "layers x replicas" of each stage; equal neighbours once, with how many they are. */
static char *stages_text(struct arena *arena, const struct planned *planned)
{
    char *text = arena_strdup(arena, planned->count ? "" : "none");

    for (size_t i = 0, next; i < planned->count; i = next) {
        const struct planned_stage *stage = &planned->stages[i];
        size_t layers = stage->end - stage->begin;

        for (next = i + 1; next < planned->count; next++) {
            const struct planned_stage *other = &planned->stages[next];

            if (other->end - other->begin != layers || other->data != stage->data || other->tensor != stage->tensor ||
                other->recomputed != stage->recomputed)
                break;
        }
        text = arena_printf(arena, "%s%s", text, i ? " + " : "");
        if (next > i + 1)
            text = arena_printf(arena, "%s%zu x ", text, next - i);
        text = arena_printf(arena, "%s(%zu layer%s", text, layers, layers == 1 ? "" : "s");
        if (stage->recomputed)
            text = arena_printf(arena, "%s, %zu recomputed", text, stage->recomputed);
        text = arena_printf(arena, "%s on %d", text, stage->data);
        text = arena_printf(arena, stage->tensor > 1 ? "%s x %d)" : "%s)", text, stage->tensor);
    }
    return text;
}

struct planner_choice *choice_add(struct planner_choices *choices, const char *method, const char *form,
                                  const char *meaning, const struct planned *planned)
{
    struct planner_choice *choice = GROW(choices);

    *choice = (struct planner_choice){
        .method = method,
        .form = form,
        .objective = planned->objective,
        .meaning = meaning,
        .stages = stages_text(&choices->arena, planned),
        .reason = planned->count ? NULL : "no plan fits",
        .seconds = NAN,
        .samples_per_s = NAN,
        .memory = NAN,
    };
    for (size_t i = 0; i < planned->count; i++)
        choice->gpus += planned->stages[i].data * planned->stages[i].tensor;
    return choice;
}

void choice_set(struct planner_choices *choices, const char *format, ...)
{
    struct planner_choice *choice = &choices->items[choices->count - 1];
    va_list args;
    char *text;

    va_start(args, format);
    text = xvprintf(format, args);
    va_end(args);
    BUG_IF(choice->nsets == CHOICE_SETS);
    choice->sets[choice->nsets++] = arena_strdup(&choices->arena, text);
    free(text);
}

void choice_split(struct planner_choices *choices, const struct profiled *profiled, const struct planned *planned)
{
    char *text = arena_strdup(&choices->arena, "");

    for (size_t s = 0; s < planned->count; s++) {
        int blocks = 0;

        for (size_t i = planned->stages[s].begin; i < planned->stages[s].end; i++)
            blocks += profiled->layers[0][i].block;
        text = arena_printf(&choices->arena, "%s%s%d", text, s ? ", " : "", blocks);
    }
    choice_set(choices, "strategy.split=[%s]", text);
}

static void set_flushed(struct planner_choices *choices, const struct profiled *profiled, const struct planned *planned,
                        bool divides)
{
    size_t layers = 0, recomputed = 0;
    int data = planned->stages[0].data;

    for (size_t s = 0; s < planned->count; s++) {
        layers += planned->stages[s].end - planned->stages[s].begin;
        recomputed += planned->stages[s].recomputed;
    }
    choice_set(choices, "strategy.schedule=1f1b");
    choice_set(choices, "strategy.pipeline=%zu", planned->count);
    choice_set(choices, "strategy.data=%d", data);
    choice_set(choices, "strategy.tensor=%d", planned->stages[0].tensor);
    choice_set(choices, "batch.micro=%d", divides ? profiled->micro / data : profiled->micro);
    choice_split(choices, profiled, planned);
    if (recomputed)
        choice_set(choices, "memory.recompute=%s", recomputed == layers ? "full" : "optimal");
}

void choice_flushed(struct planner_choices *choices, const struct profiled *profiled, const struct flushed *flushed,
                    const struct planned *planned, const struct planned *other)
{
    const char *form = *flushed->form ? arena_printf(&choices->arena, "%s, runs here", flushed->form) : "runs here";
    struct planner_choice *choice = choice_add(choices, flushed->method, flushed->form, flushed->meaning, planned);

    if (choice_runs(profiled, planned, flushed->divides)) {
        set_flushed(choices, profiled, planned, flushed->divides);
    } else if (planned->count) {
        choice->reason = choice_runs(profiled, planned, false) ?
                             "its replicas do not divide a micro-batch" :
                             "its stages have unequal degrees, which no schedule here runs";
        choice_add(choices, flushed->method, form, flushed->meaning, other);
        if (other->count)
            set_flushed(choices, profiled, other, flushed->divides);
    }
}
