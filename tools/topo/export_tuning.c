/* What NCCL's cost model makes of a layout, as the member "tuning" of a scenario. */
#include "machine.h"

#include "tune/gpu_model.h"

/* NCCL's numbers of functions, algorithms and protocols. */
static const char *const functions[TT_GPU_FUNCS] = {"Broadcast", "Reduce", "AllGather",
                                                    "ReduceScatter", "AllReduce"};
static const char *const algorithms[TT_GPU_ALGOS] = {
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
static const char *const protocols[TT_PROTO_COUNT_] = {"LL", "LL128", "Simple"};

enum { SIZES = 16 }; /* 8 B, each four times the one before, and 4 GiB */

static json_t *of_algorithm(const struct tt_gpu_model *model, int func, int algo)
{
    json_t *rows = json_object();
    for (int p = 0; p < TT_PROTO_COUNT_; p++) {
        float bw = model->bw_gbps[func][algo][p];
        if (bw == 0) continue;
        json_object_set_new(rows, protocols[p],
                            json_pack("[o,o]",
                                      topo_number((double)model->latency_usec[func][algo][p]),
                                      topo_number((double)bw)));
    }
    return rows;
}

static json_t *of_model(const struct tt_gpu_model *model)
{
    json_t *all = json_object();
    for (int f = 0; f < TT_GPU_FUNCS; f++) {
        json_t *function = json_object();
        for (int a = 0; a < TT_GPU_ALGOS; a++) {
            json_t *rows = of_algorithm(model, f, a);
            if (json_object_size(rows)) json_object_set(function, algorithms[a], rows);
            json_decref(rows);
        }
        json_object_set_new(all, functions[f], function);
    }
    return all;
}

static json_t *by_algorithm(int values[TT_GPU_ALGOS][TT_PROTO_COUNT_])
{
    json_t *all = json_object();
    for (int a = 0; a < TT_GPU_ALGOS; a++) {
        json_object_set_new(all, algorithms[a],
                            json_pack("[i,i,i]", values[a][0], values[a][1], values[a][2]));
    }
    return all;
}

static json_t *choices(const struct tt_gpu_model *model, enum tt_func func)
{
    json_t *rows = json_array();
    size_t bytes = 8;
    for (int k = 0; k < SIZES; k++, bytes *= k < SIZES - 1 ? 4 : 2) {
        const struct tt_gpu_query query = {func, bytes, 1, true, false, false};
        struct tt_gpu_choice choice;
        if (!tt_gpu_choose(model, &query, &choice)) continue;
        json_array_append_new(rows,
                              json_pack("[I,s,s,i,i,o]", (json_int_t)bytes, algorithms[choice.algo],
                                        protocols[choice.proto], choice.nchannels, choice.nthreads,
                                        topo_number((double)choice.time_usec)));
    }
    return rows;
}

json_t *export_tuning(const struct tt_topo_layout *layout)
{
    struct tt_gpu_model model;
    if (tt_gpu_model_make(layout, NULL, &model)) {
        topo_print_error();
        return NULL;
    }
    json_t *chosen = json_object(), *tuning = json_object();
    for (int f = 0; f < TT_GPU_FUNCS; f++)
        json_object_set_new(chosen, functions[f], choices(&model, (enum tt_func)f));
    if (model.nranks > 1) json_object_set_new(tuning, "model", of_model(&model));
    json_object_set_new(tuning, "max_threads", by_algorithm(model.max_threads));
    json_object_set_new(tuning, "thread_thresholds",
                        model.nranks > 1 ? by_algorithm(model.thread_bytes) : json_object());
    json_object_set_new(tuning, "choices", chosen);
    return tuning;
}
