#include "stage/stage_memory.h"
#include "stage/stage_kernels.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "hardware/precision.h"
#include "kernels/newton_schulz.h"
#include "model/model.h"
#include "scenario/recipe.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

size_t slice_piece(const struct slice *slice, enum parameter_class class, size_t from, double *parameters)
{
    /* DeepSpeed gathers no smaller ones, every GPU keeps them (param_persistence_threshold, runtime/zero/config.py).
     * Here they go with a large one. */
    enum { SMALL = 100000 };
    bool large = false;

    *parameters = 0;
    for (; from < slice->ntensors; from++) {
        if (slice_class(slice, from) != class)
            continue;
        if (large && slice->tensors[from] > SMALL)
            break;
        large |= slice->tensors[from] > SMALL;
        *parameters += slice->tensors[from];
    }
    return from;
}

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
    peaks->blocks += layer_is_block(layer);
    peaks->waiting += scenario->batch.slice * layer_keys(layer);
    if (stage->slices[0].recompute) {        /* the layer's: slices begin with the last one */
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

/* Bytes of the optimizer's states of one tensor. */
static double tensor_states(const struct optimizer_states *optimizer, double elements, double rows)
{
    enum { LEAST_QUANTIZED = 4096, QUANTIZED_BLOCK = 2048 };
    double quantized = elements < LEAST_QUANTIZED ? 0 : optimizer->quantized;
    double bytes = elements * (optimizer->full - 4 * quantized + quantized * (1 + 4.0 / QUANTIZED_BLOCK));

    return bytes + (optimizer->factored ? 4 * (rows > 0 ? rows + elements / rows : elements) : 0);
}

/* Muon keeps one moment of a matrix where AdamW keeps two of other tensors. Owners have whole matrices. */
static void add_momentum(struct stage *stage, const struct scenario *scenario, struct by_class *bytes)
{
    struct optimizer_states optimizer = precision_optimizer(&scenario->memory.precision);
    double master = scenario_parameter_bytes(scenario).master;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        int owners = scenario->recipe.divided[HELD_STATES][class];
        struct matrices matrices;
        struct owned_matrices owned;
        double elements;

        stage_matrices(scenario, stage, class, &matrices);
        elements = matrices_elements(&matrices);
        matrices_owned(&matrices, owners, &owned);
        bytes->of[class] -= elements * (optimizer.full - optimizer.matrix);
        stage->whole_matrices += (owned.elements - elements / owners) * (optimizer.matrix + master);
    }
}

struct by_class stage_states(struct stage *stage, const struct scenario *scenario)
{
    struct optimizer_states optimizer = precision_optimizer(&scenario->memory.precision);
    struct by_class bytes = {0};

    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];

        for (size_t k = 0; k < slice->ntensors; k++)
            bytes.of[slice_class(slice, k)] += tensor_states(
                &optimizer, slice->tensors[k], slice->rows ? slice->rows[k] : sqrt(slice->tensors[k]));
    }
    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        bytes.of[class] += stage->trained.of[class] * scenario_parameter_bytes(scenario).master;
    if (optimizer.matrix > 0)
        add_momentum(stage, scenario, &bytes);
    return bytes;
}

double stage_stashed(const struct stage *stage, const struct scenario *scenario)
{
    double each = scenario_schedule(scenario)->stashes_fp32 ? 4 : scenario_parameter_bytes(scenario).weights;

    return (stage->versions - 1) * stage->parameters * each;
}

struct narrow_copies stage_narrow_copies(const struct stage *stage, const struct scenario *scenario)
{
    const struct memory_spec *memory = &scenario->memory;
    bool full = memory->recompute.mode == RECOMPUTE_FULL, some = memory->recompute.mode == RECOMPUTE_OPERATORS;
    bool passes = memory->precision.fp8_weights == FP8_WEIGHTS_CAST &&
                  scenario_schedule(scenario)->recompute == RECOMPUTE_WITH_GRADIENT;
    struct narrow_copies copies = {0};

    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];
        double weights = slice->block ? slice->parameters + slice->frozen : 0;

        if (passes && (some || (full && slice->recompute)))
            copies.passing = fmax(copies.passing, weights);
        else
            copies.lasting += weights;
    }
    return copies;
}

/* The shapes of which a rank has met a weight. */
struct shapes { struct linear *items; size_t count, capacity; };

/* B of a layer's weights whose shapes were not met before. */
static double new_shapes(struct shapes *met, const struct slice *slice, const struct scenario *scenario)
{
    double elements = 0;

    for (size_t i = 0; i < slice->nlinears; i++) {
        const struct linear *linear = &slice->linears[i];
        bool known = scenario->memory.dummy_gradients <= (int)linear->place;     /* none is kept */

        for (size_t k = 0; k < met->count && !known; k++)
            known = met->items[k].out == linear->out && met->items[k].in == linear->in;
        if (known)
            continue;
        *GROW(met) = *linear;
        elements += linear->out * linear->in;
    }
    return elements > 0 ? elements * scenario_parameter_bytes(scenario).weights : 0;
}

double rank_dummy_gradients(const struct scenario *scenario, const struct stage *stages, int rank)
{
    struct shapes met = {0};
    double bytes = 0;

    for (int chunk = 0; chunk < plan_chunks(&scenario->plan, rank); chunk++) {
        const struct stage *stage = &stages[plan_virtual_stage(&scenario->plan, rank, chunk)];

        for (size_t i = 0; i < stage->nslices; i++)
            bytes += new_shapes(&met, &stage->slices[i], scenario);
    }
    free(met.items);
    return bytes;
}

void stage_peaks_settle(const struct stage_peaks *peaks, struct stage *stage, const struct scenario *scenario)
{
    bool ahead = scenario_schedule(scenario)->recompute != RECOMPUTE_WITH_GRADIENT;

    stage->working = ahead ? stage->working_split : fmax(0, peaks->kept - stage->checkpoint);
    stage->plain.forward = fmax(0, peaks->plain.forward - stage->activation);
    stage->plain.backward = fmax(0, peaks->plain.backward - stage->activation) + peaks->waiting;
    stage->recompute.forward = stage->ahead.forward = fmax(0, peaks->recompute.forward - stage->checkpoint);
    stage->ahead.backward = peaks->ahead;
    stage->recompute.backward =
        ahead ? peaks->ahead : fmax(0, peaks->recompute.backward - stage->checkpoint - stage->working);
}

/* Adds the steps of a layer, and numbers its pieces from `first` on; returns the number after the last. Frozen
 * parameters of a class are a piece of their own. */
static size_t add_layer_steps(struct tensor_walk *walk, const struct slice *slice, enum work_kind kind, size_t first)
{
    const double frozen[] = {[PARAMETERS_COMMON] = slice->frozen - slice->frozen_apart, [PARAMETERS_APART] = slice->frozen_apart};
    double all = slice->parameters + slice->frozen, piece;
    size_t begin = walk->steps.count;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        for (size_t next = 0; next < slice->ntensors;) {
            next = slice_piece(slice, class, next, &piece);
            if (piece > 0)
                *GROW(&walk->steps) =
                    (struct tensor_step){slice, kind, class, first++, piece, piece, piece / all, false};
        }
    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        if (frozen[class] > 0 || (walk->steps.count == begin && slice->frozen == 0))
            *GROW(&walk->steps) = (struct tensor_step){slice, kind, class, first++, frozen[class], 0, all > 0 ? frozen[class] / all : 1, false};
    for (size_t i = begin, k = walk->steps.count; kind != FORWARD && kind != RECOMPUTE && i + 1 < k--; i++) {
        struct tensor_step swap = walk->steps.items[i];

        walk->steps.items[i] = walk->steps.items[k];
        walk->steps.items[k] = swap;
    }
    walk->steps.items[walk->steps.count - 1].ends = true;
    return first;
}

/* The embedding's step: of its largest tensor, the first. */
static size_t held_step(const struct tensor_walk *walk, const struct scenario *scenario, const struct stage *stage)
{
    const struct transformer *shape = scenario->model.transformer;
    const struct slice *embedding = &stage->slices[stage->nslices - 1];
    size_t held = walk->steps.count;

    for (size_t i = 0; i < walk->steps.count && shape && shape->tied && shape->head != HEAD_NONE; i++)
        if (walk->steps.items[i].slice == embedding &&
            (held == walk->steps.count || walk->steps.items[i].piece < walk->steps.items[held].piece))
            held = i;
    return held;
}

void tensor_walk_init(struct tensor_walk *walk, const struct scenario *scenario, const struct stage *stage,
                      enum work_kind kind, bool fused)
{
    bool forwards = kind == FORWARD || kind == RECOMPUTE;
    size_t next = 0;

    *walk = (struct tensor_walk){.spec = &scenario->parallelism};
    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[forwards ? stage->nslices - 1 - i : i];
        size_t first = next;

        if (kind == RECOMPUTE && !slice->recompute)
            continue;
        if (fused && slice->recompute && !forwards)
            add_layer_steps(walk, slice, RECOMPUTE, first);
        next = add_layer_steps(walk, slice, kind, first);
    }
    walk->whole = xcalloc(next + 1, sizeof *walk->whole);
    walk->held = held_step(walk, scenario, stage);
}

void tensor_walk_release(struct tensor_walk *walk)
{
    free(walk->steps.items);
    free(walk->whole);
}

static bool take(struct tensor_walk *walk, size_t k)
{
    const struct tensor_step *step = &walk->steps.items[k];

    if (walk->whole[step->piece])
        return false;
    walk->whole[step->piece] = true;
    walk->live += step->parameters;
    return true;
}

bool tensor_walk_gathers(struct tensor_walk *walk, size_t k, size_t *step)
{
    *step = k == 0 && walk->held < walk->steps.count ? walk->held : k;
    if (take(walk, *step))
        return true;
    *step = k;
    if (take(walk, k))
        return true;
    walk->ahead = walk->ahead > k ? walk->ahead : k + 1;
    while (walk->ahead < walk->steps.count && walk->live < walk->spec->live_parameters &&
           walk->ahead_of < walk->spec->prefetch) {
        *step = walk->ahead++;
        if (take(walk, *step)) {
            walk->ahead_of += walk->steps.items[*step].parameters;
            return true;
        }
    }
    return false;
}

void tensor_walk_leave(struct tensor_walk *walk, size_t k)
{
    const struct tensor_step *step = &walk->steps.items[k];
    bool stays = walk->held < walk->steps.count && step->piece == walk->steps.items[walk->held].piece;
    double passed = 0;

    for (size_t i = k + 1; i < walk->steps.count && !stays; i++) {
        if (i >= walk->ahead && passed >= walk->spec->reuse_distance)
            break;
        stays = walk->steps.items[i].piece == step->piece;
        passed += walk->steps.items[i].parameters;
    }
    walk->ahead_of = 0;
    walk->whole[step->piece] = stays;
    walk->live -= stays ? 0 : step->parameters;
}

/* The most that one kind of work has whole where it gathers tensor by tensor. */
static double most_live(const struct scenario *scenario, const struct stage *stage, enum work_kind kind)
{
    bool fused = scenario->memory.recompute.mode == RECOMPUTE_FULL;
    struct tensor_walk walk;
    double most = 0, apart = 0;

    tensor_walk_init(&walk, scenario, stage, kind, fused);
    for (size_t k = 0, step; k < walk.steps.count; k++) {
        while (tensor_walk_gathers(&walk, k, &step))
            ;
        most = fmax(most, walk.live);
        tensor_walk_leave(&walk, k);
    }
    for (size_t i = 0; i < stage->nslices; i++) {
        struct by_class weights = slice_weights(&stage->slices[i]);

        apart += weights.of[PARAMETERS_COMMON] + weights.of[PARAMETERS_APART] - recipe_exchanged(scenario, weights);
    }
    tensor_walk_release(&walk);
    return fmax(0, most - apart);
}

/* The same where it gathers and frees tensor by tensor (DeepSpeed). Gradients are whole from a piece's backward to the
 * end of its scatter, together with the next piece's. */
static struct whole_units tensors_at_once(const struct scenario *scenario, const struct stage *stage, bool gradients)
{
    struct whole_units whole = {0};
    double before = 0, piece;

    if (!gradients) {
        whole.blocks = fmax(most_live(scenario, stage, FORWARD), most_live(scenario, stage, BACKWARD));
        return whole;
    }
    for (size_t i = 0; i < stage->nslices; i++)
        for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
            for (size_t next = 0; next < stage->slices[i].ntensors;) {
                next = slice_piece(&stage->slices[i], class, next, &piece);
                whole.blocks = fmax(whole.blocks, before + piece);
                before = piece;
            }
    return whole;
}

/* Elements that ZeRO 3 holds whole at once: of two neighbouring blocks, one computed while the other is gathered or
 * freed, and of all layers outside of blocks. These are FSDP's outermost unit: it is not freed between forward and
 * backward (torch/distributed/fsdp, after the forward of a root), and its gradients are whole from the output layer's
 * backward to the embedding's. A recomputation plan may go from any block to any other. Weights that stay after a work
 * are all whole at once, as those outside of blocks are. */
static struct whole_units whole_at_once(const struct scenario *scenario, const struct stage *stage, bool gradients)
{
    bool jumps = !gradients && scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL;
    bool stay = !gradients && (scenario->recipe.weights.stay_forward || scenario->recipe.weights.stay_backward);
    struct whole_units whole = {0};
    double before = 0;

    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];
        double here = gradients ? slice->parameters : recipe_exchanged(scenario, slice_weights(slice));

        if (!slice->block || stay) {
            whole.root += here;
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
    stage->gathered.root *= each;
    stage->gathered.blocks *= each;
    stage->scattered = at_once(scenario, stage, true);
}
