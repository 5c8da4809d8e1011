/* Traces: the errors for bad tables. Hostile names in tables do nothing: files with them are still valid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "text.h"
#include "trace/protobuf.h"
#include "trace/trace.h"

#include <jansson.h>

#define HEADER "rank\tstage\tkind\tname\tmb\tt0\tt1\tlane\tcommunication\toverlapped\treplicas\tid\tafter\top\tgroup\tbytes\tpeer\n"
#define FIRST "0\t0\tforward\tF0\t0\t0\t1\tcompute\t0.25\t0\t1\t0\t\tall_reduce\t0\t8\t\n"
#define SEND "0\t0\tactivation\tA0\t0\t1\t1.5\tsend-next.0\t0.5\t0\t1\t1\t0\tsend\t0\t4\t1\n"
#define SECOND "1\t1\tforward\tF0\t0\t1.5\t2.5\tcompute\t0\t0\t1\t2\t1\t\t\t\t\n"
#define GROUPS "group\tkind\tgpus\talike\tranks\n0\tpipeline\t2\t1\t0,1\n"
#define RESULT "{\"scenario\": {\"strategy\": {\"pipeline\": 2}}, \"gpu\": \"a\\\"<b>\"}"

static char root[] = "/tmp/dtsim-trace-XXXXXX";

static void put(const char *name, const char *text)
{
    char *path = xprintf("%s/%s", root, name);
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
    free(path);
}

/* The tables of which Perfetto's counters are made. */
#define MEMORY "rank\tt\tkind\tbytes\treplicas\n"
static const char memory[] = MEMORY "0\t0\tweights\t4\t1\n";
static const char utilization[] = "t0\tt1\tforward\tbackward\tbackward_input\tbackward_weight\trecompute\tupdate\tpack\n"
                                  "0\t1\t0.5\t0\t0\t0\t0\t0\t0\n";
static void put_counters(const char *of_memory, const char *of_utilization)
{
    put("memory.tsv", of_memory);
    put("utilization.tsv", of_utilization);
}

/* The message for a trace of these tables. */
static char *traced(enum trace_format format, const char *result, const char *spans, const char *groups)
{
    struct trace_request request = {.dir = root, .format = format, .merge = format == TRACE_KINETO};
    char *out = xprintf("%s/out", root), *shown = NULL;
    FILE *told = fopen("/dev/null", "w");
    struct error err = {0};

    put("result.json", result);
    put("spans.tsv", spans);
    put("groups.tsv", groups);
    request.out = format == TRACE_CHAKRA ? root : out;
    if (trace_write(&request, told, &err))
        shown = messages_of(&err);
    fclose(told);
    free(out);
    error_release(&err);
    return shown;
}

static const struct { const char *result, *spans, *groups, *expected; } bad[] = {
    {"{}", HEADER FIRST, GROUPS, "it has no pipeline degree"},
    {"{", HEADER FIRST, GROUPS, "expected near end of file"},
    {RESULT, HEADER, GROUPS, "spans.tsv: error: no spans"},
    {RESULT, "rank\tstage\n", GROUPS, "no column 'id'"},
    {RESULT, HEADER "0\t0\tforward\tF0\t0\t-1\t1\tcompute\t0\t0\t1\t0\t\t\t\t\t\n", GROUPS, "starts before 0"},
    {RESULT, HEADER "0\t0\tforward\tF0\t0\tnan\t1\tcompute\t0\t0\t1\t0\t\t\t\t\t\n", GROUPS, "'nan' is not a number"},
    {RESULT, HEADER "0\t0\tforward\tF0\t0\t1\t1e10\tcompute\t0\t0\t1\t0\t\t\t\t\t\n", GROUPS, "too long to be written in ns"},
    {RESULT, HEADER "0\t0\tforward\tF0\t0\t2\t1\tcompute\t0\t0\t1\t0\t\t\t\t\t\n", GROUPS, "ends before it starts"},
    {RESULT, HEADER "0\t0\tforward\tF0\t0\t0\t1\tcompute\t2\t0\t1\t0\t\t\t\t\t\n", GROUPS, "2 s of communication in a span of 1 s"},
    {RESULT, HEADER "0\t0\tforward\tF0\t0\t0\t1\t\t0\t0\t1\t0\t\t\t\t\t\n", GROUPS, "a span without lane"},
    {RESULT, HEADER "0\t0\tforward\tF0\t0\t0\t1\tcompute\t0\t0\t1\t0\t\tgossip\t\t\t\n", GROUPS, "unknown operation 'gossip'"},
    {RESULT, HEADER "0\t0\tforward\tF0\t0\t0\t1\tcompute\t0\t0\t1\t0\t\tall_reduce\t7\t\t\n", GROUPS, "group 7 is not in groups.tsv"},
    {RESULT, HEADER "0\t0\tforward\tF0\t0\t0\t1\tcompute\t0\t0\t1\t0\t\tsend\t0\t8\t\n", GROUPS, "a send without peer"},
    {RESULT, HEADER "0\t0\tforward\tF0\t0\t0\t1\tcompute\t0\t0\t1\t0\t\t\t\t-4\t\n", GROUPS, "-4 is no number of bytes"},
    {RESULT, HEADER SECOND FIRST, GROUPS, "spans.tsv:3:1: error: the span is out of order"},
    {RESULT, HEADER FIRST FIRST, GROUPS, "two spans have the id 0"},
    {RESULT, HEADER FIRST, "group\tkind\tgpus\talike\tranks\n0\tpipeline\t2\t1\t0,x\n", "expected ranks with commas between them"},
    {RESULT, HEADER FIRST, "group\tkind\tgpus\talike\tranks\n1\tpipeline\t2\t1\t0\n", "1 is not between 0 and 0"},
};

static void test_bad_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        for (enum trace_format format = 0; format < TRACE_FORMAT_COUNT; format++) {
            char *shown = traced(format, bad[i].result, bad[i].spans, bad[i].groups);

            if (!shown || !strstr(shown, bad[i].expected))
                fail_msg("expected '%s' of case %zu in: %s", bad[i].expected, i, shown ? shown : "nothing");
            free(shown);
        }
}

static const struct { const char *memory, *utilization, *expected; } bad_counters[] = {
    {MEMORY "0\t-1\tweights\t4\t1\n", utilization, "memory.tsv:2:3: error: the bytes change before 0"},
    {MEMORY "0\t0\tweights\t-1e300\t1\n", utilization, "memory.tsv:2:13: error: -1e+300 is no number of bytes"},
    {MEMORY "0\t0\tweights\t99999999999999999999\t1\n", utilization, "1e+20 is no number of bytes"},
    {MEMORY "0\t0\tweights\tmany\t1\n", utilization, "'many' is not a number"},
    {MEMORY "-1\t0\tweights\t4\t1\n", utilization, "-1 is not between 0 and"},
    {"rank\tt\tkind\n", utilization, "no column 'bytes'"},
    {memory, "t0\tforward\n0\t1\n", "no column 't1'"},
    {memory, "t0\tt1\tforward\tforward\n0\t1\t1\t1\n", "column 'forward' stands twice in the header"},
    {memory, "t0\tt1\tanything\n0\t1\tx\n", "'x' is not a number"},
};

static void test_bad_counters(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad_counters); i++) {
        char *shown;

        put_counters(bad_counters[i].memory, bad_counters[i].utilization);
        shown = traced(TRACE_PERFETTO, RESULT, HEADER FIRST, GROUPS);
        if (!shown || !strstr(shown, bad_counters[i].expected))
                fail_msg("expected '%s' of case %zu in: %s", bad_counters[i].expected, i, shown ? shown : "nothing");
        free(shown);
    }
    put_counters(memory, utilization);
}

static const char *const hostile[] = {
    "</script><script>alert(1)</script>", "${x}", "\"}],\"a\":[{\"", "\\", "\x1b[31m", "\xe2\x80\xaeold", "\xff\xfe", "\xc3",
    "a\x01z", "%s%n", "'; DROP TABLE spans", "\xed\xa0\x80", "<!--", "&amp;", "javascript:1",
};

/* All texts of a trace with that name, kind and lane. */
static char *hostile_spans(const char *name)
{
    return xprintf(HEADER "0\t0\t%s\t%s\t0\t0\t1\tcompute\t0.25\t0\t1\t0\t\tall_reduce\t0\t8\t\n"
                   "0\t0\t%s\t%s\t0\t1\t2\t%s\t1\t0\t1\t1\t0\tsend\t0\t4\t1\n" SECOND, name, name, name, name, name);
}

static void check_name(const char *name)
{
    char *spans = hostile_spans(name), *path = xprintf("%s/out", root);
    char *groups = xprintf("group\tkind\tgpus\talike\tranks\n0\t%s\t2\t1\t0,1\n", name);
    json_t *json;

    for (enum trace_format format = 0; format < TRACE_FORMAT_COUNT; format++) {
        char *shown = traced(format, RESULT, spans, groups);

        if (shown)
            fail_msg("'%.40s': %s", name, shown);
        json = format == TRACE_KINETO ? json_load_file(path, 0, NULL) : NULL;
        assert_true(format != TRACE_KINETO || json_array_size(json_object_get(json, "traceEvents")) > 10);
        json_decref(json);
    }
    free(spans);
    free(groups);
    free(path);
}

static void test_hostile_names(void **state)
{
    char *name = xcalloc((64 << 10) + 1, 1);

    (void)state;
    for (size_t i = 0; i < COUNT(hostile); i++) {
        struct protobuf_message message = {0};

        check_name(hostile[i]);
        message_text(&message, 1, hostile[i]);       /* a text of protobuf is UTF-8 */
        json_t *text = json_stringn((const char *)message.items + 2, message.count - 2);

        assert_non_null(text);
        assert_int_equal(message.items[1], message.count - 2);
        json_decref(text);
        free(message.items);
    }
    memset(name, '<', 64 << 10);
    check_name(name);
    free(name);
}

/* The encoding's own examples (protobuf.dev, "Encoding"): 150 in field 1; "testing" in field 2. */
static void test_protobuf(void **state)
{
    struct protobuf_message message = {0};

    (void)state;
    message_varint(&message, 1, 150);
    assert_memory_equal(message.items, "\x08\x96\x01", message.count);
    message.count = 0;
    message_text(&message, 2, "testing");
    assert_int_equal(message.count, 9);
    assert_memory_equal(message.items, "\x12\x07testing", 9);
    message.count = 0;
    message_varint(&message, 1, UINT64_MAX);
    assert_int_equal(message.count, 11);
    message.count = 0;
    message_double(&message, 44, 1);
    assert_memory_equal(message.items, "\xe1\x02\0\0\0\0\0\0\xf0\x3f", 10);
    free(message.items);
}

static int make(void **state)
{
    (void)state;
    if (!mkdtemp(root))
        return -1;
    put_counters(memory, utilization);
    return 0;
}

static int clear(void **state)
{
    char *command = xprintf("rm -r %s", root);
    int rc = system(command);

    (void)state;
    free(command);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_counters),
        cmocka_unit_test(test_bad_tables), cmocka_unit_test(test_hostile_names), cmocka_unit_test(test_protobuf),
    };

    return cmocka_run_group_tests(tests, make, clear);
}
