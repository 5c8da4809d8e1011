/* Words of scripts: quotes, comments, expansions, arrays, arithmetic, branches; what is not known stands as a mark. */
#include "launch/shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* The words of the script's last command in brackets; marks as {NAME}. An uncertain command has a '?' before it. */
static void read_last(const char *script, char *words, size_t size)
{
    static const struct shell_set sets[] = {{"SAID", "by the caller"}};
    struct shell_commands commands = {0};
    struct arena arena = {0};
    struct error err = {0};
    FILE *out = fmemopen(words, size, "w");

    if (shell_read(&arena, &(struct shell_script){"a.sh", script, strlen(script), sets, COUNT(sets), NULL, 0}, &commands, &err)) {
        fprintf(out, "%d:%d", err.messages[0].loc.line, err.messages[0].loc.column);
    } else if (commands.count) {
        const struct shell_command *last = &commands.items[commands.count - 1];

        fputs(last->certain ? "" : "?", out);
        for (size_t i = 0; i < last->count; i++) {
            fputc('[', out);
            for (const char *c = last->words[i].text; *c; c++)
                fputc(*c == MARK_BEGIN ? '{' : *c == MARK_END ? '}' : *c, out);
            fputc(']', out);
        }
    }
    fclose(out);
    shell_commands_release(&commands);
    error_release(&err);
    arena_release(&arena);
}

static const struct { const char *script, *words; } cases[] = {
    /* quotes, comments, lines */
    {"a b#c # d", "[a][b#c]"},
    {"a 'b $X' \"c d\" e\\ f", "[a][b $X][c d][e f]"},
    {"a \\\n b \\\r\n c", "[a][b][c]"},
    {"a\r\nb 1\r\n", "[b][1]"},
    {"a \"x\\\"y\\n\"", "[a][x\"y\\n]"},
    {"a; b | c && d >f 2>&1", "[d]"}, {"a 2 2>&1 3 4>f &>g", "[a][2][3]"},
    {"\xEF\xBB\xBFrun 1", "[run][1]"},
    {"cat <<E >f\na b\nE\nrun 2", "[run][2]"},
    {"cat <<-'END'\n\tx \"\n\tEND\nrun 3", "[run][3]"},
    /* variables */
    {"X='1  2'; a $X \"$X\"", "[a][1][2][1  2]"},
    {"X=1 Y=${X}2; a ${Y}3 $Y$X", "[a][123][121]"},
    {"export X=1 Y=2\na $X$Y", "[a][12]"},
    {"X=1; X+=2; a $X", "[a][12]"},
    {"a ${X:-5} ${X:-\"${Y:-6}\"} ${SAID:+yes}", "[a][5][6][yes]"},
    {"SAID=other; a \"$SAID\"", "[a][by the caller]"},
    {"X=; a ${X:-d} ${X-e}f", "[a][d][f]"},
    {"a $X $1 ${X%y} $(b \"c)\" (d)) `e`", "[a][{X}][{$1}][{${X%y}}][{$(b \"c)\" (d))}][{`e`}]"},
    /* arrays */
    {"A=(1 \"2 3\" # c\n 4)\na ${A[@]} \"${A[@]}\"", "[a][1][2][3][4][1][2 3][4]"},
    {"A=(1 2); A+=(3); B=\"x ${A[*]} y\"; a $B", "[a][x][1][2][3][y]"},
    {"A=(1 2); a $A", "[a][1]"},
    /* arithmetic */
    {"N=4; a $((N*8/(2+2))) $(( ${N} % 3 - -1 ))", "[a][8][2]"},
    {"a $((2*X)) $((1/0)) $((010)) $((9999999999999*9999999999999))", "[a][{$((2*X))}][{$((1/0))}][{$((010))}]"
     "[{$((9999999999999*9999999999999))}]"},
    /* branches */
    {"if [ 1 == 2 ]; then X=1; elif [[ a = a ]]; then X=2; else X=3; fi; a $X", "[a][2]"},
    {"if [ 3 -gt 2 ]; then X=1; else X=2; fi; a $X", "[a][1]"},
    {"if test -f b; then X=1; else X=2; fi; a $X", "[a][{X}]"},
    {"X=1; if [ -f b ]; then X=2; fi; a $X", "[a][{X}]"},
    {"if [ -z \"\" ] && [ -f b ]; then X=2; fi; a $X", "[a][{X}]"},
    {"if [ a = b ]; then a 1; fi", ""},
    {"if c; then a 1; fi", "?[a][1]"},
    {"for i in 1 2; do a $i; done", "?[a][{i}]"},
    {"X=1; for i in 1 2; do X=$i; done; a $X", "[a][{X}]"},
    {"case $A in b) X=1;; *) X=2;; esac; a $X", "[a][{X}]"},
    {"[ -n \"$A\" ] && X=1; [ x != x ] && Y=1; [ 1 -eq 1 ] && Z=1; a $X $Y $Z", "[a][{X}][{Y}][1]"},
    /* functions, subshells, the shell's own commands; a launch among them knows its words alone */
    {"f() { a $1; }", ""}, {"f() { a $2 \"$@\" $#; }; f x 'y z'", "[a][y][z][x][y z][2]"},
    {"f() { local X=2 Y; a $X$Y; }; X=1; Y=1; f", "[a][2{Y}]"}, {"f() { X=2; }; X=1; f; a $X", "[a][2]"},
    {"f() { return; X=2; }; X=1; f; a $X", "[a][1]"}, {"f() { f; }; f", "1:8"},
    {"X=1; (X=2; a $X)", "[a][2]"}, {"X=1; (X=2); a $X", "[a][1]"}, {"X=1; X=2 a $X", "[a][1]"},
    {"X=1; false && X=2; a $X", "[a][1]"}, {"X=1; a && X=2; b $X", "[b][{X}]"}, {"cd x && a 1", "[a][1]"},
    {"X=1; eval 'X=2'; a $X", "[a][2]"}, {"X=1; let X=2; a $X", "[a][{X}]"}, {"X=1; unset X; a ${X:-3}", "[a][3]"},
    {"a ${X:=4} $X", "[a][4][4]"}, {"set -- 1 2; shift; a $1", "[a][2]"}, {"a 1; exit; b 2", "[a][1]"},
    {"if [ 1 = 1 ] && [[ 2 == 2 && 3 != 4 ]]; then a 1; fi", "[a][1]"}, {"[[ -n \"\" && 1 = 1 ]] && a 1", ""},
    /* scripts in quotes */
    {"C=\"run b.py -x 1\"; srun bash -c \"$C\"; $C -y", "[run][b.py][-x][1][-y]"},
    {"echo \"run b.py -x 1\"", ""},
    /* errors, by their places */
    {"a 'b\nc", "1:3"}, {"a\nb \"c", "2:3"}, {"X=(1 2", "1:3"}, {"a ${X:-b", "1:3"}, {"a $(b", "1:3"}, {"a `b", "1:3"},
    {"a $((1", "1:3"}, {"cat <<E\nb", "2:1"}, {"a \001", "1:3"},
};

static void test_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char words[1024] = "";

        read_last(cases[i].script, words, sizeof words);
        if (strcmp(words, cases[i].words))
            fail_msg("%s: expected %s, found %s", cases[i].script, cases[i].words, words);
    }
}

/* A word knows where its first character was written, through variables and arrays. */
static void test_places(void **state)
{
    static const char script[] = "A=(x\n  y$B)\nB='\n z'\na ${A[1]} ${A[@]} $B";
    struct shell_commands commands = {0};
    struct arena arena = {0};
    struct error err = {0};
    const struct shell_word *words;

    (void)state;
    assert_int_equal(shell_read(&arena, &(struct shell_script){.file = "a.sh", .text = script, .length = strlen(script)}, &commands, &err), 0);
    words = commands.items[commands.count - 1].words;
    assert_string_equal(words[2].text, "x");
    assert_int_equal(words[2].loc.line, 1);
    assert_int_equal(words[3].loc.line, 2);
    assert_int_equal(words[3].loc.column, 3);
    assert_string_equal(words[4].text, "z");
    assert_int_equal(words[4].loc.line, 4);
    assert_int_equal(words[4].loc.column, 2);
    assert_string_equal(shell_unknown(&arena, words[1].text), "${A[1]}");
    shell_commands_release(&commands);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_places)};

    return cmocka_run_group_tests_name("shell", tests, NULL, NULL);
}
