/* json: writes JSON, whose numbers are as short as they read back equal. */
#ifndef DTSIM_JSON_H
#define DTSIM_JSON_H

#include <jansson.h>
#include <stdio.h>

/* For people: each value on a line of its own, indented by two blanks a level, and a line break at the end. */
void json_print(const json_t *json, FILE *out);
/* For programs: one line without blanks and without a line break. */
void json_line(const json_t *json, FILE *out);
/* The same in memory that the caller frees. */
char *json_text(const json_t *json);

#endif
