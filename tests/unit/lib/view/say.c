/* Views and sentences: a row is said once and is everywhere, and without it nothing is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "view/say.h"
#include "view/view.h"

struct wheel { double radius_m; };
struct car { const char *name; double time_s, share, bytes; int wheels; struct wheel wheel[2]; bool red; };

#define WHEEL(ROW) ROW(radius_m, json_finite(it->radius_m), "of one")
VIEW(wheel_view, struct wheel, it, WHEEL)

#define CAR(ROW) \
    ROW(name, json_words(it->name), "of the car") \
    ROW(time_s, json_finite(it->time_s), "of the way", .words = "the way") \
    ROW(load_bytes, json_finite(it->bytes), "what it brings") \
    ROW(late_share, json_finite(it->share), "of its ways") \
    ROW(wheels, it->wheels ? view_list(&wheel_view, it->wheel, (size_t)it->wheels, sizeof *it->wheel) : NULL, \
        "left out: none", .form = VIEW_LIST, .of = &wheel_view) \
    ROW(wheel, view_json(&wheel_view, it->wheel), "the first", .of = &wheel_view) \
    ROW(count, json_integer(it->wheels), NULL) \
    ROW(red, json_boolean(it->red), NULL)
VIEW(car_view, struct car, it, CAR)

static const struct car car = {"a|b", 1.5e-3, 0.058, 5e9, 2, {{0.5}, {0.25}}, true};

static char *of(const struct view *view, const struct car *it, const char *line)
{
    json_t *facts = view_facts(view, it);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    say(facts, line, out);
    fclose(out);
    json_decref(facts);
    return text;
}

static void expect(const char *line, const char *expected)
{
    char *text = of(&car_view, &car, line);

    assert_string_equal(text, expected);
    free(text);
}

static void test_lines(void **state)
{
    (void)state;
    expect("{name}: {time_s}, {load_bytes}, {late_share:share}\n", "a|b: 1.5 ms, 4.657 GiB, 5.8 %\n");
    expect("{name:cell} {time_s*1e6:%.1f} us {time_s/3600:%.2g} h", "a\\|b 1500.0 us 4.2e-07 h");
    expect("{count wheel}, {wheel.radius_m:%.1f}; {wheel.radius_m*2:%.0f metre}", "2 wheels, 0.5; 1 metre");
    expect("{load_bytes:count}|{count@4}|{count@-4}|", "5 B|   2|2   |");
    expect("{time_s~count}", "0.0015 s");
    expect("a[ {nothing}] b", "a b");
    expect("a[ {nothing}|, {wheel.nothing}|, {count}|, {red}] b", "a, 2 b");
    expect("x {nothing}", "");
    expect("[?count>1 many][?count<1 none][?count=2  two][?count!2 not][?red  red][?nothing  no][?nothing=2  no]", "many two red");
    expect("[?count>late_share more[?red  and[ {nothing}] red]]", "more and red");
    expect("\\[\\{{count}\\}\\]", "[{2}]");
}

static char *help_of(const struct view *view)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    view_help(view, "", out);
    fclose(out);
    return text;
}

static void test_rows(void **state)
{
    json_t *json = view_json(&car_view, &car);
    char *text = json_text(json), *help = help_of(&car_view);

    (void)state;
    assert_string_equal(text, "{\"name\":\"a|b\",\"time_s\":0.0015,\"load_bytes\":5000000000.0,\"late_share\":0.058,"
                        "\"wheels\":[{\"radius_m\":0.5},{\"radius_m\":0.25}],\"wheel\":{\"radius_m\":0.5}}");
    assert_non_null(strstr(help, "  wheels[].radius_m                        of one\n"));
    assert_non_null(strstr(help, "  wheel.radius_m                           of one\n"));
    assert_null(strstr(help, "red"));
    free(text);
    free(help);
    json_decref(json);
}

/* Without a row its key is nowhere. */
static void test_without(void **state)
{
    static const char line[] = "[{name} ][{time_s} ][{load_bytes} ][{late_share} ][?wheels some wheels ][{wheel.radius_m}]";
    size_t whole;
    char *text = of(&car_view, &car, line);

    (void)state;
    whole = strlen(text);
    free(text);
    for (size_t i = 0; i < car_view.count && car_view.rows[i].brief; i++) {
        struct view_row rows[8];
        struct view less = {rows, car_view.count, car_view.value};
        json_t *json;
        char *help;

        memcpy(rows, car_view.rows, sizeof rows);
        rows[i].key = NULL;
        json = view_json(&less, &car);
        help = help_of(&less);
        text = of(&less, &car, line);
        assert_null(json_object_get(json, car_view.rows[i].key));
        assert_null(strstr(help, car_view.rows[i].brief));
        assert_true(strlen(text) < whole);
        free(text);
        free(help);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_rows), cmocka_unit_test(test_without)};

    return cmocka_run_group_tests_name("say", tests, NULL, NULL);
}
