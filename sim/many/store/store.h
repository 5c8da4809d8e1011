/* store: the rows of a sweep on disk, in a folder: a file for each shard, JSON Lines: a header, then a row a line.
 *
 *     DIR/shard-1-of-1.jsonl
 *     {"dtsim_sweep": 1, "points": 16, ...}
 *     {"id": "9f86d081884c7d659a2feaa0c55ad015", "point": {"strategy.tensor": 8}, "status": "ok", ...}
 *
 * A file has one writer; a second one is refused. A row is one line and one write, so that what a killed writer leaves
 * behind is whole lines and at most the beginning of one, which the next writer cuts off and readers pass over. Of two
 * rows with one id the later one counts; the file is written anew without the earlier one when it is next opened. */
#ifndef DTSIM_STORE_H
#define DTSIM_STORE_H

#include "store/ids.h"

/* The id of a row, or NULL: it has none. */
const char *store_id(const json_t *row);

struct store {
    char *path;
    int fd;
    off_t size;                  /* of the whole lines */
    size_t unsynced;             /* rows since the last sync */
    double synced;               /* s: when that was */
    size_t replaced;             /* rows that a later one of their id replaced */
    struct ids ids;              /* of all rows in the folder, whichever shard wrote them; numbers: rows added now */
};

/* Opens the shard (from 1 to `shards`) of a folder, which is made where there is none, to write rows; mends what an
 * earlier writer left. The header becomes that of the file. -1: another writer has it, it holds something else, or the
 * disk refuses. Release in either case. */
int store_open(struct store *store, const char *folder, int shard, int shards, const json_t *header, struct error *err);
/* Opens a file that is there, to write rows of ids that it has; its header stays. */
int store_reopen(struct store *store, const char *path, struct error *err);
/* Finds the rows of a folder, whose writer is another process, to look them up alone. */
int store_index(struct store *store, const char *folder, struct error *err);
/* Appends a row with that id and status, which is one object as JSON without newlines. -1: the disk refuses; what was
 * there before is whole. */
int store_add(struct store *store, const char *id, enum outcome status, const char *row, struct error *err);
/* Whether the folder has a row of that id, and its status. */
bool store_find(const struct store *store, const char *id, enum outcome *status);
/* Whether a row of that id was added since the store was opened. */
bool store_added(const struct store *store, const char *id);
/* In a process that was forked from the writer's and only looks up rows: lets go of the file. */
void store_leave(struct store *store);
/* Waits until all rows are on the disk, mends the file where rows were replaced, and closes it. */
int store_close(struct store *store, struct error *err);
void store_release(struct store *store);

/* Calls `row` for every row of a file in its order, and `header` for its first line; a line that was not finished is
 * passed over. -1: the file cannot be read, or holds something else (each mistake with its line), or a function
 * returned -1. */
struct store_reader {
    int (*header)(void *context, const json_t *header, struct error *err);               /* or NULL */
    int (*row)(void *context, const json_t *row, const char *line, size_t length, struct error *err);
    void *context;
};
int store_read(const char *path, const struct store_reader *reader, struct error *err);
/* The files of a folder, sorted, NULL-terminated; none where there is no such folder. NULL: an error. */
const char **store_files(struct arena *arena, const char *folder, struct error *err);
/* Whether the folder holds rows of a sweep. */
int store_holds_rows(const char *folder, bool *rows, struct error *err);

#endif
