/* order_internal: functions that the order*.c files share. */
#ifndef DTSIM_ORDER_INTERNAL_H
#define DTSIM_ORDER_INTERNAL_H

#include "schedule/order.h"

/* order_text.c: reads the cells of a text, rank by rank, and checks only that each is a cell. */
int order_read(struct arena *arena, const char *text, size_t length, struct order *order, struct error *err);

/* order_check.c: checks that no work is missing or given twice. *sorted gets the cells sorted by direction, stage and
 * micro-batch; the caller frees it. */
int order_complete(struct order *order, struct order_cell ***sorted, struct error *err);

/* order_deadlock.c: refuses an order that deadlocks; the message explains which work waits for which. */
int order_deadlock(const struct order *order, struct error *err);

/* The cell as text: "2F5" or "2F5@1". */
enum { CELL_SIZE = 40 };
char *cell_text(const struct order *order, const struct order_cell *cell, char buffer[CELL_SIZE]);
struct loc cell_loc(const struct order *order, const struct order_cell *cell);

#endif
