/* bash_internal: for bash*.c only. */
#ifndef DTSIM_BASH_INTERNAL_H
#define DTSIM_BASH_INTERNAL_H

#include "launch/bash.h"

/* The text that bash reads before a script, in pieces, up to NULL. */
extern const char *const bash_handler[];

/* The command of a record, a file of that name in which the child wrote texts, each with a zero byte behind it (and one more
 * behind the last): its kind, the name of the record of the command that runs the script, a line, a file, and the words. The
 * child may write anything. NULL: it is none. */
struct bash_command *bash_record(const struct bash_reader *reader, const char *name, const char *text, size_t length,
                                 const struct bash_commands *earlier);

#endif
