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

/* Log-normal of mean 1: the logarithm is normal (Box and Muller 1958) with variance v and mean -v / 2, where
 * exp(v) - 1 is the square of the factor's deviation. */
static double factor(uint64_t key, double deviation)
{
    double variance = log1p(deviation * deviation);
    double normal = sqrt(-2 * log(uniform(mix(key, 1)))) * cos(2 * 3.14159265358979323846 * uniform(mix(key, 2)));

    return exp(sqrt(variance) * normal - variance / 2);
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
