/* module: a part of the program that links a large library and is loaded only by those who need it. The loader binds
 * every symbol of SimGrid and of the libraries behind it, which takes longer than most simulations.
 *
 * A module is the file dtsim-NAME.so. It stands in the program's own folder, as it is built, or in lib/dtsim of the
 * installation, wherever that has been put. It may call the program's functions, and has the digest of its sources
 * (files/digest.h) as its symbol "module_sources": only if it is the program's own, their data are laid out alike. */
#ifndef DTSIM_MODULE_H
#define DTSIM_MODULE_H

#include "base/base.h"

/* In which order the symbols of a module and of the libraries behind it are looked up. Where there are tens of
 * thousands, this is a good part of the time that loading takes. */
enum module_symbols {
    MODULE_PROGRAM_FIRST,    /* as everywhere */
    MODULE_OWN_FIRST,        /* sooner; they must not use a variable that the program's linker copies (environ) */
};
/* Loads a module and returns its symbol "module_NAME", whose type is for its users to know. A process that has loaded
 * it, and every process that it forks later, gets it again at once. `what` needs it, for messages: "the simgrid
 * engine". NULL after an error: EXIT_NO_TOOL, where the file was looked for, that it is of another build, or why it
 * cannot be loaded. */
const void *module_open(const char *name, enum module_symbols symbols, const char *what, struct error *err);

#endif
