/* launch_words: the words of a list of arguments, or of one command, as a shell would divide them. Nothing is expanded. */
#include "launch/launch.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

struct reading { const char *at, *end; struct loc loc; };

static void step(struct reading *r)
{
    r->loc.column++;
    if (*r->at == '\n') {
        r->loc.line++;
        r->loc.column = 1;
    }
    r->at++;
}

/* Blanks, comments, and lines that go on. */
static void skip(struct reading *r)
{
    while (r->at < r->end) {
        if (*r->at == '#')
            while (r->at < r->end && *r->at != '\n')
                step(r);
        else if (*r->at == '\\' && r->at + 1 < r->end && (r->at[1] == '\n' || r->at[1] == '\r'))
            step(r);
        else if (!isspace((unsigned char)*r->at))
            return;
        else
            step(r);
    }
}

/* One word; *quote: where a quote was opened that is never closed. */
static const char *word(struct arena *arena, struct reading *r, struct loc *quote)
{
    char *text = arena_alloc(arena, (size_t)(r->end - r->at) + 1), *to = text, open = 0;

    for (; r->at < r->end && (open || !isspace((unsigned char)*r->at)); step(r)) {
        char c = *r->at;

        if (c == '\\' && open != '\'' && r->at + 1 < r->end && (!open || strchr("\"\\$`\n", r->at[1]))) {
            step(r);
            if (*r->at != '\n')
                *to++ = *r->at;
        } else if (open ? c == open : c == '"' || c == '\'') {
            *quote = open ? (struct loc){0} : r->loc;
            open = open ? 0 : c;
        } else {
            *to++ = c;
        }
    }
    *to = '\0';
    return text;
}

int launch_words_read(struct arena *arena, const char *file, const char *text, size_t length, struct launch_words *words,
                      struct error *err)
{
    struct reading r = {text + text_mark(text, length), text + length, {file, 1, 1}};
    struct loc quote = {0};

    for (skip(&r); r.at < r.end; skip(&r)) {
        struct launch_word next = {.loc = r.loc};

        next.loc.column += *r.at == '"' || *r.at == '\'';
        next.text = word(arena, &r, &quote);
        *GROW(words) = next;
    }
    return quote.line ? error_add(err, EXIT_INPUT, quote, "the quote is never closed") : 0;
}
