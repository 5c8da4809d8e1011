#include "base/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"

/* Names that say more, or less, than the key's own words. */
static const struct { const char *key, *words; } known[] = {
    {"strategy.tensor", "TP"}, {"strategy.pipeline", "PP"}, {"strategy.data", "DP"}, {"strategy.context", "CP"},
    {"strategy.expert", "EP"}, {"strategy.expert_tensor", "ETP"}, {"strategy.zero", "ZeRO"}, {"strategy.sequence_parallel", "sequence parallelism"},
    {"batch.global", "global batch"}, {"batch.micro", "micro-batch"}, {"batch.micro_batches", "micro-batches"},
    {"memory.recompute", "activation checkpointing"}, {"rank", "place"}, {"gpus", "GPUs"}, {"mfu", "MFU"},
    {"hfu", "HFU"}, {"expected_error_share", "expected error, 6 of 10"}, {"training_energy_j", "J in all"}, {"relative_work", "work"}, {"speedup", "speed-up"}, {"iteration_time_s", "iteration"}, {"iteration_time_s_p10", "iteration p10"},
    {"iteration_time_s_p90", "iteration p90"}, {"verified_iteration_time_s", "verified iteration"},
    {"cost", "$ an iteration"}, {"cost_per_million_tokens", "$ a million tokens"}, {"kwh_per_million_tokens", "kWh a million tokens"},
     {"gpu_hours", "GPU-hours an iteration"}, {"training_cost", "$ in all"},
    {"training_cost_p10", "$ in all, p10"}, {"training_cost_p50", "$ in all, p50"}, {"training_cost_p90", "$ in all, p90"},
    {"training_gpu_hours", "GPU-hours in all"}, {"days_p90", "days, p90"},
    {"bubble_fraction", "bubble"}, {"exposed_communication_s", "exposed comm."}, {"memory_margin_bytes", "memory left"},
};

static bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);

    return length >= tail && !strcmp(name + length - tail, end);
}

const char *words_of(struct arena *arena, const char *key)
{
    static const char *const units[] = {"_bytes", "_s"};     /* printed next to the name */
    const char *dot = strrchr(key, '.');
    char *words;

    for (size_t i = 0; i < COUNT(known); i++)
        if (!strcmp(key, known[i].key))
            return known[i].words;
    words = arena_strdup(arena, dot ? dot + 1 : key);
    if (ends_in(words, "_per_s"))
        strcpy(words + strlen(words) - strlen("_per_s"), "/s");
    for (size_t i = 0; i < COUNT(units); i++)
        if (ends_in(words, units[i]))
            words[strlen(words) - strlen(units[i])] = '\0';
    for (char *at = words; (at = strchr(at, '_'));)
        *at = ' ';
    return words;
}

static int compare_sizes(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

    return (x > y) - (x < y);
}

struct number_style number_style_of(const char *name, double *numbers, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (isfinite(numbers[i]) && numbers[i] != 0)
            numbers[kept++] = numbers[i];
    array_sort(numbers, kept, sizeof *numbers, compare_sizes);
    return (struct number_style){name, kept ? numbers[(kept - 1) / 2] : 0};      /* the middle one */
}

static bool is_share(const char *name)
{
    return !strcmp(name, "mfu") || !strcmp(name, "hfu") || ends_in(name, "fraction") || ends_in(name, "utilization") ||
           ends_in(name, "overhead") || ends_in(name, "share");
}

enum unit unit_of(const char *name)
{
    if (!strncmp(name, "breakdown_s.", 12) || (ends_in(name, "_s") && !ends_in(name, "_per_s")) ||
        ends_in(name, "_s_p10") || ends_in(name, "_s_p90"))
        return UNIT_TIME;
    return strstr(name, "bytes") ? UNIT_BYTES : UNIT_NUMBER;
}

char *number_unit(const struct number_style *style, char *text, size_t size)
{
    enum unit unit = unit_of(style->name);
    char *gap;

    snprintf(text, size, "%s", is_share(style->name) ? "%" : "");
    if (unit == UNIT_NUMBER)
        return text;
    unit_format_like(unit, style->like, style->like, text, size);
    gap = strrchr(text, ' ');
    memmove(text, gap ? gap + 1 : text + strlen(text), strlen(gap ? gap + 1 : "") + 1);
    return text;
}

char *number_text(const struct number_style *style, double number, char *text, size_t size)
{
    enum unit unit = unit_of(style->name);

    if (isnan(number))
        snprintf(text, size, "-");
    else if (!strcmp(style->name, "speedup") || !strcmp(style->name, "relative_work"))
        snprintf(text, size, "%.3f", number);
    else if (is_share(style->name))
        snprintf(text, size, "%.2f", 100 * number);
    else if (unit == UNIT_NUMBER)
        unit_format_short(unit, number, text, size);
    else
        *strchrnul(unit_format_like(unit, style->like, number, text, size), ' ') = '\0';
    return text;
}

char *percent_text(double share, char *text, size_t size)
{
    snprintf(text, size, share < 0.0995 ? "%.2g %%" : "%.0f %%", 100 * share);
    return text;
}
