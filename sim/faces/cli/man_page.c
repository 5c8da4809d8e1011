/* man_page: the manual page, from the tables of the help. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/help.h"

/* Text as groff takes it: signs that steer it are written as their names. */
static void put(const char *text, FILE *out)
{
    bool first = true;       /* of a line */

    for (; *text; text++) {
        if (first && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        first = *text == '\n';
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\'')
            fputs("\\(aq", out);
        else if (*text == '^' || *text == '~')
            fprintf(out, "\\(%s", *text == '^' ? "ha" : "ti");
        else
            fputc(*text, out);
    }
}

/* Lines that stay as they are, or, without a blank before them, paragraphs. */
static void put_lines(const char *text, FILE *out)
{
    struct arena arena = {0};

    for (size_t length; *text; text += length + (text[length] == '\n')) {
        bool stays = *text == ' ';

        length = strcspn(text, "\n");
        fputs(stays ? ".nf\n" : ".PP\n", out);
        put(arena_strndup(&arena, text, length), out);
        fputs(stays ? "\n.fi\n" : "\n", out);
    }
    arena_release(&arena);
}

static void put_command(const struct command *command, FILE *out)
{
    struct arena arena = {0};
    char *usage = NULL;
    size_t size;
    FILE *text = text_open(&usage, &size);

    command_usage(command, 0, INT_MAX, text);
    text_close(text, &usage);
    fprintf(out, ".SS %s\n", command->name);
    put(command->brief, out);
    fputs("\n.PP\n", out);
    put(usage, out);
    fputs("\n.PP\n", out);
    put_lines(command->examples, out);
    for (size_t k = 0; k < command->noptions; k++) {
        fputs(".TP\n", out);
        put(option_head(&arena, &command->options[k]), out);
        fputc('\n', out);
        put(option_help(&arena, &command->options[k]), out);
        fputc('\n', out);
    }
    put_lines(command->more ? command->more : "", out);
    free(usage);
    arena_release(&arena);
}

static void put_files(FILE *out)
{
    static const struct { const char *name, *text; } files[] = {
        {"DTSIM_DATA", "a folder that is searched for platforms/, platforms/gpus/, platforms/communication/, "
                       "platforms/software/, calibration/data/ and scenarios/models/ before the files that came with the "
                       "program"},
        {"NO_COLOR, CLICOLOR_FORCE", "messages without colour, and with colour though they do not go to a terminal"},
    };

    fputs(".SH ENVIRONMENT\n", out);
    for (size_t i = 0; i < COUNT(files); i++) {
        fprintf(out, ".TP\n.B %s\n", files[i].name);
        put(files[i].text, out);
        fputc('\n', out);
    }
}

void man_page_print(FILE *out)
{
    fputs(".TH DTSIM 1 \"\" \"dtsim " DTSIM_VERSION "\" \"User Commands\"\n.ad l\n.nh\n"
          ".SH NAME\ndtsim \\- predicts how long distributed training of neural networks takes, and why\n"
          ".SH SYNOPSIS\n.B dtsim\n.I COMMAND\n[\\fIARGUMENT\\fR]...\n.SH DESCRIPTION\n", out);
    put("dtsim simulates one training iteration of a neural network on a GPU cluster: pipeline schedules, collectives, "
        "ZeRO, memory. A scenario, a YAML file, names the model, the cluster, the batch and how to divide the work; "
        "'dtsim help scenario' explains every key. Results go to standard output, messages to standard error.\n", out);
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; command_at(i); i++)
        put_command(command_at(i), out);
    fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; exit_text_at(i); i++) {
        fprintf(out, ".TP\n.B %d\n", (int)exit_text_at(i)->code);
        put(exit_text_at(i)->text, out);
        fputc('\n', out);
    }
    put_files(out);
}
