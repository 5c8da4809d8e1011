/* What the order*.c share. */
#ifndef DTSIM_ORDER_INTERNAL_H
#define DTSIM_ORDER_INTERNAL_H

#include "schedule/order.h"

/* order_text.c: the cells of a text, rank by rank; nothing is known of them yet but that each is one. */
int order_read(struct arena *arena, const char *text, size_t length, struct order *order, struct error *err);

/* order_check.c: that nothing is missing or twice; gives the cells sorted by direction, stage and micro-batch (free
 * it). */
int order_complete(struct order *order, struct order_cell ***sorted, struct error *err);

/* order_deadlock.c: refuses what waits for itself, saying how. */
int order_deadlock(const struct order *order, struct error *err);

/* "2F5", or "2F5@1". */
enum { CELL_SIZE = 40 };
char *cell_text(const struct order *order, const struct order_cell *cell, char buffer[CELL_SIZE]);
struct loc cell_loc(const struct order *order, const struct order_cell *cell);

#endif
