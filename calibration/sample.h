/* sample: the file that a run writes: comment lines about the machine, the names of the columns, a row a case. */
#ifndef DTSIM_SAMPLE_H
#define DTSIM_SAMPLE_H

#include "base/base.h"
#include "case.h"
#include "statistics.h"

#define SAMPLE_COLUMNS "kernel,dtype,batch,m,n,k,layout,bytes,median_us,spread_us,count"

/* A line "# key: value"; characters that would end the line are written as blanks. */
void sample_comment(FILE *out, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The version in the line that NVIDIA's kernel module says of itself, "580.159.04"; "" where there is none. */
void sample_driver(const char *line, char *version, size_t size);

/* The machine and the program of a file's samples. Clocks are in Hz; 0: unknown. */
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

/* Writes a comment line that names the case about to be measured. It is the file's last line during the measurement, so
 * that a case that kills the program, or the GPU, is not repeated. Returns its offset, for sample_unmark; -1: the file
 * cannot be truncated. */
long sample_mark(FILE *out, const struct bench_case *one);
/* Cuts that line off. -1: errno says why not. */
int sample_unmark(FILE *out, long mark);
/* A comment line that names a case that cannot be measured here. */
void sample_failure(FILE *out, const struct bench_case *one, const char *why);

/* The cases that a file holds, measured or given up. Zero-initialise; sample_rows_release when done. */
struct sample_rows { char **items; size_t count, capacity; };
/* Reads the file of an earlier run, for a run that resumes it. A missing file holds nothing. An incomplete last line,
 * which a killed run leaves, is cut off. -1: the file is of another GPU, or no file of samples. */
int sample_rows_read(struct sample_rows *rows, const char *path, const char *gpu, struct error *err);
bool sample_rows_hold(const struct sample_rows *rows, const struct bench_case *one);
void sample_rows_release(struct sample_rows *rows);

#endif
