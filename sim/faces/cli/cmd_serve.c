#include "cli/cmd.h"
#include "cli/mcp_tools.h"
#include "serve/serve.h"

enum { OPT_JOBS, OPT_MCP };

static int serve_main(const struct arguments *arguments)
{
    struct serve_options serving = {(size_t)arguments->numbers[OPT_JOBS], arguments->budget};
    struct error err = {0};
    int rc = arguments->values[OPT_MCP] ? mcp_main(serving.jobs, serving.budget, &err) : serve(&serving, &err);

    return rc < 0 ? report(&err) : rc;
}

static const struct option options[] = {
    [OPT_JOBS] = JOBS_OPTION("processes; left out: one a processor"),
    [OPT_MCP] = {"--mcp", .help = "tools for agents, by the Model Context Protocol: run, explain, plan, check, compare, collective, "
                 "train, import, emit, list, help. A call has 50 s unless --budget or its argument 'budget' says more; it reads and "
                 "writes files of this folder alone, and runs no script (Landlock)"},
    BUDGET_OPTION("the budget of each request without one"),
};

const struct command cmd_serve = {
    .name = "serve",
    .arguments = "",
    .brief = "Simulates what another program asks for, line by line, and answers each line with metrics or errors.",
    .examples = "  echo '{\"id\": 1, \"base\": \"scenario.yaml\", \"set\": {\"strategy.tensor\": 4}}' | dtsim serve\n"
                "  dtsim serve < requests.jsonl | jq '.metrics.iteration_time_s'\n"
                "  {\"mcpServers\": {\"dtsim\": {\"command\": \"dtsim\", \"args\": [\"serve\", \"--mcp\"]}}}     # an agent's configuration\n"
                "  (Python)  import dtsim; dtsim.run('scenario.yaml', set={'strategy.tensor': 4})\n",
    .no_set = "--set: a request has its own, as \"set\"",
    .options = options, .noptions = COUNT(options),
    .more = "\n"
            "Standard input brings JSON, a request on each line; standard output gets a line for each, in order:\n"
            "  {\"id\": 1, \"scenario\": {...}, \"set\": {PATH: VALUE, ...}}\n"
            "  {\"id\": 2, \"base\": FILE, \"set\": {PATH: VALUE, ...}}\n"
            "  {\"id\": 1, \"metrics\": {...}, \"exit_code\": 0}\n"
            "  {\"id\": 2, \"errors\": [{...}, ...], \"exit_code\": 4}\n"
            "Keys of a request:\n"
            "  id                  a text or a number, which the answer has too\n"
            "  scenario            a scenario, as its file would hold it\n"
            "  base                or the file of a scenario, which is read again only once it has changed\n"
            "  set                 changes of the scenario, as after --set\n"
            "  engine              simgrid, fast or ideal; left out: as 'dtsim run': the scenario's,\n"
            "                      or else simgrid. fast gives the same times many times faster\n"
            "  budget              a time ('30 s'), memory of the process with all that it remembers ('4 GiB'), or\n"
            "                      a list of both\n"
            "  advice              false: where memory is short, do not look for what would help\n"
            "  cancel              in a line of its own, {\"cancel\": ID}, which has no answer: the request of\n"
            "                      that id is answered with exit code 130, also if it runs already\n"
            "Metrics and errors are as in 'dtsim run --json', without the scenario that was simulated. A mistake in a "
            "request stands in file \"stdin\", whose lines are the requests. A request whose budget is spent has errors, "
            "and metrics too if only causes are missing. A process that dies costs its request alone (exit code 1). The end "
            "of standard input ends the server once all is answered.\n",
    .main = serve_main,
};
