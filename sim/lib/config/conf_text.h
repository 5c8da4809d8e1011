/* conf_text: characters, plain scalars and syntax errors of YAML, for its reader and its writer. */
#ifndef DTSIM_CONF_TEXT_H
#define DTSIM_CONF_TEXT_H

#include "base/base.h"

enum { CONF_MAX_KEY = 200 };     /* bytes of a key; YAML cannot write much longer ones as a simple key */

/* Reads the character at *at, which must be before end, and moves *at past it. If it is not UTF-8: -1, and *at moves by
 * one byte. */
int32_t utf8_next(const char **at, const char *end);
/* Whether YAML allows the character in a file without an escape. */
bool yaml_printable(int32_t c);
/* Refuses text that is not UTF-8 or not printable, at the place of the character (with `placeless`, without a line). */
int conf_check_text(const char *name, const char *text, size_t length, bool placeless, struct error *err);
/* Whether YAML reads a plain scalar as null. */
bool text_is_null(const char *text);
/* Whether some YAML reader takes a plain scalar for null, a boolean, a number or a date. */
bool text_is_special(const char *text);

/* The message for a syntax error of libyaml. `problem` and `context` are libyaml's and may be NULL; `begun` is the line
 * where the context begins, 0 if not known; `line` is the line of the error; `c` is the character there, 0 if unknown
 * or at the end. */
char *conf_syntax_message(struct arena *arena, const char *problem, const char *context, int begun, int line, int c);

#endif
