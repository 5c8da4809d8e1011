/* GPipe: all forwards, then all backwards. With recomputation only the last micro-batch keeps its activations; the
 * others are recomputed directly before their backward. recompute_last: that one too. */
#include "schedule/schedule.h"

static const char figure[] =
    "S4  .  .  .  F1 F2 F3 B3 ~  R2 B2 ~  R1 B1 ~  .  .  .  .  .  .\n"
    "S3  .  .  F1 F2 F3 .  .  .  B3 ~  R2 B2 ~  R1 B1 ~  .  .  .  .\n"
    "S2  .  F1 F2 F3 .  .  .  .  .  .  B3 ~  R2 B2 ~  R1 B1 ~  .  .\n"
    "S1  F1 F2 F3 .  .  .  .  .  .  .  .  .  B3 ~  R2 B2 ~  R1 B1 ~\n";

#define BACKWARDS(X) X(DESCENDING, "descending") X(ASCENDING, "ascending")
enum { BACKWARDS(ENUM_VALUE) };

struct gpipe_options {
    const struct node *node;
    int backward;
    bool recompute_last;
    int passes;
};

static const struct field fields[] = {
    {KEY(gpipe_options, backward), .kind = FIELD_CHOICE, .fallback = "descending", .choices = CHOICES(BACKWARDS),
     .brief = "order of the backwards: descending as in the paper's figure and torchgpipe, ascending as in PyTorch"},
    {KEY(gpipe_options, recompute_last), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "with recomputation: of the last micro-batch too, as torchgpipe's checkpoint='always'"},
    {KEY(gpipe_options, passes), .kind = FIELD_INT, .min = 1, .max = 65536, .fallback = "1",
     .brief = "so many times all forwards, then all backwards, of as many micro-batches each, before the update"},
};
static const struct table options = {TABLE("strategy", "options of gpipe", gpipe_options, fields)};

static void row(struct row *row, const struct plan *plan, int rank)
{
    const struct gpipe_options *option = plan->options;
    int count = plan->micro_batches / option->passes;

    (void)rank;
    for (int first = 0; first < plan->micro_batches; first += count) {
        int last = first + count - 1;

        for (int mb = first; mb <= last; mb++)
            forward(row, 0, mb);
        for (int i = 0; i < count; i++) {
            int mb = option->backward == ASCENDING ? first + i : last - i;

            if (plan->recompute && (mb != last || option->recompute_last))
                recompute(row, 0, mb);
            backward(row, 0, mb);
        }
    }
}

static int check(const struct plan *plan, struct loc loc, struct error *err)
{
    const struct gpipe_options *option = plan->options;

    if (plan->micro_batches % option->passes == 0)
        return 0;
    return error_infeasible(err, ERROR_BATCH, loc, "strategy: passes: %d micro-batches a replica do not divide into %d",
                            plan->micro_batches, option->passes);
}

/* Huang et al. 2019, section 2.3: bubble (P-1)/(M+P-1). With recomputation the last stage's recomputes come on top;
 * those of the other stages hide behind the wait for the gradient. */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    const struct gpipe_options *option = plan->options;
    int slots = plan->micro_batches + option->passes * (plan->stages - 1);
    int again = plan->micro_batches - (option->recompute_last ? 0 : option->passes);

    return slots * (f + b) + (plan->recompute ? again * r : 0);
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    const struct gpipe_options *option = plan->options;

    (void)rank;
    return plan->micro_batches / option->passes;
}

const struct schedule schedule_gpipe = {
    .name = "gpipe",
    .title = "GPipe",
    .paper = "Huang et al. 2019, GPipe (arXiv 1811.06965), figure 2c and section 2.3",
    .brief = "all forwards, then all backwards, then a flush",
    .figure = figure,
    .formula = "iteration (M+P-1)(F+B), with recomputation + (M-1) R; bubble (P-1)/(M+P-1); M micro-batches in flight; "
               "M those of one of the passes",
    .options = &options,
    .recompute = RECOMPUTE_EARLY,
    .check = check,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
