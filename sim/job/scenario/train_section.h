/* training: the sections `train` and `price` of a scenario: how long the model is trained, and what happens on the way
 * besides iterations. `dtsim train` reads them; other commands check their keys. */
#ifndef DTSIM_TRAIN_SECTION_H
#define DTSIM_TRAIN_SECTION_H

#include "hardware/gpu.h"

/* "10 min", "500 steps" or "auto". */
struct interval { double seconds, steps; bool automatic; };      /* what was not said is NaN */
/* 0, or -1 and in `why` (at most size bytes) what was expected. */
int interval_parse(const char *text, struct interval *interval, char *why, size_t size);

/* How much is trained: one of these; NaN: not said. */
struct amount { double tokens, samples, steps; };

struct training_spec {
    const struct node *node;
    struct amount amount;
    double per_parameter;            /* tokens for each parameter of the model; NaN: not said */
    struct target_spec {             /* until a loss is reached; NULL: not said */
        const struct node *node;
        double samples;              /* with the smallest batches */
        double critical_batch;       /* samples of the batch that needs twice as many */
    } *target;
    struct list phases;              /* of struct phase_spec; empty: one, the scenario's own */
    struct ramp_spec {               /* Megatron-LM's rampup-batch-size */
        const struct node *node;
        int start, step;             /* samples an iteration */
        double samples;              /* until the batch has grown to the scenario's */
    } *ramp;
    struct failures_spec {
        const struct node *node;
        double per_node_day;         /* NaN: causes say it, or the source */
        struct list causes;          /* of struct cause_spec */
        const char *source;          /* platforms/failures/NAME.yaml, or a path */
        double shape;                /* of the Weibull distribution; 1: exponential */
        const struct failures_file *named;       /* the source's; NULL: none */
        const char *trace;           /* a file: how many nodes are up, over time */
        const struct node_trace *traced;  /* its rows; NULL: there is none */
    } *failures;
    struct checkpoint_spec {
        const struct node *node;
        const char *every;
        struct interval interval;    /* that `every` says */
        double bytes;                /* B; NaN: by the states of the parameters */
        bool weights;                /* the weights in half precision are among these states */
        double write, read;          /* B/s of the storage; NaN: not known */
        int mode;                    /* enum checkpoint_mode */
        int copies, stored; /* of checkpoints in memory: nodes that hold each share; every which one is also written
                             * to the storage; 0: none is */
        double block;                /* s that the training stands still for each; NaN: by its bytes */
    } *checkpoint;
    struct restart_spec {
        const struct node *node;
        double detect, replace, init;    /* s */
        double load;                 /* s; NaN: by the bytes of a checkpoint */
    } *restart;
    struct spares_spec {
        const struct node *node;
        int nodes;
        bool warm;
        int empty;                   /* enum spares_empty */
        double repair;               /* s; NaN: nodes do not come back */
    } *spares;
    struct elastic_spec {            /* how the training goes on with fewer nodes than it wants; NULL: it waits */
        const struct node *node;
        int system;           /* enum elastic_system */
        struct list pipeline; /* of int: numbers of stages to choose from; empty: the scenario's, or of templates all */
        int least;                   /* replicas */
        double redundant; /* share by which a step takes longer for the work that is done twice; NaN: not said */
        double reroute;   /* s that a loss stops it whose work it keeps, and nodes that join; NaN: by the bytes */
        double ahead;     /* s of the trace that it knows in advance */
    } *elastic;
    struct validation_spec {
        const struct node *node;
        const char *every;
        struct interval interval;    /* that `every` says; in steps */
        double time;                 /* s */
    } *validation;
    struct energy_spec {
        const struct node *node;
        struct gpu_power *gpu;       /* W of a GPU alone; NULL: as its file says, with its share of the node */
        double host;                 /* W of a node besides its GPUs; NaN: not said */
        double pue;                  /* power of the facility over the power of its computers */
    } *energy;
    struct reported_spec {           /* what a real training of this kind took; each NaN: not reported */
        const struct node *node;
        double days, goodput, gpu_hours;
        const char *source;
    } *reported;
};

struct phase_spec {
    const struct node *node;
    struct amount amount;
    int batch, sequence, gpus;       /* 0: the scenario's */
};

struct cause_spec {
    const struct node *node;
    const char *name;
    double per_node_day;
    bool loses_node;
    double detect, replace, init;    /* s; NaN: as `restart` says */
};

#define CHECKPOINT_MODES(X) \
    X(CHECKPOINT_BLOCKING, "blocking") X(CHECKPOINT_ASYNC, "async") X(CHECKPOINT_MEMORY, "memory")
enum checkpoint_mode { CHECKPOINT_MODES(ENUM_VALUE) };
#define SPARES_EMPTIES(X) X(SPARES_WAIT, "wait") X(SPARES_SHRINK, "shrink") X(SPARES_STOP, "stop")
enum spares_empty { SPARES_EMPTIES(ENUM_VALUE) };

/* Varuna begins again from a checkpoint; the others keep their work, unless a part of the model is on no node that is
 * left: redundancy (Bamboo) because each node also does the work of the next one in its pipeline, templates (Oobleck)
 * and liveput (Parcae) because replicas hold the same weights. */
#define ELASTIC_SYSTEMS(X) \
    X(ELASTIC_VARUNA, "varuna") \
    X(ELASTIC_REDUNDANCY, "redundancy") X(ELASTIC_TEMPLATES, "templates") X(ELASTIC_LIVEPUT, "liveput")
enum elastic_system { ELASTIC_SYSTEMS(ENUM_VALUE) };

/* A file of platforms/failures/: what was published of the failures of one system. */
struct failures_file {
    const struct node *node;
    const char *title, *source;
    double per_node_day;             /* NaN: causes say it */
    struct list causes;              /* of struct cause_spec */
};

/* How many nodes are up from each of its times on. */
struct node_trace {
    struct trace_row { double time; int nodes; } *rows;          /* s; in this order */
    size_t count;
    double gained, lost;             /* nodes, from the first row on */
    double mean;                     /* nodes, over the time from the first to the last row */
    double mtbf;                     /* s between rows that lose nodes, mean; INFINITY: none does */
};
/* Reads a file with a header line ("time_s" or "time_h", and "nodes" or "change") and a row for each time; cells are
 * parted by a comma or a tab. `loc`: where it is named. Errors: what is no such file; rows out of order; fewer than 0
 * nodes. */
int trace_load(struct arena *arena, const char *path, struct loc loc, struct node_trace *trace, struct error *err);

extern const struct table training_table, failures_file_table;
/* Fills a struct training_spec from the value of `train` (a field's load). */
int training_load(struct arena *arena, const struct node *value, void *spec, struct error *err);

/* Whether the section says how much is trained, not just the power of single iterations (`energy` alone); NULL: false. */
bool training_says_amount(const struct training_spec *spec);

#endif
