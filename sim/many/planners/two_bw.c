#include "planners/two_bw.h"

#include <math.h>

double two_bw_cost(const struct two_bw *question, int width, int depth, double *memory)
{
    int blocks = question->blocks / depth;
    double compute = question->seconds * blocks;
    double transfer = depth > 1 ? 2 * question->output / question->depth[depth] : 0;
    double exchange = 2 * (width - 1) * question->weights * blocks / question->width[width];

    *memory = question->held * (2 * question->weights * blocks + question->activations * blocks * depth);
    return fmax(compute, fmax(transfer, exchange)) / width;
}

void two_bw_plan(const struct two_bw *question, struct planned *planned)
{
    *planned = (struct planned){.objective = INFINITY};
    for (int width = 1; width <= question->workers; width++) {
        int depth = question->workers / width;
        double memory, cost;

        if (question->workers % width || depth > question->blocks || depth > PLANNED_MOST)
            continue;
        cost = two_bw_cost(question, width, depth, &memory);
        if (memory > question->memory || cost >= planned->objective)
            continue;
        *planned = (struct planned){.objective = cost, .count = (size_t)depth};
        for (int s = 0, at = 0; s < depth; s++) {
            int share = question->blocks / depth + (s < question->blocks % depth);

            planned->stages[s] = (struct planned_stage){(size_t)at, (size_t)(at + share), width, 1, 0};
            at += share;
        }
    }
}
