/* simgrid_memory: the memory of SimGrid, whose library of C++ is not the program's (CMakeLists.txt). */
#ifndef DTSIM_SIMGRID_MEMORY_H
#define DTSIM_SIMGRID_MEMORY_H

#ifdef __cplusplus
extern "C" {
#endif

/* Where SimGrid finds no memory from now on, `ended` is called. */
void simgrid_memory(void (*ended)(void));

#ifdef __cplusplus
}
#endif

#endif
