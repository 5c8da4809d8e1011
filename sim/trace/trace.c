/* A trace: the run's files read, and the files of its format written one by one. */
#include "trace/trace_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "files/folder.h"
#include "files/look.h"

const char *const trace_format_names[] = {"perfetto", "kineto", "chakra", NULL};

int trace_next_rank(const struct trace *trace, int rank)
{
    while (rank < trace->written && !trace->chosen[rank])
        rank++;
    return rank < trace->written ? rank : -1;
}

/* file_replace's callback. */
static void write_file(const void *context, FILE *out)
{
    const struct trace_file *file = context;
    FILE *packed = file->trace->request->gzip ? gzip_open(out) : NULL;

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
        return trace_rows(trace, file->rank).count;
    for (int rank = 0; (rank = trace_next_rank(trace, rank)) >= 0; rank++)
        count += trace_rows(trace, rank).count;
    return count;
}

static void tell(const char *path, const struct trace_file *file, FILE *told)
{
    char *name = text_made(TEXT_LINE, path);
    struct stat info = {0};
    int ranks = 0;

    for (int rank = 0; file->rank < 0 && (rank = trace_next_rank(file->trace, rank)) >= 0; rank++)
        ranks++;
    stat(path, &info);
    fprintf(told, "%s: ", name);
    if (!file->spans)
        fputs("groups of ", told);
    else
        fprintf(told, "%zu spans of ", count_spans(file));
    fprintf(told, file->rank < 0 ? "%d rank%s" : "rank %d%s", file->rank < 0 ? ranks : file->rank, ranks > 1 ? "s" : "");
    fprintf(told, ", %lld bytes\n", (long long)info.st_size);
    free(name);
}

/* Refuses to write over what is no file, or over the run itself. */
static int check_place(const struct trace_request *request, const char *path, struct error *err)
{
    static const char *const own[] = {"result.json", "spans.tsv", "groups.tsv", "memory.tsv", "utilization.tsv",
                                      "links.tsv"};
    struct stat there, other;
    struct loc loc = {.file = path};

    if (stat(path, &there))
        return 0;                /* a new file, or what file_replace refuses */
    if (S_ISDIR(there.st_mode))
        return error_add(err, EXIT_USAGE, loc, "this is a folder; expected a file to write");
    if (!S_ISREG(there.st_mode))
        return error_add(err, EXIT_USAGE, loc, "this is no regular file; expected a file to write, which appears when it "
                         "is whole");
    for (size_t i = 0; i < COUNT(own); i++) {
        char name[4400];

        snprintf(name, sizeof name, "%s/%s", request->dir, own[i]);
        if (!stat(name, &other) && other.st_dev == there.st_dev && other.st_ino == there.st_ino)
            return error_add(err, EXIT_USAGE, loc, "this is %s of the run; expected another file to write", own[i]);
    }
    return 0;
}

int trace_put(const char *name, const struct trace_file *file, bool only, FILE *told, struct error *err)
{
    const struct trace_request *request = file->trace->request;
    char *folder = request->out && only ? NULL : request->out ? xstrdup(request->out) : xprintf("%s/trace", request->dir);
    char *path = folder ? xprintf("%s/%s%s", folder, name, request->gzip ? ".gz" : "") : xstrdup(request->out);
    int rc = folder ? make_folder(folder, err) : 0;

    if (!rc)
        rc = check_place(request, path, err) || file_replace(path, write_file, file, err) ? -1 : 0;
    if (!rc)
        tell(path, file, told);
    free(folder);
    free(path);
    return rc;
}

int trace_write(const struct trace_request *request, FILE *told, struct error *err)
{
    static int (*const writes[TRACE_FORMAT_COUNT])(struct trace *, FILE *, struct error *) = {
        [TRACE_PERFETTO] = perfetto_write, [TRACE_KINETO] = kineto_write, [TRACE_CHAKRA] = chakra_write,
    };
    struct trace trace = {.request = request};
    int rc = trace_read(&trace, err) ? -1 : writes[request->format](&trace, told, err);

    trace_release(&trace);
    return rc;
}
