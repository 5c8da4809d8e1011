#include "cli/cmd.h"

#include "base/base.h"
#include "config/field.h"
#include "files/json.h"
#include "report/result.h"

static int schema_main(const struct arguments *arguments)
{
    struct arena arena = {0};
    json_t *json = node_json(field_schema(&arena, &scenario_table));

    (void)arguments;
    json_print(json, stdout);
    json_decref(json);
    arena_release(&arena);
    return EXIT_OK;
}

const struct command cmd_schema = {
    .name = "schema",
    .arguments = "",
    .brief = "Prints the JSON schema of scenarios, for editors.",
    .examples = "  dtsim schema > dtsim.schema.json\n"
                "  (first line of a scenario)  # yaml-language-server: $schema=dtsim.schema.json\n",
    .main = schema_main,
};
