#include "base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

/* B of memory for each operation of a program, with its dependencies, its times and what engines and metrics keep for
 * it. `dtsim run` was found to need 60 B (a pipeline of four stages) to 140 B (replicas that exchange messages, with
 * replays for the causes) for each operation that is estimated. The least of it: what fits is not refused, and what
 * does not is stopped later. */
enum { OPERATION_BYTES = 60 };

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int budget_parse(const char *text, struct budget *budget)
{
    char why[256];
    double value;

    if (!unit_parse(UNIT_TIME, text, &value, why, sizeof why) && value > 0)
        budget->seconds = value;
    else if (!unit_parse(UNIT_BYTES, text, &value, why, sizeof why) && value > 0)
        budget->bytes = value;
    else
        return -1;
    return 0;
}

void progress_begin(struct progress *progress, const char *option, double seconds, double bytes)
{
    const char *terminal = getenv("TERM");

    *progress = (struct progress){
        .option = option, .seconds = seconds, .bytes = bytes, .began = now(),
        .shown = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb"),
    };
}

static double share_done(const struct progress *progress)
{
    return progress->total ? (double)progress->done / (double)progress->total : 0;
}

/* s until the step ends; NaN: it has hardly begun. */
static double time_left(const struct progress *progress, double time)
{
    double share = share_done(progress), taken = time - progress->step_began;

    return share > 0 && taken > 0.2 ? taken * (1 / share - 1) : NAN;
}

/* "replaying: 34 % of 12.35 M operations, 8 s left". */
static void describe(const struct progress *progress, double left, char *line, size_t size)
{
    char count[48], time[48];
    int length;

    unit_format_short(UNIT_COUNT, (double)(progress->total ? progress->total : progress->done), count, sizeof count);
    if (progress->total)
        length = snprintf(line, size, "%s: %.0f %% of %s operations", progress->doing,
                          floor(100 * share_done(progress)), count);
    else
        length = snprintf(line, size, "%s: %s operations so far", progress->doing, count);
    if (!isnan(left))
        snprintf(line + length, size - (size_t)length, ", %s left",
                 unit_format_short(UNIT_TIME, ceil(left), time, sizeof time));
}

/* Nothing is shown of a command that ends within two seconds. */
static void draw(struct progress *progress, double time)
{
    double left = time_left(progress, time), taken = time - progress->began;
    struct winsize window = {0};
    char line[160];

    if ((taken < 2 && !(taken + left > 2)) || time - progress->drawn < 0.2)
        return;
    progress->drawn = time;
    describe(progress, left, line, sizeof line);
    if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &window) && window.ws_col > 1 && window.ws_col <= strlen(line))
        line[window.ws_col - 1] = '\0';      /* a line that wraps could not be rewritten */
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    progress->line = true;
}

/* Reading the memory takes 5 us, so it is not read at every step. */
static double weigh(struct progress *progress, double time)
{
    if (time - progress->weighed > 0.001) {
        progress->held = memory_held();
        progress->weighed = time;
    }
    return progress->held;
}

static bool spent(struct progress *progress, double time)
{
    return (progress->seconds > 0 && time - progress->began > progress->seconds) ||
           (progress->bytes > 0 && weigh(progress, time) > progress->bytes);
}

bool progress_step(struct progress *progress, const char *doing, size_t done, size_t total, double simulated)
{
    double time;

    if (!progress || progress->over)
        return progress;
    time = now();
    if (progress->doing != doing || done < progress->done)
        progress->step_began = time;
    progress->doing = doing;
    progress->done = done;
    progress->total = total;
    progress->simulated = simulated;
    if (progress->shown)
        draw(progress, time);
    progress->over = spent(progress, time);
    return progress->over;
}

int progress_patience(const struct progress *progress)
{
    double left;

    if (!progress || progress->seconds == 0)
        return -1;
    left = progress->began + progress->seconds - now();
    return left > 1e6 ? 1000000000 : left > 0 ? (int)(1000 * left) + 1 : 0;
}

/* What limits the memory, for messages. */
static const char *memory_limit(const struct progress *progress)
{
    return strncmp(progress->option, "--", 2) ? progress->option : "--budget";
}

int progress_check(const struct progress *progress, struct error *err)
{
    char count[2][48], spent[48], simulated[48], far[200] = "";
    bool memory;

    if (!progress || !progress->over)
        return 0;
    memory = progress->bytes > 0 && progress->held > progress->bytes;
    unit_format_short(UNIT_COUNT, (double)progress->done, count[0], sizeof count[0]);
    unit_format_short(UNIT_COUNT, (double)progress->total, count[1], sizeof count[1]);
    if (progress->total)
        snprintf(far, sizeof far, ": %s of %s operations (%.0f %%), %s of simulated time", count[0], count[1],
                 floor(100 * share_done(progress)),
                 unit_format_short(UNIT_TIME, progress->simulated, simulated, sizeof simulated));
    else if (progress->done)
        snprintf(far, sizeof far, ": %s operations so far, none replayed", count[0]);
    return error_add(err, EXIT_STOPPED, (struct loc){0}, "stopped by %s %s, %s%s",
                     memory ? memory_limit(progress) : progress->option,
                     memory ? unit_format_short(UNIT_BYTES, progress->bytes, spent, sizeof spent)
                            : unit_format_short(UNIT_TIME, progress->seconds, spent, sizeof spent),
                     progress->doing, far);
}

int progress_look(struct progress *progress, struct error *err)
{
    if (!progress)
        return 0;
    if (!progress->doing)
        progress->doing = "reading";
    progress->over = progress->over || spent(progress, now());
    return progress_check(progress, err);
}

int progress_admit(struct progress *progress, double operations, struct error *err)
{
    char need[48], have[48], count[48];
    double bytes;

    if (!progress || progress->bytes == 0)
        return 0;
    bytes = memory_held() + operations * OPERATION_BYTES;
    if (bytes <= progress->bytes)
        return 0;
    return error_add(err, EXIT_STOPPED, (struct loc){0}, "stopped by %s %s, before lowering: needs about %s for "
                     "%s operations",
                     memory_limit(progress), unit_format_short(UNIT_BYTES, progress->bytes, have, sizeof have),
                     unit_format_short(UNIT_BYTES, bytes, need, sizeof need),
                     unit_format_short(UNIT_COUNT, operations, count, sizeof count));
}

void progress_end(struct progress *progress)
{
    if (progress && progress->line)
        fputs("\r\033[K", stderr);
    if (progress)
        progress->line = false;
}
