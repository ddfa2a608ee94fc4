/* What the model predicts for a program on this machine, beside what the library would run: for a
 * file by the figures with which it competes in TUTTI_PROGRAM_DIR, for one of the library's by
 * those of its own row of the choice. Several hosts are as many machines like this one. */
#include "base/mem.h"
#include "program_tool.h"
#include "tune/host.h"
#include "tune/model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOT_BYTES = 64 << 10 }; /* as communicators have them */
struct size {
    const char *name;
    size_t bytes;
};

static const struct size sizes[PROGRAM_PREDICTED] = {
    {"64 B", 64}, {"4 KiB", 4 << 10}, {"256 KiB", 256 << 10}, {"16 MiB", 16 << 20}};

static struct tt_tune_env these_hosts(const struct program_source *source, int nhosts,
                                      const struct tt_tune_host *host)
{
    int n = source->program->nranks, ncores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int most = (n + nhosts - 1) / nhosts, least = n / nhosts;
    for (int h = 0; source->host_first && h < nhosts; h++) {
        int size = source->host_first[h + 1] - source->host_first[h];
        most = size > most ? size : most;
        least = size < least ? size : least;
    }
    return (struct tt_tune_env){.nranks = n,
                                .nnodes = nhosts,
                                .ppn = most,
                                .least_local = least,
                                .nchannels = 2,
                                .ncores = ncores,
                                .oversubscribed = most > ncores,
                                .all_direct = nhosts == 1,
                                .host = host,
                                .slice_bytes = SLOT_BYTES};
}

void program_predict(const struct program_source *source, struct program_predictions *predictions)
{
    const struct tt_program *program = source->program;
    struct tt_tune_host host;
    struct tt_tune_found found;
    struct tt_program_load load = {.steps = 0};
    int nhosts = source->nhosts < program->nranks ? source->nhosts : program->nranks;
    *predictions = (struct program_predictions){.nhosts = nhosts};
    bool own = !source->import && program->func < TT_FUNC_COUNT_; /* has a row of the choice */
    if (!own && tt_program_load(program, &load)) return;
    tt_tune_host_find(&host, &found);
    const struct tt_tune_env env = these_hosts(source, nhosts, &host);
    for (int k = 0; k < PROGRAM_PREDICTED; k++) {
        struct program_prediction *row = &predictions->rows[k];
        const struct tt_tune_query query = {.func = (enum tt_func)program->func,
                                            .type = ncclFloat32,
                                            .op = ncclSum,
                                            .bytes = sizes[k].bytes,
                                            .nops = 1,
                                            .root = 0};
        struct tt_tune_choice choice;
        row->size = sizes[k].name;
        row->bytes = sizes[k].bytes;
        row->usec = own ? tt_model_plain_time(&env, &query, (enum tt_algo)program->algo,
                                              (enum tt_proto)program->proto)
                        : tt_tune_predict(&env, &query, program, &load);
        if (row->usec < 0) return; /* these hosts cannot run it */
        if (program->func < TT_FUNC_COUNT_ &&
            tt_tune_choose(&env, &query, NULL, &choice) == ncclSuccess) {
            row->own_algo = tt_algo_name(choice.algo);
            row->own_usec = choice.time_usec;
        }
    }
    predictions->there = true;
    predictions->measured = found.hash != 0;
}

static double rounded(double value, int digits)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%.*e", digits - 1, value);
    return strtod(text, NULL);
}

void program_predict_print(const struct program_predictions *predictions)
{
    char where[64] = "this machine";
    if (!predictions->there) return;
    if (predictions->nhosts > 1)
        (void)snprintf(where, sizeof(where), "%d hosts like this machine", predictions->nhosts);
    printf("predicted      on %s, %s; in brackets what the library chooses\n", where,
           predictions->measured ? "by the figures of tutti tune"
                                 : "roughly, by built-in figures (tutti tune measures)");
    const int digits = predictions->measured ? 4 : 2;
    for (int k = 0; k < PROGRAM_PREDICTED; k++) {
        const struct program_prediction *row = &predictions->rows[k];
        printf("               %-8s %10.4g us", row->size, rounded(row->usec, digits));
        if (row->own_algo) printf("   (%s %.4g us)", row->own_algo, rounded(row->own_usec, digits));
        printf("\n");
    }
}

json_t *program_predict_json(const struct program_predictions *predictions)
{
    json_t *list = json_array();
    for (int k = 0; k < PROGRAM_PREDICTED && predictions->there; k++) {
        const struct program_prediction *row = &predictions->rows[k];
        json_t *item = json_pack("{s:I, s:f}", "bytes", (json_int_t)row->bytes, "usec", row->usec);
        if (row->own_algo) {
            json_object_set_new(item, "own_algo", json_string(row->own_algo));
            json_object_set_new(item, "own_usec", json_real(row->own_usec));
        }
        json_array_append_new(list, item);
    }
    return list;
}
