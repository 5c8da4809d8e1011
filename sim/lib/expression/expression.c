#include "expression/expression_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct parser {
    struct lexer lexer;
    struct arena *arena;
    const struct names *names;
    struct { struct expression_step *items; size_t count, capacity; } steps;
    int depth;                   /* values inside one another */
    int waiting;                 /* values on the stack when the steps so far are done */
};

/* The next token. */
static const struct token *next(const struct parser *parser)
{
    return &parser->lexer.token;
}

static int advance(struct parser *parser)
{
    return token_next(&parser->lexer);
}

/* Reports a mistake at a byte of the expression. */
#define FAIL(parser, at, ...) expression_fail((parser)->lexer.text, at, (parser)->lexer.err, __VA_ARGS__)

/* "expected ..., found ...". */
static int unexpected(struct parser *parser, const char *expected)
{
    char word[CLIP_SIZE];

    if (next(parser)->kind == TOKEN_END)
        return FAIL(parser, next(parser)->at, "expected %s, found the end", expected);
    return FAIL(parser, next(parser)->at, "expected %s, found '%s'", expected, token_shown(&parser->lexer, word));
}

/* `grows`: by how many values the step changes the stack. */
static int emit(struct parser *parser, struct expression_step step, int grows)
{
    parser->waiting += grows;
    if (parser->waiting > STACK_MOST)
        return FAIL(parser, step.at, "more than %d values wait for their operators", STACK_MOST);
    *GROW(&parser->steps) = step;
    return 0;
}

static const char *function_candidate(size_t i, const void *context)
{
    (void)context;
    return function_at(i) ? function_at(i)->name : NULL;
}

static const struct function *function_find(const char *name)
{
    const struct function *function;
    size_t i = 0;

    while ((function = function_at(i++)) && !text_same(function->name, name))
        ;
    return function;
}

static int unknown_function(struct parser *parser, const char *name, size_t at)
{
    const char *meant = nearest(name, function_candidate, NULL), *list = "";
    char word[CLIP_SIZE];

    text_clip(name, word, sizeof word);
    if (meant)
        return FAIL(parser, at, "unknown function '%s'; did you mean '%s'?", word, meant);
    for (size_t i = 0; function_at(i); i++)
        list = arena_printf(parser->arena, "%s%s%s", list, i ? ", " : "", function_at(i)->name);
    return FAIL(parser, at, "unknown function '%s'; expected one of %s", word, list);
}

static int parse_level(struct parser *parser, enum level level);

/* What stands between '(', which is the next token, and ')'; how many arguments, or -1. */
static int parse_arguments(struct parser *parser)
{
    int count = 0;

    if (advance(parser))
        return -1;
    while (next(parser)->kind != TOKEN_CLOSE || count) {
        if (parse_level(parser, LEVEL_OR))
            return -1;
        count++;
        if (next(parser)->kind == TOKEN_CLOSE)
            break;
        if (next(parser)->kind != TOKEN_COMMA)
            return unexpected(parser, "',', ')' or an operator");
        if (advance(parser))
            return -1;
    }
    return advance(parser) ? -1 : count;
}

static int parse_call(struct parser *parser, const char *name, size_t at)
{
    const struct function *function = function_find(name);
    int count;

    if (!function)
        return unknown_function(parser, name, at);
    count = parse_arguments(parser);
    if (count < 0)
        return -1;
    if (count < function->least || (function->most && count > function->most))
        return FAIL(parser, at, "'%s' has %d argument%s here; expected %s", name, count, count == 1 ? "" : "s",
                    function->usage);
    return emit(parser, (struct expression_step){.kind = STEP_CALL, .at = at, .function = function, .count = count}, 1 - count);
}

/* What a name may be taken for: the words of expressions, then the names. */
static const char *name_candidate(size_t i, const void *context)
{
    static const char *const words[] = {"true", "false", "and", "or", "not"};
    const struct names *names = context;

    return i < COUNT(words) ? words[i] : names->at(i - COUNT(words), names->context);
}

static int parse_name(struct parser *parser)
{
    size_t at = next(parser)->at;
    char *name = arena_strndup(parser->arena, parser->lexer.text->text + at, next(parser)->length), word[CLIP_SIZE];
    struct expression_step step = {.kind = STEP_NAME, .at = at};
    const char *meant, *why = NULL;

    if (advance(parser))
        return -1;
    if (next(parser)->kind == TOKEN_OPEN)
        return parse_call(parser, name, at);
    if (function_find(name))
        return FAIL(parser, at, "'%s' is a function; expected %s", name, function_find(name)->usage);
    step.name = parser->names->find(parser->names->context, name, &why);
    if (step.name >= 0)
        return emit(parser, step, 1);
    if (why)
        return FAIL(parser, at, "'%s' %s", text_clip(name, word, sizeof word), why);
    meant = error_shows(parser->lexer.err, &parser->lexer.text->loc) ? nearest(name, name_candidate, parser->names) : NULL;
    return FAIL(parser, at, "unknown name '%s'%s%s%s", text_clip(name, word, sizeof word),
                meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "; text goes in quotes");
}

/* A number, true or false, or text. */
static int parse_constant(struct parser *parser)
{
    const struct token *token = next(parser);
    const char *text = parser->lexer.text->text + token->at;
    struct expression_step step = {.kind = STEP_VALUE, .at = token->at};

    if (token->kind == TOKEN_TEXT)
        step.value = value_text(arena_strndup(parser->arena, text + 1, token->length - 2));
    else
        step.value = token->kind == TOKEN_BOOLEAN ? value_boolean(*text == 't') : value_number(token->number);
    return emit(parser, step, 1) || advance(parser) ? -1 : 0;
}

static int parse_group(struct parser *parser)
{
    if (advance(parser) || parse_level(parser, LEVEL_OR))
        return -1;
    return next(parser)->kind == TOKEN_CLOSE ? advance(parser) : unexpected(parser, "')' or an operator");
}

static int parse_value(struct parser *parser);

/* A sign or a negation. Behind the word "not" stands a comparison, behind the others one value. */
static int parse_sign(struct parser *parser, enum step_kind kind)
{
    struct expression_step step = {.kind = kind, .at = next(parser)->at};
    bool word = !strcmp(next(parser)->operator->text, "not");

    if (advance(parser) || (word ? parse_level(parser, LEVEL_EQUAL) : parse_value(parser)))
        return -1;
    return emit(parser, step, 0);
}

static int parse_present(struct parser *parser)
{
    const struct token *token = next(parser);

    switch (token->kind) {
    case TOKEN_NAME:
        return parse_name(parser);
    case TOKEN_NUMBER:
    case TOKEN_BOOLEAN:
    case TOKEN_TEXT:
        return parse_constant(parser);
    case TOKEN_OPEN:
        return parse_group(parser);
    case TOKEN_OPERATOR:
        if (token->operator->step == STEP_SUBTRACT)
            return parse_sign(parser, STEP_NEGATE);
        return token->operator->step == STEP_NOT ? parse_sign(parser, STEP_NOT) : unexpected(parser, "a value");
    default:
        return unexpected(parser, "a value");
    }
}

/* One value with what stands before it. */
static int parse_value(struct parser *parser)
{
    int rc;

    if (parser->depth == EXPRESSION_DEPTH)
        return FAIL(parser, next(parser)->at, "nested more than %d deep", EXPRESSION_DEPTH);
    parser->depth++;
    rc = parse_present(parser);
    parser->depth--;
    return rc;
}

/* The level of the operator that comes next; LEVEL_NONE: the value ends here. */
static enum level next_level(const struct parser *parser)
{
    return next(parser)->kind == TOKEN_OPERATOR ? next(parser)->operator->level : LEVEL_NONE;
}

/* The next operator and its right side. "a || b" becomes: a; go on behind this if true; b; or. */
static int parse_right(struct parser *parser)
{
    const struct connective *operator = next(parser)->operator;
    struct expression_step step = {.kind = operator->step, .at = next(parser)->at}, jump = step;
    size_t at = parser->steps.count;

    jump.kind = step.kind == STEP_OR ? STEP_OR_ELSE : STEP_AND_THEN;
    if (operator->level <= LEVEL_AND && emit(parser, jump, 0))
        return -1;
    if (advance(parser) || parse_level(parser, (enum level)(operator->level + 1)) || emit(parser, step, -1))
        return -1;
    if (operator->level <= LEVEL_AND)
        parser->steps.items[at].target = parser->steps.count;
    return 0;
}

/* Values and the operators between them that bind at least as tightly as `level`. */
static int parse_level(struct parser *parser, enum level level)
{
    if (parse_value(parser))
        return -1;
    while (next_level(parser) >= level) {
        const struct connective *operator = next(parser)->operator;
        bool compares = operator->level == LEVEL_EQUAL || operator->level == LEVEL_ORDER;

        if (parse_right(parser))
            return -1;
        if (compares && next_level(parser) == operator->level)
            return FAIL(parser, next(parser)->at, "comparisons do not chain; expected 'a %s b && b %s c'",
                        operator->text, next(parser)->operator->text);
    }
    return 0;
}

static int parse_all(struct parser *parser)
{
    size_t length = strlen(parser->lexer.text->text);

    if (length > EXPRESSION_MOST)
        return FAIL(parser, 0, "an expression of %zu bytes; at most %d are allowed", length, EXPRESSION_MOST);
    if (advance(parser))
        return -1;
    if (next(parser)->kind == TOKEN_END)
        return FAIL(parser, 0, "the expression is empty");
    if (parse_level(parser, LEVEL_OR))
        return -1;
    if (next(parser)->kind == TOKEN_CLOSE)
        return FAIL(parser, next(parser)->at, "there is no '(' to this ')'");
    return next(parser)->kind == TOKEN_END ? 0 : unexpected(parser, "an operator such as '+', '==' or '&&'");
}

int expression_parse(struct arena *arena, const struct expression_text *text, const struct names *names,
                     struct expression **expression, struct error *err)
{
    struct parser parser = {.lexer = {.text = text, .err = err}, .arena = arena, .names = names};
    int rc = parse_all(&parser);

    if (!rc) {
        struct expression_step *items = ARENA_ARRAY(arena, struct expression_step, parser.steps.count);

        BUG_IF(!parser.steps.count);
        memcpy(items, parser.steps.items, parser.steps.count * sizeof *items);
        *expression = ARENA_ARRAY(arena, struct expression, 1);
        **expression = (struct expression){*text, items, parser.steps.count};
        (*expression)->text.text = arena_strdup(arena, text->text);
    }
    free(parser.steps.items);
    return rc;
}

bool expression_uses(const struct expression *expression, int name)
{
    for (size_t i = 0; i < expression->count; i++)
        if (expression->items[i].kind == STEP_NAME && expression->items[i].name == name)
            return true;
    return false;
}

const struct expression_text *expression_source(const struct expression *expression)
{
    return &expression->text;
}

struct value value_of_word(const char *text)
{
    char *end;
    double number = text ? strtod(text, &end) : 0;

    if (!text)
        return (struct value){.kind = VALUE_NONE};
    if (end != text && !*end)
        return value_number(number);
    return !strcmp(text, "true") || !strcmp(text, "false") ? value_boolean(*text == 't') : value_text(text);
}
