/* shell_block: what stands around commands: blocks that may not run, redirections, here-documents. */
#include "launch/shell_internal.h"

#include <stdlib.h>

#include "base/base.h"

/* A redirection: its file, or the end of a here-document. */
int shell_skip_redirection(struct shell *shell)
{
    bool document = shell_peek(shell, 0) == '<' && shell_peek(shell, 1) == '<' && shell_peek(shell, 2) != '<';
    bool tabs = document && shell_peek(shell, 2) == '-';
    struct fields word = {0};
    int rc;

    while (shell_peek(shell, 0) && strchr("<>&|-", shell_peek(shell, 0)))
        shell->at++;
    shell_skip_blanks(shell, false);
    rc = shell_word(shell, &word, true);
    if (!rc && document && word.count) {
        shell->heredoc = shell_text(shell->arena, &word.items[0]);
        shell->tabs = tabs;
    }
    free(word.items);
    return rc;
}

int shell_skip_document(struct shell *shell)
{
    struct loc opened = shell_loc(shell);
    size_t length = strlen(shell->heredoc);

    while (shell->at < shell->length) {
        size_t n = 0, blanks = 0, first = shell->at;

        while (shell->tabs && shell_peek(shell, blanks) == '\t')
            blanks++;
        while (n < length && shell_peek(shell, blanks + n) == shell->heredoc[n])
            n++;
        while (shell_peek(shell, 0) && shell_peek(shell, 0) != '\n')
            shell->at++;
        if (n == length && shell->at == first + blanks + n) {
            shell->heredoc = NULL;
            return 0;
        }
        shell->at++;
    }
    return error_add(shell->err, EXIT_INPUT, opened, "the text in the file is never closed; expected a line '%s'",
                     shell->heredoc);
}

struct frame *shell_top(struct shell *shell)
{
    return shell->nframes > shell->base ? &shell->frames[shell->nframes - 1] : NULL;
}

static enum life less(enum life a, enum life b)
{
    return a < b ? a : b;
}

static enum life inverse(enum life status)
{
    return status == LIFE_SURE ? LIFE_DEAD : status == LIFE_DEAD ? LIFE_SURE : LIFE_MAYBE;
}

static void begin_list(struct shell *shell)
{
    shell->list = (struct chain){.life = shell->life, .before = LIFE_SURE, .status = LIFE_SURE,
                                .begin = shell->undo.count, .element = shell->undo.count};
}

int shell_open(struct shell *shell, enum frame_kind kind)
{
    struct loc loc = shell_loc(shell);

    if (shell->nframes == SHELL_MAX_FRAMES)
        return error_add(shell->err, EXIT_INPUT, loc, "blocks are nested more than %d deep", SHELL_MAX_FRAMES);
    shell->frames[shell->nframes++] = (struct frame){
        .kind = kind, .outer = shell->life, .reach = shell->reach, .ended = shell->ended, .condition = kind == FRAME_IF, .list = shell->list,
        .snapshots = shell->undo.count};
    shell->life = kind == FRAME_FUNCTION ? LIFE_DEAD :
                  less(shell->now, kind == FRAME_LOOP || kind == FRAME_CASE ? LIFE_MAYBE : LIFE_SURE);
    shell->frames[shell->nframes - 1].life = shell->life;
    shell->last = LIFE_SURE;
    begin_list(shell);
    return 0;
}

void shell_close(struct shell *shell, enum life status)
{
    const struct frame *frame = &shell->frames[--shell->nframes];

    shell->life = frame->outer;
    shell->list = frame->list;
    if (frame->kind != FRAME_FUNCTION)
        shell_succeeded(shell, status);
}

void shell_succeeded(struct shell *shell, enum life status)
{
    struct chain *list = &shell->list;

    status = list->negated ? inverse(status) : status;
    list->any = true;
    list->status = list->joint == JOINT_AND ? less(list->before, status) :
                   list->joint == JOINT_OR && status < list->before ? list->before : status;
}

/* What a command behind a pipe has set does not last. */
static void end_pipe(struct shell *shell)
{
    if (shell->list.piped)
        shell_undo(shell, shell->list.element);
}

void shell_end_list(struct shell *shell)
{
    end_pipe(shell);
    if (shell->list.any)
        shell->last = shell->list.status;
    begin_list(shell);
}

void shell_join(struct shell *shell, enum joint joint)
{
    struct chain *list = &shell->list;

    end_pipe(shell);
    list->before = list->status;
    list->joint = joint;
    list->life = less(shell->life, joint == JOINT_AND ? list->before : inverse(list->before));
    list->piped = list->negated = false;
    list->element = shell->undo.count;
}

/* then, elif, else: whether the branch is taken. */
static void branch(struct shell *shell, struct frame *top, char word)
{
    enum life condition = word == 't' ? shell->last : LIFE_SURE;

    if (word == 'i') {                                       /* elif: its condition is tried where no branch was taken */
        top->condition = true;
        shell->life = top->taken ? LIFE_DEAD : top->maybe ? less(top->life, LIFE_MAYBE) : top->life;
    } else {
        top->condition = false;
        shell->life = condition == LIFE_DEAD || top->taken ? LIFE_DEAD :
                      top->maybe || condition < LIFE_SURE ? less(top->life, LIFE_MAYBE) : top->life;
        top->taken |= condition == LIFE_SURE;
        top->maybe |= condition > LIFE_DEAD && condition < LIFE_SURE;
    }
    shell->last = LIFE_SURE;
    begin_list(shell);
}

static int end_block(struct shell *shell, const char *word)
{
    struct frame *top = shell_top(shell);
    bool fits = top && (*word == 'f' ? top->kind == FRAME_IF : *word == 'd' ? top->kind == FRAME_LOOP :
                        top->kind == FRAME_CASE);

    if (!fits)
        return error_add(shell->err, EXIT_INPUT, shell_loc(shell), "'%s' ends no block that began", word);
    shell_close(shell, LIFE_LIKELY);
    return 0;
}

void shell_end_function(struct shell *shell)
{
    const struct frame *top = shell_top(shell);

    *GROW(&shell->functions) = (struct shell_function){top->name, shell->source + top->body, shell->at - 1 - top->body,
                                                 top->close == ')', top->taken};
}

static void end_group(struct shell *shell)
{
    struct frame *top = shell_top(shell);

    if (!top || (top->kind != FRAME_GROUP && (top->kind != FRAME_FUNCTION || top->close != '}')))
        return;
    if (top->kind == FRAME_FUNCTION)
        shell_end_function(shell);
    shell_close(shell, shell->last);
}

int shell_keyword(struct shell *shell, const char *word, bool *is)
{
    struct frame *top = shell_top(shell);
    bool loop = !strcmp(word, "for") || !strcmp(word, "while") || !strcmp(word, "until") || !strcmp(word, "select");

    *is = true;
    if (!strcmp(word, "if") || !strcmp(word, "case") || loop) {
        shell->loop_name = *word == 'f' || *word == 's';
        shell->case_word = *word == 'c';
        return shell_open(shell, loop ? FRAME_LOOP : *word == 'i' ? FRAME_IF : FRAME_CASE);
    }
    if (!strcmp(word, "then") || !strcmp(word, "else") || !strcmp(word, "elif")) {
        if (top && top->kind == FRAME_IF)
            branch(shell, top, word[0] == 'e' && word[2] == 'i' ? 'i' : *word);
        return 0;
    }
    if (!strcmp(word, "fi") || !strcmp(word, "done") || !strcmp(word, "esac"))
        return end_block(shell, word);
    if (!strcmp(word, "{"))
        return shell_open(shell, FRAME_GROUP);
    if (!strcmp(word, "}"))
        end_group(shell);
    else if (!strcmp(word, "!"))
        shell->list.negated = !shell->list.negated;
    else
        *is = !strcmp(word, "do") || !strcmp(word, "time");
    return 0;
}

int shell_function(struct shell *shell, const char *name, size_t begin)
{
    struct frame *top;
    char open;

    shell_skip_blanks(shell, false);
    if (shell_peek(shell, 0) == '(') {
        while (shell_peek(shell, 0) && shell_peek(shell, 0) != ')')
            shell->at++;
        shell->at++;
    }
    shell_skip_blanks(shell, true);
    open = shell_peek(shell, 0);
    if (open != '{' && open != '(') {
        shell_doubt(shell, begin, NULL, shell->now);
        return 0;
    }
    shell->at++;
    if (shell_open(shell, FRAME_FUNCTION))
        return -1;
    top = shell_top(shell);
    top->taken = shell->now == LIFE_SURE;
    top->name = name;
    top->body = shell->at;
    top->close = open == '{' ? '}' : ')';
    return 0;
}
