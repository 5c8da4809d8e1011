/* emit_own: a framework that a file of platforms/dialects/ describes, and no code. */
#include "emit/emit_rows.h"

#include "base/base.h"
#include "config/conf.h"
#include "jobs/jobs.h"
#include "launch/dialect.h"

static void write_all(struct emit *e)
{
    e->said = node_mapping(e->arena);
    for (const char *at = e->dialect->order; *at; at += strcspn(at, " "), at += strspn(at, " "))
        emit_say_rows(e, arena_strndup(e->arena, at, strcspn(at, " ")));
    emit_print(e);
}

/* Whether the framework's arguments say the model. */
static bool says_model(const struct dialect *dialect)
{
    const struct dialect_rows *rows = &dialect->pairs;

    for (size_t i = 0; i < rows->count; i++)
        for (size_t k = 0; k < rows->items[i].is.count; k++)
            if (rows->items[i].importing && !strcmp(rows->items[i].is.terms[k].key, "model.transformer.hidden"))
                return true;
    return false;
}

int emit_own(const char *dialect, const struct scenario *scenario, FILE *out, FILE *notes, struct error *err)
{
    struct arena arena = {.cache = scenario->arena.cache};
    const struct dialect *own = dialect_load(&arena, dialect, err);
    const struct framework framework = {own ? own->framework : "", dialect, write_all, own_scenario, own && !says_model(own), false, NULL};
    int rc = own && own->reader ? error_add(err, EXIT_INFEASIBLE, scenario->node->loc, "what %s is launched with is read and not written",
                                            own->framework) :
             own ? emit_checked(&framework, scenario, out, notes, err) : -1;

    arena_release(&arena);
    return rc;
}
