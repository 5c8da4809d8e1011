/* shell_value: arithmetic and tests of values that are known. */
#include "launch/shell_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

struct sum { struct shell *shell; const char *at; int depth; bool known; };

static long long add_up(struct sum *sum);

static void skip_blanks(struct sum *sum)
{
    while (isspace((unsigned char)*sum->at))
        sum->at++;
}

static long long unknown(struct sum *sum)
{
    sum->known = false;
    return 0;
}

/* A whole number that is all of the text. */
static bool whole_number(const char *text, long long *value)
{
    char *end;

    if (text[strspn(text, "+-")] == '0' && text[strspn(text, "+-") + 1])
        return false;                                        /* an octal number for some, not for others */
    *value = strtoll(text, &end, 10);
    return end != text && !*end && *value > -1000000000000LL && *value < 1000000000000LL;
}

static long long named_value(struct sum *sum)
{
    const char *first = sum->at, *name;
    const struct variable *variable;
    long long value = 0;

    while (isalnum((unsigned char)*sum->at) || *sum->at == '_')
        sum->at++;
    name = arena_strndup(sum->shell->arena, first, (size_t)(sum->at - first));
    variable = shell_variable(sum->shell, name);
    shell_used(sum->shell, name, variable);
    if (!variable || variable->value.count != 1 ||
        !whole_number(shell_text(sum->shell->arena, &variable->value.items[0]), &value))
        return unknown(sum);
    return value;
}

static long long factor(struct sum *sum)
{
    skip_blanks(sum);
    if (++sum->depth > SHELL_MAX_DEPTH)
        return unknown(sum);
    long long value = 0;

    if (*sum->at == '(') {
        sum->at++;
        value = add_up(sum);
        skip_blanks(sum);
        if (*sum->at != ')')
            unknown(sum);
        else
            sum->at++;
    } else if (*sum->at == '-') {
        sum->at++;
        value = -factor(sum);
    } else if (isdigit((unsigned char)*sum->at)) {
        char *end;
        bool octal = sum->at[0] == '0' && isalnum((unsigned char)sum->at[1]);

        value = strtoll(sum->at, &end, 10);
        sum->at = end;
        if (octal)
            unknown(sum);
    } else {
        value = isalpha((unsigned char)*sum->at) || *sum->at == '_' ? named_value(sum) : unknown(sum);
    }
    sum->depth--;
    return value;
}

static long long product(struct sum *sum)
{
    long long value = factor(sum), by, result;

    for (skip_blanks(sum); sum->known && *sum->at && strchr("*/%", *sum->at); skip_blanks(sum)) {
        char sign = *sum->at++;

        by = factor(sum);
        if (sign != '*' && by == 0)
            return unknown(sum);
        if (sign != '*')
            value = sign == '/' ? value / by : value % by;
        else if (__builtin_mul_overflow(value, by, &result))
            return unknown(sum);
        else
            value = result;
        if (value < -1000000000000000LL || value > 1000000000000000LL)
            return unknown(sum);
    }
    return value;
}

static long long add_up(struct sum *sum)
{
    long long value = product(sum), by, result;

    for (skip_blanks(sum); sum->known && (*sum->at == '+' || *sum->at == '-'); skip_blanks(sum)) {
        char sign = *sum->at++;

        by = product(sum);
        if (__builtin_add_overflow(value, sign == '+' ? by : -by, &result))
            return unknown(sum);
        value = result;
    }
    return value;
}

bool shell_arithmetic(struct shell *shell, const char *text, long long *value)
{
    struct sum sum = {shell, text, 0, true};

    *value = add_up(&sum);
    skip_blanks(&sum);
    return sum.known && !*sum.at;
}

static enum life holds(bool yes)
{
    return yes ? LIFE_SURE : LIFE_DEAD;
}

/* Signs of a pattern: what it matches is not decided here. */
static bool is_pattern(const char *text)
{
    return strpbrk(text, "*?[") != NULL;
}

/* A && B, A || B of [[ ]]. */
static enum life test_parts(struct shell *shell, const struct shell_word *words, size_t count, size_t at)
{
    enum life a = shell_test(shell, words, at, true), b = shell_test(shell, words + at + 1, count - at - 1, true);

    if (*words[at].text == '&')
        return a < b ? a : b;
    return a > b ? a : b;
}

static enum life compare(const struct shell_word *words, bool pattern)
{
    static const char *const signs[] = {"-eq", "-ne", "-gt", "-ge", "-lt", "-le"};
    long long a, b;

    if (pattern && is_pattern(words[2].text))
        return LIFE_MAYBE;
    if (!strcmp(words[1].text, "=") || !strcmp(words[1].text, "=="))
        return holds(!strcmp(words[0].text, words[2].text));
    if (!strcmp(words[1].text, "!="))
        return holds(strcmp(words[0].text, words[2].text) != 0);
    for (size_t i = 0; i < COUNT(signs); i++)
        if (!strcmp(words[1].text, signs[i]) && whole_number(words[0].text, &a) && whole_number(words[2].text, &b))
            return holds(i == 0 ? a == b : i == 1 ? a != b : i == 2 ? a > b : i == 3 ? a >= b : i == 4 ? a < b : a <= b);
    return LIFE_MAYBE;
}

enum life shell_test(struct shell *shell, const struct shell_word *words, size_t count, bool pattern)
{
    enum life result = LIFE_MAYBE;
    bool invert;

    for (int pass = 0; pattern && pass < 2; pass++)
        for (size_t i = 0; i < count; i++)
            if (!strcmp(words[i].text, "(") || (i + 1 == count && !strcmp(words[i].text, ")")))
                return LIFE_MAYBE;
            else if (!strcmp(words[i].text, pass ? "&&" : "||"))
                return test_parts(shell, words, count, i);
    invert = count > 1 && !strcmp(words[0].text, "!");
    words += invert;
    count -= invert;
    for (size_t i = 0; i < count; i++)
        if (shell_unknown(shell->arena, words[i].text))
            return LIFE_MAYBE;
    if (count == 1 && strcmp(words[0].text, "!"))            /* -z and -n alone are words */
        result = holds(*words[0].text);
    else if (count == 2 && (!strcmp(words[0].text, "-z") || !strcmp(words[0].text, "-n")))
        result = holds(!*words[1].text == (words[0].text[1] == 'z'));
    else if (count == 3)
        result = compare(words, pattern);
    return result == LIFE_MAYBE ? result : invert ? holds(result == LIFE_DEAD) : result;
}
