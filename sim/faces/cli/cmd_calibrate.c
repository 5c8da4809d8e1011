#include <math.h>

#include "base/text.h"
#include "calibrate/calibrate.h"
#include "cli/cmd_calibrate.h"
#include "cli/said.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/folder.h"
#include "files/json.h"
#include "hardware/gpu.h"
#include "kernels/profile.h"
#include "view/view.h"

/* Formats mean nothing to kernels that are bound by memory: their bytes count. The half formats share a record. */
static const char *dtype_of(const struct sample_group *group)
{
    const struct sample_list *fit = &group->fit;
    enum dtype dtype = fit->count ? fit->items[0]->dtype : group->dtype;

    for (size_t i = 0; i < fit->count; i++)
        if (fit->items[i]->dtype != dtype && group->kind != SAMPLE_MEMORY)
            return "half";
    return group->kind == SAMPLE_MEMORY ? "" : dtype_names[dtype];
}

static void print_percent(double share)
{
    if (isnan(share))
        printf(" %9s", "");
    else
        printf(" %7.1f %%", 100 * share);
}

/* Where the products are small, and where they are large. */
static void print_ranges(const struct calibration *calibration, const struct sample_group *group)
{
    static const double edges[] = {0, 64, 256, 1024, 4096, 16384, INFINITY};

    for (size_t i = 1; i < COUNT(edges); i++) {
        int count;
        double error = calibration_error(calibration, group, edges[i - 1], edges[i], &count);
        char text[40];

        if (!count)
            continue;
        if (isinf(edges[i]))
            snprintf(text, sizeof text, "m over %g", edges[i - 1]);
        else
            snprintf(text, sizeof text, "m up to %g", edges[i]);
        printf("    %-38s %9d", text, count);
        print_percent(error);
        putchar('\n');
    }
}

static void print_calibration(const struct calibration *calibration, const char *keep)
{
    const struct profile *profile = &calibration->profile;

    text_write(TEXT_LINE, profile->gpu, stdout);
    printf(", %d SMs: ", profile->sms);
    text_write(TEXT_LINE, profile->source, stdout);
    putchar('\n');
    printf("%-27s %-6s %7s %9s %9s %9s %9s\n", "kernel", "format", "fitted", "held out", "mean", "median", "max");
    for (size_t i = 0; i < calibration->groups.count; i++) {
        const struct sample_group *group = &calibration->groups.items[i];

        printf("%-27s %-6s %7zu %9zu", sample_group_name(group), dtype_of(group), group->fit.count,
               group->held_out.count);
        if (group->left_out) {
            puts("  too few: left out");
            continue;
        }
        print_percent(group->error.mean);
        print_percent(group->error.median);
        print_percent(group->error.max);
        putchar('\n');
        if (group->kind == SAMPLE_MATMUL)
            print_ranges(calibration, group);
    }
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        if (calibration->sustained[dtype].measured)
            printf("GEMMs of %s sustain %.1f %% of the speed of short runs (%zu samples)\n",
                   dtype == DTYPE_FP16 ? "half formats" : dtype_names[dtype],
                   100 * calibration->sustained[dtype].share, calibration->sustained[dtype].measured);
    if (calibration->unused)
        printf("%zu samples of transfers, launches, other formats, windows and skews are no part of a profile\n",
               calibration->unused);
    if (keep)
        printf("%zu records are of %s\n", calibration->kept, keep);
    puts("errors: |predicted / measured - 1| on shapes that were not fitted");
}

/* Errors that a fit of good samples does not reach (calibration/data/README.md). */
static void warn_of_errors(const struct calibration *calibration)
{
    const double usual = 0.08;

    fflush(stdout);
    for (size_t i = 0; i < calibration->groups.count; i++) {
        const struct sample_group *group = &calibration->groups.items[i];

        if (group->kind == SAMPLE_MATMUL && !group->left_out && group->error.mean > usual)
            fprintf(stderr, "warning: %s %s: a mean error above %g %% means that something is wrong with the samples: "
                    "clocks that changed, another program on the GPU, a kernel that is not what its name says\n",
                    sample_group_name(group), dtype_of(group), 100 * usual);
    }
}

struct profile_writing { struct arena *arena; const struct calibration *calibration; };

static void write_profile(const void *context, FILE *out)
{
    const struct profile_writing *writing = context;
    const struct profile *profile = &writing->calibration->profile;

    fprintf(out, "# Kernel times of %s, fitted by dtsim calibrate fit (%s).\n"
                 "# Errors are |predicted / measured - 1| on shapes that the fit did not see.\n",
            profile->gpu, DTSIM_VERSION);
    node_print(field_dump(writing->arena, &profile_table, profile), out);
}

struct fitted_row { const struct calibration *calibration; const struct sample_group *group; const struct sample *sample; bool held_out; };

#define FITTED(ROW) \
    ROW(kernel, json_string(sample_group_name(it->group)), "its name in samples") \
    ROW(dtype, json_string(dtype_of(it->group)), "of its operands") \
    ROW(batch, json_real(it->sample->batch), "as in samples") ROW(m, json_real(it->sample->m), "the same") \
    ROW(n, json_real(it->sample->n), "the same") ROW(k, json_real(it->sample->k), "the same") \
    ROW(bytes, json_real(it->sample->bytes), "that it reads and writes") \
    ROW(measured_us, json_real(1e6 * it->sample->seconds), "time") \
    ROW(predicted_us, json_real(1e6 * group_seconds(it->group, it->calibration->sms, it->sample)), "by the profile") \
    ROW(held_out, json_integer(it->held_out), "1: the fit did not see it")
VIEW(fitted_view, struct fitted_row, it, FITTED)

/* Every sample that belongs to a record, with its prediction. */
static json_t *rows_json(const struct calibration *calibration)
{
    json_t *rows = json_array();

    for (size_t g = 0; g < calibration->groups.count; g++) {
        const struct sample_group *group = &calibration->groups.items[g];
        const struct sample_list *lists[] = {&group->fit, &group->held_out};

        if (group->left_out || (group->kind == SAMPLE_MEMORY && group->which == CLASS_OTHER))
            continue;
        for (size_t l = 0; l < COUNT(lists); l++)
            for (size_t i = 0; i < lists[l]->count; i++)
                json_append(rows, view_json(&fitted_view, &(struct fitted_row){calibration, group, lists[l]->items[i], l == 1}));
    }
    return rows;
}

#define CALIBRATION(ROW) \
    ROW(gpu, json_words(it->profile.gpu), "of the profile") \
    ROW(rows, rows_json(it), "samples", .form = VIEW_LIST, .of = &fitted_view)
VIEW_SHARED(calibration_view, struct calibration, it, CALIBRATION)

static int fit(const struct arguments *arguments, struct error *err)
{
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration = {0};
    const char *out = arguments->values[OPT_OUT], *keep = arguments->values[OPT_KEEP];
    const struct profile_writing writing = {&arena, &calibration};
    int rc = 0;

    for (int i = 1; i < arguments->npositional; i++)
        if (samples_load(&samples, arguments->positional[i], err))
            rc = -1;
    if (!rc)
        rc = calibrate(&arena, &samples, &calibration, err);
    if (!rc && keep)
        rc = calibrate_keep(&arena, &calibration, keep, err);
    if (!rc && out && !(rc = file_replace(out, write_profile, &writing, err)))
        fprintf(stderr, "wrote %s\n", out);
    if (!rc && arguments->values[OPT_JSON])
        view_print(&calibration_view, &calibration, stdout);
    else if (!rc)
        print_calibration(&calibration, keep);
    if (!rc)
        warn_of_errors(&calibration);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
    return rc;
}

static int calibrate_main(const struct arguments *arguments)
{
    struct error err = {0};

    if (arguments->first && arguments->npositional < 3)
        return usage_error(arguments->command, "check: expected a profile and files of samples");
    if (arguments->first)
        calibrate_check_print(arguments, &err);
    else
        fit(arguments, &err);
    return report_as(&err, arguments->values[OPT_JSON]);
}

static const struct option options[] = {
    [OPT_OUT] = {"-o", "FILE",
        .help = "write the profile; calibration/data/NAME.yaml is the default of the GPU of that name", .with = "fit"},
    [OPT_KEEP] = {"--keep", "PROFILE",
        .help = "take from this profile of the same GPU what the samples do not tell: GEMMs of other formats, older fused "
        "attention, other kernels", .with = "fit"},
    [OPT_JSON] = {"--json",
        .help = "print every sample with its prediction, and whether its shape was held out (check: whether it is extrapolated)"},
    {"fit",
        .help = "fits the model of kernel times; a fifth of the shapes is held out and tells its errors (batched GEMMs apart from "
        "single ones, where one record does not serve both)"},
    {"check",
        .help = "compares the samples with a profile as it is, a name of calibration/data/ or a file; extrapolated: the profile was "
        "fitted to kernels of other kinds, layouts or sizes. Samples are short runs, and predictions are made for such; "
        "matmul-sustained is compared at the speed of a job"},
};

const struct command cmd_calibrate = {
    .name = "calibrate",
    .arguments = "fit SAMPLES.csv...|check PROFILE SAMPLES.csv...",
    .least = 2, .most = ARGS_MAX,
    .brief = "Makes a profile of a GPU's kernel times from measured samples, and compares the two.",
    .examples = "  dtsim calibrate fit samples.csv -o h200.yaml\n"
                "  dtsim calibrate fit samples.csv --json >h200.json && dtsim plot fit h200.json\n"
                "  dtsim calibrate check h100-80gb samples.csv\n"
                "  dtsim run scenario.yaml --set costs.profile=h200.yaml\n",
    .no_set = "--set changes a scenario; expected files of samples",
    .first = {"action", NAMES("fit", "check"), NULL},
    .options = options, .noptions = COUNT(options),
    .more = "\n"
            "Samples are CSV files (calibration/README.md):\n"
            "  # gpu: NVIDIA A100-SXM4-80GB      comments say what was measured; gpu and sms (multiprocessors) are needed\n"
            "  # sms: 108\n"
            "  kernel,dtype,batch,m,n,k,layout,bytes,median_us\n"
            "  matmul,fp16,1,4096,4096,4096,nt,,605.2\n"
            "  layernorm-forward,fp16,,4096,4096,,,67108864,44.1\n"
            "\n"
            "  matmul              batch GEMMs of m x k by k x n; layout nn, nt (B lies as n x k) or tn (A as k x m)\n"
            "  matmul-quantized    the same in fp8, fp8-block (1 x 128 by 128 x 128), mxfp8 or nvfp4, with the\n"
            "                      kernels that quantise A from bf16 first\n"
            "  matmul-grouped      batch experts multiply m rows in all (layout tn: k) by k x n each, in one kernel\n"
            "  moe                 a layer of gated experts, forward, without exchanges: batch experts of n columns on m\n"
            "                      rows of k values in all (tokens x top-k).\n"
            "                      Both may have columns expert_skew and skew_range: the rows of an expert follow a power\n"
            "                      law of this exponent, from 1 to this range. The fit leaves such samples out where it\n"
            "                      has even ones; check compares them\n"
            "  matmul-sustained    as matmul, run for seconds without a pause: what lasts at the chip's power limit\n"
            "  attention-forward, -backward, each also -causal: fused; batch = samples x heads, m queries, n keys, k head\n"
            "                      size (latent: the mean of keys' and values'); bytes: what is read and written, if\n"
            "                      heads share keys and values; '# attention:' flash-1, flash-2, flash-3 or cudnn.\n"
            "                      Causal ones may have a column window: the keys that a query sees at most, for check\n"
            "  softmax, layernorm, rmsnorm, gelu, swiglu, dropout-residual, embedding, cross-entropy    each -forward and\n"
            "  -backward, adam, reduction, copy-device, expert-rows: bytes read and written, or m rows of n values\n",
    .main = calibrate_main,
};
