/* json_stream: a JSON document of any size, read value by value. Its top is an object, some of whose values are arrays
 * that are read item by item; only one value at a time is in memory. Zero-initialise, set the first four members.
 *
 *     while ((status = json_stream_key(&stream, &key)) > 0)
 *         if (!strcmp(key, "items") && json_stream_array(&stream))
 *             while ((status = json_stream_item(&stream)) > 0)
 *                 json_decref(json_stream_value(&stream));
 *         else
 *             status = json_stream_skip(&stream);
 *
 * Errors stand at their line and column, in bytes. After one, all functions fail without a further message. */
#ifndef DTSIM_JSON_STREAM_H
#define DTSIM_JSON_STREAM_H

#include <jansson.h>
#include <stdio.h>

#include "base/base.h"

enum { JSON_STREAM_MOST = 16 << 20 };    /* B, of a value that json_stream_value reads */

struct json_stream {
    FILE *file;
    const char *name;            /* of the file, in messages */
    const char *expected;        /* what the file should be, in messages: "a trace of PyTorch's profiler" */
    struct error *err;
    bool failed;
    bool begun;                  /* the top has */
    bool first;                  /* no comma is due yet */
    int line, column;            /* of the next byte, from 0 */
    int last;                    /* column of the last line break */
    struct { char *items; size_t count, capacity; } text;
};

/* 1 and the next key of the top, which lives until the next call; 0 at the end of the document; -1 after an error. */
int json_stream_key(struct json_stream *stream, const char **key);
/* Whether the value is an array, which begins. If it is none, nothing is read. */
bool json_stream_array(struct json_stream *stream);
/* 1 if the array has another item, 0 at its end, -1 after an error. */
int json_stream_item(struct json_stream *stream);
/* The place of the next value. */
struct loc json_stream_loc(struct json_stream *stream);
/* The next value, which the caller releases; NULL after an error. */
json_t *json_stream_value(struct json_stream *stream);
/* Passes over the next value, whatever its size. 1, or -1 after an error. */
int json_stream_skip(struct json_stream *stream);
void json_stream_release(struct json_stream *stream);

#endif
