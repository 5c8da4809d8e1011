/* program_text: a program as text, a line an operation, for people to read and for tests to compare. */
#ifndef DTSIM_PROGRAM_TEXT_H
#define DTSIM_PROGRAM_TEXT_H

#include "engine/program.h"

/* Columns: the id; the lane as rank.kind.index (compute has no index); the operation's purpose; its micro-batch and its
 * stage, or "-"; its amount, in s (it computes) or B (it moves bytes between GPUs). After these, if they apply:
 *   GPU 0 > 2              the source and the destination of a transfer
 *   delay S, overhead X    latency and bytes of the flow in addition to the route's (struct op_transfer)
 *   at most X B/s          of its links (struct op_transfer)
 *   stands for X more      bytes that cross links in addition to the amount; `protocol X`: what the protocol adds
 *   buffered               the lane is free when the bytes have left
 *   S s communication      seconds of the amount that are communication within the work; without a number: all
 *   sends B                bytes that a GPU sends meanwhile; `of it activations`: although the payload is another
 *   takes B, frees B       bytes of the rank's memory, at its start and at its end
 *   holds B                memory in addition to this while it runs
 *   continues              a further piece of the work before it in its lane
 *   may go first           a choice may run it before its turn
 *   after 3 5-7            the operations that it waits for
 *   if 3-4 are late        a choice (struct choice): while not all of these have ended, the lane instead runs its next
 *     others first           operation that may go first,
 *     2 in all at most       until this number of them have run
 */
void program_print(const struct program *program, FILE *out);

#endif
