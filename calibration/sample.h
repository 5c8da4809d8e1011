/* sample: the file that a run writes: comment lines about the machine, the names of the columns, a row a case. */
#ifndef DTSIM_SAMPLE_H
#define DTSIM_SAMPLE_H

#include "base.h"
#include "case.h"
#include "statistics.h"

#define SAMPLE_COLUMNS "kernel,dtype,batch,m,n,k,layout,bytes,median_us,spread_us,count"

/* A line "# key: value"; what would end the line comes out as a blank. */
void sample_comment(FILE *out, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Columns that do not apply are empty. Times are in microseconds, to a picosecond. */
void sample_row(FILE *out, const struct bench_case *one, struct summary summary);

/* The samples that a file holds. Zero-initialise; sample_rows_release when done. */
struct sample_rows { char **items; size_t count, capacity; };
/* Reads what an earlier run wrote, for a run that goes on with it. A file that is not there holds nothing; a last line
 * that does not end, as a run leaves it that was killed, is cut off. -1: of another GPU, or no file of samples. */
int sample_rows_read(struct sample_rows *rows, const char *path, const char *gpu, struct error *err);
bool sample_rows_hold(const struct sample_rows *rows, const struct bench_case *one);
void sample_rows_release(struct sample_rows *rows);

#endif
