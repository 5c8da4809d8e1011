/* What show draws of every schedule, against its figure and the comment at the head of its file. */
#include "report/figure.h"
#include "schedule_list.h"

/* The figure of a schedule says for how many stages and micro-batches it is, and whether it recomputes. */
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
    for (size_t i = 0; i < COUNT(files); i++) {
        struct simulated simulated;
        struct error err = {0};
        int stages, micro_batches, chunks;
        bool recompute;
        char schedule[96], *figure = NULL;
        size_t size;
        FILE *out = open_memstream(&figure, &size);

        figure_size(files[i].strategy->figure, &stages, &micro_batches, &chunks, &recompute);
        chunks = chunks > chunks_of(files[i].strategy) ? chunks : chunks_of(files[i].strategy);
        micro_batches *= files[i].strategy->placement == PLACEMENT_BIDIRECTIONAL ? 2 : 1;
        snprintf(schedule, sizeof schedule, "schedule: %s, chunks: %d", files[i].strategy->name, chunks);
        load_stages(&simulated, schedule, stages, micro_batches, recompute);
        if (files[i].strategy->batches)      /* drawn as one batch of them all, which is the same without a flush */
            simulated.scenario.plan.batches = 1;
        assert_int_equal(figure_print(simulated_workload(&simulated), out, &err), 0);
        fclose(out);
        assert_string_equal(figure, files[i].strategy->figure);
        free(figure);
        simulated_release(&simulated);
    }
}

/* The comment at the head of a schedule's file shows the same figure. */
static void test_figures_in_comments(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(files); i++) {
        char *text = read_file(files[i].file), *comment = NULL;
        size_t size;
        FILE *out = open_memstream(&comment, &size);

        for (const char *p = files[i].strategy->figure, *end; *p; p = end + 1) {
            end = strchr(p, '\n');
            fprintf(out, " *     %.*s\n", (int)(end - p), p);
        }
        fclose(out);
        *strstr(text, "*/") = 0;
        if (!strstr(text, comment))
            fail_msg("the first comment of %s does not show its figure:\n%s", files[i].file, comment);
        free(comment);
        free(text);
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
        cmocka_unit_test(test_figures), cmocka_unit_test(test_figures_in_comments), cmocka_unit_test(test_gpipe_grid),
    };

    return cmocka_run_group_tests_name("schedule_figures", tests, NULL, NULL);
}
