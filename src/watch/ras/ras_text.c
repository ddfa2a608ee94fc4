/* STATUS as text, in the order, the words and the columns of NCCL's report: people read it, and
 * scripts cut it. */
#include "base/error.h"
#include "nccl.h"
#include "watch/inquiry/verdict.h"
#include "watch/ras/ras.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED_MEMBERS = 10 };

enum life { LIFE_INIT, LIFE_RUNNING, LIFE_FINALIZE, LIFE_ABORT }; /* as they follow */
static const char *const life_names[] = {"INIT", "RUNNING", "FINALIZE", "ABORT"};

struct row { /* of the table of communicators, and of what follows it */
    const struct tt_inquiry_comm *comm;
    int nodes, least, most; /* hosts, and ranks on the emptiest and the fullest */
    enum life life;         /* of the most advanced rank */
    bool incomplete, failed, mismatched;
    int group, index;
};

/* ---- what the job is made of ---- */

struct span {
    int least, most;
};

static void span_add(struct span *span, int value)
{
    if (!span->most || value < span->least) span->least = value;
    if (value > span->most) span->most = value;
}

static void span_text(const struct span *span, char text[32])
{
    snprintf(text, 32, span->least == span->most ? "%d" : "%d-%d", span->least, span->most);
}

static bool same_host(const struct tt_status *a, const struct tt_status *b)
{
    return !strcmp(a->process.host, b->process.host);
}

static bool same_process(const struct tt_status *a, const struct tt_status *b)
{
    return a->process.key == b->process.key;
}

static bool same_device(const struct tt_status *a, const struct tt_status *b)
{
    return same_process(a, b) && a->device == b->device;
}

/* None before it is the same. */
static bool is_first(const struct tt_status *found, size_t i,
                     bool (*same)(const struct tt_status *a, const struct tt_status *b))
{
    size_t k = 0;
    while (k < i && !same(&found[k], &found[i]))
        k++;
    return k == i;
}

/* How many different ones, by `each`, are the same as this one by `within`. */
static int count_within(const struct tt_inquiry *inquiry, const struct tt_status *one,
                        bool (*within)(const struct tt_status *a, const struct tt_status *b),
                        bool (*each)(const struct tt_status *a, const struct tt_status *b))
{
    int count = 0;
    for (size_t k = 0; k < inquiry->nfound; k++) {
        if (within(&inquiry->found[k], one) && is_first(inquiry->found, k, each)) count++;
    }
    return count;
}

static void print_summary(FILE *out, const struct tt_inquiry *inquiry)
{
    int nodes = 0, processes = 0, gpus = 0;
    struct span per_node = {0, 0}, per_process = {0, 0};
    char texts[2][32];
    for (size_t i = 0; i < inquiry->nfound; i++) {
        const struct tt_status *one = &inquiry->found[i];
        if (is_first(inquiry->found, i, same_host)) {
            nodes++;
            span_add(&per_node, count_within(inquiry, one, same_host, same_process));
        }
        if (is_first(inquiry->found, i, same_process)) {
            int devices = count_within(inquiry, one, same_process, same_device);
            processes++;
            gpus += devices;
            span_add(&per_process, devices);
        }
    }
    span_text(&per_node, texts[0]);
    span_text(&per_process, texts[1]);
    fprintf(out,
            "Job summary\n===========\n\n"
            "  Nodes  Processes         GPUs  Processes     GPUs\n"
            "(total)   per node  per process    (total)  (total)\n"
            "%7d  %9s  %11s  %9d  %7d\n\n",
            nodes, texts[0], texts[1], processes, gpus);
}

/* ---- communicators ---- */

static bool counts_differ(const struct tt_status *a, const struct tt_status *b)
{
    for (int f = 0; f < TT_STATUS_FUNCS; f++) {
        if (!tt_func_is_message((enum tt_func)f) && a->launched[f] != b->launched[f]) return true;
    }
    return false;
}

static enum life life_of(const struct tt_status *status)
{
    if (status->abort) return LIFE_ABORT;
    if (status->init) return LIFE_INIT;
    return status->finalizes ? LIFE_FINALIZE : LIFE_RUNNING;
}

static void fill_row(struct row *row, const struct tt_inquiry *inquiry,
                     const struct tt_inquiry_comm *comm)
{
    struct span per_node = {0, 0};
    const struct tt_status *first = NULL;
    *row = (struct row){.comm = comm, .incomplete = comm->nfound < comm->nranks};
    for (size_t i = 0; i < inquiry->nfound; i++) {
        const struct tt_status *status = &inquiry->found[i];
        int here = 0;
        bool new_host = true;
        if (status->comm_id != comm->comm_id) continue;
        if (!first) first = status;
        if (life_of(status) > row->life) row->life = life_of(status);
        row->failed |= status->abort != 0;
        row->mismatched |= counts_differ(first, status) || life_of(first) != life_of(status);
        for (size_t k = 0; k < inquiry->nfound; k++) {
            const struct tt_status *other = &inquiry->found[k];
            if (other->comm_id != comm->comm_id || !same_host(other, status)) continue;
            here++;
            if (k < i) new_host = false;
        }
        row->nodes += new_host;
        if (new_host) span_add(&per_node, here);
    }
    row->least = per_node.least;
    row->most = per_node.most;
}

static bool same_group(const struct row *a, const struct row *b)
{
    return a->comm->nranks == b->comm->nranks && a->nodes == b->nodes && a->life == b->life &&
           a->incomplete == b->incomplete && a->failed == b->failed &&
           a->mismatched == b->mismatched;
}

/* Largest first. */
static int by_size(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    if (left->comm->nranks != right->comm->nranks) return right->comm->nranks - left->comm->nranks;
    return (left->incomplete * 4 + left->failed * 2 + left->mismatched) -
           (right->incomplete * 4 + right->failed * 2 + right->mismatched);
}

static void print_group(FILE *out, const struct row *rows, size_t count)
{
    char per_node[32], errors[40];
    struct span span = {rows[0].least, rows[0].most};
    int ranks = 0;
    for (size_t i = 0; i < count; i++) {
        ranks += rows[i].comm->nfound;
        span_add(&span, rows[i].least);
        span_add(&span, rows[i].most);
    }
    span_text(&span, per_node);
    snprintf(errors, sizeof(errors), "%s%s%s", rows[0].incomplete ? ",INCOMPLETE" : "",
             rows[0].failed ? ",ERROR" : "", rows[0].mismatched ? ",MISMATCH" : "");
    fprintf(out, "%5d  %8zu  %8d  %8s  %8d  %8d  %8s  %6s\n", rows[0].group, count, rows[0].nodes,
            per_node, rows[0].comm->nranks, ranks, life_names[rows[0].life],
            *errors ? errors + 1 : "OK");
}

static void print_table(FILE *out, const struct tt_inquiry *inquiry, struct row *rows, size_t count)
{
    fprintf(out, "Communicators... (%.3fs)\n=============\n\n", (double)inquiry->took_nsec * 1e-9);
    if (!count) {
        fprintf(out, "No communicator data collected!\n\n");
        return;
    }
    fprintf(out, "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
                 "    #  in group  per comm  per node  per comm  in group\n");
    for (size_t i = 0, group = 0; i < count; group++) {
        size_t end = i;
        for (; end < count && same_group(&rows[i], &rows[end]); end++) {
            rows[end].group = (int)group;
            rows[end].index = (int)(end - i);
        }
        print_group(out, rows + i, end - i);
        i = end;
    }
    fprintf(out, "\n");
}

/* ---- what is wrong with them ---- */

static void print_member(FILE *out, const struct tt_status *status, const char *what)
{
    fprintf(out, "  Rank %d%s -- GPU %d managed by process %d on node %s\n", status->rank, what,
            status->device, status->process.pid, status->process.addr);
}

static void print_errors(FILE *out, const struct tt_inquiry *inquiry,
                         const struct tt_watch *watches, const struct row *row)
{
    const struct tt_inquiry_comm *comm = row->comm;
    int missing = comm->nranks - comm->nfound;
    if (row->incomplete) {
        fprintf(out, "#%d-%d (%016llx) INCOMPLETE\n  Missing communicator data from %d rank%s\n",
                row->group, row->index, (unsigned long long)comm->comm_id, missing,
                missing == 1 ? "" : "s");
        for (int rank = 0; rank < comm->nranks; rank++) {
            if (comm->rank[rank] & TT_INQUIRY_FOUND) continue;
            struct tt_absent absent = tt_verdict_absent(inquiry, watches, comm->comm_id, rank);
            fprintf(out, "  Rank %d -- process %d on node %s (%s)\n", rank, absent.pid,
                    *absent.addr ? absent.addr : absent.host, tt_verdict_name(absent.kind));
        }
        fprintf(out, "\n");
    }
    if (!row->failed) return;
    fprintf(out, "#%d-%d (%016llx) ERROR\n", row->group, row->index,
            (unsigned long long)comm->comm_id);
    for (int rank = 0; rank < comm->nranks; rank++) {
        const struct tt_status *status = tt_inquiry_find(inquiry, comm->comm_id, rank);
        char what[80];
        if (!status || !status->abort) continue;
        snprintf(what, sizeof(what), " reported %s", tt_result_text((ncclResult_t)status->abort));
        print_member(out, status, what);
    }
    fprintf(out, "\n");
}

/* Ranks that have launched another number of a function's operations than most, and how many. */
static void print_mismatch(FILE *out, const struct tt_inquiry *inquiry, const struct row *row,
                           int func, bool verbose)
{
    const struct tt_inquiry_comm *comm = row->comm;
    uint32_t least = UINT32_MAX, most = 0;
    int at_most = 0;
    for (int rank = 0; rank < comm->nranks; rank++) {
        const struct tt_status *status = tt_inquiry_find(inquiry, comm->comm_id, rank);
        uint32_t count = status ? status->launched[func] : most;
        if (!status) continue;
        if (count < least) least = count;
        if (count > most) at_most = 0;
        if (count > most) most = count;
        at_most += count == most;
    }
    if (least >= most) return;
    int behind = comm->nfound - at_most;
    fprintf(out,
            "#%d-%d (%016llx) MISMATCH\n"
            "  Communicator ranks have different %s operation counts\n"
            "  %d ranks have launched up to operation %u\n",
            row->group, row->index, (unsigned long long)comm->comm_id,
            tt_func_name((enum tt_func)func), at_most, most);
    for (int rank = 0; rank < comm->nranks; rank++) {
        const struct tt_status *status = tt_inquiry_find(inquiry, comm->comm_id, rank);
        char what[80];
        bool listed = verbose || behind <= LISTED_MEMBERS;
        if (!status || status->launched[func] == most || !listed) continue;
        snprintf(what, sizeof(what), " has launched up to operation %u", status->launched[func]);
        print_member(out, status,
                     status->launched[func] ? what : " has not launched any operations");
    }
    fprintf(out, "\n");
}

/* Ranks that are in another part of their life than most advanced ones. */
static void print_statuses(FILE *out, const struct tt_inquiry *inquiry, const struct row *row)
{
    const struct tt_inquiry_comm *comm = row->comm;
    const enum life most = row->life;
    char what[80];
    int agreeing = 0;
    for (int rank = 0; rank < comm->nranks; rank++) {
        const struct tt_status *status = tt_inquiry_find(inquiry, comm->comm_id, rank);
        if (status && life_of(status) == most) agreeing++;
    }
    if (agreeing == comm->nfound) return;
    fprintf(out,
            "#%d-%d (%016llx) MISMATCH\n"
            "  Communicator ranks have different status\n"
            "  %d ranks have status %s\n",
            row->group, row->index, (unsigned long long)comm->comm_id, agreeing, life_names[most]);
    for (int rank = 0; rank < comm->nranks; rank++) {
        const struct tt_status *status = tt_inquiry_find(inquiry, comm->comm_id, rank);
        if (!status || life_of(status) == most) continue;
        snprintf(what, sizeof(what), " has status %s", life_names[life_of(status)]);
        print_member(out, status, what);
    }
    fprintf(out, "\n");
}

static void print_warnings(FILE *out, const struct tt_inquiry *inquiry, const struct row *rows,
                           size_t count, bool verbose)
{
    bool any = inquiry->late;
    for (size_t i = 0; i < count; i++)
        any |= rows[i].mismatched;
    if (!any) return;
    fprintf(out, "Warnings\n========\n\n");
    if (inquiry->late) {
        fprintf(out, "TIMEOUT\n  Encountered 1 communication timeout while gathering communicator "
                     "data\n\n");
    }
    for (size_t i = 0; i < count; i++) {
        if (rows[i].mismatched) print_statuses(out, inquiry, &rows[i]);
        for (int f = 0; f < TT_STATUS_FUNCS && rows[i].mismatched; f++) {
            if (!tt_func_is_message((enum tt_func)f))
                print_mismatch(out, inquiry, &rows[i], f, verbose);
        }
    }
}

void tt_ras_text(FILE *out, const struct tt_inquiry *inquiry, const struct tt_watch *watches,
                 bool verbose)
{
    size_t count = inquiry->ncomms;
    bool wrong = false;
    struct row *rows = calloc(count ? count : 1, sizeof(*rows));
    fprintf(out,
            "NCCL version %d.%d.%d compiled with CUDA %d.%d\n"
            "CUDA runtime version %d, driver version %d\n\n",
            NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10,
            CUDART_VERSION, CUDART_VERSION);
    if (!rows) return;
    print_summary(out, inquiry);
    for (size_t i = 0; i < count; i++) {
        fill_row(&rows[i], inquiry, &inquiry->comms[i]);
        wrong |= rows[i].incomplete || rows[i].failed;
    }
    qsort(rows, count, sizeof(*rows), by_size);
    print_table(out, inquiry, rows, count);
    if (wrong) fprintf(out, "Errors\n======\n\n");
    for (size_t i = 0; i < count; i++)
        print_errors(out, inquiry, watches, &rows[i]);
    print_warnings(out, inquiry, rows, count, verbose);
    free(rows);
}
