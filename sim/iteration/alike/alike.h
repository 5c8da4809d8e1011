/* alike: who stands for whom. Of many equal things one is simulated where that is exact. This value says which are, and
 * why the others are simulated in full. It is made once, from a scenario and its stages. Lowering and the count of
 * bytes on links read it; `dtsim show --alike` prints it.
 *
 *   way             one is simulated for                                     where it is decided
 *   flows           the GPUs of a tensor-parallel group                      alike_make
 *   replicas        all replicas                                             alike_make
 *   collectives     a collective: its duration for its messages              alike_make
 *   nodes           nodes of a collective: two of them                       collective_fold, for each collective
 *   channels        channels of a collective: the first few                  collective_fold, for each collective
 *   micro_batches   periods of a steady pipeline: one, for metrics alone     alike_make, then steady/ */
#ifndef DTSIM_ALIKE_H
#define DTSIM_ALIKE_H

#include "collective/measure.h"
#include "stage/stage.h"

enum alike_way {
    ALIKE_FLOWS, ALIKE_REPLICAS, ALIKE_MEASURED, ALIKE_NODES, ALIKE_CHANNELS, ALIKE_MICRO_BATCHES, ALIKE_WAY_COUNT
};
extern const char *const alike_way_names[];      /* "flows", ..., "micro_batches"; NULL-terminated */

/* Why something is simulated in full: several together. alike_reasons.c says each in words. */
enum alike_reason {
    WHY_NICS = 1 << 0,               /* GPUs of a node share NICs */
    WHY_TOPOLOGY = 1 << 1,           /* nodes share uplinks */
    WHY_SLOW_LINKS = 1 << 2,
    WHY_STRAGGLERS = 1 << 3,
    WHY_JITTER = 1 << 4,
    WHY_TENSOR_NODES = 1 << 5,       /* tensor groups of a stage are spread over nodes unlike each other */
    WHY_BOUNDARIES = 1 << 6,         /* routes to the next stage are unlike each other */
    WHY_NEIGHBOURS = 1 << 7,         /* groups of neighbouring replicas are spread over nodes unlike each other */
    WHY_PIPELINE = 1 << 8,           /* on shared links: boundaries meet sums */
    WHY_SPREAD = 1 << 9,             /* on shared links: exchanges within works meet sums */
    WHY_EXPERTS = 1 << 10,           /* experts' gradients are summed besides */
    WHY_COPIES = 1 << 11,            /* a node holds no whole copy of what ZeRO divides, or several */
    WHY_ROOTED = 1 << 12,            /* replica 0 alone updates */
    WHY_MESSAGES = 1 << 13,          /* collectives: messages */
    WHY_FEW = 1 << 14,               /* collectives: auto, and messages are few */
    WHY_APART = 1 << 15,             /* the same, as members did not end a sum together */
    WHY_SMALL = 1 << 16,             /* collectives: auto, and works are few */
    WHY_FOLD_OFF = 1 << 17,
    WHY_LOCAL_STEPS = 1 << 18,
    WHY_SCHEDULE = 1 << 19,          /* it has no flush, several batches, slices, or decides at run time */
    WHY_ROWS = 1 << 20,              /* rows do not repeat often enough */
    WHY_UNSTEADY = 1 << 21,          /* the timeline did not repeat, or rounding grew */
    WHY_SHARES = 1 << 22,            /* replicas have micro-batches of unequal size */
    WHY_KINDS = 1 << 23,             /* GPUs of a stage are on nodes of several kinds */
    WHY_DEGREES = 1 << 24,           /* pipeline ranks have unequal degrees */
    WHY_FOLD_FIRST = 1 << 25,        /* the reasons of collectives: enum unfolded, in its order */
};
/* A reason as people read it. */
struct alike_text {
    const char *key;                 /* of the scenario: what causes it */
    const char *why;
    const char *change;              /* what would change it */
};
/* The texts of a set of reasons, one by one: NULL after the last of them. `number` counts from 0. */
const struct alike_text *alike_text(uint32_t reasons, size_t number);

/* How many members are simulated, and for how many; and why, if all of several are. */
struct stood { int simulated, all; uint32_t reasons; };

/* The collectives of a kind of process group that were measured: the nodes, and the channels, of the collective that
 * stands for the fewest. All 0: none with several was measured. */
struct alike_group { struct stood nodes, channels; };

struct alike {
    int flows;                       /* of a tensor group; 1 stands for its GPUs */
    int replicas;                    /* in the program; 1 if folded */
    bool folded;                     /* one replica stands for all */
    bool measured;                   /* collectives over replicas are measured durations, not messages */
    bool exact;                      /* they are few, and durations must give the very times of messages */
    int micro_batches;               /* of a replica, for all of them */
    bool private_links;              /* every GPU has links of its own to every other: flows of different GPUs never
                                      * meet */
    unsigned uneven;                 /* enum uneven: in what members differ whose places are alike */
    struct alike_group groups[GROUP_KIND_COUNT];     /* filled as their collectives are measured */
    uint32_t reasons[ALIKE_WAY_COUNT];   /* enum alike_reason; 0: one stands for all, or there is one alone */
    double works, messages;          /* estimates of operations: of a replica's works, of all sums as messages */
};

/* What is known before anything is lowered. `stages` are the scenario's virtual stages. */
void alike_make(const struct scenario *scenario, const struct stage *stages, struct alike *alike);
/* Refuses more operations than a machine's memory holds: each takes some hundred bytes until it is replayed. Fails,
 * too, where they are more than the budget allows. `whole`: of an iteration; else of its works alone. */
int alike_check(const struct alike *alike, const struct scenario *scenario, bool whole, struct error *err);
/* Members of a sum did not end it together: durations are not `exact`, and messages take their place. */
void alike_part(struct alike *alike, const struct scenario *scenario);
/* A figure of the works: only the first replica is simulated, and replicas exchange nothing. */
void alike_look_at_one(struct alike *alike);
/* Takes in how a collective of such a group was measured. */
void alike_note(struct alike *alike, enum group_kind kind, const struct measured *measured);
/* How many flows of a tensor group, replicas or micro-batches of a replica are simulated, for how many. */
struct stood alike_stood(const struct alike *alike, const struct scenario *scenario, enum alike_way way);

#endif
