#include "stage/stage_memory.h"

#include <limits.h>
#include <math.h>

/* The logits stay in memory during the backward of all layers. */
static void hold_logits(struct stage_peaks *peaks, double logits)
{
    peaks->plain.backward += logits;
    peaks->recompute.backward += logits;
    peaks->ahead += logits;
}

/* Megatron recomputes layer by layer, or in segments of several layers, during the backward. The inputs of all segments
 * are kept. The activations of one segment live from its recomputation to its backward; the activations of all segments
 * live together if the backward for weights comes later. If a schedule recomputes a whole stage ahead of its backward,
 * the input of its first block is kept, and the activations of all blocks are recomputed. Layers outside of blocks are
 * not recomputed. If only some blocks are recomputed, the others keep all activations, and a recomputed block after one
 * of them starts from its own input. */
void stage_peaks_add(struct stage_peaks *peaks, struct stage *stage, const struct scenario *scenario,
                     const struct layer *layer)
{
    bool ahead = scenario_schedule(scenario)->recompute != RECOMPUTE_WITH_GRADIENT;
    int every = ahead ? INT_MAX : scenario->memory.recompute.every ? scenario->memory.recompute.every : 1;
    /* under DataParallel replica 0 computes the loss (lower_replicate.c) */
    bool loss = layer->role == LAYER_LAST && scenario->parallelism.data > 1 &&
                scenario->recipe.weights.when == WEIGHTS_FORWARD;
    bool held = layer->role == LAYER_LAST && scenario->memory.logits == LOGITS_HELD;
    struct workspace workspace = loss ? (struct workspace){0} : layer->workspace;

    if (held)
        hold_logits(peaks, layer->output);
    if (held && !loss && scenario->memory.cross_entropy != CROSS_ENTROPY_FUSED)
        workspace.backward += layer->output;     /* an unfused loss needs one more tensor of that size */
    stage->activation += layer->activation;
    peaks->blocks += layer->role == LAYER_BLOCK;
    if (stage->slices[stage->nslices - 1].recompute) {
        bool begins = peaks->run++ % every == 0;
        double back = layer->activation - (begins ? layer->within : 0);      /* without the checkpoint, which is kept */

        stage->checkpoint += begins ? layer->checkpoint : 0;
        stage->working_split += back;
        peaks->segment = (begins ? 0 : peaks->segment) + back;
    } else {
        stage->checkpoint += layer->activation;
        peaks->segment = 0;
        peaks->run = 0;
    }
    peaks->kept = fmax(peaks->kept, stage->checkpoint + peaks->segment);
    peaks->plain.forward = fmax(peaks->plain.forward, stage->activation + workspace.forward);
    peaks->plain.backward = fmax(peaks->plain.backward, stage->activation + workspace.backward);
    peaks->recompute.forward = fmax(peaks->recompute.forward, stage->checkpoint + workspace.forward);
    peaks->recompute.backward =
        fmax(peaks->recompute.backward, stage->checkpoint + peaks->segment + workspace.backward);
    peaks->ahead = fmax(peaks->ahead, workspace.backward);
}

void stage_peaks_settle(const struct stage_peaks *peaks, struct stage *stage, const struct scenario *scenario)
{
    bool ahead = scenario_schedule(scenario)->recompute != RECOMPUTE_WITH_GRADIENT;

    stage->working = ahead ? stage->working_split : fmax(0, peaks->kept - stage->checkpoint);
    stage->plain.forward = fmax(0, peaks->plain.forward - stage->activation);
    stage->plain.backward = fmax(0, peaks->plain.backward - stage->activation);
    stage->recompute.forward = stage->ahead.forward = fmax(0, peaks->recompute.forward - stage->checkpoint);
    stage->ahead.backward = peaks->ahead;
    stage->recompute.backward =
        ahead ? peaks->ahead : fmax(0, peaks->recompute.backward - stage->checkpoint - stage->working);
}

/* The same where it gathers and frees tensor by tensor (DeepSpeed): of two neighbouring pieces, wherever they are. */
static struct whole_units tensors_at_once(const struct scenario *scenario, const struct stage *stage, bool gradients)
{
    struct whole_units whole = {0};
    double before = 0, piece;

    for (size_t i = 0; i < stage->nslices; i++)
        for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
            for (size_t next = 0; next < stage->slices[i].ntensors;) {
                struct by_class own = {{0}};

                next = slice_piece(&stage->slices[i], class, next, &piece);
                own.of[class] = piece;
                piece = gradients ? piece : recipe_exchanged(scenario, own);
                whole.blocks = fmax(whole.blocks, before + piece);
                before = piece;
            }
    return whole;
}

/* Elements that ZeRO 3 holds whole at once: of two neighbouring blocks, one computed while the other is gathered or
 * freed, and of all layers outside of blocks. These are FSDP's outermost unit: it is not freed between forward and
 * backward (torch/distributed/fsdp, after the forward of a root), and its gradients are whole from the output layer's
 * backward to the embedding's. A recomputation plan may go from any block to any other. */
static struct whole_units whole_at_once(const struct scenario *scenario, const struct stage *stage, bool gradients)
{
    bool jumps = !gradients && scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL;
    struct whole_units whole = {0};
    double before = 0;

    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];
        double here = gradients ? slice->parameters : recipe_exchanged(scenario, slice_weights(slice));

        if (!slice->block) {
            whole.outside += here;
            continue;
        }
        whole.blocks = fmax(whole.blocks, before + here);
        before = jumps ? fmax(before, here) : here;
    }
    return whole;
}

void stage_whole_layers(struct stage *stage, const struct scenario *scenario)
{
    double each = scenario_parameter_bytes(scenario).weights;

    struct whole_units (*at_once)(const struct scenario *, const struct stage *, bool) =
        scenario->parallelism.flatten ? whole_at_once : tensors_at_once;

    stage->gathered = at_once(scenario, stage, false);
    stage->gathered.outside *= each;
    stage->gathered.blocks *= each;
    stage->scattered = at_once(scenario, stage, true);
}
