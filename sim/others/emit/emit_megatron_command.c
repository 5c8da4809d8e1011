/* emit_megatron_command: a command of Megatron-LM: written, read back, and which release it needs. */
#include "emit/emit_megatron.h"

#include "megatron/megatron.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "config/conf.h"
#include "launch/launch.h"
#include "scenario/scenario.h"

/* The releases that take a command, from `since` to `until` (0: the newest), and the arguments that say so. */
struct span { int since, until; const char *first, *last; };

static void narrow(struct span *span, const struct argument_row *row, int since)
{
    if (since > span->since) {
        span->since = since;
        span->first = row->name;
    }
    if (row->until && (!span->until || row->until < span->until)) {
        span->until = row->until;
        span->last = row->name;
    }
}

/* Software of which a release has what came with that one. */
static const char *newer_software(const struct dialect *dialect, int since)
{
    for (size_t i = 0; i < dialect->releases.count; i++)
        if (dialect_releases(dialect, dialect->releases.items[i].from).last >= since)
            return dialect->releases.items[i].from;
    return "another one";
}

/* Refuses what all releases lack that the scenario means, and finds those that lack nothing. release 0: it means none of
 * its own. 0 or -1. */
static int check_release(const struct launch *launch, const struct dialect *dialect, const struct scenario *scenario,
                         struct releases release, struct span *span, struct error *err)
{
    struct loc place = node_loc(scenario->node, "software");
    int rc = 0;

    for (size_t i = 0; i < launch->arguments.count; i++) {
        const struct launch_argument *argument = &launch->arguments.items[i];
        const struct argument_row *row = dialect_row(dialect, argument->name, false);
        const char *value = argument->count ? argument->values[0].text : "";
        int since = dialect_since(row, value);

        narrow(span, row, since);
        if (release.last && since > release.last)
            rc = error_add(err, EXIT_INFEASIBLE, place, "software %s is core_v0.%d, which lacks --%s%s%s; releases since core_v0.%d "
                           "have it, such as software %s", scenario->software.like, release.last, row->name,
                           since > row->since ? " " : "", since > row->since ? value : "", since, newer_software(dialect, since));
        else if (row->until && row->until < release.first)
            rc = error_add(err, EXIT_INFEASIBLE, place, "software %s is core_v0.%d, which lacks --%s; releases until core_v0.%d had "
                           "it", scenario->software.like, release.first, row->name, row->until);
    }
    if (!rc && span->until && span->until < span->since)
        return error_add(err, EXIT_INFEASIBLE, place, "no release of Megatron-LM has both --%s, until core_v0.%d, and --%s, since "
                         "core_v0.%d", span->last, span->until, span->first, span->since);
    return rc;
}

/* An emitted command is for the release that the scenario's software is; a note says where some, or later ones, do not take it. 0 or
 * -1. */
static int settle_release(const struct scenario *scenario, const char *command, size_t length, FILE *notes, struct error *err)
{
    struct arena arena = {.cache = scenario->arena.cache};
    const struct dialect *dialect = dialect_load(&arena, "megatron", err);
    const char *software = scenario->software.like && !scenario->software.assumed ? scenario->software.like : "";
    struct releases release = dialect ? dialect_releases(dialect, software) : (struct releases){0};
    struct span span = {0};
    struct launch launch = {0};
    int rc = !dialect || launch_parse(&arena, "the arguments", command, length, &launch, err) ? -1 :
             check_release(&launch, dialect, scenario, release, &span, err);

    if (!rc && span.since > release.first)
        text_wrap(arena_printf(&arena, "note: --%s is of core_v0.%d; older releases of Megatron-LM do not take this command",
                               span.first, span.since), 0, 2, text_width(notes, 100), notes);
    if (!rc && span.until && (!release.last || span.until < release.last))
        text_wrap(arena_printf(&arena, "note: core_v0.%d is the last release with --%s; later ones do not take this command",
                               span.until, span.last), 0, 2, text_width(notes, 100), notes);
    launch_release(&launch);
    arena_release(&arena);
    return rc;
}

int emit_megatron(const struct scenario *scenario, FILE *out, FILE *notes, struct error *err)
{
    static const struct framework framework = {"Megatron-LM", "megatron", emit_megatron_write, megatron_command, false, true,
                                               emit_megatron_fit};

    char *command = NULL;
    size_t length;
    FILE *text = open_memstream(&command, &length);
    int rc;

    BUG_IF(!text);
    rc = emit_checked(&framework, scenario, text, notes, err);
    fclose(text);
    rc = rc || settle_release(scenario, command, length, notes, err) ? -1 : 0;
    if (!rc)
        fwrite(command, 1, length, out);
    free(command);
    return rc;
}
