// --check compares the GPU's rounding with the CPU's. Here the CPU's is compared with CUDA's conversions, on the host.
#include <cuda_fp8.h>
#if CUDART_VERSION >= 12080
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"      // in the toolkit's header
#include <cuda_fp4.h>
#pragma GCC diagnostic pop
#endif

#include <math.h>
#include <stdio.h>

#include "format.h"

static int wrong(const char *what, float x, float expected, float found)
{
    if (expected == found)
        return 0;
    fprintf(stderr, "%s of %.9g: CUDA has %.9g, format_round %.9g\n", what, x, expected, found);
    return 1;
}

static int compare(float x)
{
    int count = wrong("e4m3", x, static_cast<float>(__nv_fp8_e4m3(x)), format_round(BENCH_FP8, x));

#if CUDART_VERSION >= 12080
    count += wrong("e2m1", x, static_cast<float>(__nv_fp4_e2m1(x)), format_round(BENCH_E2M1, x));
    if (x >= 0x1p-126f) {                        // below it format_round stays at 2^-126
        __nv_fp8_e8m0 power;

        power.__x = __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf);
        count += wrong("e8m0", x, static_cast<float>(power), format_round(BENCH_E8M0, x));
    }
#endif
    return count;
}

int main()
{
    unsigned state = 1;
    int count = 0;

    for (int i = 0; i < 2000000 && count < 10; i++) {
        float mantissa = 1 + static_cast<float>((state = state * 1664525u + 1013904223u) >> 9) * 0x1p-23f;
        float x = ldexpf(mantissa, i % 24 - 12);

        count += compare(i % 3 ? x : -x);
        // the middle of two codes, and the numbers next to it
        x = ldexpf(static_cast<float>(i % 32), i % 13 - 8);
        count += compare(x) + compare(nextafterf(x, 1e9f)) + compare(nextafterf(x, -1e9f));
    }
    return count > 0;
}
