/* The heat chart: what stands in its cells: a number, and below it, as far as there is room, where the best row of the
 * cell is on the other axes; or why there is no number, and the memory that is missing. */
#include "heat.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum {
    EM = 14, DETAIL = 11,            /* pixels of an em of 10 points, and of the small text below it */
    NUMBER_LINE = 16, DETAIL_LINE = 14,      /* of a line of each */
    MARGIN = 6,                      /* of a cell's width that stays free */
};

/* The first way for which all numbers have room is taken. */
static const struct heat_style styles[] = {{4, 13.4, 1}, {3, 13.4, 1}, {3, 11.4, 0.85}, {2, 10.1, 0.75}};

double heat_margin(const json_t *row)
{
    double margin = row_number(row, "memory_margin_bytes");

    return isnan(margin) ? -INFINITY : margin;
}

static const char *reason_of(struct arena *arena, const struct cell *cell)
{
    const char *rule = json_string_value(json_object_get(cell->row, "rule")), *status = row_status(cell->row);

    return text_clean(arena, rule ? rule : strcmp(status, "ok") ? status : "no number", 24);
}

/* "lacks 24.3 GiB"; "" where that is not known. */
static const char *lacking(struct arena *arena, const struct cell *cell)
{
    double margin = heat_margin(cell->row);
    struct quantity bytes;

    if (cell->state != CELL_INFEASIBLE || !isfinite(margin) || margin >= 0)
        return "";
    bytes = quantity_of(arena, "memory_bytes", -margin);
    return arena_printf(arena, "lacks %s%s", quantity_text(arena, &bytes, -margin, 3), bytes.unit);
}

/* Digits of the largest number; all cells have the same number of decimals. On a logarithmic scale each number has
 * these digits. */
static const char *number_of(struct arena *arena, const struct heat *heat, double value, int digits)
{
    double size = fmax(fabs(heat->least), fabs(heat->most)) * heat->quantity.scale;
    int before = size > 0 ? (int)floor(log10(size)) + 1 : 1;

    if (heat->logarithmic || before > 7 || before < -2)
        return quantity_text(arena, &heat->quantity, value, digits);
    return arena_printf(arena, "%.*f", before < digits ? digits - before : 0, value * heat->quantity.scale);
}

static bool is_narrow(const struct heat *heat, const char *text, double em)
{
    return text_ems(text) * em <= heat->wide - MARGIN;
}

/* Lines with the values of the cell's best row on the axes that cells tell. */
struct lines { const char **items; int count; };

/* As many lines as the cell's width needs; none where a value alone is wider. */
static struct lines wrap(struct arena *arena, const struct heat *heat, const struct cell *cell)
{
    struct lines lines = {0};
    size_t count = 0;

    while (heat->told[count])
        count++;
    lines.items = ARENA_ARRAY(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *value = short_value(arena, heat->told[i], row_value(cell->row, heat->told[i])), *longer = value;

        if (!is_narrow(heat, value, DETAIL))
            return (struct lines){0};
        if (lines.count)
            longer = arena_printf(arena, "%s %s", lines.items[lines.count - 1], value);
        if (lines.count && is_narrow(heat, longer, DETAIL))
            lines.items[lines.count - 1] = longer;
        else
            lines.items[lines.count++] = value;
    }
    return lines;
}

/* The most lines that a cell with a number needs, but not more than can be shown; 0 where one of them has no room. */
static int lines_needed(struct arena *arena, const struct heat *heat)
{
    int most = 0;

    for (int i = 0; i < heat->x.count * heat->y.count; i++) {
        int count = heat->cells[i].state == CELL_VALUE ? wrap(arena, heat, &heat->cells[i]).count : 1;

        if (!count)
            return 0;
        most = count > most ? count : most;
    }
    return most < HEAT_LINES ? most : HEAT_LINES;
}

int heat_height(struct arena *arena, const struct heat *heat)
{
    return NUMBER_LINE + DETAIL_LINE * lines_needed(arena, heat) + MARGIN;
}

/* Numbers stand in all cells or in none, so that no empty cell looks like one without a result; the lines below as
 * well. */
void heat_choose_style(struct arena *arena, struct heat *heat)
{
    int cells = heat->x.count * heat->y.count, room = (heat->high - NUMBER_LINE) / DETAIL_LINE;

    for (size_t s = 0; s < COUNT(styles) && !heat->style; s++) {
        bool fits = heat->high >= NUMBER_LINE - 1;

        for (int i = 0; i < cells && fits; i++)
            fits = heat->cells[i].state != CELL_VALUE ||
                   is_narrow(heat, number_of(arena, heat, heat->cells[i].value, styles[s].digits), styles[s].em);
        heat->style = fits ? &styles[s] : NULL;
    }
    heat->lines = lines_needed(arena, heat);
    heat->lines = !heat->style || room < 1 ? 0 : heat->lines < room ? heat->lines : room;
}

/* A number, and the lines below it that have room; an ellipsis stands for the rest. */
static void add_number(struct arena *arena, const struct heat *heat, const struct cell *cell, struct heat_text *text)
{
    struct lines lines = wrap(arena, heat, cell);

    for (size_t i = 0; heat->others[i]; i++)
        text->whole = arena_printf(arena, "%s%s%s", text->whole, i ? " " : "",
                                   short_value(arena, heat->others[i], row_value(cell->row, heat->others[i])));
    if (!heat->style)
        return;
    text->number = number_of(arena, heat, cell->value, heat->style->digits);
    for (text->count = 0; text->count < lines.count && text->count < heat->lines; text->count++)
        text->lines[text->count] = lines.items[text->count];
    if (text->count && text->count < lines.count)
        text->lines[text->count - 1] = arena_printf(arena, "%s …", text->lines[text->count - 1]);
}

struct heat_text heat_text(struct arena *arena, const struct heat *heat, const struct cell *cell)
{
    struct heat_text text = {.number = "", .lines = {""}, .whole = ""};
    const char *reason;

    if (cell->state == CELL_VALUE)
        add_number(arena, heat, cell, &text);
    else {
        text.whole = lacking(arena, cell);
        reason = reason_of(arena, cell);
        if (is_narrow(heat, reason, EM) && heat->high >= NUMBER_LINE - 1)
            text.number = reason;
        if (*text.number && *text.whole && is_narrow(heat, text.whole, DETAIL) && heat->high >= 2 * NUMBER_LINE - 2) {
            text.lines[0] = text.whole;
            text.count = 1;
        }
    }
    text.up = text.count ? 0.5 * NUMBER_LINE * text.count / heat->high : 0;
    text.down = text.count ? 0.5 * (NUMBER_LINE + 2) / heat->high : 0;
    return text;
}
