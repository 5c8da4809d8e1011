/* emit_megatron: Megatron-LM's arguments, for the writers of frameworks that are built on it. */
#ifndef DTSIM_EMIT_MEGATRON_H
#define DTSIM_EMIT_MEGATRON_H

#include "emit/emit_internal.h"

void emit_megatron_write(struct emit *e);
/* Says all arguments, into e->said, in the order in which they are written. */
void emit_megatron_say(struct emit *e);
/* Puts what a scenario leaves to the release, and refuses what Megatron Core's own checks do. 0 or -1. */
int emit_megatron_fit(struct emit *e, struct node *tree, struct error *err);
/* How Megatron-LM is told a hybrid: a letter a half-block, or as a GPT of which some layers have linear attention. MIXES_NONE: the
 * scenario has no hybrid, or one that it cannot be told. */
enum mixes { MIXES_NONE, MIXES_LETTERS, MIXES_LINEAR };
enum mixes emit_megatron_mixes(const struct emit *e);
/* The letters of all layers, '|' where a stage ends, and '/' before each depth of multi-token prediction. */
const char *emit_megatron_letters(const struct emit *e);
/* A 0 or 1 for each layer: it has linear attention; it has experts. */
const char *emit_megatron_linear(const struct emit *e), *emit_megatron_experts(const struct emit *e);
/* Puts the pattern as its import writes it, and refuses what Megatron-LM has no letter for. */
void emit_megatron_fit_hybrid(struct emit *e, struct node *tree, struct error *err);
#endif
