/* What the page of one file asks, answered by the native program: tests/web/same.py compares both.
 *     web_answers              answers questions, a line of standard input each ("known": what the page knows)
 *     web_answers N SEED       prints N questions about random scenarios */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "files/json.h"
#include "random_scenario.h"

struct cache *web_cache(void);
char *web_known(void);
char *web_answer(struct cache *cache, const char *question);

static void print_random(int count, uint64_t seed)
{
    for (int i = 0; i < count; i++) {
        char *text = random_scenario(1, &seed);
        json_t *question = json_object();

        json_object_set_new(question, "text", json_string(text));
        json_object_set_new(question, "what", json_string("numbers"));
        json_dumpf(question, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(question);
        free(text);
    }
}

int main(int argc, char **argv)
{
    struct cache *cache = web_cache();
    char *line = NULL, *answer;
    size_t capacity = 0;

    if (argc == 3) {
        print_random(atoi(argv[1]), strtoull(argv[2], NULL, 10));
        return 0;
    }
    while (getline(&line, &capacity, stdin) > 0) {
        answer = strcmp(line, "known\n") ? web_answer(cache, line) : web_known();
        fputs(answer, stdout);
        if (answer[strlen(answer) - 1] != '\n')
            putchar('\n');
        free(answer);
    }
    free(line);
    return 0;
}
