/* A page: the program of plots/report with the data of a result in it. */
#include "page/page_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "files/data.h"
#include "files/folder.h"
#include "files/look.h"
#include "files/packed.h"
#include "tables/recorded.h"
#include "view/view.h"

enum { TEMPLATE_MOST = 64 << 20 };   /* B */
enum { SPANS_MOST = 10000000 };      /* of a page: about 100 MB of it, and 0.5 GB in the browser */
enum { SAMPLE = 1 << 18 };           /* B by which the rows of a table are counted */
enum { LEVEL = 5 };                  /* of deflate: a level more costs a third more time for 1 % of the bytes */

struct opened { const char *kind; const struct page_request *request; };

/* The name of the input: not where it lay. */
static const char *input_of(const struct page_request *request)
{
    const char *last = strrchr(request->input, '/');

    return last && last[1] ? last + 1 : request->input;
}

#define PAGE(ROW) \
    ROW(page, json_words(it->kind), "of what it is") \
    ROW(input, json_words(input_of(it->request)), "the name of the folder or file") \
    ROW(theme, json_words_or_null(it->request->theme), "light or dark; null: the reader's")
VIEW(page_view, struct opened, it, PAGE)

void page_init(struct page *page, const char *kind)
{
    page->head = view_json(&page_view, &(struct opened){kind, page->request});
}

void page_release(struct page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        if (page->parts[i].stream)
            fclose(page->parts[i].stream);
        free(page->parts[i].bytes);
    }
    json_decref(page->head);
}

/* The program, up to the place of the data, and from there on. */
struct template { char *text; size_t size; const char *place; };

static int read_template(const char *name, struct template *template, struct error *err)
{
    static const char mark[] = "id=\"data\">";
    struct arena arena = {0};
    const char *path;
    int rc = data_path(&arena, "plots/report", name, &path, err);

    *template = (struct template){0};
    if (!rc && !path)
        error_add(err, EXIT_FAILURE, (struct loc){0}, "cannot find plots/report/%s, which comes with dtsim", name);
    else if (!rc)
        template->text = file_read(path, "page", TEMPLATE_MOST, (struct loc){.file = path}, &template->size, err);
    template->place = template->text ? strstr(template->text, mark) : NULL;
    if (template->place)
        template->place += sizeof mark - 1;
    else if (template->text)
        error_add(err, EXIT_FAILURE, (struct loc){.file = path}, "there is no place for data in it; build it anew with "
                  "plots/report/build.sh");
    arena_release(&arena);
    return template->place ? 0 : -1;
}

/* The head becomes the last part, and all are whole. */
static void end_parts(struct page *page)
{
    page_json(page, "page", page->head);
    for (size_t i = 0; i < page->count; i++) {
        fclose(page->parts[i].stream);
        page->parts[i].stream = NULL;
    }
}

static void write_parts(const struct page *page, int level, FILE *out)
{
    FILE *encoded = base64_open(out), *packed = packed_open(encoded, PACKED_ZLIB, level);

    for (size_t i = 0; i < page->count; i++) {
        const struct page_part *part = &page->parts[i];

        fprintf(packed, "%s %zu\n", part->name, part->size);
        fwrite(part->bytes, 1, part->size, packed);
    }
    fclose(packed);                  /* errors stay in `out` */
    fclose(encoded);
}

struct output { const struct page *page; const struct template *template; };

/* file_replace's callback. */
static void write_page(const void *context, FILE *out)
{
    const struct output *output = context;
    const struct template *template = output->template;
    size_t before = (size_t)(template->place - template->text);

    fwrite(template->text, 1, before, out);
    write_parts(output->page, LEVEL, out);
    fwrite(template->place, 1, template->size - before, out);
}

int page_put(struct page *page, const char *template, const char *const *names, FILE *log, struct error *err)
{
    const struct page_request *request = page->request;
    char *path = request->out ? xstrdup(request->out) : xprintf("%s/report.html", request->input), *name;
    struct template program;
    struct output output = {page, &program};
    struct stat info = {0};
    int rc;

    end_parts(page);
    rc = read_template(template, &program, err) || look_apart(path, request->input, names, err) ||
         file_replace(path, write_page, &output, err) ? -1 : 0;
    if (!rc) {
        stat(path, &info);
        name = text_made(TEXT_LINE, path);
        fprintf(log, "%s: %lld bytes; open it in a browser\n", name, (long long)info.st_size);
        free(name);
    }
    free(program.text);
    free(path);
    return rc;
}

/* B of a row of a table, about: of its first rows. */
static double row_bytes(FILE *in)
{
    char *text = xcalloc(SAMPLE, 1);
    size_t count = fread(text, 1, SAMPLE, in), rows = 0, size = count;

    for (size_t i = 0; i < count; i++)
        if (text[i] == '\n') {
            rows++;
            size = i + 1;
        }
    free(text);
    return (double)size / (double)(rows ? rows : 1);
}

int page_check_size(const struct page_request *request, struct error *err)
{
    char *path = xprintf("%s/spans.tsv", request->input);
    struct loc loc = {.file = path};
    struct stat info;
    FILE *in = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "r") : NULL;
    double spans = in ? (double)info.st_size / row_bytes(in) : 0;
    int rc = 0;

    if (in)
        fclose(in);                  /* where it cannot be opened, the check of the whole folder says why */
    if (spans > SPANS_MOST && (!request->ranks || info.st_size > UINT32_MAX))
        rc = error_add(err, EXIT_INPUT, loc, "about %.0f million spans, and a page holds %d million at most; expected %s",
                       spans / 1e6, SPANS_MOST / 1000000, info.st_size > UINT32_MAX ?
                       "a run of fewer ranks or micro-batches" : "some of the ranks, such as --ranks 0-7");
    free(path);
    return rc;
}

int page_of_run(const struct page_request *request, FILE *log, struct error *err)
{
    struct page page = {.request = request};
    struct recorded run = {.dir = request->input, .list = request->ranks};
    int rc;

    page_init(&page, "run");
    rc = page_tables(&page, request->input, err) || recorded_read(&run, err) ? -1 : 0;
    if (!rc) {
        page_json(&page, "result", run.result);
        if (request->explanation)
            page_json(&page, "explanation", request->explanation);
        page_spans(&page, &run);
        rc = page_put(&page, "run.html", recorded_files, log, err);
    }
    recorded_release(&run);
    page_release(&page);
    return rc;
}

void page_timeline(const struct recorded *run, FILE *out)
{
    const struct page_request request = {.input = run->dir};
    struct page page = {.request = &request};

    page_init(&page, "timeline");
    page_spans(&page, run);
    end_parts(&page);
    write_parts(&page, PACKED_LEVEL, out);
    page_release(&page);
}

int page_of_app(const json_t *known, FILE *out, struct error *err)
{
    const struct page_request request = {.input = "app"};
    struct page page = {.request = &request};
    struct template program;
    struct output output = {&page, &program};
    int rc = read_template("app.html", &program, err);

    page_init(&page, "app");
    page_json(&page, "known", known);
    end_parts(&page);
    if (!rc)
        write_page(&output, out);
    free(program.text);
    page_release(&page);
    return rc;
}

/* Whether it is what 'dtsim validate --json' prints: an array of tables with a name and rows. */
static int check_tables(const json_t *tables, const char *path, struct error *err)
{
    size_t i;
    const json_t *table;

    json_array_foreach(tables, i, table)
        if (!json_is_string(json_object_get(table, "name")) || !json_is_array(json_object_get(table, "rows")))
            return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "item %zu is no validated table; expected what "
                             "'dtsim validate --json' prints", i + 1);
    return json_array_size(tables) ? 0 : error_add(err, EXIT_INPUT, (struct loc){.file = path}, "there are no validated "
                                                   "tables in it; expected what 'dtsim validate --json' prints");
}

int page_of_validation(const struct page_request *request, FILE *log, struct error *err)
{
    const char *last = strrchr(request->input, '/'), *names[] = {last ? last + 1 : request->input, NULL};
    char *folder = last ? xstrdup(request->input) : xstrdup(".");
    struct page_request own = *request;
    struct page page = {.request = &own};
    json_t *tables = json_of_file(request->input, "the file as the output of 'dtsim validate --json'", err);
    int rc = tables ? check_tables(tables, request->input, err) : -1;

    if (last)
        folder[last - request->input] = '\0';
    page_init(&page, "validation");
    own.input = folder;
    if (!rc) {
        page_json(&page, "validation", tables);
        rc = page_put(&page, "validate.html", names, log, err);
    }
    json_decref(tables);
    page_release(&page);
    free(folder);
    return rc;
}
