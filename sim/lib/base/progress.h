/* progress: how far a command has come. It is shown on a terminal, and it is held to the command's budget. Scenarios,
 * programs and measures carry its address to those who work for long; NULL: nobody wants to know. */
#ifndef DTSIM_PROGRESS_H
#define DTSIM_PROGRESS_H

#include "base/base.h"

/* What a command, or one of its pieces, may take: s of wall time and B of its process's memory; 0: any. */
struct budget { double seconds, bytes; };
/* Sets the part that the text is of, "30 s" or "4 GiB". -1: the text is neither. */
int budget_parse(const char *text, struct budget *budget);

struct progress {
    const char *option;          /* the option that limits the time, for messages: "--budget" */
    double seconds, bytes;       /* the budget: wall time since the command began, memory of this process; 0: any */
    bool shown;                  /* stderr is a terminal: a line is rewritten there */
    double began;                /* s of a clock that only goes forwards */
    /* The present step. */
    const char *doing;           /* "reading", "lowering", "replaying" */
    size_t done, total;          /* operations; total 0: not known yet */
    double simulated;            /* s of the iteration that lie behind */
    double step_began, drawn, weighed;   /* s: when the step began, the line was drawn, the memory was read */
    double held;                 /* B of this process's memory, as it was read */
    bool line;                   /* the line stands on the terminal */
    bool over;                   /* the budget is spent */
};

/* From now on. */
void progress_begin(struct progress *progress, const char *option, double seconds, double bytes);
/* How often loops over events and over operations call progress_step(): some times in a millisecond. */
enum { PROGRESS_EVENTS = 1 << 10, PROGRESS_OPERATIONS = 1 << 14 };
/* So far `done` operations of `total`. Returns whether to stop: the budget is spent. Whoever
 * stops leaves its work unfinished and returns; progress_check() then makes the error. */
bool progress_step(struct progress *progress, const char *doing, size_t done, size_t total, double simulated);
/* Whether the budget is spent; NULL: there is none. */
static inline bool progress_over(const struct progress *progress)
{
    return progress && progress->over;
}
/* A look at the budget by those who read files, and have no operations to count: 0, or -1 and EXIT_STOPPED. It takes some 50 ns. */
int progress_look(struct progress *progress, struct error *err);
/* Says how long to wait for bytes that others send: ms as poll() takes them; -1: for ever. */
int progress_patience(const struct progress *progress);
/* 0, or -1 and EXIT_STOPPED with how far the command came. */
int progress_check(const struct progress *progress, struct error *err);
/* To be called before that many operations are built: 0, or -1 and EXIT_STOPPED, with an estimate of their memory,
 * where the budget is smaller. */
int progress_admit(struct progress *progress, double operations, struct error *err);
/* B of physical memory that this process holds (the second number of proc(5)'s statm, in pages). Where there is no
 * /proc, the most that it ever held (getrusage(2), in KiB). */
double memory_held(void);
/* Takes the line off the terminal, before something else is written there. */
void progress_end(struct progress *progress);

#endif
