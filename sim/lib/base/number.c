#include "base/number.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *digits_skip(const char *at)
{
    while (*at >= '0' && *at <= '9')
        at++;
    return at;
}

const char *number_scan(const char *text, struct number *number)
{
    const char *start = text + (*text == '+' || *text == '-'), *point = digits_skip(start), *end = point;
    const char *exponent;

    if (*end == '.')
        end = digits_skip(end + 1);
    if (end - start == (*point == '.') || end - text > NUMBER_MAX)
        return NULL;
    memcpy(number->mantissa, text, (size_t)(end - text));
    number->mantissa[end - text] = '\0';
    number->zero = strspn(start, "0.") >= (size_t)(end - start);
    number->exponent = 0;
    if (*end != 'e' && *end != 'E')
        return end;
    exponent = end + 1 + (end[1] == '+' || end[1] == '-');
    if (digits_skip(exponent) == exponent)
        return end;
    number->exponent = strtoll(end + 1, NULL, 10);
    /* Limited to a value that no double holds, and to which a prefix can add without overflow of a long. */
    if (number->exponent > 100000 || number->exponent < -100000)
        number->exponent = number->exponent > 0 ? 100000 : -100000;
    return digits_skip(exponent);
}

/* Whether the mantissa times 10^exp10 is an integer over or times a power of ten that doubles hold exactly: then one
 * division or multiplication rounds it as strtod does (Clinger 1990, "How to read floating point numbers accurately"). */
static bool is_short(const struct number *number, long long exp10, double *value)
{
    enum { DIGITS_HELD = 15, POWERS_HELD = 22 };
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *at = number->mantissa + (*number->mantissa == '+' || *number->mantissa == '-');
    bool fraction = false;
    int64_t integer = 0;
    int digits = 0;

    for (; *at && digits <= DIGITS_HELD; at++)
        if (*at == '.') {
            fraction = true;
        } else {
            integer = 10 * integer + (*at - '0');
            digits++;
            exp10 -= fraction;
        }
    if (digits > DIGITS_HELD || exp10 > POWERS_HELD || exp10 < -POWERS_HELD)
        return false;
    *value = exp10 < 0 ? (double)integer / tens[-exp10] : (double)integer * tens[exp10];
    *value = *number->mantissa == '-' ? -*value : *value;
    return true;
}

double number_value(const struct number *number, int exp10)
{
    char text[NUMBER_MAX + 32];
    double value;

    if (is_short(number, number->exponent + exp10, &value))
        return value;
    snprintf(text, sizeof text, "%se%lld", number->mantissa, number->exponent + exp10);
    return strtod(text, NULL);
}
