#include "cli/collective_table.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/said.h"
#include "collective/collective.h"
#include "collective/measure.h"
#include "files/data.h"
#include "hardware/communication.h"
#include "validate/published.h"
#include "view/view.h"

/* Latency rules below LARGE, bandwidth above. `bar` is the error that the project asks of a row. */
static const double LARGE = 1e6;
static const struct { const char *sizes; double bar; } classes[] = {
    {"less than 1 MB", 0.30},
    {"1 MB and more", 0.15},
};

/* How far off the rows of one class of sizes are. */
struct summary { int rows, within; double sum, most; };

struct compared {
    const char *name;                /* the file's */
    struct published published;
    struct measured *measured;       /* a row each */
    struct summary summaries[COUNT(classes)];
};

static const struct published_row *row_at(const struct compared *table, size_t index)
{
    return (const struct published_row *)table->published.rows.items + index;
}

static double row_error(const struct compared *table, size_t index)
{
    return table->measured[index].seconds / published_seconds(row_at(table, index)) - 1;
}

/* NULL where the library has none. */
static const char *row_protocol(const struct compared *table, size_t index)
{
    enum protocol protocol = table->measured[index].protocol;

    return protocol == PROTOCOL_NONE ? NULL : protocol_names[protocol];
}

static void add_to_summary(struct compared *table, size_t index)
{
    size_t class = row_at(table, index)->bytes >= LARGE;
    struct summary *summary = &table->summaries[class];
    double error = fabs(row_error(table, index));

    summary->rows++;
    summary->within += error <= classes[class].bar;
    summary->sum += error;
    summary->most = fmax(summary->most, error);
}

static int simulate_table(struct arena *arena, const char *path, enum engine engine, struct compared *table,
                          struct error *err)
{
    struct measure measure;
    int rc = 0;

    *table = (struct compared){.name = data_stem(arena, path)};
    if (published_load(arena, path, &table->published, err))
        return -1;
    table->measured = ARENA_ARRAY(arena, struct measured, table->published.rows.count);
    measure_init(&measure, engine, &table->published.cluster);
    for (size_t i = 0; !rc && i < table->published.rows.count; i++) {
        rc = published_simulate(&table->published, row_at(table, i), &measure, &table->measured[i], err);
        if (!rc)
            add_to_summary(table, i);
    }
    measure_release(&measure);
    return rc;
}

static const struct collective *asked(const struct compared *table, size_t i)
{
    return row_at(table, i)->collective == table->measured[i].used ? NULL : row_at(table, i)->collective;
}

#define TABLE_ROW(ROW) \
    ROW(op, json_string(collective_op_names[row_at(it, i)->op]), "operation") \
    ROW(asked, asked(it, i) ? json_string(asked(it, i)->name) : NULL, "algorithm; left out: the one that ran") \
    ROW(algorithm, json_string(it->measured[i].used->name), "that ran") \
    ROW(protocol, row_protocol(it, i) ? json_string(row_protocol(it, i)) : NULL, "of the library; left out: it has none") \
    ROW(ranks, json_integer(row_at(it, i)->ranks), "of the group") \
    ROW(bytes, json_real(row_at(it, i)->bytes), "of the vector, as nccl-tests count") \
    ROW(measured_s, json_real(published_seconds(row_at(it, i))), "as published") \
    ROW(time_s, json_real(it->measured[i].seconds), "simulated") \
    ROW(error, json_real(row_error(it, i)), NULL) ROW(unit_s, json_real(1e-6), NULL)
VIEW_SHARED(table_view, struct compared, it, TABLE_ROW)

static void print_json(const struct compared *table)
{
    json_print_all(view_each(&table_view, table, table->published.rows.count), stdout);
}

static void print_text(const struct compared *table)
{
    printf("%s\n%-14s %-16s %8s %6s %12s %14s %14s %8s\n", table->published.title, "op", "algorithm", "protocol",
           "ranks", "bytes", "measured", "simulated", "error");
    for (size_t i = 0; i < table->published.rows.count; i++)
        view_say_item(&table_view, table, i, "{op@-14} {algorithm@-16} [{protocol@8}|       -] {ranks@6} {bytes@12} "
                      "{measured_s~unit_s@14} {time_s~unit_s@14} {error*100:%+7.1f}%\n", stdout);
    for (size_t class = COUNT(classes); class-- > 0;) {
        const struct summary *summary = &table->summaries[class];

        if (summary->rows)
            printf("%s: %d of %d rows within %.0f %%, mean error %.1f %%, at most %.1f %%\n", classes[class].sizes,
                   summary->within, summary->rows, 100 * classes[class].bar, 100 * summary->sum / summary->rows,
                   100 * summary->most);
    }
}

static void print_markdown(const struct compared *table)
{
    char *name = text_made(TEXT_LINE, table->name), *title = text_made(TEXT_LINE, table->published.title);

    printf("| [%s](%s.yaml) | %s |", name, name, title);
    free(name);
    free(title);
    for (size_t class = COUNT(classes); class-- > 0;) {
        const struct summary *summary = &table->summaries[class];

        if (summary->rows)
            printf(" %d of %d | %.1f %% | %.1f %% |", summary->within, summary->rows,
                   100 * summary->sum / summary->rows, 100 * summary->most);
        else
            printf(" | | |");
    }
    putchar('\n');
}

static void print_markdown_heading(void)
{
    printf("| table | what was measured |");
    for (size_t class = COUNT(classes); class-- > 0;)
        printf(" %s: within %.0f %% | mean error | largest |", classes[class].sizes, 100 * classes[class].bar);
    printf("\n|---|---|---:|---:|---:|---:|---:|---:|\n");
}

int collective_tables(const char *const *paths, int count, enum engine engine, enum table_format format,
                      struct error *err)
{
    static void (*const print[])(const struct compared *) = {
        [TABLE_TEXT] = print_text, [TABLE_JSON] = print_json, [TABLE_MARKDOWN] = print_markdown,
    };
    int rc = 0;

    for (int i = 0; !rc && i < count; i++) {
        struct arena arena = {0};
        struct compared table;

        rc = simulate_table(&arena, paths[i], engine, &table, err);
        if (!rc && i && format == TABLE_TEXT)
            putchar('\n');
        if (!rc && !i && format == TABLE_MARKDOWN)
            print_markdown_heading();
        if (!rc)
            print[format](&table);
        fflush(stdout);
        arena_release(&arena);
    }
    return rc;
}
