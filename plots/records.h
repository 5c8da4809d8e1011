/* records: files of JSON with an object a record, which commands print with --json. A file holds objects, one after
 * another, arrays of them, or objects whose `rows` is such an array. */
#ifndef DTSIM_RECORDS_H
#define DTSIM_RECORDS_H

#include "base/base.h"

/* Zero-initialise; records_release when done. */
struct records {
    struct record { struct json_t *json; const char *path; } *items;
    size_t count, capacity;
};

/* Appends the rows of one value: an object, an array of them, or an object with `rows`. The path, for messages, must
 * outlive them. */
int records_add(struct records *rows, struct json_t *value, const char *path, struct error *err);
/* Appends the rows of the file; the path must outlive them. */
int records_load(struct records *rows, const char *path, struct error *err);
void records_release(struct records *rows);

/* A member that is a finite number; an error when it is none. */
int record_number(const struct record *row, const char *key, double *value, struct error *err);
/* The same of one that may be missing: then `missing`. */
double record_number_or(const struct record *row, const char *key, double missing);
/* A member that is a text; "" when it is none. It lives as long as the row. */
const char *record_text(const struct record *row, const char *key);

#endif
