/* A training of a scenario that stands in a test. */
#ifndef TESTS_TRAINED_H
#define TESTS_TRAINED_H

#include "simulated.h"
#include "train/training_view.h"

struct trained { struct scenario scenario; struct training training; };

static inline void train_whole(struct trained *trained, const char *text, struct training_options options)
{
    struct error err = {0};
    struct arena arena = {.cache = files_once()};
    struct node *root;

    if (conf_parse(&arena, "train.yaml", text, strlen(text), &root, &err) ||
        scenario_read(&arena, root, NULL, 0, "train", &trained->scenario, &err) ||
        training_init(&trained->training, &trained->scenario, options, &err)) {
        error_print(&err, stderr);
        fail_msg("%s", text);
    }
}

/* The training of a scenario whose steps take 3 s each; `train`: what stands under it, in flow style. */
static inline void train_text(struct trained *trained, const char *train, struct training_options options)
{
    char *text = xprintf("model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\nbatch: {micro_batches: 1}\n"
                         "strategy: {pipeline: 1}\ntrain: {%s}\n", train);

    train_whole(trained, text, options);
    free(text);
}

static inline void trained_release(struct trained *trained)
{
    training_release(&trained->training);
    scenario_release(&trained->scenario);
}

#endif
