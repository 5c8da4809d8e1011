/* The questions of the planners that choose tensor degrees too: Piper, Alpa and FlexFlow's Markov chain. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "planners/alpa.h"
#include "planners/choice_internal.h"
#include "planners/mcmc.h"

/* Each layer with and without recomputation: recomputed, it runs its forward again and keeps its input alone. */
static struct piper_node *piper_nodes(struct planner_choices *choices, const struct profiled *profiled)
{
    struct piper_node *nodes = ARENA_ARRAY(&choices->arena, struct piper_node, profiled->count);

    for (size_t i = 0; i < profiled->count; i++)
        for (size_t k = 0; k < profiled->ntensors; k++) {
            const struct profiled_layer *layer = &profiled->layers[k][i];
            double seconds = layer->forward + layer->backward;

            nodes[i].options[k][0] = (struct piper_option){seconds, layer->weights, layer->activation, layer->states};
            nodes[i].options[k][1] = (struct piper_option){seconds + layer->forward, layer->weights, layer->input,
                                                           layer->states};
        }
    return nodes;
}

int choose_piper(struct planner_choices *choices, const struct profiled *profiled, struct error *err)
{
    struct piper_edge *edges = ARENA_ARRAY(&choices->arena, struct piper_edge, profiled->count);
    struct piper question = {
        .nodes = piper_nodes(choices, profiled), .edges = edges, .nnodes = profiled->count, .nedges = profiled->count - 1,
        .tensors = profiled->tensors, .ntensors = profiled->ntensors, .devices = profiled->gpus,
        .micro_batches = choice_samples(profiled) / profiled->micro, .memory = profiled->memory,
        .bandwidth = profiled_bandwidth(profiled, profiled->gpus),
    };
    struct planned planned, best = {.objective = INFINITY};

    for (size_t i = 0; i + 1 < profiled->count; i++)
        edges[i] = (struct piper_edge){(int)i, (int)i + 1, profiled_output(profiled, 0, i), 0, 0};
    (void)err;
    piper_plan(&question, &planned);
    for (size_t k = 0; k < profiled->ntensors && !choice_runs(profiled, &planned, false); k++)
        for (int d = 1; d * profiled->tensors[k] <= profiled->gpus; d++) {
            struct planned equal;

            question.data = d;
            question.tensor = profiled->tensors[k];
            if (question.micro_batches % d)
                continue;
            piper_plan(&question, &equal);
            if (equal.objective < best.objective)
                best = equal;
        }
    choice_flushed(choices, profiled, &(struct flushed){"piper", "", "of the slowest stage, a micro-batch", false},
                   &planned, &best);
    return 0;
}

/* Networks whose micro-batches are divided over 1, 2, 4 ... replicas. */
enum { DIVIDED = 8 };
struct divided {
    struct profiled profiles[DIVIDED];
    size_t count;
    int micro_batches;
};

static const struct profiled *divided_by(const struct divided *divided, int data)
{
    for (size_t i = 0; i < divided->count; i++)
        if (data == 1 << i)
            return &divided->profiles[i];
    return NULL;
}

static size_t degree_of(const struct profiled *profiled, int tensor)
{
    size_t k = 0;

    while (profiled->tensors[k] != tensor)
        k++;
    return k;
}

/* A stage divides each micro-batch over its replicas; their sums, once an iteration, count a micro-batch's share. */
static double alpa_cost(const void *context, const struct planned_stage *stage, int *behind)
{
    const struct divided *divided = context;
    const struct profiled *profiled = divided_by(divided, stage->data);
    size_t k = degree_of(profiled, stage->tensor);
    double seconds = 0, states = 0, held = 0, weights = 0, flying;

    for (size_t i = stage->begin; i < stage->end; i++) {
        const struct profiled_layer *layer = &profiled->layers[k][i];

        seconds += layer->forward + layer->backward;
        weights += layer->weights;
        states += layer->states;
        held += layer->activation;
    }
    flying = held > 0                  ? floor((profiled->memory - states) / held) :
             profiled->memory < states ? 0 :
                                         (double)profiled->count;
    *behind = flying < (double)profiled->count ? (int)flying - 1 : (int)profiled->count;
    return seconds + 2 * weights * (stage->data - 1) / stage->data / divided->micro_batches /
                         profiled_bandwidth(profiled, stage->data * stage->tensor);
}

/* Submeshes: powers of two GPUs up to a node, then whole nodes; in each all tensor degrees. */
static size_t submeshes_of(const struct divided *divided, struct planned_stage *submeshes, size_t most)
{
    const struct profiled *profiled = &divided->profiles[0];
    size_t count = 0;

    for (int gpus = 1; gpus <= profiled->gpus; gpus = gpus < profiled->per_node ? 2 * gpus : gpus + profiled->per_node)
        for (size_t k = 0; k < profiled->ntensors; k++) {
            int data = gpus / profiled->tensors[k];

            if (gpus % profiled->tensors[k] || !divided_by(divided, data) || count == most)
                continue;
            submeshes[count++] = (struct planned_stage){0, 0, data, profiled->tensors[k], 0};
        }
    return count;
}

static void ask_alpa(struct planner_choices *choices, const struct profiled *profiled, const struct divided *divided)
{
    enum { MOST = 256 };
    struct planned_stage submeshes[MOST];
    size_t count = submeshes_of(divided, submeshes, MOST);
    struct alpa question = {profiled->count, profiled->gpus, divided->micro_batches, submeshes, count,
                            alpa_cost,       divided};
    struct planned planned, best = {.objective = INFINITY};

    alpa_plan(&question, &planned);
    question.nsubmeshes = 1;
    for (size_t i = 0; i < count && !choice_runs(profiled, &planned, true); i++) {
        struct planned equal;

        question.submeshes = &submeshes[i];
        alpa_plan(&question, &equal);
        if (equal.objective < best.objective)
            best = equal;
    }
    choice_flushed(choices, profiled, &(struct flushed){"alpa", "", "of an iteration", true}, &planned, &best);
}

int choose_alpa(struct planner_choices *choices, const struct profiled *profiled, struct error *err)
{
    struct divided divided = {.micro_batches = choice_samples(profiled) / profiled->micro};
    int rc = 0;

    for (int data = 1; !rc && divided.count < DIVIDED && profiled_divides(profiled, data); data *= 2)
        rc = profiled_read(profiled->scenario, profiled->micro / data, &divided.profiles[divided.count++], err);
    if (!rc)
        ask_alpa(choices, profiled, &divided);
    for (size_t i = 0; i < divided.count; i++)
        profiled_release(&divided.profiles[i]);
    return rc;
}

/* ms of an iteration of all layers one after another, each on tensors[state] x as many replicas as there are GPUs for;
 * between layers of unequal degrees the whole batch's activations change their places. */
static double chain_cost(const void *context, const int *state)
{
    const struct profiled *profiled = context;
    double seconds = 0;

    for (size_t i = 0; i < profiled->count; i++) {
        size_t k = (size_t)state[i];
        const struct profiled_layer *layer = &profiled->layers[k][i];
        int data = profiled->gpus / profiled->tensors[k];
        double micro_batches = ceil((double)choice_samples(profiled) / data / profiled->micro);

        seconds += micro_batches * (layer->forward + layer->backward);
        seconds += 2 * layer->weights * (data - 1) / data / profiled_bandwidth(profiled, profiled->gpus);
        if (i && state[i] != state[i - 1])
            seconds += 2 * layer->input * micro_batches / profiled_bandwidth(profiled, profiled->gpus);
    }
    return 1e3 * seconds;
}

int choose_mcmc(struct planner_choices *choices, const struct profiled *profiled, struct error *err)
{
    enum { BUDGET = 20000 };
    int *state = ARENA_ARRAY(&choices->arena, int, profiled->count);
    int *configurations = ARENA_ARRAY(&choices->arena, int, profiled->count);
    struct mcmc chain = {.operators = profiled->count,
                         .configurations = configurations,
                         .cost = chain_cost,
                         .context = profiled,
                         .alpha = 1.2,
                         .budget = BUDGET,
                         .seed = (uint64_t)profiled->scenario->simulation.seed};
    struct planned planned = {.count = 0}, best = {.objective = INFINITY};

    (void)err;
    for (size_t i = 0; i < profiled->count; i++)
        configurations[i] = (int)profiled->ntensors;
    planned.objective = 1e-3 * mcmc_search(&chain, state);
    for (size_t i = 0, begin = 0; i < profiled->count && planned.count < PLANNED_MOST; i++)
        if (i + 1 == profiled->count || state[i + 1] != state[i]) {
            int tensor = profiled->tensors[state[i]];

            planned.stages[planned.count++] = (struct planned_stage){begin, i + 1, profiled->gpus / tensor, tensor, 0};
            begin = i + 1;
        }
    for (size_t k = 0; k < profiled->ntensors && planned.count > 1; k++) {
        double seconds;

        for (size_t i = 0; i < profiled->count; i++)
            state[i] = (int)k;
        seconds = 1e-3 * chain_cost(profiled, state);
        if (seconds < best.objective)
            best = (struct planned){
                seconds, 1, {{0, profiled->count, profiled->gpus / profiled->tensors[k], profiled->tensors[k], 0}}};
    }
    choice_flushed(choices, profiled, &(struct flushed){"mcmc", "", "of an iteration", false}, &planned, &best);
    for (size_t i = 0; i < choices->count; i++) /* its layers take turns on the same GPUs */
        if (!strcmp(choices->items[i].method, "mcmc"))
            choices->items[i].gpus = profiled->gpus;
    return 0;
}
