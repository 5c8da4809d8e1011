#include "hardware/communication.h"


#include <math.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"
#include "config/named.h"

const char *const protocol_names[] = {
    [PROTOCOL_LL] = "LL", [PROTOCOL_LL128] = "LL128", [PROTOCOL_SIMPLE] = "Simple", NULL,
};
_Static_assert(COUNT(protocol_names) == PROTOCOL_COUNT + 1, "a name for every protocol");

double protocol_bytes(enum protocol protocol)
{
    static const double bytes[PROTOCOL_COUNT] = {
        [PROTOCOL_LL] = 4 / 4.0, [PROTOCOL_LL128] = 8 / 120.0, [PROTOCOL_SIMPLE] = 0,
    };

    return bytes[protocol];
}

static const struct field chunk_fields[] = {
    {KEY(chunk, bytes), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .required = true,
     .brief = "size of a piece, for one channel and one GPU of a node"},
    {KEY(chunk, rounds), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .fallback = "0",
     .brief = "this size is used if the vector has at least this number of pieces for every channel and GPU; else the "
              "next size is tried"},
};

static const struct table chunk_table = {
    TABLE("chunk", "a size of the pieces in a pipeline through switches", chunk, chunk_fields),
};

static const struct field protocol_cost_fields[] = {
    {KEY(protocol_cost, launch), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "0 s",
     .brief = "time to start a collective, whatever its size"},
    {KEY(protocol_cost, inside), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "latency of a message between two GPUs of a node; if the switch reduces: of the way there and back"},
    {KEY(protocol_cost, spanning), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "0 s",
     .brief = "minimum of the latency inside a node if the group spans nodes"},
    {KEY(protocol_cost, step), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "time that a rank of a ring through several nodes is busy with each message of an all-gather or a "
              "reduce-scatter, in addition to its bytes; the library's own tuning does not know it; left out: messages "
              "follow each other without a gap"},
    {KEY(protocol_cost, all_reduce_step), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "the same time, of a ring all-reduce through several nodes"},
    {KEY(protocol_cost, step_bytes), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .fallback = "1 B",
     .brief = "size of a message, its channels together, from which the step is whole; a smaller one takes its part"},
    {KEY(protocol_cost, network), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "latency of a message to another node if all channels are used"},
    {KEY(protocol_cost, network_single), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "latency of a message to another node if one channel is used; left out: as network"},
    {KEY(protocol_cost, channels), .kind = FIELD_INT, .min = 1, .max = 1024, .fallback = "1",
     .brief = "number of channels of a large collective"},
    {KEY(protocol_cost, channel_from), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "a smaller collective uses one channel per this number of bytes of its vector; left out: all channels"},
    {KEY(protocol_cost, inside_share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1,
     .required = true, .brief = "payload bandwidth inside a node divided by the bandwidth on the data sheet"},
    {KEY(protocol_cost, network_share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1,
     .required = true, .brief = "payload bandwidth of a NIC divided by the bandwidth on the data sheet"},
    {KEY(protocol_cost, ends), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 10, .fallback = "0",
     .brief = "messages whose time the ends of a ring in a node add (the rank copies while it sends nothing); also of "
              "an all-to-all, which copies a rank's own share"},
    {KEY(protocol_cost, inside_most), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "upper bound on a GPU's bandwidth, all channels together, if the group is in one node"},
    {KEY(protocol_cost, network_most), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "upper bound on a GPU's bandwidth, all channels together, if the group spans nodes"},
    {KEY(protocol_cost, nic_most), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "upper bound on the bandwidth of each channel, and so of each NIC, if the group spans nodes"},
    {KEY(protocol_cost, plateau), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 100, .fallback = "1",
     .brief = "factor on the latencies of large all-reduces in one node"},
    {KEY(protocol_cost, spanning_plateau), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 100,
     .fallback = "1", .brief = "factor on the latencies of large all-reduces whose group spans nodes"},
    {KEY(protocol_cost, plateau_from), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES,
     .brief = "size from which an all-reduce counts as large; left out: none does"},
    {KEY(protocol_cost, round), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "bytes that a rank of a ring sends to another node, all channels together, before it waits until it "
              "has received as many; left out: it sends all at once"},
    {KEY(protocol_cost, slice), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "bytes of a round that a rank passes on as soon as they arrive; left out: the whole round"},
    {KEY(protocol_cost, copy), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "bandwidth of the copies between the GPU and the buffers of sockets, for messages to other nodes; left "
              "out: there are no copies"},
    {KEY(protocol_cost, chunks), .kind = FIELD_LIST, .table = &chunk_table,
     .brief = "piece sizes of the pipeline through the switches of a node, the largest first"},
    {KEY(protocol_cost, spanning_chunks), .kind = FIELD_LIST, .table = &chunk_table,
     .brief = "piece sizes of the pipeline through switches if the group spans nodes, the largest first"},
};

static const struct table protocol_cost_table = {
    TABLE("protocol", "latencies and bandwidths of an algorithm with one protocol", protocol_cost,
          protocol_cost_fields),
};

static const struct field library_fields[] = {
    {KEY(algorithm_costs, ll), .kind = FIELD_OPTIONAL, .table = &protocol_cost_table, .brief = "with protocol LL"},
    {KEY(algorithm_costs, ll128), .kind = FIELD_OPTIONAL, .table = &protocol_cost_table,
     .brief = "with protocol LL128"},
    {KEY(algorithm_costs, simple), .kind = FIELD_OPTIONAL, .table = &protocol_cost_table,
     .brief = "with protocol Simple"},
};

static const struct table library_table = {
    TABLE("algorithm", "an algorithm, with each of its protocols", algorithm_costs, library_fields),
};

static const struct field all_to_all_cost_fields[] = {
    {KEY(all_to_all_cost, launch), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "time to start an all-to-all, whatever its size"},
    {KEY(all_to_all_cost, inside_share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1,
     .required = true, .brief = "payload bandwidth inside a node divided by the bandwidth on the data sheet"},
    {KEY(all_to_all_cost, ends), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 10, .fallback = "0",
     .brief = "messages whose time a rank's own share takes: its channels are idle when the share is copied"},
    {KEY(all_to_all_cost, large_ends), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 10,
     .brief = "the same where messages are so large that every channel serves several peers; left out: as ends"},
    {KEY(all_to_all_cost, large_from), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "bytes for each peer from which messages are large; left out: none is"},
    {KEY(all_to_all_cost, pieces), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "bytes that arrive in the buffers of all channels before the receiver copies them to their place; left "
              "out: they need no copy"},
    {KEY(all_to_all_cost, piece_copy), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 1, .fallback = "0",
     .brief = "time that the copy of such pieces takes, divided by the time in which they arrive; nothing hides the "
              "copy of the last ones"},
};

static const struct table all_to_all_cost_table = {
    TABLE("protocol", "an all-to-all in one node with one protocol", all_to_all_cost, all_to_all_cost_fields),
};

static const struct field all_to_all_costs_fields[] = {
    {KEY(all_to_all_costs, ll), .kind = FIELD_OPTIONAL, .table = &all_to_all_cost_table,
     .brief = "with protocol LL, for few bytes"},
    {KEY(all_to_all_costs, simple), .kind = FIELD_OPTIONAL, .table = &all_to_all_cost_table,
     .brief = "with protocol Simple"},
};

static const struct table all_to_all_costs_table = {
    TABLE("all-to-all", "all-to-alls in one node, with each protocol of sends", all_to_all_costs,
          all_to_all_costs_fields),
};

static const struct field nvls_few_fields[] = {
    {KEY(nvls_few, most), .kind = FIELD_INT, .min = 2, .max = 1024, .required = true,
     .brief = "this holds for groups of up to this number of ranks, all in one node"},
    {KEY(nvls_few, least), .kind = FIELD_INT, .min = 2, .max = 1024, .required = true,
     .brief = "the fewest ranks for which the library chooses the switch"},
    {KEY(nvls_few, bytes), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "the smallest vector for which the library chooses the switch; left out: any, if the switch is faster"},
    {KEY(nvls_few, inside_share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1,
     .brief = "payload bandwidth divided by the bandwidth on the data sheet; left out: as of nvls"},
};

static const struct table nvls_few_table = {
    TABLE("nvls_few", "reduction in the switch for few ranks of one node", nvls_few, nvls_few_fields),
};

static const struct field communication_fields[] = {
    {KEY(communication, title), .kind = FIELD_STRING, .brief = "full name"},
    {KEY(communication, estimate), .kind = FIELD_STRING,
     .brief = "which numbers rest on few public measurements; results say so, and exposed communication makes their expected error larger"},
    {KEY(communication, ring), .kind = FIELD_RECORD, .table = &library_table, .required = true,
     .brief = "rings, and all algorithms that NCCL does not have"},
    {KEY(communication, tree), .kind = FIELD_RECORD, .table = &library_table, .brief = "trees"},
    {KEY(communication, nvls), .kind = FIELD_RECORD, .table = &library_table,
     .brief = "reduction in the switch of a node (NVLink SHARP)"},
    {KEY(communication, nvls_few), .kind = FIELD_OPTIONAL, .table = &nvls_few_table,
     .brief = "where few ranks of one node reduce in the switch; left out: as for many"},
    {KEY(communication, send), .kind = FIELD_OPTIONAL, .table = &protocol_cost_table, .required = true,
     .brief = "sends between two GPUs; also all-to-alls where all_to_all says nothing"},
    {KEY(communication, all_to_all), .kind = FIELD_RECORD, .table = &all_to_all_costs_table,
     .brief = "all-to-alls in one node; left out: as send"},
    {KEY(communication, channels_inside), .kind = FIELD_INT, .min = 0, .max = 1024, .fallback = "0",
     .brief = "multiprocessors that a large collective in one node occupies while kernels run"},
    {KEY(communication, channels_spanning), .kind = FIELD_INT, .min = 0, .max = 1024, .fallback = "0",
     .brief = "multiprocessors that a large collective over several nodes occupies while kernels run"},
};

const struct table communication_table = {
    TABLE("communication", "how a communication library uses the links (a file of platforms/communication/)",
          communication, communication_fields),
};

static const char *const nic_choices[] = ENUM_NAMES(NIC_CHOICES);

static const char *const protocol_choices[] = {"ll", "ll128", "simple", "any", NULL};    /* enum protocol */

static const struct field spec_fields[] = {
    {KEY(communication_spec, profile), .kind = FIELD_STRING, .required = true, .files = "platforms/communication",
     .names = "none",
     .brief = "a name of platforms/communication/ or a path; 'none': a message costs latency + bytes / bandwidth"},
    {KEY(communication_spec, launch), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "0 s",
     .brief = "time of every collective in addition to the profile's launch"},
    {KEY(communication_spec, nics), .kind = FIELD_CHOICE, .choices = nic_choices, .fallback = "own",
     .choice_briefs = NAMES("each GPU its own (NCCL since 2.12)",
                            "each GPU its own, but data leaves a node through the NIC by which it came, through host "
                            "memory if necessary (NCCL 2.9.6 to 2.11)",
                            "all GPUs of a PCIe switch its first one, and data leaves a node through the NIC by which "
                            "it came (NCCL before 2.9.6)"),
     .brief = "which NIC a GPU uses if several are equally near to it"},
    {KEY(communication_spec, protocol), .kind = FIELD_CHOICE, .choices = protocol_choices, .fallback = "any",
     .brief = "the only protocol of collectives that NCCL may use, as NCCL_PROTO says it"},
};

const struct table communication_spec_table = {
    TABLE("communication", "how the communication library uses the links", communication_spec, spec_fields),
    .shorthand = "profile", .bare = true,
};

const struct protocol_cost *algorithm_cost_with(const struct algorithm_costs *costs, enum protocol protocol)
{
    const struct protocol_cost *with[PROTOCOL_COUNT] = {costs->ll, costs->ll128, costs->simple};

    return with[protocol];
}

struct latencies communication_latencies(const struct communication *communication, bool between)
{
    const struct algorithm_costs *const algorithms[] = {&communication->ring, &communication->tree,
                                                        &communication->nvls};
    struct latencies latencies = {INFINITY, 0};

    for (size_t i = 0; i < PROTOCOL_COUNT * COUNT(algorithms) + 1; i++) {
        const struct protocol_cost *cost = i == PROTOCOL_COUNT * COUNT(algorithms) ?
                                               communication->send :
                                               algorithm_cost_with(algorithms[i / PROTOCOL_COUNT],
                                                                   (enum protocol)(i % PROTOCOL_COUNT));

        if (!cost)
            continue;
        /* fmin and fmax ignore NaN */
        latencies.least = fmin(latencies.least, between ? fmin(cost->network, cost->network_single) : cost->inside);
        latencies.most = fmax(latencies.most, between ? cost->network : fmax(cost->inside, cost->spanning));
    }
    return latencies;
}

static void keep_protocol(struct algorithm_costs *costs, int protocol)
{
    costs->ll = protocol == PROTOCOL_LL ? costs->ll : NULL;
    costs->ll128 = protocol == PROTOCOL_LL128 ? costs->ll128 : NULL;
    costs->simple = protocol == PROTOCOL_SIMPLE ? costs->simple : NULL;
}

int communication_load(struct arena *arena, const struct communication_spec *spec,
                       const struct communication **communication, struct error *err)
{
    static const struct data_kind kind = {"platforms/communication", "communication profile", NULL};
    struct communication *loaded = ARENA_ARRAY(arena, struct communication, 1);
    struct loc loc = field_loc(&communication_spec_table, spec, "profile");
    const char *path;

    *communication = NULL;
    if (!strcmp(spec->profile, "none")) {
        const char *idle = spec->launch > 0 ? "launch" : spec->nics != NICS_OWN ? "nics" :
                           spec->protocol != PROTOCOL_COUNT ? "protocol" : NULL;

        return !idle ? 0 : error_clash(err, field_loc(&communication_spec_table, spec, idle),
                                       "communication: %s: has no effect without a profile; expected a profile "
                                       "(platforms/communication/), or leave it out", idle);
    }
    path = data_resolve(arena, &kind, spec->profile, loc, err);
    if (!path || field_load(arena, &communication_table, path, loaded, err))
        return -1;
    if (spec->protocol != PROTOCOL_COUNT && !algorithm_cost_with(&loaded->ring, (enum protocol)spec->protocol))
        return error_clash(err, field_loc(&communication_spec_table, spec, "protocol"),
                           "communication: protocol: %s has no rings of %s; expected another profile or protocol",
                           spec->profile, protocol_choices[spec->protocol]);
    if (spec->protocol != PROTOCOL_COUNT) {
        keep_protocol(&loaded->ring, spec->protocol);
        keep_protocol(&loaded->tree, spec->protocol);
        keep_protocol(&loaded->nvls, spec->protocol);
    }
    if (!loaded->ring.ll && !loaded->ring.ll128 && !loaded->ring.simple)
        return error_add(err, EXIT_INPUT, field_loc(&communication_table, loaded, "ring"),
                         "communication: ring: expected ll, ll128 or simple, found none of them");
    loaded->launch = spec->launch;
    loaded->nics = spec->nics;
    *communication = loaded;
    return 0;
}
