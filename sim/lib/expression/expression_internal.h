/* expression_internal: the steps into which an expression is parsed; for expression*.c only. */
#ifndef DTSIM_EXPRESSION_INTERNAL_H
#define DTSIM_EXPRESSION_INTERNAL_H

#include "expression/expression.h"

/* The effect of a step on the stack. Each step pops its operands and pushes its result. */
enum step_kind {
    STEP_VALUE, STEP_NAME, STEP_CALL, STEP_NEGATE, STEP_NOT,
    STEP_OR_ELSE,        /* looks at the top: true goes to `target`, past the right side and its STEP_OR */
    STEP_AND_THEN,       /* the same for false */
    STEP_OR, STEP_AND,
    STEP_EQUAL, STEP_UNEQUAL, STEP_LESS, STEP_LESS_EQUAL, STEP_GREATER, STEP_GREATER_EQUAL,
    STEP_ADD, STEP_SUBTRACT, STEP_MULTIPLY, STEP_DIVIDE, STEP_REMAINDER,
};

enum token_kind {
    TOKEN_END, TOKEN_NUMBER, TOKEN_BOOLEAN, TOKEN_TEXT, TOKEN_NAME, TOKEN_OPERATOR, TOKEN_OPEN, TOKEN_CLOSE,
    TOKEN_COMMA,
};

/* How tightly operators bind; LEVEL_NONE: no operator between two values. */
enum level { LEVEL_NONE, LEVEL_OR, LEVEL_AND, LEVEL_EQUAL, LEVEL_ORDER, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_COUNT };

struct connective {
    const char *text;
    enum level level;
    enum step_kind step;
    const char *instead;         /* what people mean who write this, which is no operator here; else NULL */
};

struct token {
    enum token_kind kind;
    size_t at, length;           /* bytes of the expression */
    double number;
    const struct connective *operator;     /* OPERATOR, and words that are one: and, or, not */
};

/* Reads an expression token by token. */
struct lexer {
    const struct expression_text *text;
    struct error *err;
    struct token token;          /* the next one */
};
int token_next(struct lexer *lexer);
/* The token as it is written, cut to size. */
const char *token_shown(const struct lexer *lexer, char buffer[CLIP_SIZE]);
/* Whether it is that name. */
bool token_is(const struct lexer *lexer, const char *word);

/* A value on the stack, and the byte of the expression where it begins. */
struct operand {
    struct value value;
    size_t at;
};

struct function {
    const char *name, *usage, *brief;
    int least, most;             /* arguments; most 0: any number */
    enum value_kind takes;       /* all of them */
    /* The result, or NULL and what is wrong with argument *wrong. */
    const char *(*apply)(const struct operand *arguments, int count, struct value *result, int *wrong);
};
const struct function *function_at(size_t index);        /* NULL past the last */

struct expression_step {
    enum step_kind kind;
    size_t at;                   /* the byte of the expression where it is written */
    struct value value;          /* VALUE */
    int name;                    /* NAME */
    const struct function *function;     /* CALL */
    int count;                   /* CALL: arguments */
    size_t target;               /* OR_ELSE, AND_THEN: the step to go on with */
};

enum { STACK_MOST = 256 };       /* values that may wait at once */

struct expression {
    struct expression_text text;
    struct expression_step *items;
    size_t count;
};

/* Reports a mistake at that byte. Returns -1. */
int expression_fail(const struct expression_text *text, size_t at, struct error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* How an operator is written: "+"; NULL for steps that are no operators. */
const char *operator_text(enum step_kind kind);

#endif
