/* conf_node: how the reader builds its tree; for conf*.c only. */
#ifndef DTSIM_CONF_NODE_H
#define DTSIM_CONF_NODE_H

#include "config/conf.h"

/* conf_parse, and with placeless every loc names no line (for a value of the command line). */
int conf_read(struct arena *arena, const char *name, const char *text, size_t length, bool placeless,
              struct node **root, struct error *err);
/* Adds a key without asking whether it is there. */
void node_push(struct arena *arena, struct node *mapping, const char *key, struct loc key_loc, struct node *value);
/* Ends a mapping: refuses duplicate keys, and adds what `merge` (the value of <<, or NULL) has and it has not. */
int node_settle(struct arena *arena, struct node *mapping, const struct node *merge, struct error *err);

#endif
