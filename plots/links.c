/* The links chart: how busy each link was and what crossed it, class by class, the busiest first. Links of the topology are
 * of a class for each level: of leaves, of pods, of rails, of routers. */
#include "chart.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "files/tsv.h"

enum { WORST = 8, ROW = 20 };        /* links of a class that have a bar of their own; pixels of a bar */

static const struct class { const char *name, *title, *colour; } classes[] = {
    {"nvlink", "NVLink", "0x0072b2"}, {"pcie", "PCIe inside nodes", "0x0072b2"},
    {"inside", "inside nodes", "0x0072b2"}, {"nic", "NICs", "0xe69f00"},
    {"uplink", "uplinks of leaf switches", "0x225522"}, {"host", "to host memory and back", "0x966900"},
};
enum { CLASSES = COUNT(classes), UPLINK = 4 };

/* Links of the topology by the first word of their names; other names are of a level that its file names. */
static const struct { const char *word, *title; } levels[] = {
    {"leaf", "uplinks of leaf switches"}, {"unit", "uplinks of rails"}, {"node", "between neighbouring nodes"},
    {"router", "between the routers of a group"}, {"group", "between groups of routers"}, {"", "links of the network"},
};

enum { LINK, CLASS, PAYLOAD, WIRE, BUSY, REPLICAS };
static const char *const columns[] = {"link", "class", "payload_bytes", "wire_bytes", "busy", "replicas", NULL};

/* A link, or several that have one row. */
struct link {
    const char *name, *level;        /* level: the first word of a link of the topology; else "" */
    int class;
    size_t group;                    /* the first link of its class and level */
    double count, payload, wire, busy;   /* count: whole, and exact far beyond an int */
    size_t order;
};
struct links { struct link *items; size_t count, capacity; };

/* A row stands for one link of each of at most all GPUs. */
static int read_link(const struct tsv *tsv, int gpus, struct link *link, struct error *err)
{
    int failed = 0, count = 0;

    failed |= tsv_number(tsv, PAYLOAD, &link->payload, err);
    failed |= tsv_number(tsv, WIRE, &link->wire, err);
    failed |= tsv_number(tsv, BUSY, &link->busy, err);
    failed |= tsv_integer(tsv, REPLICAS, 1, gpus, &count, err);
    link->count = count;
    if (!failed && (link->payload < 0 || link->wire < 0 || link->busy < 0))
        failed = error_add(err, EXIT_INPUT, tsv->loc, "less than nothing on a link");
    while (link->class < CLASSES && strcmp(classes[link->class].name, tsv_text(tsv, CLASS)))
        link->class++;
    if (link->class == CLASSES)
        failed = error_add(err, EXIT_INPUT, tsv_loc(tsv, CLASS), "unknown class of links '%.40s'",
                           tsv_text(tsv, CLASS));
    link->name = tsv_text(tsv, LINK);
    return failed;
}

/* "pod" of "pod0.up"; "" of a name that does not begin with a word and a number. */
static const char *level_of(struct arena *arena, const struct link *link)
{
    size_t letters = 0;

    while (link->class == UPLINK && isalpha((unsigned char)link->name[letters]))
        letters++;
    return arena_strndup(arena, link->name, isdigit((unsigned char)link->name[letters]) ? letters : 0);
}

static size_t group_of(const struct links *links, const struct link *link)
{
    for (size_t i = links->count; i-- > 0;)          /* mostly the one before */
        if (links->items[i].class == link->class && !strcmp(links->items[i].level, link->level))
            return links->items[i].group;
    return link->order;
}

static int read_links(struct arena *arena, struct links *links, const struct headline *run, struct tsv *tsv, struct error *err)
{
    double gpus;
    int before = err->count + err->dropped;

    if (headline_number(run, "gpus", &gpus, err))
        return -1;
    gpus = fmin(fmax(gpus, 1), INT_MAX);
    while (tsv_next(tsv, err)) {
        struct link link = {.order = links->count};

        if (read_link(tsv, (int)gpus, &link, err))
            continue;
        link.level = level_of(arena, &link);
        link.group = group_of(links, &link);
        *GROW(links) = link;
    }
    if (err->count + err->dropped > before)
        return -1;
    return links->count ? 0 : error_add(err, EXIT_INPUT, tsv->loc, "no link carried anything: nothing to draw");
}

/* By class and level, then the busiest first. */
static int compare(const void *left, const void *right)
{
    const struct link *a = left, *b = right;

    if (a->class != b->class)
        return a->class - b->class;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->busy < b->busy || a->busy > b->busy)
        return a->busy > b->busy ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Keeps the busiest of each class, and one row for the mean of the others. */
static void gather(struct arena *arena, struct links *links)
{
    struct links kept = {0};

    for (size_t i = 0, first = 0; i < links->count; i++) {
        const struct link *link = &links->items[i];
        struct link *rest;

        if (i == 0 || link->group != link[-1].group)
            first = i;
        if (i - first < WORST) {
            *GROW(&kept) = *link;
            continue;
        }
        if (i - first == WORST)
            *GROW(&kept) = (struct link){.class = link->class, .group = link->group, .level = link->level};
        rest = &kept.items[kept.count - 1];
        rest->payload = (rest->payload * rest->count + link->payload * link->count) / (rest->count + link->count);
        rest->wire = (rest->wire * rest->count + link->wire * link->count) / (rest->count + link->count);
        rest->busy = (rest->busy * rest->count + link->busy * link->count) / (rest->count + link->count);
        rest->count += link->count;
        rest->name = arena_printf(arena, "%.0f more, mean", rest->count);
    }
    free(links->items);
    *links = kept;
}

static const char *bytes_text(struct arena *arena, double bytes)
{
    static const struct { double bytes; const char *name; } units[] = {
        {1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"},
    };
    size_t i = 0;

    while (i + 1 < COUNT(units) && bytes < units[i].bytes)
        i++;
    return arena_printf(arena, "%.3g %s", bytes / units[i].bytes, units[i].name);
}

static const char *title_of(struct arena *arena, const struct link *link)
{
    for (size_t i = 0; link->class == UPLINK && i < COUNT(levels); i++)
        if (!strcmp(link->level, levels[i].word))
            return levels[i].title;
    return link->class == UPLINK ? arena_printf(arena, "uplinks of each %.20s", link->level) : classes[link->class].title;
}

/* "NVLink: 64 links, 516 GB sent, 637 GB on the wire", of the class and level of a link. */
static const char *heading(struct arena *arena, const struct links *links, const struct link *of)
{
    double payload = 0, wire = 0, count = 0;

    for (size_t i = 0; i < links->count; i++)
        if (links->items[i].group == of->group) {
            count += links->items[i].count;
            payload += links->items[i].count * links->items[i].payload;
            wire += links->items[i].count * links->items[i].wire;
        }
    return arena_printf(arena, "%s: %.0f link%s, %s of payload, %s on the wire", title_of(arena, of), count,
                        count == 1 ? "" : "s", bytes_text(arena, payload), bytes_text(arena, wire));
}

/* Rows stand 1 apart; a class begins with a row for its heading. Returns how many rows there are. */
static int write_rows(const struct chart *chart, const struct links *links)
{
    int row = 0, further = 0;

    fputs("row\tlink\tclass\tlinks\tpayload_bytes\twire_bytes\tbusy\ttext\n", chart->data);
    for (size_t i = 0; i < links->count; i++) {
        const struct link *link = &links->items[i];

        if (i == 0 || link->group != link[-1].group)
            fprintf(chart->script, "set label %d \"%s\" at graph 0, first %d left offset 0.3,0 front\n",
                    i == 0 || link->class != link[-1].class ? 10 + link->class : 20 + further++, heading(chart->arena, links, link), row++);
        fprintf(chart->script, "set ytics add (\"%s\" %d)\n",
                text_tic(chart->arena, text_label(chart->arena, link->name)), row);
        fprintf(chart->data, "%d\t%s\t%d\t%.0f\t%.17g\t%.17g\t%.17g\t%.3g %%, %s\n", row++,
                text_escape(chart->arena, text_label(chart->arena, link->name)), link->class, link->count,
                link->payload, link->wire, link->busy, 100 * link->busy, bytes_text(chart->arena, link->wire));
    }
    return row;
}

static void write_script(const struct chart *chart, const struct links *links)
{
    struct layout layout = {.width = layout_width(chart, 840), .left = 140, .right = 22, .bottom = CHART_AXIS_HEIGHT};
    double most = 0;
    int rows = 0;
    FILE *out = chart->script;

    for (size_t i = 0; i < links->count; i++) {
        most = fmax(most, links->items[i].busy);
        rows += 1 + (i == 0 || links->items[i].group != links->items[i - 1].group);
    }
    layout_title(chart, &layout, "each link: the share of the time that its full rate needs for its bytes on the wire");
    layout_height(chart, &layout, ROW * rows, 15 * rows);
    script_begin(chart, &layout);
    for (int c = 0; c < CLASSES; c++)
        fprintf(out, "colour_%d = %s    # %s\n", c, classes[c].colour, classes[c].name);
    fprintf(out, "\nrows = %d\nmost = %.15g    # percent\nset xrange [0:1.3*most]\nset yrange [rows - 0.5:-0.5]\n",
            rows, most > 0 ? 100 * most : 1);
    fputs("set xlabel \"busy (% of the iteration)\" offset 0,0.3\nset ytics () scale 0\n", out);
    write_rows(chart, links);
    fputs("\n# columns: 1 row; 3 class; 7 busy; 8 text\n"
          "array fills[6] = [colour_0, colour_1, colour_2, colour_3, colour_4, colour_5]\n"
          "plot data using (50*$7):1:(0):(100*$7):($1 - 0.36):($1 + 0.36):(fills[$3 + 1]) with boxxyerror \\\n"
          "        fillstyle solid 1 noborder fillcolor rgb variable, \\\n"
          "    data using (100*$7):1:8 with labels left offset 0.6,0 font at_size(0.9*font_size)\n", out);
    script_end(chart);
}

int links_draw(struct chart *chart)
{
    struct links links = {0};
    struct tsv tsv = {0};
    int failed = tsv_open(&tsv, arena_printf(chart->arena, "%s/links.tsv", chart->dir), columns, chart->err) ||
                 read_links(chart->arena, &links, chart->runs, &tsv, chart->err) || chart_open(chart);

    if (!failed) {
        array_sort(links.items, links.count, sizeof *links.items, compare);
        gather(chart->arena, &links);
        write_script(chart, &links);
    }
    free(links.items);
    tsv_release(&tsv);
    return failed ? -1 : 0;
}
