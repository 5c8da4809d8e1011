#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "files/folder.h"
#include "report/result.h"

enum { SYNC_ROWS = 256 };        /* rows that may wait for the disk */
static const double SYNC_SECONDS = 1;

/* The entry of the id, with its new status. */
static struct id_entry *ids_set(struct ids *ids, const char *id, enum outcome status)
{
    struct id_entry *entry = ids_put(ids, id);

    entry->status = (unsigned)status & 7;
    return entry;
}

bool store_find(const struct store *store, const char *id, enum outcome *status)
{
    const struct id_entry *entry = ids_find(&store->ids, id);

    if (entry)
        *status = (enum outcome)entry->status;
    return entry != NULL;
}

bool store_added(const struct store *store, const char *id)
{
    const struct id_entry *entry = ids_find(&store->ids, id);

    return entry && entry->number;
}

static int disk_refuses(const char *path, const char *what, struct error *err)
{
    return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "cannot %s: %s", what, strerror(errno));
}

/* All bytes, whatever interrupts. */
static int write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t count = write(fd, bytes, length);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return -1;
        bytes += count;
        length -= (size_t)count;
    }
    return 0;
}

/* Opens the file to write and locks it; an earlier writer may put another in its place meanwhile. */
static int open_locked(struct store *store, struct error *err)
{
    struct stat mine, there = {0};

    for (;;) {
        store->fd = open(store->path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (store->fd < 0 && errno == ELOOP)
            return error_add(err, EXIT_INPUT, (struct loc){.file = store->path}, "this is a link; expected a file of its own, "
                             "so that rows go nowhere else");
        if (store->fd < 0)
            return disk_refuses(store->path, "open", err);
        if (flock(store->fd, LOCK_EX | LOCK_NB))
            return errno == EWOULDBLOCK ?
                   error_add(err, EXIT_UNEXPECTED, (struct loc){.file = store->path}, "another sweep writes this file; "
                             "expected one writer a shard") : disk_refuses(store->path, "lock", err);
        if (fstat(store->fd, &mine) || (stat(store->path, &there) && errno != ENOENT))
            return disk_refuses(store->path, "look at", err);
        if (!S_ISREG(mine.st_mode))
            return error_add(err, EXIT_INPUT, (struct loc){.file = store->path}, "this is no regular file; expected one that "
                             "keeps rows");
        if (mine.st_ino == there.st_ino)
            return 0;
        close(store->fd);
    }
}

/* Cuts off the beginning of a line that was never finished. */
static int cut_torn(struct store *store, struct error *err)
{
    off_t size = lseek(store->fd, 0, SEEK_END), end = size;
    char bytes[4096];

    if (size < 0)
        return disk_refuses(store->path, "read", err);
    while (end > 0) {
        off_t from = end > (off_t)sizeof bytes ? end - (off_t)sizeof bytes : 0;
        ssize_t count = pread(store->fd, bytes, (size_t)(end - from), from);
        const char *last = count > 0 ? memrchr(bytes, '\n', (size_t)count) : NULL;

        if (count <= 0)
            return disk_refuses(store->path, "read", err);
        end = last ? from + (last - bytes) + 1 : from;
        if (last)
            break;
    }
    store->size = end;
    return end == size || !ftruncate(store->fd, end) ? 0 : disk_refuses(store->path, "shorten", err);
}

/* The rows of one file while it is opened or written anew. */
struct copy {
    struct ids ids;              /* by id how many rows are still to come */
    char *header;
    bool doubled;
    int fd;                      /* where the last row of each id goes */
};

static int count_header(void *context, const json_t *header, struct error *err)
{
    struct copy *copy = context;

    (void)err;
    copy->header = json_text(header);
    return 0;
}

#define UNUSED_LINE(line, length, err) ((void)(line), (void)(length), (void)(err))
static int count_row(void *context, const json_t *row, const char *line, size_t length, struct error *err)
{
    struct copy *copy = context;

    UNUSED_LINE(line, length, err);
    copy->doubled |= ids_set(&copy->ids, store_id(row), outcome_of(row))->number++ > 0;
    return 0;
}

static int copy_row(void *context, const json_t *row, const char *line, size_t length, struct error *err)
{
    struct copy *copy = context;

    (void)err;
    if (--ids_find(&copy->ids, store_id(row))->number)
        return 0;
    return write_all(copy->fd, line, length) || write_all(copy->fd, "\n", 1) ? -1 : 0;
}

/* The folder itself must know the file's new name. */
static int sync_folder(const char *path)
{
    char *folder = xrealloc(NULL, strlen(path) + 1, 1), *slash = strrchr(strcpy(folder, path), '/');
    int fd, rc;

    if (slash)
        *slash = '\0';
    fd = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC);
    rc = fd < 0 || fsync(fd);
    if (fd >= 0)
        close(fd);
    free(folder);
    return rc ? -1 : 0;
}

/* Writes the file anew under another name, with this header and the last row of each id, and puts it in the place of
 * the old one. */
static int write_anew(struct store *store, const char *header, struct copy *copy, struct error *err)
{
    const struct store_reader reader = {.row = copy_row, .context = copy};
    const size_t size = strlen(store->path) + 64;
    char *path = xcalloc(size, 1);
    int rc;

    copy->fd = temporary_open(AT_FDCWD, store->path, path, size);
    rc = copy->fd < 0 || fcntl(copy->fd, F_SETFL, O_APPEND) || write_all(copy->fd, header, strlen(header)) ||
         write_all(copy->fd, "\n", 1) || (store->size && store_read(store->path, &reader, err)) || fsync(copy->fd) ||
         rename(path, store->path) || sync_folder(store->path);
    if (rc) {
        disk_refuses(store->path, "write", err);
        if (copy->fd >= 0)
            unlink(path);
        if (copy->fd >= 0)
            close(copy->fd);
    } else {
        close(store->fd);
        store->fd = copy->fd;
        store->size = lseek(store->fd, 0, SEEK_END);
    }
    free(path);
    return rc ? -1 : 0;
}

/* Removes what an earlier writer of this file, whose lock is now held, left half written. */
static void clear_temporaries(const struct store *store)
{
    char *folder = xstrdup(store->path), *slash = strrchr(folder, '/');

    if (slash)
        *slash = '\0';
    temporaries_clear(slash ? folder : ".", slash ? slash + 1 : folder);
    free(folder);
}

/* Brings the file into order: the header, and one row an id. */
static int settle(struct store *store, const char *header, struct error *err)
{
    struct copy copy = {0};
    const struct store_reader reader = {count_header, count_row, &copy};
    int rc = store->size ? store_read(store->path, &reader, err) : 0;

    clear_temporaries(store);
    if (!header)
        header = copy.header;
    if (!rc && !header)
        rc = error_add(err, EXIT_FAILURE, (struct loc){.file = store->path}, "another program took the first line out of "
                       "the file while this one wrote to it");
    if (!rc && (copy.doubled || !copy.header || strcmp(copy.header, header)))
        rc = write_anew(store, header, &copy, err);
    ids_release(&copy.ids);
    free(copy.header);
    return rc;
}

static int index_row(void *context, const json_t *row, const char *line, size_t length, struct error *err)
{
    UNUSED_LINE(line, length, err);
    ids_set(context, store_id(row), outcome_of(row));
    return 0;
}

static int index_folder(struct store *store, const char *folder, struct error *err)
{
    const struct store_reader reader = {.row = index_row, .context = &store->ids};
    struct arena arena = {0};
    const char **files = store_files(&arena, folder, err);
    int rc = files ? 0 : -1;

    for (size_t i = 0; files && files[i]; i++)
        rc = store_read(files[i], &reader, err) ? -1 : rc;
    arena_release(&arena);
    return rc;
}

int store_index(struct store *store, const char *folder, struct error *err)
{
    *store = (struct store){.fd = -1};
    return index_folder(store, folder, err);
}

int store_open(struct store *store, const char *folder, int shard, int shards, const json_t *header, struct error *err)
{
    char *text = json_text(header);
    int rc;

    *store = (struct store){.fd = -1, .path = xprintf("%s/shard-%d-of-%d.jsonl", folder, shard, shards)};
    rc = make_folder(folder, err) || open_locked(store, err) || cut_torn(store, err) || settle(store, text, err) ||
         index_folder(store, folder, err) ? -1 : 0;
    free(text);
    return rc;
}

int store_reopen(struct store *store, const char *path, struct error *err)
{
    const struct store_reader reader = {.row = index_row, .context = &store->ids};

    *store = (struct store){.fd = -1, .path = xstrdup(path)};
    return open_locked(store, err) || cut_torn(store, err) || settle(store, NULL, err) ||
           store_read(store->path, &reader, err) ? -1 : 0;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int sync_rows(struct store *store, struct error *err)
{
    store->unsynced = 0;
    store->synced = now();
    return fdatasync(store->fd) && errno != EINVAL ? disk_refuses(store->path, "write", err) : 0;
}

/* One write, one line. */
static int write_line(int fd, const char *row, size_t length)
{
    char *line = xrealloc(NULL, length + 1, 1);
    int rc;

    memcpy(line, row, length);
    line[length] = '\n';
    rc = write_all(fd, line, length + 1);
    free(line);
    return rc;
}

int store_add(struct store *store, const char *id, enum outcome status, const char *row, struct error *err)
{
    size_t length = strlen(row);
    enum outcome before;

    if (write_line(store->fd, row, length)) {
        disk_refuses(store->path, "write", err);
        if (ftruncate(store->fd, store->size))
            disk_refuses(store->path, "shorten", err);
        return -1;
    }
    store->size += (off_t)length + 1;
    store->replaced += store_find(store, id, &before);
    ids_set(&store->ids, id, status)->number++;
    store->unsynced++;
    return store->unsynced >= SYNC_ROWS || now() - store->synced > SYNC_SECONDS ? sync_rows(store, err) : 0;
}

int store_close(struct store *store, struct error *err)
{
    int rc = sync_rows(store, err);

    if (!rc && store->replaced)
        rc = settle(store, NULL, err);
    store_release(store);
    return rc;
}

void store_leave(struct store *store)
{
    close(store->fd);
    store->fd = -1;
}

void store_release(struct store *store)
{
    if (store->fd >= 0)
        close(store->fd);
    free(store->path);
    ids_release(&store->ids);
    *store = (struct store){.fd = -1};
}
