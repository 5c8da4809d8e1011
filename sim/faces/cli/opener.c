#include "cli/opener.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "files/look.h"

enum { KEPT = 60 };          /* s until a browser has read the file */

static bool has_screen(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

    return (x && *x) || (wayland && *wayland);
}

/* A page of this person's alone that leads to the address; the caller frees its path. NULL: it cannot be written. */
static char *write_page(const char *address)
{
    const char *folder = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
    char *path = xprintf("%s/dtsim-app-XXXXXX.html", folder && *folder == '/' ? folder :
                         temporary && *temporary == '/' ? temporary : "/tmp");
    int fd = mkostemps(path, 5, O_CLOEXEC);          /* readable for its owner alone */
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

    if (out)
        fprintf(out, "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">"
                "<title>dtsim</title><meta http-equiv=\"refresh\" content=\"0;url=%s\">\n", address);
    if (out && !fclose(out))
        return path;
    free(path);
    return NULL;
}

/* In a process of its own: starts the program, and removes the page when that has read it. */
static _Noreturn void be_opener(const char *program, const char *page)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;
    pid_t child;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();                        /* Ctrl-C is not for the browser */
    for (int fd = 0; fd <= 2; fd++)
        dup2(nowhere, fd);
    child = fork();
    if (!child) {
        execl(program, "xdg-open", page, (char *)NULL);
        _exit(127);
    }
    sleep(KEPT);
    unlink(page);
    _exit(0);
}

bool open_in_browser(const char *address)
{
    char *program = has_screen() ? look_on_path("xdg-open") : NULL, *page = program ? write_page(address) : NULL;
    pid_t child = page ? fork() : -1;

    if (!child && fork())            /* nobody waits for the process that stays */
        _exit(0);
    if (!child)
        be_opener(program, page);
    if (child > 0)
        waitpid(child, NULL, 0);
    if (child < 0 && page)
        unlink(page);
    free(program);
    free(page);
    return child > 0;
}
