#include "kernels/newton_schulz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "hardware/gpu.h"

static bool same_shape(const struct matrix *a, const struct matrix *b)
{
    return a->out == b->out && a->in == b->in && a->cut == b->cut && a->expert == b->expert &&
           !memcmp(a->parts, b->parts, sizeof a->parts);
}

void matrices_add(struct matrices *sum, const struct matrix *matrix)
{
    size_t at = 0;

    if (matrix->count * matrix->out * matrix->in == 0)
        return;
    while (at < sum->count && !same_shape(&sum->items[at], matrix))
        at++;
    if (at == sum->count) {
        BUG_IF(sum->count == COUNT(sum->items));
        sum->items[sum->count] = *matrix;
        sum->items[sum->count++].count = 0;
    }
    sum->items[at].count += matrix->count;
}

double matrices_elements(const struct matrices *matrices)
{
    double sum = 0;

    for (size_t i = 0; i < matrices->count; i++)
        sum += matrices->items[i].count * matrices->items[i].out * matrices->items[i].in;
    return sum;
}

/* A matrix as a GPU orthogonalizes it: rows <= columns, or rows are the dimension that no GPUs divide. */
struct iterated { double rows, columns; bool gathers, sums; };

static struct iterated iterated_of(double out, double in, const struct matrix *matrix,
                                   const struct orthogonalization *how)
{
    bool divided = how->tensor > 1 && matrix->cut != MATRIX_WHOLE;
    double times = divided && how->mode == MUON_TENSOR_DUPLICATED ? how->tensor : 1;

    if (divided && how->mode == MUON_TENSOR_DISTRIBUTED)
        return (struct iterated){.rows = matrix->cut == MATRIX_ROWS ? in : out,
                                 .columns = matrix->cut == MATRIX_ROWS ? out : in, .sums = true};
    *(matrix->cut == MATRIX_ROWS ? &out : &in) *= times;
    return (struct iterated){.rows = fmin(out, in), .columns = fmax(out, in), .gathers = times > 1};
}

/* The matrices that one weight is for Muon; returns how many. */
static size_t parts_of(const struct matrix *matrix, const struct orthogonalization *how, struct iterated *parts)
{
    size_t n = 0;

    for (size_t i = 0; how->split && i < MATRIX_PARTS; i++)
        if (matrix->parts[i] > 0)
            parts[n++] = iterated_of(matrix->parts[i], matrix->in, matrix, how);
    if (n == 0)
        parts[n++] = iterated_of(matrix->out, matrix->in, matrix, how);
    return n;
}

/* The number of products of one orthogonalization: X X', B X, and products of square matrices; and the bytes that the
 * additions to results read and write. */
struct products { double inner, outer, squares, added; };

static struct products products_of(const struct iterated *part, enum newton_schulz method)
{
    double rows = part->rows, columns = part->columns;

    if (method == NEWTON_SCHULZ_GRAM && columns > rows && !part->sums)
        return (struct products){.inner = 2, .outer = 2, .squares = 14, .added = (14 * 6 + 2 * 4) * rows * rows};
    return (struct products){.inner = NEWTON_SCHULZ_STEPS, .outer = NEWTON_SCHULZ_STEPS, .squares = NEWTON_SCHULZ_STEPS,
                             .added = NEWTON_SCHULZ_STEPS * 6 * (rows * rows + rows * columns)};
}

/* m x k by k x n. */
static struct kernel product(const char *name, enum dtype dtype, const double sizes[3], double launches)
{
    double m = sizes[0], n = sizes[1], k = sizes[2];

    return (struct kernel){
        .name = name, .kind = KERNEL_MATMUL, .phase = PHASE_UPDATE, .dtype = dtype,
        .layout = k > m ? LAYOUT_NT : LAYOUT_NN, .batch = 1, .m = m, .n = n, .k = k, .flop = 2 * m * n * k,
        .bytes = dtype_bytes(dtype) * (m * k + k * n + m * n), .launches = (int)launches,
    };
}

static struct kernel passes(const char *name, double bytes, double launches)
{
    return (struct kernel){
        .name = name, .kind = KERNEL_MEMORY, .phase = PHASE_UPDATE, .class = CLASS_OTHER, .dtype = DTYPE_FP32,
        .bytes = bytes, .launches = (int)launches,
    };
}

size_t newton_schulz_kernels(const struct matrix *matrix, const struct orthogonalization *how, struct kernel *kernels)
{
    struct iterated parts[MATRIX_PARTS];
    size_t count = parts_of(matrix, how, parts), n = 0;

    for (size_t i = 0; i < count; i++) {
        const struct iterated *part = &parts[i];
        struct products products = products_of(part, how->method);
        double rows = part->rows, columns = part->columns, each = matrix->count, value = how->value;
        double adds = 2 * products.squares;      /* an addition and a copy for each square, or for each iteration */
        enum { AROUND = 7 };     /* norm, division, two casts, two scalings, and the tensor's part is cut or joined */

        kernels[n++] = product("newton-schulz-gram", how->dtype, (double[]){rows, rows, columns},
                               each * products.inner);
        kernels[n++] = product("newton-schulz-square", how->dtype, (double[]){rows, rows, rows},
                               each * products.squares);
        kernels[n++] = product("newton-schulz-apply", how->dtype, (double[]){rows, columns, rows},
                               each * products.outer);
        kernels[n++] = passes("newton-schulz-add", products.added / adds, each * adds);
        kernels[n++] = passes("newton-schulz-scale", (9 * value + 4) * rows * columns / AROUND, each * AROUND);
    }
    return n;
}

double newton_schulz_flop(const struct matrix *matrix, const struct orthogonalization *how)
{
    struct kernel kernels[MATRIX_PARTS * NEWTON_SCHULZ_KERNELS];
    size_t count = newton_schulz_kernels(matrix, how, kernels);
    double flop = 0;

    for (size_t i = 0; i < count; i++)
        flop += kernels[i].flop * kernels[i].launches;
    return flop;
}

struct orthogonal_exchanges newton_schulz_exchanges(const struct matrix *matrix, const struct orthogonalization *how)
{
    struct iterated parts[MATRIX_PARTS];
    size_t count = parts_of(matrix, how, parts);
    struct orthogonal_exchanges sum = {0};

    for (size_t i = 0; i < count; i++) {
        double often = parts[i].gathers ? 1 : parts[i].sums ? NEWTON_SCHULZ_STEPS : 0;
        double bytes = parts[i].gathers ? how->value * parts[i].rows * parts[i].columns :
                                          2 * parts[i].rows * parts[i].rows;

        sum.count += matrix->count * often;
        sum.bytes += matrix->count * often * bytes;
    }
    return sum;
}

/* ---- owners ---- */

/* Owners that have been given the same matrices. */
struct owners {
    double load, elements;
    double ranks;
    double counts[MATRIX_SHAPES];
};
struct owner_groups { struct owners *items; size_t count, capacity; };

/* Megatron Core compares max * min^2, to which the FLOP are proportional. */
static double relative_flop(const struct matrix *matrix)
{
    double most = fmax(matrix->out, matrix->in), least = fmin(matrix->out, matrix->in);

    return most * least * least;
}

/* Gives one matrix of the shape to as many of the least loaded owners as there are matrices left; returns how many. */
static double give(struct owner_groups *groups, const struct matrix *matrix, size_t shape, double left)
{
    struct owners given;
    size_t least = 0;

    for (size_t i = 1; i < groups->count; i++)
        if (groups->items[i].load < groups->items[least].load)
            least = i;
    given = groups->items[least];
    given.ranks = fmin(left, given.ranks);
    groups->items[least].ranks -= given.ranks;
    given.load += relative_flop(matrix);
    given.elements += matrix->out * matrix->in;
    given.counts[shape]++;
    for (size_t i = 0; i < groups->count; i++)
        if (groups->items[i].ranks > 0 && !memcmp(groups->items[i].counts, given.counts, sizeof given.counts)) {
            groups->items[i].ranks += given.ranks;
            return given.ranks;
        }
    if (groups->items[least].ranks == 0)
        groups->items[least] = given;
    else
        *GROW(groups) = given;
    return given.ranks;
}

void matrices_owned(const struct matrices *all, int owners, struct owned_matrices *owned)
{
    struct owner_groups groups = {0};
    bool done[MATRIX_SHAPES] = {false};
    const struct owners *slowest;

    *owned = (struct owned_matrices){.slowest = *all, .elements = matrices_elements(all)};
    if (owners <= 1)
        return;
    *GROW(&groups) = (struct owners){.ranks = owners};
    for (size_t i = 0; i < all->count; i++) {
        size_t next = all->count;

        for (size_t k = 0; k < all->count; k++)
            if (!done[k] && (next == all->count || relative_flop(&all->items[k]) > relative_flop(&all->items[next])))
                next = k;
        done[next] = true;
        for (double left = all->items[next].count; left > 0;)
            left -= give(&groups, &all->items[next], next, left);
    }
    slowest = &groups.items[0];
    owned->elements = 0;
    for (size_t i = 0; i < groups.count; i++) {
        slowest = groups.items[i].load > slowest->load ? &groups.items[i] : slowest;
        owned->elements = fmax(owned->elements, groups.items[i].elements);
    }
    for (size_t i = 0; i < all->count; i++)
        owned->slowest.items[i].count = slowest->counts[i];
    free(groups.items);
}
