#include "serve/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/progress.h"
#include "files/json.h"
#include "serve/answer.h"
#include "serve/request.h"

static const char FORM[] = "expected a request on one line, such as {\"id\": 1, \"base\": \"scenario.yaml\"}";

struct queued *queue_at(struct queue *queue, uint64_t number)
{
    return &queue->items[number - queue->first];
}

void queue_answer(struct queue *queue, uint64_t number, char *answer)
{
    struct queued *queued = queue_at(queue, number);

    queue->held -= queued->length;
    free(queued->text);
    queued->text = NULL;
    queued->answer = answer;
    queue->ready += answer ? strlen(answer) : 0;
    queued->state = QUEUED_ANSWERED;
}

static void answer_error(struct queue *queue, uint64_t number, struct error *err)
{
    queue_answer(queue, number, answer_errors(err));
    error_release(err);
}

/* A new line, which is the last. */
static struct queued *push(struct queue *queue, char *text, size_t length, uint64_t *number)
{
    struct queued *queued = GROW(queue);

    *queued = (struct queued){.text = text, .length = length};
    queue->held += length;
    *number = queue->first + queue->count - 1;
    return queued;
}

void queue_add_long(struct queue *queue)
{
    struct error err = {0};
    uint64_t number;

    push(queue, NULL, 0, &number);
    error_add(&err, EXIT_INPUT, (struct loc){REQUESTS, (int)number + 1, REQUEST_MOST + 1},
              "a line of more than %d MiB; put the scenario into a file, and name it as 'base'", REQUEST_MOST >> 20);
    answer_error(queue, number, &err);
}

/* An id as JSON, which the caller frees; NULL: the value is none. */
static char *id_text(const json_t *id)
{
    return json_is_string(id) || json_is_number(id) ? json_text(id) : NULL;
}

static int read_cancel(struct queue *queue, const json_t *request, struct loc loc, struct error *err)
{
    char *id = id_text(json_object_get(request, "cancel"));

    if (!id || json_object_size(request) != 1) {
        free(id);
        return error_add(err, EXIT_INPUT, loc, "request: cancel: expected an id alone, such as {\"cancel\": 1}");
    }
    for (size_t i = queue->head; i < queue->count; i++) {
        struct queued *queued = &queue->items[i];

        if (!queued->id || strcmp(queued->id, id))
            continue;
        if (queued->state == QUEUED_RUNNING)
            queued->state = QUEUED_UNWANTED;
        if (queued->state != QUEUED_WAITING)
            continue;
        error_add(err, EXIT_INTERRUPTED, (struct loc){0}, "cancelled");
        answer_error(queue, queue->first + i, err);
    }
    free(id);
    return 0;
}

/* What the worker that runs the request is held to. A value that is no budget it refuses itself. */
static void read_budget(const json_t *limits, struct budget *budget)
{
    if (json_is_string(limits))
        budget_parse(json_string_value(limits), budget);
    for (size_t i = 0; i < json_array_size(limits); i++)
        read_budget(json_array_get(limits, i), budget);
}

static int read_line(struct queue *queue, struct queued *queued, struct loc loc, struct error *err)
{
    json_error_t why;
    json_t *request = json_loadb(queued->text, queued->length, JSON_REJECT_DUPLICATES, &why);
    json_t *id = json_object_get(request, "id");
    int rc = 0;

    if (!request) {
        loc.column = why.column > 0 ? why.column : 1;
        return error_add(err, EXIT_INPUT, loc, "the line is not JSON: %s; %s", why.text, FORM);
    }
    queued->id = id_text(id);
    read_budget(json_object_get(request, "budget"), &queued->budget);
    if (!json_is_object(request))
        rc = error_add(err, EXIT_INPUT, loc, "found a list; %s", FORM);
    else if (id && !json_is_null(id) && !queued->id)
        rc = error_add(err, EXIT_INPUT, loc, "request: id: expected a text or a number");
    else if (json_object_get(request, "cancel"))
        rc = read_cancel(queue, request, loc, err) ? -1 : 1;
    json_decref(request);
    return rc;
}

void queue_add(struct queue *queue, char *text, size_t length, struct budget usual)
{
    struct error err = {0};
    uint64_t number;
    struct queued *queued = push(queue, text, length, &number);
    int rc = 1;                  /* the line asks for nothing */

    queued->budget = usual;
    if (strspn(text, " \t\r") < length)
        rc = read_line(queue, queued, (struct loc){REQUESTS, (int)number + 1, 1}, &err);
    if (rc == 0) {
        queued->text = xcalloc(sizeof queued->budget + length + 1, 1);
        memcpy(queued->text, &queued->budget, sizeof queued->budget);
        memcpy(queued->text + sizeof queued->budget, text, length);
        queued->length += sizeof queued->budget;
        queue->held += sizeof queued->budget;
        free(text);
    }
    if (rc < 0)
        answer_error(queue, number, &err);
    else if (rc > 0)
        queue_answer(queue, number, NULL);
}

bool queue_next(struct queue *queue, uint64_t *number)
{
    if (queue->next < queue->first + queue->head)
        queue->next = queue->first + queue->head;
    for (; queue->next < queue->first + queue->count; queue->next++) {
        struct queued *queued = queue_at(queue, queue->next);

        if (queued->state != QUEUED_WAITING)
            continue;
        if (queue->ready >= QUEUE_MOST && queue->next > queue->first + queue->head)
            return false;
        queued->state = QUEUED_RUNNING;
        *number = queue->next++;
        return true;
    }
    return false;
}

/* Forgets lines that have gone, once they are most of the array. */
static void forget(struct queue *queue)
{
    if (queue->head <= queue->count / 2)
        return;
    queue->count -= queue->head;
    memmove(queue->items, queue->items + queue->head, queue->count * sizeof *queue->items);
    queue->first += queue->head;
    queue->head = 0;
}

static void free_item(struct queued *queued)
{
    free(queued->text);
    free(queued->id);
    free(queued->answer);
}

bool queue_write(struct queue *queue, FILE *out)
{
    for (; queue->head < queue->count; queue->head++) {
        struct queued *queued = &queue->items[queue->head];

        if (queued->state != QUEUED_ANSWERED)
            break;
        queue->ready -= queued->answer ? strlen(queued->answer) : 0;
        if (queued->answer)
            fprintf(out, "{\"id\":%s,%s\n", queued->id ? queued->id : "null", queued->answer);
        free_item(queued);
    }
    forget(queue);
    return queue->head == queue->count;
}

void queue_release(struct queue *queue)
{
    for (size_t i = queue->head; i < queue->count; i++)
        free_item(&queue->items[i]);
    free(queue->items);
}
