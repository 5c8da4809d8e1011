/* mcp: tools for agents, by the Model Context Protocol on standard input and output (modelcontextprotocol.io, 2025-11-25): a
 * message of JSON-RPC is a line. A call of a tool is a process of its own, which opens the files of the working folder and of
 * the program alone, and starts no program (sandbox_confine). What kills it, or spends its budget, costs that call alone. */
#ifndef DTSIM_MCP_H
#define DTSIM_MCP_H

#include <jansson.h>

#include "base/progress.h"

struct mcp {
    size_t jobs;                         /* calls at once */
    struct budget budget;                /* of a call that says none; s 0: MCP_SECONDS */
    const char *instructions;            /* what an agent should know of all tools */
    json_t *(*tools)(void);              /* [{name, description, inputSchema}] */
    /* In the call's process: prints what the tool says, for programs and for people, and returns an exit code. Within the
     * budget it ends by itself, with what it has found; otherwise it is killed. */
    int (*call)(const char *tool, const json_t *arguments, struct budget budget);
};
enum { MCP_SECONDS = 50 };               /* clients wait for 60 s, unless they are told otherwise */
enum { MCP_MOST = 25000 };               /* characters of an answer; a file of MCP_FOLDER holds the rest */
#define MCP_FOLDER "dtsim-answers"

/* Until standard input ends and all is answered: 0. -1: an error, such as that the kernel has no Landlock. */
int mcp_serve(const struct mcp *mcp, struct error *err);

#endif
