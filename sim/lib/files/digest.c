#include "files/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/base.h"
#include "files/json.h"
#include "files/look.h"

void digest_init(struct digest *digest)
{
    digest->state = XXH3_createState();
    if (!digest->state)
        memory_ran_out();
    XXH3_128bits_reset(digest->state);
}

void digest_add(struct digest *digest, const void *data, size_t size)
{
    XXH3_128bits_update(digest->state, data, size);
}

int digest_add_file(struct digest *digest, int fd)
{
    static const size_t step = 1 << 16;
    char *bytes = xrealloc(NULL, step, 1);
    ssize_t count;

    for (off_t at = 0; (count = pread(fd, bytes, step, at)) > 0; at += count)
        digest_add(digest, bytes, (size_t)count);
    free(bytes);
    return count < 0 ? -1 : 0;
}

char *digest_end(struct digest *digest, char hex[DIGEST_HEX])
{
    XXH128_hash_t sum = XXH3_128bits_digest(digest->state);

    XXH3_freeState(digest->state);
    digest->state = NULL;
    snprintf(hex, DIGEST_HEX, "%016llx%016llx", (unsigned long long)sum.high64, (unsigned long long)sum.low64);
    return hex;
}

json_t *digests_id(const json_t *result)
{
    enum { RUN_ID = 16 };
    char *text = json_text(result), hex[DIGEST_HEX];
    struct digest digest;

    digest_init(&digest);
    digest_add(&digest, text, strlen(text));
    digest_end(&digest, hex);
    free(text);
    return json_stringn(hex, RUN_ID);
}

/* Refuses a table that has another digest than result.json says, or none, unless another build wrote the result: that
 * may have had other tables. */
static int check_table(const char *dir, const char *name, const struct digests_kind *kind, const json_t *result,
                       bool other_build, struct error *err)
{
    const char *digest = json_string_value(json_object_get(json_object_get(result, "tables_xxh128"), name));
    char path[4400], hex[DIGEST_HEX];
    struct loc loc = {.file = path};
    struct digest sum;
    struct stat status;
    int fd, rc;

    if (!digest && other_build)
        return 0;
    if (!digest) {
        snprintf(path, sizeof path, "%s/result.json", dir);
        return error_add(err, EXIT_INPUT, loc, "it has no digest of %s.tsv under 'tables_xxh128': not the whole of a "
                         "result; repeat 'dtsim %s -o'", name, kind->command);
    }
    snprintf(path, sizeof path, "%s/%s.tsv", dir, name);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_system(err, loc, "cannot open");
    if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode)) {
        close(fd);
        return error_add(err, EXIT_INPUT, loc, "this is no regular file; expected a table of 'dtsim %s -o'",
                         kind->command);
    }
    digest_init(&sum);
    rc = digest_add_file(&sum, fd);
    digest_end(&sum, hex);
    if (rc)
        rc = error_system(err, loc, "cannot read");
    close(fd);
    if (rc || !strcmp(hex, digest))
        return rc;
    return error_add(err, EXIT_INPUT, loc, "the file is not of the %s that result.json is of: its digest differs; "
                     "repeat 'dtsim %s -o'", kind->noun, kind->command);
}

int digests_check(const char *dir, const struct digests_kind *kind, struct error *err)
{
    char path[4400];
    json_t *result;
    enum look there;
    bool other_build;
    int rc = 0;

    if (access(dir, R_OK))
        return error_system(err, (struct loc){.file = dir}, "cannot open");
    snprintf(path, sizeof path, "%s/result.json", dir);
    if (look_at(path, &there, err))
        return -1;
    if (there == LOOK_NOTHING)
        return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "cannot open: %s; expected the folder that a "
                         "'dtsim %s -o' has finished", strerror(ENOENT), kind->command);
    result = json_of_file(path, "the result of a run", err);
    if (!result)
        return -1;
    other_build = is_other_build(json_string_value(json_object_get(result, "build")));
    if (!json_is_object(result))
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = path}, "expected the result of a %s, a JSON object",
                       kind->noun);
    else if (kind->check)
        rc = kind->check(result, (struct loc){.file = path}, err);
    for (size_t i = 0; !rc && kind->tables[i]; i++)
        rc = check_table(dir, kind->tables[i], kind, result, other_build, err) ? -1 : rc;
    json_decref(result);
    return rc ? rc : other_build;
}
