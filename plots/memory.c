/* The memory chart: what a few ranks hold, kind by kind, stacked, over time. */
#include "chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/tsv.h"

enum { COLUMNS = 700 };              /* columns of a picture: changes within one are drawn as their maximum */
enum { MOST_RANKS = 1 << 22 };
enum { PANELS = 3, PANEL = 190, LEAST_PANEL = 130, BETWEEN = 26 };      /* ranks drawn; pixels */

/* The kinds as they are stacked: what stays from the beginning to the end below what comes and goes. All but OTHER are
 * kinds of the file; OTHER is all kinds that have no colour here. */
enum { KINDS = 10, OTHER = KINDS - 1 };
static const char *const kind_names[] = {
    "context", "parameters", "gathered", "gradients", "optimizer", "buffers", "fragmentation", "activations",
    "workspace", "other", NULL,
};
static const struct colour kind_colours[] = {
    {"0x666666", "0xffffff", NULL}, {"0x0072b2", "0xffffff", NULL}, {"0xa6d4fa", "0x000000", NULL},
    {"0xe69f00", "0x000000", NULL}, {"0x225522", "0xffffff", NULL}, {"0xb39ddb", "0x000000", NULL},
    {"0xbfbfbf", "0x000000", NULL}, {"0x44bb99", "0x000000", NULL}, {"0x4b0082", "0xffffff", NULL},
    {"0xf0e442", "0x000000", NULL},
};
_Static_assert(COUNT(kind_names) == KINDS + 1 && COUNT(kind_colours) == KINDS, "a name and a colour for every kind");
static const struct palette palette = {kind_names, kind_colours, KINDS};

struct level { double at, total, bytes[KINDS]; };
struct levels { struct level *items; size_t count, capacity; };
struct panel {
    int rank;
    struct levels levels;
    struct level peak;
};
/* What a rank holds at the row at hand. `others`: of kinds that have no colour, by the order in which they appear. */
enum { OTHERS = 8 };
struct held { double at, bytes[KINDS], others[OTHERS], peak; bool seen; };
struct memory_chart {
    struct panel panels[PANELS];
    int npanels;
    struct { struct held *items; size_t count, capacity; } ranks;
    const char *others[OTHERS];
    double end, most;
};

/* Where the row's kind is counted. */
static double *place_of(struct memory_chart *memory, struct held *held, const struct chart *chart, const char *kind)
{
    for (int k = 0; k < OTHER; k++)
        if (!strcmp(kind, kind_names[k]))
            return &held->bytes[k];
    for (int i = 0; i < OTHERS; i++) {
        if (!memory->others[i])
            memory->others[i] = arena_printf(chart->arena, "%s", kind);
        if (!strcmp(kind, memory->others[i]))
            return &held->others[i];
    }
    return NULL;
}

/* Reads a row: the rank, and what it holds from then on. */
static int read_level(struct memory_chart *memory, const struct chart *chart, const struct tsv *tsv, int *rank,
                      struct level *level)
{
    enum { RANK, TIME, KIND, BYTES };
    double bytes, *place;
    struct held *held;

    if (tsv_integer(tsv, RANK, 0, MOST_RANKS - 1, rank, chart->err) ||
        tsv_number(tsv, TIME, &level->at, chart->err) || tsv_number(tsv, BYTES, &bytes, chart->err))
        return -1;
    while (memory->ranks.count <= (size_t)*rank)
        *GROW(&memory->ranks) = (struct held){0};
    BUG_IF(!memory->ranks.items);
    held = &memory->ranks.items[*rank];
    if (level->at < held->at)
        return error_add(chart->err, EXIT_INPUT, tsv_loc(tsv, TIME), level->at < 0 ? "a time before 0" :
                         "a time before that of the rank's row above");
    if (bytes < -1)              /* a sum of numbers that were rounded is seldom 0 */
        return error_add(chart->err, EXIT_INPUT, tsv_loc(tsv, BYTES), "%.40s bytes: less than none",
                         tsv_text(tsv, BYTES));
    place = place_of(memory, held, chart, tsv_text(tsv, KIND));
    if (!place)
        return error_add(chart->err, EXIT_INPUT, tsv_loc(tsv, KIND), "too many kinds of memory");
    *place = fmax(bytes, 0);
    held->at = level->at;
    held->seen = true;
    held->bytes[OTHER] = 0;
    for (int i = 0; i < OTHERS; i++)
        held->bytes[OTHER] += held->others[i];
    memcpy(level->bytes, held->bytes, sizeof level->bytes);
    level->total = 0;
    for (int k = 0; k < KINDS; k++)
        level->total += held->bytes[k];
    return 0;
}

/* Reads all rows: what each rank holds at most, and, with `collect`, all that the ranks that are drawn hold. */
static int read_levels(struct memory_chart *memory, const struct chart *chart, bool collect)
{
    static const char *const columns[] = {"rank", "t", "kind", "bytes", NULL};
    int before = chart->err->count + chart->err->dropped, failed;
    struct tsv tsv = {0};

    memory->ranks.count = 0;
    failed = tsv_open(&tsv, arena_printf(chart->arena, "%s/memory.tsv", chart->dir), columns, chart->err);
    while (!failed && tsv_next(&tsv, chart->err)) {
        struct level level;
        int rank;

        if (read_level(memory, chart, &tsv, &rank, &level))
            continue;
        memory->end = fmax(memory->end, level.at);
        memory->ranks.items[rank].peak = fmax(memory->ranks.items[rank].peak, level.total);
        for (int p = 0; collect && p < memory->npanels; p++)
            if (memory->panels[p].rank == rank)
                *GROW(&memory->panels[p].levels) = level;
    }
    failed |= chart->err->count + chart->err->dropped > before;
    if (!failed && !memory->ranks.count)
        failed = error_add(chart->err, EXIT_INPUT, tsv.loc, "no rows: nothing to draw");
    tsv_release(&tsv);
    return failed ? -1 : 0;
}

/* The ranks that are drawn: the first, the one that holds most, and the last. */
static void choose_panels(struct memory_chart *memory)
{
    int fullest = 0, last = (int)memory->ranks.count - 1;

    for (int r = 1; r <= last; r++)
        if (memory->ranks.items[r].peak > memory->ranks.items[fullest].peak * (1 + 1e-12))
            fullest = r;
    const int ranks[PANELS] = {0, fullest, last};
    for (int i = 0; i < PANELS; i++)
        if (!memory->npanels || ranks[i] > memory->panels[memory->npanels - 1].rank)
            memory->panels[memory->npanels++].rank = ranks[i];
}

/* Levels that begin within one column become the highest of them, for that column, and the last of them after it. */
static void gather(struct panel *panel, double column)
{
    const struct levels *all = &panel->levels;
    struct levels kept = {0};

    for (size_t i = 0, next; i < all->count; i = next) {
        struct level most = all->items[i], last;

        for (next = i + 1; next < all->count && all->items[next].at < all->items[i].at + column; next++)
            if (all->items[next].total >= most.total)
                most = all->items[next];
        last = all->items[next - 1];
        if (most.total > panel->peak.total || !i)
            panel->peak = most;
        most.at = all->items[i].at;
        *GROW(&kept) = most;
        if (last.total < most.total) {
            last.at = all->items[i].at + column;
            *GROW(&kept) = last;
        }
    }
    free(panel->levels.items);
    panel->levels = kept;
}

/* The outline of the areas: two points a level, so that they join as steps. */
static void write_data(const struct chart *chart, const struct memory_chart *memory)
{
    fputs("rank\ttime", chart->data);
    for (int k = 0; k < KINDS; k++)
        fprintf(chart->data, "\t%s", kind_names[k]);
    fputs("\n", chart->data);
    for (int p = 0; p < memory->npanels; p++) {
        const struct levels *levels = &memory->panels[p].levels;

        for (size_t i = 0; i < levels->count; i++)
            for (int point = 0; point < 2; point++) {
                const struct level *level = &levels->items[i];
                double end = i + 1 < levels->count ? level[1].at : fmax(memory->end, level->at);

                fprintf(chart->data, "%d\t%.15g", memory->panels[p].rank, point ? end : level->at);
                for (int k = 0; k < KINDS; k++)
                    fprintf(chart->data, "\t%.12g", level->bytes[k]);
                fputs("\n", chart->data);
            }
    }
}

static const struct byte_unit { const char *name; double bytes; } *byte_unit_for(double bytes)
{
    static const struct byte_unit units[] = {{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10},
                                             {"B", 1}};
    size_t i = 0;

    while (i + 1 < COUNT(units) && bytes < units[i].bytes)
        i++;
    return &units[i];
}

static const char *bytes_text(struct arena *arena, double bytes)
{
    const struct byte_unit *unit = byte_unit_for(bytes);

    return arena_printf(arena, "%.4g %s", bytes / unit->bytes, unit->name);
}

static const char *note_of(const struct chart *chart, const struct memory_chart *memory)
{
    const char *text = "";

    if (!isnan(chart->runs->memory))
        text = arena_printf(chart->arena, "a GPU has %s", bytes_text(chart->arena, chart->runs->memory));
    if (memory->npanels < (int)memory->ranks.count && memory->most > 0)
        text = arena_printf(chart->arena, "%s%sthe first, the last and the fullest of %zu ranks", text,
                            *text ? "; " : "", memory->ranks.count);
    return *text ? text : NULL;
}

/* One plot, of panel p. */
static void write_panel(const struct layout *layout, bool limited, FILE *out)
{
    fputs("    set tmargin at screen 1 - (top + p*(panel + between))/(1.0*height)\n"
          "    set bmargin at screen 1 - (top + p*(panel + between) + panel)/(1.0*height)\n"
          "    set label 9 word(headings, p + 1) at screen 1.0*left/width, \\\n"
          "        1 - (top + p*(panel + between) - 9.0)/height left\n"
          "    set object 2 circle at first unit*word(peak_times, p + 1), first word(peaks, p + 1)/scale \\\n"
          "        size screen 0.004 front fillstyle solid 1 border rgb \"white\" fillcolor rgb \"black\"\n"
          "    rank = 0 + word(ranks, p + 1)\n"
          "    plot \\\n", out);
    for (int k = KINDS - 1; k >= 0; k--)
        if (layout->shown[k])
            fprintf(out, "        data using ($1 == rank ? unit*$2 : NaN):((sum [i = 3:%d] column(i))/scale) \\\n"
                         "            with filledcurves y1=0 fillstyle solid 1 noborder fillcolor rgb colour_%d "
                         "notitle, \\\n", k + 3, k);
    for (int k = 0; k < KINDS; k++)
        if (layout->shown[k])
            fprintf(out, "        NaN with boxes fillstyle solid 1 noborder fillcolor rgb colour_%d "
                         "title p ? \"\" : \"%s\", \\\n", k, kind_names[k]);
    if (limited)
        fputs("        limit/scale with lines dashtype (8, 6) linewidth 1.5 linecolor rgb \"black\" \\\n"
              "            title p ? \"\" : \"a GPU's memory\"\n", out);
    else
        fputs("        NaN notitle\n", out);
    fputs("    unset label      # said once\n", out);
}

static void write_lists(const struct chart *chart, const struct memory_chart *memory, FILE *out)
{
    fputs("\n# Of each panel: the rank, its heading, when it holds most and how much (bytes).\nranks = \"", out);
    for (int p = 0; p < memory->npanels; p++)
        fprintf(out, "%s%d", p ? " " : "", memory->panels[p].rank);
    fputs("\"\nheadings = \"", out);
    for (int p = 0; p < memory->npanels; p++)
        fprintf(out, "%s'rank %d: at most %s'", p ? " " : "", memory->panels[p].rank,
                bytes_text(chart->arena, memory->panels[p].peak.total));
    fputs("\"\npeak_times = \"", out);
    for (int p = 0; p < memory->npanels; p++)
        fprintf(out, "%s%.15g", p ? " " : "", memory->panels[p].peak.at);
    fputs("\"\npeaks = \"", out);
    for (int p = 0; p < memory->npanels; p++)
        fprintf(out, "%s%.15g", p ? " " : "", memory->panels[p].peak.total);
    fputs("\"\n", out);
}

static void write_script(const struct chart *chart, const struct memory_chart *memory)
{
    const double limit = chart->runs->memory, far = 4;    /* a limit that much above the peak would flatten all */
    double end = memory->end, most = memory->most;
    bool limited = limit <= far * most;
    const struct time_unit *unit = time_unit_for(end);
    struct layout layout = {
        .palette = &palette, .width = layout_width(chart, 840), .left = 76, .right = 22, .above = BETWEEN - 8,
        .bottom = CHART_AXIS_HEIGHT,
        .longest = (int)strlen("a GPU's memory"),
    };
    const struct byte_unit *scale;
    FILE *out = chart->script;
    int panel;

    most = fmax(1, limited ? fmax(most, limit) : most);
    scale = byte_unit_for(most);
    for (int p = 0; p < memory->npanels; p++)
        for (size_t i = 0; i < memory->panels[p].levels.count; i++)
            for (int k = 0; k < KINDS; k++)
                layout.shown[k] |= memory->panels[p].levels.items[i].bytes[k] > 0;
    layout_title(chart, &layout, note_of(chart, memory));
    panel = (layout_height(chart, &layout, memory->npanels * (PANEL + BETWEEN) - BETWEEN,
                           memory->npanels * (LEAST_PANEL + BETWEEN) - BETWEEN) + BETWEEN) / memory->npanels - BETWEEN;
    script_begin(chart, &layout);
    fprintf(out, "\npanel = %d\nbetween = %d\nend = %.15g\nunit = %g\nscale = %.15g\n", panel, BETWEEN, end,
            unit->per_second, scale->bytes);
    if (limited)
        fprintf(out, "limit = %.15g\n", limit);
    write_lists(chart, memory, out);
    fprintf(out, "set xrange [0:end*unit]\nset yrange [0:%.6g]\nset ylabel \"%s\" offset 0.8,0\n",
            1.06 * most / scale->bytes, scale->name);
    fprintf(out, "set key at screen middle, 1 - (top - %d.0)/height\n", BETWEEN - 4);
    if (memory->most <= 0)
        fputs("set label 10 \"No rank holds anything: the scenario gives no bytes of parameters or activations\" \\\n"
              "    at graph 0.5, graph 0.5 center\nunset ytics\n", out);
    fputs("set object 1 rectangle from graph 0,0 to graph 1,1 behind \\\n"
          "    fillstyle solid 1 noborder fillcolor rgb idle_colour\n"
          "\n# columns: 1 rank; 2 time; 3 and on: bytes of each kind, in the order of their colours.\n"
          "# Areas are drawn from 0 to the sum so far, the highest first; the dot is where the rank holds most.\n"
          "set multiplot\nset format x \"\"\n", out);
    fprintf(out, "do for [p = 0:%d] {\n    if (p == %d) {\n        set format x \"%%g\"\n"
                 "        set xlabel \"time (%s)\" offset 0,0.3\n    }\n", memory->npanels - 1, memory->npanels - 1,
            unit->label);
    write_panel(&layout, limited, out);
    fputs("}\nunset multiplot\n", out);
    script_end(chart);
}

int memory_draw(struct chart *chart)
{
    struct memory_chart memory = {.end = chart->runs->iteration};
    int failed = read_levels(&memory, chart, false);

    if (!failed)
        choose_panels(&memory);
    failed = failed || read_levels(&memory, chart, true) || chart_open(chart);
    for (int p = 0; !failed && p < memory.npanels; p++) {
        struct panel *panel = &memory.panels[p];

        gather(panel, memory.end / COLUMNS);
        memory.most = fmax(memory.most, panel->peak.total);
    }
    if (memory.most <= 0)
        memory.npanels = memory.npanels ? 1 : 0;     /* one is enough to say so */
    if (!failed) {
        write_data(chart, &memory);
        write_script(chart, &memory);
    }
    for (int p = 0; p < PANELS; p++)
        free(memory.panels[p].levels.items);
    free(memory.ranks.items);
    return failed ? -1 : 0;
}
