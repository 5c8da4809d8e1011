/* Pages: their data, byte by byte, and the errors for results that are none. Browsers read them in tests/web/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "page/page_internal.h"
#include "results/results.h"
#include "text.h"

#define HEADER "rank\tstage\tkind\tname\tmb\tt0\tt1\tlane\tcommunication\toverlapped\treplicas\tid\tafter\top\tgroup\tbytes\tpeer\n"
#define FIRST "0\t0\tforward\tF0\t0\t0\t1\tcompute\t0.25\t0\t1\t0\t\tall_reduce\t0\t8\t\n"
#define SEND "0\t0\tactivation\tA0\t0\t1\t1.5\tsend-next.0\t0.5\t0\t1\t1\t0\tsend\t0\t4\t1\n"
#define SECOND "1\t1\tforward\tF0\t0\t1.5\t2.5\tcompute\t0\t0\t1\t2\t1,0+0.5\t\t\t\t\n"

static char root[] = "/tmp/dtsim-page-XXXXXX";

static char *put(const char *name, const char *text)
{
    char *path = xprintf("%s/%s", root, name);
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
    return path;
}

/* RFC 4648, section 10; and more bytes than are encoded at once. */
static void base64_is_that_of_the_standard(void **state)
{
    static const char *const vectors[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    enum { MANY = 3 * 4096 * 2 + 3 };
    char *text;
    size_t size;
    FILE *out, *encoded;

    (void)state;
    for (size_t i = 0; i < COUNT(vectors); i++) {
        out = text_open(&text, &size);
        encoded = base64_open(out);
        fputs(vectors[i][0], encoded);
        fclose(encoded);
        text_close(out, &text);
        assert_string_equal(text, vectors[i][1]);
        free(text);
    }
    out = text_open(&text, &size);
    encoded = base64_open(out);
    for (int i = 0; i < MANY; i++)
        putc("foo"[i % 3], encoded);
    fclose(encoded);
    text_close(out, &text);
    assert_int_equal(size, MANY / 3 * 4);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(text[i], "Zm9v"[i % 4]);
    free(text);
}

static uint64_t next_number(const unsigned char **at)
{
    uint64_t value = 0;
    int shift = 0;

    for (; **at & 0x80; ++*at, shift += 7)
        value |= (uint64_t)(**at & 0x7f) << shift;
    return value | (uint64_t)*(*at)++ << shift;
}

/* The column has these numbers and no others. */
static void check_column(const struct page *page, const char *name, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < page->count; i++)
        if (!strcmp(page->parts[i].name, name)) {
            const unsigned char *at;

            fflush(page->parts[i].stream);
            at = (const unsigned char *)page->parts[i].bytes;
            for (size_t k = 0; k < count; k++)
                assert_int_equal(next_number(&at), numbers[k]);
            assert_ptr_equal(at, page->parts[i].bytes + page->parts[i].size);
            return;
        }
    fail_msg("there is no part %s", name);
}
#define CHECK(page, name, ...) \
    check_column(page, name, (const uint64_t[]){__VA_ARGS__}, sizeof (const uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

/* Three spans in three rows. The last waits for all of the one before, and for half a second of the first. */
static void spans_are_columns(void **state)
{
    struct page_request request = {.input = root};
    struct page page = {.request = &request};
    struct recorded run = {.dir = root};
    struct error err = {0};

    (void)state;
    free(put("result.json", "{\"scenario\": {\"strategy\": {\"pipeline\": 2}}}"));
    free(put("groups.tsv", "group\tkind\tgpus\talike\tranks\n0\tpipeline\t2\t1\t0,1\n"));
    free(put("spans.tsv", HEADER FIRST SEND SECOND));
    assert_int_equal(recorded_read(&run, &err), 0);
    page_init(&page, "run");
    page_spans(&page, &run);
    CHECK(&page, "gap", 0, 1000000000, 1500000000);
    CHECK(&page, "duration", 1000000000, 500000000, 1000000000);
    CHECK(&page, "communication", 250000000, 500000000, 0);
    CHECK(&page, "kind", 0, 1, 0);
    CHECK(&page, "name", 0, 1, 0);
    CHECK(&page, "peer", 0, 2, 0);
    CHECK(&page, "group", 1, 1, 0);
    CHECK(&page, "stage", 1, 1, 2);
    CHECK(&page, "after", 0, 2 * 2, 0, 2 * 2, 2 * 4 + 1, 500000000, 0);
    CHECK(&page, "levels", 0, 0, 0);
    assert_int_equal(json_array_size(json_object_get(page.head, "rows")), 3);
    recorded_release(&run);
    page_release(&page);
}

/* Spans that abut are one run on each level, whose blocks are all busy but the last one. */
static void levels_of_a_busy_lane(void **state)
{
    enum { SPANS = 10000, LONG = 96 };
    static struct recorded_span spans[SPANS];
    const struct recorded_span *items[SPANS];
    uint8_t kinds[SPANS];
    const unsigned char *at;
    char *bytes;
    size_t size;
    FILE *out = text_open(&bytes, &size);
    uint64_t levels;

    (void)state;
    for (int i = 0; i < SPANS; i++) {
        spans[i].start = (int64_t)i * LONG;
        spans[i].end = spans[i].start + LONG;
        kinds[i] = 3;
        items[i] = &spans[i];
    }
    page_levels(out, items, kinds, SPANS);
    text_close(out, &bytes);
    at = (const unsigned char *)bytes;
    levels = next_number(&at);
    assert_in_range(levels, 3, 20);
    for (uint64_t level = 0; level < levels; level++) {
        uint64_t shift = next_number(&at), runs = next_number(&at), covered = 0;

        for (uint64_t run = 0; run < runs; run++) {
            assert_int_equal(next_number(&at), 0);
            covered += next_number(&at) << shift;
            assert_int_equal(*at++, 3);
            assert_true(*at++ == 255 || run == runs - 1);
        }
        assert_in_range(runs, 1, 2);
        assert_in_range(covered, SPANS * LONG, SPANS * LONG + ((uint64_t)1 << shift) - 1);
    }
    assert_ptr_equal(at, bytes + size);
    free(bytes);
}

static void too_many_spans_are_refused_unread(void **state)
{
    static const struct { off_t size; const char *ranks, *expected; } cases[] = {
        {9ll << 30, NULL, "expected a run of fewer ranks or micro-batches"}, {9ll << 30, "0", "expected a run of fewer ranks"},
        {2ll << 30, NULL, "expected some of the ranks, such as --ranks 0-7"}, {2ll << 30, "0", NULL}, {1 << 20, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct page_request request = {.input = root, .ranks = cases[i].ranks};
        struct error err = {0};
        char *path = put("spans.tsv", HEADER FIRST SEND SECOND), *message = NULL;

        assert_int_equal(truncate(path, cases[i].size), 0);          /* it has holes: nothing is on the disk */
        if (page_check_size(&request, &err))
            message = messages_of(&err);
        assert_int_equal(message != NULL, cases[i].expected != NULL);
        if (message)
            assert_non_null(strstr(message, cases[i].expected));
        free(message);
        error_release(&err);
        unlink(path);
        free(path);
    }
}

static void plans_that_are_none(void **state)
{
    static const struct { const char *plan, *expected; } cases[] = {
        {"{", "plan.json"}, {"[]", "status: expected a text"}, {"{\"status\": 1}", "status: expected a text"},
        {"{\"status\": \"proven\"}", "counts: expected an object of numbers"},
        {"{\"status\": \"proven\", \"counts\": {\"considered\": -1}}", "counts: expected an object of numbers"},
        {"{\"status\": \"proven\", \"counts\": {}}", "places: expected an array"},
        {"{\"status\": \"proven\", \"counts\": {}, \"places\": [{\"id\": 1}]}", "places: expected the id and the rank"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct page_request request = {.input = root};
        struct results results = {.ranked = -1};
        struct error err = {0};
        char *path = put("plan.json", cases[i].plan), *message;

        assert_int_equal(page_of_rows(&request, &results, stderr, &err), -1);
        message = messages_of(&err);
        assert_non_null(strstr(message, cases[i].expected));
        free(message);
        error_release(&err);
        unlink(path);
        free(path);
    }
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    static const char *const names[] = {"result.json", "groups.tsv", "spans.tsv"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        char *path = xprintf("%s/%s", root, names[i]);

        unlink(path);
        free(path);
    }
    return rmdir(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_is_that_of_the_standard), cmocka_unit_test(spans_are_columns),
        cmocka_unit_test(levels_of_a_busy_lane), cmocka_unit_test(too_many_spans_are_refused_unread),
        cmocka_unit_test(plans_that_are_none),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
