/* conf_node: functions with which the reader builds its tree; for conf*.c only. */
#ifndef DTSIM_CONF_NODE_H
#define DTSIM_CONF_NODE_H

#include "config/conf.h"

/* Like conf_parse. With `placeless` no place has a line: the text is a value on the command line. */
int conf_read(struct arena *arena, const char *name, const char *text, size_t length, bool placeless,
              struct node **root, struct error *err);
/* Adds a key without a check whether the mapping already has it. */
void node_push(struct arena *arena, struct node *mapping, const char *key, struct loc key_loc, struct node *value);
/* The index of the key, or the mapping's count if it lacks the key. */
size_t node_key(const struct node *mapping, const char *key);
/* Ends a mapping: refuses duplicate keys, and adds the keys of `merged` (the value of <<, or NULL) that it lacks. */
int node_settle(struct arena *arena, struct node *mapping, const struct node *merged, struct error *err);

#endif
