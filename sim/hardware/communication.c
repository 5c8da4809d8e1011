#include "hardware/communication.h"

#include "base/data.h"

#include <string.h>

const char *const protocol_names[] = {
    [PROTOCOL_LL] = "LL", [PROTOCOL_LL128] = "LL128", [PROTOCOL_SIMPLE] = "Simple", NULL,
};
_Static_assert(COUNT(protocol_names) == PROTOCOL_COUNT + 1, "a name for every protocol");

static const struct field chunk_fields[] = {
    {.key = "bytes", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .offset = offsetof(struct chunk, bytes), .required = true, .brief = "of a channel, for each GPU of a node"},
    {.key = "rounds", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .offset = offsetof(struct chunk, rounds),
     .fallback = "0", .brief = "of all channels and GPUs that the vector must hold; else the next piece is taken"},
};

static const struct table chunk_table = {
    .name = "chunk",
    .brief = "a piece of a pipeline through switches",
    .fields = chunk_fields,
    .count = COUNT(chunk_fields),
    .size = sizeof(struct chunk),
    .node_offset = offsetof(struct chunk, node),
};

#define AT(member) offsetof(struct pace, member)

static const struct field pace_fields[] = {
    {.key = "launch", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(launch), .fallback = "0 s",
     .brief = "of a collective, whatever its size"},
    {.key = "inside", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(inside), .required = true,
     .brief = "latency of a message between two GPUs of a node; in the switch: there and back"},
    {.key = "spanning", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(spanning), .fallback = "0 s",
     .brief = "likewise at least, where the group spans nodes"},
    {.key = "network", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(network), .required = true,
     .brief = "latency of a message to another node, over all channels"},
    {.key = "network_single", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(network_single),
     .brief = "likewise over one channel; left out: the same"},
    {.key = "channels", .kind = FIELD_INT, .min = 1, .max = 1024, .offset = AT(channels), .fallback = "1",
     .brief = "that a large collective runs over"},
    {.key = "channel_from", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .offset = AT(channel_from),
     .brief = "so much of a smaller one's vector has a channel of its own; left out: all are used"},
    {.key = "inside_share", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .max = 1,
     .offset = AT(inside_share), .required = true,
     .brief = "of the data sheet's bandwidth inside a node, for payload"},
    {.key = "network_share", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .max = 1,
     .offset = AT(network_share), .required = true, .brief = "of the data sheet's bandwidth of a NIC, for payload"},
    {.key = "inside_most", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .offset = AT(inside_most), .brief = "of a GPU, all channels together, in one node"},
    {.key = "network_most", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .offset = AT(network_most), .brief = "likewise, where the group spans nodes"},
    {.key = "nic_most", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true, .offset = AT(nic_most),
     .brief = "likewise, for each NIC that is used: of a channel"},
    {.key = "plateau", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 100, .offset = AT(plateau),
     .fallback = "1", .brief = "factor on the latencies of large all-reduces in one node"},
    {.key = "spanning_plateau", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 100,
     .offset = AT(spanning_plateau), .fallback = "1", .brief = "likewise, where the group spans nodes"},
    {.key = "plateau_from", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .offset = AT(plateau_from),
     .brief = "how large these are"},
    {.key = "round", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .offset = AT(round),
     .brief = "that a rank of a ring sends to another node before it waits for as much, all channels together; left "
              "out: all at once"},
    {.key = "slice", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .offset = AT(slice),
     .brief = "of a round, what is passed on as it comes; left out: all of it"},
    {.key = "copy", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true, .offset = AT(copy),
     .brief = "of messages to other nodes: between the GPU and the buffers of sockets; left out: they are not copied"},
    {.key = "chunks", .kind = FIELD_LIST, .table = &chunk_table, .offset = AT(chunks),
     .brief = "pieces of the pipeline through a node's switches, the largest first"},
    {.key = "spanning_chunks", .kind = FIELD_LIST, .table = &chunk_table, .offset = AT(spanning_chunks),
     .brief = "likewise, where the group spans nodes"},
};
#undef AT

static const struct table pace_table = {
    .name = "pace",
    .brief = "an algorithm with a protocol",
    .fields = pace_fields,
    .count = COUNT(pace_fields),
    .size = sizeof(struct pace),
    .node_offset = offsetof(struct pace, node),
};

#define AT(member) offsetof(struct library_paces, member)

static const struct field library_fields[] = {
    {.key = "ll", .kind = FIELD_OPTIONAL, .table = &pace_table, .offset = AT(ll), .brief = "with LL"},
    {.key = "ll128", .kind = FIELD_OPTIONAL, .table = &pace_table, .offset = AT(ll128), .brief = "with LL128"},
    {.key = "simple", .kind = FIELD_OPTIONAL, .table = &pace_table, .offset = AT(simple), .brief = "with Simple"},
};
#undef AT

static const struct table library_table = {
    .name = "algorithm",
    .brief = "an algorithm with each protocol that it runs with",
    .fields = library_fields,
    .count = COUNT(library_fields),
    .size = sizeof(struct library_paces),
    .node_offset = offsetof(struct library_paces, node),
};

#define AT(member) offsetof(struct communication, member)

static const struct field communication_fields[] = {
    {.key = "title", .kind = FIELD_STRING, .offset = AT(title), .brief = "the full name"},
    {.key = "ring", .kind = FIELD_RECORD, .table = &library_table, .offset = AT(ring), .required = true,
     .brief = "rings, and all that NCCL does not have"},
    {.key = "tree", .kind = FIELD_RECORD, .table = &library_table, .offset = AT(tree), .brief = "trees"},
    {.key = "nvls", .kind = FIELD_RECORD, .table = &library_table, .offset = AT(nvls),
     .brief = "reduction in the switch of a node (NVLink SHARP)"},
    {.key = "send", .kind = FIELD_OPTIONAL, .table = &pace_table, .offset = AT(send), .required = true,
     .brief = "between two GPUs; all_to_all"},
    {.key = "channels_inside", .kind = FIELD_INT, .min = 0, .max = 1024, .offset = AT(channels_inside), .fallback = "0",
     .brief = "multiprocessors that a large collective in one node keeps from kernels beside it"},
    {.key = "channels_spanning", .kind = FIELD_INT, .min = 0, .max = 1024, .offset = AT(channels_spanning),
     .fallback = "0", .brief = "likewise, where the group spans nodes"},
};
#undef AT

const struct table communication_table = {
    .name = "communication",
    .brief = "what a communication library makes of links (a file of platforms/communication/)",
    .fields = communication_fields,
    .count = COUNT(communication_fields),
    .size = sizeof(struct communication),
    .node_offset = offsetof(struct communication, node),
};

static const char *const nic_choices[] = ENUM_NAMES(NIC_CHOICES);

static const struct field spec_fields[] = {
    {.key = "profile", .kind = FIELD_STRING, .offset = offsetof(struct communication_spec, profile), .required = true,
     .brief = "a name of platforms/communication/ or a path; 'none': a message costs latency + bytes / bandwidth"},
    {.key = "launch", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = offsetof(struct communication_spec, launch),
     .fallback = "0 s", .brief = "what every collective costs beside the profile's launch"},
    {.key = "nics", .kind = FIELD_CHOICE, .choices = nic_choices, .offset = offsetof(struct communication_spec, nics),
     .fallback = "own",
     .brief = "of a GPU's equally near NICs: its own; same: what enters a node by a NIC leaves by it, through the host "
              "if need be (NCCL 2.9.6 to 2.11); first: likewise, and all GPUs below a switch take its first (before)"},
};

const struct table communication_spec_table = {
    .name = "communication",
    .brief = "what the communication library makes of the links",
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
                                     "communication: %s: has no effect here: it goes with a profile, and there is "
                                     "none; expected one (platforms/communication/), or leave it out", idle);
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
