/* Chakra's nodes: operations, sends, receives and collectives, each with its time and what it waits for (fields by number,
 * as et_def.proto has them). */
#include "trace/chakra_internal.h"

#include "base/decimal.h"
#include "tables/recorded.h"

enum { NODE_ID = 1, NODE_NAME = 2, NODE_TYPE = 3, DATA_DEPS = 5, START_TIME_MICROS = 6, DURATION_MICROS = 7, NODE_ATTR = 10 };
enum { ATTR_NAME = 1, ATTR_INT32 = 7, ATTR_INT64 = 9, ATTR_UINT64 = 13, ATTR_BOOL = 27, ATTR_STRING = 29 };
/* Types of nodes. */
enum { MEM_LOAD = 2, MEM_STORE = 3, COMP = 4, COMM_SEND = 5, COMM_RECV = 6, COMM_COLL = 7 };

/* comm_type of collectives; -1: its readers have none. */
static const int comm_types[RECORDED_OP_COUNT] = {
    [RECORDED_ALL_REDUCE] = 0, [RECORDED_REDUCE_SCATTER] = 7, [RECORDED_ALL_GATHER] = 2, [RECORDED_BROADCAST] = 5, [RECORDED_REDUCE] = -1,
    [RECORDED_ALL_TO_ALL] = 6, [RECORDED_SEND] = -1, [RECORDED_NONE] = -1,
};

static void attribute(struct chakra *chakra, const char *name, uint32_t field, int64_t value)
{
    message_name(&chakra->inner, ATTR_NAME, name);
    message_varint(&chakra->inner, field, (uint64_t)value);
    message_message(&chakra->node, NODE_ATTR, &chakra->inner);
    chakra->inner.count = 0;
}

static int64_t micros(int64_t ns)
{
    return (ns + 500) / 1000;
}

/* Begins a node of a lane. Its duration is in whole us; what is left goes to the next node of the lane. */
static void begin_node(struct chakra *chakra, const char *name, const char *suffix, int type, int64_t start, int64_t end,
                       size_t lane)
{
    int64_t *sum = &chakra->sums[lane], before = micros(*sum);
    char text[160], *to;

    *sum += end - start;
    chakra->shorter += end - start < 500;
    message_varint(&chakra->node, NODE_ID, chakra->next);
    if (*suffix) {
        to = stpncpy(text, name, 100);
        *to = ' ';
        *stpncpy(to + 1, suffix, 40) = '\0';
    }
    message_text(&chakra->node, NODE_NAME, *suffix ? text : name);
    message_varint(&chakra->node, NODE_TYPE, (uint64_t)type);
    for (size_t i = 0; i < chakra->deps.count; i++)
        message_varint(&chakra->node, DATA_DEPS, chakra->deps.items[i]);
    chakra->deps.count = 0;
    message_varint(&chakra->node, START_TIME_MICROS, (uint64_t)micros(start));
    message_varint(&chakra->node, DURATION_MICROS, (uint64_t)(micros(*sum) - before));
}

static uint32_t end_node(struct chakra *chakra, bool on_cpu)
{
    attribute(chakra, "is_cpu_op", ATTR_BOOL, on_cpu);
    message_write(&chakra->node, 0, &chakra->bytes);
    return chakra->next++;
}

/* A transfer of no bytes waits as others do; ASTRA-sim ends with an error where its size is 0. */
static int64_t whole(double bytes)
{
    return bytes < 1 ? 1 : (int64_t)(bytes + 0.5);
}

static void put_size(struct chakra *chakra, double bytes)
{
    attribute(chakra, "comm_size", ATTR_INT64, whole(bytes));
}

uint32_t chakra_computes(struct chakra *chakra, const char *name, const char *suffix, int64_t start, int64_t end, size_t lane,
                         bool on_cpu)
{
    begin_node(chakra, name, suffix, COMP, start, end, lane);
    return end_node(chakra, on_cpu);
}

uint32_t chakra_copies(struct chakra *chakra, const struct recorded_span *span, bool to_host)
{
    begin_node(chakra, recorded_text(&chakra->trace->run, span->name), "", to_host ? MEM_STORE : MEM_LOAD, span->start, span->end,
               span->lane);
    attribute(chakra, "tensor_size", ATTR_UINT64, whole(span->bytes));
    return end_node(chakra, false);
}

bool chakra_exchanges(const struct chakra *chakra, const struct recorded_span *span)
{
    int group = recorded_group_at(&chakra->trace->run, span->group, chakra->rank);

    return comm_types[span->op] >= 0 && span->bytes > 0 && group >= 0 && chakra->whole[group] &&
           chakra->trace->run.groups.items[group].nranks > 1;
}

uint32_t chakra_collective(struct chakra *chakra, const struct recorded_span *span, int64_t start, size_t lane)
{
    int group = recorded_group_at(&chakra->trace->run, span->group, chakra->rank);
    char name[DECIMAL_SIZE];

    begin_node(chakra, recorded_text(&chakra->trace->run, span->name), recorded_op_names[span->op], COMM_COLL, start, span->end, lane);
    attribute(chakra, "comm_type", ATTR_INT64, comm_types[span->op]);
    /* what one rank gives: of an all-gather its share (Chakra's converter sums up the inputs; ASTRA-sim, Ring.cc) */
    put_size(chakra, span->op == RECORDED_ALL_GATHER ? span->bytes / chakra->trace->run.groups.items[group].nranks : span->bytes);
    decimal_integer(group + 1, name);
    message_name(&chakra->inner, ATTR_NAME, "pg_name");
    message_name(&chakra->inner, ATTR_STRING, name);
    message_message(&chakra->node, NODE_ATTR, &chakra->inner);
    chakra->inner.count = 0;
    return end_node(chakra, false);
}

uint32_t chakra_sends(struct chakra *chakra, const struct recorded_span *span, bool receives)
{
    int shift = chakra->rank - chakra->rank % chakra->trace->run.ranks;

    /* a receive stands beside all lanes */
    begin_node(chakra, recorded_text(&chakra->trace->run, span->name), receives ? "receive" : "send", receives ? COMM_RECV : COMM_SEND,
               span->start, span->end, receives ? chakra->trace->run.lanes.count + 1 : span->lane);
    attribute(chakra, "comm_src", ATTR_INT32, chakra->npu[span->rank + shift]);
    attribute(chakra, "comm_dst", ATTR_INT32, chakra->npu[span->peer + shift]);
    attribute(chakra, "comm_tag", ATTR_INT32, span->id);
    put_size(chakra, span->bytes);
    return end_node(chakra, false);
}
