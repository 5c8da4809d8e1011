/* sample: the file that a run writes: comment lines about the machine, the names of the columns, a row a case. */
#ifndef DTSIM_SAMPLE_H
#define DTSIM_SAMPLE_H

#include "base/base.h"
#include "case.h"
#include "statistics.h"

#define SAMPLE_COLUMNS "kernel,dtype,batch,m,n,k,layout,bytes,median_us,spread_us,count"

/* A line "# key: value"; what would end the line comes out as a blank. */
void sample_comment(FILE *out, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The version in the line that NVIDIA's kernel module says of itself, "580.159.04"; "" where there is none. */
void sample_driver(const char *line, char *version, size_t size);

/* What the samples of a file have in common. Clocks are in Hz, 0 where they cannot be told. */
struct sample_machine {
    const char *gpu, *driver, *cuda, *date, *source;
    int sms, major;              /* multiprocessors; of the compute capability */
    double clock, memory_clock;  /* the highest */
    double clock_under_load;
};
/* The comment lines and the names of the columns. */
void sample_header(FILE *out, const struct sample_machine *machine);
/* Columns that do not apply are empty. Times are in microseconds, to a picosecond. */
void sample_row(FILE *out, const struct bench_case *one, struct summary summary);

/* A comment line that names the case about to be measured: it is the file's last one while that lasts, so that what
 * kills the program, or the GPU, is not met again. Where it begins, for sample_unmark; -1: the file cannot be cut. */
long sample_mark(FILE *out, const struct bench_case *one);
/* Cuts that line off. -1: errno says why not. */
int sample_unmark(FILE *out, long mark);
/* A comment line that names a case that cannot be measured here. */
void sample_failure(FILE *out, const struct bench_case *one, const char *why);

/* The cases that a file holds, measured or given up. Zero-initialise; sample_rows_release when done. */
struct sample_rows { char **items; size_t count, capacity; };
/* Reads what an earlier run wrote, for a run that goes on with it. A file that is not there holds nothing; a last line
 * that does not end, as a run leaves it that was killed, is cut off. -1: of another GPU, or no file of samples. */
int sample_rows_read(struct sample_rows *rows, const char *path, const char *gpu, struct error *err);
bool sample_rows_hold(const struct sample_rows *rows, const struct bench_case *one);
void sample_rows_release(struct sample_rows *rows);

#endif
