#include "app/app.h"


#include "cli/cmd.h"
#include "cli/opener.h"

enum { OPT_PORT, OPT_NO_OPEN, OPT_STATE };

/* app's callback. */
static int print(const char *address, struct error *err)
{
    (void)err;
    printf("%s\n", address);
    fflush(stdout);
    fputs("dtsim app: the address opens once, in one browser. Ctrl-C ends it, and so do 30 minutes without a question.\n",
          stderr);
    return 0;
}

static int print_and_open(const char *address, struct error *err)
{
    print(address, err);
    if (!open_in_browser(address))
        fputs("dtsim app: no browser was found to open it; open it yourself\n", stderr);
    return 0;
}

static int app_main(const struct arguments *arguments)
{
    struct app_options asked = {.opened = print_and_open};
    struct error err = {0};
    const char *why;
    int rc;

    asked.state = arguments->values[OPT_STATE];
    why = asked.state ? app_state_refused(asked.state) : NULL;
    if (why)
        return usage_error(arguments->command, "--state: %s", why);
    asked.port = (int)arguments->numbers[OPT_PORT];
    if (arguments->values[OPT_NO_OPEN])
        asked.opened = print;
    rc = app(&asked, &err);
    if (!rc)
        fputs("dtsim app: ended, since nobody asked anything for 30 minutes\n", stderr);
    return rc < 0 ? report(&err) : rc;
}

static const struct option options[] = {
    [OPT_PORT] = {"--port", "N", .help = "listen on this port; left out: on one that is free", OPTION_COUNT, 1, 65535},
    [OPT_NO_OPEN] = {"--no-open", .help = "only print the address"},
    [OPT_STATE] = {"--state", "TEXT", .help = "show this first: what 'copy the state' in the page gave, from '#' on, quoted"},
};

const struct command cmd_app = {
    .name = "app",
    .arguments = "",
    .brief = "Opens a page in a browser in which you change a scenario and see its time, memory and timeline change.",
    .examples = "  dtsim app\n"
                "  dtsim app --no-open --port 8765     (on a server; then on your own machine:)\n"
                "  ssh -L 8765:127.0.0.1:8765 SERVER   (and open the address that it printed)\n"
                "  dtsim app --state '#tour=04-1f1b&strategy.tensor=8'\n",
    .no_set = "--set: the page has its own fields",
    .options = options, .noptions = COUNT(options),
    .more = "\n"
            "The page has a scenario of the tour, or one that you drop on it, and its model, cluster, batch, degrees, "
            "schedule, memory policy and software as fields. It shows time, tokens a second and GPU, MFU, memory against "
            "the limit, where the time goes, the expected error and what runs when; two variants side by side. It gives the "
            "scenario as YAML, and the command line of 'dtsim run'. It simulates on the engine 'fast'.\n"
            "\n"
            "The page is served on 127.0.0.1 alone, to the browser that opens the printed address first. It opens no file "
            "but the ones that came with dtsim (and the files of $DTSIM_DATA): a scenario that it gets names no paths. A "
            "computation takes at most 10 s and 2 GiB.\n",
    .main = app_main,
};
