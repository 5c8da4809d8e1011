#include "engine/program_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* "3 5-7": ids in their order, each once; runs of ids are shortened. */
static void print_ids(const uint32_t *ids, size_t count, FILE *out)
{
    uint32_t *sorted = xcalloc(count, sizeof *sorted);

    memcpy(sorted, ids, count * sizeof *sorted);
    array_sort(sorted, count, sizeof *sorted, by_id);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end] <= sorted[end - 1] + 1; end++)
            ;
        fprintf(out, sorted[end - 1] > sorted[i] ? " %u-%u" : " %u", sorted[i], sorted[end - 1]);
    }
    free(sorted);
}

/* Bytes have 12 digits, seconds have 9. */
static void print_amount(double amount, const char *unit, FILE *out)
{
    fprintf(out, *unit == 'B' ? "%.12g %s" : "%.9g %s", amount, unit);
}

/* Prints a detail, unless its amount is 0. */
static void print_detail(const char *before, double amount, const char *unit, const char *behind, FILE *out)
{
    if (amount == 0)
        return;
    fprintf(out, ", %s", before);
    print_amount(amount, unit, out);
    fputs(behind, out);
}

static void print_transfer(const struct op_transfer *transfer, FILE *out)
{
    fprintf(out, ", GPU %u > %u", transfer->src, transfer->dst);
    print_detail("delay ", transfer->delay, "s", "", out);
    print_detail("overhead ", transfer->overhead, "B/B", "", out);
    print_detail("at most ", transfer->most, "B/s", "", out);
    print_detail("stands for ", transfer->stands, "B/B", " more", out);
    print_detail("protocol ", transfer->protocol, "B/B", "", out);
    fputs(transfer->buffered ? ", buffered" : "", out);
}

static void print_compute(double seconds, const struct op_compute *compute, FILE *out)
{
    if (seconds > 0 && compute->communication == seconds)
        fputs(", communication", out);
    else
        print_detail("", compute->communication, "s", " communication", out);
    print_detail("sends ", compute->sent, "B", "", out);
    print_detail("", compute->activations, "B", " of it activations", out);
}

static void print_choice(const struct program *program, const struct choice *choice, FILE *out)
{
    fprintf(out, ", if %u", choice->first);
    if (choice->count > 1)
        fprintf(out, "-%u", choice->first + choice->count - 1);
    fputs(choice->count > 1 ? " are late others first" : " is late others first", out);
    if (choice->most < program->ops.count)
        fprintf(out, ", %u in all at most", choice->most);
}

static void print_op(const struct program *program, uint32_t id, FILE *out)
{
    const struct op *op = &program->ops.items[id];
    const struct traits *traits = op_traits(program, op);
    const struct lane *lane = &program->lanes.items[op->lane];
    struct dep_list deps = program_deps(program, op);
    const struct choice *choice = program_choice(program, id);
    char where[64], index[16] = "", mb[16] = "-", stage[16] = "-";

    if (lane->kind != LANE_COMPUTE)
        snprintf(index, sizeof index, ".%d", lane->index);
    snprintf(where, sizeof where, "%d.%s%s", lane->rank, lane_kind_names[lane->kind], index);
    if (op->mb >= 0)
        snprintf(mb, sizeof mb, "%d", op->mb);
    if (op->stage >= 0)
        snprintf(stage, sizeof stage, "%d", op->stage);
    fprintf(out, "%5u %-17s %-15s %4s %5s  ", id, where, op_what_names[op->what], mb, stage);
    print_amount(op->amount, op->kind == OP_COMPUTE ? "s" : "B", out);
    if (op->kind == OP_COMPUTE)
        print_compute(op->amount, &traits->compute, out);
    else
        print_transfer(&traits->transfer, out);
    print_detail("takes ", traits->takes, "B", "", out);
    print_detail("frees ", traits->frees, "B", "", out);
    print_detail("holds ", traits->workspace, "B", "", out);
    fputs(op->continues ? ", continues" : "", out);
    fputs(op->advances ? ", may go first" : "", out);
    if (deps.count) {
        fputs(", after", out);
        print_ids(deps.items, deps.count, out);
    }
    if (choice)
        print_choice(program, choice, out);
    fputc('\n', out);
}

void program_print(const struct program *program, FILE *out)
{
    fprintf(out, "# operations: %zu, lanes: %zu, ranks: %d; "
                 "each operation also waits for the one before it in its lane\n",
            program->ops.count, program->lanes.count, program->ranks);
    fprintf(out, "#  id %-17s %-15s %4s %5s  %s\n", "lane", "what", "mb", "stage", "amount");
    for (uint32_t i = 0; i < program->ops.count; i++)
        print_op(program, i, out);
}
