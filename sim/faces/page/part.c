/* A part of the page: what the program in it reads under a name. */
#include <stdlib.h>

#include "base/base.h"
#include "files/json.h"
#include "page/page_internal.h"

FILE *page_part(struct page *page, const char *name)
{
    struct page_part *part = &page->parts[page->count++];

    part->name = name;
    part->stream = open_memstream(&part->bytes, &part->size);
    if (!part->stream)
        memory_ran_out();
    return part->stream;
}

void page_json(struct page *page, const char *name, const json_t *json)
{
    json_line(json, page_part(page, name));
}
