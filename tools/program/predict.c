/* What the model predicts for a program from a file on this machine, beside what the library would
 * run: the figures by which a file without sizes competes in TUTTI_PROGRAM_DIR. */
#include "base/mem.h"
#include "program_tool.h"
#include "tune/host.h"
#include "tune/model.h"

#include <string.h>
#include <unistd.h>

enum { SLOT_BYTES = 64 << 10 }; /* as communicators have them */
struct size {
    const char *name;
    size_t bytes;
};

static const struct size sizes[PROGRAM_PREDICTED] = {
    {"64 B", 64}, {"4 KiB", 4 << 10}, {"256 KiB", 256 << 10}, {"16 MiB", 16 << 20}};

static struct tt_tune_env this_host(const struct tt_program *program,
                                    const struct tt_tune_host *host)
{
    int n = program->nranks, ncores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return (struct tt_tune_env){.nranks = n,
                                .nnodes = 1,
                                .ppn = n,
                                .least_local = n,
                                .nchannels = 2,
                                .ncores = ncores,
                                .oversubscribed = n > ncores,
                                .all_direct = true,
                                .host = host,
                                .slice_bytes = SLOT_BYTES};
}

void program_predict(const struct program_source *source, struct program_proof *proof)
{
    const struct tt_program *program = source->program;
    struct tt_tune_host host;
    struct tt_tune_found found;
    struct tt_program_load load;
    if (!source->import || tt_program_load(program, &load)) return;
    tt_tune_host_find(&host, &found);
    const struct tt_tune_env env = this_host(program, &host);
    for (int k = 0; k < PROGRAM_PREDICTED; k++) {
        struct program_prediction *row = &proof->predicted[k];
        const struct tt_tune_query query = {.func = (enum tt_func)program->func,
                                            .type = ncclFloat32,
                                            .op = ncclSum,
                                            .bytes = sizes[k].bytes,
                                            .nops = 1,
                                            .root = 0};
        struct tt_tune_choice own;
        row->size = sizes[k].name;
        row->bytes = sizes[k].bytes;
        row->usec = tt_tune_predict(&env, &query, program, &load);
        if (tt_tune_choose(&env, &query, NULL, &own) == ncclSuccess) {
            row->own_algo = tt_algo_name(own.algo);
            row->own_usec = own.time_usec;
        }
    }
    proof->has_prediction = true;
    proof->measured = found.hash != 0;
}

void program_predict_print(const struct program_proof *proof)
{
    if (!proof->has_prediction) return;
    printf("predicted      on this machine, %s; in brackets what the library has without it\n",
           proof->measured ? "by the figures of tutti tune"
                           : "by built-in figures (see tutti tune)");
    for (int k = 0; k < PROGRAM_PREDICTED; k++) {
        const struct program_prediction *row = &proof->predicted[k];
        printf("               %-8s %10.4g us", row->size, row->usec);
        if (row->own_algo) printf("   (%s %.4g us)", row->own_algo, row->own_usec);
        printf("\n");
    }
}

json_t *program_predict_json(const struct program_proof *proof)
{
    json_t *list = json_array();
    for (int k = 0; k < PROGRAM_PREDICTED && proof->has_prediction; k++) {
        const struct program_prediction *row = &proof->predicted[k];
        json_t *item = json_pack("{s:I, s:f}", "bytes", (json_int_t)row->bytes, "usec", row->usec);
        if (row->own_algo) {
            json_object_set_new(item, "own_algo", json_string(row->own_algo));
            json_object_set_new(item, "own_usec", json_real(row->own_usec));
        }
        json_array_append_new(list, item);
    }
    return list;
}
