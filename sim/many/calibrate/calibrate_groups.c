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

/* The mean error of one group's parameters on the samples that another group was fitted to. */
static double mean_error(const struct sample_group *by, const struct sample_group *of, int sms)
{
    double sum = 0;

    for (size_t i = 0; i < of->fit.count; i++)
        sum += sample_error(by, sms, of->fit.items[i]);
    return sum / (double)of->fit.count;
}

/* Whether single and batched products (`one`, `many`) need a record each instead of a common one (`any`): if the common
 * record's mean error on either of them is larger by more than 0.01 than the error of the group's own record. Where
 * either group has too few samples for a fit, the common record must do. */
static bool need_two_records(const struct sample_group *any, const struct sample_group *one,
                             const struct sample_group *many, int sms)
{
    const double worse = 0.01;

    return !one->left_out && !many->left_out &&
           (any->left_out || mean_error(any, one, sms) > mean_error(one, one, sms) + worse ||
            mean_error(any, many, sms) > mean_error(many, many, sms) + worse);
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

/* Drops the common group of a format's products (with `two`) or the groups of single and of batched ones. The last
 * group is dropped first, because the groups after a dropped one move up in the list. */
static void drop_batches(struct sample_groups *groups, const struct by_batches *found, bool two)
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

/* Before the fit. Attention with and without a causal mask runs the same kernel, on different blocks. So both groups
 * are fitted together where one of them has fewer than `enough` samples: the later group joins the earlier one. */
static void merge_masks(struct sample_groups *groups)
{
    const size_t enough = 20;

    for (size_t i = groups->count; i-- > 0;)
        for (size_t k = 0; k < i && i < groups->count; k++) {        /* the group i may be dropped on the way */
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

/* Before the fit. If all products of a format are single or all are batched, their common group is enough. */
static void merge_batches(struct sample_groups *groups)
{
    for (int dtype = 0; dtype_names[dtype]; dtype++) {
        struct by_batches found = find_batches(groups, dtype);

        if (!found.of[BATCHES_ONE] || !found.of[BATCHES_MANY])
            drop_batches(groups, &found, false);
    }
}

void groups_choose(struct sample_groups *groups, int sms)
{
    for (int dtype = 0; dtype_names[dtype]; dtype++) {
        struct by_batches found = find_batches(groups, dtype);
        struct sample_group *one = found.of[BATCHES_ONE], *many = found.of[BATCHES_MANY];

        if (one)
            drop_batches(groups, &found, need_two_records(found.of[BATCHES_ANY], one, many, sms));
    }
}

void groups_merge(struct sample_groups *groups)
{
    merge_batches(groups);
    merge_masks(groups);
}
