#include "cli/results_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/result.h"
#include "run/metrics.h"

size_t results_columns(const struct results *results, enum results_format format, int *columns)
{
    static const char *const wanted[] = {"iteration_time_s", "tokens_per_s", "samples_per_s", "mfu", "bubble_fraction",
                                         "exposed_communication_s", "peak_memory_bytes", "memory_margin_bytes"};
    size_t count = 0;

    for (size_t i = 0; i < results->keys.count; i++)
        if (format == FORMAT_CSV || results->keys.items[i].from == KEY_POINT)
            columns[count++] = (int)i;
    for (size_t k = 0; k < COUNT(wanted) && format != FORMAT_CSV; k++)
        for (size_t i = 0; i < results->keys.count; i++) {
            bool known = false;

            for (size_t r = 0; r < results->rows.count && !known; r++)
                known = results_value(results, r, (int)i).kind == VALUE_NUMBER;
            if (known && !strcmp(results->keys.items[i].name, wanted[k]) &&
                !(k == 2 && !strcmp(results->keys.items[columns[count - 1]].name, wanted[1])))
                columns[count++] = (int)i;
        }
    return count;
}

int results_default_order(const struct results *results)
{
    static const char *const order[] = {"tokens_per_s", "samples_per_s"};

    for (size_t k = 0; k < COUNT(order); k++) {
        struct error ignored = {0};
        int key = results_key(results, order[k], "", &ignored);

        error_release(&ignored);
        for (size_t r = 0; key >= 0 && r < results->rows.count; r++)
            if (results_value(results, r, key).kind == VALUE_NUMBER)
                return key;
    }
    return -1;
}

static bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);

    return length >= tail && !strcmp(name + length - tail, end);
}

/* A metric as people read it: its name ends in its unit. */
static void metric_text(const char *name, double value, char *text, size_t size)
{
    if (!strncmp(name, "breakdown_s.", 12) || (ends_in(name, "_s") && !ends_in(name, "_per_s")))
        unit_format_short(UNIT_TIME, value, text, size);
    else if (strstr(name, "bytes"))
        unit_format_short(UNIT_BYTES, value, text, size);
    else if (!strcmp(name, "mfu") || !strcmp(name, "hfu") || ends_in(name, "fraction") ||
             ends_in(name, "utilization") || ends_in(name, "overhead") || ends_in(name, "share"))
        snprintf(text, size, "%.2f %%", 100 * value);
    else
        snprintf(text, size, fabs(value) < 9999.5 ? "%.4g" : "%.0f", value);
}

/* What others wrote must not steer a terminal or break a line. */
static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            *text = ' ';
}

/* A cell for people (clip: cut to size) or, with SI units, for programs. */
static const char *cell(struct arena *arena, const struct results *results, size_t row, int key, bool people)
{
    const struct result_key *of = &results->keys.items[key];
    const json_t *json = results_json(results, row, key);
    char text[CLIP_SIZE], *whole;

    if (!json || json_is_null(json))
        return people ? "-" : "";
    if (json_is_number(json) && people && of->from == KEY_METRIC) {
        metric_text(of->name, json_number_value(json), text, sizeof text);
        return arena_strdup(arena, text);
    }
    if (json_is_string(json)) {
        whole = arena_strdup(arena, json_string_value(json));
    } else {
        char *dump = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(people ? 6u : 17u));

        whole = arena_strdup(arena, dump);
        free(dump);
    }
    clean(whole);
    return people ? arena_strdup(arena, text_clip(whole, text, sizeof text)) : whole;
}

static void print_text(struct arena *arena, const struct results *results, const int *columns, size_t count,
                       size_t rows, FILE *out)
{
    const char **cells = ARENA_ARRAY(arena, const char *, count * (rows + 1));
    int *widths = ARENA_ARRAY(arena, int, count);

    for (size_t c = 0; c < count; c++)
        for (size_t r = 0; r <= rows; r++) {
            const char *text = r ? cell(arena, results, r - 1, columns[c], true) : results->keys.items[columns[c]].name;

            cells[r * count + c] = text;
            widths[c] = (int)strlen(text) > widths[c] ? (int)strlen(text) : widths[c];
        }
    for (size_t r = 0; r <= rows; r++)
        for (size_t c = 0; c < count; c++)
            fprintf(out, "%s%*s%s", c ? "  " : "", widths[c], cells[r * count + c], c + 1 < count ? "" : "\n");
}

static void print_markdown(struct arena *arena, const struct results *results, const int *columns, size_t count,
                           size_t rows, FILE *out)
{
    for (size_t r = 0; r <= rows; r++) {
        for (size_t c = 0; c < count; c++) {
            const char *text = r ? cell(arena, results, r - 1, columns[c], true) : results->keys.items[columns[c]].name;

            fputs(c ? " " : "| ", out);
            for (; *text; text++)
                fprintf(out, strchr("|\\`*_<>[]", *text) && r ? "\\%c" : "%c", *text);
            fputs(" |", out);
        }
        fputc('\n', out);
        for (size_t c = 0; c < count && !r; c++)
            fputs(c ? "---:|" : "|---:|", out);
        if (!r)
            fputc('\n', out);
    }
}

/* RFC 4180; a spreadsheet must not take text for a formula. */
static void print_csv_cell(const char *text, bool number, FILE *out)
{
    bool formula = !number && *text && strchr("=+-@", *text);

    if (!formula && !strpbrk(text, "\",\n\r")) {
        fputs(text, out);
        return;
    }
    fputs(formula ? "\"'" : "\"", out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

static void print_csv(struct arena *arena, const struct results *results, const int *columns, size_t count, size_t rows,
                      FILE *out)
{
    for (size_t c = 0; c < count; c++)
        fprintf(out, "%s%s", c ? "," : "", results->keys.items[columns[c]].name);
    fputc('\n', out);
    for (size_t r = 0; r < rows; r++) {
        struct arena line = {0};

        for (size_t c = 0; c < count; c++) {
            fputs(c ? "," : "", out);
            print_csv_cell(cell(&line, results, r, columns[c], false),
                           json_is_number(results_json(results, r, columns[c])), out);
        }
        fputc('\n', out);
        arena_release(&line);
    }
    (void)arena;
}

void results_print(const struct results *results, enum results_format format, const int *columns, size_t count,
                   size_t most, FILE *out)
{
    static void (*const prints[])(struct arena *, const struct results *, const int *, size_t, size_t, FILE *) = {
        [FORMAT_TEXT] = print_text, [FORMAT_CSV] = print_csv, [FORMAT_MARKDOWN] = print_markdown,
    };
    size_t rows = most < results->rows.count ? most : results->rows.count;
    struct arena arena = {0};

    for (size_t r = 0; r < rows && format == FORMAT_JSON; r++) {
        json_dumpf(results->rows.items[r], out, JSON_COMPACT | JSON_REAL_PRECISION(17));
        fputc('\n', out);
    }
    if (format != FORMAT_JSON)
        prints[format](&arena, results, columns, count, rows, out);
    arena_release(&arena);
}

/* Of the rows that a rule made infeasible: their number, and the least that is missing. */
static void print_rule(const struct results *results, const char *rule, FILE *out)
{
    double least = -INFINITY;
    size_t count = 0;
    char text[48];

    for (size_t i = 0; i < results->rows.count; i++) {
        const json_t *row = results->rows.items[i], *name = json_object_get(row, "rule");
        const json_t *margin = json_object_get(json_object_get(row, "metrics"), "memory_margin_bytes");

        if (row_status(row) != ROW_INFEASIBLE || strcmp(json_is_string(name) ? json_string_value(name) : "other", rule))
            continue;
        count++;
        if (json_is_number(margin))
            least = fmax(least, json_number_value(margin));
    }
    fprintf(out, "  %-24s %zu", rule, count);
    if (isfinite(least))
        fprintf(out, ", the nearest lacks %s", unit_format_short(UNIT_BYTES, -least, text, sizeof text));
    fputc('\n', out);
}

static void print_rules(const struct results *results, FILE *out)
{
    for (size_t i = 0; i < results->rows.count; i++) {
        const char *rule = json_string_value(json_object_get(results->rows.items[i], "rule"));
        bool first = row_status(results->rows.items[i]) == ROW_INFEASIBLE;

        for (size_t j = 0; j < i && first; j++) {
            const char *other = json_string_value(json_object_get(results->rows.items[j], "rule"));

            first = row_status(results->rows.items[j]) != ROW_INFEASIBLE ||
                    strcmp(rule ? rule : "other", other ? other : "other");
        }
        if (first)
            print_rule(results, rule ? rule : "other", out);
    }
}

void results_print_outcome(const struct results *results, FILE *out)
{
    size_t counts[ROW_STATUS_COUNT + 1] = {0};

    for (size_t i = 0; i < results->rows.count; i++)
        counts[row_status(results->rows.items[i])]++;
    fprintf(out, "%zu points:", results->rows.count);
    for (int status = 0, said = 0; status < ROW_STATUS_COUNT; status++)
        if (counts[status])
            fprintf(out, "%s %zu %s", said++ ? "," : "", counts[status], row_status_names[status]);
    fputc('\n', out);
    if (counts[ROW_INFEASIBLE]) {
        fputs("infeasible by rule\n", out);
        print_rules(results, out);
    }
}

void results_per(struct results *results, int key, size_t most)
{
    bool *keep = xcalloc(results->rows.count, sizeof *keep);

    for (size_t i = 0; i < results->rows.count; i++) {
        size_t before = 0;

        for (size_t j = 0; j < i && before < most; j++)
            before += keep[j] && json_equal(results_json(results, j, key), results_json(results, i, key));
        keep[i] = before < most;
    }
    results_keep(results, keep);
    free(keep);
}

bool results_wants_most(const char *key)
{
    const struct metric *metric = metric_find(key);

    return (metric && metric->kind == METRIC_RATE) || strstr(key, "utilization") || strstr(key, "margin");
}
