#include "sweep/axis.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "config/conf.h"
#include "config/field.h"
#include "scenario/scenario.h"

enum { DIGITS = 12 };            /* of a calculated value: what people write, not what doubles hold */

/* What is being read. */
struct reader {
    struct arena *arena;
    const char *what, *name;
    struct axis *axis;
    struct error *err;
};

#define FAIL(reader, loc, format, ...) \
    error_add((reader)->err, EXIT_INPUT, loc, "%s: %s: " format, (reader)->what, (reader)->name, __VA_ARGS__)

int axis_name_check(const char *what, const char *name, struct loc loc, struct error *err)
{
    bool word = !path_meant(name) && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") ==
                strlen(name) && *name && !strchr("0123456789", *name);

    return word ? 0 : path_check(what, name, "a path such as strategy.tensor, or a name of your own without dots", loc, err);
}

static void axis_add(struct reader *reader, size_t i, struct node *node)
{
    reader->axis->nodes[i] = node;
    reader->axis->values[i] = path_value(reader->axis->name, node);
}

static void axis_reserve(struct reader *reader, size_t count)
{
    reader->axis->count = count;
    reader->axis->nodes = ARENA_ARRAY(reader->arena, struct node *, count);
    reader->axis->values = ARENA_ARRAY(reader->arena, struct value, count);
}

/* The ends of a generator, in the unit that both have. */
struct ends {
    double from, to, third;      /* third: the step or the count; NaN: left out */
    enum unit unit;
    struct loc loc;
};

/* A number as the scenario gets it, in the ends' unit, without the noise of its calculation. */
static struct node *number_node(struct reader *reader, const struct ends *ends, double value)
{
    char text[64];
    struct node *node;

    snprintf(text, sizeof text, "%.*g", DIGITS, value);
    value = strtod(text, NULL) + 0.0;
    if (ends->unit == UNIT_NUMBER && value == floor(value) && fabs(value) < 1e15)
        snprintf(text, sizeof text, "%.0f", value);
    else
        unit_format(ends->unit, value, text, sizeof text);
    node = node_scalar(reader->arena, text, false);
    node->loc = ends->loc;
    return node;
}

/* The unit in which all texts are quantities: the path's own, else whichever they have in common. */
static int common_unit(struct reader *reader, const struct node *const *nodes, size_t count, struct loc loc,
                       enum unit *unit)
{
    static const enum unit units[] = {UNIT_NUMBER, UNIT_COUNT, UNIT_TIME, UNIT_BYTES, UNIT_BANDWIDTH, UNIT_FLOP,
                                      UNIT_FLOP_RATE, UNIT_POWER, UNIT_PRICE, UNIT_SAMPLE_RATE};
    const struct field *field = scenario_field(reader->name);
    char why[256];

    for (size_t u = 0; u < COUNT(units); u++) {
        size_t fits = 0;
        double value;

        *unit = units[u];
        if (field && field->kind == FIELD_QUANTITY && field->unit != *unit)
            continue;
        while (fits < count && nodes[fits]->kind == NODE_SCALAR &&
               !unit_parse(*unit, nodes[fits]->text, &value, why, sizeof why))
            fits++;
        if (fits == count)
            return 0;
    }
    return FAIL(reader, loc, "expected %s", field && field->kind == FIELD_QUANTITY ? unit_expectation(field->unit) :
                "numbers, or quantities of one unit");
}

static double number_of(enum unit unit, const struct node *node)
{
    char why[256];
    double value = 0;

    if (unit_parse(unit, node->text, &value, why, sizeof why))
        BUG("'%s' was read before", node->text);
    return value;
}

/* How many values there are to be. */
static int count_read(struct reader *reader, const struct node *node, double *count)
{
    char why[256];

    if (node->kind != NODE_SCALAR || unit_parse(UNIT_NUMBER, node->text, count, why, sizeof why) || *count < 2 ||
        *count > AXIS_MOST || *count != floor(*count))
        return FAIL(reader, node->loc, "the number of values is to be whole, from 2 to %d", AXIS_MOST);
    return 0;
}

/* [from, to] or [from, to, third]; `counts`: the third is a number of values and has no unit. */
static int ends_read(struct reader *reader, const struct node *node, const char *form, bool counts, struct ends *ends)
{
    size_t quantities = counts || node->count < 3 ? 2 : 3;

    *ends = (struct ends){.third = NAN, .loc = node->loc};
    if (node->kind != NODE_SEQUENCE || node->count < 2 || node->count > 3 || (counts && node->count != 3))
        return FAIL(reader, node->loc, "expected %s", form);
    if (common_unit(reader, (const struct node *const *)node->items, quantities, node->loc, &ends->unit))
        return -1;
    ends->from = number_of(ends->unit, node->items[0]);
    ends->to = number_of(ends->unit, node->items[1]);
    if (counts && count_read(reader, node->items[2], &ends->third))
        return -1;
    if (!counts && node->count == 3)
        ends->third = number_of(ends->unit, node->items[2]);
    if (ends->from > ends->to)
        return FAIL(reader, node->loc, "from '%s' down to '%s'; expected the smaller end first", node->items[0]->text,
                    node->items[1]->text);
    return 0;
}

static int read_range(struct reader *reader, const struct node *node)
{
    struct ends ends;
    double step, count;

    if (ends_read(reader, node, "[from, to] or [from, to, step]", false, &ends))
        return -1;
    step = isnan(ends.third) ? 1 : ends.third;
    if (isnan(ends.third) && ends.unit != UNIT_NUMBER)
        return FAIL(reader, node->loc, "expected a step of the same unit: [%s, %s, step]", node->items[0]->text,
                    node->items[1]->text);
    if (step <= 0)
        return FAIL(reader, node->loc, "a step of '%s'; expected more than 0", node->items[2]->text);
    count = floor((ends.to - ends.from) / step * (1 + 1e-12) + 1e-12) + 1;
    if (count > AXIS_MOST)
        return FAIL(reader, node->loc, "%.15g values; expected at most %d", count, AXIS_MOST);
    axis_reserve(reader, (size_t)count);
    for (size_t i = 0; i < reader->axis->count; i++)
        axis_add(reader, i, number_node(reader, &ends, ends.from + (double)i * step));
    return 0;
}

static int read_pow2(struct reader *reader, const struct node *node)
{
    struct ends ends;
    int low, high;

    if (ends_read(reader, node, "[from, to], both powers of two", false, &ends))
        return -1;
    if (!isnan(ends.third))
        return FAIL(reader, node->loc, "expected %s", "[from, to], both powers of two");
    for (size_t i = 0; i < 2; i++)
        if (frexp(i ? ends.to : ends.from, &low) != 0.5)
            return FAIL(reader, node->items[i]->loc, "'%s' is no power of two", node->items[i]->text);
    frexp(ends.from, &low);
    frexp(ends.to, &high);
    axis_reserve(reader, (size_t)(high - low) + 1);
    for (size_t i = 0; i < reader->axis->count; i++)
        axis_add(reader, i, number_node(reader, &ends, ldexp(ends.from, (int)i)));
    return 0;
}

/* The value at a share of the way between two ends. */
static double between(const struct ends *ends, double share, bool log)
{
    return log ? ends->from * pow(ends->to / ends->from, share) : ends->from + (ends->to - ends->from) * share;
}

static int positive_check(struct reader *reader, const struct ends *ends, bool log)
{
    return !log || ends->from > 0 ? 0 : FAIL(reader, ends->loc, "%s", "a logarithmic scale begins above 0");
}

static int read_steps(struct reader *reader, const struct node *node, bool log)
{
    struct ends ends;

    if (ends_read(reader, node, "[from, to, count]", true, &ends) || positive_check(reader, &ends, log))
        return -1;
    axis_reserve(reader, (size_t)ends.third);
    for (size_t i = 0; i < reader->axis->count; i++)
        axis_add(reader, i, number_node(reader, &ends, between(&ends, (double)i / (ends.third - 1), log)));
    return 0;
}

static int read_linear(struct reader *reader, const struct node *node)
{
    return read_steps(reader, node, false);
}

static int read_log(struct reader *reader, const struct node *node)
{
    return read_steps(reader, node, true);
}

struct random_spec {
    const struct node *node;
    const char *from, *to;
    int count, seed, scale;
    bool whole;
};
static const struct field random_fields[] = {
    {KEY(random_spec, from), .kind = FIELD_STRING, .required = true, .brief = "least value"},
    {KEY(random_spec, to), .kind = FIELD_STRING, .required = true, .brief = "largest value"},
    {KEY(random_spec, count), .kind = FIELD_INT, .min = 1, .max = AXIS_MOST, .required = true,
     .brief = "how many values are drawn"},
    {KEY(random_spec, seed), .kind = FIELD_INT, .min = 0, .max = INT_MAX, .fallback = "1",
     .brief = "another seed draws other values; each path has a row of its own"},
    {KEY(random_spec, scale), .kind = FIELD_CHOICE, .choices = NAMES("linear", "log"),
     .fallback = "linear", .brief = "each value, or each order of magnitude, is as likely as any other"},
    {KEY(random_spec, whole), .kind = FIELD_BOOL, .fallback = "false", .brief = "whole numbers alone"},
};
static const struct table random_table = {TABLE("sweep: random", "values drawn at random", random_spec, random_fields)};

/* Drawn values depend on the seed, the path and their number alone. */
static double draw(const struct reader *reader, const struct random_spec *spec, uint64_t index)
{
    uint64_t seed = (uint64_t)spec->seed;

    for (const char *c = reader->name; *c; c++)
        seed = random_bits(seed, (unsigned char)*c);
    return random_share(seed, index);
}

static int read_random(struct reader *reader, const struct node *node)
{
    struct random_spec spec;
    struct ends ends;
    struct node *list = node_sequence(reader->arena);

    if (field_parse(reader->arena, &random_table, node, &spec, reader->err))
        return -1;
    list->loc = node->loc;
    node_append(reader->arena, list, node_get(node, "from"));
    node_append(reader->arena, list, node_get(node, "to"));
    if (ends_read(reader, list, "from and to", false, &ends) || positive_check(reader, &ends, spec.scale))
        return -1;
    axis_reserve(reader, (size_t)spec.count);
    for (size_t i = 0; i < reader->axis->count; i++) {
        double share = draw(reader, &spec, i), value;

        if (!spec.whole)
            value = between(&ends, share, spec.scale);
        else if (spec.scale)
            value = fmin(fmax(round(between(&ends, share, true)), ceil(ends.from)), floor(ends.to));
        else
            value = ceil(ends.from) + floor(share * (floor(ends.to) - ceil(ends.from) + 1));
        axis_add(reader, i, number_node(reader, &ends, value));
    }
    return 0;
}

static const struct generator {
    const char *name, *usage, *brief;
    int (*read)(struct reader *reader, const struct node *node);
} generators[] = {
    {"range", "{range: [1, 9, 2]}", "from 1 as far as 9 in steps of 2; [1, 9] has steps of 1", read_range},
    {"pow2", "{pow2: [1, 16]}", "powers of two: 1, 2, 4, 8, 16", read_pow2},
    {"linear", "{linear: [0, 1, 5]}", "5 values with equal differences", read_linear},
    {"log", "{log: [1 GB/s, 100 GB/s, 5]}", "5 values with equal ratios", read_log},
    {"random", "{random: {from: 1, to: 9, count: 5}}", "5 values drawn at random; also seed, scale: log, whole: true",
     read_random},
};

void axis_help(FILE *out)
{
    for (size_t i = 0; i < COUNT(generators); i++)
        fprintf(out, "  %-38s %s\n", generators[i].usage, generators[i].brief);
}

static const char *generator_candidate(size_t i, const void *context)
{
    (void)context;
    return i < COUNT(generators) ? generators[i].name : NULL;
}

bool axis_generates(const struct node *node)
{
    for (size_t i = 0; node->kind == NODE_MAPPING && node->count == 1 && i < COUNT(generators); i++)
        if (!strcmp(generators[i].name, node->keys[0]))
            return true;
    return false;
}

static int read_generator(struct reader *reader, const struct node *node)
{
    const char *key = node->count == 1 ? node->keys[0] : "", *meant = nearest(key, generator_candidate, NULL);

    for (size_t i = 0; i < COUNT(generators); i++)
        if (!strcmp(generators[i].name, key))
            return generators[i].read(reader, node->items[0]);
    if (meant)
        return FAIL(reader, node->loc, "unknown kind of values '%s'; did you mean '%s'?", key, meant);
    return FAIL(reader, node->loc, "%s", "expected a list of values, or one of range, pow2, linear, log and random; a "
                "mapping that is itself a value stands in a list");
}

static int read_values(struct reader *reader, const struct node *node)
{
    if (node->kind == NODE_MAPPING)
        return read_generator(reader, node);
    if (node->kind == NODE_SCALAR) {
        if (node_is_null(node))
            return FAIL(reader, node->loc, "%s", "expected a value or a list of values, found nothing");
        axis_reserve(reader, 1);
        axis_add(reader, 0, (struct node *)(uintptr_t)node);
        return 0;
    }
    if (!node->count || node->count > AXIS_MOST)
        return FAIL(reader, node->loc, "%zu values; expected 1 to %d", node->count, AXIS_MOST);
    axis_reserve(reader, node->count);
    for (size_t i = 0; i < node->count; i++) {
        if (node_is_null(node->items[i]))
            return FAIL(reader, node->items[i]->loc, "%s", "expected a value in the list, found nothing");
        axis_add(reader, i, node->items[i]);
    }
    return 0;
}

int axis_read(struct arena *arena, const char *what, const char *name, struct loc loc, const struct node *node,
              struct axis *axis, struct error *err)
{
    struct reader reader = {arena, what, name, axis, err};
    int rc;

    *axis = (struct axis){.name = name, .loc = loc, .put = path_meant(name)};
    rc = axis_name_check(what, name, loc, err) || read_values(&reader, node) ? -1 : 0;
    for (size_t i = 0; !rc && i < axis->count; i++)
        rc = path_value_check(name, axis->nodes[i], err);
    return rc;
}
