/* json: writes JSON, whose numbers are as short as they read back equal. */
#ifndef DTSIM_JSON_H
#define DTSIM_JSON_H

#include <jansson.h>

#include "base/base.h"
#include <stdio.h>

/* Adds a value to an object or an array, and takes it. A value that could not be made never goes missing in silence, as
 * with json_object_set_new(): that is a mistake of the program. */
void json_put(json_t *object, const char *key, json_t *value);
void json_append(json_t *array, json_t *value);
/* A text of others as JSON: what is no UTF-8 (names of files may be so) is written as escapes. */
json_t *json_words(const char *text);
/* A number; null where it is NaN or infinite, which JSON cannot say. */
json_t *json_finite(double value);
/* For people: each value on a line of its own, indented by two blanks a level, and a line break at the end. */
void json_print(const json_t *json, FILE *out);
/* For programs: one line without blanks and without a line break. */
void json_line(const json_t *json, FILE *out);
/* The same in memory that the caller frees. */
char *json_text(const json_t *json);


/* All mistakes, for commands that a program reads: {"errors": [{"file", "line", "column", "message", "rule"}],
 * "exit_code": 5}; a mistake without a value has null. */
json_t *errors_json(const struct error *err);
/* The JSON of a file, which is `what` ("the result of a run"); NULL after an error. */
json_t *json_of_file(const char *path, const char *what, struct error *err);

#endif
