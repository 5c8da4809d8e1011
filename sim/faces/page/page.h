/* page: results as one HTML file that any browser opens and that asks nobody for anything. Its program is
 * plots/report/, built of plots/report/src; here its data are made: from result files alone, as base64 of deflate. */
#ifndef DTSIM_PAGE_H
#define DTSIM_PAGE_H

#include "files/json.h"

struct results;
struct recorded;

struct page_request {
    const char *input;       /* the folder of a run, of the rows of a sweep, or a file */
    const char *out;         /* the file; NULL: report.html in the folder */
    const char *ranks;       /* of a run: "0-7,12", whose spans are shown; NULL: all */
    const json_t *explanation;       /* of a run, as 'dtsim explain --json' has it; NULL: none */
    const char *theme;       /* "light", "dark", or NULL: as the reader's system has it */
};

/* Refuses a run with more spans than a browser can hold, by the size of its spans.tsv: before anything is read or
 * simulated. -1: an error. */
int page_check_size(const struct page_request *request, struct error *err);
/* Writes the page of a run, in the place of an older one only when it is whole, and a line about it to `told`. */
int page_of_run(const struct page_request *request, FILE *log, struct error *err);
/* Whether a folder holds the result of a training. */
int page_is_training(const char *folder, bool *training, struct error *err);
/* The same of a training: its result, its progress, its trials, its phases and the failures of trial 0. */
int page_of_training(const struct page_request *request, FILE *log, struct error *err);
/* The same of the rows of a sweep, which are read, ordered and ranked; and of what plan.json beside them says of a plan, whose
 * rows may be none (`results` zero). */
int page_of_rows(const struct page_request *request, const struct results *results, FILE *log, struct error *err);
/* The same of what 'dtsim validate --json' printed to the file `input`; the page is request->out. */
int page_of_validation(const struct page_request *request, FILE *log, struct error *err);

/* What ran when, for a page that asks for it: base64 of deflate of the parts that a report's timeline reads. */
void page_timeline(const struct recorded *run, FILE *out);
/* Writes the page of 'dtsim app' with what it knows when it opens. */
int page_of_app(const json_t *known, FILE *out, struct error *err);

#endif
