/* ids: the ids of many rows in little memory: 16 bytes an id, in a hash table that is at least half full.
 *
 * An id is a digest of 128 bits, of which the first 96 are kept: of 10^9 ids two are alike in these with a probability
 * of 10^-11. */
#ifndef DTSIM_IDS_H
#define DTSIM_IDS_H

#include "report/outcome.h"

enum { ID_DIGITS = 32 };         /* hexadecimal digits of an id */

struct id_entry {
    uint32_t digits[3];
    uint32_t there : 1;
    uint32_t status : 3;         /* enum outcome */
    uint32_t number : 28;        /* what the table's owner counts or numbers; 0 at first */
};
enum { ID_NUMBER_MOST = (1 << 28) - 1 };

/* Zero-initialise. */
struct ids {
    struct id_entry *items;
    size_t count, capacity;
};

/* The entry of the id, which is made where there is none. It moves when another one is made. */
struct id_entry *ids_put(struct ids *ids, const char *id);
/* The entry of the id, or NULL. */
struct id_entry *ids_find(const struct ids *ids, const char *id);
void ids_release(struct ids *ids);

#endif
