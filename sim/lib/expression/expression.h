/* expression: arithmetic, comparisons and conditions over named values, as sweep files write them:
 *
 *     cluster.nodes * 8 % (strategy.tensor * strategy.pipeline) == 0 && strategy.schedule != "gpipe"
 *
 * An expression is parsed once into a list of steps for a stack of values, and then evaluated for every point of a
 * sweep or row of a table. A value is a number, true or false, or text. From the loosest to the tightest:
 *
 *     ||  or              at least one is true; the right side is not looked at where the left one is
 *     &&  and             both are true; the right side is not looked at where the left one is false
 *     not                 the opposite of the comparison that follows
 *     ==  !=              values of one kind
 *     <  <=  >  >=        numbers
 *     +  -
 *     *  /  %             % is the remainder of whole numbers
 *     !  -                of the value that follows
 *     ( )  f(a, b)        functions: expression_help lists them
 *
 * A number may have a unit ("80 GiB", "1.5 us", "25 GB/s") and then counts in SI units. Text stands in 'single' or
 * "double" quotes. A name is a dotted path ("strategy.tensor", "model.layers.0.forward") or a word. Comparisons do not
 * chain. Every mistake is reported at its character in the file. */
#ifndef DTSIM_EXPRESSION_H
#define DTSIM_EXPRESSION_H

#include "config/conf.h"

enum value_kind {
    VALUE_NONE,          /* there is no such value here; what is made of it is none either, but "false && none" is false
                            and "true || none" is true */
    VALUE_NUMBER, VALUE_BOOLEAN, VALUE_TEXT,
    VALUE_LIST, VALUE_MAPPING,   /* nothing can be made of them: an error where they are used */
};

struct value {
    enum value_kind kind;
    double number;               /* SI units */
    bool boolean;
    const char *text;
};

struct value value_number(double number);
struct value value_boolean(bool boolean);
struct value value_text(const char *text);
struct value value_of_word(const char *text);      /* a number, true or false, else the text; NULL: none */
bool value_equal(const struct value *a, const struct value *b);    /* also of kind */

/* The names that an expression may use. */
struct names {
    /* The number of a name; -1: unknown, or known but not to be used here for a reason that it writes to *why, in words
     * that go on after the name ("is given below"). */
    int (*find)(void *context, const char *name, const char **why);
    const char *(*at)(size_t i, const void *context);              /* names to suggest, NULL past the last */
    void *context;
};

/* An expression as somebody wrote it. */
struct expression_text {
    const char *what;            /* before every message: "sweep: where" */
    const char *text;
    struct loc loc;              /* where the scalar begins, its quote included; line 0: messages name no column */
    const char *file;            /* the text of the file that loc lies in, to find columns behind quotes, escapes and
                                    folded lines; NULL: the text stands at loc as it is */
};

enum { EXPRESSION_MOST = 4096,   /* bytes of an expression */
       EXPRESSION_DEPTH = 50 };  /* parentheses, functions and signs inside one another */

/* Parses into the arena, which need not keep text->text. -1 after reporting the first mistake, which is EXIT_INPUT. */
struct expression;
int expression_parse(struct arena *arena, const struct expression_text *text, const struct names *names,
                     struct expression **expression, struct error *err);

/* The value of a name by its number: 0 and the value, or -1 and a message of its own. */
typedef int name_value(void *context, int name, struct value *value, struct error *err);

/* Evaluates. -1 after an error: operands of the wrong kind, division by zero, a result that is no finite number, or
 * what `value_of` reports. Text in the result lives as long as the expression or as what `value_of` gave. */
int expression_evaluate(const struct expression *expression, name_value *value_of, void *context, struct value *result,
                        struct error *err);
/* Evaluates a condition: anything but true, false and none is an error at its first character. */
int expression_holds(const struct expression *expression, name_value *value_of, void *context, struct value *result,
                     struct error *err);

/* Whether the expression uses a name of that number. */
bool expression_uses(const struct expression *expression, int name);
/* The expression as it was written. */
const struct expression_text *expression_source(const struct expression *expression);
/* Where a byte of the expression stands in the file. */
struct loc expression_loc(const struct expression_text *text, size_t at);
/* The functions, a line each: how they are called and what they give. */
void expression_help(FILE *out);

#endif
