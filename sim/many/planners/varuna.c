#include "planners/varuna.h"

#include <math.h>

struct varuna_choice varuna_plan(const struct varuna *question)
{
    struct varuna_choice best = {.seconds = INFINITY};

    for (int depth = 1; depth < question->cut_points && depth <= question->gpus; depth++) {
        struct varuna_choice choice = {.depth = depth, .data = question->gpus / depth};
        int samples = question->batch / choice.data;         /* of a replica */

        if (question->cut_points % depth || !samples)
            continue;
        for (int micro = 1; micro <= samples; micro *= 2) {      /* the largest micro-batch that fits */
            struct varuna_choice larger = choice;

            larger.micro = micro;
            if (!question->fits(question->context, &larger))
                break;
            choice.micro = micro;
        }
        if (!choice.micro)
            continue;
        choice.micro_batches = (samples + choice.micro - 1) / choice.micro;
        choice.seconds = question->seconds(question->context, &choice);
        if (choice.seconds < best.seconds)
            best = choice;
    }
    return best;
}
