/* The heat chart: a metric of a sweep over two of its axes. A cell has the best row of its two values, whatever the
 * other axes are there; hatched cells have none that ran, and say why. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heat.h"

enum {
    WIDE = 760, HIGH = 460,          /* pixels of all cells together */
    CELL_HIGH = 46, CELL_LEAST = 3,  /* of one cell, at most, but for further lines, and at least */
    LETTER = 8,                      /* of a letter of an axis, generously */
    SCALE = 120,                     /* of the colours' scale on the right, with its numbers */
    AROUND = 150,                    /* above and below the cells, about: title, legend and axis */
};

/* Viridis (van der Walt and Smith 2015), which rises in lightness for every kind of colour vision. */
static const char *const colours[] = {"#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"};

static bool betters(const struct heat *heat, double value, double than)
{
    return heat->by.largest ? value > than : value < than;
}

static void add_row(struct heat *heat, struct cell *cell, const json_t *row)
{
    double value = strcmp(row_status(row), "ok") ? NAN : row_number(row, heat->by.name);
    enum state state = !isnan(value) ? CELL_VALUE : strcmp(row_status(row), "infeasible") ? CELL_FAILED
                                                                                          : CELL_INFEASIBLE;
    bool better = cell->state == CELL_EMPTY || (state == CELL_VALUE && cell->state != CELL_VALUE);

    if (!better && state == cell->state)
        better = state == CELL_VALUE ? betters(heat, value, cell->value) :
                 state == CELL_INFEASIBLE && heat_margin(row) > heat_margin(cell->row);
    else if (!better)
        better = state == CELL_INFEASIBLE && cell->state == CELL_FAILED;
    if (better)
        *cell = (struct cell){state, value, row};
}

/* The two axes, where they are not given the first that have several values. */
static int choose_axes(const struct chart *chart, struct plot_key *x, struct plot_key *y)
{
    const char *const *keys = point_keys(chart);

    if (x->name && y->name && strcmp(x->name, y->name) == 0)
        return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "heat: the axes are both '%s'", x->name);
    for (size_t i = 0; keys[i] && (!x->name || !y->name); i++) {
        if ((x->name && !strcmp(keys[i], x->name)) || (y->name && !strcmp(keys[i], y->name)) ||
            !key_varies(chart, keys[i], NULL, 1))
            continue;
        if (!x->name)
            x->name = keys[i];
        else
            y->name = keys[i];
    }
    if (x->name && y->name)
        return 0;
    return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "heat: expected rows that differ in two axes, found %s",
                     !x->name && !y->name ? "none" :
                     arena_printf(chart->arena, "'%s' alone", x->name ? x->name : y->name));
}

/* What rounding leaves of zero is written as zero. */
static void find_scale(const struct chart *chart, struct heat *heat)
{
    double size = fmax(fabs(heat->least), fabs(heat->most));

    for (int i = 0; i < heat->x.count * heat->y.count; i++) {
        struct cell *cell = &heat->cells[i];

        if (fabs(cell->value) < 1e-12 * size)
            cell->value = 0;
        heat->ties += cell->state == CELL_VALUE && i != heat->best &&
                      fabs(cell->value - heat->cells[heat->best].value) <= 1e-9 * size;
    }
    heat->logarithmic = heat->least > 0 && heat->most > 20 * heat->least;
    heat->quantity = quantity_of(chart->arena, heat->by.name, size);
}

static int read_cells(const struct chart *chart, struct heat *heat)
{
    size_t count = json_array_size(chart->rows->rows);
    int cells = heat->x.count * heat->y.count;

    heat->cells = ARENA_ARRAY(chart->arena, struct cell, cells + 1);
    heat->cell_of = ARENA_ARRAY(chart->arena, int, count + 1);
    heat->best = -1;
    for (size_t i = 0; i < count; i++) {
        int x = heat->x.places[i], y = heat->y.places[i];

        heat->cell_of[i] = x < 0 || y < 0 ? -1 : y * heat->x.count + x;
        if (heat->cell_of[i] >= 0)
            add_row(heat, &heat->cells[heat->cell_of[i]], json_array_get(chart->rows->rows, i));
    }
    for (int i = 0; i < cells; i++) {
        const struct cell *cell = &heat->cells[i];

        heat->used[cell->state] = true;
        if (cell->state != CELL_VALUE)
            continue;
        heat->least = heat->best < 0 ? cell->value : fmin(heat->least, cell->value);
        heat->most = heat->best < 0 ? cell->value : fmax(heat->most, cell->value);
        if (heat->best < 0 || betters(heat, cell->value, heat->cells[heat->best].value))
            heat->best = i;
    }
    if (heat->best < 0)
        return error_add(chart->err, EXIT_INPUT, (struct loc){.file = chart->dir}, "no row that ran has a number '%s'",
                         heat->by.name);
    find_scale(chart, heat);
    return 0;
}

/* The axes in which rows of a cell differ, of which cells show the best; of these, the axes in which cells differ. The
 * values on the others are said once. */
static void find_others(const struct chart *chart, struct heat *heat)
{
    const char *const *keys = point_keys(chart);
    size_t count = 0, kept = 0, told = 0, shared = 0;

    while (keys[count])
        count++;
    heat->others = ARENA_ARRAY(chart->arena, const char *, count + 1);
    heat->told = ARENA_ARRAY(chart->arena, const char *, count + 1);
    heat->shared = ARENA_ARRAY(chart->arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = row_value(heat->cells[heat->best].row, keys[i]);
        bool differs = false;

        if (!strcmp(keys[i], heat->x.key) || !strcmp(keys[i], heat->y.key) ||
            !key_varies(chart, keys[i], heat->cell_of, heat->x.count * heat->y.count))
            continue;
        heat->others[kept++] = keys[i];
        for (int c = 0; c < heat->x.count * heat->y.count; c++)
            differs |= heat->cells[c].state == CELL_VALUE &&
                       !json_equal(row_value(heat->cells[c].row, keys[i]), value);
        if (differs)
            heat->told[told++] = keys[i];
        else
            heat->shared[shared++] = short_value(chart->arena, keys[i], value);
    }
}

/* Whether it is known of two cells that one fits in memory and the other does not. */
static bool parts(const struct heat *heat, int one, int other)
{
    double a = heat->cells[one].row ? heat_margin(heat->cells[one].row) : NAN;
    double b = heat->cells[other].row ? heat_margin(heat->cells[other].row) : NAN;

    return isfinite(a) && isfinite(b) && (a < 0) != (b < 0);
}

/* The edges between cells that a limit of memory parts, of columns (`down`: edges that stand, each between a column and
 * the next one) or rows; edges that follow one another are one line. `out`: NULL counts alone. */
static int write_edges(const struct heat *heat, bool down, FILE *out, const char *look)
{
    int across = down ? heat->x.count : heat->y.count, along = down ? heat->y.count : heat->x.count, count = 0;

    for (int i = 0; i + 1 < across; i++)
        for (int k = 0, begin = -1; k <= along; k++) {
            int cell = down ? k * heat->x.count + i : i * heat->x.count + k, next = cell + (down ? 1 : heat->x.count);
            bool edge = k < along && parts(heat, cell, next);

            if (edge && begin < 0)
                begin = k;
            if (edge || begin < 0)
                continue;
            if (out && down)
                fprintf(out, "set arrow from %d.5,%d - 0.5 to %d.5,%d - 0.5 nohead front %s\n", i, begin, i, k, look);
            else if (out)
                fprintf(out, "set arrow from %d - 0.5,%d.5 to %d - 0.5,%d.5 nohead front %s\n", begin, i, k, i, look);
            begin = -1;
            count++;
        }
    return count;
}

/* Of peak memory: what the line says, where one is drawn. Rows of unequal GPUs have no limit in common. */
static void find_limit(const struct chart *chart, struct heat *heat)
{
    double least = INFINITY, most = 0;

    if (strcmp(heat->by.name, "peak_memory_bytes") != 0 ||
        write_edges(heat, true, NULL, "") + write_edges(heat, false, NULL, "") == 0)
        return;
    for (int i = 0; i < heat->x.count * heat->y.count; i++)
        if (heat->cells[i].state == CELL_VALUE && isfinite(heat_margin(heat->cells[i].row))) {
            least = fmin(least, heat->cells[i].value + heat_margin(heat->cells[i].row));
            most = fmax(most, heat->cells[i].value + heat_margin(heat->cells[i].row));
        }
    heat->limit = "the limits of memory";
    if (most - least <= 1e-9 * most)
        heat->limit = arena_printf(chart->arena, "the limit of memory, %s%s",
                                   quantity_text(chart->arena, &heat->quantity, most, 3), heat->quantity.unit);
}

/* 0 to 1: from the worst to the best. */
static double place_of(const struct heat *heat, double value)
{
    double place = heat->logarithmic ? log(value / heat->least) / log(heat->most / heat->least) :
                   heat->most > heat->least ? (value - heat->least) / (heat->most - heat->least) : 1;

    return heat->by.largest ? place : 1 - place;
}

static void write_cell(const struct chart *chart, const struct heat *heat, int place)
{
    static const char *const states[CELL_STATES] = {"", "value", "infeasible", "failed"};
    const struct cell *cell = &heat->cells[place];
    int x = place % heat->x.count, y = place / heat->x.count;
    bool value = cell->state == CELL_VALUE;
    struct heat_text text = heat_text(chart->arena, heat, cell);

    fprintf(chart->data, "%d\t%d\t%s\t%s\t%s\t", x, y, states[cell->state],
            text_escape(chart->arena, heat->x.texts[x]), text_escape(chart->arena, heat->y.texts[y]));
    fprintf(chart->data, value ? "%.10g" : "NaN", cell->value * heat->quantity.scale);
    fprintf(chart->data, "\t%s\t%s", text_escape(chart->arena, text.number), text_escape(chart->arena, text.lines[0]));
    for (int i = 1; i < text.count; i++)
        fprintf(chart->data, "\\n%s", text_escape(chart->arena, text.lines[i]));
    fprintf(chart->data, "\t%s\t%.3g\t%s\t%.3g\n", value && place_of(heat, cell->value) < 0.43 ? "0xffffff" :
            "0x000000", text.up, text_escape(chart->arena, text.whole), text.down);
}

static void write_data(const struct chart *chart, const struct heat *heat)
{
    fputs("column\trow\tstate\tx\ty\tvalue\ttext\tdetail\tink\tup\twhole\tdown\n", chart->data);
    for (int i = 0; i < heat->x.count * heat->y.count; i++)
        if (heat->cells[i].state != CELL_EMPTY)
            write_cell(chart, heat, i);
}

static const char *over_text(const struct chart *chart, const struct heat *heat)
{
    const char *text = arena_printf(chart->arena, "%s by %s and %s", heat->quantity.label, heat->x.key, heat->y.key);

    for (size_t i = 0; heat->others[i]; i++)
        text = arena_printf(chart->arena, "%s%s%s", text, i ? ", " : "; best over ", heat->others[i]);
    for (size_t i = 0; heat->shared[i]; i++)
        text = arena_printf(chart->arena, "%s%s%s", text, i ? " " : "; all cells: ", heat->shared[i]);
    return text_clean(chart->arena, text, 400);
}

/* "outlined: the best, 62.83 s at TP4 PP8 mb1". */
static const char *best_text(const struct chart *chart, const struct heat *heat)
{
    const struct cell *cell = &heat->cells[heat->best];
    const char *text = arena_printf(chart->arena, "outlined: the best, %s%s at %s %s",
                                    quantity_text(chart->arena, &heat->quantity, cell->value, 4), heat->quantity.unit,
                                    short_value(chart->arena, heat->x.key, row_value(cell->row, heat->x.key)),
                                    short_value(chart->arena, heat->y.key, row_value(cell->row, heat->y.key)));

    for (size_t i = 0; heat->others[i]; i++)
        text = arena_printf(chart->arena, "%s %s", text, short_value(chart->arena, heat->others[i],
                                                                     row_value(cell->row, heat->others[i])));
    if (heat->ties)
        text = arena_printf(chart->arena, "%s; %d other cell%s as good", text, heat->ties, heat->ties > 1 ? "s are" :
                            " is");
    return text_clean(chart->arena, text, 400);
}

static void write_colours(const struct chart *chart, const struct heat *heat)
{
    double scale = heat->quantity.scale, least = heat->least * scale, most = heat->most * scale;
    FILE *out = chart->script;

    fputs("set palette defined (", out);
    for (size_t i = 0; i < COUNT(colours); i++)
        fprintf(out, "%s%zu \"%s\"", i ? ", " : "", i, colours[heat->by.largest ? i : COUNT(colours) - 1 - i]);
    fprintf(out, ")    # the brightest is the best\n%sset cbrange [%.9g:%.9g]\n",
            heat->logarithmic ? "set logscale cb\n" : "", least, most > least ? most : least + fmax(fabs(least), 1));
    fprintf(out, "set colorbox vertical user origin screen 1 - (right - 18.0)/width, screen 1.0*bottom/height \\\n"
                 "    size screen 16.0/width, screen 1 - 1.0*(top + bottom)/height\n"
                 "set cblabel \"%s\" offset 1,0\nset cbtics scale 0.5\n",
            text_escape(chart->arena, heat->quantity.label));
}

static void write_plot(const struct chart *chart, const struct heat *heat)
{
    static const char *const lines[] = {"linewidth 7 linecolor rgb \"white\"",
                                        "linewidth 3 linecolor rgb limit_colour"};
    FILE *out = chart->script;

    for (size_t i = 0; heat->limit && i < COUNT(lines); i++) {
        write_edges(heat, true, out, lines[i]);
        write_edges(heat, false, out, lines[i]);
    }
    fprintf(out, "best_x = %d; best_y = %d\n"
                 "set object 1 rectangle from best_x - 0.5, best_y - 0.5 to best_x + 0.5, best_y + 0.5 front \\\n"
                 "    fillstyle empty border rgb \"black\" linewidth 3\n", heat->best % heat->x.count,
            heat->best / heat->x.count);
    fputs("\n# columns: 1 column; 2 row; 3 state; 6 value; 7 and 8 text; 9 their colour; 10 and 12 how far\n"
          "# up and down they are, in cells\n"
          "column_of(state) = strcol(3) eq state ? $1 : NaN\n"
          "plot data using (column_of(\"value\")):2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):6 \\\n"
          "        with boxxyerror fillstyle solid 1 border rgb \"white\" fillcolor palette notitle, \\\n", out);
    if (heat->used[CELL_INFEASIBLE])
        fputs("    data using (column_of(\"infeasible\")):2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5) \\\n"
              "        with boxxyerror fillstyle pattern 4 border rgb \"white\" fillcolor rgb hatch_colour \\\n"
              "        title \"infeasible, and why\", \\\n", out);
    if (heat->used[CELL_FAILED])
        fputs("    data using (column_of(\"failed\")):2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5) \\\n"
              "        with boxxyerror fillstyle pattern 2 border rgb \"white\" fillcolor rgb hatch_colour \\\n"
              "        title \"no result\", \\\n", out);
    if (heat->used[CELL_EMPTY])
        fputs("    NaN with boxes fillstyle solid 1 border linecolor rgb line_colour fillcolor rgb \"white\" \\\n"
              "        title \"no point\", \\\n", out);
    if (heat->limit)
        fprintf(out, "    NaN with lines linewidth 3 linecolor rgb limit_colour title \"%s\", \\\n",
                text_escape(chart->arena, heat->limit));
    fprintf(out, "    data using 1:($2 + $10):7:9 with labels textcolor rgb variable \\\n"
                 "        font at_size(%.3g*font_size) notitle, \\\n"
                 "    data using 1:($2 - $12):8:9 with labels textcolor rgb variable \\\n"
                 "        font at_size(0.8*font_size) notitle\n", heat->style ? heat->style->size : 1);
}

static void write_script(const struct chart *chart, struct heat *heat)
{
    int across = heat->x.longest * LETTER + 8, upright = across > heat->wide;
    struct layout layout = {
        .left = heat->left, .right = SCALE, .bottom = CHART_AXIS_HEIGHT,
        .title = sweep_title(chart), .lines = {over_text(chart, heat), best_text(chart, heat), sweep_outcome(chart)},
        .entries = heat->used[CELL_INFEASIBLE] + heat->used[CELL_FAILED] + heat->used[CELL_EMPTY] + !!heat->limit,
        .longest = (int)strlen(heat->limit ? heat->limit : "infeasible, and why"),
    };
    FILE *out = chart->script;

    if (upright)
        layout.bottom += across - 22;
    layout.width = layout.left + layout.right + heat->x.count * heat->wide;
    layout_height(chart, &layout, heat->y.count * heat->high, 0);
    script_begin(chart, &layout);
    fprintf(out, "hatch_colour = 0x9a9a9a\n%s\nset xrange [-0.5:%d - 0.5]\nset yrange [-0.5:%d - 0.5]\n", heat->limit ?
            "limit_colour = 0xd7191c\n" : "", heat->x.count, heat->y.count);
    fprintf(out, "set label 5 \"%s\" at screen middle, 12.0/height center\n"
                 "set label 6 \"%s\" at screen 16.0/width, 0.5*(height - top + bottom)/height center rotate by 90\n",
            text_escape(chart->arena, heat->x.key), text_escape(chart->arena, heat->y.key));
    row_axis_tics(chart, &heat->x, 'x', heat->wide, upright ? 16 : 1);
    if (upright)
        fputs("set xtics rotate by 90 right\n", out);
    row_axis_tics(chart, &heat->y, 'y', heat->high, 16);
    write_colours(chart, heat);
    write_plot(chart, heat);
    script_end(chart);
}

static int read_axis(const struct chart *chart, const char *key, struct row_axis *axis)
{
    if (row_axis_read(chart, key, axis))
        return -1;
    if (!axis->count)
        return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "heat: '%s' has no value in any row; expected a key that "
                         "has some", key);
    return 0;
}

int heat_draw(struct chart *chart)
{
    struct heat heat = {.by = chart->rows->by};
    struct plot_key x = chart->rows->x, y = chart->rows->y;

    if (choose_axes(chart, &x, &y) || read_axis(chart, x.name, &heat.x) || read_axis(chart, y.name, &heat.y) ||
        read_cells(chart, &heat))
        return -1;
    find_others(chart, &heat);
    find_limit(chart, &heat);
    heat.left = 44 + LETTER * heat.y.longest;
    heat.wide = (int)fmax(CELL_LEAST, (layout_width(chart, WIDE + SCALE) - SCALE - heat.left) / (double)heat.x.count);
    if (chart->look->height)
        heat.high = (chart->look->height - AROUND) / heat.y.count;
    else
        heat.high = (int)fmin(fmax(CELL_HIGH, heat_height(chart->arena, &heat)), HIGH / (double)heat.y.count);
    heat.high = heat.high > CELL_LEAST ? heat.high : CELL_LEAST;
    heat_choose_style(chart->arena, &heat);
    if (chart_open(chart))
        return -1;
    write_data(chart, &heat);
    write_script(chart, &heat);
    return 0;
}
