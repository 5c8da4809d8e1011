/* explanation: where the time of a run went, for people and programs. */
#ifndef DTSIM_EXPLANATION_H
#define DTSIM_EXPLANATION_H

#include "explain/gains.h"
#include "explain/idle.h"
#include "view/view.h"

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

/* For programs, in SI units, and what `dtsim help result` says of it. */
extern const struct view explanation_view;
void explanation_print(const struct explanation *explanation, FILE *out);
/* The three tables for a document. */
void explanation_markdown(const struct explanation *explanation, FILE *out);
/* explanation_links.c: whether the network has links besides NICs, and the run counted what crosses them; the busiest ones. */
bool explanation_has_links(const struct explanation *explanation);
json_t *explanation_links(const struct explanation *explanation);
extern const struct view busiest_view;

#endif
