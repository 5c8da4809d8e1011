/* emit_rows: what a scenario's rows of a dialect say, collected, and written in the framework's form. */
#ifndef DTSIM_EMIT_ROWS_H
#define DTSIM_EMIT_ROWS_H

#include "emit/emit_internal.h"

/* Says an argument, once more than what was said of it before; of a flag "true". */
void emit_say(struct emit *e, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void emit_say_text(struct emit *e, const char *name, const char *text);
/* Takes a key away from a tree's mapping. */
void emit_forget(struct emit *e, struct node *mapping, const char *key);
/* Says what the rows of a part of the dialect say. A row that says what a launch without it means anyhow is left out. */
void emit_say_rows(struct emit *e, const char *part);
/* Whether the i-th argument that was said is written: it is no default. */
bool emit_prints(const struct emit *e, size_t i);
/* Whether an argument was said, and is written. */
bool emit_said(const struct emit *e, const char *name);
/* Refuses what rows of the part "cannot" say that the framework's own checks do. */
void emit_refuse(struct emit *e, const struct framework *framework, struct error *err);
/* Writes what was said: words of a command, each on a line of its own; or in the form that the dialect names. */
void emit_print_arguments(const struct emit *e);
void emit_print(const struct emit *e);

#endif
