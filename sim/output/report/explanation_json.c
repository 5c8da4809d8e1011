#include "report/explanation.h"

#include <math.h>
#include <string.h>

#include "engine/program.h"
#include "engine/replay.h"
#include "explain/idle.h"
#include "files/json.h"
#include "report/result.h"
#include "run/account.h"

static json_t *kinds_json(const double *seconds)
{
    json_t *json = json_object();

    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
        if (kind != ACCOUNT_BUBBLE)          /* on the path nobody waits */
            json_put(json, account_names[kind], json_real(seconds[kind]));
    return json;
}

static json_t *idle_json(const struct idle *idle)
{
    json_t *list = json_array();

    for (size_t i = 0; i < idle->count; i++) {
        const struct idle_wait *wait = &idle->items[i];

        json_append(list, json_pack(
            "{s:i, s:s, s:o, s:f, s:f}", "rank", wait->rank, "for", idle_cause_names[wait->cause], "of_rank",
            wait->on < 0 ? json_null() : json_integer(wait->on), "bubble_s", wait->bubble, "exposed_s",
            wait->exposed));
    }
    return list;
}

static json_t *path_json(const struct explanation *explanation)
{
    const struct program *program = &explanation->run->lowered.program;
    const struct critical_path *path = &explanation->path;
    json_t *ranks = json_array(), *pieces = json_array();

    for (int rank = 0; rank < path->nranks; rank++)
        json_append(ranks, kinds_json(path->ranks[rank]));
    for (size_t i = 0; i < path->pieces.count; i++) {
        const struct path_piece *piece = &path->pieces.items[i];
        const struct op *op = &program->ops.items[piece->op];
        const struct lane *lane = &program->lanes.items[op->lane];

        json_append(pieces, json_pack(
            "{s:i, s:s, s:s, s:i, s:i, s:f, s:f}", "rank", lane->rank, "lane", lane_kind_names[lane->kind], "kind",
            op_what_names[op->what], "stage", op->stage, "mb", op->mb, "from_s", piece->from, "to_s", piece->to));
    }
    return json_pack("{s:o, s:o, s:o}", "kinds_s", kinds_json(path->seconds), "ranks_s", ranks, "pieces", pieces);
}

static json_t *sets_json(const char *lines)
{
    json_t *list = json_array();

    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        json_append(list, json_stringn(lines, length));
    }
    return list;
}

static json_t *gains_json(const struct explanation *explanation)
{
    double whole = explanation->run->metrics.iteration_time;
    json_t *list = json_array();

    for (size_t i = 0; i < explanation->gains.count; i++) {
        const struct gain *gain = &explanation->gains.items[i];
        json_t *change = !gain->sets ? json_null() : json_pack(
            "{s:o, s:f, s:b}", "set", sets_json(gain->sets), "iteration_time_s", gain->sets_time, "fits",
            (int)gain->fits);

        json_append(list, json_pack(
            "{s:s, s:f, s:f, s:f, s:o}", "what_if", gain->name, "iteration_time_s", gain->time, "gain_s",
            whole - gain->time, "critical_path_s", gain->held, "change", change));
    }
    return list;
}

json_t *explanation_json(const struct explanation *explanation)
{
    const struct metrics *m = &explanation->run->metrics;

    const struct scenario *scenario = explanation->run->workload->scenario;

    json_t *json = json_pack("{s:o, s:f, s:[f, f], s:o, s:o, s:o, s:o, s:s}", "name", json_words(scenario->name), "iteration_time_s",
                     m->iteration_time, "window_s", m->window.from, m->window.to, "breakdown_s", breakdown_json(m),
                     "idle", idle_json(&explanation->idle), "critical_path", path_json(explanation), "what_if",
                     gains_json(explanation), "engine", engine_names[scenario->simulation.engine]);

    if (explanation_has_links(explanation))
        json_put(json, "busiest_links", explanation_links_json(explanation));
    return json;
}
