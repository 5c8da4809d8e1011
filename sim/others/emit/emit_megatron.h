/* emit_megatron: Megatron-LM's arguments, for the writers of frameworks that are built on it. */
#ifndef DTSIM_EMIT_MEGATRON_H
#define DTSIM_EMIT_MEGATRON_H

#include "emit/emit_internal.h"

void emit_megatron_write(struct emit *e);
struct node *emit_megatron_read(struct emit *e, const char *text, size_t length, const struct import_options *options,
                                FILE *notes, struct error *err);
/* Puts what a scenario leaves to the release, and refuses what Megatron Core's own checks do. 0 or -1. */
int emit_megatron_fit(struct emit *e, struct node *tree, struct error *err);
#endif
