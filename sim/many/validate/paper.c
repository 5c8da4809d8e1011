#include "validate/paper.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/data.h"
#include "run/metrics.h"
#include "scenario/scenario.h"
#include "validate/plain.h"

static int keep_node(const struct node *value, enum node_kind kind, const char *key, const char *expected, void *object,
                     struct error *err)
{
    struct node_holder *holder = object;

    holder->node = value;
    if (value->kind == kind)
        return 0;
    return error_add(err, EXIT_INPUT, value->loc, "paper: %s: expected %s", key, expected);
}

static int keep_base(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    return keep_node(value, NODE_MAPPING, "base", "a mapping, a scenario", object, err);
}

static int keep_columns(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    return keep_node(value, NODE_SEQUENCE, "columns", "a list of names", object, err);
}

static int keep_rows(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    return keep_node(value, NODE_SEQUENCE, "rows", "a list of rows", object, err);
}

#define NUMBER(member, help) \
    {KEY(bars, member), .kind = FIELD_QUANTITY, .brief = help}
static const struct field bars_fields[] = {
    NUMBER(mean, "upper bound of the mean of the absolute errors, in %"),
    NUMBER(max, "upper bound of the largest absolute error, in %"),
    NUMBER(bias, "upper bound of the absolute value of the mean error, in %"),
    NUMBER(rank, "lower bound of the rank correlation, mean over the groups"),
    NUMBER(memory, "upper bound of the number of rows for which it is predicted wrongly whether they fit in memory"),
    NUMBER(largest, "lower bound of the share of rows, in %, whose micro-batch is predicted to fit and twice of it not "
                    "to fit; needs 'largest: true'"),
};
static const struct table bars_table = {TABLE("paper: bars", "the accuracy that the table must have", bars,
                                              bars_fields)};

static const struct table list_table = {.name = "paper", .brief = "a list", .size = sizeof(struct node_holder)};
static const struct field paper_fields[] = {
    {KEY(paper, title), .kind = FIELD_STRING,
     .brief = "a few words for a table of papers; left out: the name of the file"},
    {KEY(paper, source), .kind = FIELD_STRING, .required = true, .brief = "the authors, and the table of the paper"},
    {KEY(paper, notes), .kind = FIELD_STRING, .brief = "hardware, assumptions, unconfirmed facts"},
    {KEY(paper, fitted), .kind = FIELD_STRING,
     .brief = "the parameters that were fitted to these rows; left out: none, everything is predicted"},
    {KEY(paper, largest), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "every row's micro-batch is the largest that ran: twice as large, in twice the batch, it must not fit"},
    {KEY(paper, bars), .kind = FIELD_RECORD, .table = &bars_table,
     .brief = "the accuracy that the first measured column must have"},
    {.key = "columns", AT(paper, columns_node), .kind = FIELD_RECORD, .table = &list_table, .load = keep_columns,
     .required = true,
     .brief = "names of the columns: id, group, expect (fits or oom), relative_to (an id), measured.METRIC (as in "
              "result.json), ratio.METRIC (to the row of relative_to), or a dotted path of the scenario"},
    {.key = "rows", AT(paper, rows_node), .kind = FIELD_RECORD, .table = &list_table, .load = keep_rows,
     .required = true, .brief = "the rows, each a list of cells; a null cell does not change the scenario"},
    {KEY(paper, base), .kind = FIELD_RECORD, .table = &scenario_table, .load = keep_base, .required = true,
     .brief = "the scenario that the rows change"},
};
const struct table paper_table = {TABLE("paper", "a published measurement", paper, paper_fields)};

static const char *metric_candidate(size_t i, const void *context)
{
    (void)context;
    return metric_at(i) ? metric_at(i)->name : NULL;
}

static int column_metric(struct column *column, const char *name, struct error *err)
{
    const char *meant = error_shows(err, &column->node->loc) ? nearest(name, metric_candidate, NULL) : NULL;

    column->metric = metric_find(name);
    if (column->metric)
        return 0;
    return error_add(err, EXIT_INPUT, column->node->loc, "paper: columns: unknown metric '%s'%s%s%s", name,
                     meant ? "; did you mean '" : "; expected one of result.json, such as iteration_time_s",
                     meant ? meant : "", meant ? "'?" : "");
}

/* A path as conf_put takes it: no empty part. */
static bool is_path(const char *text)
{
    size_t length = strlen(text);

    return length > 0 && text[0] != '.' && text[length - 1] != '.' && !strstr(text, "..");
}

static int read_column(const struct node *node, struct column *column, struct error *err)
{
    static const struct { const char *name; enum column_kind kind; } own[] = {
        {"id", COLUMN_ID}, {"group", COLUMN_GROUP}, {"expect", COLUMN_EXPECT}, {"relative_to", COLUMN_RELATIVE},
    };
    static const char measured[] = "measured.", ratio[] = "ratio.";

    *column = (struct column){.kind = COLUMN_PATH, .node = node, .path = node->text};
    if (node->kind != NODE_SCALAR || !is_path(node->text))
        return error_add(err, EXIT_INPUT, node->loc, "paper: columns: expected a name such as id, measured.mfu or "
                         "strategy.tensor");
    for (size_t i = 0; i < COUNT(own); i++)
        if (!strcmp(own[i].name, node->text))
            column->kind = own[i].kind;
    column->ratio = !strncmp(node->text, ratio, sizeof ratio - 1);
    if (!column->ratio && strncmp(node->text, measured, sizeof measured - 1))
        return 0;
    column->kind = COLUMN_MEASURED;
    column->name = column->ratio ? node->text : node->text + sizeof measured - 1;
    return column_metric(column, strchr(node->text, '.') + 1, err);
}

static int read_columns(struct paper *paper, struct error *err)
{
    const struct node *node = paper->columns_node.node;
    bool has_id = false, has_measured = false;
    int rc = 0;

    paper->ncolumns = node->count;
    paper->columns = ARENA_ARRAY(&paper->arena, struct column, node->count);
    for (size_t i = 0; i < node->count; i++) {
        if (read_column(node->items[i], &paper->columns[i], err))
            rc = -1;
        has_id |= paper->columns[i].kind == COLUMN_ID;
        has_measured |= paper->columns[i].kind == COLUMN_MEASURED;
        for (size_t k = 0; !rc && k < i; k++)
            if (!strcmp(paper->columns[k].node->text, node->items[i]->text))
                rc = error_add(err, EXIT_INPUT, node->items[i]->loc, "paper: columns: '%s' is given twice",
                               node->items[i]->text);
    }
    if (!rc && !has_id)
        rc = error_add(err, EXIT_INPUT, node->loc, "paper: columns: missing 'id', which names the rows");
    if (!rc && !has_measured)
        rc = error_add(err, EXIT_INPUT, node->loc,
                       "paper: columns: missing a measured column, such as measured.iteration_time_s");
    return rc ? -1 : 0;
}

/* Only a share may be 0: the errors of other metrics are relative to the measured value. Bytes may stand without a unit. */
static int read_number(const struct column *column, const struct node *cell, double *value, struct error *err)
{
    enum unit unit = column->metric->kind == METRIC_BYTES && !column->ratio ? UNIT_BYTES : UNIT_NUMBER;
    bool share = column->metric->kind == METRIC_SHARE && !column->ratio;
    char why[160];

    if (cell->kind == NODE_SCALAR &&
        (!unit_parse(unit, cell->text, value, why, sizeof why) || !unit_parse(UNIT_NUMBER, cell->text, value, why, sizeof why)) &&
        (*value > 0 || (share && *value == 0)))
        return 0;
    return error_add(err, EXIT_INPUT, cell->loc, "paper: %s: expected %s%s", column->node->text,
                     unit_expectation(unit), share ? "" : ", more than 0");
}

static int read_text(const struct column *column, const struct node *cell, const char **text, struct error *err)
{
    *text = cell->text;
    if (cell->kind == NODE_SCALAR)
        return 0;
    return error_add(err, EXIT_INPUT, cell->loc, "paper: %s: expected text", column->node->text);
}

static int read_cell(const struct column *column, const struct node *cell, struct paper_row *row, size_t index,
                     struct error *err)
{
    const char *text;

    if (node_is_null(cell) || column->kind == COLUMN_PATH || column->kind == COLUMN_RELATIVE)
        return 0;
    if (column->kind == COLUMN_MEASURED)
        return read_number(column, cell, &row->measured[index], err);
    if (read_text(column, cell, &text, err))
        return -1;
    if (column->kind == COLUMN_ID)
        row->id = text;
    if (column->kind == COLUMN_GROUP)
        row->group = text;
    if (column->kind != COLUMN_EXPECT)
        return 0;
    row->oom = !strcmp(text, "oom");
    if (row->oom || !strcmp(text, "fits"))
        return 0;
    return error_add(err, EXIT_INPUT, cell->loc, "paper: expect: expected fits or oom, found '%s'", text);
}

/* The cell under relative_to; NULL: there is none. */
static const char *relative_cell(const struct paper *paper, const struct node *row)
{
    for (size_t c = 0; row->kind == NODE_SEQUENCE && row->count == paper->ncolumns && c < row->count; c++)
        if (paper->columns[c].kind == COLUMN_RELATIVE && !node_is_null(row->items[c]))
            return row->items[c]->text;
    return NULL;
}

/* A row was measured, ran out of memory, or others are relative to it; a ratio is to another row. */
static int check_measured(const struct paper *paper, const struct paper_row *row, struct error *err)
{
    const char *relative = relative_cell(paper, row->node), *other;
    bool says = row->oom;

    for (size_t c = 0; c < paper->ncolumns; c++) {
        if (isnan(row->measured[c]))
            continue;
        says = true;
        if (paper->columns[c].ratio && (!relative || !strcmp(relative, row->id)))
            return error_add(err, EXIT_INPUT, row->node->items[c]->loc,
                             "paper: %s: '%s' has no other row under relative_to", paper->columns[c].name, row->id);
    }
    for (size_t i = 0; !says && i < paper->nrows; i++)
        says = (other = relative_cell(paper, paper->rows_node.node->items[i])) && !strcmp(other, row->id);
    if (says)
        return 0;
    return error_add(err, EXIT_INPUT, row->node->loc,
                     "paper: rows: '%s': nothing was measured; expected a number, or oom under 'expect'", row->id);
}

static int read_row(struct paper *paper, const struct node *node, struct paper_row *row, struct error *err)
{
    int rc = 0;

    *row = (struct paper_row){.node = node, .group = "", .relative = (size_t)(row - paper->rows)};
    row->measured = ARENA_ARRAY(&paper->arena, double, paper->ncolumns);
    if (node->kind != NODE_SEQUENCE || node->count != paper->ncolumns)
        return error_add(err, EXIT_INPUT, node->loc, "paper: rows: expected a list of %zu cells, one "
                         "per column, found %zu", paper->ncolumns, node->kind == NODE_SEQUENCE ? node->count : 0);
    for (size_t i = 0; i < paper->ncolumns; i++) {
        row->measured[i] = NAN;
        if (read_cell(&paper->columns[i], node->items[i], row, i, err))
            rc = -1;
    }
    if (!rc && !row->id)
        rc = error_add(err, EXIT_INPUT, node->loc, "paper: rows: missing id");
    return rc ? -1 : check_measured(paper, row, err);
}

/* Finds the row that this one is relative to; without one it stays the row itself. */
static int find_relative(struct paper *paper, struct paper_row *row, struct error *err)
{
    for (size_t i = 0; i < paper->ncolumns; i++) {
        const struct node *cell = row->node->items[i];

        if (paper->columns[i].kind != COLUMN_RELATIVE || node_is_null(cell))
            continue;
        for (size_t k = 0; k < paper->nrows; k++)
            if (cell->text && !strcmp(paper->rows[k].id, cell->text)) {
                row->relative = k;
                return 0;
            }
        return error_add(err, EXIT_INPUT, cell->loc, "paper: relative_to: there is no row '%s'",
                         cell->text ? cell->text : "");
    }
    return 0;
}

static int read_rows(struct paper *paper, struct error *err)
{
    const struct node *node = paper->rows_node.node;
    int rc = 0;

    paper->nrows = node->count;
    paper->rows = ARENA_ARRAY(&paper->arena, struct paper_row, node->count);
    for (size_t i = 0; i < node->count; i++)
        if (read_row(paper, node->items[i], &paper->rows[i], err))
            rc = -1;
    for (size_t i = 0; !rc && i < node->count; i++) {
        if (find_relative(paper, &paper->rows[i], err))
            rc = -1;
        for (size_t k = 0; !rc && k < i; k++)
            if (!strcmp(paper->rows[k].id, paper->rows[i].id))
                rc = error_add(err, EXIT_INPUT, node->items[i]->loc, "paper: rows: a second row '%s'",
                               paper->rows[i].id);
    }
    return rc ? -1 : 0;
}

/* Reads and checks the mapping. */
static int read_paper(struct arena *arena, const char *path, struct node *root, struct paper *paper, struct error *err)
{
    int rc;

    memset(paper, 0, sizeof *paper);
    rc = root ? field_parse(arena, &paper_table, root, paper, err) : -1;
    paper->arena = *arena;
    paper->file = path;
    paper->name = data_stem(&paper->arena, path);
    if (!paper->title)
        paper->title = paper->name;
    if (!rc && !isnan(paper->bars.largest) && !paper->largest)
        rc = error_add(err, EXIT_INPUT, field_loc(&bars_table, &paper->bars, "largest"), "paper: bars: largest: the "
                       "table does not say that its micro-batches are the largest; expected 'largest: true'");
    return rc || read_columns(paper, err) || read_rows(paper, err) ? -1 : 0;
}

int paper_load(const char *path, struct paper *paper, struct error *err)
{
    struct arena arena = {0};
    struct node *root = NULL;

    if (conf_load(&arena, path, &root, err))
        root = NULL;
    return read_paper(&arena, path, root, paper, err);
}

/* A list of these texts. */
static struct node *list_of(struct arena *arena, const char *const *texts, size_t count)
{
    struct node *list = node_sequence(arena);

    for (size_t i = 0; i < count; i++)
        node_append(arena, list, node_scalar(arena, texts[i], false));
    return list;
}

int paper_of_scenario(const char *path, double seconds, struct paper *paper, struct error *err)
{
    static const char *const columns[] = {"id", "measured.iteration_time_s"};
    struct arena arena = {0};
    struct node *base = NULL, *root = NULL, *rows;

    if (!conf_load(&arena, path, &base, err)) {
        const char *const cells[] = {data_stem(&arena, path), arena_printf(&arena, "%.17g", seconds)};

        root = node_mapping(&arena);
        root->loc = base->loc;
        rows = node_sequence(&arena);
        node_append(&arena, rows, list_of(&arena, cells, COUNT(cells)));
        node_put(&arena, root, "source", node_scalar(&arena, "one's own", true));
        node_put(&arena, root, "columns", list_of(&arena, columns, COUNT(columns)));
        node_put(&arena, root, "rows", rows);
        node_put(&arena, root, "base", base);
    }
    return read_paper(&arena, path, root, paper, err);
}

void paper_release(struct paper *paper)
{
    arena_release(&paper->arena);
    memset(paper, 0, sizeof *paper);
}

int paper_scenario(const struct paper *paper, size_t index, bool plain, const char *const *sets, size_t nsets,
                   struct scenario *scenario, struct error *err)
{
    const struct paper_row *row = &paper->rows[index];
    struct arena arena = {.cache = paper->arena.cache};
    struct node *root = node_mapping(&arena);
    int rc = 0;

    *root = *paper->base.node;
    for (size_t i = 0; !rc && i < paper->ncolumns; i++)
        if (paper->columns[i].kind == COLUMN_PATH && !node_is_null(row->node->items[i]))
            rc = field_open(&arena, &scenario_table, root, paper->columns[i].path, err) ||
                 conf_put(&arena, root, paper->columns[i].path, row->node->items[i],
                          paper->columns[i].node->loc, err) ? -1 : 0;
    if (!rc && plain)
        root = plain_scenario(&arena, root);
    *scenario = (struct scenario){.arena = arena};
    if (!rc)
        rc = scenario_read(&arena, root, sets, nsets, row->id, scenario, err);
    scenario_prefer(scenario, ENGINE_FAST);
    return rc;
}
