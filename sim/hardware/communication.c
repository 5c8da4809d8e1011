#include "hardware/communication.h"

#include "base/data.h"

#include <string.h>

const char *const protocol_names[] = {"LL", "LL128", "Simple", NULL};
_Static_assert(COUNT(protocol_names) == PROTOCOL_COUNT + 1, "a name for every protocol");

static const struct field chunk_fields[] = {
    {.key = "bytes", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .offset = offsetof(struct chunk, bytes), .required = true,
     .brief = "size of a piece, for one channel and one GPU of a node"},
    {.key = "rounds", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .offset = offsetof(struct chunk, rounds),
     .fallback = "0",
     .brief = "this size is used if the vector has at least so many pieces for every channel and GPU; else the next "
              "size is tried"},
};

static const struct table chunk_table = {
    .name = "chunk",
    .brief = "a size of the pieces in a pipeline through switches",
    .fields = chunk_fields,
    .count = COUNT(chunk_fields),
    .size = sizeof(struct chunk),
    .node_offset = offsetof(struct chunk, node),
};

#define AT(member) offsetof(struct pace, member)

static const struct field pace_fields[] = {
    {.key = "launch", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(launch), .fallback = "0 s",
     .brief = "time to start a collective, whatever its size"},
    {.key = "inside", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(inside), .required = true,
     .brief = "latency of a message between two GPUs of a node; if the switch reduces: of the way there and back"},
    {.key = "spanning", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(spanning), .fallback = "0 s",
     .brief = "minimum of the latency inside a node if the group spans nodes"},
    {.key = "network", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(network), .required = true,
     .brief = "latency of a message to another node if all channels are used"},
    {.key = "network_single", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(network_single),
     .brief = "latency of a message to another node if one channel is used; left out: as network"},
    {.key = "channels", .kind = FIELD_INT, .min = 1, .max = 1024, .offset = AT(channels), .fallback = "1",
     .brief = "number of channels of a large collective"},
    {.key = "channel_from", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .offset = AT(channel_from),
     .brief = "a smaller collective uses one channel for each so many bytes of its vector; left out: all channels"},
    {.key = "inside_share", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .max = 1,
     .offset = AT(inside_share), .required = true,
     .brief = "payload bandwidth inside a node divided by the bandwidth on the data sheet"},
    {.key = "network_share", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .max = 1,
     .offset = AT(network_share), .required = true,
     .brief = "payload bandwidth of a NIC divided by the bandwidth on the data sheet"},
    {.key = "inside_most", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .offset = AT(inside_most),
     .brief = "upper bound on a GPU's bandwidth, all channels together, if the group is in one node"},
    {.key = "network_most", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .offset = AT(network_most),
     .brief = "upper bound on a GPU's bandwidth, all channels together, if the group spans nodes"},
    {.key = "nic_most", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true, .offset = AT(nic_most),
     .brief = "upper bound on the bandwidth of each channel, and so of each NIC, if the group spans nodes"},
    {.key = "plateau", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 100, .offset = AT(plateau),
     .fallback = "1", .brief = "factor on the latencies of large all-reduces in one node"},
    {.key = "spanning_plateau", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 100,
     .offset = AT(spanning_plateau), .fallback = "1",
     .brief = "factor on the latencies of large all-reduces whose group spans nodes"},
    {.key = "plateau_from", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .offset = AT(plateau_from),
     .brief = "size from which an all-reduce counts as large; left out: none does"},
    {.key = "round", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .offset = AT(round),
     .brief = "bytes that a rank of a ring sends to another node, all channels together, before it waits until it "
              "has received as many; left out: it sends all at once"},
    {.key = "slice", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .offset = AT(slice),
     .brief = "bytes of a round that a rank passes on as soon as they arrive; left out: the whole round"},
    {.key = "copy", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true, .offset = AT(copy),
     .brief = "bandwidth of the copies between the GPU and the buffers of sockets, for messages to other nodes; left "
              "out: there are no copies"},
    {.key = "chunks", .kind = FIELD_LIST, .table = &chunk_table, .offset = AT(chunks),
     .brief = "piece sizes of the pipeline through the switches of a node, the largest first"},
    {.key = "spanning_chunks", .kind = FIELD_LIST, .table = &chunk_table, .offset = AT(spanning_chunks),
     .brief = "piece sizes of the pipeline through switches if the group spans nodes, the largest first"},
};
#undef AT

static const struct table pace_table = {
    .name = "pace",
    .brief = "latencies and bandwidths of an algorithm with one protocol",
    .fields = pace_fields,
    .count = COUNT(pace_fields),
    .size = sizeof(struct pace),
    .node_offset = offsetof(struct pace, node),
};

#define AT(member) offsetof(struct library_paces, member)

static const struct field library_fields[] = {
    {.key = "ll", .kind = FIELD_OPTIONAL, .table = &pace_table, .offset = AT(ll), .brief = "with protocol LL"},
    {.key = "ll128", .kind = FIELD_OPTIONAL, .table = &pace_table, .offset = AT(ll128), .brief = "with protocol LL128"},
    {.key = "simple", .kind = FIELD_OPTIONAL, .table = &pace_table, .offset = AT(simple),
     .brief = "with protocol Simple"},
};
#undef AT

static const struct table library_table = {
    .name = "algorithm",
    .brief = "an algorithm, with each of its protocols",
    .fields = library_fields,
    .count = COUNT(library_fields),
    .size = sizeof(struct library_paces),
    .node_offset = offsetof(struct library_paces, node),
};

#define AT(member) offsetof(struct communication, member)

static const struct field communication_fields[] = {
    {.key = "title", .kind = FIELD_STRING, .offset = AT(title), .brief = "full name"},
    {.key = "ring", .kind = FIELD_RECORD, .table = &library_table, .offset = AT(ring), .required = true,
     .brief = "rings, and all algorithms that NCCL does not have"},
    {.key = "tree", .kind = FIELD_RECORD, .table = &library_table, .offset = AT(tree), .brief = "trees"},
    {.key = "nvls", .kind = FIELD_RECORD, .table = &library_table, .offset = AT(nvls),
     .brief = "reduction in the switch of a node (NVLink SHARP)"},
    {.key = "send", .kind = FIELD_OPTIONAL, .table = &pace_table, .offset = AT(send), .required = true,
     .brief = "sends between two GPUs, and all-to-all"},
    {.key = "channels_inside", .kind = FIELD_INT, .min = 0, .max = 1024, .offset = AT(channels_inside), .fallback = "0",
     .brief = "multiprocessors that a large collective in one node occupies while kernels run"},
    {.key = "channels_spanning", .kind = FIELD_INT, .min = 0, .max = 1024, .offset = AT(channels_spanning),
     .fallback = "0", .brief = "multiprocessors that a large collective over several nodes occupies while kernels run"},
};
#undef AT

const struct table communication_table = {
    .name = "communication",
    .brief = "how a communication library uses the links (a file of platforms/communication/)",
    .fields = communication_fields,
    .count = COUNT(communication_fields),
    .size = sizeof(struct communication),
    .node_offset = offsetof(struct communication, node),
};

static const char *const nic_choices[] = {"own", "same", "first", NULL};

static const struct field spec_fields[] = {
    {.key = "profile", .kind = FIELD_STRING, .offset = offsetof(struct communication_spec, profile), .required = true,
     .brief = "a name of platforms/communication/ or a path; 'none': a message costs latency + bytes / bandwidth"},
    {.key = "launch", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = offsetof(struct communication_spec, launch),
     .fallback = "0 s", .brief = "time of every collective in addition to the profile's launch"},
    {.key = "nics", .kind = FIELD_CHOICE, .choices = nic_choices, .offset = offsetof(struct communication_spec, nics),
     .fallback = "own",
     .choice_briefs = (const char *const[]){
         "each GPU its own (NCCL since 2.12)",
         "each GPU its own, but data leaves a node through the NIC by which it came, through host memory if necessary "
         "(NCCL 2.9.6 to 2.11)",
         "all GPUs of a PCIe switch its first one, and data leaves a node through the NIC by which it came "
         "(NCCL before 2.9.6)", NULL},
     .brief = "which NIC a GPU uses if several are equally near to it"},
};

const struct table communication_spec_table = {
    .name = "communication",
    .brief = "how the communication library uses the links",
    .fields = spec_fields,
    .count = COUNT(spec_fields),
    .size = sizeof(struct communication_spec),
    .node_offset = offsetof(struct communication_spec, node),
    .shorthand = "profile",
    .bare = true,
};

const struct pace *paces_with(const struct library_paces *paces, enum protocol protocol)
{
    const struct pace *with[PROTOCOL_COUNT] = {paces->ll, paces->ll128, paces->simple};

    return with[protocol];
}

int communication_load(struct arena *arena, const struct communication_spec *spec,
                       const struct communication **communication, struct error *err)
{
    struct communication *loaded = ARENA_ARRAY(arena, struct communication, 1);
    struct loc loc = field_loc(&communication_spec_table, spec, "profile");
    struct node *root;
    const char *path;

    *communication = NULL;
    if (!strcmp(spec->profile, "none")) {
        const char *idle = spec->launch > 0 ? "launch" : spec->nics != NICS_OWN ? "nics" : NULL;

        return !idle ? 0 : error_add(err, EXIT_INPUT, field_loc(&communication_spec_table, spec, idle),
                                     "communication: %s: has no effect without a profile; expected a profile "
                                     "(platforms/communication/), or leave it out", idle);
    }
    path = data_resolve(arena, "platforms/communication", "communication profile", spec->profile, loc, err);
    if (!path || conf_load(arena, path, &root, err) || field_parse(arena, &communication_table, root, loaded, err))
        return -1;
    if (!loaded->ring.ll && !loaded->ring.ll128 && !loaded->ring.simple)
        return error_add(err, EXIT_INPUT, field_loc(&communication_table, loaded, "ring"),
                         "communication: ring: expected ll, ll128 or simple, found none of them");
    loaded->launch = spec->launch;
    loaded->nics = spec->nics;
    *communication = loaded;
    return 0;
}
