#include "schedule/order_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

char *cell_text(const struct order *order, const struct order_cell *cell, char buffer[CELL_SIZE])
{
    int length = snprintf(buffer, CELL_SIZE, "%d%c%d", cell->stage, work_letter(cell->kind), cell->mb);

    if (cell->direction >= 0 && (order->directed || !order->directions))     /* 0: the file is still being read */
        snprintf(buffer + length, CELL_SIZE - (size_t)length, "@%d", cell->direction);
    return buffer;
}

struct loc cell_loc(const struct order *order, const struct order_cell *cell)
{
    return (struct loc){order->file, cell->line, cell->column};
}

/* The text that is being read. */
struct reader {
    struct arena *arena;
    struct order *order;
    struct error *err;
    const char *at, *end;        /* of the text */
    const char *line_start;
    int line, rank;
    struct { struct order_cell *items; size_t count, capacity; } cells;
    const char *cell, *cell_end; /* the cell that is being read, without spaces around it */
};

enum { MOST_RANKS = 65536, MOST_NUMBER = 9999999 };

static struct loc loc_of(const struct reader *reader, const char *at)
{
    return (struct loc){reader->order->file, reader->line, (int)(at - reader->line_start) + 1};
}

static int refuse(struct reader *reader, const char *expected)
{
    char shown[CLIP_SIZE],
        *text = arena_strndup(reader->arena, reader->cell, (size_t)(reader->cell_end - reader->cell));

    text_clip(text, shown, sizeof shown);
    return error_add(reader->err, EXIT_INPUT, loc_of(reader, reader->cell), "expected %s, found '%s'", expected, shown);
}

static bool number(struct reader *reader, int *value)
{
    const char *begin = reader->at;

    for (*value = 0; reader->at < reader->cell_end && isdigit((unsigned char)*reader->at); reader->at++)
        if ((*value = *value * 10 + (*reader->at - '0')) > MOST_NUMBER)
            return false;
    return reader->at > begin;
}

static bool skip(struct reader *reader, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(reader->cell_end - reader->at) < length || memcmp(reader->at, word, length))
        return false;
    reader->at += length;
    return true;
}

/* Reads the kind of a cell. Files with PyTorch's communication have longer names ("0SEND_F1") and are refused. */
static int kind_read(struct reader *reader, enum work_kind *kind)
{
    static const char letters[] = "FBIWR";
    size_t length = 0, left = (size_t)(reader->cell_end - reader->at);
    const char *letter;

    while (length < left && (isalpha((unsigned char)reader->at[length]) || reader->at[length] == '_'))
        length++;
    letter = length == 1 ? memchr(letters, *reader->at, COUNT(letters) - 1) : NULL;
    reader->at += length;
    if (letter) {
        *kind = (enum work_kind)(letter - letters);
        return 0;
    }
    if (length > 3)
        return refuse(reader, "only computation (F, B, I, W or R between stage and micro-batch; communication follows "
                              "from it)");
    return refuse(reader, "a cell such as 0F0: virtual stage, kind (F, B, I, W or R), micro-batch");
}

/* Reads "2F5" or "2F5@1" and the spaces after it. */
static int token_read(struct reader *reader)
{
    struct order_cell cell = {.rank = reader->rank, .line = reader->line, .direction = -1};

    while (reader->at < reader->cell_end && isspace((unsigned char)*reader->at))
        reader->at++;
    cell.column = loc_of(reader, reader->at).column;
    if (!number(reader, &cell.stage))
        return refuse(reader, "a cell such as 0F0: virtual stage, kind (F, B, I, W or R), micro-batch");
    if (kind_read(reader, &cell.kind))
        return -1;
    if (!number(reader, &cell.mb))
        return refuse(reader, "a cell such as 0F0, with a micro-batch from 0 to 9999999");
    if (skip(reader, "@") && (!number(reader, &cell.direction) || cell.direction > 1))
        return refuse(reader, "a direction, @0 or @1, after the micro-batch");
    while (reader->at < reader->cell_end && isspace((unsigned char)*reader->at))
        reader->at++;
    *GROW(&reader->cells) = cell;
    return 0;
}

/* Reads "(1F1;0B0)OVERLAP_F_B", or O: an overlapped forward and backward; or "(1F0;1F1)O": one pass of two forwards. */
static int pair_read(struct reader *reader)
{
    static const char expected[] = "an overlapped forward and backward such as (1F1;0B0)O, or two forwards in one pass";
    struct order_cell *cells;

    if (token_read(reader))
        return -1;
    if (!skip(reader, ";"))
        return refuse(reader, expected);
    if (token_read(reader))
        return -1;
    if (!skip(reader, ")") || (!skip(reader, "OVERLAP_F_B") && !skip(reader, "O")))
        return refuse(reader, expected);
    cells = &reader->cells.items[reader->cells.count - 2];
    for (int i = 0; i < 2; i++)
        cells[0].with_next |= cells[i].kind == FORWARD &&
                              (cells[1 - i].kind == BACKWARD || cells[1 - i].kind == BACKWARD_INPUT);
    cells[0].with_next |= cells[0].kind == FORWARD && cells[1].kind == FORWARD && cells[0].stage == cells[1].stage &&
                          cells[0].direction == cells[1].direction;
    return cells[0].with_next ? 0 : refuse(reader, expected);
}

static int cell_read(struct reader *reader)
{
    reader->at = reader->cell;
    if (skip(reader, "(") ? pair_read(reader) : token_read(reader))
        return -1;
    if (reader->at != reader->cell_end)
        return refuse(reader, "a comma after the cell");
    return 0;
}

/* Reads the cells of a line; -1 if one of them is not a cell. */
static int line_read(struct reader *reader, const char *end)
{
    const char *begin = reader->line_start, *comma;
    int rc = 0;

    for (bool more = true; more; begin = more ? comma + 1 : end) {
        comma = memchr(begin, ',', (size_t)(end - begin));
        more = comma != NULL;
        comma = comma ? comma : end;
        for (reader->cell = begin; reader->cell < comma && isspace((unsigned char)*reader->cell); reader->cell++)
            ;
        for (reader->cell_end = comma; reader->cell_end > reader->cell && isspace((unsigned char)reader->cell_end[-1]);
             reader->cell_end--)
            ;
        if (reader->cell < reader->cell_end && cell_read(reader))
            rc = -1;
        if (rc && reader->err->count == ERROR_MAX)
            return rc;
    }
    return rc;
}

static bool blank(const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from))
        from++;
    return from == to;
}

static int lines_read(struct reader *reader)
{
    int rc = 0;

    for (; !blank(reader->line_start, reader->end); reader->line++, reader->rank++) {
        const char *end = memchr(reader->line_start, '\n', (size_t)(reader->end - reader->line_start));
        size_t before = reader->cells.count;

        end = end ? end : reader->end;
        if (reader->rank == MOST_RANKS)
            return error_add(reader->err, EXIT_INPUT, loc_of(reader, reader->line_start),
                             "expected at most %d lines, one per rank", MOST_RANKS);
        reader->order->first[reader->rank] = before;
        if (line_read(reader, end))
            rc = -1;
        else if (reader->cells.count == before)
            rc = error_add(reader->err, EXIT_INPUT, loc_of(reader, reader->line_start),
                           "rank %d has no work; expected one line per rank, without empty lines", reader->rank);
        if (rc && reader->err->count == ERROR_MAX)
            return rc;
        reader->line_start = end < reader->end ? end + 1 : end;
    }
    return rc;
}

/* Checks that either all cells have a direction or none. */
static int directions_read(struct order *order, struct error *err)
{
    char text[CELL_SIZE];

    order->directed = order->cells[0].direction >= 0;
    for (size_t i = 0; i < order->count; i++)
        if ((order->cells[i].direction >= 0) != order->directed)
            return error_add(err, EXIT_INPUT, cell_loc(order, &order->cells[i]),
                             order->directed ? "%s has no direction; expected @0 or @1 after it, as in the first cell"
                                             : "%s has a direction, but the first cell has none",
                             cell_text(order, &order->cells[i], text));
    for (size_t i = 0; !order->directed && i < order->count; i++)
        order->cells[i].direction = 0;
    order->directions = order->directed ? 2 : 1;
    return 0;
}

int order_read(struct arena *arena, const char *text, size_t length, struct order *order, struct error *err)
{
    struct reader reader = {
        .arena = arena, .order = order, .err = err, .end = text + length, .line_start = text, .line = 1};
    size_t lines = 2;
    int rc;

    reader.line_start += text_mark(text, length);
    for (const char *at = text; at < reader.end && lines < MOST_RANKS + 2; at++)
        lines += *at == '\n';
    order->first = ARENA_ARRAY(arena, size_t, lines);
    rc = lines_read(&reader);
    if (!rc && !reader.cells.count)
        rc = error_add(err, EXIT_INPUT, (struct loc){order->file, 1, 1},
                       "the file is empty; expected cells such as 0F0");
    if (!rc) {
        order->cells = ARENA_ARRAY(arena, struct order_cell, reader.cells.count);
        memcpy(order->cells, reader.cells.items, reader.cells.count * sizeof *order->cells);
        order->count = order->first[reader.rank] = reader.cells.count;
        order->ranks = reader.rank;
        for (size_t i = 0; i < order->count; i++)
            order->cells[i].at = i - order->first[order->cells[i].rank];
        rc = directions_read(order, err);
    }
    free(reader.cells.items);
    return rc;
}
