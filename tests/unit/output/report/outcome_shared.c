/* shared: a file is read once, and once more when it has changed; with a cache everything is as without one. A scenario
 * may differ in a few values from one that was read: it is the same whether only these values are read or all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <dirent.h>
#include <unistd.h>

#include "base/cache.h"
#include "report/outcome.h"
#include "text.h"

struct shape { const struct node *node; int width; const char *name; };
static const struct field shape_fields[] = {
    {KEY(shape, width), .kind = FIELD_INT, .min = 1, .max = 9, .required = true},
    {KEY(shape, name), .kind = FIELD_STRING},
};
static const struct table shape_table = {TABLE("shape", "", shape, shape_fields)};

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_changed(void **state)
{
    char path[] = "/tmp/dtsim-shared-XXXXXX";
    struct cache cache;
    struct arena arena = {.cache = &cache};
    const struct node *first, *again;
    struct shape shape, same;
    struct error err = {0};

    (void)state;
    close(mkstemp(path));
    cache_init(&cache, CACHE_BYTES);
    write_text(path, "{width: 3, name: one}");
    assert_int_equal(conf_shared(&arena, path, &first, &err), 0);
    assert_int_equal(conf_shared(&arena, path, &again, &err), 0);
    assert_ptr_equal(first, again);
    assert_int_equal(field_load(&arena, &shape_table, path, &shape, &err), 0);
    arena_release(&arena);
    assert_int_equal(field_load(&arena, &shape_table, path, &same, &err), 0);
    assert_ptr_equal(shape.name, same.name);             /* it outlives the arena that it was asked for with */
    assert_string_equal(same.name, "one");
    write_text(path, "{width: 4, name: another one}");
    assert_int_equal(field_load(&arena, &shape_table, path, &shape, &err), 0);
    assert_int_equal(shape.width, 4);
    assert_string_equal(same.name, "one");
    arena_release(&arena);
    cache_release(&cache);
    unlink(path);
}

/* Mistakes are told each time, with their places. */
static void test_wrong(void **state)
{
    static const char *const wrong[] = {"{width: 10}", "{name: [", "{width: 1, hight: 2}"};
    char path[] = "/tmp/dtsim-shared-XXXXXX";
    struct cache cache;
    struct shape shape;

    (void)state;
    close(mkstemp(path));
    cache_init(&cache, CACHE_BYTES);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char *messages[3];

        write_text(path, wrong[i]);
        for (int n = 0; n < 3; n++) {
            struct arena arena = {.cache = n ? &cache : NULL};
            struct error err = {0};

            assert_int_equal(field_load(&arena, &shape_table, path, &shape, &err), -1);
            messages[n] = messages_of(&err);
            error_release(&err);
            arena_release(&arena);
        }
        assert_string_equal(messages[0], messages[1]);
        assert_string_equal(messages[0], messages[2]);
        for (int n = 0; n < 3; n++)
            free(messages[n]);
    }
    cache_release(&cache);
    unlink(path);
}

/* Without room it reads as if there were no cache. */
static void test_full(void **state)
{
    char path[] = "/tmp/dtsim-shared-XXXXXX";
    struct cache cache;
    struct arena arena = {.cache = &cache};
    struct error err = {0};
    struct shape shape;

    (void)state;
    close(mkstemp(path));
    cache_init(&cache, 10);
    write_text(path, "{width: 3, name: one}");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(field_load(&arena, &shape_table, path, &shape, &err), 0);
        assert_string_equal(shape.name, "one");
    }
    assert_int_equal(cache.bytes, 0);
    arena_release(&arena);
    cache_release(&cache);
    unlink(path);
}

/* The row of a scenario, read with this cache or with none. */
static char *row_of(const char *path, struct cache *cache)
{
    struct arena arena = {0};
    struct scenario scenario = {0};
    struct error err = {0};
    json_t *row = json_object();
    struct node *root;
    char *text;

    assert_int_equal(conf_load(&arena, path, &root, &err), 0);
    arena.cache = cache;
    if (scenario_read(&arena, root, (const char *[]){"simulation.engine=ideal"}, 1, "x", &scenario, &err))
        outcome_refused(row, &err);
    else
        assert_int_equal(outcome_simulate(row, &scenario, NULL, &err), 0);
    text = json_dumps(row, JSON_COMPACT);
    json_decref(row);
    error_release(&err);
    scenario_release(&scenario);
    return text;
}

static int is_yaml(const struct dirent *entry)
{
    return strstr(entry->d_name, ".yaml") != NULL;
}

/* All scenarios of the tour, twice with one cache: whoever changed what is shared would change what comes next. */
static void test_same(void **state)
{
    struct dirent **entries;
    int count = scandir(DTSIM_SOURCE_DIR "/scenarios/tour", &entries, is_yaml, alphasort);
    struct cache cache;

    (void)state;
    assert_true(count > 10);
    cache_init(&cache, CACHE_BYTES);
    for (int n = 0; n < 2 * count; n++) {
        char path[512], *with, *without;

        snprintf(path, sizeof path, "%s/scenarios/tour/%s", DTSIM_SOURCE_DIR, entries[n % count]->d_name);
        with = row_of(path, &cache);
        without = row_of(path, NULL);
        assert_string_equal(with, without);
        free(with);
        free(without);
    }
    assert_true(cache.found[CACHE_RECORD] > cache.missed[CACHE_RECORD]);
    cache_release(&cache);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
}

/* The resolved scenario, or the messages that refuse it; with `common` only what differs from the tree is read. */
static char *resolved_of(const struct node *base, const struct scenario_common *common, const char *const *sets,
                         struct cache *cache)
{
    struct arena arena = {.cache = cache};
    struct scenario scenario = {0};
    struct error err = {0};
    struct node *root = ARENA_ARRAY(&arena, struct node, 1);
    char *text;
    int rc = 0;

    *root = *base;
    for (int i = 0; i < 2 && sets[i] && !rc; i++)
        rc = conf_set(&arena, root, sets[i], &err);
    if (!rc)
        rc = common ? scenario_read_like(&arena, root, common, "x", &scenario, &err) :
                      scenario_read(&arena, root, NULL, 0, "x", &scenario, &err);
    text = rc ? messages_of(&err) : xstrdup(node_flow(&scenario.arena, scenario_dump(&scenario.arena, &scenario)));
    error_release(&err);
    scenario_release(&scenario);
    arena_release(&arena);
    return text;
}

/* Values of one key, of several sections, options of schedules, and mistakes of all kinds. */
static void test_like(void **state)
{
    static const char *const sets[][2] = {
        {NULL}, {"strategy.pipeline=2", "strategy.schedule=interleaved"}, {"strategy.schedule=gpipe"},
        {"strategy.schedule={name: varuna, recomputation: early}"}, {"strategy.micro_batch_group=2"},
        {"memory.recompute=selective", "strategy.zero=1"}, {"memory.recompute={mode: full, blocks: 2}"},
        {"memory.recompute.every=2"}, {"batch.micro=2", "batch.global=64"}, {"batch.micro=two"}, {"batch.mikro=2"},
        {"batch.micro=x", "memory.recompute=none of these"}, {"memory.lora={rank: 8}"}, {"memory.offload=[weights]"},
        {"strategy.split=auto"}, {"strategy.placement=[data, tensor, pipeline]"}, {"cluster.nodes=4"},
        {"simulation.stragglers=[{gpu: 0, slower: 2}]"}, {"software=deepspeed"}, {"software.flash_attention=false"},
        {"strategy.data_parallel=ddp", "strategy.context=2"}, {"price=2 $/h"}, {"nothing=1"}, {"strategy=3"},
        {"costs.gpu=roofline", "model.sequence=128"},
    };
    struct dirent **entries;
    int count = scandir(DTSIM_SOURCE_DIR "/scenarios/tour", &entries, is_yaml, alphasort), same = 0;

    (void)state;
    for (int n = 0; n < count; n++) {
        char path[512];
        struct arena arena = {0};
        struct error err = {0};
        struct cache cache, other;
        struct scenario_common common;
        struct node *root;

        cache_init(&cache, CACHE_BYTES);
        cache_init(&other, CACHE_BYTES);
        cache.files_stay = true;
        snprintf(path, sizeof path, "%s/scenarios/tour/%s", DTSIM_SOURCE_DIR, entries[n]->d_name);
        assert_int_equal(conf_load(&arena, path, &root, &err), 0);
        scenario_common_make(&common, NULL, root);
        assert_non_null(common.parsed);
        for (size_t i = 0; i < 2 * COUNT(sets); i++) {       /* twice: whatever is shared must not have changed */
            char *plain = resolved_of(root, NULL, sets[i % COUNT(sets)], &other);
            char *like = resolved_of(root, &common, sets[i % COUNT(sets)], &cache);

            assert_string_equal(plain, like);
            same += plain[0] == '{';
            free(plain);
            free(like);
        }
        arena_release(&common.arena);
        cache_release(&cache);
        cache_release(&other);
        arena_release(&arena);
        free(entries[n]);
    }
    free(entries);
    assert_true(same > 10 * count);          /* and not all of them are mistakes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed), cmocka_unit_test(test_wrong), cmocka_unit_test(test_full),
        cmocka_unit_test(test_same), cmocka_unit_test(test_like),
    };

    return cmocka_run_group_tests_name("shared", tests, NULL, NULL);
}
