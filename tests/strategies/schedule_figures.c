/* The figure that show draws of every schedule, against the figure in its file. */
#include "report/figure.h"
#include "schedule_list.h"

/* The numbers of stages and micro-batches of a schedule's figure, and whether it recomputes. */
static void figure_size(const char *figure, int *stages, int *micro_batches, int *chunks, bool *recompute)
{
    *stages = *micro_batches = 0;
    *chunks = 1;
    *recompute = strchr(figure, 'R') != NULL;
    for (const char *p = figure; *p; p++) {
        char *end;
        int mb;

        *stages += *p == '\n';
        if (*p != 'F')
            continue;
        mb = (int)strtol(p + 1, &end, 10);
        *micro_batches = mb > *micro_batches ? mb : *micro_batches;
        *chunks = *end >= 'a' && *end - 'a' >= *chunks ? *end - 'a' + 1 : *chunks;
    }
}

static void test_figures(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(schedules); i++) {
        struct simulated simulated;
        struct error err = {0};
        int stages, micro_batches, chunks;
        bool recompute;
        char schedule[96], *figure = NULL;
        size_t size;
        FILE *out = open_memstream(&figure, &size);

        figure_size(schedules[i]->figure, &stages, &micro_batches, &chunks, &recompute);
        chunks = chunks > chunks_of(schedules[i]) ? chunks : chunks_of(schedules[i]);
        micro_batches *= schedules[i]->placement == PLACEMENT_BIDIRECTIONAL ? 2 : 1;
        snprintf(schedule, sizeof schedule, "schedule: %s, chunks: %d", schedules[i]->name, chunks);
        load_stages(&simulated, schedule, stages, micro_batches, recompute);
        if (schedules[i]->batches)      /* drawn as one batch of them all, which is the same without a flush */
            simulated.scenario.plan.batches = 1;
        assert_int_equal(figure_print(simulated_workload(&simulated), out, &err), 0);
        fclose(out);
        assert_string_equal(figure, schedules[i]->figure);
        free(figure);
        simulated_release(&simulated);
    }
}

/* Figure 2 of the GPipe paper with recomputation, as a grid. */
static void test_gpipe_grid(void **state)
{
    static const char *const expected =
        "row,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28\n"
        "S1,0F0,0F1,0F2,0F3,0F4,,,,,,,,,,0B4,0B4~,0R3,0B3,0B3~,0R2,0B2,0B2~,0R1,0B1,0B1~,0R0,0B0,0B0~\n"
        "S2,,1F0,1F1,1F2,1F3,1F4,,,,,,,1B4,1B4~,1R3,1B3,1B3~,1R2,1B2,1B2~,1R1,1B1,1B1~,1R0,1B0,1B0~,,\n"
        "S3,,,2F0,2F1,2F2,2F3,2F4,,,,2B4,2B4~,2R3,2B3,2B3~,2R2,2B2,2B2~,2R1,2B1,2B1~,2R0,2B0,2B0~,,,,\n"
        "S4,,,,3F0,3F1,3F2,3F3,3F4,3B4,3B4~,3R3,3B3,3B3~,3R2,3B2,3B2~,3R1,3B1,3B1~,3R0,3B0,3B0~,,,,,,\n";
    struct simulated simulated;

    (void)state;
    load_stages(&simulated, "schedule: gpipe", 4, 5, true);
    assert_grid(&simulated, expected);
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures), cmocka_unit_test(test_gpipe_grid),
    };

    return cmocka_run_group_tests_name("schedule_figures", tests, NULL, NULL);
}
