/* launch_worlds: what a launch's words become where something is taken that nobody knows: a variable that is not set, what a
 * program prints, whether it succeeds. A word that changes is not known. */
#include "launch/launch_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

/* An option and the words up to the next one. */
struct segment { const char *name; const struct launch_word *words; size_t count; };
struct segments { struct segment *items; size_t count, capacity; };

static void divide(struct arena *arena, const struct launch_words *words, struct segments *segments)
{
    *GROW(segments) = (struct segment){"", words->items, 0};
    for (size_t i = 0; i < words->count; i++) {
        const char *text = words->items[i].text, *name = text + strspn(text, "-");

        if (name > text && name - text <= 2 && isalpha((unsigned char)*name))
            *GROW(segments) = (struct segment){arena_strndup(arena, text, strcspn(text, "=")), words->items + i, 0};
        segments->items[segments->count - 1].count++;
    }
}

/* The words without what stands in marks, and without those that are empty then, each with a blank behind it. */
static const char *plain(struct arena *arena, const struct segment *segment)
{
    const char *all = "";

    for (size_t i = 0; i < segment->count; i++) {
        char *text = arena_strdup(arena, segment->words[i].text), *begin, *end;

        while ((begin = strchr(text, MARK_BEGIN)) && (end = strchr(begin, MARK_END)))
            memmove(begin, end + 1, strlen(end + 1) + 1);
        if (*text)
            all = arena_printf(arena, "%s%s ", all, text);
    }
    return all;
}

static bool has_mark(const struct segment *segment)
{
    for (size_t i = 0; i < segment->count; i++)
        if (strchr(segment->words[i].text, MARK_BEGIN))
            return true;
    return false;
}

static bool same(const struct segment *a, const struct segment *b)
{
    bool equal = a->count == b->count && !strcmp(a->name, b->name);

    for (size_t i = 0; equal && i < a->count; i++)
        equal = !strcmp(a->words[i].text, b->words[i].text);
    return equal;
}

/* The nth option of that name; NULL: there is none. */
static const struct segment *find(const struct segments *segments, const char *name, size_t n)
{
    for (size_t i = 0; i < segments->count; i++)
        if (!strcmp(segments->items[i].name, name) && !n--)
            return &segments->items[i];
    return NULL;
}

/* The words with the marks of those that another launch has in the place of nothing, by their options. */
static struct launch_words merge(struct arena *arena, const struct segments *own, const struct segments *other)
{
    struct launch_words merged = {0};

    for (size_t i = 0; i < own->count; i++) {
        const struct segment *taken = &own->items[i], *marked;
        size_t n = 0;

        for (size_t k = 0; k < i; k++)
            n += !strcmp(own->items[k].name, taken->name);
        marked = find(other, taken->name, n);
        if (marked && has_mark(marked) && !strcmp(plain(arena, taken), plain(arena, marked)))
            taken = marked;
        for (size_t k = 0; k < taken->count; k++)
            *GROW(&merged) = taken->words[k];
    }
    return merged;
}

static bool take(struct arena *arena, struct launch_words *words, const struct launch_words *marked, bool anyway)
{
    struct segments own = {0}, other = {0};
    bool alike;

    divide(arena, words, &own);
    divide(arena, marked, &other);
    alike = own.count == other.count;
    for (size_t i = 0; alike && i < own.count; i++)
        alike = !strcmp(own.items[i].name, other.items[i].name);
    if (alike || anyway) {
        struct launch_words merged = merge(arena, &own, &other);

        free(words->items);
        *words = merged;
    }
    free(own.items);
    free(other.items);
    return alike;
}

bool launch_take_marks(struct arena *arena, struct launch_words *words, const struct launch_words *marked)
{
    return take(arena, words, marked, false);
}

void launch_merge_marks(struct arena *arena, struct launch_words *words, const struct launch_words *marked)
{
    take(arena, words, marked, true);
}

/* back: `b` is the launch, whose marks are said already. */
static void compare(const struct segments *a, const struct segments *b, bool back, struct launch *launch, struct loc loc,
                    const char *why)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct segment *segment = &a->items[i], *other;
        size_t n = 0;

        for (size_t k = 0; k < i; k++)
            n += !strcmp(a->items[k].name, segment->name);
        other = find(b, segment->name, n);
        if (*segment->name && !has_mark(segment) && (!other || (!(back && has_mark(other)) && !same(segment, other))))
            *GROW(&launch->doubts) = (struct launch_doubt){segment->name + strspn(segment->name, "-"), why, loc};
    }
}

void launch_compare(struct arena *arena, const struct launch_words *words, const struct launch_words *other, struct loc loc,
                    const char *why, struct launch *launch)
{
    struct segments a = {0}, b = {0};

    divide(arena, words, &a);
    divide(arena, other, &b);
    compare(&a, &b, false, launch, loc, why);
    compare(&b, &a, true, launch, loc, why);
    free(a.items);
    free(b.items);
}
