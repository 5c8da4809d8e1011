/* The orders of V-shaped and bidirectional schedules and of Varuna, token for token: as their authors' programs give
 * them. */
#include "report/figure.h"
#include "simulated.h"

#include <dirent.h>

/* Varuna's generate_schedule, DeepSeek's dualpipe.py and dualpipev.py, Chimera's steps with micro-batches numbered
 * on, and zbv.py and zbv_greedy.py of sail-sg's zero-bubble-pipeline-parallelism with F = I = W; PyTorch's ZBV. */
static const struct { const char *schedule; int stages, micro_batches; const char *orders; } cases[] = {
    {"schedule: varuna", 2, 2,
     "0F0,0F1,0R0,0B0,0R1,0B1\n"
     "1F0,1B0,1F1,1B1\n"},
    {"schedule: varuna", 3, 5,
     "0F0,0F1,0F2,0F3,0F4,0R0,0B0,0R1,0B1,0R2,0B2,0R3,0B3,0R4,0B4\n"
     "1F0,1F1,1F2,1R0,1B0,1R1,1B1,1R2,1B2,1F3,1F4,1R3,1B3,1R4,1B4\n"
     "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3,2F4,2B4\n"},
    {"schedule: dualpipe", 2, 4,
     "0F0@0,1F0@1,0F1@0,1B0@1,(1F1@1;0B0@0)O,1B1@1,0I1@0,0W1@0\n"
     "0F0@1,1F0@0,0F1@1,1B0@0,(1F1@0;0B0@1)O,1B1@0,0I1@1,0W1@1\n"},
    {"schedule: dualpipe", 4, 8,
     "0F0@0,0F1@0,0F2@0,3F0@1,3I0@1,3W0@1,3F1@1,(0F3@0;3B1@1)O,(3F2@1;0B0@0)O,3B2@1,(3F3@1;0B1@0)O,3B3@1,0I2@0,"
     "0W2@0,0I3@0,0W3@0\n"
     "1F0@0,2F0@1,1F1@0,2F1@1,1F2@0,2B0@1,(2F2@1;1B0@0)O,(1F3@0;2B1@1)O,(2F3@1;1B1@0)O,2B2@1,1B2@0,2I3@1,1I3@0,"
     "2W3@1,1W3@0\n"
     "1F0@1,2F0@0,1F1@1,2F1@0,1F2@1,2B0@0,(2F2@0;1B0@1)O,(1F3@1;2B1@0)O,(2F3@0;1B1@1)O,2B2@0,1B2@1,2I3@0,1I3@1,"
     "2W3@0,1W3@1\n"
     "0F0@1,0F1@1,0F2@1,3F0@0,3I0@0,3W0@0,3F1@0,(0F3@1;3B1@0)O,(3F2@0;0B0@1)O,3B2@0,(3F3@0;0B1@1)O,3B3@0,0I2@1,"
     "0W2@1,0I3@1,0W3@1\n"},
    {"schedule: dualpipe-v", 2, 4,
     "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)O,(3F2;0B0)O,3B2,(3F3;0B1)O,3B3,0I2,0W2,0I3,0W3\n"
     "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)O,(1F3;2B1)O,(2F3;1B1)O,2B2,1B2,2I3,1I3,2W3,1W3\n"},
    {"schedule: dualpipe-v", 3, 7,
     "0F0,0F1,0F2,0F3,0F4,5F0,5I0,5W0,5F1,5I1,5W1,5F2,(0F5;5B2)O,(5F3;0B0)O,(0F6;5B3)O,(5F4;0B1)O,5B4,(5F5;0B2)O,"
     "5B5,(5F6;0B3)O,5B6,0I4,0W4,0I5,0W5,0I6,0W6\n"
     "1F0,1F1,1F2,4F0,1F3,4F1,4I0,4W0,4F2,(1F4;4B1)O,(4F3;1B0)O,(1F5;4B2)O,(4F4;1B1)O,(1F6;4B3)O,(4F5;1B2)O,4B4,"
     "(4F6;1B3)O,4B5,1B4,4I6,1I5,4W6,1I6,1W5,1W6\n"
     "2F0,3F0,2F1,3F1,2F2,3F2,2F3,3B0,(3F3;2B0)O,(2F4;3B1)O,(3F4;2B1)O,(2F5;3B2)O,(3F5;2B2)O,(2F6;3B3)O,"
     "(3F6;2B3)O,3B4,2B4,3B5,2I5,3I6,2I6,2W5,3W6,2W6\n"},
    {"schedule: chimera", 2, 2,
     "0F0@0,1F0@1,1B0@1,0B0@0\n"
     "0F0@1,1F0@0,1B0@0,0B0@1\n"},
    {"schedule: chimera", 4, 4,
     "0F0@0,0F1@0,3F0@1,3B0@1,3F1@1,3B1@1,0B0@0,0B1@0\n"
     "1F0@0,2F0@1,1F1@0,2F1@1,2B0@1,1B0@0,2B1@1,1B1@0\n"
     "1F0@1,2F0@0,1F1@1,2F1@0,2B0@0,1B0@1,2B1@0,1B1@1\n"
     "0F0@1,0F1@1,3F0@0,3B0@0,3F1@0,3B1@0,0B0@1,0B1@1\n"},
    {"schedule: zb-v", 3, 6,
     "0F0,0F1,0F2,0F3,0F4,5F0,5I0,5W0,5F1,5I1,5W1,5F2,5I2,5W2,0F5,0I0,0W0,5F3,5I3,5W3,0I1,0W1,5F4,5I4,5W4,0I2,0W2,"
     "5F5,5I5,0I3,5W5,0I4,0W3,0I5,0W4,0W5\n"
     "1F0,1F1,1F2,4F0,1F3,4F1,4I0,4W0,4F2,4I1,4W1,1F4,1I0,1W0,4F3,4I2,4W2,1F5,1I1,1W1,4F4,4I3,4W3,1I2,1W2,4F5,4I4,"
     "1I3,4I5,1I4,4W4,1I5,1W3,4W5,1W4,1W5\n"
     "2F0,3F0,2F1,3F1,2F2,3F2,3I0,3W0,2F3,2I0,2W0,3F3,3I1,3W1,2F4,2I1,2W1,3F4,3I2,3W2,2F5,2I2,2W2,3F5,3I3,2I3,3I4,"
     "2I4,3I5,2I5,3W3,2W3,3W4,2W4,3W5,2W5\n"},
    {"schedule: zb-v, variant: fixed", 2, 4,
     "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3,0I0,0W0,3F2,3I2,3W2,0I1,0W1,3F3,3I3,3W3,0I2,0W2,0I3,0W3\n"
     "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,1I2,2I3,1I3,1W2,2W3,1W3\n"},
    {"schedule: v-half", 2, 4,
     "0F0,0F1,0F2,3F0,3I0,3W0,3F1,0I0,3I1,3W1,3F2,0W0,0F3,0I1,3I2,3W2,3F3,3I3,0I2,3W3,0I3,0W1,0W2,0W3\n"
     "1F0,2F0,1F1,2F1,2I0,2W0,1I0,1W0,1F2,2F2,2I1,1I1,2W1,1F3,1W1,2F3,2I2,1I2,2I3,1I3,2W2,2W3,1W2,1W3\n"},
    {"schedule: v-half", 3, 6,
     "0F0,0F1,0F2,5F0,5I0,5W0,5F1,5I1,5W1,0I0,0W0,0F3,5F2,5I2,5W2,0I1,0W1,0F4,5F3,5I3,5W3,0I2,0W2,0F5,5F4,5I4,5W4,"
     "0I3,0W3,5F5,5I5,0I4,5W5,0W4,0I5,0W5\n"
     "1F0,1F1,4F0,4F1,4I0,4W0,1F2,1I0,4I1,4W1,4F2,1W0,1F3,1I1,4I2,4W2,4F3,1W1,1F4,1I2,4I3,4W3,4F4,1W2,1F5,1I3,4I4,"
     "4W4,4F5,1W3,1I4,4I5,4W5,1W4,1I5,1W5\n"
     "2F0,3F0,2F1,3F1,3I0,3W0,2I0,2W0,2F2,3F2,3I1,3W1,2I1,2W1,2F3,3F3,3I2,3W2,2I2,2W2,2F4,3F4,3I3,2I3,3W3,2F5,2W3,"
     "3F5,3I4,2I4,3W4,2W4,3I5,2I5,3W5,2W5\n"},
    {"schedule: v-min", 2, 4,
     "0F0,0F1,3F0,3I0,3W0,0I0,0W0,3F1,3I1,3W1,0F2,0I1,0W1,3F2,3I2,3W2,0F3,0I2,0W2,3F3,3I3,3W3,0I3,0W3\n"
     "1F0,2F0,2I0,1I0,1F1,2F1,2W0,1W0,2I1,1I1,1F2,2F2,2W1,1W1,2I2,1I2,1F3,2F3,2W2,1W2,2I3,1I3,2W3,1W3\n"},
    {"schedule: v-min", 3, 6,
     "0F0,0F1,0F2,5F0,5I0,5W0,5F1,0I0,5I1,5W1,0W0,5F2,0F3,0I1,5I2,5W2,0W1,5F3,0F4,0I2,5I3,5W3,0W2,5F4,0F5,0I3,5I4,"
     "5W4,0W3,5F5,5I5,0I4,5W5,0W4,0I5,0W5\n"
     "1F0,1F1,4F0,4F1,4I0,4W0,1I0,1F2,1W0,4I1,4F2,4W1,1I1,1F3,1W1,4I2,4F3,4W2,1I2,1F4,1W2,4I3,4F4,4W3,1I3,1F5,1W3,"
     "4I4,4F5,4W4,1I4,4I5,4W5,1W4,1I5,1W5\n"
     "2F0,3F0,2F1,3F1,3I0,2I0,3W0,2W0,2F2,3F2,3I1,2I1,3W1,2W1,2F3,3F3,3I2,2I2,3W2,2W2,2F4,3F4,3I3,2I3,3W3,2W3,2F5,"
     "3F5,3I4,2I4,3W4,2W4,3I5,2I5,3W5,2W5\n"},
};

/* Files of further cases: a name before "_p4_m8.csv", and the schedule. */
static const struct { const char *prefix, *schedule; } families[] = {
    {"varuna_static", "schedule: varuna"},
    {"deepseek_dualpipe", "schedule: dualpipe"},
    {"deepseek_dualpipev", "schedule: dualpipe-v"},
    {"chimera", "schedule: chimera"},
    {"zb_zbv", "schedule: zb-v"},
    {"pytorch_zbv", "schedule: zb-v, variant: fixed"},
    {"zb_vhalf", "schedule: v-half"},
    {"zb_vmin", "schedule: v-min"},
};

static void load(struct simulated *simulated, const char *schedule, int stages, int micro_batches)
{
    simulated_load(simulated,
                   "model: {stages: {forward: 1 s, backward: 2 s, recompute: 1 s}}\ncluster: ideal\n"
                   "batch: {micro_batches: %d}\nstrategy: {%s, pipeline: %d}\n", micro_batches, schedule, stages);
}

/* "(1F1;0B0)OVERLAP_F_B" as the authors' programs and tables have it: "(1F1;0B0)O". */
static void shorten(char *text)
{
    static const char rest[] = "VERLAP_F_B";

    while ((text = strstr(text, rest)))
        memmove(text, text + strlen(rest), strlen(text + strlen(rest)) + 1);
}

static void assert_orders(const char *schedule, int stages, int micro_batches, const char *expected)
{
    struct simulated simulated;
    char *text;

    load(&simulated, schedule, stages, micro_batches);
    text = orders_text(&simulated);
    shorten(text);
    if (strcmp(text, expected))
        fail_msg("%s, %d stages, %d micro-batches:\n%sinstead of\n%s", schedule, stages, micro_batches, text, expected);
    free(text);
    simulated_release(&simulated);
}

static void test_orders(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_orders(cases[i].schedule, cases[i].stages, cases[i].micro_batches, cases[i].orders);
}

/* All files of these schedules in the folder of further orders next to the repository, where there is one. */
static void test_orders_of_folder(void **state)
{
    static const char folder[] = DTSIM_SOURCE_DIR "/../shared/schedules/orders";
    DIR *directory = opendir(folder);
    struct dirent *entry;
    int count = 0;

    (void)state;
    if (!directory) {
        print_message("skipped: no folder %s\n", folder);
        skip();
    }
    while ((entry = readdir(directory)))
        for (size_t i = 0; i < COUNT(families); i++) {
            size_t length = strlen(families[i].prefix);
            int stages, micro_batches, end = 0;
            char path[1024], *text;

            if (strncmp(entry->d_name, families[i].prefix, length) ||
                sscanf(entry->d_name + length, "_p%d_m%d.csv%n", &stages, &micro_batches, &end) != 2 ||
                !end || entry->d_name[length + (size_t)end])
                continue;
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            text = read_file(path);
            assert_orders(families[i].schedule, stages, micro_batches, text);
            free(text);
            count++;
        }
    closedir(directory);
    print_message("%d files of %s\n", count, folder);
}

/* Figure of the paper, forward and recomputation a slot, backward two. */
static void test_varuna_grid(void **state)
{
    static const char *const expected =
        "row,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27\n"
        "S1,0F0,0F1,0F2,0F3,0F4,,,,,0R0,0B0,0B0~,0R1,0B1,0B1~,0R2,0B2,0B2~,,,,0R3,0B3,0B3~,0R4,0B4,0B4~\n"
        "S2,,1F0,1F1,1F2,1F3,1F4,,1R0,1B0,1B0~,1R1,1B1,1B1~,1R2,1B2,1B2~,,,,1R3,1B3,1B3~,1R4,1B4,1B4~,,\n"
        "S3,,,2F0,2F1,2F2,2R0,2B0,2B0~,2R1,2B1,2B1~,2R2,2B2,2B2~,2F3,2F4,,2R3,2B3,2B3~,2R4,2B4,2B4~,,,,\n"
        "S4,,,,3F0,3B0,3B0~,3F1,3B1,3B1~,3F2,3B2,3B2~,,,,3F3,3B3,3B3~,3F4,3B4,3B4~,,,,,,\n";
    struct simulated simulated;

    (void)state;
    load(&simulated, "schedule: varuna", 4, 5);
    assert_grid(&simulated, expected);
    simulated_release(&simulated);
}

/* An overlapped action is one cell, as long as its parts together. */
static void test_overlapped_grid(void **state)
{
    static const char *const expected =
        "row,1,2,3,4,5,6,7,8,9,10,11,12\n"
        "S1,0F0@0,1F0@1,0F1@0,1B0@1,1B0@1~,(1F1@1;0B0@0)O,(1F1@1;0B0@0)O~,(1F1@1;0B0@0)O~,1B1@1,1B1@1~,0I1@0,0W1@0\n"
        "S2,0F0@1,1F0@0,0F1@1,1B0@0,1B0@0~,(1F1@0;0B0@1)O,(1F1@0;0B0@1)O~,(1F1@0;0B0@1)O~,1B1@0,1B1@0~,0I1@1,0W1@1\n";
    struct simulated simulated;

    (void)state;
    load(&simulated, "schedule: dualpipe", 2, 4);
    assert_grid(&simulated, expected);
    simulated_release(&simulated);
}

/* Appends the actions of a text `times` times: F a forward pass of two micro-batches, B a backward of one, of the
 * direction in whose first half of stages the rank is (o) or of the other (x). */
static char *repeat(char *to, int times, const char *actions)
{
    while (times-- > 0)
        to = stpcpy(to, actions);
    return to;
}

/* Chimera with doubled forwards, in the phases of its authors' program (Shigangli/Chimera 7be5274,
 * main_with_runtime_forward_doubling.py): the first unit begins with forwards, and each further one takes the last
 * unit's last backwards in between. */
static void expect_phases(char *to, int stages, int rank, int units)
{
    int half = stages / 2, first = rank < half ? half - rank : rank - half + 1;

    for (int unit = 0; unit < units; unit++) {
        to = repeat(to, first, unit ? "BoFo" : "Fo");
        to = repeat(to, half - first, "FxFo");
        to = repeat(to, first, "FxBx");
        to = repeat(to, stages - first, "BoBx");
    }
    repeat(to, first, "Bo");
}

static void actions_of(char *to, const struct row *row, bool first_half)
{
    *to = '\0';
    for (size_t i = 0; i < row->count; i++) {
        const struct work *work = &row->items[i];
        bool forward = work->kind == FORWARD;

        assert_true(work->with_next == forward);
        to += sprintf(to, "%c%c", forward ? 'F' : 'B', (work->chunk == 0) == first_half ? 'o' : 'x');
        i += forward;                    /* the other micro-batch of the pass */
    }
}

static void test_chimera_doubling(void **state)
{
    (void)state;
    for (int stages = 2; stages <= 16; stages += 2)
        for (int units = 1; units <= 3; units++) {
            struct simulated simulated;
            struct row *rows;

            load(&simulated, "schedule: chimera, concatenation: forward-doubling", stages, 2 * units * stages);
            const struct plan *plan = &simulated_workload(&simulated)->plan;
            rows = rows_of(scenario_schedule(&simulated.scenario), plan);
            for (int rank = 0; rank < stages; rank++) {
                char found[16 * 3 * 3 * 4 * 2] = "", expected[sizeof found] = "";

                actions_of(found, &rows[rank], rank < stages / 2);
                expect_phases(expected, stages, rank, units);
                assert_string_equal(found, expected);
            }
            rows_release(rows, stages);
            simulated_release(&simulated);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_chimera_doubling),
        cmocka_unit_test(test_orders_of_folder),
        cmocka_unit_test(test_varuna_grid),
        cmocka_unit_test(test_overlapped_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
