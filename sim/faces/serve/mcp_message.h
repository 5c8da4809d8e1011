/* mcp_message: what the server of the Model Context Protocol writes: a message of JSON-RPC on a line of standard output. */
#ifndef DTSIM_MCP_MESSAGE_H
#define DTSIM_MCP_MESSAGE_H

#include <jansson.h>

#include "base/base.h"

/* JSON-RPC 2.0, section 5.1. */
enum { MCP_NO_JSON = -32700, MCP_NO_REQUEST = -32600, MCP_NO_METHOD = -32601, MCP_BAD_PARAMS = -32602 };

/* Answers a request with a result, and takes it. */
void mcp_send(const json_t *request, json_t *result);
/* NULL: nobody knows what it answers. */
void mcp_send_error(const json_t *request, int code, const char *message);
/* Answers `initialize`: the version that was asked for, or the newest one. */
void mcp_send_welcome(const json_t *request, const char *instructions);
/* Answers a call: what it said for programs and for people, its exit code, its errors or NULL. */
void mcp_send_result(const json_t *request, const char *said, const char *words, int code, json_t *errors);
/* Leaves so many of the errors that their JSON has at most `most` bytes, and cuts long texts of theirs; words say all. Its length. */
size_t mcp_fit_errors(json_t *errors, size_t most);
/* Tells whoever asked for it how many s of its budget a call has run. */
void mcp_send_progress(const json_t *request, double seconds, double budget);
/* Whether a message could not be written: then an error. */
bool mcp_unheard(struct error *err);

#endif
