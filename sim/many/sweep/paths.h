/* paths: the dotted paths of a scenario, as its tables know them, and values at them. */
#ifndef DTSIM_PATHS_H
#define DTSIM_PATHS_H

#include "config/field.h"
#include "expression/expression.h"

/* Whether the text is to be a path of a scenario, right or wrong, and no name of one's own: it has a dot, or is a key
 * of the scenario itself ("cluster"). */
bool path_meant(const char *text);
/* All paths of a scenario by number, for suggestions; NULL past the last. */
const char **path_list(struct arena *arena);

/* Refuses a text that is no path of a scenario, with the path that it resembles, or else with the words `expected`. `what`
 * stands before the message ("sweep: grid"). */
int path_check(const char *what, const char *path, const char *expected, struct loc loc, struct error *err);

/* The value of an expression at that path of a scenario: a number in SI units of a quantity, a list or mapping as such.
 * `node` NULL or null: none. */
struct value path_value(const char *path, const struct node *node);
/* Refuses a value that the path's field refuses whatever the other keys are: wrong kinds, units, ranges and names. */
int path_value_check(const char *path, const struct node *node, struct error *err);
/* The same of a value or a list of values, which is not empty. `what` stands before the message. */
int path_values_check(const char *what, const char *path, const struct node *node, struct error *err);
/* The same of every value of a scenario in the making, which need not be whole. Values that are null are refused too, and
 * keys that scenarios do not have. */
int paths_check(const struct node *scenario, struct error *err);
/* The scenario's value of an expression's result, with a unit where the path has one. `loc`: its origin. */
struct node *path_node(struct arena *arena, const char *path, const struct value *value, struct loc loc);

#endif
