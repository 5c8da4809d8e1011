/* rule: what does not go together, a row a rule. A row has the key where its message stands, the condition under which it is
 * broken, and the message; whoever wants to know what goes with what asks the same rows. */
#ifndef DTSIM_RULE_H
#define DTSIM_RULE_H

#include "expression/condition.h"

enum rule_kind {
    RULE_VALUES, RULE_DEGREES, RULE_GPUS, RULE_BATCH, RULE_SCHEDULE,     /* EXIT_INFEASIBLE, of the kind of error */
    RULE_INPUT,                  /* EXIT_INPUT */
    RULE_IDLE,                   /* the key is said and changes nothing */
    RULE_YIELDS,                 /* no error: only what software files say of the key is taken back */
    RULE_SAME,                   /* no error, and not asked of a scenario: another value of the key is as fast and needs no
                                    more memory. A search of values that nobody listed tries that one alone */
};

/* `${EXPRESSION}` in the message stands for its value. Before the message stand the table's name and the key. Where the key
 * has its value from a software file, this value is taken back, and nothing is wrong: a file says it of any scenario. */
struct rule {
    const char *at;              /* paths, with spaces between them: the message stands at the first that is said, else at the
                                    first, and begins with its name; or with the one of "PATH @ PATHS". A part's own path is
                                    its mapping, unless an earlier part has a key of that name */
    enum rule_kind kind;
    const char *when;            /* the rule is broken where this is true; where it is undecided, it is not */
    const char *text;            /* the message; a line before it says in words what must hold: all of it where `fault`
                                    writes the message. NULL for YIELDS */
    /* What no condition can say, asked where `when` holds: the message, in the arena; NULL: nothing is wrong. Or NULL. */
    const char *(*fault)(struct arena *arena, const void *subject);
};
struct rules {
    const char *name;            /* of the table, in messages about a mistake in it */
    const struct rule *items;
    size_t count;
};
#define RULES(name, list) {name, list, COUNT(list)}

/* Asks all rows, one after another. -1: one is broken; each has its message then. Conditions are parsed once for all who
 * share the arena's cache. */
int rules_ask(struct arena *arena, const struct rules *rules, const struct key_parts *parts, struct error *err);

/* The rows with their conditions, parsed: for who asks them otherwise than all at once. */
const struct condition *rules_conditions(struct arena *arena, const struct rules *rules, const struct key_parts *parts);

/* The rule in words, whatever the values: what must hold, or its key and its message, with names for values:
 * "strategy.shard: <strategy.shard>, but 'zero: 0' divides nothing; ...". In the arena. */
const char *rule_words(struct arena *arena, const struct rule *rule);
/* Its message alone, as it is written in the table; NULL: a function says it, or there is none. */
const char *rule_message(const struct rule *rule);

#endif
