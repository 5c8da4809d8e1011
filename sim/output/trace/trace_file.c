/* A file of a trace: written as a whole or not at all, and told. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/text.h"
#include "files/folder.h"
#include "files/look.h"
#include "files/packed.h"
#include "tables/recorded.h"
#include "trace/trace_internal.h"

/* file_replace's callback. */
static void write_file(const void *context, FILE *out)
{
    const struct trace_file *file = context;
    FILE *packed = file->trace->request->gzip ? packed_open(out, PACKED_GZIP, PACKED_LEVEL) : NULL;

    file->write(file, packed ? packed : out);
    if (packed)
        fclose(packed);          /* an error stays in `out` */
}

/* How many spans a file has. */
static size_t count_spans(const struct trace_file *file)
{
    const struct trace *trace = file->trace;
    size_t count = 0;

    if (file->rank >= 0)
        return recorded_rows(&trace->run, file->rank).count;
    for (int rank = 0; (rank = recorded_next_rank(&trace->run, rank)) >= 0; rank++)
        count += recorded_rows(&trace->run, rank).count;
    return count;
}

static void log_file(const char *path, const struct trace_file *file, FILE *log)
{
    char *name = text_made(TEXT_LINE, path);
    struct stat info = {0};
    int ranks = 0;

    for (int rank = 0; file->rank < 0 && (rank = recorded_next_rank(&file->trace->run, rank)) >= 0; rank++)
        ranks++;
    stat(path, &info);
    fprintf(log, "%s: ", name);
    if (file->what)
        fprintf(log, "%s of ", file->what);
    else
        fprintf(log, "%zu spans of ", count_spans(file));
    fprintf(log, file->rank < 0 ? "%d rank%s" : "rank %d%s", file->rank < 0 ? ranks : file->rank, ranks > 1 ? "s" : "");
    fprintf(log, ", %lld bytes\n", (long long)info.st_size);
    free(name);
}

int trace_put(const char *name, const struct trace_file *file, bool only, FILE *log, struct error *err)
{
    const struct trace_request *request = file->trace->request;
    char *folder = request->out && only ? NULL : request->out ? xstrdup(request->out) : xprintf("%s/trace", request->dir);
    char *path = folder ? xprintf("%s/%s%s", folder, name, request->gzip ? ".gz" : "") : xstrdup(request->out);
    int rc = folder ? make_folder(folder, err) : 0;

    if (!rc)
        rc = look_apart(path, request->dir, recorded_files, err) || file_replace(path, write_file, file, err) ? -1 : 0;
    if (!rc)
        log_file(path, file, log);
    free(folder);
    free(path);
    return rc;
}

static int by_start(const void *a, const void *b)
{
    const struct recorded_span *one = *(const struct recorded_span *const *)a, *other = *(const struct recorded_span *const *)b;

    return one->start < other->start ? -1 : one->start > other->start ? 1 : one->id < other->id ? -1 : one->id > other->id;
}

struct trace_received trace_received(const struct recorded *run)
{
    struct trace_received received = {xcalloc(run->spans.count + 1, sizeof *received.sends),
                                      xcalloc((size_t)run->ranks + 2, sizeof *received.first)};

    for (size_t i = 0; i < run->spans.count; i++)
        if (run->spans.items[i].peer >= 0 && run->spans.items[i].peer < run->ranks)
            received.first[run->spans.items[i].peer + 2]++;
    for (int rank = 1; rank <= run->ranks; rank++)
        received.first[rank + 1] += received.first[rank];
    for (size_t i = 0; i < run->spans.count; i++)
        if (run->spans.items[i].peer >= 0 && run->spans.items[i].peer < run->ranks)
            received.sends[received.first[run->spans.items[i].peer + 1]++] = &run->spans.items[i];
    for (int rank = 0; rank < run->ranks; rank++)
        array_sort(received.sends + received.first[rank], received.first[rank + 1] - received.first[rank], sizeof *received.sends, by_start);
    return received;
}
