#include "chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_HEIGHT = 18, LABEL_LINES = 30,  /* pixels of a line below the title; the number of the first one's label */
    LONGEST_TITLE = 200,                 /* letters */
};

/* Okabe and Ito's blue, orange and yellow; the others chosen so that any two, idle included, differ in CIE L*a*b* with
 * normal vision, protanopia, deuteranopia and tritanopia (Machado's matrices): by at least 20, but for pack, which is
 * rare, and yellow on grey or beside orange (17). A shade differs by at least 13 from its colour. `ink` is for letters
 * on it. */
static const struct colour colours[TONE_COUNT] = {
    [TONE_FORWARD] = {"0x0072b2", "0xffffff", "0x005686"},
    [TONE_BACKWARD] = {"0xe69f00", "0x000000", "0xb87f00"},
    [TONE_BACKWARD_INPUT] = {"0x44bb99", "0x000000", "0x338c73"},
    [TONE_BACKWARD_WEIGHT] = {"0x225522", "0xffffff", "0x163716"},
    [TONE_RECOMPUTE] = {"0xa6d4fa", "0x000000", "0x7c9fbc"},
    [TONE_PACK] = {"0xb39ddb", "0x000000", NULL},
    [TONE_UPDATE] = {"0x666666", "0xffffff", NULL},
    [TONE_COMMUNICATION] = {"0x4b0082", "0xffffff", NULL},
    [TONE_OFFLOAD] = {"0xf0e442", "0x000000", NULL},
    [TONE_HOST] = {"0x966900", "0xffffff", NULL},
};

const char *const tone_names[] = {
    "forward", "backward", "backward-input", "backward-weight", "recompute", "pack", "update", "communication",
    "offload", "host", NULL,
};
_Static_assert(COUNT(tone_names) == TONE_COUNT + 1, "a name for every tone");
const struct palette tone_palette = {tone_names, colours, TONE_COUNT};

const char *const share_keys[] = {
    "forward", "backward", "backward_input", "backward_weight", "recompute", "update", "pack", "exposed_tensor",
    "exposed_pipeline", "exposed_data", "exposed_context", "exposed_expert", "exposed_offload", "bubble", NULL,
};
_Static_assert(COUNT(share_keys) == SHARE_COUNT + 1, "the bubble is the last");
static const char *const share_names[] = {
    "forward", "backward", "backward-input", "backward-weight", "recompute", "update", "pack", "exposed tensor",
    "exposed pipeline", "exposed data", "exposed context", "exposed expert", "exposed offload", "bubble", NULL,
};
/* Exposed communication often takes thin bands: data's differs from tensor's by 70, and by 20 from every other. */
static const struct colour share_colours[] = {
    {"0x0072b2", "0xffffff", NULL}, {"0xe69f00", "0x000000", NULL}, {"0x44bb99", "0x000000", NULL},
    {"0x225522", "0xffffff", NULL}, {"0xa6d4fa", "0x000000", NULL}, {"0x666666", "0xffffff", NULL},
    {"0xb39ddb", "0x000000", NULL}, {"0x4b0082", "0xffffff", NULL}, {"0xb41eff", "0xffffff", NULL},
    {"0xe1695a", "0x000000", NULL}, {"0xffd278", "0x000000", NULL}, {"0x00ffa5", "0x000000", NULL},
    {"0x966900", "0xffffff", NULL}, {"0xf0f0f0", "0x000000", NULL},
};
_Static_assert(COUNT(share_names) == SHARE_COUNT + 1 && COUNT(share_colours) == SHARE_COUNT, "a name and a colour");
const struct palette share_palette = {share_names, share_colours, SHARE_COUNT};

int tone_of(const char *kind)
{
    static const char *const moves[] = {"activation", "gradient", "sync", "weights"};
    static const char *const copies[] = {"offload", "prefetch"};

    for (int i = 0; i < TONE_COMMUNICATION; i++)
        if (strcmp(kind, tone_names[i]) == 0)
            return i;
    for (size_t i = 0; i < COUNT(moves); i++)
        if (strcmp(kind, moves[i]) == 0)
            return TONE_COMMUNICATION;
    for (size_t i = 0; i < COUNT(copies); i++)
        if (strcmp(kind, copies[i]) == 0)
            return TONE_OFFLOAD;
    return strcmp(kind, "host-update") == 0 ? TONE_HOST : -1;
}

const struct time_unit *time_unit_for(double seconds)
{
    static const struct time_unit units[] = {{"s", "s", 1}, {"ms", "ms", 1e3}, {"us", "µs", 1e6}, {"ns", "ns", 1e9}};
    size_t i = 0;

    /* A value that prints as 1000 of a unit reads better as 1 of the next, hence not quite 1. */
    while (i + 1 < COUNT(units) && seconds * units[i].per_second < 0.99995)
        i++;
    return &units[i];
}

void layout_title(const struct chart *chart, struct layout *layout, const char *note)
{
    const struct headline *headline = chart->runs;
    const struct time_unit *unit = time_unit_for(headline->iteration);
    int lines = 0;

    layout->title = headline->name;
    if (*headline->system)
        layout->lines[lines++] = headline->system;
    layout->lines[lines++] = arena_printf(chart->arena, "iteration %.4g %s, bubble %.1f %%, utilization %.1f %%%s",
                                          headline->iteration * unit->per_second, unit->label,
                                          100 * fmax(headline->bubble, 0), 100 * fmax(headline->utilization, 0),
                                          headline_unfit(chart->arena, headline));
    if (note)
        layout->lines[lines++] = note;
}

static int lines_of(const struct layout *layout)
{
    int lines = 0;

    while (lines < (int)COUNT(layout->lines) && layout->lines[lines])
        lines++;
    return lines;
}

/* The entries of the legend that stand beside each other; each is as wide as the widest. */
static int legend_columns(const struct layout *layout)
{
    size_t longest = (size_t)layout->longest;
    int columns;

    for (int i = 0; layout->palette && i < layout->palette->count; i++)
        if (layout->shown[i] && strlen(layout->palette->names[i]) > longest)
            longest = strlen(layout->palette->names[i]);
    /* generous: where gnuplot finds less room than this, it makes rows that nobody reckoned with */
    columns = (layout->width - layout->left - layout->right) / (int)(9 * longest + 58);
    return columns < 1 ? 1 : columns;
}

/* Pixels of a line that is centred on the chart proper: twice the pixels of the narrower side. */
static int line_room(const struct layout *layout)
{
    enum { MARGIN = 20 };

    return layout->width - abs(layout->left - layout->right) - MARGIN;
}

/* Pixels of an em of the font. */
static double em(void)
{
    return 10 * 96 / 72.0;
}

/* How many bytes of the text fit into the room: all of it, or the words that do. At least one word. */
static size_t fitting(struct arena *arena, const char *text, double room)
{
    size_t fits = strcspn(text, " "), end = fits;

    while (text[end]) {
        end += 1 + strcspn(text + end + 1, " ");
        if (text_ems(arena_strndup(arena, text, end)) * em() > room)
            return fits;
        fits = end;
    }
    return fits;
}

/* Divides the lines that are wider than the picture between words. What has no line any more is left out. */
static void divide_lines(struct arena *arena, struct layout *layout)
{
    const char *divided[COUNT(layout->lines)] = {0};
    size_t count = 0;

    for (size_t i = 0; i < COUNT(layout->lines) && layout->lines[i]; i++)
        for (const char *rest = layout->lines[i]; *rest && count < COUNT(divided); count++) {
            size_t fits = fitting(arena, rest, line_room(layout));

            divided[count] = arena_strndup(arena, rest, fits);
            rest += fits + strspn(rest + fits, " ");
        }
    memcpy(layout->lines, divided, sizeof divided);
}

int layout_width(const struct chart *chart, int left_out)
{
    return chart->look->width ? chart->look->width : left_out;
}

int layout_height(const struct chart *chart, struct layout *layout, int high, int least)
{
    int entries = layout->palette ? 1 : layout->entries;     /* one for what the palette does not have */
    int columns = legend_columns(layout);

    layout->title = chart->look->title ? text_clean(chart->arena, chart->look->title, LONGEST_TITLE) : layout->title;
    divide_lines(chart->arena, layout);
    for (int i = 0; layout->palette && i < layout->palette->count; i++)
        entries += layout->shown[i];
    layout->top = 34 + LINE_HEIGHT * lines_of(layout) + 16 * ((entries + columns - 1) / columns) + layout->above;
    if (chart->look->height)
        high = (int)fmax(least, chart->look->height - layout->top - layout->bottom);
    layout->height = layout->top + layout->bottom + high;
    return high;
}

/* The title's size as a multiple of the font's: smaller for a name that would not fit into the width otherwise. */
static double name_size(const struct layout *layout)
{
    const double usual = 1.2, width = text_ems(layout->title) * em();

    return usual * width > line_room(layout) ? line_room(layout) / width : usual;
}

static void print_title(const struct chart *chart, const struct layout *layout)
{
    FILE *out = chart->script;
    const char *drawable = text_drawable(chart->arena, layout->title);

    fprintf(out, "name = \"%s\"\n", text_escape(chart->arena, layout->title));
    if (strcmp(drawable, layout->title) != 0)
        fprintf(out, "if (format ne \"svg\") name = \"%s\"    # no font at hand has the rest\n",
                text_escape(chart->arena, drawable));
    fprintf(out, "name_size = %.2f\n", name_size(layout));
    for (int i = 0; i < lines_of(layout); i++)
        fprintf(out, "line_%d = \"%s\"\n", i, text_escape(chart->arena, layout->lines[i]));
}

static void print_settings(const struct chart *chart, const struct layout *layout)
{
    FILE *out = chart->script;
    const char *name = chart->name;

    fprintf(out, "# The %s chart; its data are in %s.tsv next to this script.\n"
                 "# Restyle what you like and run: gnuplot %s.gp\n"
                 "# For another format: gnuplot -e \"format = 'pdf'\" %s.gp\n\n", chart->kind, name, name, name);
    fprintf(out, "if (!exists(\"format\")) format = \"%s\"\n", chart->format);
    print_title(chart, layout);
    fprintf(out, "\n# Sizes in pixels, 96 to an inch; png files have twice as many of them.\n"
                 "width = %d\nheight = %d\nleft = %d; right = %d; top = %d; bottom = %d\n"
                 "zoom = %g                      # png and pdf: so many times as large\n"
                 "font = \"sans-serif\"\nfont_size = 10                  # points\n\n",
            layout->width, layout->height, layout->left, layout->right, layout->top, layout->bottom,
            chart->look->zoom);
    fputs("idle_colour = 0xf0f0f0\nline_colour = 0x404040\n", out);
    for (int i = 0; layout->palette && i < layout->palette->count; i++) {
        const struct colour *colour = &layout->palette->colours[i];

        if (layout->shown[i])
            fprintf(out, "colour_%d = %s; shade_%d = %s; ink_%d = %s    # %s\n", i, colour->fill, i,
                    colour->shade ? colour->shade : colour->fill, i, colour->ink, layout->palette->names[i]);
    }
}

void script_begin(const struct chart *chart, const struct layout *layout)
{
    const char *name = text_escape(chart->arena, chart->name);
    FILE *out = chart->script;

    print_settings(chart, layout);
    fprintf(out, "\n# The files beside this script, wherever it is run from.\n"
                 "script = exists(\"ARG0\") ? ARG0 : \"%s.gp\"\n"
                 "slash = 0\n"
                 "do for [i = 1:strlen(script)] { if (script[i:i] eq \"/\") { slash = i } }\n"
                 "folder = (slash && script[1:1] eq \"/\" ? \"\" : \"./\").(slash ? script[1:slash] : \"\")\n"
                 "data = folder.\"%s.tsv\"\n", name, name);
    fputs("\nset encoding utf8\n"
          "at_size(points) = sprintf(\"%s,%.1f\", font, points)\n"
          "if (format eq \"png\") {\n"
          "    set terminal pngcairo noenhanced size 2*zoom*width,2*zoom*height fontscale 2*zoom linewidth 2*zoom \\\n"
          "        pointscale 2*zoom font at_size(font_size)\n"
          "}\n"
          "if (format eq \"svg\") {\n"
          "    set terminal svg noenhanced size width,height fontscale 1.33 font at_size(font_size) \\\n"
          "        background rgb \"white\"\n"
          "}\n"
          "if (format eq \"pdf\") {\n"
          "    set terminal pdfcairo noenhanced size zoom*width/96.0,zoom*height/96.0 fontscale 0.75*zoom \\\n"
          "        linewidth zoom font at_size(font_size)\n"
          "}\n", out);
    fprintf(out, "set output folder.\"%s.\".format\n", name);
    fputs("set datafile separator tab columnheaders\n"
          "set datafile commentschars \"\"\n"
          "set lmargin at screen 1.0*left/width\n"
          "set rmargin at screen 1 - 1.0*right/width\n"
          "set tmargin at screen 1 - 1.0*top/height\n"
          "set bmargin at screen 1.0*bottom/height\n"
          "middle = 0.5*(left + width - right)/width\n"
          "set label 1 name at screen middle, 1 - 16.0/height center font at_size(name_size*font_size)\n", out);
    for (int i = 0; i < lines_of(layout); i++)
        fprintf(out, "set label %d line_%d at screen middle, 1 - %d.0/height center textcolor rgb line_colour\n",
                LABEL_LINES + i, i, 36 + LINE_HEIGHT * i);
    fputs("set border 3 linecolor rgb line_colour\n"
          "set tics nomirror out scale 0.5\n", out);
    fprintf(out, "set key at screen middle, 1 - (top - 4.0)/height bottom center horizontal maxcols %d \\\n"
                 "    Left reverse samplen 1 width 1 height 0 noautotitle\n", legend_columns(layout));
}

void script_end(const struct chart *chart)
{
    fputs("unset output\n", chart->script);
}
