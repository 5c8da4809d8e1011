/* trace: the folder of a run as a trace that other tools read: Perfetto, Kineto (PyTorch's profiler, HTA) and Chakra
 * (ASTRA-sim). A trace's rank is a rank of spans.tsv, whose tensor group acts as one. */
#ifndef DTSIM_TRACE_H
#define DTSIM_TRACE_H

#include "base/base.h"

enum trace_format { TRACE_PERFETTO, TRACE_KINETO, TRACE_CHAKRA, TRACE_FORMAT_COUNT };
extern const char *const trace_format_names[];       /* "perfetto", ...; NULL-terminated */

struct trace_request {
    const char *dir;         /* of a run */
    const char *out;         /* a file, or a folder where the format has a file a rank; NULL: in DIR/trace */
    enum trace_format format;
    const char *ranks;       /* "0-7,12": these alone; NULL: all */
    bool all;                /* rows that stand for several replicas are repeated for each of them */
    bool merge;              /* Kineto: one file of all ranks */
    bool gzip;               /* Kineto and Perfetto: compressed */
};

/* Writes the trace, each file in the place of an older one only when it is whole, and a line a file to `told`: its name,
 * ranks, spans and bytes. Errors: a folder that is no run or of several, ranks that are not there, what the format cannot
 * say. */
int trace_write(const struct trace_request *request, FILE *log, struct error *err);

#endif
