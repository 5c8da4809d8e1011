#include "base/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/decimal.h"
#include "base/number.h"

/* A prefix multiplies by 10^exp10 * 2^exp2. An alias is read but never written. Tables are in ascending order. */
struct prefix {
    const char *text;
    int exp10, exp2;
    bool alias;
};
static const struct prefix none[] = {{"", 0, 0, false}, {NULL, 0, 0, false}};
static const struct prefix time_prefixes[] = {
    {"n", -9, 0, false}, {"u", -6, 0, false}, {"\u00b5", -6, 0, true}, {"\u03bc", -6, 0, true}, {"m", -3, 0, false},
    {"", 0, 0, false}, {NULL, 0, 0, false},
};
static const struct prefix byte_prefixes[] = {
    {"", 0, 0, false}, {"k", 3, 0, false}, {"K", 3, 0, true}, {"Ki", 0, 10, false}, {"M", 6, 0, false},
    {"Mi", 0, 20, false}, {"G", 9, 0, false}, {"Gi", 0, 30, false}, {"T", 12, 0, false}, {"Ti", 0, 40, false},
    {"P", 15, 0, false}, {"Pi", 0, 50, false}, {NULL, 0, 0, false},
};
static const struct prefix flop_prefixes[] = {
    {"", 0, 0, false}, {"k", 3, 0, false}, {"K", 3, 0, true}, {"M", 6, 0, false}, {"G", 9, 0, false},
    {"T", 12, 0, false}, {"P", 15, 0, false}, {"E", 18, 0, false}, {NULL, 0, 0, false},
};
static const struct prefix power_prefixes[] = {
    {"m", -3, 0, false}, {"", 0, 0, false}, {"k", 3, 0, false}, {"M", 6, 0, false}, {"G", 9, 0, false},
    {NULL, 0, 0, false},
};
static const struct prefix count_prefixes[] = {
    {"", 0, 0, false}, {"k", 3, 0, false}, {"K", 3, 0, true}, {"M", 6, 0, false}, {"G", 9, 0, true},
    {"B", 9, 0, false}, {"T", 12, 0, false}, {NULL, 0, 0, false},
};

static const struct prefix sample_prefixes[] = {
    {"", 0, 0, false}, {"k ", 3, 0, false}, {"k", 3, 0, true}, {"M ", 6, 0, false}, {"M", 6, 0, true}, {NULL, 0, 0, false},
};

/* A unit's name, which follows the prefix. One such unit is `scale` of the SI unit. */
struct name {
    const char *text;
    double scale;
    const struct prefix *prefixes;
    bool alias;
};

#define DIGITS "([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
#define ZERO "[+-]?(0+[.]?0*|[.]0+)([eE][+-]?[0-9]+)?"
#define PATTERN(units) "^(" ZERO "|[+-]?" DIGITS " *(" units "))$"
#define BYTE_PREFIX "([kKMGTP]|[KMGTP]i)?"

static const struct rule {
    const char *expectation, *pattern;
    struct name names[5];       /* up to the first whose text is NULL */
} rules[] = {
    [UNIT_NUMBER] = {"a number such as '0.85'", "^[+-]?" DIGITS "$", {{"", 1, none, false}}},
    [UNIT_COUNT] = {"a count such as '1536' or '124.4 M'", "^[+-]?" DIGITS "( *[kKMGBT])?$",
                    {{"", 1, count_prefixes, false}}},
    [UNIT_TIME] = {"a time such as '1.5 us' or '2 h'", PATTERN("(n|u|\u00b5|\u03bc|m)?s|min|h|d"),
                   {{"s", 1, time_prefixes, false}, {"min", 60, none, false}, {"h", SECONDS_AN_HOUR, none, false},
                    {"d", SECONDS_A_DAY, none, false}}},
    [UNIT_BYTES] = {"bytes such as '80 GiB' or '25 MB'", PATTERN(BYTE_PREFIX "B"), {{"B", 1, byte_prefixes, false}}},
    [UNIT_BANDWIDTH] = {"a bandwidth such as '300 GB/s' or '400 Gb/s'",
                        PATTERN(BYTE_PREFIX "(B/s|b/s|bit/s|bps)"),
                        {{"B/s", 1, byte_prefixes, false}, {"b/s", 0.125, byte_prefixes, true},
                         {"bit/s", 0.125, byte_prefixes, true}, {"bps", 0.125, byte_prefixes, true}}},
    [UNIT_FLOP] = {"floating-point operations such as '3.9 GFLOP'", PATTERN("[kKMGTPE]?FLOP"),
                   {{"FLOP", 1, flop_prefixes, false}}},
    [UNIT_FLOP_RATE] = {"a rate such as '312 TFLOP/s'", PATTERN("[kKMGTPE]?(FLOP/s|FLOPS)"),
                        {{"FLOP/s", 1, flop_prefixes, false}, {"FLOPS", 1, flop_prefixes, true}}},
    [UNIT_POWER] = {"a power such as '400 W' or '1.2 kW'", PATTERN("[mkMG]?W"), {{"W", 1, power_prefixes, false}}},
    [UNIT_PRICE] = {"a price such as '2.50 $/h'", PATTERN("[$]/h|USD/h"),
                    {{"$/h", 1, none, false}, {"USD/h", 1, none, true}}},
    [UNIT_SAMPLE_RATE] = {"samples a second such as '500 samples/s' or '10 k samples/s'", PATTERN("([kM] ?)?samples/s"),
                          {{"samples/s", 1, sample_prefixes, false}}},
};
static const struct name bits[] = {{"b", 1, byte_prefixes, false}, {"bit", 1, byte_prefixes, false}, {0}};

const char *unit_expectation(enum unit unit)
{
    return rules[unit].expectation;
}

const char *unit_pattern(enum unit unit)
{
    return rules[unit].pattern;
}

/* Finds the name and the prefix that the suffix consists of; false if there are none. */
static bool suffix_find(const struct name *names, const char *suffix, const struct name **name,
                        const struct prefix **prefix)
{
    size_t length = strlen(suffix);

    for (const struct name *n = names; n->text; n++) {
        size_t tail = strlen(n->text);

        if (tail > length || strcmp(suffix + length - tail, n->text) != 0)
            continue;
        for (const struct prefix *p = n->prefixes; p->text; p++)
            if (strlen(p->text) == length - tail && memcmp(p->text, suffix, length - tail) == 0) {
                *name = n;
                *prefix = p;
                return true;
            }
    }
    return false;
}

/* A decimal prefix is added to the exponent before conversion, so that "1.5 us" is the double nearest to 1.5e-6. */
static double value_with(const struct number *number, const struct name *name, const struct prefix *prefix)
{
    return ldexp(number_value(number, prefix->exp10) * name->scale, prefix->exp2);
}

static int suffix_refuse(enum unit unit, const char *text, const char *suffix, char *why, size_t size)
{
    const struct name *name;
    const struct prefix *prefix;
    char shown[CLIP_SIZE], shown_suffix[CLIP_SIZE / 2];

    text_clip(text, shown, sizeof shown);
    text_clip(suffix, shown_suffix, sizeof shown_suffix);
    if (!*suffix)
        snprintf(why, size, "'%s' has no unit; expected %s", shown, rules[unit].expectation);
    else if (strpbrk(suffix, "0123456789_.") || suffix[strspn(suffix, " ")] == '\0')
        snprintf(why, size, "'%s' is not a number; expected %s", shown, rules[unit].expectation);
    else if (unit == UNIT_NUMBER)
        snprintf(why, size, "'%s' has '%s' behind the number; expected %s", shown, shown_suffix,
                 rules[unit].expectation);
    else if (unit == UNIT_BYTES && suffix_find(bits, suffix, &name, &prefix))
        snprintf(why, size, "'%s' is in bits (b means bits, B means bytes); expected %s", shown,
                 rules[unit].expectation);
    else
        snprintf(why, size, "'%s' has the unit '%s'; expected %s", shown, shown_suffix, rules[unit].expectation);
    return -1;
}

int unit_parse(enum unit unit, const char *text, double *value, char *why, size_t size)
{
    struct number number;
    const struct name *name;
    const struct prefix *prefix;
    const char *suffix = number_scan(text, &number);
    char shown[CLIP_SIZE];
    double result;

    if (!suffix) {
        snprintf(why, size, "'%s' is not a number; expected %s", text_clip(text, shown, sizeof shown),
                 rules[unit].expectation);
        return -1;
    }
    if (suffix[strspn(suffix, " ")])
        suffix += strspn(suffix, " ");
    if (!*suffix && number.zero) {
        *value = 0;
        return 0;
    }
    if (!suffix_find(rules[unit].names, suffix, &name, &prefix))
        return suffix_refuse(unit, text, suffix, why, size);
    result = value_with(&number, name, prefix);
    if (isinf(result) || (result == 0 && !number.zero)) {
        snprintf(why, size, "'%s' is too %s", text_clip(text, shown, sizeof shown), isinf(result) ? "large" : "small");
        return -1;
    }
    *value = number.zero ? 0 : result;    /* no negative zero */
    return 0;
}

/* Of positive values. The least: a part in 1e15 of what there is one of (doubles tell no smaller one apart), light over
 * 0.3 um, a byte, or an operation, a second. The most: 30,000 years; far more bytes and operations than any machine has
 * stored or done. */
static const struct { double least, most; } plausible[] = {
    [UNIT_NUMBER] = {1e-15, 1e18}, [UNIT_COUNT] = {1e-15, 1e18}, [UNIT_TIME] = {1e-15, 1e12},
    [UNIT_BYTES] = {1e-15, 1e18}, [UNIT_BANDWIDTH] = {1, 1e18}, [UNIT_FLOP] = {1e-15, 1e30}, [UNIT_FLOP_RATE] = {1, 1e24},
    [UNIT_POWER] = {1e-15, 1e12}, [UNIT_PRICE] = {1e-15, 1e9}, [UNIT_SAMPLE_RATE] = {1e-6, 1e18},
};

void unit_bounds(enum unit unit, double *least, double *most)
{
    *least = plausible[unit].least;
    *most = plausible[unit].most;
}

int unit_plausible(enum unit unit, double value, const char *text, char *why, size_t size)
{
    double least = plausible[unit].least, most = plausible[unit].most;
    char shown[CLIP_SIZE], limit[48];

    if (value <= 0 || (value >= least && value <= most))
        return 0;
    snprintf(why, size, "'%s' is too %s; expected at %s %s", text_clip(text, shown, sizeof shown),
             value > most ? "large" : "small", value > most ? "most" : "least",
             unit_format(unit, value > most ? most : least, limit, sizeof limit));
    return -1;
}

/* The digits of a positive number: it is 0.digits * 10^point. */
struct decimal { double value; char digits[DECIMAL_SIZE]; int count, point; };

static void decimal_of(double value, struct decimal *decimal)
{
    if (value == decimal->value)
        return;                  /* the same number with another prefix */
    decimal->value = value;
    decimal_digits(value, decimal->digits, &decimal->point);
    decimal->count = (int)strlen(decimal->digits);
}

static bool needs_exponent(int point)
{
    return point > 15 || point < -3;
}

/* Writes 0.digits * 10^point. */
static void digits_write(const struct decimal *decimal, int point, char *out)
{
    const char *digits = decimal->digits;

    if (needs_exponent(point))
        sprintf(out, "%.1s%s%se%d", digits, decimal->count > 1 ? "." : "", digits + 1, point - 1);
    else if (point <= 0)
        sprintf(out, "0.%.*s%s", -point, "000", digits);
    else if (decimal->count <= point)
        sprintf(out, "%s%.*s", digits, point - decimal->count, "00000000000000");
    else
        sprintf(out, "%.*s.%s", point, digits, digits + point);
}

/* How many characters that writes. */
static int digits_width(const struct decimal *decimal, int point)
{
    char exponent[16];

    if (needs_exponent(point))
        return decimal->count + (decimal->count > 1) + 1 + sprintf(exponent, "%d", point - 1);
    return point <= 0 ? 2 - point + decimal->count : decimal->count <= point ? point : decimal->count + 1;
}

/* The lower, the easier to read is the value with that name and prefix; negative: it cannot be written exactly so. */
static int score_of(double value, const struct name *name, const struct prefix *prefix, struct decimal *decimal)
{
    double quotient = ldexp(value / name->scale, -prefix->exp2);
    int point;

    if (name->alias || prefix->alias)
        return -1;
    if (name->scale != 1 && !(quotient >= 1 && quotient < 1e15 && quotient == floor(quotient) &&
                              quotient * name->scale == value))
        return -1;
    if (prefix->exp2 != 0 && ldexp(quotient, prefix->exp2) != value)
        return -1;
    decimal_of(quotient, decimal);
    point = decimal->point - prefix->exp10;
    return (needs_exponent(point) ? 1000 : 0) + (point <= 0 ? 100 : 0) + digits_width(decimal, point) +
           (*name->text || *prefix->text) + (int)strlen(prefix->text) + (int)strlen(name->text);
}

static void exact_write(double value, const struct name *name, const struct prefix *prefix, char out[48])
{
    struct decimal decimal = {.value = NAN};

    decimal_of(ldexp(value / name->scale, -prefix->exp2), &decimal);
    digits_write(&decimal, decimal.point - prefix->exp10, out);
    strcat(strcat(strcat(out, *name->text || *prefix->text ? " " : ""), prefix->text), name->text);
}

char *unit_format(enum unit unit, double value, char *buffer, size_t size)
{
    struct decimal decimal = {.value = NAN};
    const struct name *best_name = NULL;
    const struct prefix *best_prefix = NULL;
    int best_score = -1;
    char text[48];

    if (!isfinite(value)) {
        snprintf(buffer, size, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return buffer;
    }
    if (value == 0) {
        snprintf(buffer, size, *rules[unit].names[0].text ? "0 %s" : "0", rules[unit].names[0].text);
        return buffer;
    }
    for (const struct name *name = rules[unit].names; name->text; name++)
        for (const struct prefix *prefix = name->prefixes; prefix->text; prefix++) {
            int score = score_of(fabs(value), name, prefix, &decimal);

            if (score >= 0 && (best_score < 0 || score <= best_score)) {
                best_score = score;
                best_name = name;
                best_prefix = prefix;
            }
        }
    BUG_IF(!best_name);
    exact_write(fabs(value), best_name, best_prefix, text);
    snprintf(buffer, size, "%s%s", value < 0 ? "-" : "", text);
    return buffer;
}

/* Whether short output may use that name and prefix. Bytes have binary prefixes, other units decimal ones; minutes,
 * hours and days are used from two on, prefixes of counts from 10 k on. */
static bool short_fits(enum unit unit, double value, double quotient, const struct name *name,
                       const struct prefix *prefix)
{
    char text[32];

    if (unit == UNIT_BYTES ? prefix->exp10 != 0 : prefix->exp2 != 0)
        return false;
    if (unit == UNIT_COUNT && *prefix->text && value < 1e4)
        return false;
    snprintf(text, sizeof text, "%.4g", quotient);
    return strtod(text, NULL) >= (name->scale == 1 ? 1 : 2);
}

/* The name and the prefix with which people read the value. */
static void short_find(enum unit unit, double value, const struct name **best_name, const struct prefix **best_prefix)
{
    *best_name = &rules[unit].names[0];
    *best_prefix = (*best_name)->prefixes;
    while ((value == 0 || !isfinite(value)) && *(*best_prefix)->text)
        ++*best_prefix;         /* "0 s", not "0 ns" */
    for (const struct name *name = *best_name; name->text; name++)
        for (const struct prefix *prefix = name->prefixes; prefix->text; prefix++)
            if (!name->alias && !prefix->alias && isfinite(value) &&
                short_fits(unit, fabs(value), fabs(value) / name->scale / pow(10, prefix->exp10) /
                           ldexp(1, prefix->exp2), name, prefix)) {
                *best_name = name;
                *best_prefix = prefix;
            }
}

double unit_readable(enum unit unit, double value, char text[16])
{
    const struct name *name;
    const struct prefix *prefix;

    short_find(unit, value, &name, &prefix);
    snprintf(text, 16, "%s%s", prefix->text, name->text);
    return name->scale * pow(10, prefix->exp10) * ldexp(1, prefix->exp2);
}

char *unit_format_like(enum unit unit, double like, double value, char *buffer, size_t size)
{
    char name[16];
    double quotient = value / unit_readable(unit, like, name);

    snprintf(buffer, size, fabs(quotient) >= 9999.5 && fabs(quotient) < 1e15 ? "%.0f%s%s" : "%.4g%s%s", quotient,
             *name ? " " : "", name);
    return buffer;
}

char *unit_format_short(enum unit unit, double value, char *buffer, size_t size)
{
    return unit_format_like(unit, value, value, buffer, size);
}
