/* Declarations that the files of alike share. Sets of reasons (enum alike_reason) are 0 where nothing speaks against
 * letting one stand for many. */
#ifndef DTSIM_ALIKE_INTERNAL_H
#define DTSIM_ALIKE_INTERNAL_H

#include "alike/alike.h"

/* alike_places.c */
/* Whether GPUs share links, so that flows of different GPUs may meet. */
uint32_t links_shared(const struct cluster *cluster);
/* In what members differ although their places are alike (enum uneven). */
uint32_t members_uneven(unsigned uneven);
/* Whether flows of a tensor group differ. */
uint32_t flows_differ(const struct scenario *scenario, unsigned uneven);
/* Whether replicas of one stage exchange more on NICs than the sums and gathers of all replicas, so that a replica may
 * wait longer than another. */
uint32_t sums_meet_others(const struct scenario *scenario);
/* Whether a collective may begin on some ranks before the one before it has ended. */
uint32_t sums_overlap(const struct scenario *scenario);
/* Whether replicas' places differ, so that one cannot stand for all. */
uint32_t replicas_differ(const struct scenario *scenario);

/* alike_count.c */
/* Estimates the number of operations of one replica's works. */
double count_works(const struct scenario *scenario, const struct stage *stages);
/* Estimates the number of messages of all sums of gradients: of a ring, on every channel, for every bucket and
 * update. */
double count_messages(const struct scenario *scenario, const struct stage *stages, int flows);

#endif
