/* queue: answers come in the order of requests, whatever the order in which they are found; a request that is cancelled
 * is answered so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "serve/queue.h"

#include <stdlib.h>
#include <string.h>

static void add(struct queue *queue, const char *line)
{
    queue_add(queue, strdup(line), strlen(line), (struct budget){.seconds = 9});
}

/* What the queue writes now; the caller frees it. */
static char *written(struct queue *queue)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    queue_write(queue, out);
    fclose(out);
    return text;
}

static void expect(struct queue *queue, const char *text)
{
    char *found = written(queue);

    assert_string_equal(found, text);
    free(found);
}

static void test_order(void **state)
{
    struct queue queue = {0};
    uint64_t a = 0, b = 0, c = 0, none;

    (void)state;
    add(&queue, "{\"id\": \"a\", \"budget\": [\"2 s\", \"1 MiB\"]}");
    add(&queue, "");
    add(&queue, "{}");
    add(&queue, "{\"id\": 1.5}");
    assert_true(queue_next(&queue, &a) && queue_next(&queue, &b) && queue_next(&queue, &c));
    assert_false(queue_next(&queue, &none));
    assert_int_equal(b, 2);              /* lines are numbered, empty ones too */
    assert_true(queue_at(&queue, a)->budget.seconds == 2 && queue_at(&queue, a)->budget.bytes == 1 << 20);
    assert_true(queue_at(&queue, b)->budget.seconds == 9);
    queue_answer(&queue, c, strdup("\"metrics\":3}"));
    expect(&queue, "");
    queue_answer(&queue, a, strdup("\"metrics\":1}"));
    expect(&queue, "{\"id\":\"a\",\"metrics\":1}\n");
    queue_answer(&queue, b, strdup("\"metrics\":2}"));
    expect(&queue, "{\"id\":null,\"metrics\":2}\n{\"id\":1.5,\"metrics\":3}\n");
    assert_int_equal(queue.held, 0);
    queue_release(&queue);
}

static void test_cancel(void **state)
{
    static const char cancelled[] = "\"errors\":[{\"file\":null,\"line\":null,\"column\":null,\"message\":\"cancelled\","
                                    "\"rule\":null}],\"exit_code\":130}\n";
    struct queue queue = {0};
    uint64_t first, third;
    char text[400];

    (void)state;
    add(&queue, "{\"id\": 1}");
    add(&queue, "{\"id\": 2}");
    add(&queue, "{\"id\": \"2\"}");
    assert_true(queue_next(&queue, &first));
    add(&queue, "{\"cancel\": 2}");      /* which waits; the text "2" is another id */
    add(&queue, "{\"cancel\": 1}");      /* which runs */
    add(&queue, "{\"cancel\": 7}");      /* which is not there */
    assert_int_equal(queue_at(&queue, first)->state, QUEUED_UNWANTED);
    assert_true(queue_next(&queue, &third));
    assert_int_equal(third, 2);
    queue_answer(&queue, third, strdup("3}"));
    queue_answer(&queue, first, strdup("1}"));
    snprintf(text, sizeof text, "{\"id\":1,1}\n{\"id\":2,%s{\"id\":\"2\",3}\n", cancelled);
    expect(&queue, text);
    queue_release(&queue);
}

/* Many lines, of which some are answered at random: the queue forgets those that have gone. */
static void test_long(void **state)
{
    enum { LINES = 20000, MOST = 50 };
    uint64_t running[MOST], next = 0;
    struct queue queue = {0};
    int count = 0, added = 0;
    unsigned chosen = 1;

    (void)state;
    while (added < LINES || count) {
        char line[32], *found;

        if (added < LINES && count < MOST) {
            snprintf(line, sizeof line, "{\"id\": %d}", added++);
            add(&queue, line);
            assert_true(queue_next(&queue, &running[count++]));
            continue;
        }
        chosen = chosen * 1103515245 + 12345;
        int i = (int)(chosen >> 8) % count;
        queue_answer(&queue, running[i], strdup("}"));
        running[i] = running[--count];
        found = written(&queue);
        for (char *at = found; *at; at = strchr(at, '\n') + 1, next++) {
            snprintf(line, sizeof line, "{\"id\":%d,}\n", (int)next);
            assert_memory_equal(at, line, strlen(line));
        }
        free(found);
    }
    assert_int_equal(next, LINES);
    assert_true(queue.capacity <= 4096);
    queue_release(&queue);
}

/* While too many answers wait for one line, that line alone may begin. */
static void test_full(void **state)
{
    struct queue queue = {0};
    uint64_t first = 0, second = 0, third;
    char *large = malloc(QUEUE_MOST + 1), *found;

    (void)state;
    assert_non_null(large);
    memset(large, '}', QUEUE_MOST);
    large[QUEUE_MOST] = '\0';
    for (int i = 0; i < 3; i++)
        add(&queue, "{}");
    assert_true(queue_next(&queue, &first) && queue_next(&queue, &second));
    queue_answer(&queue, second, large);
    assert_false(queue_next(&queue, &third));
    queue_answer(&queue, first, strdup("}"));
    found = written(&queue);
    assert_int_equal(strlen(found), QUEUE_MOST + 2 * strlen("{\"id\":null,\n") + 1);
    free(found);
    assert_true(queue_next(&queue, &third) && third == 2 && queue.ready == 0);
    queue_release(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
