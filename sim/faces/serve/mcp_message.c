#include "serve/mcp_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "files/json.h"

/* Writes a message, and takes it. */
static void put(json_t *message)
{
    json_put(message, "jsonrpc", json_string("2.0"));
    json_line(message, stdout);
    putchar('\n');
    fflush(stdout);
    json_decref(message);
}

bool mcp_unheard(struct error *err)
{
    if (ferror(stdout))
        error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "cannot write to standard output: nobody reads it");
    return ferror(stdout);
}

static json_t *id_of(const json_t *request)
{
    json_t *id = json_object_get(request, "id");

    return id ? json_incref(id) : json_null();
}

void mcp_send(const json_t *request, json_t *result)
{
    put(json_pack("{s:o, s:o}", "id", id_of(request), "result", result));
}

void mcp_send_error(const json_t *request, int code, const char *message)
{
    put(json_pack("{s:o, s:{s:i, s:s}}", "id", id_of(request), "error", "code", code, "message", message));
}

void mcp_send_welcome(const json_t *request, const char *instructions)
{
    static const char *const versions[] = {"2025-11-25", "2025-06-18", "2024-11-05"};    /* 2025-03-26 has lists of messages */
    const char *asked = json_string_value(json_object_get(json_object_get(request, "params"), "protocolVersion"));
    const char *version = versions[0];

    for (size_t i = 0; i < COUNT(versions); i++)
        if (asked && !strcmp(asked, versions[i]))
            version = versions[i];
    mcp_send(request, json_pack("{s:s, s:{s:{}}, s:{s:s, s:s}, s:s}", "protocolVersion", version, "capabilities", "tools",
                                "serverInfo", "name", "dtsim", "version", DTSIM_VERSION, "instructions", instructions));
}

static void add_text(json_t *content, const char *text)
{
    if (*text)
        json_append(content, json_pack("{s:s, s:o}", "type", "text", "text", json_words(text)));
}

void mcp_send_result(const json_t *request, const char *said, const char *words, int code, json_t *errors)
{
    json_t *content = json_array(), *result = json_pack("{s:o, s:b}", "content", content, "isError", code != 0);

    add_text(content, said);
    add_text(content, words);
    if (code)
        json_put(result, "structuredContent", json_pack("{s:i, s:O*}", "exit_code", code, "errors", errors));
    mcp_send(request, result);
}

size_t mcp_fit_errors(json_t *errors, size_t most)
{
    size_t length = most + 1;
    char *text, shown[400];
    const char *key;
    json_t *value;

    for (size_t i = 0; i < json_array_size(errors); i++)
        json_object_foreach(json_array_get(errors, i), key, value)
            if (json_is_string(value) && json_string_length(value) >= sizeof shown)
                json_object_set_new(json_array_get(errors, i), key,
                                    json_words(text_clip(json_string_value(value), shown, sizeof shown)));
    while (length > most) {
        text = json_text(errors);
        length = strlen(text);
        free(text);
        if (length > most)
            json_array_remove(errors, json_array_size(errors) - 1);
    }
    return length;
}

void mcp_send_progress(const json_t *request, double seconds, double budget)
{
    const json_t *params = json_object_get(request, "params");
    json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");

    if (token)
        put(json_pack("{s:s, s:{s:O, s:f, s:f, s:s}}", "method", "notifications/progress", "params", "progressToken", token,
                      "progress", seconds, "total", budget, "message", "s of its budget"));
}
