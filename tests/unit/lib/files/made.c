/* What is made is found as it was put, wherever it stands; in a file that is cut short nothing is found of what it lost. */
#include "files/made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/random.h"

enum { MOST = 12 };

/* A tree with a number, a text and a name at each place. */
struct thing {
    const char *text, *name;
    double number;
    struct thing **items;
    size_t count;
};

struct random { uint64_t seed, index; };

static size_t below(struct random *random, size_t most)
{
    return (size_t)(random_bits(random->seed, random->index++) % most);
}

static struct thing *make(struct arena *arena, struct random *random, int depth)
{
    struct thing *thing = ARENA_ARRAY(arena, struct thing, 1);
    static const char *const texts[] = {NULL, "", "a", "seven b", "eight by", "a text of more than a word"};

    thing->text = texts[below(random, COUNT(texts))];
    thing->number = (double)below(random, 1000) / 7;
    thing->count = depth ? below(random, MOST) : 0;
    thing->items = thing->count ? ARENA_ARRAY(arena, struct thing *, thing->count) : NULL;
    for (size_t i = 0; i < thing->count; i++)
        thing->items[i] = make(arena, random, depth - 1);
    return thing;
}

static size_t put(struct made_image *image, const struct thing *thing)
{
    struct thing own = {NULL, NULL, thing->number, NULL, thing->count};
    size_t at = made_put(image, &own, sizeof own), items;

    made_text(image, at + offsetof(struct thing, text), thing->text);
    made_name(image, at + offsetof(struct thing, name));
    if (!thing->count)
        return at;
    items = made_point(image, at + offsetof(struct thing, items), made_put(image, NULL, thing->count * sizeof *thing->items));
    for (size_t i = 0; i < thing->count; i++)
        made_point(image, items + i * sizeof *thing->items, put(image, thing->items[i]));
    return at;
}

static void check(const struct thing *found, const struct thing *thing, const char *name)
{
    assert_ptr_equal(found->name, name);
    assert_true(found->number == thing->number);
    assert_int_equal(found->count, thing->count);
    assert_int_equal(!found->text, !thing->text);
    if (thing->text)
        assert_string_equal(found->text, thing->text);
    for (size_t i = 0; i < thing->count; i++)
        check(found->items[i], thing->items[i], name);
}

static const char *key_of(unsigned number, char key[DIGEST_HEX])
{
    struct digest digest;

    made_key_begin(&digest, "thing");
    digest_add(&digest, &number, sizeof number);
    return digest_end(&digest, key);
}

/* A file of things, each of its seed. */
static void write_things(struct arena *arena, const char *path, unsigned count)
{
    struct made made = {0};

    for (unsigned i = 0; i < count; i++) {
        struct made_image image = {0};
        struct random random = {i, 0};
        char key[DIGEST_HEX];

        put(&image, make(arena, &random, 3));
        made_add(&made, key_of(i, key), &image);
    }
    assert_int_equal(made_write(&made, path), 0);
}

static void found_as_put(void **state)
{
    enum { THINGS = 40 };
    static const char path[] = "made_test.made", name[] = "its name";
    struct arena arena = {0};
    char key[DIGEST_HEX];

    (void)state;
    write_things(&arena, path, THINGS);
    for (unsigned i = 0; i < THINGS; i++) {
        struct random random = {i, 0};

        check(made_find_in(&arena, path, key_of(i, key), name), make(&arena, &random, 3), name);
    }
    assert_null(made_find_in(&arena, path, key_of(THINGS, key), name));
    assert_null(made_find_in(&arena, "made_test.none", key_of(0, key), name));
    assert_int_equal(unlink(path), 0);
    arena_release(&arena);
}

/* Nothing of a file that is cut short stands outside of it. */
static void cut_short(void **state)
{
    static const char path[] = "made_test.cut";
    struct arena arena = {0};
    struct stat whole;
    char key[DIGEST_HEX];
    bool had = true;

    (void)state;
    write_things(&arena, path, 3);
    assert_int_equal(stat(path, &whole), 0);
    for (off_t size = whole.st_size; size >= 0; size -= 1 + size / 50) {
        bool has = true;

        assert_int_equal(truncate(path, size), 0);
        for (unsigned i = 0; i < 3; i++)
            has &= made_find_in(&arena, path, key_of(i, key), "name") != NULL;
        assert_int_equal(has, size == whole.st_size);
        had = has;
    }
    assert_false(had);
    assert_int_equal(unlink(path), 0);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(found_as_put), cmocka_unit_test(cut_short)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
