/* The messages of collectives: their chunks, their number and bytes, and their figures. */
#include "contributions.h"
#include "trials.h"

#include <math.h>

/* Each message of a step reads what its source held before the step. */
static void check_movement(const struct collective *collective, const struct task *task)
{
    struct contributions table;
    struct messages messages = {0};
    uint64_t **payloads;

    collective->write_messages(&messages, task);
    payloads = xcalloc(messages.count + 1, sizeof *payloads);
    contributions_init(&table, collective->op, task->n, collective->chunks(task));
    for (size_t begin = 0, end; begin < messages.count; begin = end) {
        for (end = begin; end < messages.count && messages.items[end].step == messages.items[begin].step; end++)
            payloads[end] = contributions_leave(&table, &messages.items[end]);
        for (size_t i = begin; i < end; i++)
            contributions_arrive(&table, &messages.items[i], payloads[i]);
    }
    contributions_finish(&table, collective->name);
    free(payloads);
    free(messages.items);
}

/* On nodes of every size that divides the ranks; few bytes and many, which are cut into more chunks. */
static void check_movements(const struct collective *collective, int n)
{
    for (int per_node = 1; per_node <= n; per_node++)
        for (int size = 0; size < 3 && n % per_node == 0; size++)
            check_movement(collective, &(struct task){
                .n = n, .per_node = per_node, .bytes = (const double[]){0, 3e6, 1e9}[size],
            });
}

static void moves_every_contribution_once(void **state)
{
    static const int larger[] = {96, 100, 127, 128, 129, 160};

    (void)state;
    for (size_t i = 0; collective_at(i); i++) {
        for (int n = 1; n <= 65 && collective_at(i)->write_messages; n++)
            check_movements(collective_at(i), n);
        for (size_t k = 0; k < COUNT(larger) && collective_at(i)->write_messages; k++)
            check_movement(collective_at(i), &(struct task){
                .n = larger[k], .per_node = 2 - larger[k] % 2, .bytes = 1e7,
            });
    }
}

/* On tori of one to four dimensions, of equal and of unequal sizes. */
static void tori_move_every_contribution_once(void **state)
{
    static const struct torus tori[] = {
        {1, {5}}, {2, {4, 4}}, {3, {4, 4, 4}}, {3, {2, 4, 8}}, {2, {3, 2}}, {2, {2, 7}}, {3, {5, 3, 2}}, {3, {2, 2, 2}},
        {4, {2, 3, 2, 3}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(tori); i++) {
        struct task task = {.n = 1, .per_node = 1, .bytes = 1e6, .torus = tori[i]};

        for (int k = 0; k < tori[i].dims; k++)
            task.n *= tori[i].size[k];
        check_movement(&collective_torus, &task);
    }
}

/* Traffic from the literature for n ranks: messages, and in vectors the total sent and the most sent by one rank. */
struct traffic { double messages, total, most; };

static struct traffic all_reduce_traffic(const char *name, int n, int g)
{
    int k = (int)floor(log2(n) + 1e-12), up = (int)ceil(log2(n) - 1e-12);
    double p = pow(2, k), rest = n - p, folds = rest > 0;

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
    if (!strcmp(name, "torus"))                      /* on no torus: a ring of each direction for half of the vector */
        return (struct traffic){4.0 * n * (n - 1), 2 * (n - 1), 2.0 * (n - 1) / n};
    if (!strcmp(name, "hierarchical"))
        return (struct traffic){2.0 * n * (g - 1 + n / g - 1), 2 * (n - 1), 2.0 * (n - 1) / n};
    if (!strcmp(name, "nvls")) {                     /* a round for each prime factor of the nodes */
        int others = 0, nodes = n / g;

        for (int factor = 2; nodes > 1; factor++)
            for (; nodes % factor == 0; nodes /= factor)
                others += factor - 1;
        return (struct traffic){2.0 * n * (g - 1 + others), 2 * (n - 1), 2.0 * (n - 1) / n};
    }
    if (!strcmp(name, "double-tree")) {              /* three pieces a half; the first of a chain sends both down it */
        int nodes = g == n ? n : n / g;
        return (struct traffic){12 * (n - 1), 2 * (n - 1), (nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2) + (nodes < n)};
    }
    return (struct traffic){0, 0, 0};
}

/* Halving: at every distance d each of the p / d blocks of shares is sent d times, p - 1 vectors in all. Doubling:
 * every rank sends a message in each of ceil(log2 n) steps, and as many shares as it lacks. */
static struct traffic share_traffic(const char *name, int n)
{
    int k = (int)floor(log2(n) + 1e-12);
    double p = pow(2, k), rest = n - p, folds = rest > 0, total = p - 1 + rest * (1 + 1.0 / n);

    if (!strcmp(name, "ring"))
        return (struct traffic){(double)n * (n - 1), n - 1, (n - 1.0) / n};
    if (!strcmp(name, "halving"))
        return (struct traffic){p * k + 2 * rest, total, folds > 0 ? 1 : (n - 1.0) / n};
    if (!strcmp(name, "doubling"))
        return (struct traffic){n * ceil(log2(n) - 1e-12), n - 1, (n - 1.0) / n};
    return (struct traffic){0, 0, 0};
}

/* Every rank but the root receives (or sends) the vector once; a ring's pieces are 128 KiB of a vector of 768 KiB. */
static struct traffic rooted_traffic(const struct collective *collective, int n)
{
    bool broadcast = collective->op == COLLECTIVE_BROADCAST;

    if (!strcmp(collective->name, "tree"))
        return (struct traffic){n - 1, n - 1, broadcast ? ceil(log2(n) - 1e-12) : 1};
    if (!strcmp(collective->name, "ring"))
        return (struct traffic){6 * (n - 1), n - 1, 1};
    if (!strcmp(collective->name, "star"))
        return (struct traffic){n - 1, n - 1, broadcast ? n - 1 : 1};
    return (struct traffic){0, 0, 0};
}

static struct traffic expected_traffic(const struct collective *collective, int n, int per_node)
{
    struct traffic expected = {0, 0, 0};

    if (n == 1)
        return expected;
    if (collective->op == COLLECTIVE_ALL_REDUCE)
        expected = all_reduce_traffic(collective->name, n, per_node);
    if (collective->op == COLLECTIVE_REDUCE_SCATTER || collective->op == COLLECTIVE_ALL_GATHER)
        expected = share_traffic(collective->name, n);
    if (collective->op == COLLECTIVE_BROADCAST || collective->op == COLLECTIVE_REDUCE)
        expected = rooted_traffic(collective, n);
    if (collective->op == COLLECTIVE_ALL_TO_ALL)
        expected = share_traffic("ring", n);
    if (expected.messages == 0)
        fail_msg("no expectation of the traffic of %s %s: add one", collective_op_names[collective->op],
                 collective->name);
    return expected;
}

static void check_traffic(const struct collective *collective, int n, int per_node)
{
    struct task task = {.n = n, .per_node = per_node, .bytes = 3 << 18};
    bool everybody = collective->op != COLLECTIVE_BROADCAST && collective->op != COLLECTIVE_REDUCE;
    struct traffic expected = expected_traffic(collective, n, per_node);
    struct messages messages = {0};
    double *sent = xcalloc((size_t)n, sizeof *sent), *received = xcalloc((size_t)n, sizeof *received);
    double total = 0, total_received = 0, most = 0, vector = collective->chunks(&task);

    collective->write_messages(&messages, &task);
    for (size_t i = 0; i < messages.count; i++) {
        sent[messages.items[i].src] += messages.items[i].nchunks / vector;
        received[messages.items[i].dst] += messages.items[i].nchunks / vector;
    }
    for (int rank = 0; rank < n; rank++) {
        total += sent[rank];
        total_received += received[rank];
        most = fmax(most, sent[rank]);
        assert_true(n == 1 || (everybody ? sent[rank] > 0 && received[rank] > 0 : sent[rank] + received[rank] > 0));
    }
    assert_int_equal(messages.count, (size_t)expected.messages);
    if ((double)messages.count > collective_messages(collective, &task))
        fail_msg("%s of %d: %zu messages, at most %g", collective->name, n, messages.count,
                 collective_messages(collective, &task));
    assert_true(fabs(total - expected.total) <= 1e-9 * expected.total);
    assert_true(fabs(most - expected.most) <= 1e-9 * expected.most);
    assert_true(fabs(total - total_received) <= 1e-9 * total);
    free(sent);
    free(received);
    free(messages.items);
}

static void traffic_is_what_the_books_say(void **state)
{
    (void)state;
    for (size_t i = 0; collective_at(i); i++)
        for (int n = 1; n <= 130 && collective_at(i)->write_messages; n++)
            for (int per_node = 1; per_node <= n; per_node += n < 66 ? 1 : n - 1)
                if (n % per_node == 0 && tried())
                    check_traffic(collective_at(i), n, per_node);
}

static int print_cell(const struct message *message, int blanks, FILE *out)
{
    int width = fprintf(out, "%*s", blanks, "");

    for (int c = 0; c < message->nchunks; c++)
        width += fprintf(out, "%c", 'a' + message->chunk + c);
    return width + fprintf(out, " %s %d", message->combine == REDUCE ? "+>" : "=>", message->dst);
}

/* A line of the figure: what leaves through the port. */
static void print_line(const struct messages *messages, size_t first, int n, int port, FILE *out)
{
    int step = messages->items[first].step, column = fprintf(out, "%2d", step);

    for (int rank = 0; rank < n; rank++)
        for (size_t k = first; k < messages->count && messages->items[k].step == step; k++)
            if (messages->items[k].src == rank && messages->items[k].port == port)
                column += print_cell(&messages->items[k], 6 + 9 * rank - column, out);
    fputc('\n', out);
}

/* The messages in the form of the figures: a row for each step and port, a column for each rank, and in a cell the
 * rank's messages of 256 KiB. */
static void print_figure(const struct collective *collective, const struct task *task, FILE *out)
{
    struct messages messages = {0};
    int n = task->n;
    size_t i = 0;

    if (task->per_node > 1)
        fprintf(out, "%d ranks a node\n", task->per_node);
    if (task->torus.dims)
        fprintf(out, "torus of %d x %d\n", task->torus.size[0], task->torus.size[1]);
    collective->write_messages(&messages, task);
    fputs("step", out);
    for (int rank = 0; rank < n; rank++)
        fprintf(out, "  rank %d%s", rank, rank < n - 1 ? " " : "\n");
    for (int step = 0; i < messages.count; step++) {
        assert_int_equal(messages.items[i].step, step);
        for (int port = 0; port < (collective->ports ? collective->ports(task) : 1); port++)
            print_line(&messages, i, n, port, out);
        while (i < messages.count && messages.items[i].step == step)
            i++;
    }
    free(messages.items);
}

static void figures_show_the_messages(void **state)
{
    (void)state;
    for (size_t i = 0; collective_at(i); i++) {
        const struct collective *collective = collective_at(i);
        char *text = NULL;
        size_t size;
        struct task task = {.per_node = 1, .bytes = 1 << 18};
        FILE *out = open_memstream(&text, &size);

        for (const char *rank = collective->figure; (rank = strstr(rank, "rank ")); rank++)
            task.n++;
        sscanf(collective->figure, "%d ranks a node\n", &task.per_node);
        if (sscanf(collective->figure, "torus of %d x %d\n", &task.torus.size[0], &task.torus.size[1]) == 2)
            task.torus.dims = 2;
        if (collective->write_messages)
            print_figure(collective, &task, out);
        fclose(out);
        assert_string_equal(collective->figure, text);
        free(text);
    }
}

static void registry_finds_by_name(void **state)
{
    static const char *const names[] = {"naive", "tree", "butterfly", "halving-doubling", "ring", "double-tree",
                                        "hierarchical", "nvls", "torus", "auto"};
    size_t count = 0, all = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_string_equal(all_reduce_name(i), names[i]);
        assert_ptr_equal(collective_find(COLLECTIVE_ALL_REDUCE, names[i]), collective_of(COLLECTIVE_ALL_REDUCE, i));
    }
    assert_null(all_reduce_name(COUNT(names)));
    for (enum collective_op op = 0; op < COLLECTIVE_OP_COUNT; op++) {
        for (size_t i = 0; collective_of(op, i); i++, count++) {
            const struct collective *collective = collective_of(op, i);
            assert_true(*collective->title && *collective->paper && *collective->formula && collective->op == op);
            assert_ptr_equal(collective_find(op, collective->name), collective);
        }
        assert_null(collective_find(op, "rings"));
        assert_null(collective_find(op, ""));
    }
    while (collective_at(all))
        all++;
    assert_int_equal(count, all);
    assert_null(collective_op_names[COLLECTIVE_OP_COUNT]);
}

/* Each operation has one default; auto stands for the library's choice. */
static void operations_have_a_usual_collective(void **state)
{
    (void)state;
    for (enum collective_op op = 0; op < COLLECTIVE_OP_COUNT; op++) {
        const struct collective *automatic = collective_find(op, "auto");
        int usual = 0;

        for (size_t i = 0; collective_of(op, i); i++)
            usual += collective_of(op, i)->usual;
        assert_int_equal(usual, 1);
        assert_true(collective_usual(op, false)->usual && collective_usual(op, false)->write_messages);
        assert_ptr_equal(collective_usual(op, true), automatic ? automatic : collective_usual(op, false));
    }
}

/* An all-reduce is its reduce-scatter and then its all-gather: for powers of two, where nothing is folded, it takes the
 * time of both. One without halves gets the usual ones. */
static void halves_make_up_the_all_reduce(void **state)
{
    const struct collective *all_reduce;

    (void)state;
    for (size_t i = 0; (all_reduce = collective_of(COLLECTIVE_ALL_REDUCE, i)); i++) {
        const struct collective *scatter = collective_half(all_reduce, COLLECTIVE_REDUCE_SCATTER);
        const struct collective *gather = collective_half(all_reduce, COLLECTIVE_ALL_GATHER);

        assert_true(scatter->op == COLLECTIVE_REDUCE_SCATTER && gather->op == COLLECTIVE_ALL_GATHER);
        assert_true(!all_reduce->reduce_scatter == !all_reduce->all_gather);
        if (!all_reduce->reduce_scatter)
            assert_true(scatter->usual && gather->usual);
        for (int n = 2; all_reduce->reduce_scatter && all_reduce->ideal && n <= 64; n *= 2) {
            struct task task = {.n = n, .per_node = 1, .bytes = 1e6};

            double halves = scatter->ideal(&task, 2e-6, 1e10) + gather->ideal(&task, 2e-6, 1e10);

            assert_true(fabs(all_reduce->ideal(&task, 2e-6, 1e10) - halves) < 1e-12 * halves);
        }
    }
}

/* chunks[src * n + dst]: those that src sends dst. Returns the number of steps. */
static int count_chunks(const struct collective *collective, const struct task *task, int *chunks)
{
    struct messages messages = {0};
    int steps = 0;

    collective->write_messages(&messages, task);
    for (size_t i = 0; i < messages.count; i++) {
        chunks[messages.items[i].src * task->n + messages.items[i].dst] += messages.items[i].nchunks;
        steps = messages.items[i].step + 1;
    }
    free(messages.items);
    return steps;
}

static void check_reverse(const struct collective *collective, const struct collective *reverse, int n, double bytes)
{
    const struct task task = {.n = n, .per_node = 1, .bytes = bytes};
    int *there = xcalloc((size_t)(n * n), sizeof *there), *back = xcalloc((size_t)(n * n), sizeof *back);

    assert_int_equal(count_chunks(collective, &task, there), count_chunks(reverse, &task, back));
    for (int i = 0; i < n * n; i++)
        assert_int_equal(there[i], back[i % n * n + i / n]);
    free(there);
    free(back);
}

/* A reduce sends back what its broadcast sends, in as many steps; for powers of two so do halving and doubling. */
static void reverses_go_the_same_ways_back(void **state)
{
    const struct collective *broadcast, *doubling = collective_find(COLLECTIVE_ALL_GATHER, "doubling");

    (void)state;
    for (size_t i = 0; (broadcast = collective_of(COLLECTIVE_BROADCAST, i)); i++)
        for (int n = 1; n <= 33; n++)
            for (double bytes = 8; bytes < 1e9; bytes *= 1000)
                check_reverse(broadcast, collective_find(COLLECTIVE_REDUCE, broadcast->name), n, bytes);
    for (int n = 1; n <= 64; n *= 2)
        check_reverse(doubling, collective_find(COLLECTIVE_REDUCE_SCATTER, "halving"), n, 1e6);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_every_contribution_once),
        cmocka_unit_test(tori_move_every_contribution_once),
        cmocka_unit_test(traffic_is_what_the_books_say),
        cmocka_unit_test(figures_show_the_messages),
        cmocka_unit_test(reverses_go_the_same_ways_back),
        cmocka_unit_test(registry_finds_by_name),
        cmocka_unit_test(operations_have_a_usual_collective),
        cmocka_unit_test(halves_make_up_the_all_reduce),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
