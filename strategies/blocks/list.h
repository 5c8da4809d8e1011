/* Every kind of part of a layer, a line each. PART_KIND(name) stands for `const struct part_kind part_<name>` of the file of
 * that name. Of the kinds of one part the first that stands in a block is written there. */
PART_KIND(patches)
PART_KIND(tokens)
PART_KIND(embedding)
PART_KIND(mamba)
PART_KIND(delta)
PART_KIND(lightning)
PART_KIND(latent)
PART_KIND(attention)
PART_KIND(experts)
PART_KIND(mlp)
PART_KIND(prediction)
PART_KIND(head)
