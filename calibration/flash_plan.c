#include "flash_plan.h"

#include <string.h>

#include "flash_graph.h"

void flash_check(struct flash_plan *plan, cudnnStatus_t status, const char *what)
{
    if (status == CUDNN_STATUS_SUCCESS || plan->failed)
        return;
    plan->status = status;
    plan->failed = what;
}

cudnnBackendDescriptor_t flash_create(struct flash_plan *plan, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;

    if (!plan->failed)
        flash_check(plan, cudnnBackendCreateDescriptor(type, &made), "a descriptor");
    return made;
}

void flash_set(struct flash_plan *plan, cudnnBackendDescriptor_t at, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, int64_t count, const void *value)
{
    if (!plan->failed)
        flash_check(plan, cudnnBackendSetAttribute(at, name, type, count, value), "an attribute");
}

void flash_link(struct flash_plan *plan, cudnnBackendDescriptor_t at, cudnnBackendAttributeName_t name,
                cudnnBackendDescriptor_t to)
{
    flash_set(plan, at, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
}

void flash_finalize(struct flash_plan *plan, cudnnBackendDescriptor_t made, const char *what)
{
    if (!plan->failed)
        flash_check(plan, cudnnBackendFinalize(made), what);
}

static void destroy(cudnnBackendDescriptor_t made)
{
    if (made)
        cudnnBackendDestroyDescriptor(made);
}

/* Fills the heuristic's first configurations, the best first; returns their number. */
static int64_t list_configs(struct flash_plan *plan, const struct flash_target *target)
{
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    int64_t found = 0;

    plan->heuristic = flash_create(plan, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    flash_link(plan, plan->heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, plan->graph);
    flash_set(plan, plan->heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!target->handle)
        flash_link(plan, plan->heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target->device);
    flash_finalize(plan, plan->heuristic, "the heuristic: no fused kernel for this shape");
    for (int i = 0; i < FLASH_CONFIGS; i++)
        plan->configs[i] = flash_create(plan, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (!plan->failed)
        flash_check(plan, cudnnBackendGetAttribute(plan->heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, FLASH_CONFIGS, &found, plan->configs),
                    "the heuristic's results");
    if (!plan->failed && found < 1)
        flash_check(plan, CUDNN_STATUS_NOT_SUPPORTED, "the heuristic: no fused kernel for this shape");
    return found < FLASH_CONFIGS ? found : FLASH_CONFIGS;
}

static void plan_config(struct flash_plan *plan, const struct flash_target *target, cudnnBackendDescriptor_t config)
{
    plan->plan = flash_create(plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (target->handle)
        flash_set(plan, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle);
    else
        flash_link(plan, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target->device);
    flash_link(plan, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    flash_finalize(plan, plan->plan, "the execution plan");
}

/* Makes the plan of the first configuration that is supported, as frameworks do. */
static void choose(struct flash_plan *plan, const struct flash_target *target)
{
    int64_t count = list_configs(plan, target);

    if (!plan->failed)
        plan_config(plan, target, plan->configs[0]);
    for (int64_t i = 1; i < count && plan->failed && CUDNN_STATUS_CATEGORY(plan->status) == CUDNN_STATUS_NOT_SUPPORTED;
         i++) {
        destroy(plan->plan);
        plan->plan = NULL;
        plan->failed = NULL;
        plan_config(plan, target, plan->configs[i]);
    }
}

int flash_plan_init(struct flash_plan *plan, const struct flash_target *target, const struct bench_case *one)
{
    flash_graph_init(plan, one);
    plan->graph = flash_create(plan, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    flash_set(plan, plan->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, plan->nops, plan->ops);
    if (target->handle)
        flash_set(plan, plan->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle);
    flash_finalize(plan, plan->graph, "the graph");
    choose(plan, target);
    if (!plan->failed)
        flash_check(plan, cudnnBackendGetAttribute(plan->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                   CUDNN_TYPE_INT64, 1, NULL, &plan->workspace),
                    "the workspace's size");
    return plan->failed ? -1 : 0;
}

void flash_plan_release(struct flash_plan *plan)
{
    destroy(plan->plan);
    for (int i = 0; i < FLASH_CONFIGS; i++)
        destroy(plan->configs[i]);
    destroy(plan->heuristic);
    destroy(plan->graph);
    for (int i = 0; i < plan->nops; i++)
        destroy(plan->ops[i]);
    for (int i = 0; i < plan->nmade; i++)
        destroy(plan->made[i]);
    for (int i = 0; i < plan->ntensors; i++)
        destroy(plan->tensors[i]);
    memset(plan, 0, sizeof *plan);
}

cudnnBackendDescriptor_t flash_plan_pack(struct flash_plan *plan, const struct bench_case *one, void *const *data,
                                         void *workspace)
{
    cudnnBackendDescriptor_t pack = flash_create(plan, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    void *pointers[FLASH_REAL];
    int64_t uids[FLASH_REAL], count = 0;

    for (int tensor = 0; tensor < FLASH_REAL; tensor++) {
        if (!flash_uses(one->kernel, (enum flash_tensor)tensor))
            continue;
        uids[count] = tensor + 1;
        pointers[count++] = data[tensor];
    }
    flash_set(plan, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids);
    flash_set(plan, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers);
    flash_set(plan, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    flash_finalize(plan, pack, "the variant pack");
    if (!plan->failed)
        return pack;
    destroy(pack);
    return NULL;
}
