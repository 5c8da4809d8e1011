/* explanation: where the time of a run went, for people and programs. */
#ifndef DTSIM_EXPLANATION_H
#define DTSIM_EXPLANATION_H

#include "files/json.h"

#include "explain/gains.h"
#include "explain/idle.h"

struct explanation {
    const struct run *run;
    struct idle idle;
    struct critical_path path;
    struct gains gains;
    struct arena arena;
};

/* `run` has been simulated with these options, `causes` among them, and stays until explanation_release. */
int explanation_init(struct explanation *explanation, const struct run *run, struct simulate_options options,
                     struct error *err);
void explanation_release(struct explanation *explanation);

void explanation_print(const struct explanation *explanation, FILE *out);
/* explanation_links.c: whether the network has links besides NICs, and the run counted what crosses them; then the
 * busiest ones. */
bool explanation_has_links(const struct explanation *explanation);
void explanation_links_print(const struct explanation *explanation, FILE *out);
json_t *explanation_links_json(const struct explanation *explanation);
/* The three tables for a document. */
void explanation_markdown(const struct explanation *explanation, FILE *out);
/* In SI units; the caller owns the reference. */
json_t *explanation_json(const struct explanation *explanation);

#endif
