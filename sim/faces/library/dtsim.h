/* dtsim.h: how long an iteration of distributed training takes, for C, C++ and whoever calls C.
 *
 *     struct dtsim *dtsim = dtsim_open(NULL);
 *     dtsim_scenario(dtsim, "scenario.yaml", text);
 *     dtsim_set(dtsim, "strategy.tensor=8");
 *     if (dtsim_simulate(dtsim, "fast") == DTSIM_OK)
 *         printf("%g s\n", dtsim_metric(dtsim, "iteration_time_s"));
 *     else
 *         fputs(dtsim_errors(dtsim), stderr);
 *     dtsim_close(dtsim);
 *
 * A context holds one scenario and what simulating it gave. It remembers files, costs of kernels and collectives, so that the
 * next simulation is faster; results are the same.
 *
 * - Threads: two threads may each use a context of their own at the same time. One context belongs to one thread at a time. A
 *   thread's stack has at least 1 MiB.
 * - Processes: it starts none. Engines are those that simulate in the process itself: fast, whose times are those of
 *   `dtsim run --engine simgrid` within 1e-9, and ideal.
 * - Output: it prints nothing. Errors are text that dtsim_errors() gives.
 * - It ends the process in two cases alone, with a message on standard error: where there is no memory, and where it finds a
 *   mistake of its own.
 * - Locale: it reads and writes numbers with a point, whatever the process's locale.
 * - Texts that it gives are UTF-8 and stay until the next dtsim_simulate() or dtsim_close() of their context. */
#ifndef DTSIM_H
#define DTSIM_H

#ifdef __cplusplus
extern "C" {
#endif

#define DTSIM_ABI 1                  /* goes up where a program that was compiled before needs to be compiled again */

/* What dtsim_simulate() gives: exit codes of `dtsim run`. */
enum dtsim_code {
    DTSIM_OK = 0,
    DTSIM_UNEXPECTED = 1,            /* the system failed: a file cannot be read */
    DTSIM_USAGE = 2,                 /* a wrong call: no scenario, an unknown engine */
    DTSIM_INPUT = 4,                 /* the scenario, or a file that it names, is wrong */
    DTSIM_INFEASIBLE = 5             /* out of memory, degrees that do not divide, values that do not go together */
};

struct dtsim;

/* DTSIM_ABI of the library; and its version, "0.1.0". */
int dtsim_abi(void);
const char *dtsim_version(void);

/* A context. `data`: the folder with platforms/ and scenarios/models/; NULL: that of the installation to which the library
 * belongs. The environment's DTSIM_DATA is searched before either, as by the program. */
struct dtsim *dtsim_open(const char *data);
/* The scenario from now on: YAML, as its file would hold it. `name`: what errors call it; a '/' in it says from which folder
 * the files are seen that the scenario names. Takes back all dtsim_set(). The text is copied. */
void dtsim_scenario(struct dtsim *dtsim, const char *name, const char *yaml);
/* Changes the scenario: "PATH=VALUE", as after --set. The text is copied; what is wrong with it dtsim_simulate() says. */
void dtsim_set(struct dtsim *dtsim, const char *change);
/* Simulates one iteration. `engine`: "fast" or "ideal"; NULL: fast. Gives an enum dtsim_code. */
int dtsim_simulate(struct dtsim *dtsim, const char *engine);
/* What was found. A number of the metrics by its key, "iteration_time_s" or "breakdown_s.bubble": the units stand in the names
 * (`dtsim help result`). NaN: there is no such number, or nothing was simulated. */
double dtsim_metric(const struct dtsim *dtsim, const char *key);
/* All metrics as JSON, as `dtsim run --json` prints them, without the scenario; "" where nothing was simulated. */
const char *dtsim_metrics(const struct dtsim *dtsim);
/* Start and end of every operation in s: lines of cells with tabulators between them, as DIR/spans.tsv of `dtsim run -o DIR`;
 * "" where nothing was simulated. */
const char *dtsim_timeline(struct dtsim *dtsim);
/* What is wrong, a message a line, each with its place; "" after DTSIM_OK. */
const char *dtsim_errors(const struct dtsim *dtsim);
/* The same as JSON: {"errors": [{"file", "line", "column", "message", "rule"}], "exit_code"}. */
const char *dtsim_errors_json(const struct dtsim *dtsim);
/* Releases the context; NULL is allowed. */
void dtsim_close(struct dtsim *dtsim);

#ifdef __cplusplus
}
#endif
#endif
