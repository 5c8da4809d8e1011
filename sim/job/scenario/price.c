#include "scenario/price.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "config/named.h"
#include "files/data.h"
#include "hardware/cluster.h"

/* The path of the file that the name, its alias or the path stands for; NULL: there is none. */
static const char *hardware_path(struct arena *arena, const char *folder, const char *name, struct loc loc, struct error *err)
{
    const struct data_kind kind = {folder, "hardware", NULL};
    const char *path = NULL, *meant;

    if (data_is_path(name))
        return (path = data_relative(arena, loc, name, err)) && !access(path, R_OK) ? data_absolute(arena, path, err) : NULL;
    if (!data_file(arena, folder, name, &path, err) && !path && (meant = data_meant(arena, &kind, name, loc, err)))
        data_file(arena, folder, meant, &path, err);
    return path;
}

static const char platforms[] = "platforms", gpus[] = "platforms/gpus";

/* $ an hour of a GPU of equal nodes: their platform's price, unless they have another GPU than it; else their GPU's. */
static double price_in(struct arena *arena, const struct node *price, const char *const *paths, const struct cluster *cluster,
                       struct error *err)
{
    const struct node *usual = cluster->base ? node_get(cluster->base, "gpu") : NULL;
    const char *gpu = cluster_gpu_name(cluster, 0), *names[] = {
        cluster->platform ? hardware_path(arena, platforms, cluster->platform, price->loc, err) : NULL,
        gpu ? hardware_path(arena, gpus, gpu, price->loc, err) : NULL,
    }, *platforms_gpu = NULL;
    double own;
    char why[256];

    usual = usual && usual->kind == NODE_MAPPING ? node_get(usual, "name") : usual;
    if (usual && usual->kind == NODE_SCALAR)
        platforms_gpu = hardware_path(arena, gpus, usual->text, usual->loc, err);
    if (platforms_gpu && names[1] && strcmp(platforms_gpu, names[1]))
        names[0] = NULL;
    for (size_t n = 0; n < COUNT(names); n++)
        for (size_t i = 0; names[n] && i < price->count; i++)
            if (!strcmp(paths[i], names[n]) && !unit_parse(UNIT_PRICE, price->items[i]->text, &own, why, sizeof why))
                return own;
    return NAN;
}

int price_of_own(struct arena *arena, const struct node *price, const struct cluster *cluster, double *own, struct error *err)
{
    const char **paths = ARENA_ARRAY(arena, const char *, price->count + 1);
    const struct part_spec *parts = cluster->given.items;
    int errors = err->count;

    for (size_t i = 0; i < price->count; i++) {
        const char *name = price->keys[i];
        struct loc loc = price->key_locs[i];

        paths[i] = hardware_path(arena, platforms, name, loc, err);
        if (!paths[i] && err->count == errors)
            paths[i] = hardware_path(arena, gpus, name, loc, err);
        if (!paths[i])
            return err->count > errors ? -1 : error_add(err, EXIT_INPUT, loc, "price: there is no platform or GPU '%s'; expected "
                             "prices by names of 'dtsim list platforms' such as {dgx-h100: 2.50 $/h}", name);
        for (size_t j = 0; j < i; j++)
            if (!strcmp(paths[i], paths[j]))
                return error_add(err, EXIT_INPUT, loc, "price: '%s' and '%s' are the same; expected one price", price->keys[j], name);
    }
    *own = 0;
    for (size_t i = 0; i < cluster->given.count; i++)
        *own += price_in(arena, price, paths, &parts[i].cluster, err) * parts[i].cluster.nodes *
                cluster_node_gpus(cluster, parts[i].first) / cluster_gpus(cluster);
    if (!cluster->given.count)
        *own = price_in(arena, price, paths, cluster, err);
    return err->count > errors ? -1 : 0;
}
