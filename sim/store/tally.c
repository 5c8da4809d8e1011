#include "store/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

static void put_text(char **text, const char *value)
{
    free(*text);
    *text = strcpy(xrealloc(NULL, strlen(value) + 1, 1), value);
}

static struct tally_rule *rule_find(struct tally *tally, const char *name)
{
    struct tally_rule *rule;

    for (size_t i = 0; i < tally->rules.count; i++)
        if (!strcmp(tally->rules.items[i].rule, name))
            return &tally->rules.items[i];
    rule = GROW(&tally->rules);
    *rule = (struct tally_rule){.margin = -INFINITY};
    put_text(&rule->rule, name);
    return rule;
}

static const char *row_text(const json_t *row, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(row, key));

    return text ? text : otherwise;
}

static void rule_add(struct tally_rule *rule, const json_t *row, const char *point)
{
    const json_t *found = json_object_get(json_object_get(row, "metrics"), "memory_margin_bytes");
    double margin = json_is_number(found) ? json_number_value(found) : -INFINITY;

    if (!rule->count++ || strverscmp(point, rule->first) < 0)
        put_text(&rule->first, point);
    if (rule->reason && (margin < rule->margin || (margin == rule->margin && strverscmp(point, rule->point) > 0)))
        return;
    rule->margin = margin;
    put_text(&rule->point, point);
    put_text(&rule->reason, row_text(row, "reason", ""));
}

void tally_add(struct tally *tally, const json_t *row, const char *point)
{
    enum outcome outcome = outcome_of(row);

    tally->rows++;
    tally->ended[outcome]++;
    if (outcome == OUTCOME_INFEASIBLE)
        rule_add(rule_find(tally, row_text(row, "rule", "other")), row, point);
}

static void rule_print(const struct tally_rule *rule, FILE *out)
{
    char text[48];

    fprintf(out, "  %-10s %zu", rule->rule, rule->count);
    if (isfinite(rule->margin))
        fprintf(out, ", the nearest lacks %s", unit_format_short(UNIT_BYTES, -rule->margin, text, sizeof text));
    fputs(*rule->reason ? ", such as: " : "", out);
    text_write(TEXT_LINE, rule->reason, out);
    fputc('\n', out);
}

static int compare_rules(const void *a, const void *b)
{
    const struct tally_rule *x = a, *y = b;
    int order = strverscmp(x->first, y->first);

    return order ? order : strcmp(x->rule, y->rule);
}

void tally_print(struct tally *tally, FILE *out)
{
    fprintf(out, "%zu point%s:", tally->rows, tally->rows == 1 ? "" : "s");
    for (int status = 0, said = 0; status < OUTCOME_COUNT; status++)
        if (tally->ended[status])
            fprintf(out, "%s %zu %s", said++ ? "," : "", tally->ended[status], outcome_names[status]);
    fputc('\n', out);
    if (!tally->rules.count)
        return;
    fputs("infeasible by rule\n", out);
    qsort(tally->rules.items, tally->rules.count, sizeof *tally->rules.items, compare_rules);
    for (size_t i = 0; i < tally->rules.count; i++)
        rule_print(&tally->rules.items[i], out);
}

void tally_release(struct tally *tally)
{
    for (size_t i = 0; i < tally->rules.count; i++) {
        free(tally->rules.items[i].rule);
        free(tally->rules.items[i].first);
        free(tally->rules.items[i].point);
        free(tally->rules.items[i].reason);
    }
    free(tally->rules.items);
    *tally = (struct tally){0};
}
