/* mcp_tools: commands as tools for agents (serve/mcp.h). A tool's arguments are made of the rows by which the command line is
 * parsed, and of the table of which `dtsim schema` is made. */
#ifndef DTSIM_MCP_TOOLS_H
#define DTSIM_MCP_TOOLS_H

#include "cli/cmd.h"
#include "serve/mcp.h"

/* The tools, with the server's options. Until standard input ends: an exit code. */
int mcp_main(size_t jobs, struct budget budget, struct error *err);

#endif
