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
static int undate(const char *path, struct error *err)
{
    static const char mark[] = "/CreationDate (D:", date[] = "20000101000000";
    FILE *file = fopen(path, "r+b");
    size_t matched = 0;
    struct loc loc = {.file = path};
    int c, failed;

    if (!file)
        return error_system(err, loc, "cannot open the picture");
    while ((c = getc(file)) != EOF) {
        matched = c == mark[matched] ? matched + 1 : c == mark[0];
        if (matched < sizeof mark - 1)
            continue;
        fseek(file, 0, SEEK_CUR);
        fwrite(date, 1, sizeof date - 1, file);
        break;
    }
    failed = ferror(file) ? -1 : 0;
    if (fclose(file) || failed)
        failed = error_system(err, loc, "cannot remove the date from the picture");
    return failed;
}

static int is_made(const char *path, bool *made, struct error *err)
{
    struct stat info = {0};

    if (stat(path, &info) && errno != ENOENT)
        return error_system(err, (struct loc){.file = path}, "cannot find out whether it is there");
    *made = info.st_size > 0;
    return 0;
}

int gnuplot_run(const struct chart *chart, struct error *err)
{
    const char *folder = chart->folder, *script = arena_printf(chart->arena, "%s.gp", chart->name);
    struct loc loc = {.file = arena_printf(chart->arena, "%s/%s", folder, script)};
    const char *path = arena_printf(chart->arena, "%s/%s.%s", chart->staging.path, chart->name, chart->format);
    const char *const arguments[] = {"gnuplot", "-d", script, NULL};
    const struct tool tool = {chart->staging.path, arguments, STDERR_FILENO, TOOL_SECONDS};
    char text[4096];
    int status = 0, failed;
    bool made = false;

    failed = tool_run(&tool, text, sizeof text, &status);
    if (failed == ENOENT)
        error_add(err, EXIT_NO_TOOL, (struct loc){0},
                  "gnuplot is not installed (Debian: apt install gnuplot-nox; macOS: brew install gnuplot); "
                  "the chart's data and script are in '%s'", folder);
    else if (failed == ETIMEDOUT)
        error_add(err, EXIT_UNEXPECTED, loc, "gnuplot had not ended after %d s, and was killed; the chart's data and "
                  "script are in '%s'", TOOL_SECONDS, folder);
    else if (failed)
        error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "cannot start gnuplot in the folder '%s' with /dev/null as its "
                  "input: %s", folder, strerror(failed));
    else if (WIFSIGNALED(status))
        failed = error_add(err, EXIT_UNEXPECTED, loc, "gnuplot was ended by signal %d", WTERMSIG(status));
    else if (is_made(path, &made, err))
        failed = -1;
    else if (WEXITSTATUS(status) || !made)
        failed = error_add(err, EXIT_UNEXPECTED, loc, "gnuplot: %s", last_words(text));
    else if (strcmp(chart->format, "pdf") == 0)
        failed = undate(path, err);
    if (failed)
        unlink(path);                /* half a picture is none */
    return failed == EINTR ? EINTR : failed ? -1 : 0;
}
