/* A real launch is imported, emitted and imported back: this gives the same scenario, which is emitted as the same
 * bytes. The launches are the public ones of tests/golden, and of ../shared/plan/launch_scripts.jsonl where that file
 * is. A launch that is refused, or that the framework has no arguments for, is counted. */
#include "simulated.h"

#include <jansson.h>

#include "emit/emit.h"
#include "jobs/jobs.h"
#include "megatron/megatron.h"
#include "process/sandbox.h"

#include <unistd.h>

static const char *const parts[] = {"model", "batch", "strategy", "memory", "software"};

struct seen { int refused, untold, noted, same; };

/* A launch script, which bash runs, or a list of arguments. */
static int load(struct arena *arena, const char *text, const struct import_options *options, struct launch *launch,
                struct error *err)
{
    char path[] = "/tmp/dtsim-fixed-XXXXXX";
    int file = mkstemp(path), rc;

    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    rc = launch_load(arena, arena_strdup(arena, path), options, launch, err);
    unlink(path);
    return rc;
}

/* The scenario of a file, on a cluster that is made for it; NULL: the file is refused. */
static struct node *import(struct arena *arena, const char *framework, const char *text, const char *gpus,
                           const struct node *model, struct error *err)
{
    struct launch_set sets[] = {{"nnodes", "1"}, {"nproc_per_node", gpus}};
    struct import_options options = {.sets = sets, .nsets = gpus ? COUNT(sets) : 0};
    struct job_text job = {"x", text, strlen(text), &options, (struct node *)(uintptr_t)model, NULL};
    struct launch launch = {0};
    const char *comment;
    char *notes = NULL;
    size_t length;
    FILE *out = open_memstream(&notes, &length);
    struct node *root = NULL;

    if (!strcmp(framework, "torchtitan"))
        root = torchtitan_scenario(arena, &job, &comment, out, err);
    else if (!strcmp(framework, "deepspeed"))
        root = deepspeed_scenario(arena, &job, &comment, out, err);
    else if (!strcmp(framework, "bridge"))
        root = bridge_scenario(arena, &job, &comment, out, err);
    else if (!load(arena, text, &options, &launch, err))
        root = megatron_scenario(arena, &launch, &options, &comment, out, err);
    launch_release(&launch);
    fclose(out);
    free(notes);
    return root;
}

/* Whether a note says anything but which release the launch needs: that the framework will run another scenario. */
static bool deviates(const char *notes)
{
    static const char begin[] = "note: ";

    for (const char *note = notes, *end; note && *note; note = end) {
        const char *release = strstr(note, "older releases of Megatron-LM");

        end = strstr(note + strlen(begin), begin);
        if (!release || (end && release > end))
            return true;
    }
    return false;
}

/* *noted: it says that the framework will run another scenario. NULL: the framework cannot be told. */
static char *emit(const char *framework, const struct scenario *scenario, bool *noted, struct error *err)
{
    char *text = NULL, *notes = NULL;
    size_t length, size;
    FILE *out = open_memstream(&text, &length), *notes_text = open_memstream(&notes, &size);
    int rc = -1;

    for (size_t i = 0; emitted_at(i); i++)
        if (!strcmp(emitted_at(i)->name, framework))
            rc = emitted_at(i)->emit(scenario, out, notes_text, err);
    fclose(out);
    fclose(notes_text);
    *noted = deviates(notes);
    free(notes);
    if (!rc)
        return text;
    free(text);
    return NULL;
}

/* The dump of a scenario, with the layers of each stage where what comes back says them: some frameworks have to be told. */
static struct node *dump_like(struct arena *arena, const struct scenario *scenario, const struct node *back)
{
    struct node *tree = scenario_dump(arena, scenario), *layers = node_sequence(arena);
    struct workload workload = {0};
    struct error err = {0};

    if (!node_at(back, "strategy.split") || node_at(tree, "strategy.split"))
        return tree;
    assert_int_equal(workload_init(&workload, scenario, &err), 0);
    for (int s = 0; s < plan_virtual_stages(&workload.plan); s++)
        node_append(arena, layers, node_scalar(arena, arena_printf(arena, "%d", workload.stages[s].layers), false));
    workload_release(&workload);
    node_put(arena, node_get(tree, "strategy"), "split", layers);
    return tree;
}

/* `noted`: notes say that the framework runs another scenario; then that scenario is emitted. */
static void check_again(const char *name, const char *framework, const struct scenario *scenario, const char *text,
                        bool noted)
{
    struct arena arena = {0};
    struct scenario again = {0};
    struct error err = {0};
    struct node *tree = scenario_dump(&arena, scenario), *root, *back;
    char gpus[16], *same;
    bool ignored;

    snprintf(gpus, sizeof gpus, "%d", scenario_gpus(scenario));
    /* torchtitan's file may say by itself which model it is; DeepSpeed's never does */
    root = import(&arena, framework, text, gpus, strstr(text, "\nflavor = ") ? NULL : node_get(tree, "model"), &err);
    if (!root)
        fail_msg("%s became\n%s\nwhich is refused: %s", name, text, err.messages[0].text);
    node_put(&arena, root, "cluster", node_get(tree, "cluster"));
    node_put(&arena, node_get(root, "memory"), "enforce", node_scalar(&arena, "false", false));
    if (scenario_read(&(struct arena){.cache = files_once()}, root, NULL, 0, "again", &again, &err))
        fail_msg("%s became\n%s\nwhose scenario is refused: %s", name, text, err.messages[0].text);
    back = scenario_dump(&arena, &again);
    tree = dump_like(&arena, scenario, back);
    for (size_t p = 0; p < COUNT(parts) && !noted; p++)
        if (!node_equal(node_get(tree, parts[p]), node_get(back, parts[p])))
            fail_msg("%s of %s comes back as\n%s\nnot\n%s\nfrom\n%s", parts[p], name,
                     node_flow(&arena, node_get(back, parts[p])), node_flow(&arena, node_get(tree, parts[p])), text);
    same = emit(framework, &again, &ignored, &err);
    assert_non_null(same);
    assert_string_equal(same, text);
    free(same);
    scenario_release(&again);
    arena_release(&arena);
}

static void check(const char *name, const char *framework, const char *text, struct seen *seen)
{
    struct arena arena = {.cache = files_once()};
    struct scenario scenario = {0};
    struct error err = {0};
    struct node *model = NULL, *root;
    char *emitted = NULL;
    bool noted = false, without = !strcmp(framework, "deepspeed");   /* its file has no model and no GPUs */

    if (without)
        assert_int_equal(conf_parse(&arena, "model", "preset: llama2-13b", strlen("preset: llama2-13b"), &model, &err), 0);
    root = import(&arena, framework, text, without ? "16" : NULL, model, &err);
    if (root && node_get(root, "memory"))
        node_put(&arena, node_get(root, "memory"), "enforce", node_scalar(&arena, "false", false));
    if (!root || scenario_read(&arena, root, NULL, 0, name, &scenario, &err)) {
        seen->refused++;
    } else if (!(emitted = emit(framework, &scenario, &noted, &err))) {
        if (error_exit_code(&err) != EXIT_INFEASIBLE && error_exit_code(&err) != EXIT_INPUT)
            fail_msg("%s: %s", name, err.messages[0].text);
        seen->untold++;
    } else {
        check_again(name, framework, &scenario, emitted, noted);
        *(noted ? &seen->noted : &seen->same) += 1;
    }
    free(emitted);
    error_release(&err);
    scenario_release(&scenario);
    arena_release(&arena);
}

/* The files of a golden case: what stands between "-- NAME --" and the next one or the first command. */
static void check_case(const char *path, const char *framework, struct seen *seen)
{
    FILE *file = fopen(path, "r");
    char *line = NULL, *text = NULL, name[64] = "";
    size_t room = 0, length;
    FILE *out = NULL;

    assert_non_null(file);
    for (bool more = true; more;) {
        more = getline(&line, &room, file) > 0;
        size_t end = more ? strlen(line) : 0;
        bool begins = end > 8 && !strcmp(line + end - 4, " --\n") && sscanf(line, "-- %63s --", name) == 1;
        bool command = more && line[0] == '$' && line[1] == ' ';

        if (out && (begins || command || !more)) {
            fclose(out);
            check(path, framework, text, seen);
            free(text);
            out = NULL;
        }
        if (begins)
            out = open_memstream(&text, &length);
        else if (out)
            fputs(line, out);
    }
    free(line);
    fclose(file);
}

static void test_golden(void **state)
{
    static const struct { const char *file, *framework; } cases[] = {
        {"megatron_rows", "megatron"}, {"megatron_deepspeed", "megatron"}, {"megatron", "megatron"},
        {"bridge", "bridge"}, {"job_files", "torchtitan"}, {"job_files", "deepspeed"},
    };
    int same = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct seen seen = {0};
        char path[512];

        snprintf(path, sizeof path, "%s/tests/golden/cli/%s.golden", DTSIM_SOURCE_DIR, cases[i].file);
        check_case(path, cases[i].framework, &seen);
        print_message("%s, %s: %d the same, %d with notes, %d that it cannot be told, %d refused\n", cases[i].file,
                      cases[i].framework, seen.same, seen.noted, seen.untold, seen.refused);
        same += seen.same;
    }
    assert_true(same >= 12);
}

/* "--name value", of a row's arguments; free it. */
static char *arguments_text(json_t *arguments)
{
    char *text = NULL;
    size_t length, i;
    FILE *out = open_memstream(&text, &length);
    const char *name;
    json_t *value, *item;

    json_object_foreach(arguments, name, value) {
        if (json_is_null(value) || json_is_false(value))
            continue;
        fprintf(out, "--%s", name);
        if (json_is_string(value))
            fprintf(out, " %s", json_string_value(value));
        else if (json_is_integer(value))
            fprintf(out, " %lld", (long long)json_integer_value(value));
        else if (json_is_real(value))
            fprintf(out, " %g", json_real_value(value));
        json_array_foreach(value, i, item)
            if (json_is_string(item))
                fprintf(out, " %s", json_string_value(item));
        fputc('\n', out);
    }
    fclose(out);
    return text;
}

static void test_shared(void **state)
{
    FILE *file = fopen(DTSIM_SOURCE_DIR "/../shared/plan/launch_scripts.jsonl", "r");
    char *line = NULL;
    size_t room = 0;
    struct seen seen = {0};

    (void)state;
    if (!file) {
        print_message("skipped: no ../shared/plan/launch_scripts.jsonl\n");
        skip();
    }
    while (getline(&line, &room, file) > 0) {
        json_t *row = json_loads(line, 0, NULL);
        const char *kind = json_string_value(json_object_get(row, "kind"));
        char *text = arguments_text(json_object_get(row, "arguments"));

        if (kind && !strncmp(kind, "megatron", strlen("megatron")))      /* others are no lists of arguments */
            check(json_string_value(json_object_get(row, "id")), "megatron", text, &seen);
        free(text);
        json_decref(row);
    }
    free(line);
    fclose(file);
    print_message("launch scripts: %d the same, %d with notes, %d that it cannot be told, %d refused\n", seen.same,
                  seen.noted, seen.untold, seen.refused);
    assert_true(seen.same >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden), cmocka_unit_test(test_shared)};

    if (!sandbox_abi()) {
        print_message("skipped: this kernel has no Landlock, without which no script is run\n");
        return 0;
    }
    return cmocka_run_group_tests_name("fixed_point", tests, NULL, NULL);
}
