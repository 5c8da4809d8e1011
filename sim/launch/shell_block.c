/* shell_block: what stands around commands: blocks that may not run, redirections, here-documents. */
#include "launch/shell_internal.h"

#include <stdlib.h>

#include "base/base.h"

/* A redirection: its file, or the end of a here-document. */
int shell_skip_redirection(struct shell *shell)
{
    bool document = shell_peek(shell, 0) == '<' && shell_peek(shell, 1) == '<' && shell_peek(shell, 2) != '<';
    struct fields word = {0};
    int rc;

    while (shell_peek(shell, 0) && strchr("<>&|-", shell_peek(shell, 0)))
        shell->at++;
    shell_skip_blanks(shell, false);
    rc = shell_word(shell, &word, true);
    if (!rc && document && word.count)
        shell->heredoc = shell_text(shell->arena, &word.items[0]);
    free(word.items);
    return rc;
}

int shell_skip_document(struct shell *shell)
{
    struct loc opened = shell_loc(shell);
    size_t length = strlen(shell->heredoc);

    while (shell->at < shell->length) {
        size_t n = 0, blanks = 0;

        while (shell_peek(shell, blanks) == '\t' || shell_peek(shell, blanks) == ' ')
            blanks++;
        while (n < length && shell_peek(shell, blanks + n) == shell->heredoc[n])
            n++;
        while (shell_peek(shell, 0) && shell_peek(shell, 0) != '\n')
            shell->at++;
        if (n == length && shell->source[shell->at - 1].c == shell->heredoc[length - 1]) {
            shell->heredoc = NULL;
            return 0;
        }
        shell->at++;
    }
    return error_add(shell->err, EXIT_INPUT, opened, "the text in the file is never closed; expected a line '%s'",
                     shell->heredoc);
}

/* What the words that shells reserve say of the commands around them. false: the word is none of them. */
bool shell_keyword(struct shell *shell, const char *word)
{
    struct frame *top = shell->nframes ? &shell->frames[shell->nframes - 1] : NULL;
    bool loop = !strcmp(word, "for") || !strcmp(word, "while") || !strcmp(word, "until") || !strcmp(word, "select");

    if (!strcmp(word, "if") || !strcmp(word, "case") || loop) {
        if (shell->nframes < SHELL_MAX_FRAMES)
            shell->frames[shell->nframes++] = (struct frame){
                .kind = loop ? FRAME_LOOP : *word == 'i' ? FRAME_IF : FRAME_CASE, .outer = shell->life,
                .condition = *word == 'i'};
        if (*word != 'i' && shell->life == LIFE_SURE)
            shell->life = LIFE_MAYBE;
        return true;
    }
    if (!strcmp(word, "then") || !strcmp(word, "else") || !strcmp(word, "elif")) {
        enum life branch = *word == 't' && top ? (top->tests == 1 ? top->result : LIFE_MAYBE) : LIFE_SURE;

        if (!top || top->kind != FRAME_IF)
            return true;
        if (*word == 'e' && word[2] == 'i') {
            top->condition = true;
            top->tests = 0;
            return true;
        }
        top->condition = false;
        shell->life = top->outer == LIFE_DEAD || branch == LIFE_DEAD || top->taken ? LIFE_DEAD :
                      top->maybe || branch == LIFE_MAYBE ? LIFE_MAYBE : top->outer;
        top->taken |= branch == LIFE_SURE;
        top->maybe |= branch == LIFE_MAYBE;
        return true;
    }
    if (!strcmp(word, "fi") || !strcmp(word, "done") || !strcmp(word, "esac")) {
        if (top)
            shell->life = shell->frames[--shell->nframes].outer;
        return true;
    }
    return !strcmp(word, "do") || !strcmp(word, "{") || !strcmp(word, "}") || !strcmp(word, "function");
}
