/* program_text: a program as text, a line an operation, for people to read and for tests to compare. */
#ifndef DTSIM_PROGRAM_TEXT_H
#define DTSIM_PROGRAM_TEXT_H

#include "engine/program.h"

/* Columns: the id; the lane as rank.kind.index (the index is left out for compute); what the operation is for; its
 * micro-batch and its stage, "-" where it has none; its amount, in s (it computes) or B (it moves bytes between GPUs).
 * Behind these stand, as far as they are there:
 *   GPU 0 > 2              from which GPU to which
 *   delay S, overhead X    how a transfer differs from its bare route (struct op)
 *   buffered               the lane is free when the bytes have left
 *   S s communication      how much of the time is communication within the work; without a number: all of it
 *   sends B                what a GPU sends meanwhile, B of it activations although it is counted as something else
 *   takes B, frees B       of the rank's memory, when it starts and when it ends
 *   holds B                memory on top of this while it runs
 *   continues              a further piece of the work before it in its lane
 *   may go first           a choice may run it before its turn
 *   after 3 5-7            the operations that it waits for
 *   if 3-4 are late        a choice (struct choice): as long as not all of these have ended, the next operation of the
 *     others first           lane that may go first does so instead,
 *     2 in all at most       while fewer than so many of those have run
 */
void program_print(const struct program *program, FILE *out);

#endif
