/* question: what the page asks, understood. No file is opened for it but those that belong to the program: a scenario is
 * one of the tour, by its name, or text; and cache.h's names_only refuses paths in either.
 *
 *     {"tour": "04-1f1b", "set": {"strategy.tensor": 4}, "what": "numbers"}
 *     {"text": "model: ...", "set": {}, "what": "timeline"} */
#ifndef DTSIM_QUESTION_H
#define DTSIM_QUESTION_H

#include "config/field.h"
#include "scenario/scenario.h"

#define QUESTIONS(X) \
    X(QUESTION_NUMBERS, "numbers") X(QUESTION_ADVICE, "advice") X(QUESTION_TIMELINE, "timeline")
enum question_what { QUESTIONS(ENUM_VALUE) };

struct question {
    const struct node *node;
    const char *tour, *text;
    struct question_value { const struct node *node; } set, against;
    int what;                        /* enum question_what */
};
extern const struct table question_table;

#define QUESTION "page"              /* what messages call it; */
#define DROPPED "scenario"           /* and the text of a scenario */

/* Reads a question; it lives in the arena. */
int question_read(struct arena *arena, const char *text, size_t length, struct question *question, struct error *err);
/* The scenario of a question, in an arena whose cache has names_only. Release in either case. */
int question_scenario(struct arena *arena, const struct question *question, struct scenario *scenario,
                      struct error *err);

#endif
