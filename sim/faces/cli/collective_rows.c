#include "cli/collective_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "collective/collective.h"
#include "hardware/communication.h"

void collective_rows_add(struct collective_rows *rows, const struct collective_row *row)
{
    size_t i = 0;

    *GROW(&rows->held) = *row;
    while (i < rows->used.count && rows->used.items[i] != row->measured.used)
        i++;
    if (i == rows->used.count)
        *GROW(&rows->used) = row->measured.used;
}

/* Whether no algorithm with as many ranks and bytes was faster, where all of several have run. */
static bool is_fastest(const struct collective_rows *rows, const struct collective_row *row)
{
    size_t rivals = 0;

    for (size_t i = 0; i < rows->held.count; i++) {
        const struct collective_row *other = &rows->held.items[i];

        if (other->ranks != row->ranks || other->bytes < row->bytes || other->bytes > row->bytes)
            continue;
        rivals++;
        if (other->measured.seconds < row->measured.seconds * (1 - 1e-9))
            return false;
    }
    return rows->nalgorithms > 1 && rivals == rows->nalgorithms;
}

/* Decimals with which a number has five digits, or all before its point. */
static int decimals_of(double number)
{
    return number > 0 ? (int)fmin(fmax(4 - floor(log10(number)), 0), 9) : 0;
}

static void print_row(struct collective_rows *rows, const struct collective_row *row)
{
    static const char *const marks[2][2] = {{"", "  fastest"}, {"  auto", "  auto, fastest"}};
    const struct measured *measured = &row->measured;
    const char *protocol = measured->protocol == PROTOCOL_NONE ? "-" : protocol_names[measured->protocol];
    double us = 1e6 * measured->seconds;
    bool first = !rows->channels_most;

    if (first)
        printf("%-14s %-16s %8s %6s %9s %12s %9s %12s %13s %13s\n", "op", "algorithm", "protocol", "ranks", "channels",
               "bytes", "messages", "time (us)", "algbw (GB/s)", "busbw (GB/s)");
    printf("%-14s %-16s %8s %6d %9d %12.0f %9.0f %12.*f %13.4g %13.4g%s\n", collective_op_names[row->op],
           measured->used->name, protocol, row->ranks, measured->channels, row->bytes, measured->messages,
           decimals_of(us), us, 1e-9 * row->algbw, 1e-9 * row->busbw, marks[row->automatic][is_fastest(rows, row)]);
    rows->channels_least = first || measured->channels < rows->channels_least ? measured->channels
                                                                              : rows->channels_least;
    rows->channels_most = measured->channels > rows->channels_most ? measured->channels : rows->channels_most;
}

void collective_rows_print(struct collective_rows *rows)
{
    for (size_t i = 0; i < rows->held.count; i++)
        print_row(rows, &rows->held.items[i]);
    rows->held.count = 0;
    fflush(stdout);
}

void collective_rows_end(const struct collective_rows *rows)
{
    for (size_t i = 0; i < rows->used.count; i++)
        printf("%s: %s\n", rows->used.items[i]->name, rows->used.items[i]->formula);
    if (rows->channels_least != rows->channels_most)
        printf("channels: %d to %d, as many as a node has NICs where the ranks fill several nodes of several GPUs, "
               "else 1; --channels\nsets one number for all rows\n", rows->channels_least, rows->channels_most);
}

void collective_rows_release(struct collective_rows *rows)
{
    free(rows->held.items);
    free(rows->used.items);
    memset(rows, 0, sizeof *rows);
}
