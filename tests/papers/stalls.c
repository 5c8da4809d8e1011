/* Stalls of checkpoints as published, as inputs: the MFU over that without checkpoints, and recoveries. */
#include "trained.h"

/* Wan et al. 2025, "Robust LLM Training Infrastructure at ByteDance" (ByteRobust), arXiv 2509.16293, table 8: a
 * checkpoint after each step; the time that each stalls and the MFU, of 70B on 2,048 and 4,096 GPUs and of 256B on
 * 8,192 and 16,384. The step is what Megatron's row says: stall x share / (1 - share). */
static void test_byterobust(void **state)
{
    static const struct {
        const char *name;
        double stall[3], share[3];
    } rows[] = {
        {"70B, 2,048 GPUs", {6.77, 1.84, 0.04}, {0.3984, 0.7005, 0.9923}},
        {"70B, 4,096 GPUs", {7.14, 1.69, 0.03}, {0.3911, 0.7236, 0.9912}},
        {"256B, 8,192 GPUs", {13.02, 0.22, 0.01}, {0.4307, 0.9590, 0.9971}},
        {"256B, 16,384 GPUs", {12.98, 0.18, 0.02}, {0.4280, 0.9692, 0.9911}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        double step = rows[i].stall[0] * rows[i].share[0] / (1 - rows[i].share[0]);

        for (int k = 0; k < 3; k++) {
            char *text = xprintf(
                "model: {stages: {forward: %.17g s, backward: %.17g s}}\ncluster: ideal\nbatch: {micro_batches: 1}\n"
                "train: {steps: 10000, checkpoint: {every: 1 step, block: %g s}}\n",
                step / 3, step / 1.5, rows[i].stall[k]);
            struct trained trained;
            double share;

            train_whole(&trained, text, (struct training_options){1, 1, 1});
            share = trained.training.goodput.mean;
            printf("%-18s stall of %5.2f s: %.3f; published %.3f\n", rows[i].name, rows[i].stall[k], share,
                   rows[i].share[k]);
            assert_true(fabs(share - rows[i].share[k]) < 0.03);
            trained_release(&trained);
            free(text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_byterobust)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
