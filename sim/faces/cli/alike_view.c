#include "cli/alike_view.h"

#include <string.h>

#include "alike/alike.h"
#include "files/json.h"

static void print_reasons(uint32_t reasons, FILE *out)
{
    for (size_t i = 0; alike_text(reasons, i); i++) {
        const struct alike_text *text = alike_text(reasons, i);

        fprintf(out, "  because %s: %s\n    to change it: %s\n", text->key, text->why, text->change);
    }
}

/* What is simulated: "replica", "replicas"; `where`: in which of several groups, or "". */
struct noun { const char *one, *many, *where; };

/* "1 simulated for 8 replicas", "all 8 replicas simulated". */
static void print_stood(const char *name, struct noun noun, struct stood stood, FILE *out)
{
    fprintf(out, "%-14s", name);
    if (stood.all <= 1)
        fprintf(out, "there is just one %s%s\n", noun.one, noun.where);
    else if (stood.simulated < stood.all)
        fprintf(out, "%d simulated for %d %s%s\n", stood.simulated, stood.all, noun.many, noun.where);
    else
        fprintf(out, "all %d %s%s simulated\n", stood.all, noun.many, noun.where);
    print_reasons(stood.reasons, out);
}

static struct stood of_group(const struct alike_group *group, enum alike_way way)
{
    return way == ALIKE_NODES ? group->nodes : group->channels;
}

/* Nodes or channels of measured collectives, by kind of group. */
static void print_collectives(const struct alike *alike, const struct scenario *scenario, enum alike_way way, FILE *out)
{
    bool any = false;

    for (enum group_kind kind = 0; kind < GROUP_KIND_COUNT; kind++) {
        struct stood stood = of_group(&alike->groups[kind], way);
        char where[64];

        if (!stood.all)
            continue;
        snprintf(where, sizeof where, " of %s groups", scenario->groups.of[kind].name);
        print_stood(alike_way_names[way], way == ALIKE_NODES ? (struct noun){"node", "nodes", where} :
                                                               (struct noun){"channel", "channels", where}, stood, out);
        any = true;
    }
    if (!any)
        fprintf(out, "%-14sno measured collective runs %s\n", alike_way_names[way],
                way == ALIKE_NODES ? "through more than two nodes" : "on more than one channel");
}

void alike_print(const struct alike *alike, const struct scenario *scenario, FILE *out)
{
    print_stood(alike_way_names[ALIKE_FLOWS], (struct noun){"GPU", "GPUs", " of a tensor-parallel group"},
                alike_stood(alike, scenario, ALIKE_FLOWS), out);
    print_stood(alike_way_names[ALIKE_REPLICAS], (struct noun){"replica", "replicas", ""},
                alike_stood(alike, scenario, ALIKE_REPLICAS), out);
    fprintf(out, "%-14s%s\n", alike_way_names[ALIKE_MEASURED],
            alike->measured ? "each collective of replicas is simulated once, its duration stands for its messages" :
            alike->reasons[ALIKE_MEASURED] ? "no: collectives of replicas are simulated message by message" :
                                             "replicas exchange nothing");
    print_reasons(alike->reasons[ALIKE_MEASURED], out);
    print_collectives(alike, scenario, ALIKE_NODES, out);
    print_collectives(alike, scenario, ALIKE_CHANNELS, out);
    print_stood(alike_way_names[ALIKE_MICRO_BATCHES], (struct noun){"micro-batch", "micro-batches", " of a replica"},
                alike_stood(alike, scenario, ALIKE_MICRO_BATCHES), out);
}

static json_t *reasons_json(uint32_t reasons)
{
    json_t *list = json_array();

    for (size_t i = 0; alike_text(reasons, i); i++) {
        const struct alike_text *text = alike_text(reasons, i);

        json_append(list, json_pack("{s:s, s:s, s:s}", "key", text->key, "why", text->why, "change",
                                              text->change));
    }
    return list;
}

static json_t *stood_json(struct stood stood)
{
    return json_pack("{s:i, s:i, s:o}", "simulated", stood.simulated, "all", stood.all, "reasons",
                     reasons_json(stood.reasons));
}

static json_t *collectives_json(const struct alike *alike, const struct scenario *scenario, enum alike_way way)
{
    json_t *groups = json_object();

    for (enum group_kind kind = 0; kind < GROUP_KIND_COUNT; kind++)
        if (of_group(&alike->groups[kind], way).all)
            json_put(groups, scenario->groups.of[kind].name,
                                stood_json(of_group(&alike->groups[kind], way)));
    return groups;
}

json_t *alike_json(const struct alike *alike, const struct scenario *scenario)
{
    json_t *measured = json_pack("{s:b, s:o}", "measured", alike->measured, "reasons",
                                 reasons_json(alike->reasons[ALIKE_MEASURED]));

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}",
                     alike_way_names[ALIKE_FLOWS], stood_json(alike_stood(alike, scenario, ALIKE_FLOWS)),
                     alike_way_names[ALIKE_REPLICAS], stood_json(alike_stood(alike, scenario, ALIKE_REPLICAS)),
                     alike_way_names[ALIKE_MEASURED], measured,
                     alike_way_names[ALIKE_NODES], collectives_json(alike, scenario, ALIKE_NODES),
                     alike_way_names[ALIKE_CHANNELS], collectives_json(alike, scenario, ALIKE_CHANNELS),
                     alike_way_names[ALIKE_MICRO_BATCHES],
                     stood_json(alike_stood(alike, scenario, ALIKE_MICRO_BATCHES)));
}
