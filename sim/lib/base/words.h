/* words: what people call the keys of results and paths of scenarios, and how they read the numbers under them. */
#ifndef DTSIM_WORDS_H
#define DTSIM_WORDS_H

#include "base/base.h"
#include "base/units.h"

/* "strategy.tensor" -> "TP", "iteration_time_s" -> "iteration"; a path that has no word of its own is called by its last
 * part, "simulation.jitter" -> "jitter". The name lives in the arena, or is `key`. */
const char *words_of(struct arena *arena, const char *key);

/* The kind of a quantity, by its key. */
enum unit unit_of(const char *key);

/* How people read the numbers of a metric, whose name ends in its unit: all with one unit, which stands in the head, so
 * that a column can be read from top to bottom. */
struct number_style {
    const char *name;
    double like;                 /* the number whose unit all get */
};
/* `numbers` (count of them; NaN: none) are put in another order. */
struct number_style number_style_of(const char *name, double *numbers, size_t count);
/* The unit, "" for none. */
char *number_unit(const struct number_style *style, char *text, size_t size);
/* The number without its unit; "-" for NaN. */
char *number_text(const struct number_style *style, double number, char *text, size_t size);

/* A share as people read the size of an error: "5.8 %", "59 %", "120 %". */
char *percent_text(double share, char *text, size_t size);

#endif
