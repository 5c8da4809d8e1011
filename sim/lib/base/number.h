/* number: decimal numbers at the start of texts. */
#ifndef DTSIM_NUMBER_H
#define DTSIM_NUMBER_H

#include <stdbool.h>

enum { NUMBER_MAX = 64 };    /* characters of a number */

struct number {
    char mantissa[NUMBER_MAX + 1];
    long long exponent;
    bool zero;
};

/* Reads a decimal number at the start of text. Returns its end, or NULL if there is no number. */
const char *number_scan(const char *text, struct number *number);
/* The double nearest to the number times 10^exp10. */
double number_value(const struct number *number, int exp10);

#endif
