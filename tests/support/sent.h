/* sent: the exchanges of a stage's works, by what is sent. */
#ifndef DTSIM_TEST_SENT_H
#define DTSIM_TEST_SENT_H

#include "stage/stage.h"

/* The place of the first exchange of the list of what is sent in that way; -1: there is none. */
static inline int find_sent(const struct stage *stage, enum sending what, enum hidden_by by)
{
    for (int i = 0; i < stage->exchanges->count; i++)
        if (stage->exchanges->items[i].what == what && stage->exchanges->items[i].by == by)
            return i;
    return -1;
}

/* B of it; 0: there is none. How often a work of the stage has it. */
static inline double sent_bytes(const struct stage *stage, enum sending what, enum hidden_by by)
{
    int i = find_sent(stage, what, by);

    return i < 0 ? 0 : stage->exchanges->items[i].bytes;
}
static inline int sent_count(const struct stage *stage, const struct work_counts *work, enum sending what, enum hidden_by by)
{
    int i = find_sent(stage, what, by);

    return i < 0 ? 0 : work->exchanges[i];
}

#endif
