#include "cli/alike_view.h"

#include <string.h>

#include "alike/alike.h"
#include "cli/said.h"
#include "files/json.h"
#include "view/view.h"

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

static void alike_print(const struct alike *alike, const struct scenario *scenario, FILE *out)
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

struct alike_of { const struct alike *alike; const struct scenario *scenario; };

#define REASON(ROW) \
    ROW(key, json_string(it->key), "of the scenario, or what it is") \
    ROW(why, json_string(it->why), "all are simulated") \
    ROW(change, json_string(it->change), "that lets one stand for others")
VIEW(reason_view, struct alike_text, it, REASON)

static json_t *reasons_json(uint32_t reasons)
{
    json_t *list = json_array();

    for (size_t i = 0; alike_text(reasons, i); i++)
        json_append(list, view_json(&reason_view, alike_text(reasons, i)));
    return list;
}

#define REASONS(ROW, bits) \
    ROW(reasons, reasons_json(bits), "why all are simulated", .form = VIEW_LIST, .of = &reason_view)
#define STOOD(ROW) \
    ROW(simulated, json_integer(it->simulated), "of them") \
    ROW(all, json_integer(it->all), "for which these stand") \
    REASONS(ROW, it->reasons)
VIEW(stood_view, struct stood, it, STOOD)

#define COLLECTIVES(ROW) \
    ROW(measured, json_boolean(it->measured), "each collective of replicas is simulated once") \
    REASONS(ROW, it->reasons[ALIKE_MEASURED])
VIEW(measured_view, struct alike, it, COLLECTIVES)

static json_t *stood_json(struct stood stood)
{
    return view_json(&stood_view, &stood);
}

static json_t *collectives_json(const struct alike_of *of, enum alike_way way)
{
    json_t *groups = json_object();

    for (enum group_kind kind = 0; kind < GROUP_KIND_COUNT; kind++)
        if (of_group(&of->alike->groups[kind], way).all)
            json_put(groups, of->scenario->groups.of[kind].name, stood_json(of_group(&of->alike->groups[kind], way)));
    return groups;
}

#define ALIKE(ROW) \
    ROW(flows, stood_json(alike_stood(it->alike, it->scenario, ALIKE_FLOWS)), "of a tensor-parallel group", .of = &stood_view) \
    ROW(replicas, stood_json(alike_stood(it->alike, it->scenario, ALIKE_REPLICAS)), "of the model", .of = &stood_view) \
    ROW(collectives, view_json(&measured_view, it->alike), "of replicas", .of = &measured_view) \
    ROW(nodes, collectives_json(it, ALIKE_NODES), "of a measured collective, by kind of group", .form = VIEW_MAP, \
        .of = &stood_view) \
    ROW(channels, collectives_json(it, ALIKE_CHANNELS), "the same", .form = VIEW_MAP, .of = &stood_view) \
    ROW(micro_batches, stood_json(alike_stood(it->alike, it->scenario, ALIKE_MICRO_BATCHES)), "of a replica", .of = &stood_view)
VIEW_SHARED(alike_view, struct alike_of, it, ALIKE)

void alike_show(const struct alike *alike, const struct scenario *scenario, bool json)
{
    if (json)
        view_print(&alike_view, &(struct alike_of){alike, scenario}, stdout);
    else
        alike_print(alike, scenario, stdout);
}
