/* The published run whose work is nearest to a prediction's. */
#include <math.h>

#include "base/base.h"
#include "evidence/evidence_internal.h"

static const struct evidence_row *find_nearest(const struct evidence *evidence, const struct likeness *likeness)
{
    const struct evidence_row *nearest = NULL;
    double sizes[EVIDENCE_SIZES], most = 0;

    evidence_sizes(likeness, sizes);
    for (size_t i = 0; evidence && i < evidence->runs.rows.count; i++) {
        const struct evidence_row *row = &evidence->runs.rows.items[i];
        double weight = evidence_kind_weight(likeness, &evidence->kinds.items[row->kind]) *
                        evidence_size_weight(row, likeness, sizes);

        if (weight <= most)
            continue;
        most = weight;
        nearest = row;
    }
    return nearest;
}

static char *add_name(struct arena *arena, char *text, const char *noun, const char *own, const char *other)
{
    if (text_same(own, other))
        return text;
    return arena_printf(arena, "%s%s%s %s, not %s", text, *text ? ", " : "", noun, other, own);
}

/* What a likeness's `adapters` says that is trained. */
static const char *trained(const char *adapters)
{
    return !*adapters ? "all weights" : text_same(adapters, "lora") ? "adapters" : "adapters of weights in four bits";
}

static char *add_size(struct arena *arena, char *text, const char *noun, double own, double other)
{
    if (fabs(own - other) <= ALIKE_DOUBLINGS)
        return text;
    return arena_printf(arena, "%s%s%.0f %s, not %.0f", text, *text ? ", " : "", exp2(other), noun, exp2(own));
}

const char *evidence_nearest(struct arena *arena, const struct evidence *evidence, const struct likeness *likeness)
{
    const struct evidence_row *row = find_nearest(evidence, likeness);
    const struct likeness *kind;
    double sizes[EVIDENCE_SIZES];
    char *text = arena_strdup(arena, "");

    if (!row)
        return NULL;
    kind = &evidence->kinds.items[row->kind];
    evidence_sizes(likeness, sizes);
    text = add_name(arena, text, "software", likeness->software, kind->software);
    text = add_name(arena, text, "kernel times", likeness->costs, kind->costs);
    if (!evidence_same_format(likeness->format, kind->format))
        text = add_name(arena, text, "format", likeness->format, kind->format);
    text = add_name(arena, text, "schedule", likeness->schedule, kind->schedule);
    text = add_name(arena, text, "it trains", trained(likeness->adapters), trained(kind->adapters));
    text = add_name(arena, text, "the optimizer is", *likeness->optimizer ? likeness->optimizer : "element-wise",
                    *kind->optimizer ? kind->optimizer : "element-wise");
    text = add_name(arena, text, "a model", likeness->experts > 0 ? "with experts" : "without experts",
                    kind->experts > 0 ? "with experts" : "without experts");
    if (*likeness->dispatch && *kind->dispatch)
        text = add_name(arena, text, "tokens are dispatched by", likeness->dispatch, kind->dispatch);
    text = add_size(arena, text, "GPUs", sizes[EVIDENCE_GPUS], row->sizes[EVIDENCE_GPUS]);
    text = add_size(arena, text, "tokens a sample", sizes[EVIDENCE_SEQUENCE], row->sizes[EVIDENCE_SEQUENCE]);
    text = add_size(arena, text, "tokens a micro-batch", sizes[EVIDENCE_TOKENS], row->sizes[EVIDENCE_TOKENS]);
    return arena_printf(arena, "the nearest is %s of %s%s%s%s", row->name.row, row->name.table, *text ? " (" : "", text,
                        *text ? ")" : "");
}
