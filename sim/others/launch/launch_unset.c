/* launch_unset: variables that nobody sets, and what they make. The script is run again with a mark for each. */
#include "launch/launch_search.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/field.h"

/* Variables that bash itself or the reader sets. */
static bool is_own(const char *name)
{
    static const char *const begins[] = {"BASH", "LC_", "LD_", "SHELL", "__"};

    for (size_t i = 0; i < COUNT(begins); i++)
        if (!strncmp(name, begins[i], strlen(begins[i])))
            return true;
    return word_in("PATH IFS LINENO RANDOM SECONDS UID EUID PPID PWD OLDPWD HOSTNAME OSTYPE HOSTTYPE MACHTYPE SHLVL OPTIND OPTARG "
                   "REPLY PIPESTATUS FUNCNAME TMPDIR LANG LANGUAGE TZ PS4 EPOCHREALTIME EPOCHSECONDS SRANDOM GROUPS DIRSTACK "
                   "POSIXLY_CORRECT TERM", name);
}

/* The length of a name that the text uses at a place: $NAME, ${NAME, or NAME in arithmetic; 0: none. *name: where it begins. */
static size_t name_at(const char *text, const char *at, const char *end, bool arithmetic, const char **name)
{
    size_t length = 0;

    *name = at;
    if (*at == '$')
        *name = at + 1 + (at + 1 < end && at[1] == '{');
    else if (!arithmetic || (at > text && (isalnum((unsigned char)at[-1]) || strchr("_${", at[-1]))))
        return 0;
    while (*name + length < end && (isalnum((unsigned char)(*name)[length]) || (*name)[length] == '_'))
        length++;
    return length && !isdigit((unsigned char)**name) ? length : 0;
}

/* Names of variables that the text uses and that nobody gives; marks for each. */
static size_t unset_names(const struct launch_search *s, struct launch_set *marks)
{
    const char *text = s->script.text, *end = text + s->script.length, *name;
    bool arithmetic = false;
    size_t count = 0;

    for (const char *at = text; at + 1 < end && count < MOST_NAMES; at++) {
        size_t length = name_at(text, at, end, arithmetic, &name);
        bool known;

        if (at[0] == at[1] && (*at == '(' || *at == ')'))
            arithmetic = *at == '(';
        if (!length)
            continue;
        name = arena_strndup(s->arena, name, length);
        known = is_own(name);
        for (size_t i = 0; i < s->script.nenvironment; i++)
            known |= !strcmp(s->script.environment[i].name, name);
        for (size_t i = 0; i < count; i++)
            known |= !strcmp(marks[i].name, name);
        if (!known)
            marks[count++] = (struct launch_set){name, arena_printf(s->arena, "%c%s%c", MARK_BEGIN, name, MARK_END)};
    }
    return count;
}

const char *const *launch_marked_arguments(const struct launch_search *s)
{
    enum { MOST = 99 };
    const char **list = ARENA_ARRAY(s->arena, const char *, MOST + 1);
    size_t count = 0, last = 0;

    while (s->script.arguments && s->script.arguments[count] && count < MOST) {
        list[count] = s->script.arguments[count];
        count++;
    }
    for (const char *at = s->script.text; (at = strchr(at, '$')); at++) {
        const char *digits = at + 1 + (at[1] == '{');
        size_t n = isdigit((unsigned char)*digits) ? (size_t)strtoul(digits, NULL, 10) : 0;

        n = at[1] != '{' && n ? (size_t)(*digits - '0') : n;
        last = n > last && n <= MOST ? n : last;
    }
    for (; count < last; count++)
        list[count] = arena_printf(s->arena, "%c$%zu%c", MARK_BEGIN, count + 1, MARK_END);
    return list;
}

/* A variable that takes the launch away where it is a mark, may be a number: where 0 makes the words that it makes unset, and
 * another number other ones, arithmetic takes it for 0. */
static void doubt_number(struct launch_search *s, const struct launch_words *words, struct launch_set *marks, size_t count)
{
    struct launch_words other = {0};
    struct launch nobody = {0};

    marks[count].value = "0";
    if (launch_elsewhere(s, &(struct bash_world){.marks = marks, .nmarks = count + 1}, &other))
        launch_compare(s->arena, words, &other, s->chosen->loc, "", &nobody);
    if (other.count && !nobody.doubts.count) {
        free(other.items);
        marks[count].value = "7919";
        if (launch_elsewhere(s, &(struct bash_world){.marks = marks, .nmarks = count + 1}, &other))
            launch_compare(s->arena, words, &other, s->chosen->loc,
                           arena_printf(s->arena, "depends on %s, which is not set; give --env %s=VALUE", marks[count].name,
                                        marks[count].name), s->launch);
    }
    free(other.items);
    launch_release(&nobody);
}

void launch_take_unset(struct launch_search *s, struct launch_words *words)
{
    struct launch_set marks[2 * MOST_NAMES];
    size_t count = s->nmarks + unset_names(s, marks + s->nmarks);
    const char *const *given = s->script.arguments, *const *more = launch_marked_arguments(s);
    struct launch_words other = {0};
    bool taken = false;

    memcpy(marks, s->marks, s->nmarks * sizeof *marks);
    s->script.arguments = more;
    if (launch_elsewhere(s, &(struct bash_world){.marks = marks, .nmarks = count}, &other))
        taken = launch_take_marks(s->arena, words, &other);
    free(other.items);
    for (size_t i = s->nmarks; !taken && i <= count; i++) {  /* some of them decide what is launched: each alone */
        s->script.arguments = i < count ? given : more;
        if (i < count)
            marks[s->nmarks] = marks[i];
        if (launch_elsewhere(s, &(struct bash_world){.marks = marks, .nmarks = s->nmarks + (i < count)}, &other))
            launch_take_marks(s->arena, words, &other);
        else if (i < count)
            doubt_number(s, words, marks, s->nmarks);
        free(other.items);
    }
    s->script.arguments = given;
}
