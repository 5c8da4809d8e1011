/* context: what ring attention exposes, by its closed form; what a context degree divides; how groups keep step. */
#include "overlapped.h"

enum { H = 512, HEADS = 8, SEQUENCE = 4096, LAYERS = 2 };

struct place { int context, data, expert, gpus_per_node, nodes; double bandwidth, latency; };

static void run(struct simulated *simulated, const struct place *p, const char *attention, const char *engine,
                const char *more, int micro_batches)
{
    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d, vocabulary: 1000, positions: 0,\n"
             "        flash_attention: true, experts: 8, experts_per_token: 2}}\n"
             "cluster: {nodes: %d, gpus_per_node: %d, gpu: a100-80gb,\n"
             "          inside: {bandwidth: %.17g B/s, latency: %.17g s},\n"
             "          network: {bandwidth: 25 GB/s, latency: 5 us, nics: %d}}\n"
             "strategy: {context: %d, data: %d, expert: %d, context_attention: %s}\ncosts: {host_launch: 0}\n"
             "simulation: {engine: %s%s}\nbatch: {micro_batches: %d}\n",
             LAYERS, H, HEADS, SEQUENCE, p->nodes, p->gpus_per_node, p->bandwidth, p->latency, p->gpus_per_node,
             p->context, p->data, p->expert, attention, engine, more, micro_batches);
}

/* The seconds of communication in the works of one kind. */
static double communication(const struct simulated *simulated, enum op_what what)
{
    const struct program *program = &simulated->run.lowered.program;
    double seconds = 0;

    for (size_t i = 0; i < program->ops.count; i++)
        if (program->ops.items[i].what == what && program->lanes.items[program->ops.items[i].lane].rank == 0)
            seconds += op_traits(program, &program->ops.items[i])->compute.communication;
    return seconds;
}

static double positive(double x)
{
    return x > 0 ? x : 0;
}

/* Every step passes a block of keys and values on while the attention to the last one is computed: what a pass takes
 * longer is exposed, from all of it (slow links) to nothing (fast ones). Gathering them first exposes all. */
static void exposed(void **state)
{
    int hidden = 0, shown = 0;

    (void)state;
    for (int context = 2; context <= 8; context *= 2)
        for (double bandwidth = 1e8; bandwidth < 1e13; bandwidth *= 10)
            for (int gathers = 0; gathers < 2; gathers++) {
                struct place p = {context, 1, 1, 8, 1, bandwidth, 2e-6};
                struct simulated simulated;
                double block = 2.0 * H * SEQUENCE / context * 2, n = context, forward, backward;

                run(&simulated, &p, gathers ? "all-gather" : "ring", "ideal", "", 1);
                double one = p.latency + block / bandwidth, both = p.latency + 2 * block / bandwidth;
                const double *attention = ordinary_times(&simulated.workload)[0].attention;
                double step[2] = {attention[0] / n, attention[1] / n};
                assert_true(step[0] > 0 && step[1] > 0);
                forward = gathers ? (n - 1) * one : (n - 1) * positive(one - step[0]);
                backward = gathers ? 2 * (n - 1) * one
                                   : 2 * positive(one - step[1]) + (n - 2) * positive(both - step[1]);
                hidden += forward == 0;
                shown += forward > 0;
                expect_near("forward", communication(&simulated, WHAT_FORWARD), LAYERS * forward, simulated.text);
                expect_near("backward", communication(&simulated, WHAT_BACKWARD), LAYERS * backward, simulated.text);
                simulated_release(&simulated);
            }
    assert_true(hidden >= 2 && shown > 2);
}

/* Heads for tokens, of queries, keys, values and results, and of their gradients: a pairwise all-to-all each among u
 * GPUs. A hybrid group passes the keys and values of its share of the heads around a ring besides. Here one of four heads
 * of keys and values stands for two of queries. */
static void exchanges_heads(void **state)
{
    static const struct { int context, ulysses; } shapes[] = {{2, 2}, {4, 4}, {4, 2}, {8, 4}, {8, 2}, {4, 1}};

    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (double bandwidth = 1e8; bandwidth < 1e13; bandwidth *= 100) {
            int n = shapes[i].context / shapes[i].ulysses;
            double u = shapes[i].ulysses, own = 2.0 * SEQUENCE / shapes[i].context, peers = u - 1;
            double query = own * H, key = query / 2, one = 2e-6 + 2 * key / bandwidth, both = 2e-6 + 4 * key / bandwidth;
            double heads = 4 * peers * 2e-6 + 2 * peers / u * (query + key) / bandwidth, step[2];
            struct simulated simulated;
            char more[64];

            snprintf(more, sizeof more, "context_attention: hybrid, ulysses: %d", shapes[i].ulysses);
            run_text(&simulated,
                     "model: {transformer: {layers: %d, hidden: %d, heads: %d, kv_heads: 4, sequence: %d,\n"
                     "        vocabulary: 1000, positions: 0, flash_attention: true}}\n"
                     "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb,\n"
                     "          inside: {bandwidth: %.17g B/s, latency: 2 us}}\n"
                     "strategy: {context: %d, data: 1, %s}\ncosts: {host_launch: 0}\n"
                     "simulation: {engine: ideal}\nbatch: {micro_batches: 1}\n", LAYERS, H, HEADS, SEQUENCE, bandwidth,
                     shapes[i].context, n == 1 ? "context_attention: all-to-all" : more);
            for (int phase = 0; phase < 2; phase++)
                step[phase] = ordinary_times(&simulated.workload)[0].attention[phase] / n;
            expect_near("forward", communication(&simulated, WHAT_FORWARD),
                        LAYERS * (heads + (n - 1) * positive(one - step[0])), simulated.text);
            expect_near("backward", communication(&simulated, WHAT_BACKWARD),
                        LAYERS * (heads + (n == 1 ? 0 : 2 * positive(one - step[1]) + (n - 2) * positive(both - step[1]))),
                        simulated.text);
            expect_near("sent", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATIONS] +
                                simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATION_GRADIENTS],
                        LAYERS * (4 * peers / u * (query + key) + 3 * (n - 1) * 2 * key), simulated.text);
            simulated_release(&simulated);
        }
}

/* PyTorch's context parallelism: keys and values come by a gather, or a pass at each step; gradients in fp32 are passed on
 * after every one of the n steps. Each hides behind a step's attention, but for the last gradients; traced by
 * torch.compile all are waited for. Each block takes kernels of its own, whose traffic is linear in the blocks. */
static void block_by_block(void **state)
{
    int hidden = 0;

    (void)state;
    for (int n = 2; n <= 8; n *= 2)
        for (double bandwidth = 1e8; bandwidth < 1e13; bandwidth *= 100)
            for (int k = 0; k < 4; k++) {
                bool gathers = k & 1, waits = k & 2;
                double keys = 2.0 * H * SEQUENCE / n * 2, one = 2e-6 + keys / bandwidth, next = 2e-6 + 2 * keys / bandwidth;
                double pass = gathers ? (n - 1) * one : one, step[2], forward, backward;
                struct simulated simulated;

                run_text(&simulated,
                         "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d, vocabulary: 1000,\n"
                         "        positions: 0, flash_attention: true}}\n"
                         "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb,\n"
                         "          inside: {bandwidth: %.17g B/s, latency: 2 us}}\n"
                         "strategy: {context: %d, data: 1, context_attention: %s, context_blocks: true,\n"
                         "           overlap_context: %s}\ncosts: {host_launch: 0}\n"
                         "simulation: {engine: ideal}\nbatch: {micro_batches: 1}\n", LAYERS, H, HEADS, SEQUENCE,
                         bandwidth, n, gathers ? "all-gather" : "ring", waits ? "false" : "true");
                for (int phase = 0; phase < 2; phase++)
                    step[phase] = waits ? 0 : ordinary_times(&simulated.workload)[0].attention[phase] / n;
                forward = (gathers ? 1 : n - 1) * positive(pass - step[0]);
                backward = positive(pass - step[1]) + next;
                backward += gathers ? (n - 1) * positive(next - step[1])
                                    : (n - 2) * positive(pass + next - step[1]) + positive(next - step[1]);
                hidden += forward == 0;
                expect_near("forward", communication(&simulated, WHAT_FORWARD), LAYERS * forward, simulated.text);
                expect_near("backward", communication(&simulated, WHAT_BACKWARD), LAYERS * backward, simulated.text);
                expect_near("keys and values", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATIONS],
                            LAYERS * 2 * (n - 1) * keys, simulated.text);
                expect_near("gradients", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATION_GRADIENTS],
                            LAYERS * n * 2 * keys, simulated.text);
                simulated_release(&simulated);
            }
    assert_true(hidden > 0);
}

/* The traffic of the kernels that merge blocks, by name: bytes a value of PyTorch's operations. */
static double traffic(const struct layer *block, const char *name, enum phase phase)
{
    double bytes = 0;

    for (size_t i = 0; i < block->nkernels; i++)
        if (!strcmp(block->kernels[i].name, name) && block->kernels[i].phase == phase)
            bytes += block->kernels[i].bytes * fmax(1, block->kernels[i].launches);
    return bytes;
}

static void merged_traffic(void **state)
{
    (void)state;
    for (int fused = 0; fused < 2; fused++)
        for (int n = 2; n <= 16; n *= 2) {
            struct shard shard = {.micro = 1, .tensor = 1, .dtype = DTYPE_BF16, .context = n, .blocks_apart = true};
            double values = (double)H * SEQUENCE / n;
            const struct layer *layers;
            struct simulated simulated;
            struct error err = {0};
            size_t count;

            simulated_load(&simulated, "model: {transformer: {layers: 1, hidden: %d, heads: %d, sequence: %d,\n"
                           "        vocabulary: 1000, positions: 0, flash_attention: true, fused_kernels: %s}}\n"
                           "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: 1}\nstrategy: {data: 1}\n",
                           H, HEADS, SEQUENCE, fused ? "true" : "false");
            assert_int_equal(model_layers(&simulated.scenario.arena, &simulated.scenario.model, &shard,
                                          (struct loc){0}, &layers, &count, &err), 0);
            expect_near("merge", traffic(&layers[1], "context-merge", PHASE_FORWARD),
                        values * (6 + 6 + (n - 1) * (fused ? 10 : 38)), simulated.text);
            expect_near("sums", traffic(&layers[1], "context-sums", PHASE_BACKWARD_INPUT),
                        values * (3 * (4 + 6 + n * 10) + (fused ? 0 : 2 * 8 * n)), simulated.text);
            expect_near("pack", traffic(&layers[1], "context-pack", PHASE_FORWARD),
                        values * 2 * 4 * (fused ? 1 : n - 1), simulated.text);
            simulated_release(&simulated);
        }
}

/* A sample that is packed of documents: attention has the FLOPs of so many shorter samples, on every way of dividing them,
 * and all else those of one sample. What cannot be is refused by name. */
static void documents(void **state)
{
    static const char *const attentions[] = {"ring", "all-gather", "all-to-all"};
    static const struct { const char *why, *set; } refused[] = {
        {"1 to the 4096 tokens", "batch.documents=4097"}, {"1 to the 4096 tokens", "batch.documents=0.5"},
        {"not fused", "software.flash_attention=false"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(attentions); i++)
        for (int length = 512; length <= SEQUENCE; length *= 2) {
            struct simulated runs[2];
            double pieces = (double)SEQUENCE / length;
            double core = LAYERS * 3 * 4.0 * SEQUENCE * SEQUENCE * H;       /* of the model, no mask counted */

            for (int k = 0; k < 2; k++)
                run_text(&runs[k],
                         "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d, vocabulary: 1000,\n"
                         "        positions: 0, flash_attention: true}}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                         "strategy: {context: 4, data: 1, context_attention: %s}\n"
                         "simulation: {engine: ideal}\nbatch: {micro_batches: 1, documents: %d}\n", LAYERS, H, HEADS,
                         SEQUENCE, attentions[i], k ? length : 0);
            expect_near("model FLOPs", runs[1].run.metrics.model_flop,
                        runs[0].run.metrics.model_flop - core * (1 - 1 / pieces), runs[1].text);
            expect_near("attention", runs[0].workload.stages[0].work[FORWARD].flop -
                                     runs[1].workload.stages[0].work[FORWARD].flop,
                        core / 3 / 4 * (1 - 1 / pieces), runs[1].text);
            assert_true(runs[1].run.metrics.iteration_time <= runs[0].run.metrics.iteration_time);
            expect_near("activations", runs[1].workload.stages[0].activation, runs[0].workload.stages[0].activation,
                        runs[1].text);
            for (size_t r = 0; r < COUNT(refused) && length == 512; r++) {
                struct scenario varied;
                struct error err = {0};

                assert_int_equal(scenario_vary(&runs[1].scenario, &refused[r].set, 1, &varied, &err), -1);
                assert_non_null(strstr(err.messages[0].text, refused[r].why));
                scenario_release(&varied);
                error_release(&err);
            }
            simulated_release(&runs[0]);
            simulated_release(&runs[1]);
        }
}

/* Attention of all tokens and a share of the heads: the FLOPs and the scores are those of a ring's. Degrees that heads
 * do not divide by are refused by name, wherever the heads are those of keys and values alone. */
static void divides_heads(void **state)
{
    static const struct { const char *why, *sets[4]; } refused[] = {
        {"2 heads of keys and values", {"strategy.context=4", "strategy.context_attention=all-to-all"}},
        {"1 heads of keys and values",
         {"strategy.context=2", "strategy.tensor=2", "strategy.context_attention=all-to-all"}},
        {"cannot share 12 attention heads", {"strategy.context=8", "strategy.context_attention=hybrid"}},
        {"does not divide the 4 GPUs",
         {"strategy.context=4", "strategy.context_attention=hybrid", "strategy.ulysses=3"}},
        {"goes with 'context_attention: hybrid' alone", {"strategy.context=4", "strategy.ulysses=2"}},
    };
    struct place p = {4, 1, 1, 8, 1, 3e11, 2e-6};
    struct simulated base, runs[2];

    (void)state;
    simulated_load(&base, "model: {transformer: {layers: 2, hidden: 768, heads: 12, kv_heads: 2, sequence: 4080,\n"
                   "        vocabulary: 1000, positions: 0, flash_attention: true}}\n"
                   "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: 1}\nstrategy: {data: 1}\n");
    for (size_t i = 0; i < COUNT(refused); i++) {
        size_t nsets = refused[i].sets[2] ? 3 : 2;
        struct scenario varied;
        struct error err = {0};

        assert_int_equal(scenario_vary(&base.scenario, refused[i].sets, nsets, &varied, &err), -1);
        assert_non_null(strstr(err.messages[0].text, refused[i].why));
        scenario_release(&varied);
        error_release(&err);
    }
    simulated_release(&base);
    for (int k = 0; k < 2; k++)
        run(&runs[k], &p, k ? "all-to-all" : "ring", "ideal", "", 1);
    for (int kind = FORWARD; kind <= RECOMPUTE; kind++)
        expect_near("FLOPs", runs[1].workload.stages[0].work[kind].flop, runs[0].workload.stages[0].work[kind].flop,
                    runs[1].text);
    expect_near("activations", runs[1].workload.stages[0].activation, runs[0].workload.stages[0].activation,
                runs[1].text);
    simulated_release(&runs[0]);
    simulated_release(&runs[1]);
}

/* Every GPU does its share of the products, keeps its share of the activations, and sends its share of a boundary. */
static void divides(void **state)
{
    (void)state;
    for (int context = 2; context <= 8; context *= 2) {
        struct place whole = {1, 1, 1, 8, 1, 3e11, 2e-6}, part = {context, 1, 1, 8, 1, 3e11, 2e-6};
        struct simulated a, b;

        run(&a, &whole, "ring", "ideal", "", 1);
        run(&b, &part, "ring", "ideal", "", 1);
        for (int kind = FORWARD; kind <= RECOMPUTE; kind++)
            expect_near("FLOPs", b.workload.stages[0].work[kind].flop, a.workload.stages[0].work[kind].flop / context,
                        b.text);
        expect_near("activations", b.workload.stages[0].activation, a.workload.stages[0].activation / context, b.text);
        expect_near("parameters", b.workload.stages[0].parameters, a.workload.stages[0].parameters, b.text);
        expect_near("model FLOPs", b.run.metrics.model_flop, a.run.metrics.model_flop, b.text);
        expect_near("hardware FLOPs", b.run.metrics.hardware_flop, a.run.metrics.hardware_flop, b.text);
        simulated_release(&a);
        simulated_release(&b);
    }
}

/* Degrees of one change nothing, however they exchange and wherever they stand. */
static void one_is_none(void **state)
{
    struct place p = {1, 4, 1, 8, 1, 3e11, 2e-6};
    struct simulated a, b;

    (void)state;
    run(&a, &p, "ring", "simgrid", "", 3);
    run(&b, &p, "all-gather", "simgrid", "", 3);
    assert_int_equal(a.run.lowered.program.ops.count, b.run.lowered.program.ops.count);
    assert_memory_equal(a.run.timeline.end, b.run.timeline.end, a.run.lowered.program.ops.count * sizeof(double));
    simulated_release(&a);
    simulated_release(&b);
}

/* Inside a node nothing contends, neither around a ring nor in the pairwise all-to-all; between nodes the links are
 * shared, and the engine that knows it is never earlier. */
static void engines_agree(void **state)
{
    static const struct place places[] = {
        {4, 2, 1, 8, 1, 1e9, 2e-6}, {2, 4, 8, 8, 1, 1e10, 0}, {8, 1, 4, 8, 1, 1e8, 1e-5}, {1, 8, 8, 8, 1, 1e9, 2e-6},
        {4, 4, 8, 4, 4, 1e10, 2e-6}, {2, 6, 4, 3, 4, 1e10, 2e-6},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(places); i++)
        for (int gathers = 0; gathers < 2; gathers++) {
            const char *attention = gathers ? "all-gather" : "ring";
            struct simulated ideal, simgrid;

            run(&ideal, &places[i], attention, "ideal", "", 2);
            run(&simgrid, &places[i], attention, "simgrid", "", 2);
            if (places[i].nodes == 1)
                expect_near("iteration", simgrid.run.metrics.iteration_time, ideal.run.metrics.iteration_time,
                            ideal.text);
            assert_true(simgrid.run.metrics.iteration_time >= ideal.run.metrics.iteration_time * (1 - 1e-9));
            simulated_release(&ideal);
            simulated_release(&simgrid);
        }
}

/* What replicas of a group do at the same point of the same micro-batch they begin together, wherever their boundaries
 * come from: here groups of four stand on nodes of three, so that some boundaries stay in a node and others do not. */
static void keeps_step(void **state)
{
    struct simulated simulated;
    const struct program *program = &simulated.run.lowered.program;
    const struct timeline *timeline = &simulated.run.timeline;
    double starts[12][8][2] = {{{0}}};
    int differ = 0;

    (void)state;
    run_text(&simulated,
             "model: {transformer: {layers: 4, hidden: 512, heads: 8, sequence: 4096, vocabulary: 1000, positions: 0,\n"
             "        flash_attention: true, experts: 8, experts_per_token: 2}}\n"
             "cluster: {nodes: 8, gpus_per_node: 3, gpu: a100-80gb, inside: {bandwidth: 300 GB/s, latency: 1 us},\n"
             "          network: {bandwidth: 1 GB/s, latency: 5 us, nics: 3}}\n"
             "batch: {micro_batches: 4}\n"
             "strategy: {context: 2, data: 4, expert: 4, pipeline: 2, placement: [pipeline, context, data, tensor]}\n"
             "simulation: {collectives: messages, engine: ideal}\n");
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        int rank = program->lanes.items[op->lane].rank, replica = rank / 2;

        if (rank % 2 == 1 && op->what == WHAT_FORWARD && op->mb < 8)
            starts[replica][op->mb][0] = timeline->start[i];
        if (op->what == WHAT_ACTIVATION && op->mb < 8)
            starts[replica][op->mb][1] = timeline->end[i];
    }
    for (int replica = 0; replica < 8; replica++)
        for (int mb = 0; mb < 4; mb++) {
            expect_near("start", starts[replica][mb][0], starts[replica / 4 * 4][mb][0], simulated.text);
            differ += starts[replica][mb][1] != starts[replica / 4 * 4][mb][1];
        }
    assert_true(differ > 0);
    simulated_release(&simulated);
}

/* Of four replicas with two expert groups, 0 and 2 hold the same experts, and 1 and 3: their sums are between these,
 * all others around the four. */
static void sums_experts(void **state)
{
    struct place p = {1, 4, 2, 8, 1, 3e11, 2e-6};
    struct simulated simulated;
    const struct program *program = &simulated.run.lowered.program;
    double same = 0, all = 0, experts;

    (void)state;
    run(&simulated, &p, "ring", "ideal", "", 1);
    assert_false(simulated.run.lowered.alike.measured);
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct op_transfer *transfer = &op_traits(program, op)->transfer;

        if (op->kind == OP_TRANSFER && op->what == WHAT_SYNC) {
            all += op->amount;
            same += transfer->src % 2 == transfer->dst % 2 ? op->amount : 0;
        }
    }
    experts = simulated.workload.stages[0].trained.of[PARAMETERS_APART];
    assert_true(experts == LAYERS * 4 * (2.0 * H * 4 * H + 4 * H + H));
    expect_near("experts' gradients", same, 4 * 2 * 0.5 * 2 * experts, simulated.text);
    expect_near("others' gradients", all - same, 4 * 2 * 0.75 * 2 * (simulated.workload.stages[0].parameters - experts),
                simulated.text);
    simulated_release(&simulated);
}

/* A forward and a backward that DualPipe overlaps hide each other's all-to-alls, as far as their kernels last. */
static void overlapped_all_to_alls(void **state)
{
    int shown = 0, hidden = 0;

    (void)state;
    for (double bandwidth = 1e8; bandwidth < 1e12; bandwidth *= 10) {
        struct simulated simulated;
        const struct program *program = &simulated.run.lowered.program;
        double all_to_all, total = 0;

        run_text(&simulated,
                 "model: {transformer: {layers: 4, hidden: 512, heads: 8, sequence: 4096, vocabulary: 1000,\n"
                 "        positions: 0, flash_attention: true, experts: 8, experts_per_token: 2}}\n"
                 "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb,\n"
                 "          inside: {bandwidth: %.17g B/s, latency: 2 us}}\n"
                 "batch: {micro_batches: 8}\n"
                 "strategy: {schedule: dualpipe, pipeline: 2, data: 4, expert: 4, data_parallel: synchronous}\n"
                 "simulation: {engine: ideal}\n", bandwidth);
        all_to_all = 3 * (2e-6 + 4096.0 * 2 * 512 * 2 / 4 / bandwidth);
        for (size_t i = 0; i < program->ops.count; i++)
            if (program->lanes.items[program->ops.items[i].lane].rank == 0 &&
                program->ops.items[i].what <= WHAT_RECOMPUTE)
                total += op_traits(program, &program->ops.items[i])->compute.communication;
        expect_near("all-to-alls", total, shown_all_to_alls(&simulated, all_to_all, 0, &shown, &hidden),
                    simulated.text);
        simulated_release(&simulated);
    }
    assert_true(shown > 0 && hidden > 0);
}

/* Where groups are not spread alike over nodes no replica stands for all: of three groups of four on nodes of six the
 * one in the middle crosses. */
static void unlike_groups(void **state)
{
    static const struct place places[] = {{1, 12, 4, 6, 2, 3e11, 2e-6}, {4, 3, 1, 6, 2, 3e11, 2e-6},
                                          {1, 12, 2, 6, 2, 3e11, 2e-6}};

    (void)state;
    for (size_t i = 0; i < COUNT(places); i++) {
        struct simulated simulated;

        run(&simulated, &places[i], "ring", "ideal", ", collectives: measured", 1);
        assert_true(simulated.run.lowered.alike.measured);
        assert_true(simulated.run.lowered.alike.folded == (i == 2));
        simulated_release(&simulated);
    }
}

/* One replica stands for all where transfers between stages take turns, too: in the same order as all would. */
static void turns(void **state)
{
    static const char *const folds[] = {"auto", "off"};
    double times[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct simulated simulated;

        run_text(&simulated,
                 "model: {transformer: {layers: 6, hidden: 1024, heads: 8, sequence: 512, vocabulary: 1000}}\n"
                 "cluster: {nodes: 3, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 0 s},\n"
                 "          network: {bandwidth: 2 GB/s, latency: 3 us, nics: 4}}\n"
                 "batch: {micro_batches: 12, micro: 2}\ncosts: {host_launch: 0}\n"
                 "strategy: {schedule: dualpipe-v, pipeline: 3, context: 4, context_attention: all-gather,\n"
                 "           placement: [context, data, pipeline, tensor], duplex_p2p: false}\n"
                 "simulation: {engine: ideal, collectives: measured, fold: %s}\n", folds[k]);
        assert_true(simulated.run.lowered.alike.folded == (k == 0));
        times[k] = simulated.run.metrics.iteration_time;
        if (k)
            expect_near("iteration", times[0], times[1], simulated.text);
        simulated_release(&simulated);
    }
}

/* To what sums gradients and divides states, a context group's GPUs are replicas like others: they send as much, and
 * hold as much. */
static void replicas_like_others(void **state)
{
    static const char *const forms[] = {
        "zero: 0", "zero: 1", "zero: 3", "zero: 1, shard: 2", "zero: 2, shard: 4", "zero: 3, shard: 2",
        "compression: powersgd", "compression: top-k", "compression: {method: quantized, bits: 1}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        struct simulated runs[2];

        for (int k = 0; k < 2; k++)
            run_text(&runs[k],
                     "model: {transformer: {layers: 2, hidden: 512, heads: 8, sequence: 4096, vocabulary: 1000,\n"
                     "        positions: 0, flash_attention: true}}\n"
                     "cluster: {nodes: 2, gpus_per_node: 4, gpu: a100-80gb,\n"
                     "          inside: {bandwidth: 300 GB/s, latency: 0 s},\n"
                     "          network: {bandwidth: 25 GB/s, latency: 5 us, nics: 4}}\n"
                     "batch: {micro_batches: 2}\nstrategy: {context: %d, data: %d, %s}\n"
                     "simulation: {engine: ideal}\n", k ? 2 : 1, k ? 4 : 8, forms[i]);
        for (int payload = PAYLOAD_WEIGHTS; payload < PAYLOAD_COUNT; payload++)
            if (payload != PAYLOAD_ACTIVATION_GRADIENTS)
                expect_near(payload_names[payload], runs[1].run.metrics.ranks[0].sent[payload],
                            runs[0].run.metrics.ranks[0].sent[payload], runs[1].text);
        assert_true(runs[1].run.metrics.ranks[0].sent[PAYLOAD_WEIGHT_GRADIENTS] > 0);
        for (int kind = 0; kind <= MEMORY_OPTIMIZER; kind++)
            expect_near(memory_kind_names[kind], runs[1].run.metrics.memory.bytes[kind],
                        runs[0].run.metrics.memory.bytes[kind], runs[1].text);
        simulated_release(&runs[0]);
        simulated_release(&runs[1]);
    }
}

/* Keys and values are activations, on the way back too, and their gradients are as many. */
static void payloads(void **state)
{
    (void)state;
    for (int gathers = 0; gathers < 2; gathers++) {
        struct place p = {4, 1, 1, 8, 1, 3e11, 2e-6};
        struct simulated simulated;
        double pass = LAYERS * 3 * (2.0 * H * SEQUENCE / 4 * 2);

        run(&simulated, &p, gathers ? "all-gather" : "ring", "ideal", "", 1);
        expect_near("activations", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATIONS], 2 * pass, simulated.text);
        expect_near("gradients", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATION_GRADIENTS], pass,
                    simulated.text);
        simulated_release(&simulated);
    }
}

/* Others' keys and values, while they are attended to: of the whole sample where they are gathered, else two blocks. */
static void workspaces(void **state)
{
    (void)state;
    for (int context = 1; context <= 8; context *= 2)
        for (int ring = 0; ring < 2; ring++) {
            struct place p = {context, 1, 1, 8, 1, 3e11, 2e-6};
            struct shard shard = {.micro = 1, .tensor = 1, .dtype = DTYPE_BF16, .context = context, .ring = ring};
            double keys_values = 2.0 * H * SEQUENCE * 2, others = ring ? 2 * keys_values / context : keys_values;
            const struct layer *layers;
            struct simulated simulated;
            struct error err = {0};
            size_t count;

            run(&simulated, &p, ring ? "ring" : "all-gather", "ideal", "", 1);
            assert_int_equal(model_layers(&simulated.scenario.arena, &simulated.scenario.model, &shard,
                                          (struct loc){0}, &layers, &count, &err), 0);
            expect_near("forward", layers[1].workspace.forward, context > 1 ? others : 0, simulated.text);
            simulated_release(&simulated);
        }
}

/* Where a three-entry placement does not say, context varies next after tensor. */
static void placement(void **state)
{
    static const char *const written[] = {"[tensor, data, pipeline]", "[tensor, context, data, pipeline]",
                                          "[pipeline, tensor, data]", "[pipeline, tensor, context, data]"};
    struct simulated simulated[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        simulated_load(&simulated[i], "model: {preset: llama3-8b}\ncluster: {platform: dgx-a100, nodes: 4}\n"
                       "batch: {micro_batches: 1}\n"
                       "strategy: {tensor: 2, context: 4, data: 2, pipeline: 2, placement: %s}\n", written[i]);
        assert_int_equal(scenario_gpus(&simulated[i].scenario), 32);
    }
    for (int place = 0; place < 32; place++) {
        int t = place % 2, p = place / 2 % 2, replica = place / 4;
        int c = replica % 4, d = replica / 4;

        assert_int_equal(scenario_gpu(&simulated[0].scenario, t, replica, p), t + 2 * c + 8 * d + 16 * p);
        assert_int_equal(scenario_gpu(&simulated[2].scenario, t, replica, p), p + 2 * t + 4 * c + 16 * d);
        for (int i = 0; i < 4; i += 2)
            assert_int_equal(scenario_gpu(&simulated[i].scenario, t, replica, p),
                             scenario_gpu(&simulated[i + 1].scenario, t, replica, p));
    }
    for (int i = 0; i < 4; i++)
        simulated_release(&simulated[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exposed), cmocka_unit_test(exchanges_heads), cmocka_unit_test(divides_heads),
        cmocka_unit_test(block_by_block), cmocka_unit_test(merged_traffic), cmocka_unit_test(documents), cmocka_unit_test(divides), cmocka_unit_test(one_is_none),
        cmocka_unit_test(engines_agree), cmocka_unit_test(keeps_step), cmocka_unit_test(placement),
        cmocka_unit_test(sums_experts), cmocka_unit_test(unlike_groups), cmocka_unit_test(turns),
        cmocka_unit_test(overlapped_all_to_alls),
        cmocka_unit_test(replicas_like_others), cmocka_unit_test(payloads),
        cmocka_unit_test(workspaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
