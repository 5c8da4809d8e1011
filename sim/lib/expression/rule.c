#include "expression/rule.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/field.h"

static void parse_or_end(struct arena *arena, const struct rules *rules, const char *text, const struct key_parts *parts,
                         struct condition *condition)
{
    struct error err = {0};
    const struct expression_text written = {rules->name, text, {0}, NULL};

    if (condition_parse(arena, &written, parts, condition, &err))
        BUG("%s in '%s'", err.messages[0].text, text);
}

const struct condition *rules_conditions(struct arena *arena, const struct rules *rules, const struct key_parts *parts)
{
    const struct condition *found = !arena->cache ? NULL : cache_find(arena->cache, CACHE_CONDITION, &rules, sizeof rules);
    struct arena own = {.cache = arena->cache};
    struct condition *parsed;

    if (found)
        return found;
    parsed = ARENA_ARRAY(&own, struct condition, rules->count);
    for (size_t i = 0; i < rules->count; i++)
        parse_or_end(&own, rules, rules->items[i].when, parts, &parsed[i]);
    if (!arena->cache || !cache_put(arena->cache, CACHE_CONDITION, &rules, sizeof rules, parsed, &own))
        arena_join(arena, &own);
    return parsed;
}

/* A key, which an option of a schedule may be; "": the part itself. */
struct place {
    const struct key_part *part;
    const char *key;
};

static struct place place_of(const struct key_parts *parts, const char *path)
{
    const char *dot = strrchr(path, '.');
    struct place found = {NULL, NULL};

    for (size_t i = 0; i < parts->count && !found.part; i++) {
        const char *part = parts->items[i].path;

        if (!strcmp(part, path))
            found = (struct place){&parts->items[i], ""};
        else if (dot && strlen(part) == (size_t)(dot - path) && !memcmp(part, path, strlen(part)))
            found = (struct place){&parts->items[i], dot + 1};
    }
    BUG_IF(!found.part);
    return found;
}

static bool is_said(struct place place)
{
    return place.part->object && field_given(place.part->table, place.part->object, place.key);
}

/* The first of the paths that is said, else the first; and the one whose name stands before the message. */
static struct place find_place(struct arena *arena, const struct key_parts *parts, const char *paths, struct place *named)
{
    char *rest = arena_strdup(arena, paths), *name = strstr(rest, " @ ") ? strsep(&rest, "@") : NULL;
    struct place first = {NULL, NULL}, said = {NULL, NULL};

    rest += name ? 1 : 0;
    for (char *path; (path = strsep(&rest, " "));) {
        struct place place = place_of(parts, path);

        first = first.part ? first : place;
        said = !said.part && is_said(place) ? place : said;
    }
    said = said.part ? said : first;
    *named = name ? place_of(parts, strsep(&name, " ")) : said;
    return said;
}

const char *rule_message(const struct rule *rule)
{
    const char *line = rule->text ? strchr(rule->text, '\n') : NULL;

    return line ? line + 1 : rule->text;
}

/* The template with the values of its expressions. */
static const char *filled(struct arena *arena, const struct rules *rules, const char *text, const struct key_parts *parts)
{
    const char *made = "", *end;

    for (const char *brace; (brace = strstr(text, "${")) && (end = strchr(brace, '}')); text = end + 1) {
        const char *inner = arena_strndup(arena, brace + 2, (size_t)(end - brace - 2));
        struct condition condition;
        struct value value;
        struct error err = {0};

        parse_or_end(arena, rules, inner, parts, &condition);
        if (condition_evaluate(arena, &condition, parts, &value, &err))
            BUG("%s in '%s'", err.messages[0].text, inner);
        made = arena_printf(arena, "%s%.*s", made, (int)(brace - text), text);
        made = value.kind == VALUE_NUMBER  ? arena_printf(arena, value.number == floor(value.number) ? "%s%.0f" : "%s%.15g", made,
                                                          value.number) :
               value.kind == VALUE_BOOLEAN ? arena_printf(arena, "%s%s", made, value.boolean ? "true" : "false") :
               value.kind == VALUE_TEXT    ? arena_printf(arena, "%s%s", made, value.text) : made;
    }
    return arena_printf(arena, "%s%s", made, text);
}

static int report(struct arena *arena, const struct rule *rule, const char *text, struct place at, struct place named,
                  const struct key_parts *parts, struct error *err)
{
    static const enum error_kind kinds[] = {
        [RULE_VALUES] = ERROR_VALUES, [RULE_DEGREES] = ERROR_DEGREES, [RULE_GPUS] = ERROR_GPUS, [RULE_BATCH] = ERROR_BATCH,
        [RULE_SCHEDULE] = ERROR_SCHEDULE, [RULE_IDLE] = ERROR_VALUES,
    };
    const char *name = word_in(named.part->table->delegated, named.key) ? "software" : named.part->table->name;
    struct loc loc = field_loc(at.part->table, at.part->object, at.key);
    bool idle = rule->kind == RULE_IDLE;

    if (!loc.file && parts->root)        /* nothing of the part is said */
        loc = parts->root->loc;
    text = arena_printf(arena, "%s: %s%s%s%s%s", name, named.key, *named.key ? ": " : "",
                        idle ? "has no effect here: " : "", text, idle ? "; or leave it out" : "");
    return rule->kind == RULE_INPUT ? error_add(err, EXIT_INPUT, loc, "%s", text) :
           error_infeasible(err, kinds[rule->kind], loc, "%s", text);
}

static int broken(struct arena *arena, const struct rules *rules, const struct rule *rule, const struct key_parts *parts,
                  struct error *err)
{
    struct place named, at = find_place(arena, parts, rule->at, &named);
    const char *text = rule->fault ? rule->fault(arena, parts->subject) : rule_message(rule);

    if (rule->fault && !text)
        return 0;
    if (*at.key && field_supplied(at.part->table, at.part->object, at.key)) {
        field_withdraw(arena, at.part->table, at.part->object, at.key);
        return 0;
    }
    return rule->kind == RULE_YIELDS ? 0 : report(arena, rule, filled(arena, rules, text, parts), at, named, parts, err);
}

int rules_ask(struct arena *arena, const struct rules *rules, const struct key_parts *parts, struct error *err)
{
    const struct condition *conditions = rules_conditions(arena, rules, parts);
    int rc = 0;

    for (size_t i = 0; i < rules->count; i++) {
        struct error found = {0};
        struct value value;

        if (condition_holds(arena, &conditions[i], parts, &value, &found))
            BUG("%s in '%s'", found.messages[0].text, rules->items[i].when);
        if (value.kind == VALUE_BOOLEAN && value.boolean && broken(arena, rules, &rules->items[i], parts, err))
            rc = -1;
    }
    return rc;
}

const char *rule_words(struct arena *arena, const struct rule *rule)
{
    const char *made = arena_printf(arena, "%.*s: ", (int)strcspn(rule->at, " "), rule->at), *text = rule_message(rule), *end;

    if (text != rule->text)
        return arena_strndup(arena, rule->text, (size_t)(text - 1 - rule->text));
    if (!text)
        return arena_printf(arena, "%s%s", made, rule->when);
    for (const char *brace; (brace = strstr(text, "${")) && (end = strchr(brace, '}')); text = end + 1) {
        bool word = brace > rule->text && (brace[-1] == '}' || isalpha((unsigned char)brace[-1]));   /* one that may lack */

        made = arena_printf(arena, "%s%.*s", made, (int)(brace - text), text);
        made = word ? made : arena_printf(arena, "%s<%.*s>", made, (int)(end - brace - 2), brace + 2);
    }
    return arena_printf(arena, "%s%s", made, text);
}
