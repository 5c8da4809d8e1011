#include "validate/validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "evidence/evidence.h"
#include "evidence/first.h"
#include "run/metrics.h"

/* Whether errors of the column are errors of an iteration's time. */
static bool is_time(const struct column *column)
{
    return column->kind == COLUMN_MEASURED && !column->ratio &&
           (column->metric->kind == METRIC_RATE || column->metric == metric_find("iteration_time_s"));
}

double validation_time_error(const struct validation *validation, size_t row)
{
    const struct paper *paper = validation->paper;

    for (size_t i = validation->first; i < paper->ncolumns; i++)
        if (is_time(&paper->columns[i]) && !isnan(validation_error(validation, row, i)))
            return validation_error(validation, row, i);
    return NAN;
}

double validation_evidence(const struct validation *validation, size_t row)
{
    return validation->plain->outcomes[row].measurable ? validation_time_error(validation->plain, row) : NAN;
}

/* The number of the row's plain scenario, from 1 on: the number of the first row with an equal one. */
static int number_plain(const struct validation *plain, size_t row)
{
    size_t first = 0;

    while (strcmp(plain->outcomes[first].asked, plain->outcomes[row].asked))
        first++;
    return (int)first + 1;
}

/* A first error that no row takes up would be missing from what is stated of other work. */
static int check_taken(const struct validation *validation, const struct first_error *first, struct error *err)
{
    const struct paper *paper = validation->paper;
    size_t row = 0;

    while (row < paper->nrows && !text_same(paper->rows[row].id, first->row))
        row++;
    if (row < paper->nrows && (!validation->outcomes[row].selected || !isnan(validation_evidence(validation, row))))
        return 0;
    return error_add(err, EXIT_INPUT, (struct loc){.file = paper->file}, "row '%s' has a first error in first.tsv, and %s",
                     first->row, row < paper->nrows ? "today none" : "the table has no such row");
}

int validation_print_errors(const struct validation *validation, const struct first_errors *firsts, FILE *out,
                            struct error *err)
{
    int rc = 0;

    for (size_t i = 0; !validation && evidence_columns[i]; i++)
        fprintf(out, "%s%s", i ? "\t" : "", evidence_columns[i]);
    if (!validation)
        fputc('\n', out);
    for (size_t i = 0; validation && i < validation->paper->nrows; i++) {
        const struct paper_row *row = &validation->paper->rows[i];
        struct evidence_name name = {validation->paper->name, row->id, row->group, 0};
        const struct outcome *outcome = &validation->plain->outcomes[i];
        double error = validation_evidence(validation, i);
        struct evidence_errors errors = {error, (1 + error) * outcome->sheet - 1};

        if (isnan(error))
            continue;
        name.plain = number_plain(validation->plain, i);
        evidence_print(out, &name, &outcome->likeness, &errors, first_error_find(firsts, name.table, name.row));
        fputc('\n', out);
    }
    for (size_t i = 0; validation && i < firsts->count; i++)
        if (*firsts->items[i].row && text_same(firsts->items[i].table, validation->paper->name))
            rc |= check_taken(validation, &firsts->items[i], err);
    return rc;
}

void validation_print_first_errors(const struct validation *validation, FILE *out)
{
    const struct paper *paper = validation->paper;
    bool found = false;

    if (validation->failed)
        return;
    for (size_t i = 0; i < paper->nrows; i++) {
        const struct likeness *likeness = &validation->plain->outcomes[i].likeness;
        double error = validation_evidence(validation, i);

        if (isnan(error))
            continue;
        first_error_print(out, paper->name, paper->rows[i].id, error, likeness->software, likeness->family);
        found = true;
    }
    if (!found)
        first_error_print(out, paper->name, NULL, NAN, NULL, NULL);
}

static enum peak_kind kind_of_peak(const struct column *column)
{
    static const char *const names[] = {
        [PEAK_ALLOCATED] = "peak_allocated_bytes", [PEAK_RESERVED] = "peak_reserved_bytes",
        [PEAK_DRIVER] = "peak_memory_bytes",
    };
    enum peak_kind kind = 0;

    while (kind < PEAK_KIND_COUNT && (column->kind != COLUMN_MEASURED || column->ratio ||
                                      strcmp(column->metric->name, names[kind]) != 0))
        kind++;
    return kind;
}

void validation_print_memory_errors(const struct validation *validation, FILE *out)
{
    const struct paper *paper = validation ? validation->paper : NULL;

    for (size_t i = 0; !validation && evidence_peak_columns[i]; i++)
        fprintf(out, "%s%s", i ? "\t" : "", evidence_peak_columns[i]);
    if (!validation)
        fputc('\n', out);
    for (size_t row = 0; paper && row < paper->nrows; row++)
        for (size_t i = 0; i < paper->ncolumns; i++) {
            enum peak_kind kind = kind_of_peak(&paper->columns[i]);
            double error = kind < PEAK_KIND_COUNT ? validation_error(validation->plain, row, i) : NAN;

            if (isnan(error))
                continue;
            evidence_print_peak(out, paper->name, paper->rows[row].id, kind, error,
                                &validation->plain->outcomes[row].likeness);
            fputc('\n', out);
        }
}

/* The errors of rows that have a name in common. */
struct group_error { char name[40]; size_t rows, tables; const struct validation *last; double sum, bias; };
struct groups { struct group_error *items; size_t count, capacity; };

static void count_row(struct groups *groups, const char *name, const struct validation *validation, double error)
{
    struct group_error *group = NULL;

    for (size_t i = 0; i < groups->count && !group; i++)
        group = strcmp(groups->items[i].name, name) ? NULL : &groups->items[i];
    if (!group) {
        *(group = GROW(groups)) = (struct group_error){0};
        snprintf(group->name, sizeof group->name, "%s", name);
    }
    group->tables += group->last != validation;
    group->last = validation;
    group->rows++;
    group->sum += fabs(error);
    group->bias += error;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct group_error *)a)->name, ((const struct group_error *)b)->name);
}

static void print_groups(struct groups *groups, const char *heading, FILE *out)
{
    if (!groups->count)
        return;
    array_sort(groups->items, groups->count, sizeof *groups->items, by_name);
    fprintf(out, "\n%-32s %6s %5s %8s %9s\n", heading, "tables", "rows", "plainly", "bias");
    for (size_t i = 0; i < groups->count; i++) {
        const struct group_error *group = &groups->items[i];

        fprintf(out, "%-32s %6zu %5zu %6.1f %% %+7.1f %%\n", group->name, group->tables, group->rows,
                100 * group->sum / (double)group->rows, 100 * group->bias / (double)group->rows);
    }
    free(groups->items);
}

/* How many rows of a table have an expected error, and how many of these are within it. */
struct sure { size_t rows, stated, within, twice; double expected; };

static struct sure count_within(const struct validation *validation, const struct evidence *evidence)
{
    const struct evidence_without own = {.table = validation->paper->name};
    struct sure sure = {0};

    for (size_t i = 0; i < validation->paper->nrows; i++) {
        const struct outcome *outcome = &validation->plain->outcomes[i];
        double error = fabs(validation_evidence(validation, i)), expected;

        if (isnan(error))
            continue;
        sure.rows++;
        if (isnan(outcome->metrics.expected_error))
            continue;
        expected = evidence_expect(evidence, &outcome->likeness, &own).error + outcome->unsure;
        sure.stated++;
        sure.expected += expected;
        sure.within += error <= expected;
        sure.twice += error <= 2 * expected;
    }
    return sure;
}

static void print_within(const struct validation *validations, size_t count, const struct evidence *evidence, FILE *out)
{
    double within = 0, twice = 0;
    size_t tables = 0, stating = 0, held = 0, none = 0, rows = 0;

    for (size_t i = 0; i < count; i++) {
        struct sure sure = count_within(&validations[i], evidence);
        double stated = (double)sure.stated;

        if (!sure.rows)
            continue;
        if (!tables++)
            fprintf(out, "\n%-32s %8s %5s %5s %8s %9s\n", "expected of it by other tables", "error", "rows", "none",
                    "within", "twice it");
        fprintf(out, "%-32s ", validations[i].paper->name);
        rows += sure.rows;
        none += sure.rows - sure.stated;
        if (!sure.stated) {
            fprintf(out, "%8s %5zu %5zu\n", "none", sure.rows, sure.rows);
            continue;
        }
        fprintf(out, "%6.1f %% %5zu %5zu %6.0f %% %7.0f %%\n", 100 * sure.expected / stated, sure.rows,
                sure.rows - sure.stated, 100 * (double)sure.within / stated, 100 * (double)sure.twice / stated);
        stating++;
        held += (double)sure.within >= 0.6 * stated && (double)sure.twice >= 0.9 * stated;
        within += (double)sure.within / stated;
        twice += (double)sure.twice / stated;
    }
    if (tables)
        fprintf(out, "no error is expected of %zu of %zu rows", none, rows);
    if (stating)
        fprintf(out, "; of the others, mean of the tables: %.0f %% within, %.0f %% within twice; %zu of %zu tables have 60 "
                "and 90 %%", 100 * within / (double)stating, 100 * twice / (double)stating, held, stating);
    if (tables)
        fputc('\n', out);
}

void validation_print_sure(const struct validation *validations, size_t count, const struct evidence *evidence,
                           FILE *out)
{
    struct groups software = {0}, costs = {0};

    for (size_t i = 0; i < count; i++)
        for (size_t row = 0; row < validations[i].paper->nrows; row++) {
            const struct likeness *likeness = &validations[i].plain->outcomes[row].likeness;
            double error = validation_evidence(&validations[i], row);

            if (isnan(error))
                continue;
            count_row(&software, likeness->software, &validations[i], error);
            count_row(&costs, likeness->costs, &validations[i], error);
        }
    print_groups(&software, "software", out);
    print_groups(&costs, "costs", out);
    if (evidence)
        print_within(validations, count, evidence, out);
}
