#include "cli/plan_methods.h"

#include <math.h>
#include <string.h>

#include "base/cache.h"
#include "base/sheet.h"
#include "cli/said.h"
#include "files/json.h"
#include "planners/choice.h"
#include "scenario/scenario.h"
#include "view/say.h"
#include "view/view.h"

static json_t *sets_json(const struct planner_choice *choice)
{
    json_t *sets = json_array();

    for (size_t s = 0; s < choice->nsets; s++)
        json_append(sets, json_words(choice->sets[s]));
    return sets;
}

/* " --set PATH=VALUE ..."; null: none. */
static json_t *arguments_json(const struct planner_choice *choice)
{
    struct arena arena = {0};
    const char *text = "";
    json_t *json;

    for (size_t s = 0; s < choice->nsets; s++)
        text = arena_printf(&arena, strchr(choice->sets[s], ' ') ? "%s --set '%s'" : "%s --set %s", text, choice->sets[s]);
    json = json_words_or_null(text);
    arena_release(&arena);
    return json;
}

#define CHOICE(ROW) \
    ROW(method, json_words(it->method), "the planner") \
    ROW(form, json_words(it->form), "paper, released, or empty where they are one; runs here: the best that does") \
    ROW(objective_s, json_finite(it->objective), "the planner's; null: it found no plan") \
    ROW(objective, json_words(it->meaning), "what that is") \
    ROW(stages, json_words(it->stages), "layers on replicas x tensor") \
    ROW(gpus, json_integer(it->gpus), "that it takes") \
    ROW(sets, sets_json(it), "a list of PATH=VALUE, of which the scenario gets the plan") \
    ROW(iteration_time_s, json_finite(it->seconds), "simulated here; null: it was not") \
    ROW(samples_per_s, json_finite(it->samples_per_s), "the same") \
    ROW(peak_memory_bytes, json_finite(it->memory), "the same, of the fullest GPU") \
    ROW(reason, json_words_or_null(it->reason), "why it was not simulated, or how that ended; null: it fits") \
    ROW(arguments, arguments_json(it), NULL) \
    ROW(unsimulated, json_words_or_null(isnan(it->seconds) ? it->reason : NULL), NULL)
VIEW_SHARED(choice_view, struct planner_choice, it, CHOICE)

static const struct say_column columns[] = {
    {"method", NULL, "{method}"},
    {"form", NULL, "[?form {form}|-]"},
    {"stages (layers on replicas x tensor)", NULL, "{stages}"},
    {"objective", NULL, "{objective_s}"},
    {"GPUs", NULL, "{gpus:%.0f}"},
    {NULL, NULL, "{unsimulated}"},
    {"iteration", NULL, "{iteration_time_s}"},
    {"samples/s", NULL, "{samples_per_s}"},
    {"memory", NULL, "[?reason no: ]{peak_memory_bytes}"},
};

static void print_table(const struct planner_choices *choices, bool markdown, FILE *out)
{
    struct sheet sheet = {.left = 3, .all = true};
    json_t *list = json_array();

    for (size_t i = 0; i < choices->count; i++)
        json_append(list, view_facts(&choice_view, &choices->items[i]));
    say_table(list, columns, COUNT(columns), &sheet, markdown, out);
    if (!markdown) {
        say_each(list, "\n{method}[?form , {form}]: time {objective}; dtsim run SCENARIO{arguments}[\n  {reason}]", out);
        fputc('\n', out);
    }
    json_decref(list);
}

const char *plan_method_name(size_t i)
{
    return i == 0 ? "all" : planner_method_at(i - 1) ? planner_method_at(i - 1)->name : NULL;
}

int plan_methods(struct scenario *scenario, const char *method, enum methods_format format, struct error *err)
{
    struct planner_choices choices = {0};
    struct cache cache = {0};
    bool fits = false;
    int code;

    cache_init(&cache, CACHE_BYTES);
    scenario->arena.cache = &cache;
    if (!err->count &&
        !planners_choose(scenario, strcmp(method, "all") ? method : NULL, &choices, err)) {
        for (size_t i = 0; i < choices.count; i++)
            fits |= !choices.items[i].reason;
        if (format == METHODS_JSON)
            json_print_all(view_list(&choice_view, choices.items, choices.count, sizeof *choices.items), stdout);
        else
            print_table(&choices, format == METHODS_MARKDOWN, stdout);
    }
    planners_release(&choices);
    scenario_release(scenario);
    cache_release(&cache);
    code = report_as(err, format == METHODS_JSON);
    return code ? code : fits ? EXIT_OK : EXIT_INFEASIBLE;
}
