/* conf_text: what the reader and the writer of YAML share: characters, and libyaml's complaints in plain words. */
#ifndef DTSIM_CONF_TEXT_H
#define DTSIM_CONF_TEXT_H

#include "base/base.h"

enum { CONF_MAX_KEY = 200 };     /* bytes of a key; a longer one could not be written back as a simple key */

/* The character at *at (which must be before end) and *at behind it; -1, and *at one byte on, when it is not UTF-8. */
int32_t utf8_next(const char **at, const char *end);
/* Whether YAML lets the character stand in a file as it is. */
bool yaml_printable(int32_t c);
/* Refuses what is not UTF-8 or not printable, at its place (or, with placeless, at no line). */
int conf_check_text(const char *name, const char *text, size_t length, bool placeless, struct error *err);
/* Whether a plain scalar would be taken for null; for null, a boolean or a number. */
bool text_is_null(const char *text);
bool text_is_special(const char *text);

/* A syntax error of libyaml in words for a person. `problem` and `context` may be NULL; `begun` is the line on which
 * the context began; `c` is the character at the error, 0 when unknown or at the end. */
char *conf_syntax_message(struct arena *arena, const char *problem, const char *context, int begun, int line, int c);

#endif
