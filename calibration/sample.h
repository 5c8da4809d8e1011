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

#endif
