/* text: the text of others (names, titles, paths, values of --set), made harmless for the place where it is written. */
#ifndef DTSIM_TEXT_H
#define DTSIM_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Everywhere, what steers a terminal, breaks a line, turns the direction of writing or is no UTF-8 is written as an
 * escape: "\n", "\t", "\x1B". In addition: */
enum text_place {
    TEXT_LINE,           /* a terminal, a line of text: nothing more */
    TEXT_MARKDOWN,       /* a cell of a table: signs of Markdown get a backslash */
    TEXT_CSV,            /* a cell: quoted where RFC 4180 asks for it; a leading sign that makes a spreadsheet take the
                            cell for a formula gets an apostrophe before it */
};
void text_write(enum text_place place, const char *text, FILE *out);
/* Whether it writes the character (a code point) as an escape. */
bool text_harmful(uint32_t value);
/* The same line by line: where the text breaks a line, so does what is written. */
void text_write_lines(const char *text, FILE *out);
/* The same into memory that the caller frees. */
char *text_made(enum text_place place, const char *text);
/* Writes words into lines of at most `width` columns: the first one goes on at `column`, further ones begin with
 * `indent` spaces. A word that is longer has a line of its own. Ends the last line. */
void text_wrap(const char *words, int column, int indent, int width, FILE *out);
/* Characters of a line, 60 at least: the value of the variable COLUMNS, else the width of the terminal, else
 * `otherwise`. */
int text_width(FILE *out, int otherwise);

#endif
