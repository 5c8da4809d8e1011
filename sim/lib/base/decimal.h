/* decimal: doubles as decimal text, as short as they read back equal. */
#ifndef DTSIM_DECIMAL_H
#define DTSIM_DECIMAL_H

#include <stdio.h>

enum { DECIMAL_SIZE = 32 };       /* bytes that hold every number, with the zero byte */

/* The fewest decimal digits that read back as the same double, with an exponent below 1e-4 and from 1e16 on: "0.1",
 * "41267713885.46032", "1e-07", "-0"; "inf", "-inf" or "nan" where it is not finite. The language of the environment
 * does not matter. Returns text. */
char *decimal_text(double value, char text[DECIMAL_SIZE]);
void decimal_write(double value, FILE *out);
/* An integer in decimal. Returns the place of the zero byte behind its last digit. */
char *decimal_integer(long long value, char text[DECIMAL_SIZE]);
/* The same digits without the point, of a positive finite value: the value is 0.digits * 10^point. */
void decimal_digits(double value, char digits[DECIMAL_SIZE], int *point);

#endif
