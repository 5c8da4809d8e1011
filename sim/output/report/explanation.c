#include "report/explanation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "engine/program.h"
#include "engine/replay.h"
#include "explain/critical_path.h"
#include "explain/gains.h"
#include "explain/idle.h"
#include "files/json.h"
#include "report/result.h"
#include "run/account.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "view/say.h"
#include "view/view.h"

int explanation_init(struct explanation *explanation, const struct run *run, struct simulate_options options,
                     struct error *err)
{
    memset(explanation, 0, sizeof *explanation);
    explanation->run = run;
    idle_init(&explanation->idle, run);
    critical_path_init(&explanation->path, run);
    return gains_init(&explanation->gains, &explanation->arena, run, &explanation->path, options, err);
}

void explanation_release(struct explanation *explanation)
{
    idle_release(&explanation->idle);
    critical_path_release(&explanation->path);
    arena_release(&explanation->arena);
    memset(explanation, 0, sizeof *explanation);
}

/* "gradients of rank 3". */
static const char *wait_text(const struct idle_wait *wait, char *buffer, size_t size)
{
    const char *text = idle_cause_texts[wait->cause], *number = strstr(text, "%d");

    if (number)
        snprintf(buffer, size, "%.*s%d%s", (int)(number - text), text, wait->on, number + 2);
    else
        snprintf(buffer, size, "%s", text);
    return buffer;
}

static double busy_of(const double *seconds)
{
    double busy = 0;

    for (int kind = 0; kind < ACCOUNT_EXPOSED_TENSOR; kind++)
        busy += seconds[kind];
    return busy;
}

static double sum_of(const double *seconds)
{
    double sum = 0;

    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
        sum += seconds[kind];
    return sum;
}

/* A kind's name for people: on the path nothing is exposed, it is passed through. */
static const char *kind_text(int kind, char *buffer, size_t size)
{
    bool exposed = !strncmp(account_names[kind], "exposed_", 8);

    snprintf(buffer, size, "%s%s", kind == ACCOUNT_UPDATE ? "optimizer step" : account_names[kind] + (exposed ? 8 : 0),
             kind == ACCOUNT_EXPOSED_OFFLOAD ? "" : exposed ? " communication" : "");
    for (char *at = buffer; *at; at++)
        *at = *at == '_' ? '-' : *at;
    return buffer;
}

static double whole_of(const struct explanation *explanation)
{
    return explanation->run->metrics.iteration_time;
}

static json_t *wait_words(const struct idle_wait *wait)
{
    char text[64];

    return json_words(wait_text(wait, text, sizeof text));
}

#define WAIT(ROW) \
    ROW(rank, json_integer(it->idle.items[i].rank), "that does not compute") \
    ROW(for, json_string(idle_cause_names[it->idle.items[i].cause]), "what it waits for") \
    ROW(of_rank, it->idle.items[i].on < 0 ? json_null() : json_integer(it->idle.items[i].on), \
        "which computes meanwhile; null: no one alone") \
    ROW(bubble_s, json_real(it->idle.items[i].bubble), "while the rank that it waits for computes") \
    ROW(exposed_s, json_real(it->idle.items[i].exposed), "for communication that nothing hides") \
    ROW(all_s, json_real(it->idle.items[i].bubble + it->idle.items[i].exposed), NULL) \
    ROW(whole_s, json_real(whole_of(it)), NULL) ROW(words, wait_words(&it->idle.items[i]), NULL)
VIEW(wait_view, struct explanation, it, WAIT)

/* On the path nobody waits. */
static json_t *kinds_json(const double *seconds)
{
    json_t *json = json_numbers(account_names, seconds, ACCOUNT_KIND_COUNT);

    json_object_del(json, account_names[ACCOUNT_BUBBLE]);
    return json;
}

static const struct op *op_of(const struct explanation *explanation, size_t piece)
{
    return &explanation->run->lowered.program.ops.items[explanation->path.pieces.items[piece].op];
}

static const struct lane *lane_of(const struct explanation *explanation, size_t piece)
{
    return &explanation->run->lowered.program.lanes.items[op_of(explanation, piece)->lane];
}

#define PIECE(ROW) \
    ROW(rank, json_integer(lane_of(it, i)->rank), "whose operation it is") \
    ROW(lane, json_string(lane_kind_names[lane_of(it, i)->kind]), "stream of the rank, or engine") \
    ROW(kind, json_string(op_what_names[op_of(it, i)->what]), "what it does") \
    ROW(stage, json_integer(op_of(it, i)->stage), "virtual stage; -1: none") \
    ROW(mb, json_integer(op_of(it, i)->mb), "micro-batch; -1: none") \
    ROW(from_s, json_real(it->path.pieces.items[i].from), "its start") \
    ROW(to_s, json_real(it->path.pieces.items[i].to), "its end")
VIEW(piece_view, struct explanation, it, PIECE)

static json_t *ranks_json(const struct critical_path *path)
{
    json_t *ranks = json_array();

    for (int rank = 0; rank < path->nranks; rank++)
        json_append(ranks, kinds_json(path->ranks[rank]));
    return ranks;
}

#define PATH(ROW) \
    ROW(kinds_s, kinds_json(it->path.seconds), "its time by kind", .form = VIEW_MAP) \
    ROW(ranks_s, ranks_json(&it->path), "the same of each rank's operations", .form = VIEW_MAPS) \
    ROW(pieces, view_each(&piece_view, it, it->path.pieces.count), "its operations, from the first to the last", .form = VIEW_LIST, .of = &piece_view)
VIEW(path_view, struct explanation, it, PATH)

/* "--set strategy.chunks=2 --set 'cluster={platform: x}'". */
static const char *sets_text(struct arena *arena, const char *lines)
{
    const char *text = "";

    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        const char *quote = memchr(lines, ' ', length) || memchr(lines, '[', length) ? "'" : "";

        text = arena_printf(arena, "%s%s--set %s%.*s%s", text, *text ? " " : "", quote, (int)length, lines, quote);
    }
    return text;
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

static json_t *sets_words(const char *lines)
{
    struct arena arena = {0};
    json_t *json = lines ? json_words(sets_text(&arena, lines)) : json_null();

    arena_release(&arena);
    return json;
}

#define CHANGE(ROW) \
    ROW(set, sets_json(it->sets), "a list of PATH=VALUE") \
    ROW(iteration_time_s, json_real(it->sets_time), "with it") \
    ROW(fits, json_boolean(it->fits), "whether it fits in memory")
VIEW(change_view, struct gain, it, CHANGE)

#define GAIN(ROW) \
    ROW(what_if, json_string(it->gains.items[i].name), "what costs less or nothing") \
    ROW(iteration_time_s, json_real(it->gains.items[i].time), "if so, simulated") \
    ROW(gain_s, json_real(whole_of(it) - it->gains.items[i].time), "how much less that is") \
    ROW(critical_path_s, json_real(it->gains.items[i].held), "the most that the critical path lets it gain") \
    ROW(change, it->gains.items[i].sets ? view_json(&change_view, &it->gains.items[i]) : json_null(), \
        "of the scenario, from a short list, that comes nearest; null: none does", .of = &change_view) \
    ROW(title, json_string(it->gains.items[i].title), NULL) ROW(whole_s, json_real(whole_of(it)), NULL) \
    ROW(more, json_real(it->gains.items[i].time / whole_of(it) - 1), NULL) \
    ROW(sets, sets_words(it->gains.items[i].sets), NULL)
VIEW(gain_view, struct explanation, it, GAIN)

static const struct scenario *scenario_of(const struct explanation *explanation)
{
    return explanation->run->workload->scenario;
}

static json_t *window_json(const struct window *window)
{
    return json_pack("[f, f]", window->from, window->to);
}

static json_t *words_of_scenario(const struct scenario *scenario, bool setup)
{
    struct arena arena = {0};
    char degrees[128];
    json_t *json = json_words_or_null(setup ? setup_text(&arena, scenario) :
                                      scenario_degrees(scenario, degrees, sizeof degrees));

    arena_release(&arena);
    return json;
}

#define EXPLANATION(ROW) \
    ROW(name, json_words(scenario_of(it)->name), "of the scenario") \
    ROW(iteration_time_s, json_real(whole_of(it)), "as in result.json") \
    ROW(window_s, window_json(&it->run->metrics.window), "as in result.json") \
    ROW(breakdown_s, breakdown_json(&it->run->metrics), "as in result.json", .form = VIEW_MAP) \
    ROW(idle, view_each(&wait_view, it, it->idle.count), "why ranks do not compute, by rank, the longest first", .form = VIEW_LIST, .of = &wait_view) \
    ROW(critical_path, view_json(&path_view, it), "operations that begin when the one before has ended", .of = &path_view) \
    ROW(what_if, view_each(&gain_view, it, it->gains.count), "the largest gain first", .form = VIEW_LIST, .of = &gain_view) \
    ROW(engine, json_string(engine_names[scenario_of(it)->simulation.engine]), "that simulated it") \
    ROW(busiest_links, explanation_has_links(it) ? explanation_links(it) : NULL, \
        "left out: the network has no links besides NICs", .form = VIEW_LIST, .of = &busiest_view) \
    ROW(folder_iteration_time_s, NULL, "of a folder of another build: as its result has it") \
    ROW(schedule, json_string(scenario_schedule(scenario_of(it))->name), NULL) \
    ROW(degrees, words_of_scenario(scenario_of(it), false), NULL) \
    ROW(gpus, json_integer(scenario_gpus(scenario_of(it))), NULL) \
    ROW(setup, words_of_scenario(scenario_of(it), true), NULL) \
    ROW(software, json_words_or_null(scenario_of(it)->software.names.title), NULL) \
    ROW(updates, it->run->metrics.window.steady ? json_integer(it->run->metrics.window.updates) : json_null(), NULL) \
    ROW(pieces, json_count(it->path.pieces.count), NULL)
VIEW_SHARED(explanation_view, struct explanation, it, EXPLANATION)

/* Of many ranks only the first, a middle one and the last are printed. */
enum { RANKS_SHOWN = 16 };
static bool is_shown(int rank, int nranks)
{
    return nranks <= RANKS_SHOWN || rank < 2 || rank == nranks / 2 || rank >= nranks - 2;
}

static void print_others(int nranks, FILE *out)
{
    if (nranks > RANKS_SHOWN)
        fprintf(out, "  (--json has all of the %d ranks)\n", nranks);
}

/* Seconds of a rank or kind, and of all. */
struct part { const char *kind; int rank; double seconds, other, whole; };

#define PART(ROW) \
    ROW(kind, json_words_or_null(it->kind), NULL) ROW(rank, json_integer(it->rank), NULL) \
    ROW(time_s, json_real(it->seconds), NULL) ROW(other_s, json_real(it->other), NULL) \
    ROW(whole_s, json_real(it->whole), NULL) ROW(share, json_real(it->seconds / it->whole), NULL)
VIEW(part_view, struct part, it, PART)

/* The idle seconds of a rank, and its waits. */
static double idle_of(const struct idle *idle, int rank)
{
    double seconds = 0;

    for (size_t i = 0; i < idle->count; i++)
        if (idle->items[i].rank == rank)
            seconds += idle->items[i].bubble + idle->items[i].exposed;
    return seconds;
}

static void print_idle(const struct explanation *explanation, FILE *out)
{
    double whole = whole_of(explanation);

    fputs("\nwhy ranks do not compute\n", out);
    for (int rank = 0; rank < explanation->path.nranks; rank++) {
        if (!is_shown(rank, explanation->path.nranks))
            continue;
        view_say(&part_view, &(struct part){NULL, rank, idle_of(&explanation->idle, rank), 0, whole},
                 "  rank {rank@-4} {time_s~whole_s} of {whole_s} ({share*100:%.1f} %)\n", out);
        for (size_t i = 0; i < explanation->idle.count; i++) {
            const struct idle_wait *wait = &explanation->idle.items[i];

            if (wait->rank == rank && wait->bubble + wait->exposed >= 0.0005 * whole)
                view_say_item(&wait_view, explanation, i, "    {all_s~whole_s@-10} for {words}"
                         "[?bubble_s>0 [?exposed_s>0  ({exposed_s~whole_s} of it on the way)]]\n", out);
        }
    }
    print_others(explanation->path.nranks, out);
}

static void say_kinds(const struct critical_path *path, const char *line, FILE *out)
{
    char text[64];

    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
        if (path->seconds[kind] > 0)
            view_say(&part_view, &(struct part){kind_text(kind, text, sizeof text), 0, path->seconds[kind], 0,
                                                sum_of(path->seconds)}, line, out);
}

static void print_path(const struct explanation *explanation, FILE *out)
{
    const struct critical_path *path = &explanation->path;
    double whole = sum_of(path->seconds);

    say_kinds(path, "  {kind@-26} {time_s~whole_s@-10} {share*100:%5.1f} %\n", out);
    for (int rank = 0; rank < path->nranks && path->nranks > 1; rank++) {
        double all = sum_of(path->ranks[rank]), busy = busy_of(path->ranks[rank]);

        if (all != 0 && (is_shown(rank, path->nranks) || all > 0.05 * whole))
            view_say(&part_view, &(struct part){NULL, rank, busy, all - busy, whole}, "  rank {rank@-21} {time_s~whole_s@-10} "
                     "{share*100:%5.1f} %[?other_s>0 , and {other_s~whole_s} of communication from there]\n", out);
    }
    print_others(path->nranks, out);
    if (scenario_of(explanation)->simulation.engine != ENGINE_IDEAL &&
        path->seconds[ACCOUNT_EXPOSED_PIPELINE] + path->seconds[ACCOUNT_EXPOSED_DATA] > 0)
        fputs("  (a transfer is one piece: what it loses to others on its links is part of it)\n", out);
}

static void say_gains(const struct explanation *explanation, const char *line, FILE *out)
{
    for (size_t i = 0; i < explanation->gains.count; i++)
        view_say_item(&gain_view, explanation, i, line, out);
}

void explanation_print(const struct explanation *explanation, FILE *out)
{
    json_t *facts = view_facts(&explanation_view, explanation);

    say(facts, "{name}: {schedule}, {degrees} = {gpus GPU}, iteration time {iteration_time_s}, engine {engine}\n"
        "[  {setup}[; {software}]\n|  {software}\n][  means over {updates} optimizer steps in the steady state; seconds a step\n]",
        out);
    print_idle(explanation, out);
    say(facts, "\nthe critical path: {pieces:%.0f} operations, as long as the iteration; what is not on it can take longer\n", out);
    print_path(explanation, out);
    say(facts, "[?busiest_links \nthe busiest link of each kind: the share of the iteration that its full rate would need\n]", out);
    say_each(json_object_get(facts, "busiest_links"), "  {link@-26} {busy*100:%5.1f} %, of {of link}\n", out);
    fputs("\nwhat if, each alone, simulated\n", out);
    say_gains(explanation, "  {title@-22} {iteration_time_s~whole_s@-10} {more*100:%+6.1f} %\n"
              "[    {sets}: {change.iteration_time_s~whole_s}[?change.fits=0 , and does not fit in memory]\n]", out);
    json_decref(facts);
}

void explanation_markdown(const struct explanation *explanation, FILE *out)
{
    fputs("| rank | waits for | computing there | on the way |\n|---:|---|---:|---:|\n", out);
    for (size_t i = 0; i < explanation->idle.count; i++)
        view_say_item(&wait_view, explanation, i, "| {rank} | {words} | {bubble_s~whole_s} | {exposed_s~whole_s} |\n", out);
    fputs("\n| on the critical path | time | share |\n|---|---:|---:|\n", out);
    say_kinds(&explanation->path, "| {kind} | {time_s~whole_s} | {share*100:%.1f} % |\n", out);
    fputs("\n| what if | iteration time | nearest change | with it |\n|---|---:|---|---:|\n", out);
    say_gains(explanation, "| {title} | {iteration_time_s~whole_s} | [`{sets}` \\| {change.iteration_time_s~whole_s}"
              "[?change.fits=0 , too large] \\||\\| \\|]\n", out);
}
