/* bench_options: the command line of dtsim-bench. */
#ifndef DTSIM_BENCH_OPTIONS_H
#define DTSIM_BENCH_OPTIONS_H

#include "base/base.h"
#include "case.h"

struct bench_options {
    double seconds;              /* of measuring, all in all */
    uint64_t seed;
    const char *output;          /* a path; NULL: standard output */
    int device;                  /* the GPU, numbered as CUDA does */
    bool quick, resume, check, list, help, version;
    bool wanted[BENCH_KERNELS][BENCH_DTYPES];    /* the kernels of --only, or all, without those of --without */
};

/* Prints errors to stderr. Returns EXIT_USAGE, or 0. */
int bench_options_parse(struct bench_options *options, int argc, char **argv);
/* `built`: a line with the libraries that the program was built with. */
void bench_options_help(FILE *out, const char *built);

#endif
