#include "engine/jitter.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

/* splitmix64 (Steele, Lea and Flood 2014): mixes the next word of a key into 64 bits. */
static uint64_t mix(uint64_t state, uint64_t word)
{
    state += word + UINT64_C(0x9E3779B97F4A7C15);
    state = (state ^ (state >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    state = (state ^ (state >> 27)) * UINT64_C(0x94D049BB133111EB);
    return state ^ (state >> 31);
}

/* In (0, 1). */
static double uniform(uint64_t bits)
{
    return ((double)(bits >> 11) + 0.5) / 9007199254740992.0;
}

/* The C library's logarithm, exponential and cosine may be wrong in the last digit, and each library's in other places. These
 * are their series: the same bits on every machine, within 1e-15. */

/* log(1 + x) for x from -0.3 to 0.42: 2 atanh(x / (2 + x)). */
static double log_above(double x)
{
    double ratio = x / (2 + x), sum = 0;

    for (int i = 23; i >= 1; i -= 2)
        sum = sum * (ratio * ratio) + 1.0 / i;
    return 2 * ratio * sum;
}

/* log(x) for x > 0. */
static double logarithm(double x)
{
    int power;
    double fraction = frexp(x, &power);

    return fraction > 0.7 ? log_above(fraction - 1) + power * 0.69314718055994530942 :
           log_above(2 * fraction - 1) + (power - 1) * 0.69314718055994530942;
}

/* exp(x) for |x| < 700. */
static double exponential(double x)
{
    double power = round(x / 0.69314718055994530942), rest = x - power * 0.69314718055994530942, sum = 1;

    for (int i = 16; i >= 1; i--)
        sum = 1 + sum * rest / i;
    return ldexp(sum, (int)power);
}

/* cos(2 pi x) for x from 0 to 1. */
static double cosine(double x)
{
    double turn = fabs(x - 0.5), angle = 2 * 3.14159265358979323846 * fmin(turn, 0.5 - turn), sum = 1;

    for (int i = 24; i >= 2; i -= 2)
        sum = 1 - sum * angle * angle / (i * (i - 1));
    return turn < 0.25 ? -sum : sum;
}

/* Log-normal of mean 1: the logarithm is normal (Box and Muller 1958) with variance v and mean -v / 2, where
 * exp(v) - 1 is the square of the factor's deviation. */
static double factor(uint64_t key, double deviation)
{
    double square = deviation * deviation, variance = square < 0.4 ? log_above(square) : logarithm(1 + square);
    double normal = sqrt(-2 * logarithm(uniform(mix(key, 1)))) * cosine(uniform(mix(key, 2)));

    return exponential(sqrt(variance) * normal - variance / 2);
}

void jitter_apply(struct program *program, double deviation, long long seed)
{
    double *current = xcalloc(program->lanes.count + 1, sizeof *current);        /* a lane: its last work's factor */
    uint32_t *nameless = xcalloc(program->lanes.count + 1, sizeof *nameless);    /* a lane: works of no micro-batch */

    for (size_t i = 0; deviation > 0 && i < program->ops.count; i++) {
        struct op *op = &program->ops.items[i];
        const struct lane *lane = &program->lanes.items[op->lane];

        if (lane->kind != LANE_COMPUTE || op->kind != OP_COMPUTE)
            continue;
        if (!op->continues) {
            uint64_t key = mix(mix((uint64_t)seed, (uint64_t)lane->rank), op->what);

            key = mix(mix(key, (uint64_t)op->stage), op->mb >= 0 ? (uint64_t)op->mb : nameless[op->lane]++);
            current[op->lane] = factor(key, deviation);
        }
        double communication = op_traits(program, op)->compute.communication;

        op->amount = (op->amount - communication) * current[op->lane] + communication;
    }
    free(current);
    free(nameless);
}
