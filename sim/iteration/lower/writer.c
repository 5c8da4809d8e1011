/* How steps and their labels are written. */
#include "lower/script_internal.h"

#include "base/base.h"
#include "schedule/schedule.h"

static uint32_t label_number(const struct labels *labels, struct label label)
{
    const struct label_block *block = &labels->blocks[label.kind];

    BUG_IF((uint32_t)label.number >= block->numbers || (uint32_t)label.stage >= block->stages);      /* of another label */
    return block->first + (((uint32_t)label.replica * block->directions + (uint32_t)label.direction) * block->stages +
                           (uint32_t)label.stage) * block->numbers + (uint32_t)label.number;
}

void add_step(struct writer *writer, enum step_kind kind, size_t at, int number)
{
    script_add(writer->script, (struct script_step){.kind = (uint8_t)kind, .at = (uint32_t)at, .number = (uint32_t)number});
}

void add_shared(struct writer *writer, enum step_kind kind, size_t at, int number, struct label label)
{
    script_add(writer->script, (struct script_step){.kind = (uint8_t)kind, .shared = true, .at = (uint32_t)at,
                                           .number = (uint32_t)number});
    add_need(writer, label);
}

void add_need(struct writer *writer, struct label label)
{
    script_need(writer->script, label_number(writer->labels, label));
}

void add_give(struct writer *writer, struct label label)
{
    script_give(writer->script, label_number(writer->labels, label));
}

bool is_summed(const struct writer *writer, int stage)
{
    const struct rows *rows = writer->rows;

    return rows->whole ? writer->exchanges->buckets[stage].count > 0
                       : plan_sharers(rows->plan, stage) > 1 && rows->workload->stages[stage].parameters > 0;
}
