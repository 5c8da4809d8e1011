/* Reasons in words: the key of the scenario that causes each, and what would change it. */
#include "alike/alike.h"

/* In the order of the bits of enum alike_reason. */
static const struct alike_text texts[] = {
    {"cluster.network.nics", "the GPUs of a node share NICs, where their messages meet",
     "as many NICs as GPUs in a node"},
    {"cluster.network.topology", "nodes share the uplinks of leaf switches, where their messages meet",
     "topology: nonblocking"},
    {"simulation.slow_links", "some NICs are slower than the others", "no slow links"},
    {"simulation.stragglers", "some GPUs are slower than the others", "no stragglers"},
    {"simulation.jitter", "every kernel takes a time of its own", "jitter: 0"},
    {"strategy.placement", "the tensor-parallel groups of a stage are spread over nodes in different ways",
     "a tensor degree that divides the GPUs of a node, and tensor first in the placement"},
    {"strategy.placement", "messages to the next stage stay within a node for some GPUs, but not for others",
     "degrees within a stage that divide the GPUs of a node, or are multiples of that number"},
    {"strategy.placement", "groups of neighbouring replicas are spread over nodes in different ways",
     "context, expert or ZeRO groups that divide the GPUs of a node, or are multiples of that number"},
    {"strategy.pipeline", "on the links that GPUs share, what stages send to each other meets the all-reduces of gradients",
     "pipeline: 1, or links of its own for each GPU"},
    {"strategy.placement", "on the links that GPUs share, exchanges within works meet the all-reduces of gradients",
     "tensor, context and expert groups within a node, or links of its own for each GPU"},
    {"strategy.expert", "gradients of experts are all-reduced in groups of their own, which begin when they are ready",
     "expert: 1"},
    {"strategy.shard", "all-reduces within ZeRO's groups, and across them, share links at the same time",
     "ZeRO groups of just one node"},
    {"strategy.data_parallel", "replica 0 does more than the others", "data_parallel: ddp"},
    {"simulation.collectives", "it asks for messages, which every replica sends itself",
     "collectives: auto or measured"},
    {"simulation.collectives", "messages are few, and durations in their place might give other times",
     "collectives: measured (ignores other traffic on the links of an all-reduce)"},
    {"simulation.collectives", "members end an all-reduce at different times, so that messages tell more than durations",
     "collectives: measured (ignores that some members end earlier)"},
    {"simulation.collectives", "the scenario is so small that all replicas are simulated, to be seen",
     "collectives: measured"},
    {"simulation.fold", "it says off", "fold: auto"},
    {"strategy.local_steps", "replicas make steps of their own between all-reduces", "local_steps: 1"},
    {"strategy.schedule", "it has no flush, has several batches or slices of micro-batches, or decides its order at run time",
     "a synchronous schedule with a fixed order (1f1b, say)"},
    {"batch", "the rows have no period, or too few works or micro-batches for one",
     "more micro-batches, or a schedule that repeats itself"},
    {"batch", "the pipeline comes to no steady state that repeats itself exactly",
     "another schedule or more micro-batches may; none is sure to"},
    {"batch.shares", "replicas have micro-batches of unequal size", "no shares"},
    {"strategy.stages", "GPUs that do the same for the same stage are on nodes of several kinds",
     "each stage on nodes of one kind"},
    {"strategy.stages", "pipeline ranks have unequal degrees", "stages of the same tensor and data"},
    {"strategy", "the collective has a root", "none: broadcasts and reductions are not alike on all nodes"},
    {"strategy.all_reduce", "the nodes of this algorithm do not all do the same (as in a tree)", "all_reduce: ring"},
    {"strategy.placement", "the group has different places, NICs or shares of them on different nodes",
     "groups with as many members in the same places of each node"},
    {"cluster.network.topology", "the uplinks of a leaf are narrower than the NICs that send through them at once",
     "topology: nonblocking, or less oversubscription"},
    {"strategy.placement", "several groups run the collective on the same links at once",
     "links of its own for each group"},
    {"cluster.network.nics", "the channels of the collective share NICs", "a NIC for the GPUs of each channel"},
    {"strategy.channels", "the group is within a node, where every channel is simulated", "channels: 1"},
};

const struct alike_text *alike_text(uint32_t reasons, size_t number)
{
    for (size_t i = 0; i < COUNT(texts); i++)
        if (reasons >> i & 1 && number-- == 0)
            return &texts[i];
    return NULL;
}
