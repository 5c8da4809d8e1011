/* simgrid_file: reads a platform file of SimGrid's own (topology/simgrid_file.h). */
#ifndef DTSIM_SIMGRID_READER_H
#define DTSIM_SIMGRID_READER_H

#include "topology/simgrid_file.h"

/* In a child process, once; ends it. */
void simgrid_read_file(struct file_tables *tables);

#endif
