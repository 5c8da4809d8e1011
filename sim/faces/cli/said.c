#include "cli/said.h"

#include "cli/plan_print.h"
#include "report/explanation.h"
#include "report/result.h"
#include "report/result_keys.h"
#include "results/compared.h"
#include "results/results.h"
#include "sweep/row.h"
#include "train/row_metrics.h"
#include "train/training.h"
#include "validate/paper.h"
#include "view/view.h"

static const struct { const char *title; const struct view *view; } said[] = {
    {"the first line of what dtsim sweep writes", &sweep_header_view}, {"its rows: which", &begun_view}, {"what was asked", &asked_view},
    {"how it ended", &ended_view}, {"and where --verify verified it, the numbers", &verified_view}, {"and its engine", &verified_row_view},
    {"and the metrics of their trainings", &training_row_view}, {"and where they are ordered by a number", &ranked_view},
    {"dtsim compare --json, a row", &compared_view}, {"dtsim compare --methods --json, a row", &methods_view}, {"dtsim plan --method --json, a row", &choice_view},
    {"dtsim explain --json", &explanation_view}, {"dtsim validate --json, of a table", &validation_view},
    {"dtsim show --memory --json", &memory_view}, {"the same of a sweep", &memory_grid_view},
    {"dtsim show --kernels --json", &kernels_view}, {"dtsim show --alike --json", &alike_view},
    {"dtsim check --json", &check_view}, {"the same of a sweep", &sweep_plan_view}, {"dtsim check --values --json", &values_view},
    {"dtsim collective --json, a row", &collective_view}, {"dtsim collective --table --json, a row", &table_view},
    {"dtsim calibrate fit --json", &calibration_view}, {"dtsim calibrate check --json", &calibrate_check_view},
    {"dtsim list --json, a row", &listed_view},
};

void said_help(FILE *out)
{
    result_help(out);
    training_help(out);
    plan_help(out);
    for (size_t i = 0; i < COUNT(said); i++) {
        fprintf(out, "\n%s\n\n", said[i].title);
        view_help(said[i].view, "", out);
    }
}
