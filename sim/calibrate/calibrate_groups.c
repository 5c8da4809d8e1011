/* Which samples are fitted together: single and batched products, attention with and without a causal mask. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "calibrate/calibrate.h"
#include "hardware/gpu.h"
#include "kernels/kernel_time.h"

double sample_error(const struct sample_group *group, int sms, const struct sample *sample)
{
    return fabs(group_seconds(group, sms, sample) / sample->seconds - 1);
}

static double fitted_error(const struct sample_group *by, const struct sample_group *of, int sms)
{
    double sum = 0;

    for (size_t i = 0; i < of->fit.count; i++)
        sum += sample_error(by, sms, of->fit.items[i]);
    return sum / (double)of->fit.count;
}

/* Whether single and batched products need two records: if the mean error of one common record, on either of them, is
 * larger by more than 0.01. If either are too few for a fit, one record must do. */
static bool needs_two(const struct sample_group *any, const struct sample_group *one, const struct sample_group *many,
                      int sms)
{
    const double worse = 0.01;

    return !one->left_out && !many->left_out &&
           (any->left_out || fitted_error(any, one, sms) > fitted_error(one, one, sms) + worse ||
            fitted_error(any, many, sms) > fitted_error(many, many, sms) + worse);
}

static void drop_group(struct sample_groups *groups, struct sample_group *group)
{
    size_t after = groups->count - (size_t)(group - groups->items) - 1;

    free(group->fit.items);
    free(group->held_out.items);
    memmove(group, group + 1, after * sizeof *group);
    groups->count--;
}

/* The groups of products of one format, by enum batches; NULL: no samples. */
struct by_batches { struct sample_group *of[BATCHES_MANY + 1]; };

static struct by_batches find_batches(struct sample_groups *groups, int dtype)
{
    struct by_batches found = {{NULL}};

    for (size_t i = 0; i < groups->count; i++)
        if (groups->items[i].kind == SAMPLE_MATMUL && (int)groups->items[i].dtype == dtype &&
            groups->items[i].which <= BATCHES_MANY)
            found.of[groups->items[i].which] = &groups->items[i];
    return found;
}

/* Drops the common group (with `two`) or the two others. The last one first: the groups are sorted, and those after a
 * dropped group move. */
static void keep_batches(struct sample_groups *groups, const struct by_batches *found, bool two)
{
    for (int batches = BATCHES_MANY; batches >= BATCHES_ANY; batches--)
        if (found->of[batches] && (batches == BATCHES_ANY) == two)
            drop_group(groups, found->of[batches]);
}

static size_t group_size(const struct sample_group *group)
{
    return group->fit.count + group->held_out.count;
}

static void move_samples(struct sample_list *to, const struct sample_list *from)
{
    for (size_t i = 0; i < from->count; i++)
        *GROW(to) = from->items[i];
}

/* Before the fit: attention with and without a causal mask is one kernel, which visits other blocks. If there are fewer
 * than `enough` samples of either, both are fitted together. */
static void merge_masks(struct sample_groups *groups)
{
    const size_t enough = 20;

    for (size_t i = groups->count; i-- > 0;)
        for (size_t k = 0; k < i && i < groups->count; k++) {
            struct sample_group *one = &groups->items[k], *other = &groups->items[i];

            if (one->kind != SAMPLE_ATTENTION || other->kind != SAMPLE_ATTENTION || one->dtype != other->dtype ||
                attention_is_backward((enum attention_direction)one->which) !=
                    attention_is_backward((enum attention_direction)other->which) ||
                (group_size(one) >= enough && group_size(other) >= enough))
                continue;
            move_samples(&one->fit, &other->fit);
            move_samples(&one->held_out, &other->held_out);
            drop_group(groups, other);
        }
}

/* Before the fit: if all products are single or all are batched, the common group is enough. */
static void merge_batches(struct sample_groups *groups)
{
    for (int dtype = 0; dtype_names[dtype]; dtype++) {
        struct by_batches found = find_batches(groups, dtype);

        if (!found.of[BATCHES_ONE] || !found.of[BATCHES_MANY])
            keep_batches(groups, &found, false);
    }
}

void groups_choose(struct sample_groups *groups, int sms)
{
    for (int dtype = 0; dtype_names[dtype]; dtype++) {
        struct by_batches found = find_batches(groups, dtype);
        struct sample_group *one = found.of[BATCHES_ONE], *many = found.of[BATCHES_MANY];

        if (one)
            keep_batches(groups, &found, needs_two(found.of[BATCHES_ANY], one, many, sms));
    }
}

void groups_merge(struct sample_groups *groups)
{
    merge_batches(groups);
    merge_masks(groups);
}
