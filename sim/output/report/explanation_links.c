/* How busy NICs and the links of the topology are: of the links of one kind the busiest. */
#include "report/explanation.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "files/json.h"
#include "run/links.h"
#include "view/view.h"

enum { KINDS = 12 };                 /* a file of SimGrid's may call each of its links in a way of its own */

/* Links whose names differ in their numbers alone are of a kind: leaf0.up and leaf1.up. */
struct busiest { char kind[48], name[48]; double busy; int links; };

static double busy_of(const struct run *run, int carrier, int index)
{
    return links_busy(&run->links, &run->workload->scenario->cluster, carrier, index,
                      run->metrics.window.all * run->metrics.iteration_time);
}

static void without_numbers(const char *name, char *kind)
{
    for (; *name; name++)
        if (!isdigit((unsigned char)*name))
            *kind++ = *name;
    *kind = '\0';
}

/* Returns the number of kinds, up to KINDS: the NICs', then the topology's in the order of its links. */
static int find_busiest(const struct run *run, struct busiest found[KINDS])
{
    static const int carriers[] = {LINK_NIC_UP, LINK_NIC_DOWN, LINK_BETWEEN};
    const struct cluster *cluster = &run->workload->scenario->cluster;
    int count = 0;

    for (size_t c = 0; c < COUNT(carriers); c++)
        for (int i = 0, at = 0; i < run->links.counts[carriers[c]]; i++) {
            struct busiest link = {.busy = busy_of(run, carriers[c], i), .links = 1};

            carrier_name(cluster, carriers[c], i, link.name, sizeof link.name);
            without_numbers(link.name, link.kind);
            for (at = 0; at < count && strcmp(found[at].kind, link.kind) != 0; at++)
                ;
            if (at == KINDS)
                continue;
            if (at == count)
                found[count++] = link;
            else if (found[at].links++ && link.busy > found[at].busy) {
                memcpy(found[at].name, link.name, sizeof link.name);
                found[at].busy = link.busy;
            }
        }
    return count;
}

#define LINK(ROW) \
    ROW(link, json_words(it->name), "the busiest of a kind") \
    ROW(busy, json_real(it->busy), "share of the iteration that its full rate would need") \
    ROW(of, json_integer(it->links), "links of the kind")
VIEW_SHARED(busiest_view, struct busiest, it, LINK)

bool explanation_has_links(const struct explanation *explanation)
{
    return explanation->run->links.counts[LINK_BETWEEN] > 0;
}

json_t *explanation_links(const struct explanation *explanation)
{
    struct busiest found[KINDS];
    int count = explanation_has_links(explanation) ? find_busiest(explanation->run, found) : 0;

    return view_list(&busiest_view, found, (size_t)count, sizeof *found);
}
