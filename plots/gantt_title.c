/* The Gantt chart: what stands above it, and above each of several runs. */
#include "gantt.h"

#include <math.h>
#include <string.h>

enum { EM = 14 };                    /* pixels of an em of a heading, with some room */

/* "A; B"; an empty text adds nothing. */
static const char *joined(const struct chart *chart, const char *text, const char *more)
{
    return !*text ? more : !*more ? text : arena_printf(chart->arena, "%s; %s", text, more);
}

/* Of which run something is true. */
enum mark { MARK_SHADED, MARK_BAND, MARK_STEADY, MARK_STRAGGLER };
static bool is_there(const struct gantt_stack *stack, enum mark mark)
{
    for (int r = 0; r < stack->count; r++) {
        const struct gantt *gantt = &stack->runs[r];
        bool band = false, straggler = false;

        for (size_t i = 0; i < gantt->boxes.count; i++)
            band |= gantt->boxes.items[i].lane == gantt->compute && gantt->boxes.items[i].communication > 0;
        for (int i = 0; i < gantt->nrows; i++)
            straggler |= gantt->rows[i].slower > 1;
        if ((mark == MARK_SHADED && gantt->shaded) || (mark == MARK_BAND && band) ||
            (mark == MARK_STEADY && gantt->steady_to > gantt->steady_from) || (mark == MARK_STRAGGLER && straggler))
            return true;
    }
    return false;
}

/* "lanes below a rank, downwards: send-next, send-previous"; "collective with host" of lanes that share a strip. */
static const char *lanes_text(const struct chart *chart, const struct gantt_stack *stack)
{
    const char *text = "";

    for (int i = 0; i < stack->nlanes; i++) {
        const char *name = arena_strndup(chart->arena, stack->lanes[i], strcspn(stack->lanes[i], "."));

        text = arena_printf(chart->arena, "%s%s%s", i ? text : "lanes below a rank, downwards: ",
                            !i ? "" : i < GANTT_STRIPS ? ", " : " with ", text_label(chart->arena, name));
    }
    return text;
}

/* What a reader must know of the picture beside the colours. */
static const char *legend_text(const struct chart *chart, const struct gantt_stack *stack)
{
    double column = 0;
    const struct time_unit *unit;
    const char *text = "";

    for (int r = 0; r < stack->count; r++)
        column = fmax(column, stack->runs[r].column);
    unit = time_unit_for(column);
    if (column > 0)
        text = arena_printf(chart->arena, "work shorter than %.3g %s is gathered by kind", column * unit->per_second,
                            unit->label);
    if (is_there(stack, MARK_SHADED))
        text = joined(chart, text, "darker: every second stage of a rank");
    if (is_there(stack, MARK_BAND))
        text = joined(chart, text, "at the foot of a work: its share that is communication");
    text = joined(chart, text, lanes_text(chart, stack));
    if (is_there(stack, MARK_STRAGGLER))
        text = joined(chart, text, "×: a straggler, with the factor by which its kernels take longer");
    if (is_there(stack, MARK_STEADY))
        text = joined(chart, text, "the iteration is the mean of those in the steady state");
    return text;
}

void gantt_title(const struct chart *chart, const struct gantt_stack *stack, struct layout *layout)
{
    const char *legend = legend_text(chart, stack);

    if (stack->count == 1) {
        const char *note = joined(chart, stack->runs->note ? stack->runs->note : "", legend);

        layout_title(chart, layout, *note ? note : NULL);
        return;
    }
    layout->title = arena_printf(chart->arena, "%d runs on one time axis", stack->count);
    layout->lines[0] = noted(chart, legend);
}

const char *gantt_heading(const struct chart *chart, const struct gantt_stack *stack, int run, const char *label,
                          double pixels)
{
    const struct headline *result = &chart->runs[run];
    const struct time_unit *unit = time_unit_for(result->iteration);
    const char *note = stack->runs[run].note ? stack->runs[run].note : "";
    const char *time = arena_printf(chart->arena, "%s: iteration %.4g %s%s", label, result->iteration * unit->per_second,
                                    unit->label, headline_unfit(chart->arena, result));
    const char *usual = arena_printf(chart->arena, "%s, bubble %.1f %%", time, 100 * fmax(result->bubble, 0));
    const char *const headings[] = {joined(chart, usual, note), usual, time, label};

    for (size_t i = 0; i < COUNT(headings); i++)
        if (text_ems(headings[i]) * EM <= pixels)
            return headings[i];
    return text_clean(chart->arena, label, (size_t)(pixels / EM));
}
