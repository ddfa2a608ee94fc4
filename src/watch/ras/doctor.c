/* The answers of all ranks as one document, and per communicator the verdict of the rank that has
 * stood still longest. Texts of peers were cleaned when they came, so they need no escapes. */
#include "watch/ras/doctor.h"

#include "base/text/rank_list.h"
#include "watch/inquiry/verdict.h"

#include <string.h>

#define STILL_MSEC 1000 /* younger waits are everyday */

static void print_call(FILE *out, const char *key, const struct tt_call *call)
{
    char text[TT_CALL_BYTES];
    if (!call->known) return;
    tt_call_text(call, false, text);
    fprintf(out, ", \"%s\": \"%s\"", key, text);
}

static void print_waits(FILE *out, const struct tt_status *status)
{
    fprintf(out, ", \"waits\": [");
    for (int i = 0; i < status->nwaits; i++) {
        const struct tt_status_wait *wait = &status->waits[i];
        fprintf(out, "%s{\"for\": \"%s\", \"peer\": %d, \"operation\": %llu, \"age_sec\": %.3f",
                i ? ", " : "", tt_status_wait_word(wait), wait->peer,
                (unsigned long long)wait->number, wait->age_msec * 1e-3);
        print_call(out, "call", &wait->call);
        fprintf(out, "}");
    }
    fprintf(out, "]");
}

static void print_rank(FILE *out, const struct tt_status *status)
{
    const char *state = "idle";
    if (tt_status_has_work(status)) state = status->nwaits ? "waits" : "works";
    if (status->graphs || status->exchange_msec >= STILL_MSEC) state = "waits";
    if (status->init) state = "init";
    if (status->abort) state = "failed";
    fprintf(out,
            "\n        {\"rank\": %d, \"host\": \"%s\", \"address\": \"%s\", \"pid\": %d, "
            "\"device\": %d, \"state\": \"%s\", \"launched\": %llu, \"finished\": %llu, "
            "\"collectives\": %llu, \"still_sec\": %.3f, \"last_call_sec\": %.3f",
            status->rank, status->process.host, status->process.addr, status->process.pid,
            status->device, state, (unsigned long long)status->issued,
            (unsigned long long)status->served, (unsigned long long)status->begun,
            status->idle_msec * 1e-3, status->quiet_msec * 1e-3);
    if (status->abort) fprintf(out, ", \"error\": %u", status->abort);
    if (status->graphs) fprintf(out, ", \"graphs\": %u", status->graphs);
    if (status->exchange_msec >= STILL_MSEC)
        fprintf(out, ", \"exchange_sec\": %.3f", status->exchange_msec * 1e-3);
    print_call(out, "last_call", &status->last);
    print_waits(out, status);
    fprintf(out, "}");
}

/* The rank that has stood still longest, and at least so long that it is worth a report. */
static const struct tt_status *stillest(const struct tt_inquiry *inquiry,
                                        const struct tt_inquiry_comm *comm)
{
    const struct tt_status *found = NULL;
    for (size_t i = 0; i < inquiry->nfound; i++) {
        const struct tt_status *status = &inquiry->found[i];
        if (status->comm_id != comm->comm_id || status->idle_msec < STILL_MSEC) continue;
        if (!found || status->idle_msec > found->idle_msec) found = status;
    }
    return found;
}

/* The others may be at work, or their waits too young for a verdict: a stopped rank is one anyway.
 * It is before a silent one, as the question to that may pass through it. */
static void judge_stopped(const struct tt_inquiry *inquiry, const struct tt_watch *watches,
                          const struct tt_inquiry_comm *comm, struct tt_verdict *verdict)
{
    for (int rank = 0; rank < comm->nranks; rank++) {
        if (comm->rank[rank] & TT_INQUIRY_FOUND) continue;
        struct tt_absent absent = tt_verdict_absent(inquiry, watches, comm->comm_id, rank);
        if (absent.kind != TT_VERDICT_STOPPED) continue;
        verdict->kind = absent.kind;
        verdict->comm_id = comm->comm_id;
        verdict->rank = rank;
        snprintf(verdict->sentence, sizeof(verdict->sentence),
                 "rank %d on host %s (pid %d) is stopped", rank, absent.host, absent.pid);
        return;
    }
}

/* No rank waits for another one, but one cannot end the communicator. */
static void judge_graphs(const struct tt_inquiry *inquiry, const struct tt_inquiry_comm *comm,
                         struct tt_verdict *verdict)
{
    for (size_t i = 0; i < inquiry->nfound; i++) {
        const struct tt_status *status = &inquiry->found[i];
        if (status->comm_id != comm->comm_id || !status->graphs) continue;
        verdict->kind = TT_VERDICT_GRAPHS;
        verdict->comm_id = comm->comm_id;
        verdict->rank = status->rank;
        snprintf(verdict->sentence, sizeof(verdict->sentence),
                 "the end of the communicator on rank %d on host %s (pid %d) waits for graphs with "
                 "%u operation(s) of it: destroy them first (cudaGraphExecDestroy, "
                 "cudaGraphDestroy)",
                 status->rank, status->process.host, status->process.pid, status->graphs);
        return;
    }
}

/* Ranks stand in a split, a registration or the like, and others have not come to it. */
static void judge_exchange(const struct tt_inquiry *inquiry, const struct tt_inquiry_comm *comm,
                           struct tt_verdict *verdict)
{
    uint32_t longest_msec = 0;
    struct tt_rank_list here = {.count = 0}, late = {.count = 0};
    for (int rank = 0; rank < comm->nranks; rank++) {
        const struct tt_status *status = tt_inquiry_find(inquiry, comm->comm_id, rank);
        if (!status) continue;
        if (status->exchange_msec > longest_msec) longest_msec = status->exchange_msec;
        tt_rank_list_add(status->exchange_msec ? &here : &late, rank);
    }
    if (!late.count || longest_msec < STILL_MSEC) return;
    verdict->kind = TT_VERDICT_NOT_CALLED;
    verdict->comm_id = comm->comm_id;
    verdict->rank = late.first;
    snprintf(verdict->sentence, sizeof(verdict->sentence),
             "%s %s %s for the others in a split, registration or the like since %.1f s; %s %s %s "
             "not made that call",
             here.count > 1 ? "ranks" : "rank", here.text, here.count > 1 ? "wait" : "waits",
             longest_msec * 1e-3, late.count > 1 ? "ranks" : "rank", late.text,
             late.count > 1 ? "have" : "has");
}

static void print_verdict(FILE *out, const struct tt_inquiry *inquiry,
                          const struct tt_watch *watches, const struct tt_inquiry_comm *comm)
{
    struct tt_verdict verdict = {.kind = TT_VERDICT_NONE};
    const struct tt_status *still = stillest(inquiry, comm);
    if (still) tt_verdict_find(inquiry, watches, comm->comm_id, still->rank, &verdict);
    if (verdict.kind == TT_VERDICT_NONE || verdict.kind == TT_VERDICT_SILENT)
        judge_stopped(inquiry, watches, comm, &verdict);
    if (verdict.kind == TT_VERDICT_NONE) judge_graphs(inquiry, comm, &verdict);
    if (verdict.kind == TT_VERDICT_NONE) judge_exchange(inquiry, comm, &verdict);
    if (verdict.kind == TT_VERDICT_NONE) {
        fprintf(out, "\"verdict\": null");
        return;
    }
    fprintf(out,
            "\"verdict\": {\"kind\": \"%s\", \"comm\": \"0x%llx\", \"rank\": %d, \"sentence\": "
            "\"%s\"}",
            tt_verdict_name(verdict.kind), (unsigned long long)verdict.comm_id, verdict.rank,
            verdict.sentence);
}

static void print_comm(FILE *out, const struct tt_inquiry *inquiry, const struct tt_watch *watches,
                       const struct tt_inquiry_comm *comm)
{
    const char *name = "", *before = "";
    for (size_t i = 0; i < inquiry->nfound; i++) {
        if (inquiry->found[i].comm_id == comm->comm_id) name = inquiry->found[i].name;
    }
    fprintf(out, "\n    {\"id\": \"0x%llx\", \"name\": \"%s\", \"size\": %d,\n      ",
            (unsigned long long)comm->comm_id, name, comm->nranks);
    print_verdict(out, inquiry, watches, comm);
    fprintf(out, ",\n      \"missing\": [");
    for (int rank = 0; rank < comm->nranks; rank++) {
        if (comm->rank[rank] & TT_INQUIRY_FOUND) continue;
        struct tt_absent absent = tt_verdict_absent(inquiry, watches, comm->comm_id, rank);
        fprintf(out,
                "%s{\"rank\": %d, \"host\": \"%s\", \"pid\": %d, \"state\": \"%s\", \"runs\": %s}",
                before, rank, absent.host, absent.pid, tt_verdict_name(absent.kind),
                absent.runs ? "true" : "false");
        before = ", ";
    }
    fprintf(out, "],\n      \"ranks\": [");
    before = "";
    for (int rank = 0; rank < comm->nranks; rank++) {
        const struct tt_status *status = tt_inquiry_find(inquiry, comm->comm_id, rank);
        if (!status) continue;
        fputs(before, out);
        print_rank(out, status);
        before = ",";
    }
    fprintf(out, "]}");
}

static bool is_first_of_process(const struct tt_inquiry *inquiry, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (inquiry->found[k].process.key == inquiry->found[i].process.key) return false;
    }
    return true;
}

void tt_doctor_json(FILE *out, const struct tt_inquiry *inquiry, const struct tt_watch *watches)
{
    const char *before = "";
    fprintf(out, "{\"took_sec\": %.3f,\n  \"processes\": [", (double)inquiry->took_nsec * 1e-9);
    for (size_t i = 0; i < inquiry->nfound; i++) {
        const struct tt_status_process *process = &inquiry->found[i].process;
        if (!is_first_of_process(inquiry, i)) continue;
        fprintf(out, "%s\n    {\"host\": \"%s\", \"address\": \"%s\", \"pid\": %d}", before,
                process->host, process->addr, process->pid);
        before = ",";
    }
    fprintf(out, "],\n  \"communicators\": [");
    for (size_t i = 0; i < inquiry->ncomms; i++) {
        if (i) fputs(",", out);
        print_comm(out, inquiry, watches, &inquiry->comms[i]);
    }
    fprintf(out, "]\n}\n");
}
