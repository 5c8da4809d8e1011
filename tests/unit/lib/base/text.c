/* text: nothing that others wrote steers a terminal, breaks a table or becomes a formula. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/text.h"

static void expect(enum text_place place, const char *text, const char *expected)
{
    char *made = text_made(place, text);

    assert_string_equal(made, expected);
    free(made);
}

static void test_lines(void **state)
{
    (void)state;
    expect(TEXT_LINE, "plain, \"quoted\" | =1+1", "plain, \"quoted\" | =1+1");
    expect(TEXT_LINE, "a\nb\tc\r", "a\\nb\\tc\\x0D");
    expect(TEXT_LINE, "\033[31mred\033]0;title\007", "\\x1B[31mred\\x1B]0;title\\x07");
    expect(TEXT_LINE, "\177 \302\233 31m", "\\x7F \\xC2\\x9B 31m");                   /* DEL; CSI as one character */
    expect(TEXT_LINE, "gr\303\266\303\237er \342\202\254 \360\237\230\200", "gr\303\266\303\237er \342\202\254 \360\237\230\200");
    expect(TEXT_LINE, "a\342\200\256b\342\201\246c\342\200\250", "a\\xE2\\x80\\xAEb\\xE2\\x81\\xA6c\\xE2\\x80\\xA8");
    expect(TEXT_LINE, "\377 \303 \300\257 \355\240\200", "\\xFF \\xC3 \\xC0\\xAF \\xED\\xA0\\x80");     /* no UTF-8 */
}

static void test_cells(void **state)
{
    (void)state;
    expect(TEXT_MARKDOWN, "a|b <i> [x](y) `c` *d* \\", "a\\|b \\<i\\> \\[x\\](y) \\`c\\` \\*d\\* \\\\");
    expect(TEXT_MARKDOWN, "a\nb", "a\\nb");
    expect(TEXT_CSV, "plain", "plain");
    expect(TEXT_CSV, "a,b", "\"a,b\"");
    expect(TEXT_CSV, "say \"x\"", "\"say \"\"x\"\"\"");
    expect(TEXT_CSV, "a\nb", "a\\nb");
    expect(TEXT_CSV, "=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\"");
    expect(TEXT_CSV, "-1", "\"'-1\"");
    expect(TEXT_CSV, "+1", "\"'+1\"");
    expect(TEXT_CSV, "@x", "\"'@x\"");
    expect(TEXT_CSV, "", "");
}

/* Every byte and every pair of bytes: the result is one line without controls, and CSV reads back as one cell. */
static void test_every_pair(void **state)
{
    (void)state;
    for (int first = 1; first < 256; first++)
        for (int second = 0; second < 256; second++) {
            char text[] = {(char)first, (char)second, 0};

            for (int place = TEXT_LINE; place <= TEXT_CSV; place++) {
                char *made = text_made((enum text_place)place, text);

                for (const char *at = made; *at; at++)
                    assert_true((unsigned char)*at >= 0x20 && *at != 0x7F);
                if (place == TEXT_CSV)
                    assert_true(!strchr("=+-@", made[0]) || !*made);
                free(made);
            }
        }
}

/* Every line begins with the indentation and is no wider than asked for, unless it is one word; no word is lost. */
static void test_wrap(void **state)
{
    static const char words[] = "one two  three four averyverylongwordindeed five six seven";

    (void)state;
    for (int width = 8; width <= 80; width++) {
        char *text = NULL, *line, *rest;
        size_t size, count = 0;
        FILE *out = open_memstream(&text, &size);

        fputs("    ", out);
        text_wrap(words, 4, 4, width, out);
        fclose(out);
        assert_int_equal(text[size - 1], '\n');
        for (rest = text; (line = strsep(&rest, "\n")) && *line; count++) {
            assert_int_equal(strspn(line, " "), 4);
            assert_true(line[strlen(line) - 1] != ' ');
            assert_true((int)strlen(line) <= width || !strchr(line + 4, ' '));
        }
        if (width >= 4 + (int)sizeof words)
            assert_int_equal(count, 1);
        if (width == 8)
            assert_int_equal(count, 8);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines), cmocka_unit_test(test_cells),
        cmocka_unit_test(test_wrap), cmocka_unit_test(test_every_pair),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
