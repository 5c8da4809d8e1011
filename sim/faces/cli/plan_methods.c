#include "cli/plan_methods.h"

#include <math.h>
#include <string.h>

#include "base/cache.h"
#include "base/sheet.h"
#include "base/text.h"
#include "files/json.h"
#include "planners/choice.h"
#include "scenario/scenario.h"

static const char *unit_text(enum unit unit, double value, char *text, size_t size)
{
    if (!isfinite(value))
        return "-";
    if (unit == UNIT_NUMBER)
        snprintf(text, size, value < 9999.5 ? "%.4g" : "%.0f", value);
    else
        unit_format_short(unit, value, text, size);
    return text;
}

static void add_row(struct sheet *sheet, const struct planner_choice *choice)
{
    char text[64], count[16];

    sheet_add(sheet, choice->method);
    sheet_add(sheet, *choice->form ? choice->form : "-");
    sheet_add(sheet, choice->stages);
    sheet_add(sheet, unit_text(UNIT_TIME, choice->objective, text, sizeof text));
    snprintf(count, sizeof count, "%d", choice->gpus);
    sheet_add(sheet, count);
    if (isnan(choice->seconds)) {
        sheet_add_rest(sheet, choice->reason);
        return;
    }
    sheet_add(sheet, unit_text(UNIT_TIME, choice->seconds, text, sizeof text));
    sheet_add(sheet, unit_text(UNIT_NUMBER, choice->samples_per_s, text, sizeof text));
    snprintf(text, sizeof text, "%s", choice->reason ? "no: " : "");
    unit_format_short(UNIT_BYTES, choice->memory, text + strlen(text), sizeof text - strlen(text));
    sheet_add(sheet, text);
}

static void print_table(const struct planner_choices *choices, bool markdown, FILE *out)
{
    static const char *const titles[] = {"method",    "form",  "stages (layers on replicas x tensor)",
                                         "objective", "GPUs",  "iteration",
                                         "samples/s", "memory"};
    struct sheet sheet = {.left = 3, .all = true};

    for (size_t i = 0; i < COUNT(titles); i++)
        sheet_head(&sheet, titles[i], NULL);
    for (size_t i = 0; i < choices->count; i++)
        add_row(&sheet, &choices->items[i]);
    sheet_print(&sheet, markdown, out);
    sheet_release(&sheet);
    if (markdown)
        return;
    for (size_t i = 0; i < choices->count; i++) {
        const struct planner_choice *choice = &choices->items[i];

        if (!choice->nsets)
            continue;
        fprintf(out, "\n%s%s%s: time %s; dtsim run SCENARIO", choice->method, *choice->form ? ", " : "", choice->form,
                choice->meaning);
        for (size_t s = 0; s < choice->nsets; s++)
            fprintf(out, strchr(choice->sets[s], ' ') ? " --set '%s'" : " --set %s", choice->sets[s]);
        if (choice->reason) {
            fputs("\n  ", out);
            text_write(TEXT_LINE, choice->reason, out);
        }
    }
    fputc('\n', out);
}

static void print_json(const struct planner_choices *choices, FILE *out)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < choices->count; i++) {
        const struct planner_choice *choice = &choices->items[i];
        json_t *json = json_object(), *sets = json_array();

        for (size_t s = 0; s < choice->nsets; s++)
            json_append(sets, json_words(choice->sets[s]));
        json_put(json, "method", json_words(choice->method));
        json_put(json, "form", json_words(choice->form));
        json_put(json, "objective_s", json_finite(choice->objective));
        json_put(json, "objective", json_words(choice->meaning));
        json_put(json, "stages", json_words(choice->stages));
        json_put(json, "gpus", json_integer(choice->gpus));
        json_put(json, "sets", sets);
        json_put(json, "iteration_time_s", json_finite(choice->seconds));
        json_put(json, "samples_per_s", json_finite(choice->samples_per_s));
        json_put(json, "peak_memory_bytes", json_finite(choice->memory));
        json_put(json, "reason", choice->reason ? json_words(choice->reason) : json_null());
        json_append(rows, json);
    }
    json_print(rows, out);
    json_decref(rows);
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
            print_json(&choices, stdout);
        else
            print_table(&choices, format == METHODS_MARKDOWN, stdout);
    }
    planners_release(&choices);
    scenario_release(scenario);
    cache_release(&cache);
    code = report_as(err, format == METHODS_JSON);
    return code ? code : fits ? EXIT_OK : EXIT_INFEASIBLE;
}
