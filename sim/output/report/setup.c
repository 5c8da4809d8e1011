/* What a scenario sets up, in words and by names. */
#include "report/result.h"

#include <string.h>

#include "base/base.h"
#include "files/json.h"
#include "model/model.h"
#include "report/caveats.h"
#include "run/certainty.h"
#include "scenario/memory_policy.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* Names of enumerators that are listed by field tables alone. */
static const char *const precisions[] = ENUM_NAMES(PRECISIONS);
static const char *const offloads[] = ENUM_NAMES(OFFLOADS);

/* Adds a part behind a comma. */
static const char *with(struct arena *arena, const char *text, const char *part)
{
    return arena_printf(arena, "%s%s%s", text, *text ? ", " : "", part);
}

/* How replicas divide or exchange what they hold, where it is not by sums of gradients alone. */
static const char *sharding(struct arena *arena, const struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    const char *text = spec->zero ? arena_printf(arena, "ZeRO-%d%s", spec->zero, spec->zero == 3 ? " (FSDP)" : "") : "";

    if (spec->zero && spec->shard < scenario_replicas(scenario))
        text = arena_printf(arena, "%s among %d replicas", text, spec->shard);
    return text;
}

static const char *memory_said(struct arena *arena, const struct scenario *scenario)
{
    const struct memory_spec *memory = &scenario->memory;
    enum recompute mode = (enum recompute)memory->recompute.mode;
    const char *text = model_is_timed(&scenario->model) ? "" : precisions[memory->precision.format];

    if (mode != RECOMPUTE_NONE || !model_is_timed(&scenario->model))
        text = with(arena, text, mode == RECOMPUTE_NONE ? "no activation checkpointing" :
                    arena_printf(arena, "%s activation checkpointing", recompute_names[mode]));
    for (enum offload offload = OFFLOAD_NONE + 1; offload < COUNT(offloads) - 1; offload++)
        if (scenario_offloads(scenario, offload))
            text = with(arena, text, arena_printf(arena, "%s offloaded", offloads[offload]));
    if (memory->saved.few_bit > 0)
        text = with(arena, text, arena_printf(arena, "%d-bit activation functions", memory->saved.few_bit));
    if (memory->saved.randomized_linear > 0)
        text = with(arena, text, arena_printf(arena, "linear layers randomized to %g", memory->saved.randomized_linear));
    if (memory->saved.activations_bits > 0)
        text = with(arena, text, arena_printf(arena, "%d-bit activations", memory->saved.activations_bits));
    return memory->lora ? with(arena, text, "LoRA") : text;
}

const char *setup_text(struct arena *arena, const struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    const char *text = "", *shares = sharding(arena, scenario), *memory = memory_said(arena, scenario);

    if (spec->expert > 1)
        text = arena_printf(arena, "expert %d%s", spec->expert,
                            spec->expert_tensor == 1 && scenario_most_tensor(scenario) > 1 ? " with expert_tensor 1" : "");
    if (scenario->plan.chunks > 1)
        text = with(arena, text, arena_printf(arena, "%d chunks a rank", scenario->plan.chunks));
    if (*shares)
        text = with(arena, text, shares);
    if (scenario->batch.micro > 1 || !model_is_timed(&scenario->model))
        text = with(arena, text, arena_printf(arena, "micro-batches of %s", samples_text(arena, scenario)));
    return *memory ? with(arena, text, memory) : text;
}

json_t *setup_json(const struct scenario *scenario)
{
    struct arena arena = {0};
    const char *setup = setup_text(&arena, scenario), *software = scenario->software.names.title;
    char degrees[128];
    int gpus = scenario_gpus(scenario);
    json_t *json = json_words(arena_printf(
        &arena, "%s, %s = %d GPU%s%s%s%s%s", scenario_schedule(scenario)->name,
        scenario_degrees(scenario, degrees, sizeof degrees), gpus, gpus == 1 ? "" : "s", *setup ? ", " : "", setup,
        software ? "; " : "", software ? software : ""));

    arena_release(&arena);
    return json;
}

json_t *software_json(const struct scenario *scenario)
{
    return scenario->software.names.title ? json_words(scenario->software.like) : json_null();
}

json_t *in_framework_json(const struct scenario *scenario)
{
    struct arena arena = {0};
    struct software_lack lack;
    enum software_has has = scenario_in_framework(&arena, scenario, &lack);

    arena_release(&arena);
    return has == SOFTWARE_UNKNOWN ? json_null() : json_boolean(has == SOFTWARE_HAS);
}

json_t *model_json(const struct scenario *scenario)
{
    char text[64];

    certainty_name_model(&scenario->model, text, sizeof text);
    return json_string(text);
}

json_t *gpu_json(const struct scenario *scenario)
{
    struct arena arena = {0};
    const char *names = scenario_gpu_names(&arena, scenario, -1);
    json_t *json = names ? json_words(names) : json_null();

    arena_release(&arena);
    return json;
}

