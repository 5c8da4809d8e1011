/* pattern: which halves the blocks of a hybrid model have, one letter each, and the widths of the mixers that stand in the
 * place of attention. */
#ifndef DTSIM_PATTERN_H
#define DTSIM_PATTERN_H

#include <stdbool.h>

struct arena;
struct error;
struct node;
struct transformer;

/* What mixes the tokens of a sample in a block. */
enum mixer { MIXER_NONE, MIXER_ATTENTION, MIXER_LATENT, MIXER_MAMBA, MIXER_DELTA, MIXER_KIMI, MIXER_LIGHTNING };
/* Their letters, the key of the mapping with their widths, or NULL, and their names; the last one's letter is 0. */
extern const struct mixer_letter { char letter; enum mixer mixer; const char *key, *what; } mixer_letters[];
/* The halves of one block. */
struct halves { enum mixer mixer; bool mlp, experts, window; };

/* Mamba-2 (Dao and Gu 2024): heads x head_size values, `groups` of B and C of `state` values each; a convolution over `conv`
 * tokens; `chunk` tokens are computed together. */
struct mamba { const struct node *node; int heads, head_size, state, groups, conv, chunk; };
/* Gated delta net (Yang et al. 2024) and Kimi delta attention (2025), whose keys and values have as many heads. */
struct delta { const struct node *node; int key_heads, key_size, value_heads, value_size, conv, chunk; };
/* Lightning attention (MiniMax-01 2025), in blocks of tokens. */
struct lightning { const struct node *node; int heads, head_size, block; };
extern const struct table mamba_table, delta_table, lightning_table;

/* All kinds of blocks that one model may have: attention with a window and without, or four other mixers, each without an MLP,
 * with one, or with experts; and these two alone. */
enum { PATTERN_KINDS = 6 * 3 + 2 };
/* The number of layers that the shape's pattern states, before it repeats; 0: the shape has none. */
int pattern_layers(const struct transformer *shape);
/* The halves of block i, counted from 0; i is shape->layers for the blocks of multi-token prediction. */
struct halves transformer_halves(const struct transformer *shape, int block);
/* The first place of a pattern where no layer begins; NULL: there is none. */
const char *pattern_wrong(const char *pattern);
/* Whether any block has that mixer. */
bool transformer_mixes(const struct transformer *shape, enum mixer mixer);
/* "a transformer", "a vision transformer", "an encoder-decoder", or "a hybrid of attention, Mamba-2", in the arena. */
const char *transformer_kind(struct arena *arena, const struct transformer *shape);
/* Fills the number of layers where the pattern says it; checks letters, parentheses and mappings. */
void pattern_finish(struct transformer *shape, struct error *err);
/* The widths of a mixer that a degree must divide, with their names; returns how many there are. */
struct mixer_width { int size; const char *what; bool whole; };      /* whole: a context group need not divide them */
enum { MIXER_WIDTHS = 6 };
/* The largest number that divides all heads and groups of the shape: a tensor degree must divide it, but for the heads of keys and
 * values of a model without a pattern. */
int transformer_divides(const struct transformer *shape);
int mixer_widths(const struct transformer *shape, struct mixer_width widths[MIXER_WIDTHS]);

#endif
