#include "import/import_kineto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "files/json_stream.h"
#include "import/kineto_ops.h"
#include "import/remarks.h"
#include "kernels/cost.h"

struct op { json_int_t id; struct kineto_shape shape; const char *name; double us; enum kineto_format format; };
struct launch { json_int_t correlation, id; };
struct execution { json_int_t id, correlation; const char *name; double us; enum kineto_format format; };
/* An operation that makes no sample, and why. */
struct other { json_int_t id; const char *name, *why; };
/* A row of the output before its median: the cells but the time, as text. */
struct measured { const char *cells; double us; };

struct reader {
    struct arena arena;
    struct json_stream stream;
    struct error *err;
    struct { struct op *items; size_t count, capacity; } ops;
    struct { struct launch *items; size_t count, capacity; } launches;
    struct { struct execution *items; size_t count, capacity; } kernels;
    struct { struct measured *items; size_t count, capacity; } rows;
    struct { struct other *items; size_t count, capacity; } others;
    struct remarks left, names;  /* what is left out; names of operations and kernels, each once */
    struct { double all, held; } us;         /* of kernels and copies; of those in samples */
    const char *gpu;
    json_int_t sms;
    bool attention;              /* some row is of fused attention */
};

enum { MOST_NAMED = 5 };

static const json_int_t no_id = -1;
static const char not_known[] = "the operation is not known";

static json_int_t id_of(const json_t *args, const char *key)
{
    const json_t *id = json_object_get(args, key);

    return json_is_integer(id) ? json_integer_value(id) : no_id;
}

static double duration(const json_t *event)
{
    double us = json_number_value(json_object_get(event, "dur"));

    return isfinite(us) && us > 0 && us < 1e9 ? us : 0;
}

static void read_op(struct reader *reader, const char *name, const json_t *args)
{
    struct op op = {.id = id_of(args, "External id")};
    const char *why;
    int known = kineto_shape_of(name, args, &op.shape, &why);

    op.name = remark_add(&reader->names, name, "", 1, 0);
    if (known < 0)
        remark_add(&reader->left, name, why, 1, 0);
    if (op.id == no_id)
        return;
    if (known > 0)
        *GROW(&reader->ops) = op;
    else
        *GROW(&reader->others) = (struct other){op.id, op.name, known ? why : not_known};
}

static void add_row(struct reader *reader, const struct kineto_shape *shape, double us)
{
    const double numbers[] = {shape->batch, shape->m, shape->n, shape->k, shape->bytes};
    char texts[COUNT(numbers)][24] = {""};
    const char *cells;

    for (size_t i = 0; i < COUNT(numbers); i++)
        if (numbers[i] > 0)
            snprintf(texts[i], sizeof texts[i], numbers[i] < 1e18 ? "%.0f" : "%.9g", numbers[i]);
    cells = arena_printf(&reader->arena, "%s,%s,%s,%s,%s,%s,%s,%s", shape->kernel, shape->dtype, texts[0], texts[1],
                         texts[2], texts[3], shape->layout ? shape->layout : "", texts[4]);
    reader->attention |= !strncmp(shape->kernel, "attention", 9);
    *GROW(&reader->rows) = (struct measured){cells, us};
    reader->us.held += us;
}

static void read_copy(struct reader *reader, const char *name, const json_t *event, const json_t *args)
{
    double bytes = json_number_value(json_object_get(args, "bytes")), us = duration(event);

    if (strncmp(name, "Memcpy DtoD", 11) != 0 || !(bytes >= 1 && bytes < 1e15) || us == 0)
        return;
    reader->us.all += us;
    add_row(reader, &(struct kineto_shape){.kernel = memory_class_names[CLASS_COPY], .dtype = "byte",
                                           .bytes = 2 * bytes}, us);
}

static void read_event(struct reader *reader, const json_t *event)
{
    const char *cat = json_string_value(json_object_get(event, "cat"));
    const char *name = json_string_value(json_object_get(event, "name"));
    const json_t *args = json_object_get(event, "args");

    if (!cat || !name || !json_is_object(args))
        return;
    if (!strcmp(cat, "cpu_op"))
        read_op(reader, name, args);
    else if (!strcmp(cat, "cuda_runtime") || !strcmp(cat, "cuda_driver"))
        *GROW(&reader->launches) = (struct launch){id_of(args, "correlation"), id_of(args, "External id")};
    else if (!strcmp(cat, "kernel"))
        *GROW(&reader->kernels) = (struct execution){id_of(args, "External id"), id_of(args, "correlation"),
                                                     remark_add(&reader->names, name, "", 1, 0), duration(event),
                                                     kineto_kernel_format(name)};
    else if (!strcmp(cat, "gpu_memcpy"))
        read_copy(reader, name, event, args);
}

static int read_events(struct reader *reader)
{
    int status;

    if (!json_stream_array(&reader->stream))
        return error_add(reader->err, EXIT_INPUT, json_stream_loc(&reader->stream), "traceEvents: expected an array");
    while ((status = json_stream_item(&reader->stream)) > 0) {
        struct loc loc = json_stream_loc(&reader->stream);
        json_t *event = json_stream_value(&reader->stream);

        if (!event)
            return -1;
        if (!json_is_object(event))
            status = error_add(reader->err, EXIT_INPUT, loc, "traceEvents: expected an object, found another value");
        else
            read_event(reader, event);
        json_decref(event);
        if (status < 0)
            return -1;
    }
    return status;
}

/* All GPUs of a trace must be of one kind: events do not need to say on which they ran. */
static int read_devices(struct reader *reader)
{
    struct loc loc = json_stream_loc(&reader->stream);
    json_t *devices = json_stream_value(&reader->stream);
    int status = devices ? 0 : -1;
    char shown[2][CLIP_SIZE];

    for (size_t i = 0; i < json_array_size(devices) && !status; i++) {
        const json_t *device = json_array_get(devices, i);
        const char *gpu = json_string_value(json_object_get(device, "name"));
        json_int_t sms = json_integer_value(json_object_get(device, "numSms"));

        if (!gpu || !*gpu || sms < 1 || sms > 100000)
            status = error_add(reader->err, EXIT_INPUT, loc, "deviceProperties: expected the name and numSms (the "
                               "number of multiprocessors) of device %zu", i);
        else if (reader->gpu && (strcmp(reader->gpu, gpu) != 0 || reader->sms != sms))
            status = error_add(reader->err, EXIT_INPUT, loc, "deviceProperties: expected GPUs of one kind, found '%s' "
                               "with %d multiprocessors and '%s' with %d", text_clip(reader->gpu, shown[0], CLIP_SIZE),
                               (int)reader->sms, text_clip(gpu, shown[1], CLIP_SIZE), (int)sms);
        else
            reader->gpu = arena_strdup(&reader->arena, gpu);
        reader->sms = sms;
    }
    json_decref(devices);
    return status;
}

static int read_trace(struct reader *reader)
{
    bool events = false;
    const char *key;
    int status;

    while ((status = json_stream_key(&reader->stream, &key)) > 0) {
        if (!strcmp(key, "dtsim"))
            return error_add(reader->err, EXIT_INPUT, json_stream_loc(&reader->stream), "this is a trace of 'dtsim trace': "
                             "its spans are whole works without shapes, and simulated; expected a measured one, of "
                             "torch.profiler");
        if (!strcmp(key, "traceEvents")) {
            events = true;
            status = read_events(reader);
        } else if (!strcmp(key, "deviceProperties")) {
            status = read_devices(reader);
        } else {
            status = json_stream_skip(&reader->stream);
        }
        if (status < 0)
            return -1;
    }
    if (!status && !events)
        return error_add(reader->err, EXIT_INPUT, (struct loc){reader->stream.name, 1, 1}, "expected traceEvents, as "
                         "torch.profiler's export_chrome_trace writes them, found none");
    if (!status && !reader->gpu)
        return error_add(reader->err, EXIT_INPUT, (struct loc){reader->stream.name, 1, 1}, "expected deviceProperties "
                         "with the GPU that ran; record with ProfilerActivity.CUDA");
    return status;
}

static int by_op(const void *a, const void *b)
{
    const struct op *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_other(const void *a, const void *b)
{
    const struct other *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_correlation(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;

    return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

static int by_row(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    int order = strverscmp(x->cells, y->cells);

    return order ? order : x->us < y->us ? -1 : x->us > y->us;
}

/* Counts a kernel that belongs to no operation of a sample: under its operation's name or, where none was recorded, its
 * own. An operation that lacks its shape has been counted already. */
static void leave_kernel_out(struct reader *reader, const struct execution *kernel, json_int_t id)
{
    const struct other *other = array_find(&(struct other){.id = id}, reader->others.items, reader->others.count,
                                           sizeof *other, by_other);

    if (other)
        remark_add(&reader->left, other->name, other->why, other->why == not_known, kernel->us);
    else
        remark_add(&reader->left, kernel->name, "no operation was recorded for this kernel", 1, kernel->us);
}

/* Gives each operation the time of its kernels. */
static void join(struct reader *reader)
{
    array_sort(reader->ops.items, reader->ops.count, sizeof *reader->ops.items, by_op);
    array_sort(reader->others.items, reader->others.count, sizeof *reader->others.items, by_other);
    array_sort(reader->launches.items, reader->launches.count, sizeof *reader->launches.items, by_correlation);
    for (size_t i = 0; i < reader->kernels.count; i++) {
        struct execution *kernel = &reader->kernels.items[i];
        struct launch *launch = array_find(&(struct launch){.correlation = kernel->correlation}, reader->launches.items,
                                           reader->launches.count, sizeof *launch, by_correlation);
        struct op key = {.id = kernel->id != no_id ? kernel->id : launch ? launch->id : no_id};
        struct op *op = array_find(&key, reader->ops.items, reader->ops.count, sizeof *op, by_op);

        reader->us.all += kernel->us;
        if (!op) {
            leave_kernel_out(reader, kernel, key.id);
            continue;
        }
        op->us += kernel->us;
        if (kernel->format != KINETO_FORMAT_UNKNOWN)
            op->format = kernel->format;
    }
    for (size_t i = 0; i < reader->ops.count; i++) {
        struct op *op = &reader->ops.items[i];
        const char *why;

        if (op->us == 0)                 /* an operation around others, or one on the CPU */
            continue;
        if (kineto_shape_finish(&op->shape, op->format, &why))
            remark_add(&reader->left, op->name, why, 1, op->us);
        else
            add_row(reader, &op->shape, op->us);
    }
}

static void write_left(struct reader *reader, FILE *out)
{
    remarks_sort(&reader->left);
    for (size_t i = 0; i < reader->left.count; i++) {
        fprintf(out, "# left out: %zu of ", reader->left.items[i].count);
        text_write(TEXT_LINE, reader->left.items[i].name, out);
        fprintf(out, ": %s\n", reader->left.items[i].why);
    }
}

/* The share of the kernels' time that samples hold, and what holds most of the rest. */
static void write_note(const struct reader *reader, FILE *notes)
{
    char shown[CLIP_SIZE];

    text_write(TEXT_LINE, reader->stream.name, notes);
    fprintf(notes, ": the samples hold %.1f %% of %.4g us of kernels", 100 * reader->us.held / reader->us.all,
            reader->us.all);
    for (size_t i = 0; i < reader->left.count && i < MOST_NAMED && reader->left.items[i].us > 0; i++) {
        fputs(i ? ", " : "; left out: ", notes);
        text_write(TEXT_LINE, text_clip(reader->left.items[i].name, shown, sizeof shown), notes);
        fprintf(notes, " %.1f %%", 100 * reader->left.items[i].us / reader->us.all);
    }
    fputs(reader->left.count > MOST_NAMED && reader->left.items[MOST_NAMED].us > 0 ? ", ...\n" : "\n", notes);
}

static void write_head(struct reader *reader, FILE *out)
{
    fputs("# gpu: ", out);
    text_write(TEXT_LINE, reader->gpu, out);
    fprintf(out, "\n# sms: %d\n# source: PyTorch profiler, ", (int)reader->sms);
    text_write(TEXT_LINE, reader->stream.name, out);
    fputs(reader->attention ? "\n# attention: flash-2\n" : "\n", out);
    write_left(reader, out);
    fputs("kernel,dtype,batch,m,n,k,layout,bytes,median_us,count\n", out);
}

static void write_rows(struct reader *reader, FILE *out)
{
    const struct measured *rows = reader->rows.items, *end = rows + reader->rows.count;

    array_sort(reader->rows.items, reader->rows.count, sizeof *rows, by_row);
    for (const struct measured *row = rows, *next; row < end; row = next) {
        for (next = row + 1; next < end && !strcmp(next->cells, row->cells);)
            next++;
        size_t count = (size_t)(next - row);
        double median = (row[(count - 1) / 2].us + row[count / 2].us) / 2;

        fprintf(out, "%s,%.10g,%zu\n", row->cells, median, count);
    }
}

int import_kineto(FILE *trace, const char *name, FILE *out, FILE *notes, struct error *err)
{
    struct reader reader = {
        .err = err,
        .stream = {.file = trace, .name = name, .expected = "a trace of PyTorch's profiler, which begins with '{'",
                   .err = err},
    };
    int status = read_trace(&reader);

    if (!status) {
        join(&reader);
        if (!reader.rows.count)
            status = error_add(err, EXIT_INPUT, (struct loc){name, 1, 1}, "expected kernels of operations whose shapes "
                               "were recorded, found none of %zu kernels; profile eager PyTorch on the GPU with "
                               "record_shapes=True", reader.kernels.count);
    }
    if (!status) {
        write_head(&reader, out);
        write_rows(&reader, out);
        write_note(&reader, notes);
    }
    json_stream_release(&reader.stream);
    free(reader.ops.items);
    free(reader.launches.items);
    free(reader.kernels.items);
    free(reader.rows.items);
    free(reader.others.items);
    remarks_release(&reader.left);
    remarks_release(&reader.names);
    arena_release(&reader.arena);
    return status;
}
