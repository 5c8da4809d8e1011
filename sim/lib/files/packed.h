/* packed: files that are compressed as they are written. */
#ifndef DTSIM_PACKED_H
#define DTSIM_PACKED_H

#include <stdio.h>

#include "base/base.h"

enum packed_form { PACKED_GZIP, PACKED_ZLIB };
/* The fastest level but one: a level more saves a few percent of the bytes and costs half as much time again. */
enum { PACKED_LEVEL = 2 };
/* A file whose bytes arrive compressed in `out`, which stays open. Errors stay in `out`. */
FILE *packed_open(FILE *out, enum packed_form form, int level);

#endif
