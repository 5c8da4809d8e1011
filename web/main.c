/* The simulator in a page of one file: what its worker calls (worker.js). Texts are JSON, which the caller frees. */
#include <stdlib.h>
#include <string.h>

#include "app/computed.h"
#include "app/known.h"
#include "base/base.h"
#include "base/cache.h"
#include "files/json.h"
#include "serve/requested.h"

enum { SECONDS = 20, MEMORY = 512 << 20 };           /* s and B of a question, at most */

/* Remembers what the next question needs again. */
struct cache *web_cache(void);
/* What the page knows when it opens (app/known.h), or the errors. */
char *web_known(void);
/* The answer to a question (app/computed.h). */
char *web_answer(struct cache *cache, const char *question);
/* The answer where the worker that computed it did not end (POOL_UNWANTED), or died (POOL_CRASH); `how`: its last words. */
char *web_lost(int why, const char *how);

struct cache *web_cache(void)
{
    struct cache *cache = xcalloc(1, sizeof *cache);

    cache_init(cache, CACHE_BYTES / 4);
    cache->names_only = cache->files_stay = true;
    return cache;
}

char *web_known(void)
{
    struct error err = {0};
    json_t *known = known_json(&err);
    char *text = known ? json_text(known) : computed_errors(&err);

    json_decref(known);
    return text;
}

char *web_answer(struct cache *cache, const char *question)
{
    char *text = NULL;
    size_t size;
    FILE *out = text_open(&text, &size);

    computed_write(cache, question, strlen(question), (struct budget){SECONDS, MEMORY}, out);
    text_close(out, &text);
    return text;
}

char *web_lost(int why, const char *how)
{
    struct error words = {0}, err = {0};
    char *text;

    error_add(&words, EXIT_UNEXPECTED, (struct loc){0}, "%s", how);
    requested_lost(false, (enum pool_loss)why, "after 20 s", &words, &err);
    text = computed_errors(&err);
    error_release(&words);
    error_release(&err);
    return text;
}
