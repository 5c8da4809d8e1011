#include "expression/expression_internal.h"

#include <math.h>
#include <string.h>

#include "base/base.h"

struct value value_number(double number)
{
    return (struct value){.kind = VALUE_NUMBER, .number = number};
}

struct value value_boolean(bool boolean)
{
    return (struct value){.kind = VALUE_BOOLEAN, .boolean = boolean};
}

struct value value_text(const char *text)
{
    return (struct value){.kind = VALUE_TEXT, .text = text};
}

bool value_equal(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case VALUE_NUMBER:
        return a->number == b->number;
    case VALUE_BOOLEAN:
        return a->boolean == b->boolean;
    case VALUE_TEXT:
        return !strcmp(a->text, b->text);
    default:
        return true;
    }
}

static bool whole(double number)
{
    return isfinite(number) && number == floor(number);
}

static const char *apply_extreme(const struct operand *arguments, int count, struct value *result, bool largest)
{
    double best = arguments[0].value.number;

    for (int i = 1; i < count; i++)
        best = largest ? fmax(best, arguments[i].value.number) : fmin(best, arguments[i].value.number);
    *result = value_number(best);
    return NULL;
}

static const char *apply_min(const struct operand *arguments, int count, struct value *result, int *wrong)
{
    (void)wrong;
    return apply_extreme(arguments, count, result, false);
}

static const char *apply_max(const struct operand *arguments, int count, struct value *result, int *wrong)
{
    (void)wrong;
    return apply_extreme(arguments, count, result, true);
}

static const char *apply_divides(const struct operand *arguments, int count, struct value *result, int *wrong)
{
    for (int i = 0; i < count; i++)
        if (!whole(arguments[i].value.number)) {
            *wrong = i;
            return "a whole number";
        }
    if (arguments[0].value.number == 0) {
        *wrong = 0;
        return "a number that is not 0";
    }
    *result = value_boolean(fmod(arguments[1].value.number, arguments[0].value.number) == 0);
    return NULL;
}

/* A function of one number that is defined everywhere. */
#define PLAIN(name, call) \
    static const char *name(const struct operand *arguments, int count, struct value *result, int *wrong) \
    { \
        (void)count; \
        (void)wrong; \
        *result = value_number(call(arguments[0].value.number)); \
        return NULL; \
    }
PLAIN(apply_floor, floor)
PLAIN(apply_ceil, ceil)
PLAIN(apply_round, round)
PLAIN(apply_abs, fabs)

static const char *apply_log2(const struct operand *arguments, int count, struct value *result, int *wrong)
{
    (void)count;
    *wrong = 0;
    *result = value_number(log2(arguments[0].value.number));
    return arguments[0].value.number > 0 ? NULL : "a number above 0";
}

static const char *apply_sqrt(const struct operand *arguments, int count, struct value *result, int *wrong)
{
    (void)count;
    *wrong = 0;
    *result = value_number(sqrt(arguments[0].value.number));
    return arguments[0].value.number >= 0 ? NULL : "a number of 0 or more";
}

static const char *apply_pow(const struct operand *arguments, int count, struct value *result, int *wrong)
{
    (void)count;
    *wrong = 1;
    *result = value_number(pow(arguments[0].value.number, arguments[1].value.number));
    return isnan(result->number) ? "a whole number, as the base is negative" : NULL;
}

static const char *apply_contains(const struct operand *arguments, int count, struct value *result, int *wrong)
{
    (void)count;
    (void)wrong;
    *result = value_boolean(strstr(arguments[0].value.text, arguments[1].value.text) != NULL);
    return NULL;
}

static const struct function functions[] = {
    {"min", "min(a, ...)", "the smallest number", 1, 0, VALUE_NUMBER, apply_min},
    {"max", "max(a, ...)", "the largest number", 1, 0, VALUE_NUMBER, apply_max},
    {"divides", "divides(a, b)", "whether b is a multiple of a, both whole", 2, 2, VALUE_NUMBER, apply_divides},
    {"floor", "floor(a)", "the whole number at or below", 1, 1, VALUE_NUMBER, apply_floor},
    {"ceil", "ceil(a)", "the whole number at or above", 1, 1, VALUE_NUMBER, apply_ceil},
    {"round", "round(a)", "the nearest whole number; halves go away from 0", 1, 1, VALUE_NUMBER, apply_round},
    {"abs", "abs(a)", "without its sign", 1, 1, VALUE_NUMBER, apply_abs},
    {"log2", "log2(a)", "the logarithm to base 2", 1, 1, VALUE_NUMBER, apply_log2},
    {"sqrt", "sqrt(a)", "the square root", 1, 1, VALUE_NUMBER, apply_sqrt},
    {"pow", "pow(a, b)", "a to the power of b", 2, 2, VALUE_NUMBER, apply_pow},
    {"contains", "contains(text, part)", "whether the text holds the part", 2, 2, VALUE_TEXT, apply_contains},
};

const struct function *function_at(size_t index)
{
    return index < COUNT(functions) ? &functions[index] : NULL;
}

void expression_help(FILE *out)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        fprintf(out, "  %-20s %s\n", functions[i].usage, functions[i].brief);
}

/* An evaluation that goes on. */
struct machine {
    const struct expression *expression;
    struct error *err;
    struct operand stack[STACK_MOST + 1];
    int count;
};

/* "the text 'abc'": a value, for messages. */
static const char *value_shown(const struct value *value, char buffer[2 * CLIP_SIZE])
{
    static const char *const others[] = {[VALUE_NONE] = "no value", [VALUE_LIST] = "a list",
                                         [VALUE_MAPPING] = "a mapping"};
    char text[CLIP_SIZE];

    if (value->kind == VALUE_NUMBER)
        snprintf(buffer, 2 * CLIP_SIZE, "the number %.15g", value->number);
    else if (value->kind == VALUE_BOOLEAN)
        snprintf(buffer, 2 * CLIP_SIZE, "%s", value->boolean ? "true" : "false");
    else if (value->kind == VALUE_TEXT)
        snprintf(buffer, 2 * CLIP_SIZE, "the text '%s'", text_clip(value->text, text, sizeof text));
    else
        return others[value->kind];
    return buffer;
}

/* Whether the operand is of that kind, or none, which every step passes on. */
static bool is_kind(const struct operand *operand, enum value_kind kind)
{
    return operand->value.kind == kind || operand->value.kind == VALUE_NONE;
}

/* Error: it is not of that kind, which `user` needs. */
static int expect(struct machine *machine, const struct operand *operand, enum value_kind kind, const char *user)
{
    static const char *const kinds[] = {[VALUE_NUMBER] = "a number", [VALUE_BOOLEAN] = "true or false",
                                        [VALUE_TEXT] = "text"};
    char text[2 * CLIP_SIZE];

    if (is_kind(operand, kind))
        return 0;
    return expression_fail(&machine->expression->text, operand->at, machine->err, "%s needs %s, found %s", user,
                           kinds[kind], value_shown(&operand->value, text));
}

static int expect_by(struct machine *machine, const struct operand *operand, enum value_kind kind,
                     const struct expression_step *step)
{
    char user[32];

    if (is_kind(operand, kind))              /* as nearly always: then the words are not needed */
        return 0;
    snprintf(user, sizeof user, "'%s'", step->kind == STEP_CALL ? step->function->name :
             step->kind == STEP_NEGATE ? "-" : operator_text(step->kind));
    return expect(machine, operand, kind, user);
}

static int check_finite(struct machine *machine, const struct expression_step *step, double number)
{
    if (isfinite(number))
        return 0;
    return expression_fail(&machine->expression->text, step->at, machine->err, "the result is no finite number");
}

static int call(struct machine *machine, const struct expression_step *step)
{
    struct operand *arguments = &machine->stack[machine->count - step->count];
    struct operand result = {.at = step->at};
    const char *expected;
    char text[2 * CLIP_SIZE];
    bool none = false;
    int wrong = 0;

    for (int i = 0; i < step->count; i++) {
        if (expect_by(machine, &arguments[i], step->function->takes, step))
            return -1;
        none |= arguments[i].value.kind == VALUE_NONE;
    }
    if (!none) {
        expected = step->function->apply(arguments, step->count, &result.value, &wrong);
        if (expected)
            return expression_fail(&machine->expression->text, arguments[wrong].at, machine->err,
                                   "'%s' needs %s, found %s", step->function->name, expected,
                                   value_shown(&arguments[wrong].value, text));
        if (result.value.kind == VALUE_NUMBER && check_finite(machine, step, result.value.number))
            return -1;
    }
    machine->count -= step->count - 1;
    machine->stack[machine->count - 1] = result;
    return 0;
}

/* Numbers a and b into a number. */
static int calculate(struct machine *machine, const struct expression_step *step, const struct operand *a, const struct operand *b,
                     struct value *result)
{
    const struct expression_text *text = &machine->expression->text;
    double x = a->value.number, y = b->value.number;

    if ((step->kind == STEP_DIVIDE || step->kind == STEP_REMAINDER) && y == 0)
        return expression_fail(text, step->at, machine->err, "'%s' divides by 0", operator_text(step->kind));
    if (step->kind == STEP_REMAINDER && (!whole(x) || !whole(y)))
        return expression_fail(text, whole(x) ? b->at : a->at, machine->err,
                               "'%%' needs whole numbers, found the number %.15g", whole(x) ? y : x);
    *result = value_number(step->kind == STEP_ADD ? x + y : step->kind == STEP_SUBTRACT ? x - y :
                           step->kind == STEP_MULTIPLY ? x * y : step->kind == STEP_DIVIDE ? x / y : fmod(x, y));
    return check_finite(machine, step, result->number);
}

static bool ordered(enum step_kind kind, double x, double y)
{
    return kind == STEP_LESS ? x < y : kind == STEP_LESS_EQUAL ? x <= y : kind == STEP_GREATER ? x > y : x >= y;
}

static int compare_equal(struct machine *machine, const struct expression_step *step, const struct operand *a,
                         const struct operand *b, struct value *result)
{
    char left[2 * CLIP_SIZE], right[2 * CLIP_SIZE];

    if (a->value.kind != b->value.kind || a->value.kind > VALUE_TEXT)
        return expression_fail(&machine->expression->text, step->at, machine->err,
                               "'%s' compares values of one kind, found %s and %s", operator_text(step->kind),
                               value_shown(&a->value, left), value_shown(&b->value, right));
    *result = value_boolean(value_equal(&a->value, &b->value) == (step->kind == STEP_EQUAL));
    return 0;
}

/* `true` and `false` take precedence over `none`: if one operand decides the result, the other may be unknown. */
static struct value join(const struct expression_step *step, const struct value *a, const struct value *b)
{
    bool settles = step->kind == STEP_OR;

    if ((a->kind == VALUE_BOOLEAN && a->boolean == settles) || (b->kind == VALUE_BOOLEAN && b->boolean == settles))
        return value_boolean(settles);
    if (a->kind == VALUE_NONE || b->kind == VALUE_NONE)
        return (struct value){.kind = VALUE_NONE};
    return value_boolean(!settles);
}

static int binary(struct machine *machine, const struct expression_step *step)
{
    struct operand *a = &machine->stack[machine->count - 2], *b = a + 1;
    bool logical = step->kind == STEP_OR || step->kind == STEP_AND;
    bool equality = step->kind == STEP_EQUAL || step->kind == STEP_UNEQUAL;
    enum value_kind kind = logical ? VALUE_BOOLEAN : VALUE_NUMBER;
    struct value result = {.kind = VALUE_NONE};
    int rc = 0;

    if (!equality && (expect_by(machine, a, kind, step) || expect_by(machine, b, kind, step)))
        return -1;
    if (logical)
        result = join(step, &a->value, &b->value);
    else if (a->value.kind == VALUE_NONE || b->value.kind == VALUE_NONE)
        rc = 0;
    else if (equality)
        rc = compare_equal(machine, step, a, b, &result);
    else if (step->kind >= STEP_ADD)
        rc = calculate(machine, step, a, b, &result);
    else
        result = value_boolean(ordered(step->kind, a->value.number, b->value.number));
    a->value = result;
    machine->count--;
    return rc;
}

static int unary(struct machine *machine, const struct expression_step *step)
{
    struct operand *top = &machine->stack[machine->count - 1];

    if (expect_by(machine, top, step->kind == STEP_NOT ? VALUE_BOOLEAN : VALUE_NUMBER, step))
        return -1;
    top->at = step->at;
    top->value.number = -top->value.number;
    top->value.boolean = !top->value.boolean;
    return 0;
}

/* "a ||": whether the top settles it. */
static int look(struct machine *machine, const struct expression_step *step, bool *settled)
{
    const struct operand *top = &machine->stack[machine->count - 1];
    bool or_else = step->kind == STEP_OR_ELSE;

    *settled = top->value.kind == VALUE_BOOLEAN && top->value.boolean == or_else;
    return expect(machine, top, VALUE_BOOLEAN, or_else ? "'||'" : "'&&'");
}

int expression_evaluate(const struct expression *expression, name_value *value_of, void *context, struct value *result,
                        struct error *err)
{
    struct machine machine;
    bool settled;

#ifdef __clang_analyzer__        /* which cannot follow what lies on the stack */
    memset(&machine, 0, sizeof machine);
#endif
    machine.expression = expression;
    machine.err = err;
    machine.count = 0;
    for (size_t i = 0; i < expression->count; i++) {
        const struct expression_step *step = &expression->items[i];
        struct operand *top = &machine.stack[machine.count];
        int rc = 0;

        if (step->kind == STEP_VALUE || step->kind == STEP_NAME) {
            *top = (struct operand){step->value, step->at};
            rc = step->kind == STEP_NAME ? value_of(context, step->name, &top->value, err) : 0;
            machine.count++;
        } else if (step->kind == STEP_OR_ELSE || step->kind == STEP_AND_THEN) {
            rc = look(&machine, step, &settled);
            i = settled ? step->target - 1 : i;
        } else if (step->kind == STEP_CALL) {
            rc = call(&machine, step);
        } else {
            rc = step->kind == STEP_NEGATE || step->kind == STEP_NOT ? unary(&machine, step) : binary(&machine, step);
        }
        if (rc)
            return -1;
    }
    BUG_IF(machine.count != 1);
    *result = machine.stack[0].value;
    return 0;
}

int expression_holds(const struct expression *expression, name_value *value_of, void *context, struct value *result,
                     struct error *err)
{
    char text[2 * CLIP_SIZE];

    if (expression_evaluate(expression, value_of, context, result, err))
        return -1;
    if (result->kind == VALUE_BOOLEAN || result->kind == VALUE_NONE)
        return 0;
    return expression_fail(&expression->text, 0, err, "a condition is true or false, this is %s; expected a comparison "
                           "such as 'a == b'", value_shown(result, text));
}
