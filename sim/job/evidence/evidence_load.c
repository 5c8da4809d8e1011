/* The rows that came with the program. */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cache.h"
#include "evidence/evidence_internal.h"
#include "files/data.h"
#include "files/made.h"

/* The files of the rows; NULL: there is none. */
struct sources { const char *errors, *peaks; };

static int find_sources(struct arena *arena, struct sources *sources, struct error *err)
{
    return data_path(arena, "scenarios/paper", "errors.tsv", &sources->errors, err) ||
           data_path(arena, "scenarios/paper", "memory.tsv", &sources->peaks, err) ? -1 : 0;
}

static int add_file(struct digest *digest, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = fd < 0 ? -1 : digest_add_file(digest, fd);

    if (fd >= 0)
        close(fd);
    digest_add(digest, "", 1);
    return rc;
}

/* By what they are found that are made of the files; -1: these cannot be read. */
static int key_of(const struct sources *sources, char key[DIGEST_HEX])
{
    struct digest digest;
    int rc;

    made_key_begin(&digest, "evidence");
    rc = add_file(&digest, sources->errors) || (sources->peaks && add_file(&digest, sources->peaks)) ? -1 : 0;
    digest_end(&digest, key);
    return rc;
}

static int read_sources(struct arena *arena, const struct sources *sources, struct evidence *evidence, struct error *err)
{
    return evidence_read(arena, sources->errors, evidence, err) ||
           (sources->peaks && evidence_read_peaks(arena, sources->peaks, evidence, err)) ? -1 : 0;
}

int evidence_load(struct arena *arena, const struct evidence **evidence, struct error *err)
{
    static const char cached[] = "errors.tsv";
    const struct evidence *known = arena->cache ? cache_find(arena->cache, CACHE_EVIDENCE, cached, sizeof cached) : NULL;
    struct arena own = {0};
    struct sources sources = {0};
    struct evidence *read;
    char key[DIGEST_HEX];

    *evidence = known;
    if (known)
        return 0;
    if (find_sources(arena, &sources, err))
        return -1;
    if (!sources.errors)
        return 0;
    *evidence = key_of(&sources, key) ? NULL : made_find(&own, key, NULL);
    if (!*evidence) {
        *evidence = read = ARENA_ARRAY(&own, struct evidence, 1);
        if (read_sources(&own, &sources, read, err)) {
            arena_join(arena, &own);
            return -1;
        }
    }
    if (!arena->cache || !cache_put(arena->cache, CACHE_EVIDENCE, cached, sizeof cached, *evidence, &own))
        arena_join(arena, &own);
    return 0;
}

/* Members one by one: what is between them would be other bytes in each build. */
static void put_row(struct made_image *image, const struct evidence_row *row, size_t place)
{
    size_t name = place + offsetof(struct evidence_row, name);
    struct evidence_row *own = (struct evidence_row *)(void *)(image->bytes.items + place);

    own->name.plain = row->name.plain;
    own->first = row->first;
    own->error = row->error;
    own->kind = row->kind;
    own->today = row->today;
    memcpy(own->sizes, row->sizes, sizeof own->sizes);
    own->exposed = row->exposed;
    own->measured = row->measured;
    own->weight = row->weight;
    made_text(image, name + offsetof(struct evidence_name, table), row->name.table);
    made_text(image, name + offsetof(struct evidence_name, row), row->name.row);
    made_text(image, name + offsetof(struct evidence_name, group), row->name.group);
    made_text(image, place + offsetof(struct evidence_row, model), row->model);
}

static void put_ratio(struct made_image *image, const struct evidence_ratio *ratio, size_t place)
{
    struct evidence_ratio *own = (struct evidence_ratio *)(void *)(image->bytes.items + place);

    own->error = ratio->error;
    own->weight = ratio->weight;
    own->kind = ratio->kind;
    own->first = ratio->first;
    made_text(image, place + offsetof(struct evidence_ratio, table), ratio->table);
}

static void put_peak(struct made_image *image, const struct evidence_peak *peak, size_t place)
{
    struct evidence_peak *own = (struct evidence_peak *)(void *)(image->bytes.items + place);

    own->kind = peak->kind;
    own->error = peak->error;
    own->weight = peak->weight;
    made_text(image, place + offsetof(struct evidence_peak, table), peak->table);
    made_point(image, place + offsetof(struct evidence_peak, likeness),
               made_put(image, peak->likeness, sizeof *peak->likeness));
}

static void put_runs(struct made_image *image, const struct evidence_runs *runs, size_t at)
{
    size_t rows = made_put(image, NULL, runs->rows.count * sizeof *runs->rows.items);
    size_t ratios = made_put(image, NULL, runs->ratios.count * sizeof *runs->ratios.items);

    for (size_t i = 0; i < runs->rows.count; i++)
        put_row(image, &runs->rows.items[i], rows + i * sizeof *runs->rows.items);
    for (size_t i = 0; i < runs->ratios.count; i++)
        put_ratio(image, &runs->ratios.items[i], ratios + i * sizeof *runs->ratios.items);
    if (runs->rows.count)
        made_point(image, at + offsetof(struct evidence_runs, rows.items), rows);
    if (runs->ratios.count)
        made_point(image, at + offsetof(struct evidence_runs, ratios.items), ratios);
}

static void put_peaks(struct made_image *image, const struct evidence *evidence)
{
    size_t peaks = made_put(image, NULL, evidence->peaks.count * sizeof *evidence->peaks.items);

    for (size_t i = 0; i < evidence->peaks.count; i++)
        put_peak(image, &evidence->peaks.items[i], peaks + i * sizeof *evidence->peaks.items);
    if (evidence->peaks.count)
        made_point(image, offsetof(struct evidence, peaks.items), peaks);
}

int evidence_make(struct made *made, struct error *err)
{
    struct arena arena = {0};
    struct sources sources = {0};
    struct evidence evidence = {0};
    struct made_image image = {0};
    char key[DIGEST_HEX];
    int rc = find_sources(&arena, &sources, err);

    if (!rc && sources.errors && !(rc = read_sources(&arena, &sources, &evidence, err)) && !key_of(&sources, key)) {
        made_put(&image, &evidence, sizeof evidence);
        put_runs(&image, &evidence.runs, offsetof(struct evidence, runs));
        put_runs(&image, &evidence.sheets, offsetof(struct evidence, sheets));
        put_peaks(&image, &evidence);
        if (evidence.kinds.count)
            made_point(&image, offsetof(struct evidence, kinds.items),
                       made_put(&image, evidence.kinds.items, evidence.kinds.count * sizeof *evidence.kinds.items));
        made_add(made, key, &image);
    }
    arena_release(&arena);
    return rc;
}
