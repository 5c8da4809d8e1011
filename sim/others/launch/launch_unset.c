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
        size_t n = isdigit((unsigned char)*digits) ? (size_t)strtoull(digits, NULL, 10) : 0;

        n = at[1] != '{' && n ? (size_t)(*digits - '0') : n;
        last = n > last && n <= MOST ? n : last;
    }
    for (; count < last; count++)
        list[count] = arena_printf(s->arena, "%c#%zu%c", MARK_BEGIN, count + 1, MARK_END);   /* eval takes '$' again */
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

void launch_mark_all(struct launch_search *s)
{
    s->nmarks = unset_names(s, s->marks);
    s->script.arguments = launch_marked_arguments(s);
}

const char *launch_unset_list(const struct launch_search *s)
{
    struct launch_set marks[MOST_NAMES];
    const char *list = NULL;

    for (size_t i = 0, count = unset_names(s, marks); i < count; i++)
        if (!strstr(s->script.text, arena_printf(s->arena, "%s=", marks[i].name)))
            list = arena_printf(s->arena, "%s%s%s", list ? list : "", list ? ", " : "", marks[i].name);
    return list;
}

/* An argument that is not given, by the number that is taken for it: its words get marks, and what else it changes is a doubt. */
static void doubt_argument(struct launch_search *s, struct launch_words *words, const char **list, size_t at)
{
    const char *mark = list[at];
    struct launch_words other = {0};

    list[at] = "7919";
    if (launch_elsewhere(s, &(struct bash_world){.marks = s->marks, .nmarks = s->nmarks}, &other)) {
        for (size_t i = 0; i < other.count; i++)
            if (!strcmp(other.items[i].text, "7919"))
                other.items[i].text = mark;
        launch_merge_marks(s->arena, words, &other);
        launch_compare(s->arena, words, &other, s->chosen->loc,
                       arena_printf(s->arena, "depends on the script's argument $%zu, which is not given", at + 1), s->launch);
    }
    free(other.items);
}

/* Arguments that are not given, each alone: the ones before it are empty. */
static void take_arguments(struct launch_search *s, struct launch_words *words)
{
    const char *const *given = s->script.arguments, *const *marked = launch_marked_arguments(s);
    struct launch_words other = {0};
    size_t first = 0, count = 0;

    while (given && given[first])
        first++;
    while (marked[count])
        count++;
    for (size_t at = first; at < count; at++) {
        const char **list = ARENA_ARRAY(s->arena, const char *, count + 1);

        for (size_t i = 0; i <= at; i++)
            list[i] = i < first || i == at ? marked[i] : "";
        s->script.arguments = list;
        if (!launch_elsewhere(s, &(struct bash_world){.marks = s->marks, .nmarks = s->nmarks}, &other) ||
            !launch_take_marks(s->arena, words, &other))
            doubt_argument(s, words, list, at);
        free(other.items);
    }
    s->script.arguments = given;
}

void launch_take_unset(struct launch_search *s, struct launch_words *words)
{
    struct launch_set marks[2 * MOST_NAMES];
    size_t count = s->nmarks + unset_names(s, marks + s->nmarks);
    const char *const *given = s->script.arguments;
    struct launch_words other = {0};
    bool taken = false;

    memcpy(marks, s->marks, s->nmarks * sizeof *marks);
    s->script.arguments = launch_marked_arguments(s);
    if (launch_elsewhere(s, &(struct bash_world){.marks = marks, .nmarks = count}, &other))
        taken = launch_take_marks(s->arena, words, &other);
    free(other.items);
    s->script.arguments = given;
    for (size_t i = s->nmarks; !taken && i < count; i++) {   /* some of them decide what is launched: each alone */
        marks[s->nmarks] = marks[i];
        if (launch_elsewhere(s, &(struct bash_world){.marks = marks, .nmarks = s->nmarks + 1}, &other))
            launch_take_marks(s->arena, words, &other);
        else
            doubt_number(s, words, marks, s->nmarks);
        free(other.items);
    }
    if (!taken)
        take_arguments(s, words);
}
