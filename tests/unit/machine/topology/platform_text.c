/* Platforms of SimGrid's that change with time, or have links of Wi-Fi, are refused at the place that says so, wherever it
 * stands; the same words elsewhere in the file are nothing. */
#include "topology/platform_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

enum { ROUNDS = 3000 };

/* An element with a value that is refused, or that is not. '@' stands before the attribute that is at fault. */
static const struct { const char *text; bool good; } pieces[] = {
    {"<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\" @bandwidth_file=\"b.profile\"/>", false},
    {"<link @latency_file='l.profile' id='l'/>", false},
    {"<link id=\"l\"\n  bandwidth=\"1GBps\"\n\t@state_file = \"s\"/>", false},
    {"<host id=\"h\" speed=\"1Gf\" @state_file=\"s\"></host>", false},
    {"<link id=\"l\" @sharing_policy=\"WIFI\" bandwidth=\"54MBps,36MBps\"/>", false},
    {"<link id=\"l\" @sharing_policy='wifi'/>", false},
    {"<zone id=\"w\" @routing=\"Wifi\">", false},
    {"<trace_connect @kind=\"BANDWIDTH\" trace=\"t\" element=\"l\"/>", false},
    {"<trace_connect trace=\"t\" @kind=\"LINK_AVAIL\" element=\"l\"/>", false},
    {"<link id=\"l\" bandwidth=\"1GBps\" sharing_policy=\"SHARED\"/>", true},
    {"<link id=\"l\" sharing_policy=\"SPLITDUPLEX\" bandwidth_file=\"\"/>", true},
    {"<host id=\"h\" speed=\"1Gf\" speed_file=\"s\"/>", true},         /* hosts' speeds are not read */
    {"<zone id=\"z\" routing=\"Full\">\n", true},
    {"<!-- <link bandwidth_file=\"b\"\n sharing_policy=\"WIFI\"/> -->", true},
    {"<?xml bandwidth_file=\"b\" ?>", true},
    {"<![CDATA[ <link state_file=\"s\"/> ]]>", true},
    {"<prop id=\"bandwidth_file\" value=\"<link state_file='s'/>\"/>", true},
    {"text with bandwidth_file=\"b\" in it\n", true},
    {"\n\n   \t", true},
    {"</zone>", true},
};

/* Adds a piece to the text without its '@'. The number of faults, whose places it adds. */
static int add_piece(const char *piece, char *text, size_t *length, int *line, int *column, struct loc *faults, int count)
{
    for (const char *c = piece; *c; c++) {
        if (*c == '@') {
            faults[count++] = (struct loc){NULL, *line, *column};
            continue;
        }
        text[(*length)++] = *c;
        *column = *c == '\n' ? 1 : *column + 1;
        *line += *c == '\n';
    }
    return count;
}

static void test_places(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        char text[4096];
        struct loc faults[8];
        struct error err = {0};
        size_t length = 0;
        int line = 1, column = 1, count = 0, rc;

        for (uint64_t k = 0; k < 7; k++) {
            size_t i = (size_t)(random_bits(round, k) % COUNT(pieces));

            count = add_piece(pieces[i].text, text, &length, &line, &column, faults, count);
            assert_true(pieces[i].good == !strchr(pieces[i].text, '@'));
        }
        rc = platform_text_check("p.xml", text, length, &err);
        if (err.count != count)
            fail_msg("%d of %d faults in:\n%.*s", err.count, count, (int)length, text);
        assert_int_equal(rc, count ? -1 : 0);
        for (int i = 0; i < count; i++) {
            assert_string_equal(err.messages[i].loc.file, "p.xml");
            assert_int_equal(err.messages[i].loc.line, faults[i].line);
            assert_int_equal(err.messages[i].loc.column, faults[i].column);
            assert_int_equal(err.messages[i].code, EXIT_INPUT);
            assert_non_null(strstr(err.messages[i].text, "try: "));
        }
        error_release(&err);
    }
}

/* Text that ends anywhere is read to its end and no further. */
static void test_cut(void **state)
{
    static const char whole[] = "<?xml version='1.0'?>\n<!-- a --><![CDATA[ b ]]><link id = \"l\" bandwidth_file='f'/></a>";

    (void)state;
    for (size_t length = 0; length < sizeof whole; length++) {
        struct error err = {0};
        char *text = xmalloc(length + 1);      /* no more: the sanitizers see a step beyond */

        memcpy(text, whole, length);
        platform_text_check("p.xml", text, length, &err);
        assert_true(err.count <= 1);
        error_release(&err);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_cut)};

    return cmocka_run_group_tests_name("platform_text", tests, NULL, NULL);
}
