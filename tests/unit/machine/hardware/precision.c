/* precision: bytes that each parameter holds, by the formats that papers and documentation name. */
#include "hardware/precision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What a parameter holds all the time: weights, gradients, master weights, moments of an optimizer. */
static double held(const struct precision_spec *precision)
{
    struct parameter_bytes each = precision_bytes(precision, false);
    struct optimizer_states states = precision_optimizer(precision);

    return each.weights + each.gradients + each.converted + each.master + states.full - 3 * states.quantized;
}

static void bytes_of_a_parameter(void **state)
{
    static const struct { const char *what; struct precision_spec precision; double held; } cases[] = {
        {"ZeRO, section 3.1: 16", {PRECISION_MIXED_FP16, OPTIMIZER_ADAM, MASTER_FP32, .gradients = GRADIENTS_HALF}, 16},
        {"Megatron-LM's fp32 gradients: 18", {PRECISION_MIXED_BF16, OPTIMIZER_ADAM, MASTER_FP32, .gradients = GRADIENTS_FP32}, 18},
        {"all in fp32: 16", {PRECISION_FP32, OPTIMIZER_ADAM, MASTER_FP32, .gradients = GRADIENTS_FP32}, 16},
        {"tf32 is fp32 in memory", {PRECISION_TF32, OPTIMIZER_ADAM, MASTER_FP32, .gradients = GRADIENTS_FP32}, 16},
        {"bf16 without a master: 12", {PRECISION_MIXED_BF16, OPTIMIZER_ADAM, MASTER_NONE, .gradients = GRADIENTS_HALF}, 12},
        {"moments in 8 bits: 10", {PRECISION_MIXED_BF16, OPTIMIZER_ADAM_8BIT, MASTER_FP32, .gradients = GRADIENTS_HALF}, 10},
        {"the lower halves of a master: 14", {PRECISION_MIXED_BF16, OPTIMIZER_ADAM, MASTER_REMAINDERS, .gradients = GRADIENTS_HALF}, 14},
        {"SGD with momentum in fp32: 12", {PRECISION_FP32, OPTIMIZER_MOMENTUM, MASTER_FP32, .gradients = GRADIENTS_FP32}, 12},
        {"SGD in fp32: 8", {PRECISION_FP32, OPTIMIZER_SGD, MASTER_FP32, .gradients = GRADIENTS_FP32}, 8},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (held(&cases[i].precision) != cases[i].held)
            fail_msg("%s; found %g", cases[i].what, held(&cases[i].precision));
}

/* Every format: mixed formats compute in at most half the width of fp32, and only formats of fp8 and below have narrow
 * products. */
static void formats(void **state)
{
    (void)state;
    for (int format = PRECISION_FP32; format <= PRECISION_MIXED_NVFP4; format++) {
        struct precision_spec precision = {format, OPTIMIZER_ADAM, MASTER_FP32, .gradients = GRADIENTS_HALF};
        bool mixed = format >= PRECISION_MIXED_FP16;

        assert_true(dtype_bytes(precision_dtype(&precision)) == (mixed ? 2 : 4));
        assert_true(precision_bytes(&precision, true).weights == (mixed ? 2 : 4));
        assert_int_equal(precision_is_narrow(&precision), format >= PRECISION_MIXED_FP8);
        assert_int_equal(precision_products(&precision) == precision_dtype(&precision), !precision_is_narrow(&precision));
    }
}

/* A gradient of half precision that goes to an fp32 sum passes through memory once more; a fused product adds itself. */
static void accumulation(void **state)
{
    struct precision_spec precision = {PRECISION_MIXED_BF16, OPTIMIZER_ADAM, MASTER_FP32, .gradients = GRADIENTS_FP32};

    (void)state;
    assert_true(precision_bytes(&precision, true).accumulation == 2 + 2 * 4);
    assert_true(precision_bytes(&precision, false).accumulation == 2 + 2 * 4);
    precision.fused_accumulation = true;
    assert_true(precision_bytes(&precision, true).accumulation == 0);
    precision = (struct precision_spec){PRECISION_MIXED_BF16, OPTIMIZER_ADAM, MASTER_FP32, .gradients = GRADIENTS_HALF};
    assert_true(precision_bytes(&precision, true).accumulation == 3 * 2);
    assert_true(precision_bytes(&precision, false).accumulation == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_a_parameter), cmocka_unit_test(formats), cmocka_unit_test(accumulation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
