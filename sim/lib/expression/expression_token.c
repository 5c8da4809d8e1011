#include "expression/expression_internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* Longer operators stand before their prefixes. */
static const struct connective operators[] = {
    {"===", LEVEL_NONE, STEP_VALUE, "'==' compares"},
    {"**", LEVEL_NONE, STEP_VALUE, "pow(a, b) is a to the power of b"},
    {"//", LEVEL_NONE, STEP_VALUE, "floor(a / b) rounds the quotient down"},
    {"<>", LEVEL_NONE, STEP_VALUE, "'!=' compares for a difference"},
    {"=<", LEVEL_NONE, STEP_VALUE, "'<=' is at most"},
    {"=>", LEVEL_NONE, STEP_VALUE, "'>=' is at least"},
    {"||", LEVEL_OR, STEP_OR, NULL},
    {"&&", LEVEL_AND, STEP_AND, NULL},
    {"==", LEVEL_EQUAL, STEP_EQUAL, NULL},
    {"!=", LEVEL_EQUAL, STEP_UNEQUAL, NULL},
    {"<=", LEVEL_ORDER, STEP_LESS_EQUAL, NULL},
    {">=", LEVEL_ORDER, STEP_GREATER_EQUAL, NULL},
    {"<", LEVEL_ORDER, STEP_LESS, NULL},
    {">", LEVEL_ORDER, STEP_GREATER, NULL},
    {"+", LEVEL_SUM, STEP_ADD, NULL},
    {"-", LEVEL_SUM, STEP_SUBTRACT, NULL},
    {"*", LEVEL_PRODUCT, STEP_MULTIPLY, NULL},
    {"/", LEVEL_PRODUCT, STEP_DIVIDE, NULL},
    {"%", LEVEL_PRODUCT, STEP_REMAINDER, NULL},
    {"!", LEVEL_NONE, STEP_NOT, NULL},
    {"=", LEVEL_NONE, STEP_VALUE, "'==' compares"},
    {"&", LEVEL_NONE, STEP_VALUE, "'&&' is true where both sides are"},
    {"|", LEVEL_NONE, STEP_VALUE, "'||' is true where one side is"},
    {"^", LEVEL_NONE, STEP_VALUE, "pow(a, b) is a to the power of b"},
    {"or", LEVEL_OR, STEP_OR, NULL},
    {"and", LEVEL_AND, STEP_AND, NULL},
    {"not", LEVEL_NONE, STEP_NOT, NULL},
    {"?", LEVEL_NONE, STEP_VALUE, "there is no 'a ? b : c'; min and max choose a number"},
};

enum { LONGEST = 3 };            /* characters of an operator */

const char *operator_text(enum step_kind kind)
{
    for (size_t i = 0; i < COUNT(operators); i++)
        if (!operators[i].instead && operators[i].step == kind)
            return operators[i].text;
    return NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What stands at a byte, for messages: a token is shown as it is written, cut to size. */
static const char *shown(const char *text, size_t length, char buffer[CLIP_SIZE])
{
    char whole[4 * CLIP_SIZE];

    if (length >= sizeof whole)
        length = sizeof whole - 1;
    memcpy(whole, text, length);
    whole[length] = '\0';
    return text_clip(whole, buffer, CLIP_SIZE);
}

bool token_is(const struct lexer *lexer, const char *word)
{
    const struct token *token = &lexer->token;

    return token->kind == TOKEN_NAME && strlen(word) == token->length &&
           !memcmp(lexer->text->text + token->at, word, token->length);
}

const char *token_shown(const struct lexer *lexer, char buffer[CLIP_SIZE])
{
    return shown(lexer->text->text + lexer->token.at, lexer->token.length, buffer);
}

/* Bytes of a decimal number: digits, a point, an exponent. */
static size_t number_length(const char *text)
{
    size_t length = strspn(text, "0123456789"), exponent;

    if (text[length] == '.')
        length += 1 + strspn(text + length + 1, "0123456789");
    if ((text[length] | 32) != 'e')
        return length;
    exponent = length + 1 + (text[length + 1] == '+' || text[length + 1] == '-');
    return is_digit(text[exponent]) ? exponent + strspn(text + exponent, "0123456789") : length;
}

/* Whether number and unit, which begin at `text` and take `length` bytes, are a quantity; *both: of two kinds. */
static bool quantity(const char *text, size_t length, double *value, bool *both)
{
    static const enum unit units[] = {UNIT_TIME, UNIT_BYTES, UNIT_BANDWIDTH, UNIT_FLOP, UNIT_FLOP_RATE, UNIT_POWER,
                                      UNIT_COUNT};
    char word[128], why[256];
    int found = 0;

    if (length >= sizeof word)
        return false;
    memcpy(word, text, length);
    word[length] = '\0';
    for (size_t i = 0; i < COUNT(units); i++) {
        double number;

        if (unit_parse(units[i], word, &number, why, sizeof why))
            continue;
        *both |= found++ && number != *value;
        *value = number;
    }
    return found > 0;
}

/* The unit behind a number, with spaces before it: the longest that makes a quantity. 0 bytes: none. */
static size_t unit_length(const char *text, size_t digits, double *value, bool *both)
{
    size_t space = strspn(text + digits, " "), length = digits + space;
    const char *unit = text + length;

    while (is_letter(text[length]) || (unsigned char)text[length] >= 0x80)
        length++;
    if (text[length] == '/' && text[length + 1] == 's' && !is_letter(text[length + 2]) && !is_digit(text[length + 2]) &&
        quantity(text, length + 2, value, both))
        return length + 2 - digits;
    if (text + length == unit || is_digit(text[length]) || !quantity(text, length, value, both))
        return 0;
    return length - digits;
}

static int number_token(struct lexer *lexer, const char *text)
{
    struct token *token = &lexer->token;
    size_t digits = number_length(text), unit, word;
    char number[CLIP_SIZE], why[256];
    bool both = false;

    unit = unit_length(text, digits, &token->number, &both);
    token->kind = TOKEN_NUMBER;
    token->length = digits + unit;
    if (both)
        return expression_fail(lexer->text, token->at, lexer->err, "'%s' may be bytes or billions; expected a number "
                               "such as 7e9, or another unit", token_shown(lexer, number));
    if (unit)
        return 0;
    for (word = digits; is_letter(text[word]) || is_digit(text[word]) || text[word] == '.'; word++)
        ;
    if (word > digits)
        return expression_fail(lexer->text, token->at, lexer->err, "'%s' is neither a number nor a number with a "
                               "unit; text goes in quotes", shown(text, word, number));
    if (unit_parse(UNIT_NUMBER, shown(text, digits, number), &token->number, why, sizeof why))
        return expression_fail(lexer->text, token->at, lexer->err, "%s", why);
    return 0;
}

static int text_token(struct lexer *lexer, const char *text)
{
    const char *end = strchr(text + 1, *text);

    lexer->token.kind = TOKEN_TEXT;
    if (!end)
        return expression_fail(lexer->text, lexer->token.at, lexer->err, "the text that begins here has no closing "
                               "%c", *text);
    lexer->token.length = (size_t)(end - text) + 1;
    return 0;
}

/* A word, or words and numbers with dots between them. */
static int name_token(struct lexer *lexer, const char *text)
{
    size_t length = 0;
    char word[CLIP_SIZE];

    do {
        size_t part = length;

        while (is_letter(text[length]) || is_digit(text[length]))
            length++;
        if (length == part)
            return expression_fail(lexer->text, lexer->token.at + length, lexer->err, "expected the next part of the "
                                   "path behind '%s'", shown(text, length, word));
    } while (text[length] == '.' && ++length);
    lexer->token.kind = TOKEN_NAME;
    lexer->token.length = length;
    for (size_t i = 0; i < COUNT(operators) && length <= LONGEST; i++)
        if (token_is(lexer, operators[i].text)) {
            lexer->token.operator = &operators[i];
            lexer->token.kind = TOKEN_OPERATOR;
        }
    if (token_is(lexer, "true") || token_is(lexer, "false"))
        lexer->token.kind = TOKEN_BOOLEAN;
    return 0;
}

static int operator_token(struct lexer *lexer, const char *text)
{
    static const char structure[] = "(),";
    static const enum token_kind kinds[] = {TOKEN_OPEN, TOKEN_CLOSE, TOKEN_COMMA};
    const char *found = strchr(structure, *text), *end = text + 1;
    char word[CLIP_SIZE];

    for (size_t i = 0; i < COUNT(operators); i++) {
        const struct connective *operator = &operators[i];
        size_t length;

        if (*text != *operator->text || strncmp(text, operator->text, length = strlen(operator->text)))
            continue;
        if (operator->instead)
            return expression_fail(lexer->text, lexer->token.at, lexer->err, "'%s' is no operator; %s",
                                   operator->text, operator->instead);
        lexer->token.kind = TOKEN_OPERATOR;
        lexer->token.length = length;
        lexer->token.operator = operator;
        return 0;
    }
    if (found) {
        lexer->token.kind = kinds[found - structure];
        lexer->token.length = 1;
        return 0;
    }
    while (((unsigned char)*end & 0xC0) == 0x80)     /* all bytes of the character */
        end++;
    return expression_fail(lexer->text, lexer->token.at, lexer->err, "'%s' cannot stand in an expression",
                           shown(text, (size_t)(end - text), word));
}

/* Reads the token behind the present one. */
int token_next(struct lexer *lexer)
{
    size_t at = lexer->token.at + lexer->token.length;
    const char *text = lexer->text->text;

    while (is_space(text[at]))
        at++;
    lexer->token = (struct token){.kind = TOKEN_END, .at = at};
    if (!text[at])
        return 0;
    if (is_digit(text[at]) || (text[at] == '.' && is_digit(text[at + 1])))
        return number_token(lexer, text + at);
    if (text[at] == '"' || text[at] == '\'')
        return text_token(lexer, text + at);
    if (is_letter(text[at]))
        return name_token(lexer, text + at);
    return operator_token(lexer, text + at);
}


/* A place in a file's text. */
struct cursor {
    const char *at;
    int line, column;
};

/* Bytes of a line's end as YAML 1.1 has it, 0 where there is none. */
static size_t break_length(const char *text)
{
    static const char *const breaks[] = {"\r\n", "\n", "\r", "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"};

    for (size_t i = 0; i < COUNT(breaks); i++)
        if (!strncmp(text, breaks[i], strlen(breaks[i])))
            return strlen(breaks[i]);
    return 0;
}

static void step_over(struct cursor *cursor, size_t bytes)
{
    const char *end = cursor->at + strnlen(cursor->at, bytes);

    while (cursor->at < end) {
        size_t length = break_length(cursor->at);

        if (length) {
            cursor->line++;
            cursor->column = 1;
        } else if (((unsigned char)*cursor->at & 0xC0) != 0x80) {
            cursor->column++;
        }
        cursor->at += length ? length : 1;
    }
}

static void skip_spaces(struct cursor *cursor)
{
    while (is_space(*cursor->at) || break_length(cursor->at))
        step_over(cursor, 1);
}

/* Bytes of an escape in double quotes. */
static size_t escape_length(const char *text)
{
    size_t length = text[1] == 'x' ? 4 : text[1] == 'u' ? 6 : text[1] == 'U' ? 10 : 2;

    return strnlen(text, length);
}

static bool escapes_space(const char *text)
{
    return text[1] && strchr("ntrNLP \t\n", text[1]);
}

/* Moves to the next character that the scalar's reader finds, after spaces; `quote`: '"', '\'' or 0. */
static void next_character(struct cursor *cursor, char quote)
{
    skip_spaces(cursor);
    while (quote == '"' && *cursor->at == '\\' && escapes_space(cursor->at)) {
        step_over(cursor, escape_length(cursor->at));
        skip_spaces(cursor);
    }
}

static size_t character_length(const char *text, char quote)
{
    size_t length = *text != '\0';

    if (quote == '"' && *text == '\\')
        return escape_length(text);
    if (quote == '\'' && text[0] == '\'' && text[1] == '\'')
        return 2;
    while (length && ((unsigned char)text[length] & 0xC0) == 0x80)
        length++;
    return length;
}

/* Where the scalar's loc is in the file's text, an anchor before it left out. */
static struct cursor scalar_begin(const struct expression_text *text)
{
    struct cursor cursor = {text->file + text_mark(text->file, strlen(text->file)), 1, 1};

    while (*cursor.at && cursor.line < text->loc.line)
        step_over(&cursor, 1);
    while (*cursor.at && cursor.column < text->loc.column)
        step_over(&cursor, character_length(cursor.at, 0));
    if (*cursor.at == '&') {
        while (*cursor.at && !is_space(*cursor.at) && !break_length(cursor.at))
            step_over(&cursor, 1);
        skip_spaces(&cursor);
    }
    return cursor;
}

/* A file's text and its reader's text differ only in spaces, quotes and escapes. So both are walked in step, and any
 * run of spaces matches any other. */
struct loc expression_loc(const struct expression_text *text, size_t at)
{
    struct cursor cursor = {text->text, text->loc.line, text->loc.column};
    struct loc loc = text->loc;
    char quote = 0;

    if (!loc.line)
        return loc;
    if (!text->file) {
        step_over(&cursor, at);
        return (struct loc){loc.file, cursor.line, cursor.column};
    }
    cursor = scalar_begin(text);
    if (*cursor.at == '"' || *cursor.at == '\'') {
        quote = *cursor.at;
        step_over(&cursor, 1);
    } else if (*cursor.at == '|' || *cursor.at == '>') {
        while (*cursor.at && !break_length(cursor.at))
            step_over(&cursor, 1);
    }
    for (size_t i = 0; text->text[i]; i++) {
        if (is_space(text->text[i]) || break_length(text->text + i) || ((unsigned char)text->text[i] & 0xC0) == 0x80)
            continue;
        next_character(&cursor, quote);
        if (i >= at)
            break;
        step_over(&cursor, character_length(cursor.at, quote));
    }
    return (struct loc){loc.file, cursor.line, cursor.column};
}

int expression_fail(const struct expression_text *text, size_t at, struct error *err, const char *format, ...)
{
    va_list args;
    char *message;

    va_start(args, format);
    message = xvprintf(format, args);
    va_end(args);
    /* The place is looked for in the whole file. */
    error_add(err, EXIT_INPUT, error_shows(err, &text->loc) ? expression_loc(text, at) : text->loc, "%s: %s", text->what, message);
    free(message);
    return -1;
}
