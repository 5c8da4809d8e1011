/* A trace: the run's files read, and the files of its format written one by one. */
#include "trace/trace_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "tables/recorded.h"


const char *const trace_format_names[] = {"perfetto", "kineto", "chakra", NULL};

int trace_write(const struct trace_request *request, FILE *log, struct error *err)
{
    static int (*const writes[TRACE_FORMAT_COUNT])(struct trace *, FILE *, struct error *) = {
        [TRACE_PERFETTO] = perfetto_write, [TRACE_KINETO] = kineto_write, [TRACE_CHAKRA] = chakra_write,
    };
    struct trace trace = {
        .request = request,
        .run = {.dir = request->dir, .list = request->ranks, .repeats = request->all || request->format == TRACE_CHAKRA},
    };
    int rc = 0;

    if (request->format == TRACE_PERFETTO)       /* before the spans, so that one table's text is in memory */
        rc = counters_read(&trace, err);
    rc = rc || recorded_read(&trace.run, err) ? -1 : 0;
    if (!rc && !trace.run.spans.count)
        rc = error_add(err, EXIT_INPUT, trace.run.spans_file.loc, "no spans in it");
    if (!rc)
        rc = writes[request->format](&trace, log, err);
    recorded_release(&trace.run);
    free(trace.memory.items);
    free(trace.utilization.items);
    return rc;
}
