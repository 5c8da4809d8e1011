/* dtsim-bench: measures the kernels of training on the GPU of this machine; README.md says how. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "bench_options.h"
#include "device.h"
#include "sample.h"

/* The most that operands may take: one product of the largest models in fp32 and some room for the sets. */
#define MEMORY 32e9
/* Time for one case: with less, medians vary; more gives nothing new. */
#define CASE_SECONDS_MIN 0.01
#define CASE_SECONDS_MAX 0.25

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static const char *built(char *text, size_t size)
{
    snprintf(text, size, "%s, %s, %s", product_built(), flash_built(), peers_built());
    return text;
}

static struct bench_limits limits_of(const struct device *device, const struct bench_options *options)
{
    int version = 10 * device->major + device->minor, count = 1;

    (void)cudaGetDeviceCount(&count);
    return (struct bench_limits){
        .memory = 0.5 * (double)device->space, .bf16 = version >= 80, .tf32 = version >= 80,
        .fp8 = version >= 89, .fp8_block = version == 90 && product_knows(BENCH_FP8_BLOCK),
        .mxfp8 = version >= 100 && product_knows(BENCH_MXFP8), .nvfp4 = version >= 100 && product_knows(BENCH_NVFP4),
        .grouped = version >= 80 && experts_are_built(),
        .flash = version >= 80 && flash_is_built(), .ranks = count < 16 ? count : 16, .collectives = peers_are_built(),
        .quick = options->quick, .wanted = options->wanted,
    };
}

/* The version of the driver's kernel module, if it can be read; the runtime knows only the CUDA version of the
 * driver. */
static const char *driver_version(char *text, size_t size)
{
    char line[256] = "", version[64] = "";
    FILE *in = fopen("/proc/driver/nvidia/version", "r");
    int cuda = 0;

    if (in && fgets(line, sizeof line, in))
        sample_driver(line, version, sizeof version);
    if (in)
        fclose(in);
    (void)cudaDriverGetVersion(&cuda);
    snprintf(text, size, "%s%sfor CUDA %d.%d", version, *version ? ", " : "", cuda / 1000, cuda % 1000 / 10);
    return text;
}

static double hertz(const struct device *device, enum cudaDeviceAttr which)
{
    int kilohertz = 0;

    return cudaDeviceGetAttribute(&kilohertz, which, device->index) == cudaSuccess ? 1e3 * kilohertz : 0;
}

static const char *utc_now(char *date, size_t size)
{
    time_t seconds = time(NULL);
    struct tm utc;

    strftime(date, size, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    return date;
}

static void write_header(FILE *out, struct device *device, const struct bench_options *options)
{
    char driver[256], cuda[32], date[64], libraries[256], source[320];
    int runtime = 0;

    (void)cudaRuntimeGetVersion(&runtime);
    snprintf(cuda, sizeof cuda, "%d.%d", runtime / 1000, runtime % 1000 / 10);
    snprintf(source, sizeof source, "dtsim-bench %s, seed %llu, %s", DTSIM_VERSION, (unsigned long long)options->seed,
             built(libraries, sizeof libraries));
    sample_header(out, &(struct sample_machine){
        .gpu = device->name, .driver = driver_version(driver, sizeof driver), .cuda = cuda,
        .date = utc_now(date, sizeof date), .source = source, .sms = device->sms, .major = device->major,
        .clock = hertz(device, cudaDevAttrClockRate), .memory_clock = hertz(device, cudaDevAttrMemoryClockRate),
        .clock_under_load = device_clock(device),
    });
}

/* Progress on stderr: on a terminal one line that is overwritten, else a line every half minute. */
struct progress {
    double begin, last;
    size_t measured, failed;
    bool marks;                  /* the output is a file that can be truncated: it names this case and failures */
    char why[320];               /* the error of the first failed case, or of the GPU */
};

static void show(struct progress *progress, size_t all)
{
    bool terminal = isatty(STDERR_FILENO);
    double time = now();

    if (time - progress->last < (terminal ? 0.5 : 30))
        return;
    progress->last = time;
    fprintf(stderr, "%s%zu of %zu shapes, %.0f s%s", terminal ? "\r" : "", progress->measured + progress->failed, all,
            time - progress->begin, terminal ? "   " : "\n");
}

/* Measures one case and writes its row. -1: the GPU failed, and nothing more can be measured; the file names the
 * case. */
static int measure(struct device *device, const struct bench_case *one, double seconds, FILE *out,
                   struct progress *progress)
{
    long mark = progress->marks ? sample_mark(out, one) : -1;
    struct series times = {0};
    struct job job;
    bool measured = !job_open(&job, device, one) && !job_measure(&job, seconds, &times);

    job_close(&job);
    if (cudaStreamSynchronize(device->stream) != cudaSuccess) {
        snprintf(progress->why, sizeof progress->why, "%.250s", job.why);
        free(times.items);
        return -1;
    }
    if (mark >= 0 && sample_unmark(out, mark))
        progress->marks = false;
    if (measured)
        sample_row(out, one, series_summary(&times));
    else if (progress->marks)
        sample_failure(out, one, job.why);
    if (!measured && progress->failed == 0)
        snprintf(progress->why, sizeof progress->why, "%s %s: %s", bench_kernel_names[one->kernel],
                 bench_dtype_names[one->dtype], job.why);
    fflush(out);
    progress->measured += measured;
    progress->failed += !measured;
    free(times.items);
    return 0;
}

static int measure_all(struct device *device, const struct bench_options *options, const struct sample_rows *held,
                       FILE *out)
{
    struct bench_limits limits = limits_of(device, options);
    struct bench_cases cases = {0};
    struct progress progress = {.begin = now(), .marks = options->output != NULL};
    size_t kept = 0;
    int rc = 0;

    bench_cases_list(&cases, &limits, options->seed);
    for (size_t i = 0; i < cases.count; i++)
        if (!sample_rows_hold(held, &cases.items[i]))
            cases.items[kept++] = cases.items[i];
    cases.count = kept;
    for (size_t i = 0; i < cases.count && !rc && !ferror(out); i++) {
        double left = progress.begin + options->seconds - now();

        if (left <= 0)
            break;
        rc = measure(device, &cases.items[i],
                     fmin(CASE_SECONDS_MAX, fmax(CASE_SECONDS_MIN, 0.5 * left / (double)(cases.count - i))), out,
                     &progress);
        show(&progress, cases.count);
    }
    fprintf(stderr, "%s%zu of %zu shapes measured in %.0f s", isatty(STDERR_FILENO) ? "\r" : "", progress.measured,
            cases.count, now() - progress.begin);
    if (progress.failed)
        fprintf(stderr, "; %zu could not be%s%s", progress.failed, rc ? "" : ", the first: ", rc ? "" : progress.why);
    fputc('\n', stderr);
    free(cases.items);
    if (rc)
        fprintf(stderr, "dtsim-bench: the GPU failed: %s; what was measured before is kept, and --resume goes on "
                "behind what failed\n", progress.why);
    return rc ? EXIT_UNEXPECTED : EXIT_OK;
}

/* Opens a new file, or an old one after the rows that `held` has read; NULL after an error message. */
static FILE *open_output(struct device *device, const struct bench_options *options, const struct sample_rows *held)
{
    FILE *out = options->output ? fopen(options->output, held->count ? "r+" : "w") : stdout;
    char date[64];

    if (!out)
        fprintf(stderr, "dtsim-bench: cannot write '%s'\n", options->output);
    else if (held->count && !fseek(out, 0, SEEK_END))
        sample_comment(out, "resumed", "%s, at %.0f MHz under load", utc_now(date, sizeof date),
                       device_clock(device) / 1e6);
    else
        write_header(out, device, options);
    return out;
}

static int measure_into(struct device *device, const struct bench_options *options, const struct sample_rows *held)
{
    FILE *out = open_output(device, options, held);
    int code;

    if (!out)
        return EXIT_UNEXPECTED;
    code = measure_all(device, options, held, out);
    if (fflush(out) || ferror(out) || (out != stdout && fclose(out))) {
        fputs("dtsim-bench: cannot write the samples\n", stderr);
        return EXIT_UNEXPECTED;
    }
    return code;
}

static int run(struct device *device, const struct bench_options *options)
{
    struct sample_rows held = {0};
    struct error err = {0};
    int code;

    if (options->resume && sample_rows_read(&held, options->output, device->name, &err)) {
        error_print(&err, stderr);
        code = (int)error_exit_code(&err);
    } else {
        code = measure_into(device, options, &held);
    }
    error_release(&err);
    sample_rows_release(&held);
    return code;
}

static int run_checks(struct device *device, const struct bench_options *options)
{
    struct bench_limits limits = limits_of(device, options);
    int wrong = check_all(device, &limits, stdout);

    puts(wrong ? "some kernels are wrong or cannot be run: trust no sample of theirs" : "all kernels are right");
    return wrong ? EXIT_UNEXPECTED : EXIT_OK;
}

/* The shapes for this GPU; without a GPU, for one with every format that the libraries know, and the requested memory.
 * */
static int list(const struct bench_options *options)
{
    struct bench_limits limits = {.memory = 0.5 * MEMORY, .fp8 = true, .bf16 = true, .tf32 = true,
                                  .fp8_block = product_knows(BENCH_FP8_BLOCK), .mxfp8 = product_knows(BENCH_MXFP8),
                                  .nvfp4 = product_knows(BENCH_NVFP4), .grouped = experts_are_built(),
                                  .flash = flash_is_built(), .ranks = 1, .quick = options->quick,
                                  .wanted = options->wanted};
    struct bench_cases cases = {0};
    struct device device;
    char why[256];

    if (!device_open(&device, options->device, MEMORY, options->seed, why, sizeof why)) {
        limits = limits_of(&device, options);
        device_close(&device);
    }
    bench_cases_list(&cases, &limits, options->seed);
    for (size_t i = 0; i < cases.count; i++) {
        const struct bench_case *one = &cases.items[i];

        printf("%s,%s,%lld,%lld,%lld,%lld,%s,%lld\n", bench_kernel_names[one->kernel], bench_dtype_names[one->dtype],
               (long long)one->batch, (long long)one->m, (long long)one->n, (long long)one->k,
               bench_layout_names[one->layout], (long long)one->bytes);
    }
    free(cases.items);
    return EXIT_OK;
}

/* Handles the alarm of a job that hangs: prints why, and ends as the signal would have ended it. The file has all
 * measured rows and the name of the case. */
static void give_up(int number)
{
    static const char message[] = "\ndtsim-bench: a case did not end within a minute; --resume goes on behind it\n";
    ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);

    (void)written;
    _exit(128 + number);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct device device;
    char text[256];
    int code = bench_options_parse(&options, argc, argv);

    if (code)
        return code;
    if (options.help)
        return bench_options_help(stdout, built(text, sizeof text)), EXIT_OK;
    if (options.version)
        return puts("dtsim-bench " DTSIM_VERSION), EXIT_OK;
    if (options.list)
        return list(&options);
    if (device_open(&device, options.device, MEMORY, options.seed, text, sizeof text)) {
        fprintf(stderr, "dtsim-bench: %s\n", text);
        return EXIT_NO_TOOL;
    }
    signal(SIGALRM, give_up);
    code = options.check ? run_checks(&device, &options) : run(&device, &options);
    device_close(&device);
    return code;
}
