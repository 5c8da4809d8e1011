/* Labels and steps as text, for people. */
#include "lower/script_internal.h"

#include "base/base.h"
#include "schedule/schedule.h"

const char *const step_names[] = {
    [STEP_WORKS] = "works", [STEP_ARRIVE] = "arrive", [STEP_MEET] = "meet", [STEP_REPLICATE] = "replicate",
    [STEP_SUM] = "sum", [STEP_JOIN] = "join", [STEP_TIE] = "tie", [STEP_UPDATE] = "update", [STEP_GATHER] = "gather",
    [STEP_RENEW] = "renew", NULL,
};
_Static_assert(COUNT(step_names) == STEP_COUNT + 1, "a name for every step_kind");

/* The words of a label: its name, and the meaning of its number, stage and replica; NULL: it has none. */
static const struct label_words { const char *name, *number, *stage, *replica; } label_words[LABEL_KIND_COUNT] = {
    [LABEL_ACTIVATION] = {"activations", "of micro-batch", "for stage", "of replica"},
    [LABEL_GRADIENT] = {"gradients", "of micro-batch", "for stage", "of replica"},
    [LABEL_COMPLETE] = {"complete gradients", "for sum", "of stage", NULL},
    [LABEL_TIED_COPY] = {"complete gradients", "for update", "of tied copy", "in tied sum"},
    [LABEL_TIED_COPIES] = {"complete gradients of both tied copies", "for update", NULL, "in tied sum"},
    [LABEL_UPDATED] = {"updated weights", NULL, "of stage", NULL},
    [LABEL_GROUP_ARRIVED] = {"arrivals of a barrier's replicas", "at entry", "on rank", "from replica"},
    [LABEL_ALL_ARRIVED] = {"arrivals of all replicas", "at entry", NULL, NULL},
};

void label_print(const struct labels *labels, uint32_t number, FILE *out)
{
    const struct label_block *block = labels->blocks;
    const struct label_words *words;
    uint32_t rest;

    while (number - block->first >= block->replicas * block->directions * block->stages * block->numbers)
        block++;
    words = &label_words[block - labels->blocks];
    rest = number - block->first;
    fputs(words->name, out);
    if (words->number)
        fprintf(out, " %s %u", words->number, rest % block->numbers);
    rest /= block->numbers;
    if (words->stage)
        fprintf(out, " %s %u", words->stage, rest % block->stages);
    rest /= block->stages;
    if (block->directions > 1)
        fprintf(out, " in direction %u", rest % block->directions);
    if (words->replica && block->replicas > 1)
        fprintf(out, " %s %u", words->replica, rest / block->directions);
}

/* The works from an entry on that are one step: "0F3", or "0F3+1B0". */
static void print_works(const struct rows *rows, int rank, size_t entry, FILE *out)
{
    struct work work = {.with_next = true};
    char cell[40];

    for (size_t i = entry; work.with_next; i++) {
        work = row_entry(rows, rank, i);
        fprintf(out, "%c%s", i == entry ? ' ' : '+', work_format(rows->plan, rank, work, cell, sizeof cell));
    }
}

/* The meaning of a step's numbers. */
static void print_numbers(const struct rows *rows, int rank, const struct script_step *step, FILE *out)
{
    switch ((enum step_kind)step->kind) {
    case STEP_WORKS:
        print_works(rows, rank, step->at, out);
        break;
    case STEP_ARRIVE: case STEP_REPLICATE: case STEP_UPDATE: case STEP_RENEW:
        fprintf(out, " entry %u", step->at);
        break;
    case STEP_MEET: fprintf(out, " entry %u, %u replicas", step->at, step->number); break;
    case STEP_SUM: fprintf(out, " %u of stage %u", step->number, step->at); break;
    case STEP_JOIN: case STEP_GATHER: fprintf(out, " stage %u", step->at); break;
    case STEP_TIE: case STEP_COUNT: break;
    }
}

static void print_labels(const struct labels *labels, const char *word, const uint32_t *items, uint32_t count, FILE *out)
{
    for (uint32_t i = 0; i < count; i++) {
        fputs(i ? ", " : word, out);
        label_print(labels, items[i], out);
    }
}

/* Numbered in the order of the rows. */
static void print_step(const struct rows *rows, const struct script *script, const struct labels *labels,
                       const struct script_step *step, FILE *out)
{
    int rank = (int)(step->row / script->replicas), replica = (int)(step->row % script->replicas);

    fprintf(out, "%5zu  ", (size_t)(step - script->steps.items));
    fprintf(out, "%4d.%-4d %-10s", replica, rank, step_names[step->kind]);
    print_numbers(rows, rank, step, out);
    fputs(step->shared ? " (shared)" : "", out);
    print_labels(labels, "; waits for ", script->needs.items + step->needs.first, step->needs.count, out);
    print_labels(labels, "; gives ", script->gives.items + step->gives.first, step->gives.count, out);
    fputc('\n', out);
}

void script_print(const struct rows *rows, const struct script *script, const struct labels *labels,
                  const struct script_step *const *order, size_t count, FILE *out)
{
    fprintf(out, "# steps: %zu, %s\n# step  replica.rank  what; the labels that it waits for; the labels that it gives\n", count,
            order ? "as they are lowered, shared ones once" : "row by row");
    for (size_t i = 0; i < count; i++)
        print_step(rows, script, labels, order ? order[i] : &script->steps.items[i], out);
}
