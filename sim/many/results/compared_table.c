#include "results/compared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sheet.h"
#include "base/text.h"
#include "base/words.h"
#include "files/json.h"
#include "report/outcome.h"
#include "store/tie.h"
#include "view/view.h"

/* The columns for people, who lack the room for the last ones first. */
static const char *const columns[] = {
    "gpus", "samples_per_s", "speedup", "relative_work", "rank", "iteration_time_s", "mfu", "peak_memory_bytes", "bubble_fraction",
    "utilization", "exposed_communication_s", "weight_versions",
};

static double metric_of(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(json_object_get(row, "metrics"), key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The row that the others are measured by; NULL: none has a throughput. */
static const struct compared_row *baseline(const struct compared *compared)
{
    for (size_t i = 0; i < compared->rows.count; i++)
        if (metric_of(compared->rows.items[i].row, "samples_per_s") > 0)
            return &compared->rows.items[i];
    return NULL;
}

/* What forward and backward of a sample take: FLOP of the model's mathematics, or the seconds that the scenario gives. */
static double work_of(const json_t *row, bool *given)
{
    double seconds = metric_of(row, "given_work_s");

    *given = !isnan(seconds);
    return *given ? seconds : metric_of(row, "model_tflops_per_gpu") * 1e12 * metric_of(row, "gpus") /
                              metric_of(row, "samples_per_s");
}

/* A row's work over the first row's; NaN: the two are not in the same unit. */
static double relative_work(const json_t *row, const json_t *first)
{
    bool given, first_given;
    double ratio = work_of(row, &given) / work_of(first, &first_given);

    return given != first_given ? NAN : fabs(ratio - 1) < ROUNDING ? 1 : ratio;
}

static double value_of(const struct compared *compared, size_t row, const char *key)
{
    const struct compared_row *first = baseline(compared);
    const json_t *of = compared->rows.items[row].row;

    if (!strcmp(key, "rank"))
        return compared->rows.items[row].rank.rank ? (double)compared->rows.items[row].rank.rank : NAN;
    if (!strcmp(key, "relative_work"))
        return first ? relative_work(of, first->row) : NAN;
    if (strcmp(key, "speedup"))
        return metric_of(of, key);
    return first ? metric_of(of, "samples_per_s") / metric_of(first->row, "samples_per_s") : NAN;
}

/* Why a row has no numbers for people; NULL: it has. */
static const char *refused(const struct compared *compared, size_t row)
{
    return json_string_value(json_object_get(compared->rows.items[row].row, "reason"));
}

/* Whether rows train different models, or parts of them: their speed-ups are not of one work. Vocabularies that are
 * padded differently are no other work. */
static bool works_differ(const struct compared *compared)
{
    enum { PADDING_PERCENT = 1 };
    const struct compared_row *first = baseline(compared);
    bool differ = false;

    for (size_t i = 0; first && i < compared->rows.count; i++) {
        const json_t *row = compared->rows.items[i].row;

        if (metric_of(row, "samples_per_s") > 0)
            differ |= !(fabs(relative_work(row, first->row) - 1) < PADDING_PERCENT / 100.0);
    }
    return differ;
}

/* The column's numbers by row; whether people see it. */
static bool read_column(const struct compared *compared, const char *key, double *numbers)
{
    size_t known = 0;
    bool other = false;

    for (size_t i = 0; i < compared->rows.count; i++) {
        numbers[i] = refused(compared, i) ? NAN : value_of(compared, i, key);
        known += isnan(numbers[i]) ? 0 : 1;
        other |= !isnan(numbers[i]) && numbers[i] != 1;
    }
    if (!strcmp(key, "rank"))        /* among one there is no order */
        return known > 1;
    if (!strcmp(key, "relative_work"))
        return works_differ(compared);
    return known && (other || strcmp(key, "weight_versions") != 0);
}

static bool has_note(const struct compared_row *row, const char *text)
{
    json_t *notes = json_object_get(row->row, "notes"), *note;
    size_t i;

    json_array_foreach(notes, i, note)
        if (json_is_string(note) && !strcmp(json_string_value(note), text))
            return true;
    return false;
}

/* The texts that are notes of rows, each once, in the order of rows. Of those that are not about all rows each has a
 * mark, which stands behind the names of its rows. */
struct notes { struct note { const char *text; size_t mark; } *items; size_t count, capacity; };

static void notes_read(struct notes *notes, const struct compared *compared)
{
    size_t marks = 0;

    for (size_t i = 0; i < compared->rows.count; i++) {
        json_t *own = json_object_get(compared->rows.items[i].row, "notes"), *note;
        size_t k;

        json_array_foreach(own, k, note) {
            const char *text = json_string_value(note);
            size_t before = 0, rows = 0;

            while (text && before < i && !has_note(&compared->rows.items[before], text))
                before++;
            if (!text || before < i)
                continue;
            for (size_t r = 0; r < compared->rows.count; r++)
                rows += has_note(&compared->rows.items[r], text);
            *GROW(notes) = (struct note){text, rows < compared->rows.count ? ++marks : 0};
        }
    }
}

static char *marked_name(const struct notes *notes, const struct compared_row *row)
{
    char *name = xstrdup(row->name);
    size_t said = 0;

    for (size_t i = 0; i < notes->count; i++)
        if (notes->items[i].mark && has_note(row, notes->items[i].text)) {
            char *longer = xprintf("%s%s%zu", name, said++ ? "," : " [", notes->items[i].mark);

            free(name);
            name = longer;
        }
    if (said) {
        char *longer = xprintf("%s]", name);

        free(name);
        name = longer;
    }
    return name;
}

/* Prints the words, which may hold texts of others, and frees them: a line, or an item of a Markdown list. */
static void say(char *words, bool markdown, FILE *out)
{
    char *made = text_made(markdown ? TEXT_MARKDOWN : TEXT_LINE, words), *line = xprintf("%s%s", markdown ? "- " : "", made);

    sheet_note(line, out);
    free(line);
    free(made);
    free(words);
}

/* What a reader should know before believing rows. */
static void print_caveats(const struct notes *notes, bool markdown, FILE *out)
{
    for (size_t i = 0; i < notes->count; i++) {
        const struct note *note = &notes->items[i];
        char *words = note->mark ? xprintf("[%zu] %s", note->mark, note->text) : xprintf("note: %s", note->text);

        say(words, markdown, out);
    }
}

static void add_cells(struct sheet *sheet, const struct compared *compared, const struct notes *notes,
                      const char *const *shown, size_t count, const struct number_style *styles)
{
    for (size_t i = 0; i < compared->rows.count; i++) {
        const json_t *row = compared->rows.items[i].row;
        const char *reason = refused(compared, i);
        char *name = marked_name(notes, &compared->rows.items[i]);

        sheet_add(sheet, name);
        free(name);
        if (reason) {
            char *text = xprintf("%s: %s", outcome_names[outcome_of(row)], reason);

            sheet_add_rest(sheet, text);
            free(text);
        } else if (!count) {             /* others may have written the result */
            sheet_add_rest(sheet, "a result without numbers");
        }
        for (size_t c = 0; c < count && !reason; c++) {
            char text[CLIP_SIZE];
            bool rank = !strcmp(shown[c], "rank");

            sheet_add(sheet, rank ? tie_text(compared->rows.items[i].rank, text, sizeof text) :
                             number_text(&styles[c], value_of(compared, i, shown[c]), text, sizeof text));
        }
    }
}

/* What runs: of the first row of each scenario; others differ in what their names say. */
static void print_setups(const struct compared *compared, bool markdown, FILE *out)
{
    const struct compared_row *rows = compared->rows.items;

    for (size_t i = 0; i < compared->rows.count; i++) {
        const char *setup = json_string_value(json_object_get(rows[i].row, "setup"));

        if (!setup || (i > 0 && !strcmp(rows[i].path, rows[i - 1].path)))
            continue;
        say(xprintf("%s: %s", rows[i].name, setup), markdown, out);
    }
}

static void explain_ranks(const struct compared *compared, bool markdown, FILE *out)
{
    struct tie_number *numbers = xcalloc(compared->rows.count + 1, sizeof *numbers);
    char *words;
    size_t size;
    FILE *text = text_open(&words, &size);

    for (size_t i = 0; i < compared->rows.count; i++)
        numbers[i] = compared->rows.items[i].number;
    tie_explain(numbers, compared->rows.count, text);
    text_close(text, &words);
    say(words, markdown, out);
    free(numbers);
}

/* Of one row there is nothing to compare. */
static void print_notes(const struct compared *compared, bool versions, bool markdown, FILE *out)
{
    const struct compared_row *first = baseline(compared);
    const char *base;
    size_t ranked = 0, failed = 0;

    for (size_t i = 0; i < compared->rows.count; i++) {
        enum outcome outcome = outcome_of(compared->rows.items[i].row);

        ranked += compared->rows.items[i].rank.rank > 0;
        failed += outcome < OUTCOME_COUNT && outcome_failed(outcome);
    }
    if (!first)
        return;
    fputc('\n', out);
    base = first == compared->rows.items ? "the first row" : first->name;
    say(xprintf("speed-up: samples/s over the samples/s of %s", base), markdown, out);
    if (works_differ(compared))
        say(xprintf("work: rows do unequal work, and their speed-ups compare samples of unequal work; forward and backward "
                    "of a sample over those of %s, in FLOPs or in seconds that the scenario gives ('-': one is in FLOPs, "
                    "the other in seconds)", base), markdown, out);
    if (versions)
        say(xprintf("weight versions: where a rank holds several of its weights, the schedule is asynchronous, and "
                    "iteration is its mean time from optimizer step to optimizer step"), markdown, out);
    if (ranked > 1)
        explain_ranks(compared, markdown, out);
    if (failed)
        say(xprintf("%zu of %zu rows failed: one of them may be better than all others", failed, compared->rows.count),
            markdown, out);
}

void compared_print(const struct compared *compared, bool markdown, bool keys, FILE *out)
{
    struct sheet sheet = {.left = 1, .needed = 2};
    const char *shown[COUNT(columns)];
    struct number_style styles[COUNT(columns)];
    double *numbers = xcalloc(compared->rows.count, sizeof *numbers);
    struct notes notes = {0};
    bool versions = false;
    size_t count = 0;
    char unit[32];

    sheet_head(&sheet, "scenario", "");
    for (size_t c = 0; c < COUNT(columns); c++) {
        if (!read_column(compared, columns[c], numbers))
            continue;
        versions |= !strcmp(columns[c], "weight_versions");
        styles[count] = number_style_of(columns[c], numbers, compared->rows.count);
        shown[count] = columns[c];
        sheet_head(&sheet, keys ? columns[c] : words_of(&sheet.arena, columns[c]),
                   number_unit(&styles[count], unit, sizeof unit));
        count++;
    }
    if (!count) {                        /* no row has numbers: reasons alone */
        sheet.left = 2;
        sheet_head(&sheet, "outcome", "");
    }
    notes_read(&notes, compared);
    add_cells(&sheet, compared, &notes, shown, count, styles);
    sheet_print(&sheet, markdown, out);
    print_notes(compared, versions, markdown, out);
    print_setups(compared, markdown, out);
    print_caveats(&notes, markdown, out);
    sheet_release(&sheet);
    free(notes.items);
    free(numbers);
}

/* As the row has it; NULL: it does not. */
static json_t *text_of(const struct compared *compared, size_t row, const char *key)
{
    return json_incref(json_object_get(compared->rows.items[row].row, key));
}

static json_t *metric_json(const struct compared *compared, size_t row, const char *key)
{
    json_t *value = json_object_get(json_object_get(compared->rows.items[row].row, "metrics"), key);

    return value ? json_incref(value) : json_null();
}

static json_t *rank_json(const struct compared_row *row)
{
    return row->rank.rank ? json_count(row->rank.rank) : json_null();
}

#define METRIC(ROW, key) ROW(key, metric_json(it, i, #key), "as in result.json")
#define TEXT(ROW, key, brief) ROW(key, text_of(it, i, #key), brief)
#define COMPARED(ROW) \
    ROW(name, json_words(it->rows.items[i].name), "of the scenario, or what is set") \
    METRIC(ROW, gpus) METRIC(ROW, samples_per_s) METRIC(ROW, tokens_per_s) \
    ROW(speedup, json_finite(value_of(it, i, "speedup")), "samples_per_s over those of the first row that has any") \
    ROW(rank, rank_json(&it->rows.items[i]), "place by samples_per_s; rows that cannot be told apart share one") \
    METRIC(ROW, iteration_time_s) METRIC(ROW, iteration_time_s_p10) METRIC(ROW, iteration_time_s_p90) \
    METRIC(ROW, stated_error_share) METRIC(ROW, expected_error_share) METRIC(ROW, expected_ratio_error_share) \
    METRIC(ROW, expected_ratio_error_share_p90) METRIC(ROW, bubble_fraction) METRIC(ROW, utilization) \
    METRIC(ROW, exposed_communication_s) METRIC(ROW, mfu) METRIC(ROW, peak_memory_bytes) METRIC(ROW, weight_versions) \
    ROW(relative_work, json_finite(value_of(it, i, "relative_work")), "forward and backward of a sample over the first row's") \
    TEXT(ROW, status, "as rows of sweeps have it") TEXT(ROW, engine, "that simulated it") TEXT(ROW, setup, "as in result.json") \
    TEXT(ROW, software, "the same") TEXT(ROW, model, "the same") TEXT(ROW, gpu, "the same") \
    TEXT(ROW, rule, "of what is infeasible") TEXT(ROW, reason, "why it is not ok")
VIEW_SHARED(compared_view, struct compared, it, COMPARED)

json_t *compared_json(const struct compared *compared)
{
    return view_each(&compared_view, compared, compared->rows.count);
}
