/* emit_megatron_command: a command of Megatron-LM: written, read back, and which release it needs. */
#include "emit/emit_megatron.h"

#include "megatron/megatron.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "launch/launch.h"
#include "scenario/scenario.h"

/* The first core_v0.N whose training/arguments.py has an argument, where core_r0.8 lacks it. Tags of NVIDIA/Megatron-LM
 * from core_r0.8.0 to core_v0.19.0. */
static const struct { const char *argument; int release; } firsts[] = {
    {"cp-comm-type", 10}, {"expert-tensor-parallel-size", 10}, {"hierarchical-context-parallel-sizes", 10},
    {"multi-latent-attention", 10}, {"microbatch-group-size-per-virtual-pipeline-stage", 10}, {"moe-ffn-hidden-size", 10},
    {"moe-layer-freq", 10}, {"moe-shared-expert-intermediate-size", 10}, {"moe-shared-expert-overlap", 10},
    {"num-distributed-optimizer-instances", 10}, {"attention-backend", 11}, {"moe-permute-fusion", 11},
    {"num-virtual-stages-per-pipeline-rank", 11}, {"use-precision-aware-optimizer", 11}, {"fp8-recipe", 12},
    {"grad-reduce-in-bf16", 12}, {"mtp-num-layers", 12}, {"optimizer-cpu-offload", 12}, {"recompute-modules", 12},
    {"moe-router-force-load-balancing", 13}, {"pipeline-model-parallel-layout", 13}, {"moe-router-fusion", 14},
    {"overlap-moe-expert-parallel-comm", 14}, {"use-megatron-fsdp", 14}, {"fp4-format", 15}, {"window-size", 15},
    {"moe-flex-dispatcher-backend", 16}, {"optimizer muon", 16}, {"optimizer dist_muon", 16},
    {"use-transformer-engine-op-fuser", 18}, {"flash-attention-version", 19},
};
/* The releases that files of platforms/software/ say; other software has none of Megatron-LM's. */
static const struct { const char *software; int release; } known[] = {
    {"megatron-core", 8}, {"megatron-core-2025", 13}, {"megatron-core-2026", 16},
};

static bool has(const char *command, const char *argument)
{
    size_t length = strlen(argument);

    for (const char *at = command; (at = strstr(at, " --")); at += 3)
        if (!strncmp(at + 3, argument, length) && strchr(" \n", at[3 + length]))
            return true;
    return false;
}

/* Says which release a command needs, where the scenario's software is an older one, or another. */
static void say_release(const struct scenario *scenario, const char *command, FILE *notes)
{
    const char *software = scenario->software.like ? scenario->software.like : "", *why = "";
    int release = 0;
    char text[256];

    for (size_t i = 0; i < COUNT(firsts); i++)
        if (firsts[i].release > release && has(command, firsts[i].argument)) {
            release = firsts[i].release;
            why = firsts[i].argument;
        }
    for (size_t i = 0; i < COUNT(known); i++)
        if (!strcmp(software, known[i].software) && known[i].release >= release)
            return;
    if (!release)
        return;
    snprintf(text, sizeof text, "note: --%s is of core_v0.%d; older releases of Megatron-LM do not take this command", why,
             release);
    text_wrap(text, 0, 2, text_width(notes, 100), notes);
}

struct node *emit_megatron_read(struct emit *e, const char *text, size_t length, const struct import_options *options,
                                FILE *notes, struct error *err)
{
    struct launch launch = {0};
    struct node *root = NULL;
    const char *comment;

    if (!launch_parse(e->arena, "the arguments", text, length, &launch, err))
        root = megatron_scenario(e->arena, &launch, options, &comment, notes, err);
    launch_release(&launch);
    return root;
}

int emit_megatron(const struct scenario *scenario, FILE *out, FILE *notes, struct error *err)
{
    static const struct framework framework = {"Megatron-LM", "megatron", "megatron-core", emit_megatron_write, emit_megatron_read, true,
                                               emit_megatron_fit};

    char *command = NULL;
    size_t length;
    FILE *text = open_memstream(&command, &length);
    int rc;

    BUG_IF(!text);
    rc = emit_checked(&framework, scenario, text, notes, err);
    fclose(text);
    if (!rc) {
        fwrite(command, 1, length, out);
        say_release(scenario, command, notes);
    }
    free(command);
    return rc;
}
