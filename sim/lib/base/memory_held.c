#include "base/progress.h"

#include <sys/resource.h>
#include <unistd.h>

double memory_held(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long pages = 0;
    struct rusage usage;

    if (file && fscanf(file, "%*u %llu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages ? (double)pages * (double)sysconf(_SC_PAGESIZE) :
           getrusage(RUSAGE_SELF, &usage) ? 0 : 1024 * (double)usage.ru_maxrss;
}
