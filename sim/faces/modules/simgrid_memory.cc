#include "modules/simgrid_memory.h"

#include <new>

void simgrid_memory(void (*ended)(void))
{
    std::set_new_handler(ended);
}
