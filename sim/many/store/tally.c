#include "store/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "base/units.h"
#include "report/outcome.h"

static void put_text(char **text, const char *value)
{
    free(*text);
    *text = strcpy(xrealloc(NULL, strlen(value) + 1, 1), value);
}

static struct tally_cause *cause_find(struct tally_causes *causes, const char *name)
{
    struct tally_cause *cause;

    for (size_t i = 0; i < causes->count; i++)
        if (!strcmp(causes->items[i].name, name))
            return &causes->items[i];
    cause = GROW(causes);
    *cause = (struct tally_cause){.margin = -INFINITY};
    put_text(&cause->name, name);
    return cause;
}

static const char *row_text(const json_t *row, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(row, key));

    return text ? text : otherwise;
}

static void cause_add(struct tally_cause *cause, const json_t *row, const char *point)
{
    const json_t *found = json_object_get(json_object_get(row, "metrics"), "memory_margin_bytes");
    double margin = json_is_number(found) ? json_number_value(found) : -INFINITY;

    if (!cause->count++ || strverscmp(point, cause->first) < 0)
        put_text(&cause->first, point);
    if (cause->reason && (margin < cause->margin || (margin == cause->margin && strverscmp(point, cause->point) > 0)))
        return;
    cause->margin = margin;
    put_text(&cause->point, point);
    put_text(&cause->reason, row_text(row, "reason", ""));
}

void tally_add(struct tally *tally, const json_t *row, const char *point)
{
    enum outcome outcome = outcome_of(row);

    tally->rows++;
    tally->ended[outcome]++;
    if (outcome == OUTCOME_INFEASIBLE)
        cause_add(cause_find(&tally->rules, row_text(row, "rule", "other")), row, point);
    else if (outcome != OUTCOME_OK && outcome < OUTCOME_COUNT)
        cause_add(cause_find(&tally->failures, outcome_names[outcome]), row, point);
}

static void cause_print(const struct tally_cause *cause, FILE *out)
{
    char text[48];

    fprintf(out, "  %-10s %zu", cause->name, cause->count);
    if (isfinite(cause->margin))
        fprintf(out, ", the nearest lacks %s", unit_format_short(UNIT_BYTES, -cause->margin, text, sizeof text));
    fputs(*cause->reason ? ", such as: " : "", out);
    text_write(TEXT_LINE, cause->reason, out);
    fputc('\n', out);
}

static int compare_causes(const void *a, const void *b)
{
    const struct tally_cause *x = a, *y = b;
    int order = strverscmp(x->first, y->first);

    return order ? order : strcmp(x->name, y->name);
}

static void causes_print(struct tally_causes *causes, const char *title, FILE *out)
{
    if (!causes->count)
        return;
    fprintf(out, "%s\n", title);
    array_sort(causes->items, causes->count, sizeof *causes->items, compare_causes);
    for (size_t i = 0; i < causes->count; i++)
        cause_print(&causes->items[i], out);
}

size_t tally_failed(const struct tally *tally)
{
    size_t failed = 0;

    for (enum outcome outcome = 0; outcome < OUTCOME_COUNT; outcome++)
        failed += outcome_failed(outcome) ? tally->ended[outcome] : 0;
    return failed;
}

void tally_print_failed(const struct tally *tally, FILE *out)
{
    fprintf(out, "%zu of %zu points failed: one of them may be better than all others; the same search with --retry-failed runs them again",
            tally_failed(tally), tally->rows);
}

void tally_print(struct tally *tally, FILE *out)
{
    fprintf(out, "%zu point%s:", tally->rows, tally->rows == 1 ? "" : "s");
    for (int status = 0, said = 0; status < OUTCOME_COUNT; status++)
        if (tally->ended[status])
            fprintf(out, "%s %zu %s", said++ ? "," : "", tally->ended[status], outcome_names[status]);
    fputc('\n', out);
    causes_print(&tally->rules, "infeasible by rule", out);
    causes_print(&tally->failures, "not simulated", out);
    if (tally_failed(tally)) {
        tally_print_failed(tally, out);
        fputc('\n', out);
    }
}

static void causes_release(struct tally_causes *causes)
{
    for (size_t i = 0; i < causes->count; i++) {
        free(causes->items[i].name);
        free(causes->items[i].first);
        free(causes->items[i].point);
        free(causes->items[i].reason);
    }
    free(causes->items);
}

void tally_release(struct tally *tally)
{
    causes_release(&tally->rules);
    causes_release(&tally->failures);
    *tally = (struct tally){0};
}
