/* What a layer exchanges: one loop over its operators.
 *
 * All-reduces of a tensor-parallel group are Megatron's f and g (Shoeybi et al. 2019, figure 3): two per block in
 * forward and in backward; one for the output of the vocabulary-parallel embedding; one for the gradient of the output
 * layer's input. */
#include "model/model.h"

#include <math.h>
#include <stddef.h>

struct sends layer_sends(const struct layer *layer, enum sending what, bool again)
{
    struct sends sum = {0};

    for (size_t i = 0; i < layer->noperators; i++) {
        const struct sends *sent = &layer->operators[i].sends[what];

        if (again && !layer->operators[i].again)
            continue;
        sum.forward += sent->forward;
        sum.backward += sent->backward;
        sum.bytes = fmax(sum.bytes, sent->bytes);
    }
    return sum;
}

double layer_keys(const struct layer *layer)
{
    return layer_sends(layer, SENT_KEYS, false).bytes;
}

bool layer_dispatches(const struct layer *layer)
{
    return layer_sends(layer, SENT_ROWS, false).forward > 0;
}

static bool in_column(const struct operator *op, enum column_product column)
{
    static const enum half halves[] = {
        [COLUMN_ATTENTION] = HALF_ATTENTION, [COLUMN_MLP] = HALF_MLP, [COLUMN_OUTPUT] = HALF_NEITHER};

    return op->half == halves[column];
}

const struct operator *layer_column(const struct layer *layer, enum column_product column)
{
    for (size_t i = 0; i < layer->noperators; i++) {
        const struct operator *op = &layer->operators[i];

        if (in_column(op, column) && op->sends[SENT_INPUT].backward && op->product)
            return op;
    }
    return NULL;
}

const struct operator *layer_behind(const struct layer *layer, enum column_product column)
{
    size_t i = 0;

    while (i < layer->noperators && !(in_column(&layer->operators[i], column) && layer->operators[i].pieces))
        i++;
    return i < layer->noperators && layer_column(layer, column) && layer->operators[i].product ? &layer->operators[i] : NULL;
}
