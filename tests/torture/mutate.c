/* Every value of every committed file, and of every key that a table of keys has, replaced by another: null, {}, [], "", a
 * huge text, a wrong kind, a number past its bounds. No command crashes or hangs on one, each ends with an exit code of the
 * contract and a message, and none takes silently a value that is none of the key's kind.
 *   torture_mutate [EVERY [LOG [PART]]]    only each EVERY-th mutant; LOG gets those that are accepted; only files whose
 *                                          path has this part */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entrances.h"
#include "mutants.h"

enum { SECONDS = 30 };           /* that one command may take */

/* In shared memory: a process tries the mutants, and the next one goes on where it ended. */
struct progress_of_trials {
    size_t number, files;        /* of the mutant that is tried; files that were read */
    size_t keys, numbers;        /* keys of tables that were tried; those that are numbers */
    size_t tried, refused, accepted, silent, wrong;
    char what[4096];
};

struct trial {
    struct progress_of_trials *shared;
    FILE *out;                   /* what this program says; stdout is the commands' */
    size_t number, every;        /* mutants counted by this process; each how many-th is tried */
    FILE *log;
    const struct entrance *entrance;
    const char *path;            /* of the file that is changed */
};

/* Runs the entrance's command on the changed file; what it prints goes into files. */
static int run_command(const struct trial *trial, long *written)
{
    int code;

    rewind(stderr);
    rewind(stdout);
    alarm(SECONDS);
    code = entrance_run(trial->entrance, BUDGET);
    alarm(0);
    *written = ftell(stderr);
    return code;
}

static bool is_due(struct trial *trial)
{
    trial->number++;
    return trial->number > trial->shared->number && trial->number % trial->every == 0;
}

/* `silent`: the value is none that the key may have, so that a command that goes on has overlooked it. */
static void try_file(struct trial *trial, const char *key, const char *mutant, bool silent)
{
    struct progress_of_trials *shared = trial->shared;
    long written;
    int code;

    shared->number = trial->number;
    snprintf(shared->what, sizeof shared->what, "%s: %s: %.40s", trial->path, key, mutant);
    shared->tried++;
    code = run_command(trial, &written);
    if (code == EXIT_OK && trial->log)
        fprintf(trial->log, "%s\t%s\t%.40s\n", trial->path, key, mutant), fflush(trial->log);
    if (code < 0 || code > EXIT_STOPPED || code == EXIT_UNEXPECTED || (code && written <= 0 && ftell(stdout) <= 0)) {
        shared->wrong++;
        fprintf(trial->out, "exit code %d%s: %s\n", code, written > 0 ? "" : " without a message", shared->what);
    } else if (code == EXIT_OK && silent) {
        shared->silent++;
        fprintf(trial->out, "taken silently: %s\n", shared->what);
    } else {
        *(code ? &shared->refused : &shared->accepted) += 1;
    }
    fflush(trial->out);
}

static void write_tree(const struct trial *trial, const struct node *root, FILE *out)
{
    if (trial->entrance->text == LINES) {
        for (size_t i = 0; i < root->count; i++) {
            char *line = NULL;
            size_t size;
            FILE *memory = open_memstream(&line, &size);

            node_print_json(root->items[i], memory);
            fclose(memory);
            for (size_t k = 0; k < size; k++)
                fputc(line[k] == '\n' ? ' ' : line[k], out);
            fputc('\n', out);
            free(line);
        }
    } else if (trial->entrance->text == JSON) {
        node_print_json(root, out);
    } else {
        node_print(root, out);
    }
}

/* In results null is a number that is not defined. */
static bool is_judged(const struct entrance *entrance, size_t m, const char *key)
{
    return entrance->judged && strstr(key, entrance->judged) && (m != NOTHING || entrance->text == TREE) &&
           strncmp(key, "plan.", 5) != 0;        /* which other commands do not read */
}

static void try_slot(struct trial *trial, struct node **root, struct node **slot, const char *key,
                     const struct field *field)
{
    struct node *own = *slot;

    for (size_t m = 0; mutant_at(m); m++) {
        struct arena arena = {0};
        char *text = NULL;
        size_t size;
        FILE *out;

        if (!is_due(trial))
            continue;
        *slot = mutant_node(&arena, m, own, field);
        if (*slot) {
            out = open_memstream(&text, &size);
            write_tree(trial, *root, out);
            fclose(out);
            entrance_write(trial->entrance, text, size);
            free(text);
            try_file(trial, key, node_flow(&arena, *slot),
                     is_judged(trial->entrance, m, key) && mutant_is_none(m, own, *slot, field));
        }
        *slot = own;
        arena_release(&arena);
    }
}

/* Every value below the node. */
static void try_tree(struct trial *trial, struct arena *arena, struct node **root, struct node *node, const char *key)
{
    for (size_t i = 0; i < node->count; i++) {
        const char *name = node->kind == NODE_MAPPING ? node->keys[i] : arena_printf(arena, "%zu", i);
        const char *inner = arena_printf(arena, "%s%s%s", key, *key ? "." : "", name);

        try_slot(trial, root, &node->items[i], inner, NULL);
        if (node->items[i]->kind != NODE_SCALAR)
            try_tree(trial, arena, root, node->items[i], inner);
    }
}

/* The value at a key of a mapping, where the key may be new. */
static struct node **slot_of(struct arena *arena, struct node *mapping, const char *key)
{
    if (!node_get(mapping, key))
        node_put(arena, mapping, key, node_mapping(arena));
    for (size_t i = 0; i < mapping->count; i++)
        if (!strcmp(mapping->keys[i], key))
            return &mapping->items[i];
    BUG("no key '%s'", key);
}

enum { TABLE_DEPTH = 5 };

/* Every key that the table may have, in a mapping of it in the file. */
static void try_table(struct trial *trial, struct arena *arena, struct node **root, struct node *mapping,
                      const struct table *table, const char *before, int depth)
{
    const struct field *field;

    for (size_t i = 0; (field = field_standing(table, i)); i++) {
        const char *path = arena_printf(arena, "%s%s", before, field->key);
        struct node **slot, *own = node_get(mapping, field->key), *inner;

        slot = slot_of(arena, mapping, field->key);
        trial->shared->keys += trial->number >= trial->shared->number;
        trial->shared->numbers += trial->number >= trial->shared->number && is_number(field);
        try_slot(trial, root, slot, path, field);
        if (field->table && depth && !field->table->partial && field->table != &scenario_table) {
            inner = node_mapping(arena);
            if (field->kind == FIELD_LIST) {
                *slot = node_sequence(arena);
                node_append(arena, *slot, inner);
            } else {
                *slot = inner;
            }
            if (own && own->kind == NODE_MAPPING && field->kind != FIELD_LIST)
                *slot = inner = own;
            try_table(trial, arena, root, inner, field->table, arena_printf(arena, "%s.", path), depth - 1);
        }
        slot = slot_of(arena, mapping, field->key);
        if (own) {
            *slot = own;
        } else {
            size_t k = (size_t)(slot - mapping->items);

            BUG_IF(k != mapping->count - 1);
            mapping->count--;
        }
    }
    for (size_t i = 0; table->extension_at && table->extension_at(i); i++)
        try_table(trial, arena, root, mapping, table->extension_at(i), before, 0);
}

static struct node *read_tree(struct arena *arena, const struct trial *trial, char *text, size_t length)
{
    struct node *root = node_sequence(arena), *line;
    struct error err = {0};
    char *rest;

    if (trial->entrance->text != LINES) {
        if (conf_parse(arena, trial->path, text, length, &root, &err))
            BUG("%s: %s", trial->path, err.messages[0].text);
        return root;
    }
    for (char *next = strtok_r(text, "\n", &rest); next; next = strtok_r(NULL, "\n", &rest)) {
        if (conf_parse(arena, trial->path, next, strlen(next), &line, &err))
            BUG("%s: %s", trial->path, err.messages[0].text);
        node_append(arena, root, line);
    }
    return root;
}

/* Words between separators, in files that are no trees. */
static void try_words(struct trial *trial, const char *text, size_t length)
{
    static const char separators[] = " \t\n\r,;:=()[]{}\"";

    for (size_t from = 0, end; from < length; from = end + 1) {
        for (end = from; end < length && !strchr(separators, text[end]);)
            end++;
        for (size_t m = 0; end > from && word_at(m); m++) {
            char *changed;

            if (!is_due(trial))
                continue;
            changed = xprintf("%.*s%s%s", (int)from, text, word_at(m), text + end);
            entrance_write(trial->entrance, changed, strlen(changed));
            free(changed);
            try_file(trial, "a word", word_at(m), false);
        }
    }
}

static void mutate_file(struct trial *trial, bool keys)
{
    struct arena arena = {0};
    struct error err = {0};
    size_t length;
    char *text = file_read(trial->path, "file", 64 << 20, (struct loc){0}, &length, &err);
    struct node *root;

    if (!text)
        BUG("%s: %s", trial->path, err.messages[0].text);
    trial->shared->files += trial->number >= trial->shared->number;
    if (trial->entrance->text == WORDS) {
        try_words(trial, text, length);
    } else {
        root = read_tree(&arena, trial, text, length);
        try_slot(trial, &root, &root, "", NULL);
        try_tree(trial, &arena, &root, root, "");
        if (keys && trial->entrance->table)
            try_table(trial, &arena, &root, root, trial->entrance->table, "", TABLE_DEPTH);
    }
    free(text);
    arena_release(&arena);
}

/* Every file of the entrance; the keys of its table in the first one. */
static void mutate_files(struct trial *trial)
{
    struct arena arena = {0};
    const char **paths = entrance_files(&arena, trial->entrance);

    for (size_t i = 0; paths[i]; i++) {
        trial->path = paths[i];
        mutate_file(trial, i == 0);
    }
    arena_release(&arena);
}

/* Tries an entrance in a child process. If that ends early, this is reported, and the next process goes on after its
 * mutant. */
static void try_entrance(const struct entrance *entrance, struct trial *trial)
{
    for (bool ended = false; !ended;) {
        pid_t pid = child_fork();
        int status;

        if (!pid) {
            if (!freopen("/dev/null", "rb", stdin) || !freopen("printed", "wb", stdout) || !freopen("errors", "wb", stderr))
                _exit(99);
            trial->entrance = entrance;
            mutate_files(trial);
            fflush(NULL);
            _exit(0);
        }
        BUG_IF(waitpid(pid, &status, 0) != pid);
        ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!ended && !trial->shared->number) {
            fprintf(trial->out, "%s: nothing was tried\n", entrance->files);
            trial->shared->wrong++;
            return;
        }
        if (!ended) {
            trial->shared->wrong++;
            fprintf(trial->out, "%s: %s\n", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ended", trial->shared->what);
        }
    }
    trial->shared->number = 0;
}

int main(int argc, char **argv)
{
    struct trial trial = {.every = argc > 1 ? strtoul(argv[1], NULL, 10) : 1, .out = fdopen(dup(1), "w")};
    struct progress_of_trials *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char folder[] = "/tmp/dtsim-mutate-XXXXXX";

    BUG_IF(all == MAP_FAILED || !trial.out || trial.every < 1);
    trial.shared = all;
    if (argc > 2)
        BUG_IF(!(trial.log = fopen(argv[2], "w")));
    BUG_IF(!mkdtemp(folder) || chdir(folder));
    entrances_prepare();
    for (size_t i = 0; i < COUNT(entrances); i++)
        if (argc < 4 || strstr(entrances[i].files, argv[3]))
            try_entrance(&entrances[i], &trial);
    fprintf(trial.out, "%zu mutants of %zu files and %zu keys of tables (%zu are numbers): %zu refused, %zu accepted, %zu taken "
            "silently, %zu wrong ends\n", all->tried, all->files, all->keys, all->numbers, all->refused, all->accepted,
            all->silent, all->wrong);
    fclose(trial.out);
    BUG_IF(chdir("/"));
    execlp("sh", "sh", "-c", all->silent + all->wrong ? "rm -rf \"$0\"; exit 1" : "rm -rf \"$0\"", folder, (char *)NULL);
    return 2;
}
