/* Rows of dialects go there and back: what a row writes on one side, it reads from there. All rows of all files of
 * platforms/dialects are tried, and those of a framework that is added here, in one file. */
#include "launch/dialect_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "files/data.h"
#include "launch/dialect.h"

enum { KEYS = 32, DRAWS = 4000 };
/* The values of one side. */
struct side { struct { const char *key, *value; } items[KEYS]; size_t count; };
struct both { struct arena *arena; const struct dialect_rows *rows; struct side from, to; };

static const char *find(const struct side *side, const char *key)
{
    for (size_t i = 0; i < side->count; i++)
        if (!strcmp(side->items[i].key, key))
            return side->items[i].value;
    return NULL;
}

static void set(struct side *side, const char *key, const char *value)
{
    assert_true(side->count < KEYS);
    side->items[side->count].key = key;
    side->items[side->count++].value = value;
}

static bool always(void *context, const struct dialect_row *row)
{
    (void)context;
    (void)row;
    return true;
}

static const char *read_from(void *context, const char *key)
{
    return find(&((struct both *)context)->from, key);
}

static const char *read_to(void *context, const char *key)
{
    return find(&((struct both *)context)->to, key);
}

static void write_to(void *context, const struct dialect_row *row, const char *key, const char *value)
{
    (void)row;
    set(&((struct both *)context)->to, key, value);
}

/* What a row does not say of the scenario is the word with which a condition compares it, or 8. */
static const char *path(void *context, const char *name)
{
    const struct both *both = context;
    const char *value = find(&both->from, name), *equal = arena_printf(both->arena, "%s == '", name);

    value = value ? value : find(&both->to, name);
    for (size_t i = 0; i < both->rows->count && !value; i++) {
        const struct expression *where = both->rows->items[i].where;
        const char *at = where ? strstr(expression_source(where)->text, equal) : NULL;

        value = at ? arena_strndup(both->arena, at + strlen(equal), strcspn(at + strlen(equal), "'")) : NULL;
    }
    return value ? value : "8";
}

static struct side through(struct arena *arena, const struct dialect_rows *rows, const char *part, bool emits,
                           const struct side *from, const struct side *to)
{
    struct both both = {arena, rows, *from, to ? *to : (struct side){.count = 0}};
    const struct dialect_ways ways = {emits, always, read_from, read_to, write_to, path, NULL, &both};

    dialect_rows_apply(arena, rows, part, &ways);
    return both.to;
}

static bool same(const struct side *a, const struct side *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (!find(b, a->items[i].key) || strcmp(find(b, a->items[i].key), a->items[i].value) != 0)
            return false;
    return a->count == b->count;
}

/* A scenario that a row may mean: its words, and numbers for its letters. */
static struct side draw(struct arena *arena, const struct dialect_row *row, uint64_t round)
{
    struct side side = {.count = 0};

    for (size_t i = 0; i < row->is.count; i++) {
        const struct dialect_term *term = &row->is.terms[i];
        const char *words = term->words, *text = term->count ? term->items[0].text : "";

        for (size_t k = 0; term->same && k < row->say.count; k++)
            words = row->say.terms[k].words ? row->say.terms[k].words : words;
        if (words) {
            for (uint64_t skip = random_bits(round, i) % 3; skip && strchr(words, ' '); skip--)
                words = strchr(words, ' ') + 1;
            text = arena_strndup(arena, words, strcspn(words, " "));
        } else if (term->items[0].value) {
            text = arena_printf(arena, "%d", (int)(1 + random_bits(round, i) % 12));
        }
        set(&side, term->key, text);
    }
    return side;
}

/* Whether a row came back. */
static bool goes_round(struct arena *arena, const struct dialect_rows *all, const struct dialect_row *row, const char *file)
{
    struct dialect_row one = *row;
    struct dialect_rows rows = *all;

    rows.items = &one;
    rows.count = 1;
    for (uint64_t round = 1; round <= DRAWS; round++) {
        struct side is = draw(arena, row, round), say = through(arena, &rows, row->part, true, &is, NULL), back;

        if (!say.count)
            continue;
        back = through(arena, &rows, row->part, false, &say, NULL);
        for (size_t i = 0; !back.count && i < is.count; i++) {               /* a key that an earlier row has said */
            const struct side known = {{{is.items[i].key, is.items[i].value}}, 1};

            back = through(arena, &rows, row->part, false, &say, &known);
            back.count = back.count == 1 ? 0 : back.count;
        }
        if (!same(&is, &back))
            fail_msg("%s: a row of %s comes back as another scenario, from %s", file, row->say.terms[0].key, row->is.terms[0].key);
        return true;
    }
    return false;
}

static void test_files(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    const char **names = data_names(&arena, "platforms/dialects", &err);
    int done = 0;

    (void)state;
    for (size_t n = 0; names && names[n]; n++) {
        const struct dialect *dialect = dialect_load(&arena, names[n], &err);

        assert_non_null(dialect);
        for (size_t i = 0; i < dialect->pairs.count; i++) {
            const struct dialect_row *row = &dialect->pairs.items[i];

            for (size_t k = 0; k < row->say.count; k++)
                if (!dialect_row(dialect, row->say.terms[k].key, false))
                    fail_msg("%s: a row says %s, which is no argument", names[n], row->say.terms[k].key);
            if (row->message && row->tells != TELLS_CANNOT && !(row->at && dialect_row(dialect, row->at, false)))
                fail_msg("%s: a message stands at no argument: %s", names[n], row->message);
            for (const char *at = row->unless; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
                if (!dialect_row(dialect, arena_strndup(&arena, at, strcspn(at, " ")), false))
                    fail_msg("%s: unless %s, which is no argument", names[n], row->unless);
            if (row->importing && row->emitting && !goes_round(&arena, &dialect->pairs, row, names[n]))
                fail_msg("%s: no scenario is written by the row of %s and %s", names[n], row->say.terms[0].key,
                         row->is.terms[0].key);
            done += row->importing && row->emitting;
        }
    }
    print_message("%d rows went there and back\n", done);
    assert_true(done >= 50);
    arena_release(&arena);
}

/* Ten arguments, in one file: plain ones, words, a switch, two keys of one argument, two arguments of one key, a quotient. */
static const char framework[] =
    "title: Tenfold\n"
    "source: this test\n"
    "dashes: '--'\n"
    "arguments:\n"
    "  depth: {kind: int, is: model.transformer.layers}\n"
    "  width: {kind: int, is: model.transformer.hidden}\n"
    "  norm: {kind: word, is: model.transformer.norm, words: {ln: layernorm, rms: rmsnorm}}\n"
    "  unbiased: {kind: flag, is: model.transformer.bias, gives: false}\n"
    "  heads: {kind: word}\n"
    "  tp: {kind: int, is: strategy.tensor}\n"
    "  shard: {kind: flag}\n"
    "  shard-level: {kind: word}\n"
    "  copies: {kind: int}\n"
    "  window: {kind: word}\n"
    "rows:\n"
    "  all:\n"
    "    - {say: {heads: 'H,G'}, is: {model.transformer.heads: H, model.transformer.kv_heads: G}}\n"
    "    - {say: {heads: H}, is: {model.transformer.heads: H}}\n"
    "    - {say: {shard: true, shard-level: grads}, is: {strategy.zero: 2}}\n"
    "    - {say: {shard: true, shard-level: [all, everything]}, is: {strategy.zero: 3}}\n"
    "    - {say: {copies: I}, is: {strategy.shard: 32 / I}, where: strategy.zero > 0 and I > 1}\n"
    "    - {say: {window: W}, is: {model.transformer.window: W + 1}, where: W > 0}\n";

static void check_says(struct arena *arena, const struct dialect *dialect, const struct side *is, const struct side *wanted)
{
    struct side plain = through(arena, &dialect->pairs, "plain", true, is, NULL);
    struct side said = through(arena, &dialect->pairs, "all", true, is, NULL),
                back;

    for (size_t i = 0; i < plain.count; i++)
        set(&said, plain.items[i].key, plain.items[i].value);
    for (size_t i = 0; i < said.count; i++)
        if (!find(wanted, said.items[i].key) || strcmp(find(wanted, said.items[i].key), said.items[i].value) != 0)
            fail_msg("--%s %s is said", said.items[i].key, said.items[i].value);
    assert_int_equal(said.count, wanted->count);
    back = through(arena, &dialect->pairs, "all", false, &said, NULL);
    plain = through(arena, &dialect->pairs, "plain", false, &said, NULL);
    for (size_t i = 0; i < plain.count; i++)
        set(&back, plain.items[i].key, plain.items[i].value);
    assert_true(same(is, &back));
}

static void test_framework(void **state)
{
    char file[] = "/tmp/dtsim-dialect-XXXXXX.yaml";
    struct arena arena = {0};
    struct error err = {0};
    const struct dialect *dialect;
    int there = mkstemps(file, 5);
    const struct side wide = {{{"model.transformer.layers", "24"}, {"model.transformer.hidden", "1024"},
                               {"model.transformer.norm", "rmsnorm"}, {"model.transformer.bias", "false"},
                               {"model.transformer.heads", "16"}, {"model.transformer.kv_heads", "4"}, {"strategy.tensor", "2"},
                               {"strategy.zero", "3"}, {"strategy.shard", "8"}, {"model.transformer.window", "128"}}, 10};
    const struct side said = {{{"depth", "24"}, {"width", "1024"}, {"norm", "rms"}, {"unbiased", "true"}, {"heads", "16,4"},
                               {"tp", "2"}, {"shard", "true"}, {"shard-level", "all"}, {"copies", "4"}, {"window", "127"}}, 10};
    const struct side odd = {{{"model.transformer.heads", "16"}, {"strategy.zero", "2"}, {"strategy.shard", "7"}}, 3};
    struct side text;

    (void)state;
    assert_true(there >= 0 && write(there, framework, strlen(framework)) == (ssize_t)strlen(framework) && close(there) == 0);
    dialect = dialect_load(&arena, file, &err);
    if (!dialect)
        fail_msg("%s", err.messages[0].text);
    check_says(&arena, dialect, &wide, &said);
    text = through(&arena, &dialect->pairs, "all", true, &odd, NULL);              /* 7 does not divide 32: nobody can say it */
    assert_null(find(&text, "copies"));
    assert_string_equal(find(&text, "heads"), "16");
    assert_string_equal(find(&text, "shard-level"), "grads");
    unlink(file);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_framework)};

    return cmocka_run_group_tests_name("dialect_rows", tests, NULL, NULL);
}
