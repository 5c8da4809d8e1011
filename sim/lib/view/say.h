/* say: sentences over what a view says, as lines in which {KEY} stands for the value under the key:
 *
 *     {gpus GPU}                "8 GPUs", "1 GPU"; {KEY} alone has the unit that the key ends in: "1.5 ms", "79.3 GiB"
 *     {mfu*100:%.1f}            as printf writes the number times 100; {energy_j/3.6e9:%.5g}: over 3.6e9
 *     {tokens:count}            "15 T"; bytes, time, flop, flops: in that unit; share: "5.8 %"; a text: cell, in Markdown
 *     {forward_s~iteration_s}   with the prefix that the other number gets
 *     {name@-12}                at least 12 wide, to the left; @12: to the right
 *     [, {x} of them|, none]    left out, or the next one of these, where a key in it is null, or not there
 *     [?x>0 ...], [?x=y ...]    and where the condition does not hold: <, >, =, ! (differs); [?x ...]: true, not 0 and not ""
 *
 * A key may be a path, "steady_state.updates". Behind a backslash a sign stands for itself. */
#ifndef DTSIM_SAY_H
#define DTSIM_SAY_H

#include "base/sheet.h"
#include "files/json.h"

/* Prints the line; nothing where a key outside of [] is null or missing. Texts of others are made harmless. */
void say(const json_t *of, const char *line, FILE *out);
/* The same with values that `of` does not have yet: they are found by key (NULL: there is none), and added to it. */
struct say_source { json_t *(*find)(void *context, const char *key); void *context; };
void say_from(json_t *of, const struct say_source *source, const char *line, FILE *out);
/* NULL stands behind the last line. */
void say_all(const json_t *of, const char *const *lines, FILE *out);
/* The line for each item of a list. */
void say_each(const json_t *list, const char *line, FILE *out);

/* A table of a list: a column is its head, its unit or NULL, and the line of its cells, "-" where a key in it is null or missing.
 * Where a column without a head says something, that is the rest of the row. `sheet` is as sheet.h asks for it; it is released. */
struct say_column { const char *head, *unit, *cell; };
void say_table(const json_t *list, const struct say_column *columns, size_t count, struct sheet *sheet, bool markdown, FILE *out);

#endif
