/* The rows of scenarios/paper/ on two nodes or more, with the cluster written as two parts of one platform: the metrics are
 * the same. One of the first rows of each file, on up to 32 GPUs; all rows where all cases are tried, which takes minutes. */
#include "in_parts.h"
#include "trials.h"

#include "files/data.h"
#include "validate/paper.h"

enum { MOST_GPUS = 32, MOST_TRIED = 3 };

/* Whether the row was compared. */
static bool compare_row(const char *path, size_t row, bool all)
{
    struct paper paper;
    struct scenario scenario = {0};
    struct error err = {0};
    bool compared = false;
    char name[1100];

    if (paper_load(path, &paper, &err))
        fail_at(path, &err);
    snprintf(name, sizeof name, "%s: %s", path, paper.rows[row].id);
    if (paper_scenario(&paper, row, false, NULL, 0, &scenario, &err))
        fail_at(name, &err);
    if (all || cluster_gpus(&scenario.cluster) <= MOST_GPUS)
        compared = same_in_parts(&scenario, name);
    scenario_release(&scenario);
    paper_release(&paper);
    return compared;
}

static size_t row_count(const char *path)
{
    struct paper paper;
    struct error err = {0};
    size_t rows;

    if (paper_load(path, &paper, &err))
        fail_at(path, &err);
    rows = paper.nrows;
    paper_release(&paper);
    return rows;
}

static void published_rows_are_the_same_in_parts(void **state)
{
    const bool all = one_in() == 1 && !ADDRESS_SANITIZER;
    struct arena arena = {0};
    struct error err = {0};
    const char **names = data_names(&arena, "scenarios/paper", &err), *path;
    int compared = 0;

    (void)state;
    assert_non_null(names);
    for (int i = 0; names[i]; i++) {
        size_t rows;
        bool done = false;

        assert_int_equal(data_file(&arena, "scenarios/paper", names[i], &path, &err), 0);
        rows = row_count(path);
        for (size_t row = 0; row < rows && (all || (!done && row < MOST_TRIED)); row++) {
            done = compare_row(path, row, all);
            compared += done;
        }
    }
    assert_true(compared >= 20);
    print_message("%d rows compared\n", compared);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_rows_are_the_same_in_parts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
