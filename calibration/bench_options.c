#include "bench_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS 300
#define SECONDS_QUICK 60

static const struct option table[] = {
    {"seconds", required_argument, NULL, 's'}, {"only", required_argument, NULL, 'O'},
    {"without", required_argument, NULL, 'W'},
    {"seed", required_argument, NULL, 'S'}, {"output", required_argument, NULL, 'o'},
    {"device", required_argument, NULL, 'd'}, {"quick", no_argument, NULL, 'q'}, {"resume", no_argument, NULL, 'r'},
    {"check", no_argument, NULL, 'c'}, {"list", no_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static int usage(const char *format, const char *what)
{
    fputs("dtsim-bench: ", stderr);
    fprintf(stderr, format, what);
    fputs("; see 'dtsim-bench --help'\n", stderr);
    return EXIT_USAGE;
}

/* Beginnings of kernel names; each stands for all kernels whose names begin so. */
static const char *const families[] = {
    "attention", "softmax", "layernorm", "rmsnorm", "gelu", "swiglu", "dropout-residual", "embedding", "cross-entropy",
    "copy", "copy-host-to-device", "copy-device-to-host",
};

static const char *kernel_candidate(size_t i, const void *context)
{
    (void)context;
    if (i < COUNT(families))
        return families[i];
    return i - COUNT(families) < BENCH_KERNELS ? bench_kernel_names[i - COUNT(families)] : NULL;
}

/* Whether `word` is the whole name of a kernel, or a part of it before a '-' ("softmax", "copy"). */
static bool is_meant(const char *name, const char *word, size_t length)
{
    return !strncmp(name, word, length) && (name[length] == '\0' || name[length] == '-');
}

typedef bool kernel_set[BENCH_KERNELS][BENCH_DTYPES];

/* The format of this name; BENCH_DTYPES: unknown. */
static int find_dtype(const char *name)
{
    int dtype = BENCH_NONE + 1;

    while (dtype < BENCH_DTYPES && strcmp(bench_dtype_names[dtype], name))
        dtype++;
    return dtype;
}

static int unknown_kernel(const char *option, const char *name)
{
    const char *meant = nearest(name, kernel_candidate, NULL);
    char message[256];

    snprintf(message, sizeof message, meant ? "%s: unknown kernel '%s'; did you mean '%s'?"
                                            : "%s: unknown kernel '%s'; the help lists them", option, name, meant);
    return usage("%s", message);
}

/* Adds the kernels and formats of "softmax" or "matmul:fp8" to the set. */
static int parse_kernel(const char *option, char *word, kernel_set set)
{
    char *format = strchr(word, ':'), message[256];
    int dtype = BENCH_DTYPES;
    bool found = false;

    if (format) {
        *format++ = '\0';
        dtype = find_dtype(format);
        snprintf(message, sizeof message, "%s: unknown format '%.60s'; expected fp32, tf32, fp16, bf16, fp8, "
                 "fp8-block, mxfp8 or nvfp4", option,
                 format);
        if (dtype == BENCH_DTYPES)
            return usage("%s", message);
    }
    for (int i = 0; i < BENCH_KERNELS; i++)
        for (int j = 0; j < BENCH_DTYPES; j++)
            if (is_meant(bench_kernel_names[i], word, strlen(word)) && (dtype == BENCH_DTYPES || dtype == j))
                set[i][j] = found = true;
    return found ? 0 : unknown_kernel(option, word);
}

static int parse_kernels(const char *option, const char *list, kernel_set set)
{
    for (const char *word = list; *word; word += strcspn(word, ",") + (word[strcspn(word, ",")] == ',')) {
        char name[CLIP_SIZE];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(word, ","), word);
        if (parse_kernel(option, name, set))
            return EXIT_USAGE;
    }
    return *list ? 0 : usage("%s: expected names with commas between", option);
}

/* Leaves the value as it is if the text is refused. */
static int parse_number(const char *option, const char *text, double low, double high, double *value)
{
    char *end, message[256];
    double number;

    errno = 0;
    number = strtod(text, &end);
    if (end != text && !*end && !errno && number >= low && number <= high) {
        *value = number;
        return 0;
    }
    snprintf(message, sizeof message, "%s: expected a number from %g to %g, not '%.60s'", option, low, high, text);
    return usage("%s", message);
}

static int take(struct bench_options *options, kernel_set unwanted, int letter, const char *value)
{
    double number = 0;
    int rc = 0;

    switch (letter) {
    case 's': rc = parse_number("--seconds", value, 1, 86400, &options->seconds); break;
    case 'S':
        rc = parse_number("--seed", value, 0, 9007199254740992, &number);
        options->seed = (uint64_t)number;
        break;
    case 'd':
        rc = parse_number("--device", value, 0, 255, &number);
        options->device = (int)number;
        break;
    case 'O': rc = parse_kernels("--only", value, options->wanted); break;
    case 'W': rc = parse_kernels("--without", value, unwanted); break;
    case 'o': options->output = value; break;
    case 'q': options->quick = true; break;
    case 'r': options->resume = true; break;
    case 'c': options->check = true; break;
    case 'l': options->list = true; break;
    case 'h': options->help = true; break;
    case 'V': options->version = true; break;
    default: rc = EXIT_USAGE; break;             /* getopt has said why */
    }
    return rc;
}

/* The kernels of --only, or all if it names none, without the kernels of --without. */
static int settle_wanted(struct bench_options *options, kernel_set unwanted)
{
    bool *wanted = &options->wanted[0][0], named = false, any = false;
    const bool *left_out = &unwanted[0][0];

    for (int i = 0; i < BENCH_KERNELS * BENCH_DTYPES; i++)
        named = named || wanted[i];
    for (int i = 0; i < BENCH_KERNELS * BENCH_DTYPES; i++)
        any = (wanted[i] = (wanted[i] || !named) && !left_out[i]) || any;
    return any ? 0 : usage("--without: nothing is left to measure%s", "");
}

int bench_options_parse(struct bench_options *options, int argc, char **argv)
{
    kernel_set unwanted = {{false}};
    int letter;

    *options = (struct bench_options){.seed = 1};
    optind = 1;
    while ((letter = getopt_long(argc, argv, "o:h", table, NULL)) != -1) {
        int rc = take(options, unwanted, letter, optarg);

        if (rc)
            return rc;
    }
    if (optind < argc)
        return usage("unexpected '%s'", argv[optind]);
    if (options->resume && !options->output)
        return usage("--resume: go on with which file? name it with -o%s", "");
    if (options->seconds == 0)
        options->seconds = options->quick ? SECONDS_QUICK : SECONDS;
    return settle_wanted(options, unwanted);
}

void bench_options_help(FILE *out, const char *built)
{
    fputs("dtsim-bench measures the kernels of training on the GPU of this machine and writes one CSV file of\n"
          "samples, from which `dtsim calibrate fit` makes the GPU's profile.\n\n"
          "  dtsim-bench --check                             are the kernels right? first of all\n"
          "  dtsim-bench -o calibration/samples/h200.csv     a whole run\n"
          "  dtsim-bench --quick --only matmul,launch        a tenth of the shapes of some kernels\n\n"
          "  -o, --output FILE  where the samples go; standard output without it. Rows are written as they are\n"
          "                     measured, in an order that makes a run that was stopped useful too\n"
          "  --resume           go on with FILE, which an earlier run wrote: what it holds is not measured again\n"
          "  --seconds N        stop after about N seconds (default 300, with --quick 60)\n"
          "  --quick            a tenth of the shapes\n"
          "  --only LIST        these kernels alone, by name or by how names begin (softmax, copy), commas between;\n"
          "                     behind a colon of one format (fp32, tf32, fp16, bf16, fp8, fp8-block, mxfp8, nvfp4):\n"
          "                     matmul:fp8. Formats that the chip or the library lacks are left out\n"
          "  --without LIST     not these: what --check found wrong\n"
          "  --seed N           another order, other random data (default 1)\n"
          "  --device N         which GPU (default 0)\n"
          "  --check            compare every kernel's result with one that the CPU computed, measure nothing\n"
          "  --list             print the shapes that would be measured here, or on a large GPU where there is none\n"
          "  --version          print the version\n\n", out);
    fprintf(out, "built with: %s\n\nkernels:\n", built);
    for (int i = 0; i < BENCH_KERNELS; i++)
        fprintf(out, "  %-30s %s\n", bench_kernel_names[i], bench_kernel_texts[i]);
}
