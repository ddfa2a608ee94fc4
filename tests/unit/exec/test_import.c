/* Imported programs run: every file of the folders (MSCCL's XML), element by element against what
 * the collective means, over pointers, mappings and slots alone.
 * usage: test-exec-import FOLDER [FOLDER OF OTHERS] */
#include "../check.h"
#include "ranks.h"

#include "base/mem.h"
#include "program/import/import.h"
#include "program/verify/verify.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE_BYTES = 1024, MOST_BYTES = 16 << 20, MOST_CHANNELS = 32 };
static const char *own_folder, *other_folder, *plan_folder;
static struct tt_edge *edges[WORLD_MAX][2][MOST_CHANNELS * WORLD_MAX];

struct trial {
    const char *name;
    const struct tt_program *program;
    struct world *world;
    size_t count;
    bool in_place;
    int32_t *in[WORLD_MAX], *out[WORLD_MAX];
};

/* ---- what the collective means ---- */

static int32_t input(int rank, size_t i)
{
    return (int32_t)((size_t)(rank + 1) * 1000003 + i * 7);
}

static int32_t sum_at(const struct trial *trial, size_t i)
{
    uint32_t n = (uint32_t)trial->world->n;
    return (int32_t)(n * (n + 1) / 2 * 1000003u + n * (uint32_t)i * 7u);
}

static int32_t expected(const struct trial *trial, int rank, size_t block, size_t at)
{
    size_t i = block * trial->count + at, own = (size_t)rank * trial->count;
    switch ((enum tt_func)trial->program->func) {
    case TT_FUNC_ALLREDUCE:
    case TT_FUNC_REDUCE: return sum_at(trial, i);
    case TT_FUNC_BROADCAST: return input(trial->program->root, i);
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_GATHER: return input((int)block, at);
    case TT_FUNC_REDUCESCATTER: return sum_at(trial, own + i);
    case TT_FUNC_ALLTOALL: return input((int)block, own + at);
    default: return input(0, own + i); /* Scatter */
    }
}

static bool has_result(const struct trial *trial, int rank)
{
    return rank == trial->program->root || !tt_func_to_root((enum tt_func)trial->program->func);
}

/* ---- running ---- */

static void set_buffers(struct trial *trial, int r)
{
    const struct tt_program *program = trial->program;
    size_t n = (size_t)trial->world->n, own = (size_t)r * trial->count;
    size_t in = trial->count * (program->in_blocks ? n : 1);
    size_t out = trial->count * (program->out_blocks ? n : 1);
    int32_t *memory = (void *)world_memory(trial->world, tt_max_size(in, out) * 4, 4);
    trial->in[r] = trial->out[r] = memory;
    if (trial->in_place && in < out) trial->in[r] = memory + own;
    if (trial->in_place && out < in) trial->out[r] = memory + own;
    if (!trial->in_place || !has_result(trial, r))
        trial->out[r] = (void *)world_memory(trial->world, out * 4, 4);
    for (size_t i = 0; i < in; i++)
        trial->in[r][i] = input(r, i);
}

static void bind_edges(const struct trial *trial, int r)
{
    const struct tt_program *program = trial->program;
    int n = trial->world->n;
    uint8_t links[MOST_CHANNELS * WORLD_MAX];
    tt_program_links(program, r, links);
    for (int k = 0; k < program->nchannels * n; k++) {
        for (int sends = 0; sends < 2; sends++) {
            struct tt_edge_key key = {.peer = k % n, .channel = k / n, .sending = sends};
            if (!(links[k] & (sends ? TT_LINK_SENDS : TT_LINK_RECEIVES))) continue;
            assert_int_equal(
                tt_transport_edge(trial->world->rank[r].transport, &key, &edges[r][sends][k]), 0);
        }
    }
}

static void submit(struct trial *trial, int r, const uint8_t *refs)
{
    const struct tt_program *program = trial->program;
    size_t n = (size_t)trial->world->n;
    struct tt_work *work;
    struct tt_frame frame = {
        .program = program,
        .refs = refs,
        .rank = r,
        .reduction = {.type = ncclInt32, .op = ncclSum},
        .in = (const char *)trial->in[r],
        .out = (char *)trial->out[r],
        .in_bytes = trial->count * 4 * (program->in_blocks ? n : 1),
        .out_bytes = trial->count * 4 * (program->out_blocks ? n : 1),
        .elem_bytes = 4,
        .fingerprint = 5,
        .send_edges = edges[r][1],
        .recv_edges = edges[r][0],
    };
    tt_geometry_init(&frame.geometry, program, trial->count, (struct tt_extent){0, trial->count},
                     SLICE_BYTES / 4, 4);
    struct tt_work_spec spec = world_spec(trial->world, r, &frame, 1);
    assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
    assert_int_equal(tt_exec_submit(work, &trial->world->rank[r].stream), ncclSuccess);
}

static void check(const struct trial *trial, int r)
{
    size_t n = (size_t)trial->world->n;
    for (size_t k = 0; has_result(trial, r) && k < (trial->program->out_blocks ? n : 1); k++) {
        for (size_t at = 0; at < trial->count; at++) {
            int32_t got = trial->out[r][k * trial->count + at];
            int32_t wanted = expected(trial, r, k, at);
            if (got == wanted) continue;
            fail_msg("%s, %s, kind %d, count %zu: rank %d block %zu element %zu is %d, not %d",
                     trial->name, trial->in_place ? "in place" : "out of place",
                     (int)trial->world->kind, trial->count, r, k, at, got, wanted);
        }
    }
    size_t in = trial->count * (trial->program->in_blocks ? n : 1);
    for (size_t i = 0; !trial->in_place && i < in; i++) {
        if (trial->in[r][i] != input(r, i))
            fail_msg("%s: rank %d: input %zu was changed", trial->name, r, i);
    }
}

static void run(struct trial *trial, uint8_t *const *refs)
{
    world_reset(trial->world);
    for (int r = 0; r < trial->world->n; r++)
        set_buffers(trial, r);
    for (int r = 0; r < trial->world->n; r++)
        submit(trial, r, refs[r]);
    world_run(trial->world, (unsigned)trial->count);
    for (int r = 0; r < trial->world->n; r++) {
        assert_int_equal(atomic_load(&trial->world->rank[r].member.abort), 0);
        check(trial, r);
    }
}

static void run_sizes(struct trial *trial, const struct tt_import *import)
{
    const struct tt_program *program = trial->program;
    size_t window = SLICE_BYTES / 4 * (size_t)program->nparts;
    size_t counts[] = {1, (size_t)program->nparts * 4 - 3, window + 77};
    uint8_t *refs[WORLD_MAX];
    for (int r = 0; r < trial->world->n; r++) {
        refs[r] = calloc(program->ninsns, 1);
        assert_non_null(refs[r]);
        tt_program_find_refs(program, r, refs[r]);
        bind_edges(trial, r);
    }
    for (size_t k = 0; k < 2 * TT_LEN(counts); k++) {
        trial->count = counts[k / 2];
        trial->in_place = k & 1;
        bool plan = strcmp(strrchr(trial->name, '.'), ".json") == 0; /* right either way */
        bool copied = program->func == TT_FUNC_ALLTOALL;
        if (trial->in_place ? import->in_place || (plan && !copied) : import->out_of_place || plan)
            run(trial, refs);
    }
    for (int r = 0; r < trial->world->n; r++)
        free(refs[r]);
}

/* As the file has it, or turned to another root. */
static void run_program(const char *name, const struct tt_import *import,
                        const struct tt_program *program)
{
    for (int kind = WORLD_PROCESS; kind <= WORLD_SHM; kind++) {
        struct trial trial = {.name = name, .program = program};
        trial.world = world_create_wide(program->nranks, (enum world_kind)kind, SLICE_BYTES,
                                        program->nchannels);
        run_sizes(&trial, import);
        world_destroy(trial.world);
    }
}

static void run_turned(const char *name, const struct tt_import *import)
{
    const struct tt_admit_options use = tt_admit_usual(import->program);
    const bool rooted =
        import->program->func == TT_FUNC_BROADCAST || import->program->func == TT_FUNC_REDUCE;
    assert_int_equal(tt_program_turns(import->program), rooted);
    for (int root = 1; rooted && root < import->program->nranks; root++) {
        char fault[256];
        struct tt_program *program = NULL;
        struct tt_admitted *admitted = NULL;
        assert_int_equal(tt_program_turn(import->program, root, &program), ncclSuccess);
        print_message("root: %d\n", root);
        assert_true(tt_program_check(program, program->bytes, fault, sizeof(fault)));
        assert_int_equal(tt_program_admit(&admitted, program, &use, fault, sizeof(fault)),
                         ncclSuccess);
        run_program(name, import, program);
        tt_admitted_destroy(admitted);
        free(program);
    }
}

static void run_file(const char *folder, const char *name)
{
    static char text[MOST_BYTES];
    char path[1024], fault[256];
    struct tt_import *import = NULL;
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be opened", path);
    size_t bytes = fread(text, 1, sizeof(text), file);
    (void)fclose(file);
    if (tt_import_read(text, bytes, &import, fault, sizeof(fault))) fail_msg("%s: %s", name, fault);
    print_message("file: %s\n", name);
    assert_true(import->program->nranks <= WORLD_MAX &&
                import->program->nchannels <= MOST_CHANNELS);
    run_program(name, import, import->program);
    run_turned(name, import);
    tt_import_destroy(import);
}

static int by_program(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && (strcmp(dot, ".xml") == 0 || strcmp(dot, ".json") == 0);
}

static int run_folder(const char *folder)
{
    struct dirent **names = NULL;
    int count = folder ? scandir(folder, &names, by_program, alphasort) : 0;
    for (int k = 0; k < count; k++) {
        run_file(folder, names[k]->d_name);
        free(names[k]);
    }
    free(names);
    return count;
}

static void own_files_run(void **state)
{
    (void)state;
    assert_int_equal(run_folder(own_folder), 14);
}

static void plans_run(void **state)
{
    (void)state;
    assert_int_equal(run_folder(plan_folder), 12);
}

static void files_of_others_run(void **state)
{
    (void)state;
    DIR *there = other_folder ? opendir(other_folder) : NULL;
    if (!there) skip();
    (void)closedir(there);
    assert_true(run_folder(other_folder) > 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_files_run),
        cmocka_unit_test(plans_run),
        cmocka_unit_test(files_of_others_run),
    };
    if (argc < 3) return 2;
    own_folder = argv[1];
    plan_folder = argv[2];
    other_folder = argc > 3 ? argv[3] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
