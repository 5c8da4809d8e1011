#include "serve/mcp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "files/data.h"
#include "files/json.h"
#include "files/look.h"
#include "process/pool.h"
#include "process/sandbox.h"
#include "serve/mcp_message.h"
#include "serve/request.h"
#include "serve/requested.h"

/* A call of a tool. */
struct call {
    json_t *message;
    struct budget budget;
    pid_t pid;                   /* 0: it waits */
    int ends, said, words;       /* descriptors: readable once the process has ended; memory that holds its output */
    double began, told;          /* s of pool_now; when progress was told last */
};

struct server {
    const struct mcp *mcp;
    struct { struct call *items; size_t count, capacity; } calls;    /* in the order in which they came */
    size_t running;
    struct { char *items; size_t count, capacity; } line;            /* what is there of it */
    const char *read[5];         /* what calls may read besides the working folder, up to NULL */
    unsigned answers;            /* files that hold the rest of an answer */
};

static const char *tool_of(const struct call *call)
{
    return json_string_value(json_object_get(json_object_get(call->message, "params"), "name"));
}

static _Noreturn void run_call(const struct server *server, const struct call *call, pid_t parent)
{
    const json_t *arguments = json_object_get(json_object_get(call->message, "params"), "arguments");
    int nothing = open("/dev/null", O_RDONLY), code;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    if (getppid() != parent || dup2(nothing, STDIN_FILENO) < 0 || dup2(call->said, STDOUT_FILENO) < 0 ||
        dup2(call->words, STDERR_FILENO) < 0)
        _exit(EXIT_UNEXPECTED);
    if (sandbox_confine(".", server->read)) {
        fprintf(stderr, "error: Landlock does not hold the call: %s\n", strerror(errno));
        _exit(EXIT_UNEXPECTED);
    }
    code = server->mcp->call(tool_of(call), arguments, call->budget);
    fflush(stdout);
    _exit(code);
}

/* What a call may take: its argument `budget`, and the server's for what that leaves open. */
static struct budget budget_of(const struct server *server, const json_t *message)
{
    const json_t *limits = json_object_get(json_object_get(json_object_get(message, "params"), "arguments"), "budget");
    struct budget budget = server->mcp->budget;

    if (budget.seconds <= 0)
        budget.seconds = MCP_SECONDS;
    if (json_is_string(limits))
        budget_parse(json_string_value(limits), &budget);
    for (size_t i = 0; i < json_array_size(limits); i++)
        if (json_is_string(json_array_get(limits, i)))
            budget_parse(json_string_value(json_array_get(limits, i)), &budget);
    return budget;
}

static int start(struct server *server, struct call *call, struct error *err)
{
    pid_t parent = getpid();

    call->said = memfd_create("said", MFD_CLOEXEC);
    call->words = memfd_create("words", MFD_CLOEXEC);
    call->began = call->told = pool_now();
    call->pid = call->said < 0 || call->words < 0 ? -1 : fork();
    if (!call->pid)
        run_call(server, call, parent);
    if (call->pid < 0 || (call->ends = (int)syscall(SYS_pidfd_open, call->pid, 0)) < 0)
        return error_system(err, (struct loc){0}, "cannot start a process for a call");
    setpgid(call->pid, call->pid);
    server->running++;
    return 0;
}

static void stop(const struct call *call)
{
    kill(-call->pid, SIGKILL);
    kill(call->pid, SIGKILL);
}

static char *text_of(int file)
{
    struct stat status = {0};
    char *text = NULL;
    ssize_t got = 0;

    if (!fstat(file, &status)) {
        text = xcalloc((size_t)status.st_size + 1, 1);
        got = pread(file, text, (size_t)status.st_size, 0);
    }
    close(file);
    if (text)
        text[got > 0 ? got : 0] = '\0';
    return text ? text : xcalloc(1, 1);
}

/* Writes a file of MCP_FOLDER, which is made where it is missing and is no link to another folder. */
static int keep(const char *name, const char *text, size_t length)
{
    int folder = !mkdir(MCP_FOLDER, 0777) || errno == EEXIST ? open(MCP_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    int file = folder < 0 ? -1 : openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *out = file < 0 ? NULL : fdopen(file, "w");
    bool whole = out && fwrite(text, 1, length, out) == length;

    if (folder >= 0)
        close(folder);
    return (out && fclose(out)) || !whole ? -1 : 0;
}

/* Cuts a text that is longer than `most` bytes, and puts all of it into a file that the text's end names. The caller frees it. */
static char *fitting(struct server *server, const char *tool, char *text, size_t most)
{
    size_t length = strlen(text), cut = most - 200;
    char *name, *shorter;

    if (length <= most)
        return text;
    while (cut && (text[cut] & 0xc0) == 0x80)
        cut--;
    name = xprintf("%s-%ld-%u.%s", tool, (long)getpid(), ++server->answers, *text == '{' || *text == '[' ? "json" : "txt");
    shorter = xprintf("%.*s\n... %zu bytes in all%s " MCP_FOLDER "/%s", (int)cut, text, length,
                      keep(name, text, length) ? ", which could not be written to" : ": read them in", name);
    free(name);
    free(text);
    return shorter;
}

/* The answer to a call that has ended. */
static void answer(struct server *server, struct call *call, int status, bool late)
{
    int code = late ? EXIT_STOPPED : WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_UNEXPECTED;
    char *said = text_of(call->said), *words = text_of(call->words), *compact;
    json_t *json = *said == '{' || *said == '[' ? json_loads(said, 0, NULL) : NULL, *errors = NULL;

    if (code)
        errors = json_incref(json_object_get(json, "errors"));
    if (json) {
        if (errors && json_object_size(json) == 2)       /* with exit_code: words say the same */
            json_object_clear(json);
        compact = json_object_size(json) || json_is_array(json) ? json_text(json) : xcalloc(1, 1);
        free(said);
        said = compact;
    }
    if (late || !WIFEXITED(status)) {
        compact = xprintf(late ? "%serror: stopped: the call did not end within %g s; it may have another 'budget'\n"
                               : "%serror: the call ended early\n", words, call->budget.seconds);
        free(words);
        words = compact;
    }
    words = fitting(server, tool_of(call), words, MCP_MOST / 5);
    said = fitting(server, tool_of(call), said, MCP_MOST - strlen(words) - (errors ? mcp_fit_errors(errors, MCP_MOST / 5) : 0));
    mcp_send_result(call->message, said, words, code, errors);
    json_decref(json);
    json_decref(errors);
    free(said);
    free(words);
}

static void forget(struct server *server, size_t i)
{
    json_decref(server->calls.items[i].message);
    memmove(&server->calls.items[i], &server->calls.items[i + 1],
            (--server->calls.count - i) * sizeof *server->calls.items);
}

/* Ends the call, whose process has ended or is to be killed; says so to the client where it waits for that. */
static void end(struct server *server, size_t i, bool late, bool wanted)
{
    struct call *call = &server->calls.items[i];
    int status = 0;

    if (call->pid) {
        if (late || !wanted)
            stop(call);
        while (waitpid(call->pid, &status, 0) < 0 && errno == EINTR)
            ;
        kill(-call->pid, SIGKILL);
        close(call->ends);
        server->running--;
    }
    if (wanted)
        answer(server, call, status, late);
    else if (call->pid) {
        close(call->said);
        close(call->words);
    }
    forget(server, i);
}

static void cancel(struct server *server, const json_t *message)
{
    const json_t *id = json_object_get(json_object_get(message, "params"), "requestId");

    for (size_t i = 0; i < server->calls.count; i++)
        if (json_equal(json_object_get(server->calls.items[i].message, "id"), id)) {
            end(server, i, false, false);
            return;
        }
}

/* Whether the list of tools has the name. */
static bool has_tool(const struct server *server, const char *name)
{
    json_t *tools = server->mcp->tools();
    bool has = false;

    for (size_t i = 0; name && i < json_array_size(tools); i++)
        has |= !strcmp(json_string_value(json_object_get(json_array_get(tools, i), "name")), name);
    json_decref(tools);
    return has;
}

static void take_call(struct server *server, json_t *message)
{
    struct call call = {.message = message, .budget = budget_of(server, message)};
    json_t *params = json_object_get(message, "params"), *arguments = json_object_get(params, "arguments");

    if ((!arguments || json_is_null(arguments)) && json_is_object(params))
        json_put(params, "arguments", arguments = json_object());
    if (!has_tool(server, tool_of(&call)))
        mcp_send_error(message, MCP_BAD_PARAMS, "there is no tool of that name; tools/list names them");
    else if (!json_is_object(arguments))
        mcp_send_error(message, MCP_BAD_PARAMS, "arguments: expected an object");
    else {
        json_incref(message);
        *GROW(&server->calls) = call;
    }
}

static void take(struct server *server, const char *text, size_t length)
{
    json_t *message = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    const json_t *id = json_object_get(message, "id"), *named = json_object_get(message, "method");
    bool answers = json_object_get(message, "result") || json_object_get(message, "error");      /* nobody asked for it */
    const char *method = json_string_value(named);

    if (!message)
        mcp_send_error(NULL, MCP_NO_JSON, "the line is not JSON");
    else if (!json_is_object(message) || (id && !json_is_string(id) && !json_is_number(id)))
        mcp_send_error(NULL, MCP_NO_REQUEST, "expected a message of JSON-RPC 2.0, with an id that is a text or a number");
    else if (named ? !method : !answers)
        mcp_send_error(message, MCP_NO_REQUEST, "method: expected a text");
    else if (method && !id && !strcmp(method, "notifications/cancelled"))
        cancel(server, message);
    else if (method && id && !strcmp(method, "initialize"))
        mcp_send_welcome(message, server->mcp->instructions);
    else if (method && id && !strcmp(method, "ping"))
        mcp_send(message, json_object());
    else if (method && id && !strcmp(method, "tools/list"))
        mcp_send(message, json_pack("{s:o}", "tools", server->mcp->tools()));
    else if (method && id && !strcmp(method, "tools/call"))
        take_call(server, message);
    else if (method && id)
        mcp_send_error(message, MCP_NO_METHOD, "unknown method; expected initialize, ping, tools/list or tools/call");
    json_decref(message);
}

static void end_line(struct server *server)
{
    if (server->line.count > REQUEST_MOST)
        mcp_send_error(NULL, MCP_NO_REQUEST, "the line is too long; put the scenario into a file");
    else if (server->line.count)
        take(server, server->line.items, server->line.count);
    server->line.count = 0;
}

/* 0: standard input has ended. */
static int read_lines(struct server *server, struct error *err)
{
    char text[64 << 10];
    ssize_t count = read(STDIN_FILENO, text, sizeof text);

    if (count < 0)
        return errno == EINTR ? 1 : error_system(err, (struct loc){.file = REQUESTS}, "cannot read");
    for (char *at = text, *last = text + count, *stop; at < last; at = stop ? stop + 1 : last) {
        stop = memchr(at, '\n', (size_t)(last - at));
        for (const char *end = stop ? stop : last; at < end && server->line.count <= REQUEST_MOST; at++)
            *GROW(&server->line) = *at;
        if (stop)
            end_line(server);
    }
    if (!count)
        end_line(server);
    return count > 0;
}

/* Begins calls that wait, ends those that have ended or are late, and tells of the others how long they have run. */
static int attend(struct server *server, struct error *err)
{
    for (size_t i = server->calls.count; i-- > 0;) {
        struct call *call = &server->calls.items[i];
        double now = pool_now();
        struct pollfd ends = {.fd = call->ends, .events = POLLIN};

        if (!call->pid)
            continue;
        if (poll(&ends, 1, 0) > 0)
            end(server, i, false, true);
        else if (now - call->began > call->budget.seconds + REQUESTED_GRACE)
            end(server, i, true, true);
        else if (now - call->told >= 1) {
            mcp_send_progress(call->message, now - call->began, call->budget.seconds);
            call->told = now;
        }
    }
    for (size_t i = 0; i < server->calls.count && server->running < server->mcp->jobs; i++)
        if (!server->calls.items[i].pid && start(server, &server->calls.items[i], err))
            return -1;
    return 0;
}

static int loop(struct server *server, struct error *err)
{
    struct { struct pollfd *items; size_t count, capacity; } files = {0};
    int reads = 1;

    while (reads > 0 || server->calls.count) {
        files.count = 0;
        *GROW(&files) = (struct pollfd){.fd = reads ? STDIN_FILENO : -1, .events = POLLIN};
        for (size_t i = 0; i < server->calls.count; i++)
            if (server->calls.items[i].pid)
                *GROW(&files) = (struct pollfd){.fd = server->calls.items[i].ends, .events = POLLIN};
        poll(files.items, files.count, server->running ? 200 : -1);
        if (files.items[0].revents && (reads = read_lines(server, err)) < 0)
            break;
        if (attend(server, err) || mcp_unheard(err)) {
            reads = -1;
            break;
        }
    }
    free(files.items);
    return reads < 0 ? -1 : 0;
}

int mcp_serve(const struct mcp *mcp, struct error *err)
{
    struct arena arena = {0};
    struct server server = {.mcp = mcp};
    size_t count = 0;
    int rc;

    if (!sandbox_abi())
        return error_add(err, EXIT_NO_TOOL, (struct loc){0}, "--mcp needs Landlock, which keeps calls to files of the working "
                         "folder; the kernel has none (Linux 5.13 or newer, booted with lsm=landlock,...)");
    server.read[count++] = data_own(&arena, err);
    server.read[count++] = err->count ? NULL : look_program(&arena, err);
    server.read[count++] = "/proc/self/statm";           /* by which a call knows its memory */
    if (getenv("DTSIM_DATA"))
        server.read[count++] = getenv("DTSIM_DATA");
    signal(SIGPIPE, SIG_IGN);
    rc = err->count ? -1 : loop(&server, err);
    while (server.calls.count)
        end(&server, 0, false, false);
    free(server.calls.items);
    free(server.line.items);
    arena_release(&arena);
    return rc;
}
