/* opener: an address in the browser of whoever sits at this machine. */
#ifndef DTSIM_OPENER_H
#define DTSIM_OPENER_H

#include "base/base.h"

/* Opens it by xdg-open, which gets a file that only this person reads and that leads to the address: other users see
 * the arguments of a process, which have no secret. The file is removed a minute later. False: there is no screen, or
 * no xdg-open. */
bool open_in_browser(const char *address);

#endif
