/* Whatever the bytes of a request: no crash, no leak, no hang; it waits or is answered, and each mistake stands in its
 * line. What waits is JSON, and reads back equal from what its `set` becomes. */
#include <stdlib.h>
#include <string.h>

#include "scenario/scenario.h"
#include "serve/queue.h"
#include "serve/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A scenario is made of it, which `base` would not be: that reads files. */
static void read_one(const char *text, size_t length)
{
    struct arena arena = {0}, own = {0};
    struct request request;
    struct error err = {0};
    int rc = request_read(&arena, text, length, 7, &request, &err);

    BUG_IF((rc != 0) != (err.count > 0));
    for (int i = 0; i < err.count; i++)
        BUG_IF(strcmp(err.messages[i].loc.file, REQUESTS) || err.messages[i].loc.line != 7);
    if (!rc && request.scenario.node) {
        struct node *root = ARENA_ARRAY(&own, struct node, 1);
        struct scenario scenario;

        *root = *request.scenario.node;
        rc = scenario_read(&own, root, request.sets, request.nsets, REQUESTS, &scenario, &err);
        BUG_IF((rc != 0) != (err.count > 0));
        scenario_release(&scenario);
    }
    error_release(&err);
    arena_release(&own);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data, *end = at + size, *stop;
    struct queue queue = {0};
    FILE *out = fopen("/dev/null", "w");
    uint64_t number;

    for (; at < end; at = stop + 1) {
        char *line;

        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        line = memcpy(xcalloc((size_t)(stop - at) + 1, 1), at, (size_t)(stop - at));
        queue_add(&queue, line, (size_t)(stop - at), (struct budget){0});
    }
    while (queue_next(&queue, &number)) {
        struct queued *queued = queue_at(&queue, number);

        read_one(queued->text + sizeof queued->budget, queued->length - sizeof queued->budget);
        queue_answer(&queue, number, strdup("}"));
    }
    BUG_IF(!queue_write(&queue, out) || queue.held);
    fclose(out);
    queue_release(&queue);
    return 0;
}
