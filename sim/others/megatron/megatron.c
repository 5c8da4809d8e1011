/* megatron: puts the parts together, and says what became of each argument. */
#include "megatron/megatron_internal.h"

#include "launch/imported.h"
#include "launch/launch.h"


/* Where one file of releases alone has all that is given, this one; else that of any release. */
static const char *software_since(const struct imported *m)
{
    const struct dialect *dialect = m->dialect->like ? m->dialect->like : m->dialect;
    const char *found = NULL;
    int since = 0, fitting = 0;

    for (size_t i = 0; i < dialect->count; i++) {
        const struct launch_argument *argument = imported_given(m, dialect->rows[i].name);
        int first = argument ? dialect_since(&dialect->rows[i], argument->count ? argument->values[0].text : "") : 0;

        since = first > since ? first : since;
    }
    for (size_t i = 0; i < dialect->releases.count; i++) {
        struct releases releases = dialect_releases(dialect, dialect->releases.items[i].from);

        if (strcmp(dialect->releases.items[i].from, "megatron-core") != 0 && releases.last >= since) {
            found = dialect->releases.items[i].from;
            fitting++;
        }
    }
    return fitting == 1 ? found : "megatron-core";
}

/* DeepSpeed's arguments, or those that only a Megatron-LM of 2021 takes, tell the release. */
static const char *software_of(const struct imported *m)
{
    static const char *const deepspeed[] = {"deepspeed", "deepspeed-config", "zero-stage",
                                            "deepspeed-activation-checkpointing"};
    static const char *const older[] = {"activations-checkpoint-method", "checkpoint-activations", "DDP-impl"};

    for (size_t i = 0; i < COUNT(deepspeed); i++)
        if (imported_given(m, deepspeed[i]))
            return "megatron-deepspeed";
    for (size_t i = 0; i < COUNT(older); i++)
        if (imported_given(m, older[i]))
            return "megatron-lm-2021";
    if (imported_given(m, "use-torch-fsdp2"))
        return "pytorch-fsdp";
    return software_since(m);
}

int megatron_build(struct imported *m)
{
    long long data;

    if (megatron_program(m) || imported_sort(m))
        return -1;
    m->software = software_of(m);
    imported_plain(m);
    megatron_model(m);
    if (m->err->count)
        return -1;
    megatron_experts(m);
    data = megatron_cluster(m);
    if (!data)
        return -1;
    megatron_strategy(m);
    megatron_memory(m);
    megatron_software(m, data);
    return m->err->count ? -1 : 0;
}

struct node *megatron_scenario(struct arena *arena, struct launch *launch, const struct import_options *options,
                               const char **comment, FILE *notes, struct error *err)
{
    struct imported m = {.arena = arena, .launch = launch, .options = options, .err = err};

    *comment = imported_end(&m, imported_begin(&m, "megatron") ? -1 : megatron_build(&m), notes) ? NULL : m.comment;
    return *comment ? m.root : NULL;
}

int megatron_import(struct arena *arena, const char *path, const struct import_options *options, FILE *out,
                    FILE *notes, struct error *err)
{
    struct launch launch = {0};
    const char *comment = "";
    struct node *root = NULL;

    if (!launch_load(arena, path, options, &launch, err))
        root = megatron_scenario(arena, &launch, options, &comment, notes, err);
    int rc = root ? imported_print(root, launch.file, "megatron", comment, out, err) : -1;

    launch_release(&launch);
    return rc;
}
