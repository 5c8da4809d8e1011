/* queue: lines of requests that wait or run, in their order, and the answers to them. Lines are numbered from 0. */
#ifndef DTSIM_QUEUE_H
#define DTSIM_QUEUE_H

#include "base/progress.h"

enum queued_state { QUEUED_WAITING, QUEUED_RUNNING, QUEUED_UNWANTED, QUEUED_ANSWERED };

struct queued {
    char *text;                  /* what a worker gets: the struct budget, to which it is held while it reads, and the line;
                                    NULL once it is answered */
    size_t length;
    char *id;                    /* as JSON */
    struct budget budget;
    enum queued_state state;
    char *answer;                /* behind its id (answer.h); NULL: this line has none */
};

struct queue {
    struct queued *items;        /* a growable array; those before `head` have gone */
    size_t count, capacity, head;
    uint64_t first;              /* the number of items[0] */
    uint64_t next;               /* of the first that may wait */
    size_t held;                 /* bytes of lines that are not answered */
    size_t ready;                /* bytes of answers that are not written */
};
enum { QUEUE_MOST = 256 << 20 };         /* of lines: then no further ones are read; of answers: then no line begins */

/* Adds the next line (`text` is the queue's from now on): a request, a request to cancel, which is done, or nothing.
 * A line that is no JSON object, or whose id is none, is answered with that. */
void queue_add(struct queue *queue, char *text, size_t length, struct budget usual);
/* Adds a line that is too long to be kept. */
void queue_add_long(struct queue *queue);
/* The next line that waits, which runs from now on. False: there is none, or too many answers wait to be written, and
 * the line is not the one that they wait for. */
bool queue_next(struct queue *queue, uint64_t *number);
struct queued *queue_at(struct queue *queue, uint64_t number);
/* Answers a line; `answer` is the queue's from now on. */
void queue_answer(struct queue *queue, uint64_t number, char *answer);
/* Writes the answers that are next in order. Whether no line is left. */
bool queue_write(struct queue *queue, FILE *out);
void queue_release(struct queue *queue);

#endif
