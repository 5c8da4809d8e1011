/* gnuplot as a child: nothing of the user's own settings, its complaints caught. */
#include "chart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* gnuplot shows the line, a caret below it and then says what is wrong: the last line that says something. */
static const char *last_words(char *text)
{
    const char *words = "";
    char *rest = text;

    for (char *line; (line = strsep(&rest, "\n"));)
        if (line[strspn(line, " \t^")])
            words = line;
    return words;
}

/* PDF files bear the date they were made on. The same run gives the same bytes, so theirs is the first of 2000. */
static void undate(const char *path)
{
    static const char mark[] = "/CreationDate (D:", date[] = "20000101000000";
    FILE *file = fopen(path, "r+b");
    size_t matched = 0;
    int c;

    if (!file)
        return;
    while ((c = getc(file)) != EOF) {
        matched = c == mark[matched] ? matched + 1 : c == mark[0];
        if (matched < sizeof mark - 1)
            continue;
        fseek(file, 0, SEEK_CUR);
        fwrite(date, 1, sizeof date - 1, file);
        break;
    }
    fclose(file);
}

static bool is_made(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && info.st_size > 0;
}

int gnuplot_run(const char *folder, const char *script, const char *picture, struct error *err)
{
    struct arena arena = {0};
    struct loc loc = {.file = arena_printf(&arena, "%s/%s", folder, script)};
    const char *path = arena_printf(&arena, "%s/%s", folder, picture);
    const char *const arguments[] = {"gnuplot", "-d", script, NULL};
    char text[4096];
    int status = 0, failed;

    unlink(path);                    /* so that an old picture is not taken for the new one */
    failed = tool_run(folder, arguments, STDERR_FILENO, text, sizeof text, &status);
    if (failed == ENOENT)
        error_add(err, EXIT_NO_TOOL, (struct loc){0},
                  "gnuplot is not installed (Debian: apt install gnuplot-nox; macOS: brew install gnuplot); "
                  "the chart's data and script are in '%s'", folder);
    else if (failed)
        error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "cannot start gnuplot: %s", strerror(failed));
    else if (WIFSIGNALED(status))
        failed = error_add(err, EXIT_UNEXPECTED, loc, "gnuplot was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) || !is_made(path))
        failed = error_add(err, EXIT_UNEXPECTED, loc, "gnuplot: %s", last_words(text));
    else if (strcmp(strrchr(picture, '.'), ".pdf") == 0)
        undate(path);
    if (failed)
        unlink(path);                /* half a picture is none */
    arena_release(&arena);
    return failed ? -1 : 0;
}
