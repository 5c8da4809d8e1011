/* flash_graph: the operations of fused attention; and how a plan's descriptors are made. */
#ifndef DTSIM_FLASH_GRAPH_H
#define DTSIM_FLASH_GRAPH_H

#include "flash_plan.h"

/* Fills plan->tensors, ops and made. */
void flash_graph_init(struct flash_plan *plan, const struct bench_case *one);

/* After a first failure, which the plan keeps, cuDNN is not called any more. `what`: the call that failed. */
void flash_check(struct flash_plan *plan, cudnnStatus_t status, const char *what);
cudnnBackendDescriptor_t flash_create(struct flash_plan *plan, cudnnBackendDescriptorType_t type);
void flash_set(struct flash_plan *plan, cudnnBackendDescriptor_t at, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, int64_t count, const void *value);
void flash_link(struct flash_plan *plan, cudnnBackendDescriptor_t at, cudnnBackendAttributeName_t name,
                cudnnBackendDescriptor_t to);
void flash_finalize(struct flash_plan *plan, cudnnBackendDescriptor_t made, const char *what);

#endif
