#include "lower/resolve.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/progress.h"

/* When a row may go on. Ranks are visited one after another, visit v is of rank v modulo their number; in a visit the
 * replicas try in the same way. Turns are ordered by visit, then by try. */
struct turn { uint64_t visit, try; };

struct resolving {
    const struct script *script;
    uint32_t ranks;
    uint32_t *left;                  /* a label: how many steps have yet to give it */
    /* the rows that wait for a label, as a linked list of row numbers plus 1; 0 ends it */
    uint32_t *waiting;               /* a label: the row that came last */
    uint32_t *behind;                /* a row: the row that came before it and waits for the same label */
    uint32_t *next;                  /* a row: its next step */
    bool *done;                      /* a label: the shared step that waits for it first is done */
    struct turns { struct turn *items; size_t count, capacity; } ready;      /* a heap, the earliest on top */
    struct turn now;
};

void script_row(struct script *script)
{
    *GROW(&script->rows) = (uint32_t)script->steps.count;
}

void script_add(struct script *script, struct script_step step)
{
    step.row = (uint32_t)script->rows.count - 1;
    step.needs = (struct labels_at){(uint32_t)script->needs.count, 0};
    step.gives = (struct labels_at){(uint32_t)script->gives.count, 0};
    *GROW(&script->steps) = step;
}

void script_need(struct script *script, uint32_t label)
{
    *GROW(&script->needs) = label;
    script->steps.items[script->steps.count - 1].needs.count++;
}

void script_give(struct script *script, uint32_t label)
{
    *GROW(&script->gives) = label;
    script->steps.items[script->steps.count - 1].gives.count++;
}

void script_release(struct script *script)
{
    free(script->steps.items);
    free(script->needs.items);
    free(script->gives.items);
    free(script->rows.items);
    memset(script, 0, sizeof *script);
}

static bool before(struct turn a, struct turn b)
{
    return a.visit < b.visit || (a.visit == b.visit && a.try < b.try);
}

static void push(struct turns *ready, struct turn turn)
{
    size_t at = ready->count;

    for (*GROW(ready) = turn; at > 0 && before(turn, ready->items[(at - 1) / 2]); at = (at - 1) / 2)
        ready->items[at] = ready->items[(at - 1) / 2];
    ready->items[at] = turn;
}

static struct turn pop(struct turns *ready)
{
    struct turn first = ready->items[0], last = ready->items[--ready->count];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < ready->count; at = child) {
        child += child + 1 < ready->count && before(ready->items[child + 1], ready->items[child]);
        if (!before(ready->items[child], last))
            break;
        ready->items[at] = ready->items[child];
    }
    ready->items[at] = last;
    return first;
}

/* The least number from `from` on that is `who` modulo `count`. */
static uint64_t next_of(uint64_t from, uint64_t who, uint64_t count)
{
    return from + (who + count - from % count) % count;
}

/* The row whose turn it is. */
static uint32_t turn_row(const struct resolving *state, struct turn turn)
{
    return (uint32_t)(turn.visit % state->ranks * state->script->replicas + turn.try % state->script->replicas);
}

/* The row's next turn after the present one. */
static struct turn next_turn(const struct resolving *state, uint32_t row)
{
    uint32_t replicas = state->script->replicas;
    struct turn turn = {next_of(state->now.visit, row / replicas, state->ranks), row % replicas};

    if (turn.visit == state->now.visit)
        turn.try = next_of(state->now.try + 1, row % replicas, replicas);
    return turn;
}

static void give(struct resolving *state, uint32_t label)
{
    if (--state->left[label])
        return;
    for (uint32_t row = state->waiting[label]; row; row = state->behind[row - 1])
        push(&state->ready, next_turn(state, row - 1));
}

/* The first label that the step waits for and that nobody has given yet; NO_LABEL: the step may be done. */
static uint32_t missing(const struct resolving *state, const struct script_step *step)
{
    const uint32_t *needs = state->script->needs.items + step->needs.first;

    for (uint32_t i = 0; i < step->needs.count; i++)
        if (state->left[needs[i]])
            return needs[i];
    return NO_LABEL;
}

static uint32_t row_end(const struct script *script, size_t row)
{
    return row + 1 < script->rows.count ? script->rows.items[row + 1] : (uint32_t)script->steps.count;
}

/* Does the step, and gives its labels. Returns false if it is shared and another row has done it. */
static bool perform(struct resolving *state, const struct script_step *step)
{
    const uint32_t *gives = state->script->gives.items + step->gives.first;

    if (step->shared) {
        bool *done = &state->done[state->script->needs.items[step->needs.first]];

        if (*done)
            return false;
        *done = true;
    }
    for (uint32_t i = 0; i < step->gives.count; i++)
        give(state, gives[i]);
    return true;
}

/* A row goes on until it waits. Returns how many steps it did. */
static size_t go_on(struct resolving *state, uint32_t row, const struct script_step **order)
{
    const struct script_step *step = state->script->steps.items + state->next[row];
    const struct script_step *end = state->script->steps.items + row_end(state->script, row);
    uint32_t label = NO_LABEL;
    size_t count = 0;

    for (; step < end && (label = missing(state, step)) == NO_LABEL; step++)
        if (perform(state, step))
            order[count++] = step;
    if (step < end) {
        state->behind[row] = state->waiting[label];
        state->waiting[label] = row + 1;
    }
    state->next[row] = (uint32_t)(step - state->script->steps.items);
    return count;
}

/* Whether the budget is spent, asked now and then; `done`: steps, so far. No operation is made of them yet. */
static bool is_over(const struct script *script, size_t done)
{
    return done % PROGRESS_OPERATIONS == 0 && progress_step(script->progress, "lowering", 0, 0, 0);
}

/* Counts who gives each label. Returns false, and says which, if a step waits for one that nobody gives. */
static bool count_givers(struct resolving *state, struct unresolved *why)
{
    const struct script *script = state->script;

    for (size_t i = 0; i < script->gives.count; i++)
        state->left[script->gives.items[i]]++;
    for (size_t i = 0; i < script->steps.count; i++) {
        const struct script_step *step = &script->steps.items[i];
        const uint32_t *needs = script->needs.items + step->needs.first;

        for (uint32_t k = 0; k < step->needs.count; k++)
            if (!state->left[needs[k]]) {
                *why = (struct unresolved){step, needs[k], true};
                return false;
            }
    }
    return true;
}

static void resolving_release(struct resolving *state)
{
    free(state->left);
    free(state->waiting);
    free(state->behind);
    free(state->next);
    free(state->done);
    free(state->ready.items);
}

const struct script_step **script_resolve(const struct script *script, size_t *count, struct unresolved *why)
{
    size_t rows = script->rows.count;
    const struct script_step **order = xcalloc(script->steps.count + 1, sizeof *order);
    struct resolving state = {
        .script = script, .ranks = (uint32_t)rows / script->replicas,
        .left = xcalloc(script->labels, sizeof *state.left),
        .waiting = xcalloc(script->labels, sizeof *state.waiting),
        .behind = xcalloc(rows, sizeof *state.behind), .next = xcalloc(rows, sizeof *state.next),
        .done = xcalloc(script->labels, sizeof *state.done),
    };
    bool over = is_over(script, 0), given = !over && count_givers(&state, why);

    *count = 0;
    for (uint32_t row = 0; row < rows; row++) {
        state.next[row] = script->rows.items[row];
        push(&state.ready, (struct turn){row / script->replicas, row % script->replicas});
    }
    for (size_t turns = 1; given && !over && state.ready.count; over = is_over(script, turns++)) {
        state.now = pop(&state.ready);
        *count += go_on(&state, turn_row(&state, state.now), order + *count);
    }
    for (size_t row = 0; given && !over && row < rows; row++)
        if (state.next[row] < row_end(script, row)) {
            const struct script_step *step = &script->steps.items[state.next[row]];

            *why = (struct unresolved){step, missing(&state, step), false};
        }
    resolving_release(&state);
    if (!over)
        return order;
    free(order);
    *count = 0;
    return NULL;
}
