/* Fused attention through cuDNN, if the program was built with one that can plan for a described device (9.8). */
#include "device.h"

#ifdef DTSIM_CUDNN
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "flash_plan.h"

struct flash {
    cudnnHandle_t handle;
    bool ready;                  /* making it is tried once, for all jobs */
};

/* Of one job. */
struct planned {
    struct flash_plan plan;
    float scale, masked, one;    /* the plan's scalars, which lie on the host */
    void *workspace;
    int npacks;
    cudnnBackendDescriptor_t packs[];
};

bool flash_is_built(void)
{
    return true;
}

const char *flash_built(void)
{
    return "cuDNN " TEXT(CUDNN_MAJOR) "." TEXT(CUDNN_MINOR) "." TEXT(CUDNN_PATCHLEVEL);
}

static int check(struct job *job, cudnnStatus_t status, const char *what)
{
    char message[160] = "";

    if (status == CUDNN_STATUS_SUCCESS)
        return 0;
    cudnnGetLastErrorString(message, sizeof message);
    message[strcspn(message, "\n")] = '\0';
    snprintf(job->why, sizeof job->why, "cuDNN: %s: %s %.120s", what, cudnnGetErrorString(status), message);
    return -1;
}

static int get_state(struct job *job)
{
    struct flash *flash = job->device->flash;

    if (flash && flash->ready)
        return 0;
    if (flash)
        return check(job, CUDNN_STATUS_NOT_INITIALIZED, "the library");
    job->device->flash = flash = xcalloc(1, sizeof *flash);
    if (check(job, cudnnCreate(&flash->handle), "the library") ||
        check(job, cudnnSetStream(flash->handle, job->device->stream), "the stream"))
        return -1;
    flash->ready = true;
    return 0;
}

void flash_free(struct flash *flash)
{
    if (!flash)
        return;
    if (flash->handle)
        cudnnDestroy(flash->handle);
    free(flash);
}

static int call(struct job *job, int number)
{
    struct planned *planned = job->state;

    return check(job, cudnnBackendExecute(job->device->flash->handle, planned->plan.plan, planned->packs[number]),
                 "attention");
}

static void release(struct job *job)
{
    struct planned *planned = job->state;

    for (int i = 0; i < planned->npacks; i++)
        cudnnBackendDestroyDescriptor(planned->packs[i]);
    flash_plan_release(&planned->plan);
    if (planned->workspace != job->device->workspace)
        cudaFree(planned->workspace);
    free(planned);
}

/* The address of tensor i of the plan. Operands are in the plan's order, without its three scalars. */
static void *address(struct job *job, struct planned *planned, int set, enum flash_tensor tensor)
{
    switch (tensor) {
    case FLASH_SCALE: return &planned->scale;
    case FLASH_MASKED: return &planned->masked;
    case FLASH_ONE: return &planned->one;
    default: return job_operand(job, set, tensor < FLASH_SCALE ? (int)tensor : (int)tensor - 3);
    }
}

static int pack_sets(struct job *job, struct planned *planned)
{
    for (int set = 0; set < job->sets; set++) {
        void *data[FLASH_REAL] = {NULL};
        cudnnBackendDescriptor_t pack;

        for (int i = 0; i < FLASH_REAL; i++)
            if (flash_uses(job->one->kernel, (enum flash_tensor)i))
                data[i] = address(job, planned, set, (enum flash_tensor)i);
        pack = flash_plan_pack(&planned->plan, job->one, data, planned->workspace);
        if (!pack)
            return check(job, planned->plan.status, planned->plan.failed);
        planned->packs[planned->npacks++] = pack;
    }
    return 0;
}

int flash_open(struct job *job)
{
    struct planned *planned = xcalloc(1, sizeof *planned + (size_t)job->sets * sizeof planned->packs[0]);

    planned->scale = (float)(1 / sqrt((double)job->one->k));
    planned->masked = -FLT_MAX;
    planned->one = 1;
    planned->workspace = job->device->workspace;
    job->state = planned;
    job->call = call;
    job->close = release;
    if (get_state(job))
        return -1;
    if (flash_plan_init(&planned->plan, &(struct flash_target){.handle = job->device->flash->handle}, job->one))
        return check(job, planned->plan.status, planned->plan.failed);
    if ((size_t)planned->plan.workspace > job->device->workspace_size) {
        planned->workspace = NULL;
        if (job_check(job, cudaMalloc(&planned->workspace, (size_t)planned->plan.workspace), "attention's workspace"))
            return -1;
    }
    return pack_sets(job, planned);
}

#else

bool flash_is_built(void)
{
    return false;
}

const char *flash_built(void)
{
    return "no cuDNN (fused attention is left out)";
}

void flash_free(struct flash *flash)
{
    (void)flash;
}

int flash_open(struct job *job)
{
    snprintf(job->why, sizeof job->why, "built without cuDNN");
    return -1;
}

#endif
