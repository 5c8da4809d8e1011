/* What charts of several runs share: names that tell the runs apart, and curves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"

const char *last_part(struct arena *arena, const char *path)
{
    size_t length = strlen(path);
    const char *slash;

    while (length > 1 && path[length - 1] == '/')
        length--;
    path = arena_strndup(arena, path, length);
    slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static bool is_shared(const struct chart *chart, int run)
{
    for (int i = 0; i < chart->ninputs; i++)
        if (i != run && strcmp(chart->runs[i].name, chart->runs[run].name) == 0)
            return true;
    return false;
}

const char *noted(const struct chart *chart, const char *note)
{
    const char *model = chart->runs[0].model;

    for (int i = 1; i < chart->ninputs; i++)
        if (strcmp(chart->runs[i].model, model))
            model = "";
    if (*model && *note)
        return arena_printf(chart->arena, "%s; %s", model, note);
    return *model ? model : *note ? note : NULL;
}

const char *const *run_labels(const struct chart *chart)
{
    enum { LONGEST = 48 };
    const char **labels = ARENA_ARRAY(chart->arena, const char *, chart->ninputs + 1);

    for (int i = 0; i < chart->ninputs; i++)
        labels[i] = text_clean(chart->arena, is_shared(chart, i) ? last_part(chart->arena, chart->inputs[i]) :
                               chart->runs[i].name, LONGEST);
    for (int i = 0; i < chart->ninputs && strcmp(chart->format, "svg") != 0; i++)
        labels[i] = text_drawable(chart->arena, labels[i]);
    return labels;
}
