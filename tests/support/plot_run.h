/* plot_run: folders of runs for the tests of charts. */
#ifndef DTSIM_TESTS_PLOT_RUN_H
#define DTSIM_TESTS_PLOT_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/digest.h"
#include "plots/chart.h"
#include "plots/plot.h"

#define HEADER "rank\tstage\tkind\tname\tmb\tt0\tt1\tlane\tcommunication\toverlapped\treplicas\n"
#define SPANS HEADER \
    "0\t0\tforward\tF1\t0\t0\t1\tcompute\t0.25\t0\t1\n" \
    "0\t0\tactivation\tA1\t0\t1\t1.5\tsend-next.0\t0.5\t0\t1\n" \
    "1\t1\tforward\tF1\t0\t1.5\t2.5\tcompute\t0\t0\t1\n" \
    "1\t1\tbackward\tB1\t0\t2.5\t4.5\tcompute\t0\t0\t1\n" \
    "0\t0\tbackward\tB1\t0\t4.5\t6.5\tcompute\t0\t0\t1\n"
#define WINDOWS "t0\tt1\tforward\tbackward\tbackward_input\tbackward_weight\trecompute\tupdate\tpack\t" \
    "exposed_tensor\texposed_pipeline\texposed_data\texposed_context\texposed_expert\texposed_offload\tbubble\n" \
    "0\t2\t0.5\t0\t0\t0\t0\t0\t0\t0.25\t0\t0\t0\t0\t0\t0.25\n" \
    "2\t6.5\t0\t0.75\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0.25\n"
#define MEMORY_HEADER "rank\tt\tkind\tbytes\treplicas\n"
#define MEMORY MEMORY_HEADER \
    "0\t0\tparameters\t1\t1\n0\t0\tgathered\t2\t1\n0\t0\tgradients\t3\t1\n0\t0\toptimizer\t4\t1\n" \
    "0\t0\tbuffers\t5\t1\n0\t0\tcontext\t6\t1\n0\t0\tfragmentation\t9\t1\n" \
    "1\t0\tparameters\t10\t1\n2\t0\tparameters\t8\t1\n3\t0\tparameters\t7\t1\n" \
    "1\t1\tactivations\t30\t1\n1\t1\tworkspace\t10\t1\n0\t2\tactivations\t2\t1\n" \
    "1\t3.5\tworkspace\t0\t1\n1\t3.5001\tworkspace\t5\t1\n1\t3.5002\tactivations\t0\t1\n1\t3.5002\tworkspace\t0\t1\n"
#define LINKS "link\tclass\tpayload_bytes\twire_bytes\tbusy\treplicas\n" \
    "gpu0.up\tinside\t3\t4\t0.25\t1\ngpu0.down\tinside\t2\t3\t0.125\t1\nnic0.up\tnic\t7\t7\t0.5\t1\n"
#define RESULT(name) "{\"iteration_time_s\": 6.5, \"bubble_fraction\": 0.25, \"utilization\": 0.5," \
    "\"gpus\": 2, \"samples_per_s\": 3, \"breakdown_s\": {\"forward\": 1, \"backward\": 2.25, \"backward_input\": 0, " \
    "\"backward_weight\": 0, \"recompute\": 0, \"update\": 0, \"pack\": 0, \"exposed_tensor\": 0, " \
    "\"exposed_pipeline\": 1.625, \"exposed_data\": 0, \"exposed_context\": 0, \"exposed_expert\": 0, " \
    "\"exposed_offload\": 0, \"bubble\": 1.625}, \"engine\": \"ideal\", \"version\": \"1\", \"scenario\": {\"name\": " \
    name ", \"batch\": {\"global\": 4, \"micro_batches\": 4}, \"strategy\": {\"schedule\": \"1f1b\", \"chunks\": 1, " \
    "\"pipeline\": 2}}}\n"

static char root[] = "/tmp/dtsim-plot-XXXXXX";
static struct arena arena;

static inline void put(const char *path, const char *text)
{
    FILE *out = fopen(path, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, strlen(text), out), strlen(text));
    assert_int_equal(fclose(out), 0);
}

/* A file's bytes; NULL when there is none. */
static inline char *get_sized(const char *path, size_t *size)
{
    enum { MOST = 4 << 20 };
    FILE *in = fopen(path, "rb");
    char *text = arena_alloc(&arena, MOST);

    *size = 0;
    if (!in)
        return NULL;
    *size = fread(text, 1, MOST - 1, in);
    fclose(in);
    return text;
}

static inline char *get(const char *path)
{
    size_t size;

    return get_sized(path, &size);
}

/* The folder of a run, with a good memory.tsv; a text that is NULL is a file that is missing. This build has written
 * it, if its result begins as one of RESULT. */
static inline const char *make_run(const char *name, const char *result, const char *spans, const char *windows)
{
    if (result && !strncmp(result, "{\"iter", 6))
        result = arena_printf(&arena, "{\"build\": \"%s\", %s", sources_digest, result + 1);

    const char *dir = arena_printf(&arena, "%s/%s", root, name);
    const char *const files[][2] = {{"result.json", result}, {"spans.tsv", spans}, {"utilization.tsv", windows},
                                    {"memory.tsv", MEMORY}, {"links.tsv", LINKS}};

    mkdir(dir, 0777);
    for (size_t i = 0; i < COUNT(files); i++) {
        const char *path = arena_printf(&arena, "%s/%s", dir, files[i][0]);

        remove(path);
        if (files[i][1])
            put(path, files[i][1]);
    }
    return dir;
}

/* A chart of one run. */
static inline struct plot_request request_of(const char *kind, const char *const *dir, const char *format)
{
    return (struct plot_request){
        .kind = kind, .inputs = dir, .ninputs = 1, .format = format, .folder = arena_printf(&arena, "%s/plots", *dir),
        .view = {.replica = -1},
    };
}

/* The i-th file of such a chart. */
static inline const char *file_of(const char *kind, const char *dir, const char *format, size_t i)
{
    struct plot_request request = request_of(kind, &dir, format);
    struct error err = {0};

    return plot_file(&arena, &request, i, &err);
}

static inline const char *errors(struct error *err)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const char *kept;

    error_print(err, out);
    fclose(out);
    kept = arena_strdup(&arena, text);
    free(text);
    error_release(err);
    return kept;
}

static inline int set_up(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static inline int tear_down(void **state)
{
    const char *const arguments[] = {"rm", "-r", root, NULL};
    char text[100];
    int status = 1;

    (void)state;
    tool_run(&(struct tool){"/", arguments, STDERR_FILENO, TOOL_SECONDS}, text, sizeof text, &status);
    arena_release(&arena);
    return status;
}

#endif
