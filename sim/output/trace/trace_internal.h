/* Declarations that the files of trace share. */
#ifndef DTSIM_TRACE_INTERNAL_H
#define DTSIM_TRACE_INTERNAL_H

#include "tables/recorded.h"
#include "trace/trace.h"

/* From then on a counter has that value: B that a rank holds, or % of all ranks' time. */
struct trace_count { int rank; int64_t at; double value; };

struct trace {
    const struct trace_request *request;
    struct recorded run;
    struct { struct trace_count *items; size_t count, capacity; } memory, utilization;   /* changes of counters */
};
/* trace_file.c: the messages of all ranks, by the rank of the file that receives them and by their start: those of a rank stand
 * from first[rank] to first[rank + 1]. Free both. */
struct trace_received { const struct recorded_span **sends; size_t *first; };
struct trace_received trace_received(const struct recorded *run);
/* perfetto_counters.c: reads what counters are made of; -1: a mistake in it. */
int counters_read(struct trace *trace, struct error *err);

/* A file of a trace: of a rank, or of all that are chosen (-1). */
struct trace_file {
    const struct trace *trace;
    int rank;
    void (*write)(const struct trace_file *file, FILE *out);
    const char *what;        /* what it has of its ranks; NULL: their spans */
};
/* Writes a file of the trace's folder, or the trace's only file where the request names one (`name` is its name in the
 * folder), and tells about it. */
int trace_put(const char *name, const struct trace_file *file, bool only, FILE *log, struct error *err);
int kineto_write(struct trace *trace, FILE *log, struct error *err);
int perfetto_write(struct trace *trace, FILE *log, struct error *err);
int chakra_write(struct trace *trace, FILE *log, struct error *err);

#endif
