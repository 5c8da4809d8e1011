#include "cli/cmd.h"

#include "base/base.h"
#include "config/field.h"
#include "files/json.h"
#include "report/result.h"

static int schema_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct arena arena = {0};
    int code = arguments_parse(command, argc, argv, 0, 0, &arguments);

    if (code != ARGS_DONE)
        return code;
    json_t *json = node_json(field_schema(&arena, &scenario_table));
    json_print(json, stdout);
    json_decref(json);
    arena_release(&arena);
    return EXIT_OK;
}

const struct command cmd_schema = {
    .name = "schema",
    .usage = "",
    .brief = "Prints the JSON schema of scenarios, for editors.",
    .examples = "  dtsim schema > dtsim.schema.json\n"
                "  (first line of a scenario)  # yaml-language-server: $schema=dtsim.schema.json\n",
    .main = schema_main,
};
