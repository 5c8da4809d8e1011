#include "report/explanation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "engine/replay.h"
#include "explain/critical_path.h"
#include "explain/gains.h"
#include "explain/idle.h"
#include "report/result.h"
#include "run/account.h"
#include "scenario/scenario.h"

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

/* A part of `whole` seconds, all in one unit. */
static const char *seconds_text(double seconds, double whole, char *buffer, size_t size)
{
    return unit_format_like(UNIT_TIME, whole, seconds, buffer, size);
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

/* The idle seconds of a rank, and its waits. */
static double idle_of(const struct idle *idle, int rank)
{
    double seconds = 0;

    for (size_t i = 0; i < idle->count; i++)
        if (idle->items[i].rank == rank)
            seconds += idle->items[i].bubble + idle->items[i].exposed;
    return seconds;
}

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

static void print_idle(const struct explanation *explanation, FILE *out)
{
    double whole = explanation->run->metrics.iteration_time;
    char text[3][64];

    fputs("\nwhy ranks do not compute\n", out);
    for (int rank = 0; rank < explanation->path.nranks; rank++) {
        double idle = idle_of(&explanation->idle, rank);

        if (!is_shown(rank, explanation->path.nranks))
            continue;
        fprintf(out, "  rank %-4d %s of %s (%.1f %%)\n", rank, seconds_text(idle, whole, text[0], sizeof text[0]),
                seconds_text(whole, whole, text[1], sizeof text[1]), 100 * idle / whole);
        for (size_t i = 0; i < explanation->idle.count; i++) {
            const struct idle_wait *wait = &explanation->idle.items[i];
            double seconds = wait->bubble + wait->exposed;

            if (wait->rank != rank || seconds < 0.0005 * whole)
                continue;
            fprintf(out, "    %-10s for %s", seconds_text(seconds, whole, text[0], sizeof text[0]),
                    wait_text(wait, text[1], sizeof text[1]));
            if (wait->bubble > 0 && wait->exposed > 0)
                fprintf(out, " (%s of it on the way)", seconds_text(wait->exposed, whole, text[2], sizeof text[2]));
            fputc('\n', out);
        }
    }
    print_others(explanation->path.nranks, out);
}

static void print_path(const struct explanation *explanation, FILE *out)
{
    const struct critical_path *path = &explanation->path;
    double whole = sum_of(path->seconds);
    char text[2][64];

    fprintf(out, "\nthe critical path: %zu operations, as long as the iteration; what is not on it can take longer\n",
            path->pieces.count);
    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
        if (path->seconds[kind] > 0)
            fprintf(out, "  %-26s %-10s %5.1f %%\n", kind_text(kind, text[0], sizeof text[0]),
                    seconds_text(path->seconds[kind], whole, text[1], sizeof text[1]),
                    100 * path->seconds[kind] / whole);
    for (int rank = 0; rank < path->nranks && path->nranks > 1; rank++) {
        double busy = busy_of(path->ranks[rank]), other = sum_of(path->ranks[rank]) - busy;

        if (busy + other == 0 || !(is_shown(rank, path->nranks) || busy + other > 0.05 * whole))
            continue;
        fprintf(out, "  rank %-21d %-10s", rank, seconds_text(busy, whole, text[0], sizeof text[0]));
        fprintf(out, " %5.1f %%", 100 * busy / whole);
        if (other > 0)
            fprintf(out, ", and %s of communication from there", seconds_text(other, whole, text[1], sizeof text[1]));
        fputc('\n', out);
    }
    print_others(path->nranks, out);
    if (explanation->run->workload->scenario->simulation.engine != ENGINE_IDEAL &&
        path->seconds[ACCOUNT_EXPOSED_PIPELINE] + path->seconds[ACCOUNT_EXPOSED_DATA] > 0)
        fputs("  (a transfer is one piece: what it loses to others on its links is part of it)\n", out);
}

/* "--set strategy.chunks=2 --set 'cluster={platform: x}'". */
static const char *sets_text(struct arena *arena, const char *lines)
{
    const char *text = "";
    char *shown;

    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        const char *quote = memchr(lines, ' ', length) || memchr(lines, '[', length) ? "'" : "";

        text = arena_printf(arena, "%s%s--set %s%.*s%s", text, *text ? " " : "", quote, (int)length, lines, quote);
    }
    shown = text_made(TEXT_LINE, text);
    text = arena_strdup(arena, shown);
    free(shown);
    return text;
}

static void print_gains(const struct explanation *explanation, FILE *out)
{
    struct arena arena = {0};
    double whole = explanation->run->metrics.iteration_time;
    char text[3][64];

    fputs("\nwhat if, each alone, simulated\n", out);
    for (size_t i = 0; i < explanation->gains.count; i++) {
        const struct gain *gain = &explanation->gains.items[i];

        fprintf(out, "  %-22s %-10s %+6.1f %%\n", gain->title, seconds_text(gain->time, whole, text[0], sizeof text[0]),
                100 * (gain->time / whole - 1) + 0.0);
        if (gain->sets)
            fprintf(out, "    %s: %s%s\n", sets_text(&arena, gain->sets),
                    seconds_text(gain->sets_time, whole, text[1], sizeof text[1]),
                    gain->fits ? "" : ", and does not fit in memory");
    }
    arena_release(&arena);
}

void explanation_print(const struct explanation *explanation, FILE *out)
{
    const struct metrics *m = &explanation->run->metrics;
    const struct scenario *scenario = explanation->run->workload->scenario;
    char text[2][64], degrees[128];
    struct arena arena = {0};
    const char *setup = setup_text(&arena, scenario);

    text_write(TEXT_LINE, scenario->name, out);
    fprintf(out, ": %s, %s = %d GPU%s, iteration time %s, engine %s\n",
            scenario_schedule(scenario)->name, scenario_degrees(scenario, degrees, sizeof degrees),
            scenario_gpus(scenario), scenario_gpus(scenario) == 1 ? "" : "s",
            unit_format_short(UNIT_TIME, m->iteration_time, text[0], sizeof text[0]),
            engine_names[scenario->simulation.engine]);
    if (*setup || scenario->software.names.title)
        fprintf(out, "  %s%s", setup, *setup && scenario->software.names.title ? "; " : "");
    if (scenario->software.names.title)
        text_write(TEXT_LINE, scenario->software.names.title, out);
    if (*setup || scenario->software.names.title)
        fputc('\n', out);
    if (m->window.steady)
        fprintf(out, "  means over %d optimizer steps in the steady state; seconds a step\n", m->window.updates);
    arena_release(&arena);
    print_idle(explanation, out);
    print_path(explanation, out);
    explanation_links_print(explanation, out);
    print_gains(explanation, out);
}

static void markdown_idle(const struct explanation *explanation, FILE *out)
{
    double whole = explanation->run->metrics.iteration_time;
    char text[3][64];

    fputs("| rank | waits for | computing there | on the way |\n|---:|---|---:|---:|\n", out);
    for (size_t i = 0; i < explanation->idle.count; i++) {
        const struct idle_wait *wait = &explanation->idle.items[i];

        fprintf(out, "| %d | %s | %s | %s |\n", wait->rank, wait_text(wait, text[0], sizeof text[0]),
                seconds_text(wait->bubble, whole, text[1], sizeof text[1]),
                seconds_text(wait->exposed, whole, text[2], sizeof text[2]));
    }
}

void explanation_markdown(const struct explanation *explanation, FILE *out)
{
    const struct critical_path *path = &explanation->path;
    struct arena arena = {0};
    double whole = sum_of(path->seconds);
    char text[3][64];

    markdown_idle(explanation, out);
    fputs("\n| on the critical path | time | share |\n|---|---:|---:|\n", out);
    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
        if (path->seconds[kind] > 0)
            fprintf(out, "| %s | %s | %.1f %% |\n", kind_text(kind, text[0], sizeof text[0]),
                    seconds_text(path->seconds[kind], whole, text[1], sizeof text[1]),
                    100 * path->seconds[kind] / whole);
    fputs("\n| what if | iteration time | nearest change | with it |\n|---|---:|---|---:|\n", out);
    for (size_t i = 0; i < explanation->gains.count; i++) {
        const struct gain *gain = &explanation->gains.items[i];

        fprintf(out, "| %s | %s | ", gain->title, seconds_text(gain->time, whole, text[0], sizeof text[0]));
        if (gain->sets)
            fprintf(out, "`%s` | %s%s |\n", sets_text(&arena, gain->sets),
                    seconds_text(gain->sets_time, whole, text[1], sizeof text[1]), gain->fits ? "" : ", too large");
        else
            fputs("| |\n", out);
    }
    arena_release(&arena);
}
