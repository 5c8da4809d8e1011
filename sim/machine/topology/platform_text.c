#include "topology/platform_text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"

/* The text and how far it is read; line and column of `at` are counted as it goes on. */
struct piece { const char *text; size_t length; struct loc loc; };
struct scan {
    const char *file, *at, *end;
    int line, column;
    struct error *err;
    const char *wanted;              /* a value that is looked for, on a line or (0) anywhere; NULL: none */
    int wanted_line;
    struct piece found;              /* the attribute that has it */
};
/* What is refused: an attribute of an element ("" for any), with that value (NULL for any). */
static const struct refused { const char *element, *attribute, *value, *why, *try; } refusals[] = {
    {"link", "bandwidth_file", NULL, "a bandwidth that changes with time is not simulated", "leave it out, and give the "
     "bandwidth of the time in question"},
    {"link", "latency_file", NULL, "a latency that changes with time is not simulated", "leave it out, and give the latency "
     "of the time in question"},
    {"link", "state_file", NULL, "a link that fails and comes back is not simulated", "leave it out, or a scenario without "
     "this link"},
    {"host", "state_file", NULL, "a host that fails and comes back is not simulated", "leave it out; 'dtsim train' has failures "
     "of nodes"},
    {"", "sharing_policy", "WIFI", "links of Wi-Fi are not simulated", "sharing_policy SHARED or SPLITDUPLEX, and the bandwidth "
     "of one station"},
    {"zone", "routing", "Wifi", "zones of Wi-Fi are not simulated", "another routing, and the bandwidth of one station"},
    {"trace_connect", "kind", "BANDWIDTH", "a bandwidth that changes with time is not simulated", "leave it out"},
    {"trace_connect", "kind", "LATENCY", "a latency that changes with time is not simulated", "leave it out"},
    {"trace_connect", "kind", "LINK_AVAIL", "a link that fails and comes back is not simulated", "leave it out"},
    {"trace_connect", "kind", "HOST_AVAIL", "a host that fails and comes back is not simulated", "leave it out"},
};

static void step(struct scan *scan)
{
    scan->column++;
    if (*scan->at++ == '\n') {
        scan->line++;
        scan->column = 1;
    }
}

static bool begins(const struct scan *scan, const char *text)
{
    size_t length = strlen(text);

    return (size_t)(scan->end - scan->at) >= length && !memcmp(scan->at, text, length);
}

/* Goes on behind the next `text`, or to the end. */
static void pass(struct scan *scan, const char *text)
{
    size_t length = strlen(text);

    while (scan->at < scan->end && !begins(scan, text))
        step(scan);
    for (size_t i = 0; i < length && scan->at < scan->end; i++)
        step(scan);
}

static void blanks(struct scan *scan)
{
    while (scan->at < scan->end && isspace((unsigned char)*scan->at))
        step(scan);
}

/* Up to a blank or one of the ends of a name. */
static struct piece name(struct scan *scan)
{
    struct piece piece = {scan->at, 0, {scan->file, scan->line, scan->column}};

    while (scan->at < scan->end && !isspace((unsigned char)*scan->at) && !strchr("=/>\"'", *scan->at))
        step(scan);
    piece.length = (size_t)(scan->at - piece.text);
    return piece;
}

/* A value between quotation marks; none: the text is no XML. */
static struct piece value(struct scan *scan)
{
    struct piece piece = {scan->at, 0, {scan->file, scan->line, scan->column}};
    const char quote = scan->at < scan->end ? *scan->at : '\0';

    if (quote != '"' && quote != '\'')
        return piece;
    step(scan);
    piece.text = scan->at;
    while (scan->at < scan->end && *scan->at != quote)
        step(scan);
    piece.length = (size_t)(scan->at - piece.text);
    if (scan->at < scan->end)
        step(scan);
    return piece;
}

static bool is(struct piece piece, const char *text)
{
    return piece.length == strlen(text) && !strncasecmp(piece.text, text, piece.length);
}

static void look_for(struct scan *scan, struct piece attribute, struct piece said)
{
    size_t length = strlen(scan->wanted);

    if (!scan->found.length && length && said.length >= length && (scan->wanted_line || said.length == length) &&
        !memcmp(said.text + said.length - length, scan->wanted, length) &&
        (!scan->wanted_line || scan->wanted_line == attribute.loc.line))
        scan->found = attribute;
}

static void check(const struct scan *scan, struct piece element, struct piece attribute, struct piece said)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const struct refused *row = &refusals[i];

        if ((!*row->element || is(element, row->element)) && is(attribute, row->attribute) &&
            (row->value ? is(said, row->value) : said.length > 0))
            error_add(scan->err, EXIT_INPUT, attribute.loc, "found %.*s=\"%.*s\"; %s; expected none; try: %s",
                      (int)attribute.length, attribute.text, (int)(said.length < 60 ? said.length : 60), said.text, row->why,
                      row->try);
    }
}

/* The attributes of an element, up to its end. */
static void attributes(struct scan *scan, struct piece element)
{
    for (;;) {
        struct piece attribute, said;

        blanks(scan);
        attribute = name(scan);
        if (!attribute.length)
            return;
        blanks(scan);
        if (scan->at >= scan->end || *scan->at != '=')
            return;
        step(scan);
        blanks(scan);
        said = value(scan);
        if (scan->wanted)
            look_for(scan, attribute, said);
        else
            check(scan, element, attribute, said);
    }
}

static void elements(struct scan *scan)
{
    while (scan->at < scan->end) {
        if (begins(scan, "<!--")) {
            pass(scan, "-->");
        } else if (begins(scan, "<?")) {
            pass(scan, "?>");
        } else if (begins(scan, "<![CDATA[")) {
            pass(scan, "]]>");
        } else if (*scan->at == '<') {
            step(scan);
            attributes(scan, name(scan));
        } else {
            step(scan);
        }
    }
}

int platform_text_check(const char *file, const char *text, size_t length, struct error *err)
{
    struct scan scan = {.file = file, .at = text, .end = text + length, .line = 1, .column = 1, .err = err};
    int before = err->count;

    elements(&scan);
    return err->count == before ? 0 : -1;
}

const char *platform_text_find(struct arena *arena, const char *text, size_t length, const char *value, int line, struct loc *loc)
{
    struct scan scan = {.at = text, .end = text + length, .line = 1, .column = 1, .wanted = value, .wanted_line = line};

    elements(&scan);
    loc->line = scan.found.length ? scan.found.loc.line : loc->line;
    loc->column = scan.found.length ? scan.found.loc.column : loc->column;
    return scan.found.length ? arena_strndup(arena, scan.found.text, scan.found.length) : NULL;
}
