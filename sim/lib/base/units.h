/* units: reads and writes quantities with units ("3 us", "80 GiB", "400 Gb/s"). Inside the program all are SI. */
#ifndef DTSIM_UNITS_H
#define DTSIM_UNITS_H

#include <stddef.h>

/* The kind of a quantity, and its unit inside the program. */
enum unit {
    UNIT_NUMBER,     /* a bare number, no unit allowed: 0.85, 2, 1e-3 */
    UNIT_COUNT,      /* a bare number, or with k M B(illion) T: "124.4 M", "38 k" */
    UNIT_TIME,       /* s: "1.5 us", "2 h" */
    UNIT_BYTES,      /* B: "80 GiB", "25 MB"; decimal and binary prefixes; bits are refused with a hint */
    UNIT_BANDWIDTH,  /* B/s: "300 GB/s", "400 Gb/s", "24 GiB/s" (b: bits) */
    UNIT_FLOP,       /* FLOP: "3.9 GFLOP" */
    UNIT_FLOP_RATE,  /* FLOP/s: "312 TFLOP/s"; "TFLOPS" too */
    UNIT_POWER,      /* W: "400 W", "1.2 kW" */
    UNIT_PRICE,      /* $/h, also inside the program: "2.50 $/h", of one GPU */
    UNIT_SAMPLE_RATE,    /* samples/s: "500 samples/s", "10 k samples/s" */
};

enum { SECONDS_AN_HOUR = 3600, SECONDS_A_DAY = 24 * SECONDS_AN_HOUR, JOULES_A_KWH = 3600000 };

/* Reads text as a quantity of that unit into *value (SI). Returns 0, or -1 and in `why` (at most size bytes) a message
 * that says what is wrong and what is expected: "'80' has no unit; expected bytes such as '80 GiB' or '25 MB'". A bare
 * "0" is allowed for every unit. NaN, "inf", hexadecimal digits, underscores and trailing text are refused. */
int unit_parse(enum unit unit, const char *text, double *value, char *why, size_t size);

/* Checks that a quantity is of a size that real machines have: a value far outside is a mistake, and the arithmetic of
 * the engines is not made for it. Returns 0, or -1 and `why`, as unit_parse. `text` is the value as it was written.
 * Negative values pass. */
int unit_plausible(enum unit unit, double value, const char *text, char *why, size_t size);
/* The unit's bounds of positive values, for keys whose tables give no bounds. */
void unit_bounds(enum unit unit, double *least, double *most);

/* Writes value into buffer (at least 48 bytes) so that unit_parse reads exactly the same double back. It takes the
 * prefix that gives the shortest such text ("80 GiB", "300 GB/s", "1.5 us"). Returns buffer. */
char *unit_format(enum unit unit, double value, char *buffer, size_t size);

/* For people: four significant digits and a fitting prefix ("1.234 ms", "79.3 GiB"). */
char *unit_format_short(enum unit unit, double value, char *buffer, size_t size);
/* The same with the prefix that `like` gets, so that all numbers of a table have one prefix; `like` is usually the
 * largest. */
char *unit_format_like(enum unit unit, double like, double value, char *buffer, size_t size);

/* The unit in which people read the value: its name in `text` ("d", "ms", "GiB", "B" of a billion, ""), and how much of the
 * unit inside the program it is. */
double unit_readable(enum unit unit, double value, char text[16]);

/* The kind of the quantity and examples, for messages, help and the schema: "bytes such as '80 GiB' or '25 MB'". */
const char *unit_expectation(enum unit unit);
/* A regular expression (ECMA 262, anchored) that accepts the same text as unit_parse, for the JSON schema. */
const char *unit_pattern(enum unit unit);

#endif
