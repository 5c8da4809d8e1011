/* chart: what all charts share: the headline of a run, colours, the script's head, and the way to gnuplot. */
#ifndef DTSIM_CHART_H
#define DTSIM_CHART_H

#include "files/folder.h"
#include "plot.h"

/* What result.json says of a run. Texts are valid UTF-8 of one line, and short enough for a title. */
struct headline {
    const char *name;
    const char *model;       /* "Megatron-LM GPT 1T" */
    const char *system;      /* "Megatron-LM GPT 1T, 3072 GPUs: tensor 8, pipeline 64, data 6; 1f1b, ..."; "" unknown */
    double iteration;        /* seconds */
    double bubble;           /* idle over iteration */
    double utilization;
    double memory;           /* B that a GPU has; NaN: nothing is known */
    int pipeline;            /* ranks of a replica; 0: nothing is known */
    bool other_build;        /* another build of the program wrote it: it may lack what this one writes */
    struct json_t *result;   /* all of it */
    const char *path;
};
int headline_load(struct arena *arena, const char *path, struct headline *headline, struct error *err);
/* The same of a training: it has no times of an iteration, no bubble, no utilization. */
int headline_load_training(struct arena *arena, const char *path, struct headline *headline, struct error *err);
/* The same of JSON that is at hand, which the headline then owns; `path` is for messages. */
int headline_of(struct arena *arena, struct json_t *result, const char *path, struct headline *headline,
                struct error *err);
void headline_release(struct headline *headline);
/* ", does not fit: 184.1 GiB in 80 GiB"; "": it fits, or nothing is known. */
const char *headline_unfit(struct arena *arena, const struct headline *headline);
/* A number of result.json: "breakdown_s.bubble", "scenario.batch.micro_batches". An error when it is none. */
int headline_number(const struct headline *headline, const char *key, double *value, struct error *err);
/* The same of a number that may be missing: then `missing`. */
double headline_number_or(const struct headline *headline, const char *key, double missing);
/* A text or the text of a number; NULL when it is neither. It lives in the arena. */
const char *headline_text(struct arena *arena, const struct headline *headline, const char *key);

/* One chart at work. */
struct chart {
    const char *kind;
    const char *format;
    const char *folder;      /* of the chart's files */
    const char *name;        /* of these files, without an ending */
    const char *const *inputs;
    int ninputs;
    const char *dir;         /* the first input: of a chart of one run, its folder */
    const struct headline *runs;     /* what the inputs say of themselves; NULL: they are no runs */
    const struct plot_view *view;
    const struct plot_rows *rows;    /* of charts of sweeps */
    const struct plot_look *look;
    struct arena *arena;
    struct staging staging;  /* where the files are made, once the chart is open */
    FILE *data, *script;     /* NAME.tsv and .gp there */
    struct error *err;
};
/* Opens the chart's files. Not before the inputs are read: bad ones leave an earlier chart as it is. */
int chart_open(struct chart *chart);
/* A further file of data for the script, NAME-all.tsv; the caller closes it by chart_written. */
FILE *chart_further(const struct chart *chart);
int chart_written(FILE *file, const char *path, struct error *err);
/* Each reads its inputs, opens the chart's files and writes them. */
#define CHART(name, inputs, brief) int name##_draw(struct chart *chart);
#include "list.h"
#undef CHART

/* The last part of a path. */
const char *last_part(struct arena *arena, const char *path);
/* Of charts of several runs: a label each, its name, or its folder's where several have the same name. */
const char *const *run_labels(const struct chart *chart);
/* "Llama 2 7B; NOTE": what a chart of several runs notes, behind the model where all have the same; NULL: nothing. */
const char *noted(const struct chart *chart, const char *note);

/* The entries of a chart's legend, in its order: names, colours, and the colours of letters on these. */
struct palette {
    const char *const *names;
    const struct colour { const char *fill, *ink, *shade; } *colours;    /* shade: darker; NULL: there is none */
    int count;
};
enum { PALETTE_MOST = 14 };

/* The kinds of work that charts tell apart. */
enum tone {
    TONE_FORWARD, TONE_BACKWARD, TONE_BACKWARD_INPUT, TONE_BACKWARD_WEIGHT, TONE_RECOMPUTE, TONE_PACK, TONE_UPDATE,
    TONE_COMMUNICATION,      /* activations, gradients and collectives alike */
    TONE_OFFLOAD,            /* copies to the host and back */
    TONE_HOST,               /* what the host computes */
    TONE_COUNT
};
extern const char *const tone_names[];               /* "forward", ...; ends in NULL */
extern const struct palette tone_palette;
/* The tone of a span's kind, or -1 when no span is of that kind. */
int tone_of(const char *kind);

/* Where the seconds of the ranks go: the columns of utilization.tsv and the keys of breakdown_s, the bubble last. */
enum { SHARE_BUBBLE = 13, SHARE_COUNT };
extern const char *const share_keys[];               /* "forward", ..., "exposed_tensor", ...; ends in NULL */
extern const struct palette share_palette;           /* with their names in legends */

/* The text as valid UTF-8 in one line of at most `longest` characters: control characters become blanks, bytes that
 * are no UTF-8 become U+FFFD, and what is cut off shows as an ellipsis. */
const char *text_clean(struct arena *arena, const char *text, size_t longest);
/* Clean text as cairo can draw it here: characters that no font of this machine has become '?', because gnuplot's cairo
 * terminals draw them as boxes larger than the picture. */
const char *text_drawable(struct arena *arena, const char *text);
/* A short name of the simulator's own, in bulk: clean, at most 24 characters, beyond Latin, Greek and Cyrillic '?'. */
const char *text_label(struct arena *arena, const char *text);
/* Clean text between double quotes of a script, or in a cell of a data file: whatever gnuplot could take for
 * something else is written as an octal escape. */
const char *text_escape(struct arena *arena, const char *text);

/* The same as the label of a tic, which gnuplot takes for a format. */
const char *text_tic(struct arena *arena, const char *text);
/* The width of clean text, as a multiple of the font's size: in DejaVu Sans, which is wider than other fonts for text. */
double text_ems(const char *text);

/* The unit in which a duration reads best: "s", "ms", "us" or "ns", and how many of them make a second. */
struct time_unit {
    const char *name, *label;    /* in ASCII; as charts print it */
    double per_second;
};
const struct time_unit *time_unit_for(double seconds);

/* The script's head: everything that may be restyled, the terminal, title lines, margins (in pixels) and the colours of
 * the palette that are shown. */
struct layout {
    int width, height;
    int left, right, top, bottom;
    int above;               /* of `top`, below title and legend */
    const char *title;
    const char *lines[8];    /* below the title; NULL where there are fewer; layout_height divides those that are too
                                long */
    const struct palette *palette;   /* NULL: the chart has colours of its own, and `entries` in its legend */
    bool shown[PALETTE_MOST];
    int entries;             /* in the legend, without a palette */
    int longest;             /* letters of the longest entry that the palette does not have */
};
enum { CHART_AXIS_HEIGHT = 46 };
/* The title lines of a chart of one run: its name, system and main numbers, and a note or NULL. */
void layout_title(const struct chart *chart, struct layout *layout, const char *note);
/* The picture's width in pixels: as the person asked, else as it is left out. */
int layout_width(const struct chart *chart, int left_out);
/* Divides the title lines, and sets top and height; the other members are set. `high`: the pixels of the chart proper
 * where the person asks for no height; `least`: those without which it cannot be read. Returns the pixels that it
 * has. */
int layout_height(const struct chart *chart, struct layout *layout, int high, int least);
void script_begin(const struct chart *chart, const struct layout *layout);
/* Ends the script. */
void script_end(const struct chart *chart);

/* Another program that is run without a shell. It is looked for in those folders of PATH that are named from the root,
 * and ends with this process. */
struct tool {
    const char *folder;              /* where it runs */
    const char *const *arguments;    /* its name first; NULL-terminated */
    int descriptor;                  /* which output is kept, 1 or 2 */
    double seconds;                  /* after which it is killed */
};
enum { TOOL_SECONDS = 60 };          /* the usual limit */
/* Runs it and keeps the beginning of its output. Returns an errno: ENOENT when there is no such tool, ETIMEDOUT when it
 * was killed, EINTR when a signal waits. */
int tool_run(const struct tool *tool, char *text, size_t size, int *status);
/* Runs gnuplot on the chart's script, where the chart's files are made. Messages name the folder that they come to.
 * 0, -1, or EINTR when a signal waits. */
int gnuplot_run(const struct chart *chart, struct error *err);

#endif
