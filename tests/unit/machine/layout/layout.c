#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "layout/layout.h"

static const int megatron[] = {DIMENSION_TENSOR, DIMENSION_CONTEXT, DIMENSION_DATA, DIMENSION_PIPELINE};

/* Numbers a seat digit by digit, as placements are defined: the fastest dimension is the last digit. */
static int number_of(const struct layout *layout, const int *order, int t, int replica, int p)
{
    int context = layout->degree[DIMENSION_CONTEXT], number = 0;
    const int index[] = {[DIMENSION_TENSOR] = t, [DIMENSION_DATA] = replica / context, [DIMENSION_PIPELINE] = p,
                         [DIMENSION_CONTEXT] = replica % context};

    for (int i = DIMENSION_COUNT; i-- > 0;)
        number = number * layout->degree[order[i]] + index[order[i]];
    return number;
}

/* Every seat has another GPU, in the order of their numbers; all other GPUs have no seat. */
static void check_seats(const struct layout *layout, const struct cluster *cluster, const int *order)
{
    bool *taken = xcalloc((size_t)cluster_gpus(cluster), sizeof *taken);
    int before = -1, on = 0;

    for (int seat = 0; seat < layout->seats; seat++) {
        int gpu = layout_nth_gpu(layout, seat);

        assert_true(gpu > before && gpu < cluster_gpus(cluster) && layout_has(layout, gpu));
        before = gpu;
    }
    for (int gpu = 0; gpu < cluster_gpus(cluster); gpu++)
        on += layout_has(layout, gpu);
    assert_int_equal(on, layout->seats);
    for (int p = 0; p < layout->degree[DIMENSION_PIPELINE]; p++) {
        unsigned kinds = 0;

        for (int r = 0; r < layout->degree[DIMENSION_DATA] * layout->degree[DIMENSION_CONTEXT]; r++)
            for (int t = 0; t < layout->degree[DIMENSION_TENSOR]; t++) {
                struct seat seat = layout_seat(layout, cluster, t, r, p);

                assert_int_equal(seat.gpu, layout_nth_gpu(layout, number_of(layout, order, t, r, p)));
                assert_int_equal(seat.node, cluster_node_of(cluster, seat.gpu));
                assert_ptr_equal(&cluster->kinds[seat.kind], cluster_kind(cluster, seat.node));
                assert_true(seat.slower == (cluster->gpu_slower ? cluster->gpu_slower[seat.gpu] : 1));
                assert_false(taken[seat.gpu]);
                taken[seat.gpu] = true;
                kinds |= 1u << seat.kind;
            }
        assert_int_equal(layout_kinds(layout, p), kinds);
    }
    free(taken);
}

static void test_orders(void **state)
{
    int order[DIMENSION_COUNT];

    (void)state;
    srand(1);
    for (int i = 0; i < 300; i++) {
        struct cluster cluster = {.kinds[0].gpus = 1 + rand() % 9};
        const int degree[] = {1 + rand() % 4, 1 + rand() % 4, 1 + rand() % 4, 1 + rand() % 3};
        struct layout layout;

        memcpy(order, megatron, sizeof order);
        for (int k = DIMENSION_COUNT - 1; k > 0; k--) {
            int other = rand() % (k + 1), swapped = order[k];

            order[k] = order[other];
            order[other] = swapped;
        }
        layout_make(&layout, &cluster, degree, order, NULL);
        assert_true(cluster_gpus(&cluster) >= layout.seats && !layout.mixed);
        check_seats(&layout, &cluster, order);
    }
}

/* 2 nodes of 4 GPUs, then nodes of 2 of another kind: all GPUs of the first are taken, in the order of the nodes. */
static void test_kinds(void **state)
{
    static const struct { int data, seats; bool mixed; unsigned kinds[2]; } cases[] = {
        {1, 4, false, {1, 1}}, {2, 8, false, {1, 1}}, {3, 12, true, {1, 3}}, {4, 16, true, {1, 2}},
    };
    double slower[20];

    (void)state;
    for (int gpu = 0; gpu < 20; gpu++)
        slower[gpu] = gpu == 9 ? 1.5 : 1;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cluster cluster = {.nodes = 8, .part_count = 2, .parts = {{0, 0}, {1, 2}}, .kinds[0].gpus = 4,
                                  .kinds[1].gpus = 2, .gpu_slower = slower};
        const int degree[] = {[DIMENSION_TENSOR] = 2, [DIMENSION_DATA] = cases[i].data, [DIMENSION_PIPELINE] = 2,
                              [DIMENSION_CONTEXT] = 1};
        struct layout layout;

        layout_make(&layout, &cluster, degree, megatron, NULL);
        assert_int_equal(layout.seats, cases[i].seats);
        assert_int_equal(layout.mixed, cases[i].mixed);
        check_seats(&layout, &cluster, megatron);
        for (int p = 0; p < 2; p++)
            assert_int_equal(layout_kinds(&layout, p), cases[i].kinds[p]);
        assert_int_equal(layout_node_seats(&layout, 0), 4);
        assert_int_equal(layout_kind_seats(&layout, 0), cases[i].seats < 8 ? cases[i].seats : 8);
        assert_int_equal(layout_kind_seats(&layout, 1), cases[i].seats - layout_kind_seats(&layout, 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders), cmocka_unit_test(test_kinds)};

    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
