#include "planners/mcmc.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"

static size_t below(const struct mcmc *chain, uint64_t *drawn, size_t count)
{
    size_t found = (size_t)(random_share(chain->seed, (*drawn)++) * (double)count);

    return found < count ? found : count - 1;
}

double mcmc_search(const struct mcmc *chain, int *state)
{
    size_t bytes = chain->operators * sizeof *state;
    int *current = xmalloc(bytes), *next = xmalloc(bytes);
    double cost = chain->cost(chain->context, state), best = cost;
    long long back = chain->budget / 100 < 1 ? 1 : chain->budget / 100 > 1000 ? 1000 : chain->budget / 100;
    uint64_t drawn = 0;

    memcpy(current, state, bytes);
    for (long long step = 0; step <= chain->budget; step++) {
        size_t changed = below(chain, &drawn, chain->operators);
        double proposed, worse;

        if (step && step % back == 0 && !chain->stays) {
            memcpy(current, state, bytes);
            cost = best;
        }
        memcpy(next, current, bytes);
        next[changed] = (int)below(chain, &drawn, (size_t)chain->configurations[changed]);
        proposed = chain->cost(chain->context, next);
        worse = proposed - (chain->best ? best : cost);
        if (proposed < cost || random_share(chain->seed, drawn++) < exp(-chain->alpha * worse)) {
            memcpy(current, next, bytes);
            cost = proposed;
        }
        if (cost < best) {
            memcpy(state, current, bytes);
            best = cost;
        }
        if (chain->visit)
            chain->visit(chain->visitor, current);
    }
    free(current);
    free(next);
    return best;
}
