/* What reads points (points.c) and what selects them (points_select.c) share. */
#ifndef DTSIM_POINTS_INTERNAL_H
#define DTSIM_POINTS_INTERNAL_H

#include "sweep/points.h"

/* One point while it is looked at: what expressions ask for is found when they ask. */
struct moment {
    const struct points *points;
    struct arena arena;
    size_t *choice;              /* by zip: which value, */
    size_t chosen;               /* of the first ones: axes of the others have no value yet */
    const struct included *included;     /* or NULL */
    struct value *derived;
    bool *known;                 /* derived values that have been evaluated */
    struct node *resolved;       /* the scenario with every default, where it was asked for and can be had */
    bool asked;
};
void moment_init(struct moment *moment, const struct points *points);
void moment_release(struct moment *moment);
void moment_set(struct moment *moment, uint64_t number);

/* Evaluates a derived value, unless that has been done. -1: it has none. */
int moment_derived(struct moment *moment, size_t d, struct error *err);
/* Whether the constraint drops the point. */
int moment_drops(struct moment *moment, const struct constraint *constraint, bool *dropped, struct error *err);
/* The zip of an axis. */
size_t points_zip_of(const struct points *points, size_t axis);

#endif
