/* STATUS in JSON: NCCL's keys unchanged, ours added behind them (p2p_counts, completed_operations,
 * oldest_wait_sec). Two spaces a level, a key a line, as pollers that grep expect. */
#include "nccl.h"
#include "watch/inquiry/verdict.h"
#include "watch/ras/ras.h"

#include <string.h>
#include <time.h>

static void print_counts(FILE *out, const struct tt_status *status)
{
    static const int collectives[] = {TT_FUNC_BROADCAST,     TT_FUNC_REDUCE,    TT_FUNC_ALLGATHER,
                                      TT_FUNC_REDUCESCATTER, TT_FUNC_ALLREDUCE, TT_FUNC_ALLTOALL,
                                      TT_FUNC_GATHER,        TT_FUNC_SCATTER};
    const size_t count = sizeof(collectives) / sizeof(collectives[0]);
    fprintf(out, "          \"collective_counts\": {\n");
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "            \"%s\": %u%s\n", tt_func_name((enum tt_func)collectives[i]),
                status->launched[collectives[i]], i + 1 < count ? "," : "");
    }
    fprintf(out,
            "          },\n"
            "          \"p2p_counts\": {\n"
            "            \"Send\": %u,\n"
            "            \"Recv\": %u\n"
            "          },\n",
            status->launched[TT_FUNC_SEND], status->launched[TT_FUNC_RECV]);
}

static void print_rank(FILE *out, const struct tt_status *status, bool last)
{
    uint32_t oldest_msec = 0;
    for (int i = 0; i < status->nwaits; i++) {
        if (status->waits[i].age_msec > oldest_msec) oldest_msec = status->waits[i].age_msec;
    }
    fprintf(out,
            "        {\n"
            "          \"rank\": %d,\n"
            "          \"host\": \"%s\",\n"
            "          \"pid\": %d,\n"
            "          \"cuda_dev\": %d,\n"
            "          \"nvml_dev\": %d,\n"
            "          \"status\": {\n"
            "            \"init_state\": %u,\n"
            "            \"async_error\": %u,\n"
            "            \"finalize_called\": %s,\n"
            "            \"destroy_flag\": false,\n"
            "            \"abort_flag\": %s\n"
            "          },\n",
            status->rank, status->process.addr, status->process.pid, status->device, status->device,
            status->init, status->abort, status->finalizes ? "true" : "false",
            status->abort ? "true" : "false");
    print_counts(out, status);
    fprintf(out,
            "          \"launched_operations\": %llu,\n"
            "          \"completed_operations\": %llu,\n"
            "          \"oldest_wait_sec\": %.3f\n"
            "        }%s\n",
            (unsigned long long)status->issued, (unsigned long long)status->served,
            oldest_msec * 1e-3, last ? "" : ",");
}

static void print_missing(FILE *out, const struct tt_inquiry *inquiry,
                          const struct tt_watch *watches, const struct tt_inquiry_comm *comm)
{
    int left = comm->nranks - comm->nfound;
    fprintf(out, "      \"missing_ranks\": [%s", left ? "\n" : "");
    for (int rank = 0; rank < comm->nranks; rank++) {
        if (comm->rank[rank] & TT_INQUIRY_FOUND) continue;
        struct tt_absent absent = tt_verdict_absent(inquiry, watches, comm->comm_id, rank);
        bool dead = absent.kind == TT_VERDICT_ENDED;
        bool late = absent.kind == TT_VERDICT_INIT || absent.kind == TT_VERDICT_AWAITED;
        fprintf(out,
                "        {\n"
                "          \"rank\": %d,\n"
                "          \"host\": \"%s\",\n"
                "          \"pid\": %d,\n"
                "          \"cuda_dev\": -1,\n"
                "          \"nvml_dev\": -1,\n"
                "          \"status\": {\n"
                "            \"unresponsive\": %s,\n"
                "            \"considered_dead\": %s\n"
                "          }\n"
                "        }%s\n",
                rank, *absent.addr ? absent.addr : "unknown", absent.pid,
                dead || late || absent.runs ? "false" : "true", dead ? "true" : "false",
                --left ? "," : "");
    }
    fprintf(out, "%s]\n", comm->nranks > comm->nfound ? "      " : "");
}

/* Of rank 0: with the communicator's own they identify it. */
static void print_hashes(FILE *out, const struct tt_inquiry *inquiry,
                         const struct tt_inquiry_comm *comm)
{
    const struct tt_status *first = tt_inquiry_find(inquiry, comm->comm_id, 0);
    uint64_t host = 0xcbf29ce484222325ull;
    for (const char *c = first ? first->process.host : ""; *c; c++)
        host = (host ^ (unsigned char)*c) * 0x100000001b3ull;
    fprintf(out, "      \"hash\": \"0x%llx\",\n      \"secondary_hash\": \"0x%llx:0x%llx\",\n",
            (unsigned long long)comm->comm_id, first ? (unsigned long long)host : 0ull,
            first ? (unsigned long long)first->process.key : 0ull);
}

static void print_comm(FILE *out, const struct tt_inquiry *inquiry, const struct tt_watch *watches,
                       const struct tt_inquiry_comm *comm, bool last)
{
    int left = comm->nfound;
    fprintf(out, "    {\n");
    print_hashes(out, inquiry, comm);
    fprintf(out,
            "      \"size\": %d,\n"
            "      \"ranks_count\": %d,\n"
            "      \"missing_ranks_count\": %d,\n"
            "      \"ranks\": [\n",
            comm->nranks, comm->nfound, comm->nranks - comm->nfound);
    for (int rank = 0; rank < comm->nranks; rank++) {
        const struct tt_status *status = tt_inquiry_find(inquiry, comm->comm_id, rank);
        if (status) print_rank(out, status, --left == 0);
    }
    fprintf(out, "      ],\n");
    print_missing(out, inquiry, watches, comm);
    fprintf(out, "    }%s\n", last ? "" : ",");
}

void tt_ras_json(FILE *out, const struct tt_inquiry *inquiry, const struct tt_watch *watches)
{
    char when[32] = "";
    struct tm parts;
    time_t now = time(NULL);
    bool late = inquiry->late;
    if (localtime_r(&now, &parts)) strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &parts);
    fprintf(out,
            "{\n"
            "  \"nccl_version\": \"%d.%d.%d\",\n"
            "  \"cuda_runtime_version\": %d,\n"
            "  \"cuda_driver_version\": %d,\n"
            "  \"timestamp\": \"%s\",\n"
            "  \"communicators_count\": %zu,\n"
            "  \"communicators\": [\n",
            NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, CUDART_VERSION, CUDART_VERSION, when,
            inquiry->ncomms);
    for (size_t i = 0; i < inquiry->ncomms; i++)
        print_comm(out, inquiry, watches, &inquiry->comms[i], i + 1 == inquiry->ncomms);
    fprintf(out,
            "  ],\n"
            "  \"ras\": {\n"
            "    \"collection_time_sec\": %.3f,\n"
            "    \"timeouts_count\": %d\n"
            "  }\n"
            "}\n",
            (double)inquiry->took_nsec * 1e-9, late ? 1 : 0);
}
