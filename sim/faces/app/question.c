#include "app/question.h"

#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/conf.h"
#include "config/field.h"
#include "config/named.h"
#include "scenario/scenario.h"
#include "serve/request.h"

static int keep(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    (void)err;
    ((struct question_value *)object)->node = value;
    return 0;
}

static const struct table value_table = {.name = "page", .brief = "a value", .size = sizeof(struct question_value)};
#define VALUE(member, help) \
    {.key = #member, AT(question, member), .kind = FIELD_RECORD, .table = &value_table, .load = keep, .brief = help}
static const struct field question_fields[] = {
    {KEY(question, tour), .kind = FIELD_STRING, .brief = "the name of a scenario of the tour"},
    {KEY(question, text), .kind = FIELD_STRING, .brief = "or the text of a scenario"},
    VALUE(set, "PATH: VALUE; changes of the scenario, as after --set"),
    {KEY(question, what), .kind = FIELD_CHOICE, .choices = CHOICES(QUESTIONS), .fallback = "numbers",
     .brief = "numbers; advice: also the change that makes it fit; timeline: what runs when"},
    VALUE(against, "the answer about another scenario, of which the error of the ratio of both is asked"),
};
const struct table question_table = {
    TABLE("page", "a question of the page", question, question_fields),
    .exactly_one = "tour text",
};

int question_read(struct arena *arena, const char *text, size_t length, struct question *question, struct error *err)
{
    struct node *root;

    return request_tree(arena, QUESTION, text, length, 1, &root, err) ||
           field_parse(arena, &question_table, root, question, err) ? -1 : 0;
}

/* The tree of a scenario of the tour, which stays in the cache. */
static int read_tour(struct arena *arena, const char *name, const struct node **root, struct error *err)
{
    static const struct data_kind kind = {"scenarios/tour", "scenario of the tour", NULL};
    struct loc loc = {.file = QUESTION};
    const char *path = data_resolve(arena, &kind, name, loc, err);

    return path ? conf_shared(arena, path, root, err) : -1;
}

int question_scenario(struct arena *arena, const struct question *question, struct scenario *scenario,
                      struct error *err)
{
    struct node *root = ARENA_ARRAY(arena, struct node, 1), *dropped = NULL;
    const struct node *tour = NULL;
    const char *const *sets = NULL;
    size_t nsets = 0;

    BUG_IF(!arena->cache || !arena->cache->names_only);
    if (question->set.node && request_sets(arena, question->set.node, &sets, &nsets, err))
        return -1;
    if (question->tour) {
        if (read_tour(arena, question->tour, &tour, err))
            return -1;
        *root = *tour;
    } else {
        if (conf_parse(arena, DROPPED, question->text, strlen(question->text), &dropped, err))
            return -1;
        *root = *dropped;
    }
    if (scenario_read(arena, root, sets, nsets, question->tour ? question->tour : DROPPED, scenario, err))
        return -1;
    scenario->simulation.engine = ENGINE_FAST;
    return 0;
}
