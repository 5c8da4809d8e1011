/* contention: collectives that overlap with kernels, by closed forms, and which exchanges of tensor groups overlap. */
#include "kernels/contention.h"
#include "overlapped.h"
#include "sent.h"
#include "work_seconds.h"

enum { LAYERS = 4, CHANNELS = 24, SMS = 108 };       /* nccl-ampere in one node, a100-80gb */
static const double share = (double)CHANNELS / SMS;

static struct contention_share alike(double kept)
{
    return (struct contention_share){kept, kept};
}

/* Kernels that outlast the collective lose its share of the multiprocessors; of one that outlasts them the rest is
 * exposed. Cutting the kernels into pieces changes nothing. */
static void closed_forms(void **state)
{
    (void)state;
    for (double kept = 0; kept <= 1; kept += 0.125)
        for (double kernels = 0; kernels < 8; kernels += 0.5)
            for (double collective = 0; collective < 8; collective += 0.5) {
                struct contention whole = {0}, pieces = {0};
                double exposed = contention_exposed(collective, kernels, kept), longer, cut = 0;

                contention_add(&whole, collective, (struct contention_share){kept / 2, 3 * kept / 2});
                contention_add(&pieces, collective / 4, alike(kept));
                contention_add(&pieces, 3 * collective / 4, alike(kept));
                longer = contention_stretch(&whole, kernels, 0.5);   /* half of them are products, which lose thrice as much */
                for (int i = 0; i < 5; i++)
                    cut += contention_stretch(&pieces, kernels / 5, i / 4.0);
                assert_true(fabs(longer + whole.collective - exposed) < 1e-12);
                assert_true(fabs(cut - longer) < 1e-12 && fabs(pieces.collective - whole.collective) < 1e-12);
                assert_true(longer <= kept * collective + 1e-12 && whole.collective <= collective);
                if (kernels >= collective)
                    assert_true(fabs(longer - kept * collective) < 1e-12);
            }
}

/* Two collectives that keep different shares: what is kept is their sum, whichever is asked for first. */
static void shares_add(void **state)
{
    struct contention overlapped = {0};

    (void)state;
    contention_add(&overlapped, 3, alike(0.25));
    contention_add(&overlapped, 1, alike(0.5));
    contention_pass(&overlapped, 2);
    assert_true(fabs(overlapped.collective - 2) < 1e-12 && fabs(overlapped.kept.all - 0.625) < 1e-12);
    assert_true(fabs(contention_stretch(&overlapped, 10, 1) - 0.625) < 1e-12);
    assert_true(contention_stretch(&overlapped, 10, 1) == 0);
}

/* `launch`: us of the host a kernel. */
static void run_launched(struct simulated *simulated, const char *schedule, int hidden, bool sequence_parallel,
                         const char *overlap, const char *engine, int launch)
{
    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: 16, sequence: 1024, vocabulary: 8, positions: 0,\n"
             "        head: none, final_norm: false}}\n"
             "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro: 1, micro_batches: 1}\n"
             "strategy: {schedule: %s, tensor: 8, sequence_parallel: %s%s}\ncosts: {host_launch: %d us}\n"
             "simulation: {engine: %s}\n",
             LAYERS, hidden, schedule, sequence_parallel ? "true" : "false", overlap, launch, engine);
}

static void run_tensor(struct simulated *simulated, const char *schedule, int hidden, bool sequence_parallel,
                       const char *overlap, const char *engine)
{
    run_launched(simulated, schedule, hidden, sequence_parallel, overlap, engine, 0);
}

/* A block's forward has two all-reduces, and the embedding has one. The two of a block's backward overlap with the
 * products for the gradients of QKV's and the MLP's weights. Under sequence parallelism each all-reduce is a gather and
 * a scatter. The scatters overlap with these products, gathers of the same inputs overlap with the products for the
 * inputs' gradients, and two more gathers overlap with nothing. Without the overlap the gathers of inputs alone overlap
 * with kernels. The sizes go from small products, which hide little, to large ones. */
static void tensor_overlap(void **state)
{
    int hidden = 0, shown = 0;

    (void)state;
    for (int width = 256; width <= 16384; width *= 4)
        for (int sequence_parallel = 0; sequence_parallel < 2; sequence_parallel++) {
            struct simulated apart, overlapped, again;
            double each, expected = 0, gathers;

            run_tensor(&apart, "1f1b", width, sequence_parallel, ", overlap_tensor: false", "ideal");
            run_tensor(&overlapped, "1f1b", width, sequence_parallel, ", overlap_tensor: true", "ideal");
            run_tensor(&again, "1f1b", width, sequence_parallel, ", overlap_tensor: true", "simgrid");
            each = communication(&apart, WHAT_FORWARD) / (2 * LAYERS + 1);
            for (int c = 0; c <= COLUMN_MLP; c++) {
                const struct stage_columns *column = &ordinary_times(&overlapped.workload)[0].hidings[0].columns[c];
                double weight = column->weight, input = column->input;

                assert_true(weight > 0 && input > 0);
                hidden += weight > each;
                shown += weight < each / 2;
                expected += sequence_parallel ? each / 2 + contention_exposed(each / 2, input, share) +
                                                    contention_exposed(each / 2, weight, share)
                                              : contention_exposed(each, weight, share);
            }
            gathers = sequence_parallel ? LAYERS * each : 0;     /* of inputs */
            expect_near("apart", communication(&apart, WHAT_BACKWARD),
                        2 * LAYERS * each +
                            contention_exposed(gathers, ordinary_times(&apart.workload)[0].work[BACKWARD].seconds,
                                               share),
                            apart.text);
            expect_near("overlapped", communication(&overlapped, WHAT_BACKWARD), LAYERS * expected, overlapped.text);
            expect_near("forward", communication(&overlapped, WHAT_FORWARD), (2 * LAYERS + 1) * each, overlapped.text);
            expect_near("bytes", overlapped.run.metrics.communication_bytes_per_gpu,
                        apart.run.metrics.communication_bytes_per_gpu, overlapped.text);
            expect_near("engines", again.run.timeline.makespan, overlapped.run.timeline.makespan, overlapped.text);
            simulated_release(&apart);
            simulated_release(&overlapped);
            simulated_release(&again);
        }
    assert_true(hidden && shown);
}

/* What kernels do not hide of overlapped exchanges, waits for launches do: the work takes as long as its launches, or as
 * its kernels and the exchanges. Exchanges that nothing overlaps with come after either. */
static void launches_hide(void **state)
{
    int hidden = 0, shown = 0;

    (void)state;
    for (int launch = 1; launch <= 64; launch *= 2) {
        struct simulated none, some;
        const struct work_times *work;
        double exposed;

        run_launched(&none, "1f1b", 1024, false, ", overlap_tensor: true", "ideal", 0);
        run_launched(&some, "1f1b", 1024, false, ", overlap_tensor: true", "ideal", launch);
        work = &ordinary_times(&some.workload)[0].work[BACKWARD];
        exposed = communication(&none, WHAT_BACKWARD);
        expect_near("kernels", work->seconds - work->starved,
                    ordinary_times(&none.workload)[0].work[BACKWARD].seconds, some.text);
        expect_near("backward", communication(&some, WHAT_BACKWARD), fmax(0, exposed - work->starved), some.text);
        expect_near("forward", communication(&some, WHAT_FORWARD), communication(&none, WHAT_FORWARD), some.text);
        hidden += work->starved >= exposed;
        shown += work->starved > 0 && work->starved < exposed;
        simulated_release(&none);
        simulated_release(&some);
    }
    assert_true(hidden && shown);
}

/* Seconds of a product in n pieces, each of the last n - 1 of which waits for what the ring brings; and of one whose
 * pieces' results are summed one after another, step by step. */
static double ring_of_pieces(double gather, struct pieces product, int n)
{
    double now = product.piece, arrived = 0;

    for (int i = 1; i < n; i++) {
        arrived = fmax(arrived, now - product.piece) + gather / (n - 1);    /* passed on while the piece before ran */
        now = fmax(now, arrived) + product.piece;
    }
    return now;
}

static double pieces_summed(double scatter, struct pieces product)
{
    double now = product.piece;

    for (int i = 1; i < SCATTER_PIECES; i++)
        now += product.piece + contention_exposed(scatter / SCATTER_PIECES, product.piece, share);
    return now + scatter / SCATTER_PIECES;
}

/* Gathers and sums that overlap with pieces of their products: the seconds that forward and backward expose, that the
 * bytes are the same, and that products must be large for it: pieces of small ones cost more than they hide. */
static void cut_products(void **state)
{
    (void)state;
    for (int width = 256; width <= 16384; width *= 4) {
        struct simulated whole, cut, again;
        double each, forward, backward = 0;

        run_tensor(&whole, "1f1b", width, true, "", "ideal");
        run_tensor(&cut, "1f1b", width, true, ", overlap_products: true", "ideal");
        run_tensor(&again, "1f1b", width, true, ", overlap_products: true", "simgrid");
        forward = each = communication(&whole, WHAT_FORWARD) / (2 * LAYERS + 1);
        for (int c = 0; c <= COLUMN_MLP; c++) {
            struct pieces gathering = ordinary_times(&cut.workload)[0].hidings[0].columns[c].gathering;
            struct pieces scattering = ordinary_times(&cut.workload)[0].hidings[0].columns[c].scattering;
            struct pieces returning = ordinary_times(&cut.workload)[0].hidings[0].columns[c].returning;

            assert_true(gathering.piece < gathering.whole && 8 * gathering.piece > gathering.whole);
            forward += LAYERS * (ring_of_pieces(each / 2, gathering, 8) - gathering.whole +
                                 pieces_summed(each / 2, scattering) - scattering.whole);
            backward += LAYERS * (each / 2 - (ring_of_pieces(each / 2, returning, 8) - returning.whole));
        }
        expect_near("forward", communication(&cut, WHAT_FORWARD), forward, cut.text);
        expect_near("backward", communication(&whole, WHAT_BACKWARD) - communication(&cut, WHAT_BACKWARD), backward,
                    cut.text);
        expect_near("bytes", cut.run.metrics.communication_bytes_per_gpu,
                    whole.run.metrics.communication_bytes_per_gpu, cut.text);
        expect_near("engines", again.run.timeline.makespan, cut.run.timeline.makespan, cut.text);
        if (width == 256 || width == 4096)
            assert_true((communication(&cut, WHAT_FORWARD) < communication(&whole, WHAT_FORWARD)) == (width == 4096));
        simulated_release(&whole);
        simulated_release(&cut);
        simulated_release(&again);
    }
}

/* Without the key sequence parallelism has it. In a backward of two works no kernel could overlap with the sums. */
static void when_it_applies(void **state)
{
    (void)state;
    for (int sequence_parallel = 0; sequence_parallel < 2; sequence_parallel++) {
        struct simulated left_out, set, split, apart;
        double gathers;

        run_tensor(&left_out, "1f1b", 4096, sequence_parallel, "", "ideal");
        run_tensor(&set, "1f1b", 4096, sequence_parallel,
                   sequence_parallel ? ", overlap_tensor: true" : ", overlap_tensor: false", "ideal");
        run_tensor(&split, "zb-h1", 4096, sequence_parallel, ", overlap_tensor: true", "ideal");
        run_tensor(&apart, "zb-h1", 4096, sequence_parallel, ", overlap_tensor: false", "ideal");
        assert_true(left_out.scenario.parallelism.overlap_tensor == (bool)sequence_parallel);
        assert_true(left_out.run.timeline.makespan == set.run.timeline.makespan);
        assert_true(split.run.timeline.makespan == apart.run.timeline.makespan);
        gathers = sequence_parallel ? LAYERS * communication(&split, WHAT_FORWARD) / (2 * LAYERS + 1) : 0;
        expect_near("gathers", communication(&split, WHAT_BACKWARD_WEIGHT),
                    contention_exposed(gathers, ordinary_times(&split.workload)[0].work[BACKWARD_WEIGHT].seconds,
                                       share),
                    split.text);
        simulated_release(&left_out);
        simulated_release(&set);
        simulated_release(&split);
        simulated_release(&apart);
    }
}

/* However queries, keys and values are computed: the sum of their input's gradient overlaps with the products for their
 * weights' gradients. */
static void every_attention(void **state)
{
    static const char *const models[] = {
        "fused_qkv: true", "fused_qkv: false", "kv_rank: 512, q_rank: 1536, rope_head_size: 64",
        "kv_rank: 512, rope_head_size: 64",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(models); i++) {
        double seconds[2];

        for (int k = 0; k < 2; k++) {
            struct simulated simulated;

            run_text(&simulated,
                     "model: {transformer: {layers: 2, hidden: 4096, heads: 32, head_size: 128, sequence: 2048,\n"
                     "        positions: 0, vocabulary: 8192, bias: false, %s}}\n"
                     "cluster: {platform: dgx-a100, nodes: 1}\n"
                     "batch: {micro: 4, global: 4}\nmemory: {enforce: false}\ncosts: {host_launch: 0}\n"
                     "strategy: {tensor: 8, sequence_parallel: true, overlap_tensor: %s}\n"
                     "simulation: {engine: ideal}\n",
                     models[i], k ? "true" : "false");
            seconds[k] = communication(&simulated, WHAT_BACKWARD);
            simulated_release(&simulated);
        }
        assert_true(seconds[1] < 0.85 * seconds[0]);       /* the products of the MLP alone: 0.93 */
    }
}

/* A forward and a backward that DualPipe overlaps: the all-to-alls of each overlap with the other's kernels. The first
 * cell has no partner, and shows the time of one. */
static void overlapped_works(void **state)
{
    int hidden = 0, shown = 0;

    (void)state;
    for (double bandwidth = 1e9; bandwidth < 1e12; bandwidth *= 10) {
        struct simulated simulated;
        const struct program *program = &simulated.run.lowered.program;
        double each = NAN, total = 0;

        run_text(&simulated,
                 "model: {transformer: {layers: 4, hidden: 512, heads: 8, sequence: 4096, vocabulary: 8,\n"
                 "        positions: 0, flash_attention: true, experts: 8, experts_per_token: 2}}\n"
                 "cluster: {platform: dgx-a100, nodes: 1, inside: {bandwidth: %.17g B/s}}\nbatch: {micro_batches: 8}\n"
                 "strategy: {schedule: dualpipe, pipeline: 2, data: 4, expert: 4, data_parallel: synchronous}\n"
                 "simulation: {engine: ideal, collectives: measured}\n", bandwidth);
        for (size_t i = 0; i < program->ops.count; i++)
            if (on_lane(&simulated, i, LANE_COMPUTE) && program->ops.items[i].what < WHAT_PACK) {
                total += op_traits(program, &program->ops.items[i])->compute.communication;
                if (isnan(each))
                    each = total / sent_count(simulated.workload.stages, &simulated.workload.stages[0].work[FORWARD], SENT_ROWS,
                                              HIDDEN_BY_OTHERS);
            }
        expect_near("all-to-alls", total, shown_all_to_alls(&simulated, each, share, &shown, &hidden), simulated.text);
        simulated_release(&simulated);
    }
    assert_true(shown > 0 && hidden > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms), cmocka_unit_test(shares_add), cmocka_unit_test(tensor_overlap),
        cmocka_unit_test(launches_hide), cmocka_unit_test(cut_products), cmocka_unit_test(when_it_applies),
        cmocka_unit_test(every_attention), cmocka_unit_test(overlapped_works),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
