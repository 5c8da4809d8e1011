/* torus: nodes in rows along dimensions, each row closed to a ring; the shape alone. */
#ifndef DTSIM_TORUS_H
#define DTSIM_TORUS_H

enum { TORUS_DIMS = 8 };
struct torus {
    int dims;                        /* 0: no torus, or a single node */
    int size[TORUS_DIMS];            /* nodes of each dimension; numbers of nodes count the last one fastest */
};

#endif
