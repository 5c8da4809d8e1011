/* Corrections by anchors, of made-up runs. */
#include "evidence/anchor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static const struct ratio_expectation published = {0.06, 0.2};

static struct anchor run_of(double measured, double exposed)
{
    return (struct anchor){
        .name = "r", .measured = measured, .predicted = 1, .shares = {1 - exposed, exposed, 0},
        .likeness = {.software = "s", .costs = "h100", .format = "bf16", .schedule = "1f1b", .model = "m", .gpu = "h100",
                     .gpus = 8, .sequence = 4096, .tokens = 4096, .exposed = exposed},
    };
}

static struct correction correct(struct anchor *items, size_t count, struct anchor of)
{
    const struct anchors anchors = {.list = {items, count, count}};

    return anchors_correct(&anchors, &of, published);
}

/* One anchor gives one factor, between 1 and the anchor's ratio; the larger the ratio, the nearer to it. The inverse
 * ratio gives the inverse factor. */
static void one(void **state)
{
    static const double measured[] = {1.02, 1.1, 1.3, 2, 3.9};
    double last = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(measured); i++) {
        struct anchor slow = run_of(measured[i], 0.1), fast = run_of(1 / measured[i], 0.1);
        struct correction correction = correct(&slow, 1, run_of(1, 0.1));
        double share = log(correction.factor) / log(measured[i]);

        assert_true(share > last && share < 1);
        assert_true(fabs(correction.factor * correct(&fast, 1, run_of(1, 0.1)).factor - 1) < 1e-12);
        assert_true(correction.used == 1 && isnan(correction.classes[0]));
        assert_true(correction.within > published.within && correction.most > published.most);
        assert_true(correction.within > 0.4 * log(measured[i]));
        last = share;
    }
    assert_true(last > 0.7);
}

/* A run is an anchor where all that is known of both is the same, and so is the predicted time. */
static void same(void **state)
{
    struct anchor items[] = {run_of(1.3, 0.2), run_of(1.2, 0.1), run_of(1.5, 0.1)}, other = run_of(1, 0.1), strange = other;
    const struct anchors anchors = {.list = {items, 3, 3}}, one = {.list = {items, 2, 2}};
    double measured, apart;

    (void)state;
    assert_int_equal(anchors_same(&one, &other, 1.00005, &measured, &apart), 1);
    assert_true(fabs(measured - items[1].measured) < 1e-12 && apart == 0);
    assert_int_equal(anchors_same(&anchors, &other, 1.00005, &measured, &apart), 2);    /* measured twice */
    assert_true(fabs(measured - sqrt(items[1].measured * items[2].measured)) < 1e-12 && fabs(apart - 0.25) < 1e-12);
    assert_int_equal(anchors_same(&anchors, &other, 1.01, &measured, &apart), 0);
    other.likeness.tokens *= 2;
    strcpy(strange.likeness.model, "n");
    assert_int_equal(anchors_same(&anchors, &other, 1, &measured, &apart), 0);
    assert_int_equal(anchors_same(&anchors, &strange, 1, &measured, &apart), 0);
}

/* Where measured is predicted nothing is corrected. */
static void exact(void **state)
{
    struct anchor anchors[] = {run_of(1, 0), run_of(1, 0.3), run_of(1, 0.6)};

    (void)state;
    assert_true(correct(anchors, 1, run_of(1, 0.2)).factor == 1);
    assert_true(correct(anchors, 3, run_of(1, 0.2)).factor == 1);
    assert_true(correct(anchors, 3, run_of(1, 0.2)).within < published.within);
}

/* The order of anchors does not matter; more that agree are believed more, and a run unlike them is corrected less. */
static void several(void **state)
{
    struct anchor agree[] = {run_of(1.3, 0.1), run_of(1.3, 0.1), run_of(1.3, 0.1)};
    struct anchor mixed[] = {run_of(1.3, 0.1), run_of(1.1, 0.2), run_of(0.9, 0.4)};
    struct anchor turned[] = {mixed[2], mixed[0], mixed[1]};
    struct anchor unlike = run_of(1, 0.1), apart = run_of(1, 0.9);

    (void)state;
    unlike.likeness.gpus = 8192;
    strcpy(unlike.likeness.schedule, "gpipe");
    assert_true(correct(agree, 3, run_of(1, 0.1)).factor > correct(agree, 2, run_of(1, 0.1)).factor);
    assert_true(correct(agree, 2, run_of(1, 0.1)).factor > correct(agree, 1, run_of(1, 0.1)).factor);
    assert_true(correct(agree, 3, run_of(1, 0.1)).factor < 1.3);
    assert_true(fabs(correct(mixed, 3, run_of(1, 0.3)).factor - correct(turned, 3, run_of(1, 0.3)).factor) < 1e-12);
    assert_true(fabs(log(correct(agree, 1, unlike).factor)) < log(correct(agree, 1, run_of(1, 0.1)).factor));
    assert_true(fabs(log(correct(agree, 1, apart).factor)) < log(correct(agree, 1, run_of(1, 0.1)).factor));
    assert_true(correct(agree, 3, run_of(1, 0.1)).within < correct(mixed, 3, run_of(1, 0.1)).within);
}

/* With three anchors or more each class of time has a factor. */
static void classes(void **state)
{
    struct anchor anchors[] = {run_of(1, 0), run_of(1.2, 0.25), run_of(1.5, 0.5)};
    struct correction correction = correct(anchors, 3, run_of(1, 0.25));

    (void)state;
    assert_true(correction.classes[ANCHOR_COMMUNICATION] > correction.classes[ANCHOR_COMPUTE]);
    assert_true(isnan(correct(anchors, 2, run_of(1, 0.25)).classes[ANCHOR_COMPUTE]));
}

/* Anchors that make each other worse correct less than one does that has their mean error. */
static void contradicting(void **state)
{
    struct anchor odd[] = {run_of(2, 0.1), run_of(0.95, 0.1), run_of(0.95, 0.1)};
    struct anchor mean = run_of(cbrt(2 * 0.95 * 0.95), 0.1);

    (void)state;
    assert_true(correct(odd, 3, run_of(1, 0.1)).factor > 1);
    assert_true(correct(odd, 3, run_of(1, 0.1)).factor < correct(&mean, 1, run_of(1, 0.1)).factor);
}

/* Micro-batches of a quarter of the tokens tell half as much. */
static void small_micro_batches(void **state)
{
    struct anchor anchor = run_of(1.2, 0.1), of = run_of(1, 0.1);
    double factor = correct(&anchor, 1, of).factor;

    (void)state;
    of.likeness.tokens = 4 * anchor.likeness.tokens;
    assert_float_equal(log(correct(&anchor, 1, of).factor), log(factor) / 2, 1e-12);
}

/* Without published ratios the error is what leaving one out gives, from three on. */
static void alone(void **state)
{
    struct anchor items[] = {run_of(1.1, 0.1), run_of(1.4, 0.1), run_of(0.9, 0.1)};
    struct anchors anchors = {.list = {items, 2, 2}};
    const struct ratio_expectation none = {NAN, NAN};
    struct anchor of = run_of(1, 0.1);

    (void)state;
    assert_true(isnan(anchors_correct(&anchors, &of, none).within));
    anchors.list.count = 3;
    assert_true(anchors_correct(&anchors, &of, none).within > 0.1);
    assert_true(anchors_correct(&anchors, &of, none).most < 0.6);
}

static void assert_refused(const struct anchors *anchors, const struct anchor *of, const char *expected)
{
    assert_string_equal(anchors_refused(&arena, anchors, of), expected);
}

static void refused(void **state)
{
    struct anchor item = run_of(1.1, 0.1), of = item;
    struct anchors anchors = {.list = {&item, 1, 1}}, none = {.list = {NULL, 0, 0}};

    (void)state;
    assert_null(anchors_refused(&arena, &anchors, &of));
    assert_refused(&none, &of, "there are none");
    strcpy(of.likeness.software, "t");
    assert_refused(&anchors, &of, "'r' has software s, not t");
    of = item;
    of.likeness.gpu[0] = '\0';
    assert_refused(&anchors, &of, "'r' has GPU h100, not none");
    of = item;
    strcpy(of.likeness.costs, "roofline");
    assert_refused(&anchors, &of, "'r' has kernel times h100, not roofline");
    of = item;
    strcpy(of.likeness.model, "n");
    assert_refused(&anchors, &of, "'r' has model m, not n");
    of = item;
    strcpy(item.likeness.costs, "given");
    strcpy(of.likeness.costs, "given");
    assert_refused(&anchors, &of, "'r' is given its times, which tell no model from another");
    of = item = run_of(5, 0.1);
    assert_refused(&anchors, &of, "'r' took 5 s where 1 s are predicted, more than 4 times apart: units, or keys of the "
                   "scenario, may be wrong");
}

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same), cmocka_unit_test(one), cmocka_unit_test(exact), cmocka_unit_test(several), cmocka_unit_test(classes),
        cmocka_unit_test(contradicting), cmocka_unit_test(small_micro_batches), cmocka_unit_test(alone), cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests_name("anchor", tests, NULL, release);
}
