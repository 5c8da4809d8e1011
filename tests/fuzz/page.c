/* Whatever comes to 'dtsim app': a head is let in only with the secrets and from the page's origin; a body is a
 * question or has mistakes; to read its scenario opens no file but the program's. The first lines of the data are a
 * head, a value each; the rest is a body. */
#include <stdlib.h>
#include <string.h>

#include "app/guard.h"
#include "app/question.h"
#include "base/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VALUES = 9 };

/* "+" stands for what is right, "-" for no value. */
static const char *value(const char *text, const char *right)
{
    return !strcmp(text, "+") ? right : !strcmp(text, "-") ? NULL : text;
}

static void check_head(char *const *lines)
{
    struct guard guard = {.port = 8000};
    struct error err = {0};
    char cookie[128], token[GUARD_SECRET], name[GUARD_NAME];
    struct http_head head = {0};
    struct guarded found;

    BUG_IF(guard_init(&guard, 8000, &err));
    memcpy(token, guard.token, sizeof token);
    guard_name(&guard, name);
    snprintf(cookie, sizeof cookie, "%s=%s", name, guard.cookie);
    head = (struct http_head){
        .method = lines[0], .path = lines[1], .token = value(lines[2], token), .host = value(lines[3], "127.0.0.1:8000"),
        .origin = value(lines[4], "http://127.0.0.1:8000"), .site = value(lines[5], "same-origin"),
        .cookie = value(lines[6], cookie), .type = value(lines[7], "application/json"), .length = value(lines[8], "2"),
    };
    found = guard_check(&guard, &head, 0);
    if (found.verdict == GUARD_REFUSED) {
        BUG_IF(!found.why || found.status < 400 || found.status > 421);
        return;
    }
    BUG_IF(!head.host || strcmp(head.host, "127.0.0.1:8000"));
    if (found.verdict == GUARD_ENTER || found.verdict == GUARD_ENTER_BY_PAGE) {
        BUG_IF(strcmp(head.token, token) || guard.token[0]);
        return;
    }
    BUG_IF(!strstr(head.cookie, cookie));
    BUG_IF(head.origin && strcmp(head.origin, "http://127.0.0.1:8000"));
    BUG_IF(found.verdict != GUARD_PAGE && (!head.origin || !found.id || strlen(found.id) > 32 || strchr(found.id, '/')));
}

static void check_body(const char *text, size_t length)
{
    static struct cache cache;       /* as a server keeps it */
    struct arena own = {0}, arena = {0};
    struct question question;
    struct scenario scenario = {0};
    struct error err = {0};
    int rc;

    if (!cache.limit)
        cache_init(&cache, CACHE_BYTES);
    cache.names_only = true;
    own.cache = arena.cache = &cache;
    rc = question_read(&own, text, length, &question, &err);
    BUG_IF((rc != 0) != (err.count > 0));
    if (!rc) {
        rc = question_scenario(&arena, &question, &scenario, &err);
        BUG_IF((rc != 0) != (err.count > 0));
        BUG_IF(!rc && scenario.simulation.engine != ENGINE_FAST);
    }
    scenario_release(&scenario);
    error_release(&err);
    arena_release(&arena);
    arena_release(&own);
    cache_renew(&cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = memcpy(xcalloc(size + 1, 1), data, size), *lines[VALUES], *at = text;

    for (size_t i = 0; i < VALUES; i++) {
        lines[i] = at;
        at += strcspn(at, "\n");
        if (*at)
            *at++ = '\0';
    }
    check_head(lines);
    if (at < text + size)
        check_body(at, (size_t)(text + size - at));
    free(text);
    return 0;
}
