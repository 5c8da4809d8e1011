#include "hardware/communication.h"

#include "base/data.h"

#include <string.h>

const char *const protocol_names[] = {
    [PROTOCOL_LL] = "LL", [PROTOCOL_LL128] = "LL128", [PROTOCOL_SIMPLE] = "Simple", NULL,
};
_Static_assert(COUNT(protocol_names) == PROTOCOL_COUNT + 1, "a name for every protocol");

static const struct field chunk_fields[] = {
    {KEY(chunk, bytes), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .required = true,
     .brief = "of a channel, for each GPU of a node"},
    {KEY(chunk, rounds), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .fallback = "0",
     .brief = "of all channels and GPUs that the vector must hold; else the next piece is taken"},
};

static const struct table chunk_table = {TABLE("chunk", "a piece of a pipeline through switches", chunk, chunk_fields)};

static const struct field pace_fields[] = {
    {KEY(pace, launch), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "0 s",
     .brief = "of a collective, whatever its size"},
    {KEY(pace, inside), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "latency of a message between two GPUs of a node; in the switch: there and back"},
    {KEY(pace, spanning), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "0 s",
     .brief = "likewise at least, where the group spans nodes"},
    {KEY(pace, network), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "latency of a message to another node, over all channels"},
    {KEY(pace, network_single), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "likewise over one channel; left out: the same"},
    {KEY(pace, channels), .kind = FIELD_INT, .min = 1, .max = 1024, .fallback = "1",
     .brief = "that a large collective runs over"},
    {KEY(pace, channel_from), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "so much of a smaller one's vector has a channel of its own; left out: all are used"},
    {KEY(pace, inside_share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .max = 1, .required = true,
     .brief = "of the data sheet's bandwidth inside a node, for payload"},
    {KEY(pace, network_share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .max = 1,
     .required = true, .brief = "of the data sheet's bandwidth of a NIC, for payload"},
    {KEY(pace, inside_most), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "of a GPU, all channels together, in one node"},
    {KEY(pace, network_most), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "likewise, where the group spans nodes"},
    {KEY(pace, nic_most), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "likewise, for each NIC that is used: of a channel"},
    {KEY(pace, plateau), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 100, .fallback = "1",
     .brief = "factor on the latencies of large all-reduces in one node"},
    {KEY(pace, spanning_plateau), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 100, .fallback = "1",
     .brief = "likewise, where the group spans nodes"},
    {KEY(pace, plateau_from), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .brief = "how large these are"},
    {KEY(pace, round), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "that a rank of a ring sends to another node before it waits for as much, all channels together; left "
              "out: all at once"},
    {KEY(pace, slice), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "of a round, what is passed on as it comes; left out: all of it"},
    {KEY(pace, copy), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "of messages to other nodes: between the GPU and the buffers of sockets; left out: they are not copied"},
    {KEY(pace, chunks), .kind = FIELD_LIST, .table = &chunk_table,
     .brief = "pieces of the pipeline through a node's switches, the largest first"},
    {KEY(pace, spanning_chunks), .kind = FIELD_LIST, .table = &chunk_table,
     .brief = "likewise, where the group spans nodes"},
};

static const struct table pace_table = {TABLE("pace", "an algorithm with a protocol", pace, pace_fields)};

static const struct field library_fields[] = {
    {KEY(library_paces, ll), .kind = FIELD_OPTIONAL, .table = &pace_table, .brief = "with LL"},
    {KEY(library_paces, ll128), .kind = FIELD_OPTIONAL, .table = &pace_table, .brief = "with LL128"},
    {KEY(library_paces, simple), .kind = FIELD_OPTIONAL, .table = &pace_table, .brief = "with Simple"},
};

static const struct table library_table = {
    TABLE("algorithm", "an algorithm with each protocol that it runs with", library_paces, library_fields),
};

static const struct field communication_fields[] = {
    {KEY(communication, title), .kind = FIELD_STRING, .brief = "the full name"},
    {KEY(communication, ring), .kind = FIELD_RECORD, .table = &library_table, .required = true,
     .brief = "rings, and all that NCCL does not have"},
    {KEY(communication, tree), .kind = FIELD_RECORD, .table = &library_table, .brief = "trees"},
    {KEY(communication, nvls), .kind = FIELD_RECORD, .table = &library_table,
     .brief = "reduction in the switch of a node (NVLink SHARP)"},
    {KEY(communication, send), .kind = FIELD_OPTIONAL, .table = &pace_table, .required = true,
     .brief = "between two GPUs; all_to_all"},
    {KEY(communication, channels_inside), .kind = FIELD_INT, .min = 0, .max = 1024, .fallback = "0",
     .brief = "multiprocessors that a large collective in one node keeps from kernels beside it"},
    {KEY(communication, channels_spanning), .kind = FIELD_INT, .min = 0, .max = 1024, .fallback = "0",
     .brief = "likewise, where the group spans nodes"},
};

const struct table communication_table = {
    TABLE("communication", "what a communication library makes of links (a file of platforms/communication/)",
          communication, communication_fields),
};

static const char *const nic_choices[] = ENUM_NAMES(NIC_CHOICES);

static const struct field spec_fields[] = {
    {KEY(communication_spec, profile), .kind = FIELD_STRING, .required = true,
     .brief = "a name of platforms/communication/ or a path; 'none': a message costs latency + bytes / bandwidth"},
    {KEY(communication_spec, launch), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "0 s",
     .brief = "what every collective costs beside the profile's launch"},
    {KEY(communication_spec, nics), .kind = FIELD_CHOICE, .choices = nic_choices, .fallback = "own",
     .brief = "of a GPU's equally near NICs: its own; same: what enters a node by a NIC leaves by it, through the host "
              "if need be (NCCL 2.9.6 to 2.11); first: likewise, and all GPUs below a switch take its first (before)"},
};

const struct table communication_spec_table = {
    TABLE("communication", "what the communication library makes of the links", communication_spec, spec_fields),
    .shorthand = "profile", .bare = true,
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
