/* Words of an argument, there and here. */
#include "launch/dialect.h"

#include <strings.h>

#include "base/base.h"

const char *dialect_word(struct arena *arena, const struct argument_row *row, const char *word, bool theirs)
{
    for (const char *at = row->words; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        const char *left = arena_strndup(arena, at, strcspn(at, " ")), *right = strchr(left, '=');

        left = arena_strndup(arena, left, strcspn(left, "="));
        if (right && !strcasecmp(theirs ? right + 1 : left, word))
            return theirs ? left : right + 1;
    }
    return word;
}

const char *dialect_words(struct arena *arena, const struct argument_row *row)
{
    const char *list = "";

    for (const char *at = row->words; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        list = arena_printf(arena, "%s%s%.*s", list, *list ? ", " : "", (int)strcspn(at, "="), at);
    return list;
}

bool dialect_knows(const struct argument_row *row, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = row->words; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (!strncmp(at, word, length) && at[length] == '=')
            return true;
    return false;
}
