/* The drawings of the collectives: what they move, how much, and whether their figures say so. */
#include "contributions.h"

#include <math.h>

/* Each arrow of a step reads what its source held before the step. */
static void check_movement(const struct collective *collective, int n)
{
    struct contributions table;
    struct arrows arrows = {0};
    uint64_t **payloads;

    collective->draw(&arrows, n);
    payloads = xcalloc(arrows.count + 1, sizeof *payloads);
    contributions_init(&table, n, collective->chunks(n));
    for (size_t begin = 0, end; begin < arrows.count; begin = end) {
        for (end = begin; end < arrows.count && arrows.items[end].step == arrows.items[begin].step; end++)
            payloads[end] = contributions_leave(&table, &arrows.items[end]);
        for (size_t i = begin; i < end; i++)
            contributions_arrive(&table, &arrows.items[i], payloads[i]);
    }
    contributions_finish(&table, collective->name);
    free(payloads);
    free(arrows.items);
}

static void moves_every_contribution_once(void **state)
{
    static const int larger[] = {96, 100, 127, 128, 129, 160};

    (void)state;
    for (size_t i = 0; collective_at(i); i++) {
        for (int n = 1; n <= 65; n++)
            check_movement(collective_at(i), n);
        for (size_t k = 0; k < COUNT(larger); k++)
            check_movement(collective_at(i), larger[k]);
    }
}

/* What the books say of n ranks: messages, and in vectors the total sent and the most sent by one rank. */
struct traffic { double messages, total, most; };

static struct traffic expected_traffic(const char *name, int n)
{
    int k = (int)floor(log2(n) + 1e-12), up = (int)ceil(log2(n) - 1e-12);
    double p = pow(2, k), rest = n - p, folds = rest > 0;

    if (n == 1)
        return (struct traffic){0, 0, 0};
    if (!strcmp(name, "naive"))
        return (struct traffic){2 * (n - 1), 2 * (n - 1), n - 1};
    if (!strcmp(name, "tree"))
        return (struct traffic){2 * (n - 1), 2 * (n - 1), up};
    if (!strcmp(name, "butterfly"))
        return (struct traffic){p * k + 2 * rest, p * k + 2 * rest, k + folds};
    if (!strcmp(name, "halving-doubling"))
        return (struct traffic){2 * p * k + 2 * rest, 2 * (p - 1) + 2 * rest, 2 * (1 - 1 / p) + folds};
    if (!strcmp(name, "ring"))
        return (struct traffic){2.0 * n * (n - 1), 2 * (n - 1), 2.0 * (n - 1) / n};
    fail_msg("no expectation of the traffic of %s: add one", name);
    return (struct traffic){0, 0, 0};
}

static void check_traffic(const struct collective *collective, int n)
{
    struct traffic expected = expected_traffic(collective->name, n);
    struct arrows arrows = {0};
    double *sent = xcalloc((size_t)n, sizeof *sent), *received = xcalloc((size_t)n, sizeof *received);
    double total = 0, total_received = 0, most = 0, vector = collective->chunks(n);

    collective->draw(&arrows, n);
    for (size_t i = 0; i < arrows.count; i++) {
        sent[arrows.items[i].src] += arrows.items[i].nchunks / vector;
        received[arrows.items[i].dst] += arrows.items[i].nchunks / vector;
    }
    for (int rank = 0; rank < n; rank++) {
        total += sent[rank];
        total_received += received[rank];
        most = fmax(most, sent[rank]);
        assert_true(n == 1 || (sent[rank] > 0 && received[rank] > 0));
    }
    assert_int_equal(arrows.count, (size_t)expected.messages);
    assert_true(fabs(total - expected.total) <= 1e-9 * expected.total);
    assert_true(fabs(most - expected.most) <= 1e-9 * expected.most);
    assert_true(fabs(total - total_received) <= 1e-9 * total);
    free(sent);
    free(received);
    free(arrows.items);
}

static void traffic_is_what_the_books_say(void **state)
{
    (void)state;
    for (size_t i = 0; collective_at(i); i++)
        for (int n = 1; n <= 130; n++)
            check_traffic(collective_at(i), n);
}

static int print_cell(const struct arrow *arrow, int blanks, FILE *out)
{
    int width = fprintf(out, "%*s", blanks, "");

    for (int c = 0; c < arrow->nchunks; c++)
        width += fprintf(out, "%c", 'a' + arrow->chunk + c);
    return width + fprintf(out, " %s %d", arrow->combine == REDUCE ? "+>" : "=>", arrow->dst);
}

/* The drawing as the figures show it: a row a step, a column a rank, in a cell what the rank sends. */
static void print_figure(const struct collective *collective, int n, FILE *out)
{
    struct arrows arrows = {0};
    size_t i = 0;

    collective->draw(&arrows, n);
    fputs("step", out);
    for (int rank = 0; rank < n; rank++)
        fprintf(out, "  rank %d%s", rank, rank < n - 1 ? " " : "\n");
    for (int step = 0; i < arrows.count; step++) {
        int column = fprintf(out, "%2d", step);

        for (int rank = 0; rank < n; rank++)
            for (size_t k = i; k < arrows.count && arrows.items[k].step == step; k++)
                if (arrows.items[k].src == rank)
                    column += print_cell(&arrows.items[k], 6 + 9 * rank - column, out);
        fputc('\n', out);
        while (i < arrows.count && arrows.items[i].step == step)
            i++;
    }
    free(arrows.items);
}

static void figures_show_the_arrows(void **state)
{
    (void)state;
    for (size_t i = 0; collective_at(i); i++) {
        const struct collective *collective = collective_at(i);
        char *text = NULL;
        size_t size;
        int n = 0;
        FILE *out = open_memstream(&text, &size);

        for (const char *rank = collective->figure; (rank = strstr(rank, "rank ")); rank++)
            n++;
        print_figure(collective, n, out);
        fclose(out);
        assert_string_equal(collective->figure, text);
        free(text);
    }
}

/* The header comment of the algorithm's file holds the same figure, line by line. */
static void comments_show_the_figures(void **state)
{
    (void)state;
    for (size_t i = 0; collective_at(i); i++) {
        const char *line = collective_at(i)->figure;
        char path[500], name[50], *text = xcalloc(1, 100000), expected[200];
        FILE *file;

        snprintf(name, sizeof name, "%s", collective_at(i)->name);
        for (char *c = name; *c; c++)
            *c = *c == '-' ? '_' : *c;
        snprintf(path, sizeof path, "%s/strategies/collectives/%s.c", DTSIM_SOURCE_DIR, name);
        file = fopen(path, "r");
        assert_non_null(file);
        assert_true(fread(text, 1, 99999, file) > 0);
        fclose(file);
        *strstr(text, "*/") = 0;
        for (const char *place = text; *line; line = strchr(line, '\n') + 1) {
            snprintf(expected, sizeof expected, "\n * %.*s\n", (int)strcspn(line, "\n"), line);
            place = strstr(place, expected);
            if (!place)
                fail_msg("%s: the header comment lacks '%s'", path, expected);
            place++;
        }
        free(text);
    }
}

static void registry_finds_by_name(void **state)
{
    static const char *const names[] = {"naive", "tree", "butterfly", "halving-doubling", "ring"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_string_equal(collective_name(i), names[i]);
        assert_ptr_equal(collective_find(names[i]), collective_at(i));
        assert_true(*collective_at(i)->title && *collective_at(i)->paper && *collective_at(i)->formula);
    }
    assert_null(collective_at(COUNT(names)));
    assert_null(collective_name(COUNT(names)));
    assert_null(collective_find("rings"));
    assert_null(collective_find(""));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_every_contribution_once),
        cmocka_unit_test(traffic_is_what_the_books_say),
        cmocka_unit_test(figures_show_the_arrows),
        cmocka_unit_test(comments_show_the_figures),
        cmocka_unit_test(registry_finds_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
