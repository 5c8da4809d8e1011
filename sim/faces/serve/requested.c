#include "serve/requested.h"

#include "base/base.h"
#include "base/cache.h"
#include "files/json.h"
#include "process/pool.h"
#include "run/memory_advice.h"
#include "run/run.h"
#include "scenario/scenario.h"
#include "workload/workload.h"

struct requested requested_begin(struct cache *cache)
{
    return (struct requested){.arena.cache = cache, .own.cache = cache, .answer = json_object()};
}

int requested_simulate(struct requested *requested, int engine, bool advice)
{
    struct simulate_options options;

    if (engine >= 0)
        requested->scenario.simulation.engine = engine;
    options = simulate_options_of(&requested->scenario);
    options.links = true;
    options.no_advice = !advice;
    return simulate_scenario(&requested->scenario, options, &requested->workload, &requested->run, &requested->err);
}

void requested_errors(struct requested *requested)
{
    const struct error *err = &requested->err;
    json_t *errors = err->count ? errors_json(err) : json_pack("{s:i}", "exit_code", (int)EXIT_OK);

    json_object_update(requested->answer, errors);
    json_decref(errors);
}

void requested_release(struct requested *requested, struct cache *cache)
{
    json_decref(requested->answer);
    run_release(&requested->run);
    workload_release(&requested->workload);
    scenario_release(&requested->scenario);
    error_release(&requested->err);
    arena_release(&requested->arena);
    arena_release(&requested->own);
    cache_renew(cache);
}

void requested_lost(bool cancelled, enum pool_loss why, const char *stopped, const struct error *how, struct error *err)
{
    if (cancelled)
        error_add(err, EXIT_INTERRUPTED, (struct loc){0}, "cancelled");
    else if (why == POOL_UNWANTED)
        error_add(err, EXIT_STOPPED, (struct loc){0}, "stopped %s: the simulation did not end by itself", stopped);
    else
        error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "%s", how->count ? how->messages[0].text :
                  "the simulation ended early");
}

int requested_run(struct pool pool, struct error *err)
{
    enum pool_end end;

    pool.what = "the simulation";
    end = pool_run(&pool, err);
    return end == POOL_FAILED ? -1 : end == POOL_INTERRUPTED ? EXIT_INTERRUPTED : 0;
}
