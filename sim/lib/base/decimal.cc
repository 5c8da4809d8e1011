/* The one file in C++, whose standard library has what C's lacks. */
#include "base/decimal.h"

#include <charconv>

char *decimal_text(double value, char text[DECIMAL_SIZE])
{
    double size = value < 0 ? -value : value;
    bool short_enough = size == 0 || (size >= 1e-4 && size < 1e16);

    *std::to_chars(text, text + DECIMAL_SIZE - 1, value,
                   short_enough ? std::chars_format::fixed : std::chars_format::general).ptr = '\0';
    return text;
}

void decimal_write(double value, FILE *out)
{
    char text[DECIMAL_SIZE];

    fputs(decimal_text(value, text), out);
}

char *decimal_integer(long long value, char text[DECIMAL_SIZE])
{
    char *end = std::to_chars(text, text + DECIMAL_SIZE - 1, value).ptr;

    *end = '\0';
    return end;
}

void decimal_digits(double value, char digits[DECIMAL_SIZE], int *point)
{
    char text[DECIMAL_SIZE];
    const char *end = std::to_chars(text, text + DECIMAL_SIZE, value, std::chars_format::scientific).ptr, *at = text;

    for (; *at != 'e'; at++)
        if (*at != '.')
            *digits++ = *at;
    *digits = '\0';
    at += at[1] == '+' ? 2 : 1;
    std::from_chars(at, end, *point);
    *point += 1;
}
