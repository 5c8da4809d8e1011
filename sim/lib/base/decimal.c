#include "base/decimal.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

/* digits * 10^exponent */
struct shortest {
    uint64_t digits;
    int exponent;
};

/* Every integer from low to high reads back as the value, which is `value` and something more, or not. Drops digits while one
 * such integer is left, and takes the nearest to the value; of two, the even one. */
static struct shortest fewest(uint64_t low, uint64_t high, uint64_t value, bool more, int exponent)
{
    unsigned last = 0;               /* the digit that was dropped last */

    for (; (low + 9) / 10 <= high / 10; exponent++) {
        more |= last != 0;
        last = (unsigned)(value % 10);
        value /= 10;
        low = (low + 9) / 10;
        high /= 10;
    }
    value += last > 5 || (last == 5 && (more || value % 2));
    return (struct shortest){value < low ? low : value, exponent};
}

/* Of mantissa * 2^binary in [1e-13, 1e15). With 18 digits or 19 before the point (log10 may be wrong by one), four times the
 * value and the middles between it and its neighbours are fractions of 128 bits, with `shift` bits behind the point. */
static struct shortest shortest_near(uint64_t mantissa, int binary, double value)
{
    int power = 17 - (int)floor(log10(value)), shift = 2 - binary - power;
    wide five = 1, exact, low, high, behind;
    bool odd = mantissa % 2;         /* a middle reads back as the even neighbour */

    for (int i = 0; i < power; i++)
        five *= 5;
    behind = ((wide)1 << shift) - 1;
    exact = 4 * mantissa * five;
    low = exact - (mantissa == 1ull << 52 ? five : 2 * five);
    high = exact + 2 * five;
    low = odd ? (low >> shift) + 1 : (low + behind) >> shift;
    return fewest((uint64_t)low, (uint64_t)((high - (odd ? 1 : 0)) >> shift), (uint64_t)(exact >> shift), (exact & behind) != 0, -power);
}

/* Of any positive number, by the C library: few digits first. Below a power of two the neighbour is nearer, so what is above
 * may read back where the nearest does not. */
static struct shortest shortest_any(double value, bool power_of_two)
{
    for (int count = value < 2.3e-308 ? 1 : 15;; count++) {
        char text[DECIMAL_SIZE];
        struct shortest shortest;

        snprintf(text, sizeof text, "%.*e", count - 1, value);
        shortest.exponent = atoi(strchr(text, 'e') + 1) - count + 1;
        if (count > 1)
            memmove(text + 1, text + 2, strlen(text + 1));       /* without the point */
        shortest.digits = strtoull(text, NULL, 10);
        for (int above = 0; above <= power_of_two; above++, shortest.digits++) {
            snprintf(text, sizeof text, "%llue%d", (unsigned long long)shortest.digits, shortest.exponent);
            if (strtod(text, NULL) == value)
                return shortest;
        }
    }
}

void decimal_digits(double value, char digits[DECIMAL_SIZE], int *point)
{
    int binary;
    double fraction = frexp(value, &binary);
    uint64_t mantissa = (uint64_t)ldexp(fraction, 53);
    struct shortest shortest = value >= 1e-13 && value < 1e15 ? shortest_near(mantissa, binary - 53, value) :
                               shortest_any(value, fraction == 0.5);
    size_t length = (size_t)(decimal_integer((long long)shortest.digits, digits) - digits);

    *point = (int)length + shortest.exponent;
    while (digits[length - 1] == '0')
        length--;
    digits[length] = '\0';
}

/* The first bytes of a text; none where count is negative. Returns their end. */
static char *append(char *at, const char *text, int count)
{
    for (; count > 0; count--)
        *at++ = *text++;
    return at;
}

char *decimal_text(double value, char text[DECIMAL_SIZE])
{
    char digits[DECIMAL_SIZE], *at = text;
    double size = fabs(value);
    int point, length;

    if (!isfinite(value)) {
        strcpy(text, isnan(value) ? signbit(value) ? "-nan" : "nan" : value < 0 ? "-inf" : "inf");
        return text;
    }
    if (signbit(value))
        *at++ = '-';
    if (size < 1e15 && size == (double)(long long)size) {
        decimal_integer((long long)size, at);
        return text;
    }
    decimal_digits(size, digits, &point);
    length = (int)strlen(digits);
    if (point < -3 || point > 16) {
        at = append(at, digits, 1);
        at = append(at, ".", length > 1);
        at = append(at, digits + 1, length - 1);
        at = append(at, point > 0 ? "e+0" : "e-0", abs(point - 1) < 10 ? 3 : 2);
        decimal_integer(abs(point - 1), at);
        return text;
    }
    at = append(at, point <= 0 ? "0" : digits, point <= 0 ? 1 : point < length ? point : length);
    at = append(at, "0000000000000000", point - length);
    at = append(at, ".", point < length);
    at = append(at, "000", -point);
    *append(at, digits + (point > 0 ? point : 0), length - (point > 0 ? point : 0)) = '\0';
    return text;
}

void decimal_write(double value, FILE *out)
{
    char text[DECIMAL_SIZE];

    fputs(decimal_text(value, text), out);
}

char *decimal_integer(long long value, char text[DECIMAL_SIZE])
{
    char reversed[DECIMAL_SIZE], *at = reversed, *end = text;
    unsigned long long rest = value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;

    do
        *at++ = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *end++ = '-';
    while (at > reversed)
        *end++ = *--at;
    *end = '\0';
    return end;
}
