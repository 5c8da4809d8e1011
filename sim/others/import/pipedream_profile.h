/* pipedream_profile: reads a graph.txt of PipeDream's profiler (msr-fiddle/pipedream, graph/graph.py, Node and Graph)
 * into a model file: `layers:` with the times of one minibatch.
 *
 * A line is a node or an edge:
 *     ID -- DESCRIPTION -- forward_compute_time=MS, backward_compute_time=MS, activation_size=BYTES,
 *           parameter_size=BYTES[ -- stage_id=N]          (one line)
 *     <tab>ID -- ID
 * A module with several outputs has activation_size=[BYTES; BYTES; ...]. */
#ifndef DTSIM_PIPEDREAM_PROFILE_H
#define DTSIM_PIPEDREAM_PROFILE_H

#include "config/conf.h"

enum { PIPEDREAM_MAX_BYTES = 16 << 20, PIPEDREAM_MAX_NODES = 20000 };

/* The model as a tree with `title` and `layers`; NULL after errors, each at its line and column.
 * Layers stand in a topological order: of the nodes whose inputs are all there, those that read something and have
 * neither time nor parameters (views, sums) come first, then the one with the lowest id ("node9" before "node10"). A
 * node without time and parameters is part of the layer before it. A layer's boundary is what crosses a cut behind it:
 * the outputs of all nodes up to there that a later node reads, each once. Its activation is its output, unless it
 * works in place.
 * A node whose description begins with "Input" takes no time: the profiler writes there how long it waited for data
 * (profiler/image_classification/main.py), and PipeDream's optimizer leaves it out too
 * (optimizer/optimizer_graph_hierarchical.py).
 * Parameters are 4 bytes each. Errors: lines of another form, negative numbers, ids given twice, edges to unknown
 * nodes, cycles, graphs in which nothing takes time. */
struct node *pipedream_profile_parse(struct arena *arena, const char *file, const char *text, size_t length,
                                     struct error *err);
struct node *pipedream_profile_load(struct arena *arena, const char *path, struct error *err);

#endif
