/* Every misuse of the doors gets its code, and the thread's group depth survives it. */
#include "../check.h"
#include "fakes.h"

#include "base/mem.h"
#include "nccl.h"
#include "nccl_device.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

static char in_buffer[4096], out_buffer[4096];

static ncclResult_t call(enum tt_func func, const struct tt_task *t)
{
    ncclComm_t comm = (ncclComm_t)t->comm;
    switch (func) {
    case TT_FUNC_ALLREDUCE:
        return ncclAllReduce(t->in, t->out, t->count, t->type, t->op, comm, t->stream);
    case TT_FUNC_REDUCE:
        return ncclReduce(t->in, t->out, t->count, t->type, t->op, t->root, comm, t->stream);
    case TT_FUNC_BROADCAST:
        return ncclBroadcast(t->in, t->out, t->count, t->type, t->root, comm, t->stream);
    case TT_FUNC_ALLGATHER: return ncclAllGather(t->in, t->out, t->count, t->type, comm, t->stream);
    case TT_FUNC_REDUCESCATTER:
        return ncclReduceScatter(t->in, t->out, t->count, t->type, t->op, comm, t->stream);
    case TT_FUNC_ALLTOALL: return ncclAlltoAll(t->in, t->out, t->count, t->type, comm, t->stream);
    case TT_FUNC_GATHER:
        return ncclGather(t->in, t->out, t->count, t->type, t->root, comm, t->stream);
    case TT_FUNC_SCATTER:
        return ncclScatter(t->in, t->out, t->count, t->type, t->root, comm, t->stream);
    case TT_FUNC_SEND: return ncclSend(t->in, t->count, t->type, t->root, comm, t->stream);
    default: return ncclRecv(t->out, t->count, t->type, t->root, comm, t->stream);
    }
}

static const enum tt_func all_funcs[] = {
    TT_FUNC_ALLREDUCE, TT_FUNC_REDUCE, TT_FUNC_BROADCAST, TT_FUNC_ALLGATHER, TT_FUNC_REDUCESCATTER,
    TT_FUNC_ALLTOALL,  TT_FUNC_GATHER, TT_FUNC_SCATTER,   TT_FUNC_SEND,      TT_FUNC_RECV};

static bool has_root(enum tt_func func)
{
    return func != TT_FUNC_ALLREDUCE && func != TT_FUNC_ALLGATHER &&
           func != TT_FUNC_REDUCESCATTER && func != TT_FUNC_ALLTOALL;
}

static bool has_op(enum tt_func func)
{
    return func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCE || func == TT_FUNC_REDUCESCATTER;
}

struct bad_call {
    const char *name;
    bool (*applies)(enum tt_func func); /* NULL: to all */
    void (*spoil)(struct tt_task *task);
    ncclResult_t rc;
    const char *words; /* in the message: the argument and its value */
};

static void no_comm(struct tt_task *task)
{
    task->comm = NULL;
}
static void negative_root(struct tt_task *task)
{
    task->root = -1;
}
static void large_root(struct tt_task *task)
{
    task->root = 2;
}
static void negative_type(struct tt_task *task)
{
    task->type = (ncclDataType_t)-1;
}
static void large_type(struct tt_task *task)
{
    task->type = ncclNumTypes;
}
static void negative_op(struct tt_task *task)
{
    task->op = (ncclRedOp_t)-1;
}
static void foreign_op(struct tt_task *task)
{
    task->op = (ncclRedOp_t)12345;
}
static void huge_count(struct tt_task *task)
{
    task->count = SIZE_MAX / 2;
}
static void null_buffers(struct tt_task *task)
{
    task->in = NULL;
    task->out = NULL;
}
static void nothing_wrong(struct tt_task *task)
{
    (void)task;
}
static bool is_collective(enum tt_func func)
{
    return func != TT_FUNC_SEND && func != TT_FUNC_RECV;
}
static void zero_count(struct tt_task *task)
{
    task->count = 0;
    null_buffers(task);
}
static bool is_exchange(enum tt_func func)
{
    return func == TT_FUNC_ALLTOALL;
}
static void same_buffers(struct tt_task *task)
{
    task->out = in_buffer;
}

static const struct bad_call bad_calls[] = {
    {"good", is_collective, nothing_wrong, ncclSuccess, ""},
    {"NULL communicator", NULL, no_comm, ncclInvalidArgument, "comm"},
    {"negative root", has_root, negative_root, ncclInvalidArgument, " -1 is not in 0..1"},
    {"root beyond", has_root, large_root, ncclInvalidArgument, " 2 is not in 0..1"},
    {"negative type", NULL, negative_type, ncclInvalidArgument, "datatype -1"},
    {"type beyond", NULL, large_type, ncclInvalidArgument, "datatype 12"},
    {"negative operator", has_op, negative_op, ncclInvalidArgument, "op -1"},
    {"foreign operator", has_op, foreign_op, ncclInvalidArgument, "op 12345"},
    {"count overflows", NULL, huge_count, ncclInvalidArgument, "count 9223372036854775807"},
    {"NULL buffers", NULL, null_buffers, ncclInvalidArgument, "buff is NULL, count 16"},
    {"zero count", is_collective, zero_count, ncclSuccess, ""},
    {"exchange in place", is_exchange, same_buffers, ncclSuccess, ""},
};

static void assert_says(const char *func, const char *words)
{
    const char *said = ncclGetLastError(NULL);
    if (strstr(said, func) && strstr(said, words)) return;
    print_message("said \"%s\"\n", said);
    fail();
}

static void operations(void **state)
{
    (void)state;
    for (size_t f = 0; f < TT_LEN(all_funcs); f++) {
        for (size_t k = 0; k < TT_LEN(bad_calls); k++) {
            const struct bad_call *bad = &bad_calls[k];
            if (bad->applies && !bad->applies(all_funcs[f])) continue;
            struct tt_comm *comm = fake_comm(2, 0, true);
            struct tt_task task = {.func = all_funcs[f],
                                   .in = in_buffer,
                                   .out = out_buffer,
                                   .count = 16,
                                   .type = ncclFloat32,
                                   .comm = comm,
                                   .stream = fake_stream(0)};
            fake_reset();
            bad->spoil(&task);
            print_message("case: %s, %s\n", tt_func_name(all_funcs[f]), bad->name);
            assert_int_equal(call(all_funcs[f], &task), bad->rc);
            assert_int_equal(tt_group_depth(), 0);
            if (bad->rc) assert_says(tt_func_name(all_funcs[f]), bad->words);
            ncclGroupStart();
            assert_int_equal(call(all_funcs[f], &task), bad->rc);
            assert_int_equal(ncclGroupEnd(), bad->rc);
            assert_int_equal(tt_group_depth(), 0);
            fake_comm_free(comm);
        }
    }
}

static void ignored_buffers_may_be_null(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    ncclComm_t handle = (ncclComm_t)comm;
    (void)state;
    fake_reset();
    assert_int_equal(ncclReduce(in_buffer, NULL, 4, ncclInt8, ncclSum, 1, handle, NULL), 0);
    assert_int_equal(ncclBroadcast(NULL, out_buffer, 4, ncclInt8, 1, handle, NULL), 0);
    assert_int_equal(ncclGather(in_buffer, NULL, 4, ncclInt8, 1, handle, NULL), 0);
    assert_int_equal(ncclScatter(NULL, out_buffer, 4, ncclInt8, 1, handle, NULL), 0);
    assert_int_equal(ncclReduce(in_buffer, NULL, 4, ncclInt8, ncclSum, 0, handle, NULL),
                     ncclInvalidArgument);
    fake_comm_free(comm);
}

static void child_that_is_not_there_yet(void **state)
{
    ncclResult_t seen = ncclSuccess;
    (void)state;
    assert_int_equal(ncclCommGetAsyncError(NULL, &seen), ncclInvalidArgument);
    assert_says("ncclCommGetAsyncError", "sets newcomm when it is done");
}

static void non_blocking_keeps_the_error(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    ncclResult_t seen;
    (void)state;
    fake_reset();
    comm->config.blocking = 0;
    assert_int_equal(ncclAllReduce(NULL, NULL, 4, ncclInt8, ncclSum, (ncclComm_t)comm, NULL),
                     ncclInvalidArgument);
    assert_int_equal(ncclCommGetAsyncError((ncclComm_t)comm, &seen), ncclSuccess);
    assert_int_equal(seen, ncclInvalidArgument);
    fake_comm_free(comm);
}

static void queries(void **state)
{
    struct tt_comm *comm = fake_comm(3, 1, true);
    ncclComm_t handle = (ncclComm_t)comm;
    int value = -1;
    (void)state;
    fake_reset();
    assert_int_equal(ncclCommCount(NULL, &value), ncclInvalidArgument);
    assert_int_equal(ncclCommCount(handle, NULL), ncclInvalidArgument);
    assert_int_equal(ncclCommCount(handle, &value), ncclSuccess);
    assert_int_equal(value, 3);
    assert_int_equal(ncclCommUserRank(handle, &value), ncclSuccess);
    assert_int_equal(value, 1);
    comm->state = ncclRemoteError;
    value = -1;
    assert_int_equal(ncclCommCuDevice(handle, &value), ncclRemoteError);
    assert_int_equal(value, -1);
    comm->state = ncclInProgress;
    assert_int_equal(ncclCommCount(handle, &value), ncclInvalidArgument);
    assert_int_equal(ncclCommDestroy(handle), ncclInvalidArgument);
    comm->state = ncclSuccess;
    comm->magic = 0;
    assert_int_equal(ncclCommCount(handle, &value), ncclInvalidArgument);
    fake_comm_free(comm);
    assert_int_equal(ncclGetVersion(NULL), ncclInvalidArgument);
    assert_int_equal(ncclGetVersion(&value), ncclSuccess);
    assert_int_equal(value, 23203);
}

/* What programs and scripts match at the start of a text. */
static void texts_begin_as_usual(void **state)
{
    static const char *const phrases[] = {"no error",
                                          "unhandled cuda error",
                                          "unhandled system error",
                                          "internal error",
                                          "invalid argument",
                                          "invalid usage",
                                          "remote process exited or there was a network error",
                                          "NCCL operation in progress"};
    (void)state;
    for (int rc = 0; rc < (int)TT_LEN(phrases); rc++) {
        print_message("case: %s\n", phrases[rc]);
        assert_ptr_equal(strstr(ncclGetErrorString((ncclResult_t)rc), phrases[rc]),
                         ncclGetErrorString((ncclResult_t)rc));
    }
    assert_non_null(ncclGetErrorString((ncclResult_t)4711));
}

static void narrow_floats_alone(void **state)
{
    static const struct {
        const char *name;
        ncclDataType_t type;
        ncclRedOp_t op;
        size_t count;
        ncclResult_t rc;
    } cases[] = {
        {"average", ncclFloat8e4m3, ncclAvg, 4, ncclInvalidArgument},
        {"the other type", ncclFloat8e5m2, ncclAvg, 4, ncclInvalidArgument},
        {"nothing to scale", ncclFloat8e4m3, ncclAvg, 0, ncclSuccess},
        {"sum", ncclFloat8e4m3, ncclSum, 4, ncclSuccess},
        {"wider", ncclFloat16, ncclAvg, 4, ncclSuccess},
    };
    (void)state;
    fake_reset();
    struct tt_comm *comm = fake_comm(1, 0, true);
    char buffer[16];
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        print_message("case: %s\n", cases[k].name);
        assert_int_equal(ncclAllReduce(buffer, buffer, cases[k].count, cases[k].type, cases[k].op,
                                       (ncclComm_t)comm, fake_stream(0)),
                         cases[k].rc);
    }
    fake_comm_free(comm);
}

static void init_checks(void **state)
{
    ncclUniqueId id, damaged = {{0}};
    ncclConfig_t bad = NCCL_CONFIG_INITIALIZER;
    static const struct {
        const char *name;
        int nranks, rank, nids;
        const char *words;
    } cases[] = {
        {"no ranks", 0, 0, 1, "nranks 0"},         {"negative rank", 2, -1, 1, "rank -1"},
        {"rank beyond", 2, 2, 1, "rank 2"},        {"no ids", 2, 0, 0, "nId 0"},
        {"more ids than ranks", 2, 0, 3, "nId 3"},
    };
    (void)state;
    fake_reset();
    bad.magic = 1;
    assert_int_equal(ncclGetUniqueId(NULL), ncclInvalidArgument);
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    ncclUniqueId ids[3] = {id, id, id};
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        ncclComm_t comm = (ncclComm_t)(uintptr_t)8;
        print_message("case: %s\n", cases[k].name);
        assert_int_equal(ncclCommInitRankScalable(&comm, cases[k].nranks, cases[k].rank,
                                                  cases[k].nids, ids, NULL),
                         ncclInvalidArgument);
        assert_null(comm);
        assert_says("ncclCommInitRankScalable", cases[k].words);
    }
    ncclComm_t comm = (ncclComm_t)(uintptr_t)8;
    assert_int_equal(ncclCommInitRank(NULL, 2, id, 0), ncclInvalidArgument);
    assert_int_equal(ncclCommInitRank(&comm, 2, damaged, 0), ncclInvalidArgument);
    assert_null(comm);
    assert_int_equal(ncclCommInitRankConfig(&comm, 2, id, 0, &bad), ncclInvalidArgument);
    assert_null(comm);
    fake.init_rc = ncclSystemError;
    assert_int_equal(ncclCommInitRank(&comm, 2, id, 0), ncclSystemError);
    assert_null(comm);
    assert_int_equal(ncclCommInitRankConfig(&comm, 2, id, 0, NULL), ncclSystemError);
    assert_non_null(comm); /* half-made: only good for ncclCommAbort */
    assert_int_equal(ncclCommAbort(comm), ncclSuccess);
    assert_int_equal(tt_group_depth(), 0);
}

static void init_all_checks(void **state)
{
    ncclComm_t comms[16];
    int twice[] = {1, 0, 1}, beyond[] = {0, 8};
    (void)state;
    fake_reset();
    assert_int_equal(ncclCommInitAll(NULL, 2, NULL), ncclInvalidArgument);
    assert_int_equal(ncclCommInitAll(comms, -1, NULL), ncclInvalidArgument);
    assert_int_equal(ncclCommInitAll(comms, 3, twice), ncclInvalidUsage);
    assert_int_equal(ncclCommInitAll(comms, 2, beyond), ncclInvalidArgument);
    assert_int_equal(ncclCommInitAll(comms, 9, NULL), ncclUnhandledCudaError);
    assert_int_equal(ncclCommInitAll(comms, 0, NULL), ncclSuccess);
    assert_int_equal(ncclCommInitAll(comms, 3, NULL), ncclSuccess);
    for (int k = 0; k < 3; k++) {
        int device;
        assert_int_equal(ncclCommCuDevice(comms[k], &device), ncclSuccess);
        assert_int_equal(device, k);
        assert_int_equal(ncclCommDestroy(comms[k]), ncclSuccess);
    }
    assert_int_equal(fake.freed, 3);
}

static void lifetime(void **state)
{
    ncclUniqueId id;
    ncclComm_t comm;
    (void)state;
    fake_reset();
    ncclGetUniqueId(&id);
    assert_int_equal(ncclCommFinalize(NULL), ncclSuccess);
    assert_int_equal(ncclCommDestroy(NULL), ncclSuccess);
    assert_int_equal(ncclCommAbort(NULL), ncclSuccess);
    assert_int_equal(ncclCommRevoke(NULL, 0), ncclSuccess);
    assert_int_equal(ncclCommInitRank(&comm, 2, id, 0), ncclSuccess);
    assert_int_equal(ncclCommRevoke(comm, 1), ncclInvalidArgument);
    assert_int_equal(ncclCommFinalize(comm), ncclSuccess);
    assert_int_equal(ncclCommFinalize(comm), ncclInvalidArgument);
    assert_int_equal(ncclCommRevoke(comm, 0), ncclInvalidArgument);
    assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
    assert_int_equal(ncclCommInitRank(&comm, 2, id, 0), ncclSuccess);
    assert_int_equal(ncclCommRevoke(comm, 0), ncclSuccess);
    assert_int_equal(ncclCommRevoke(comm, 0), ncclInvalidArgument);
    assert_int_equal(ncclCommFinalize(comm), ncclInvalidArgument);
    assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
    /* An error is returned and does not keep anything alive. */
    assert_int_equal(ncclCommInitRank(&comm, 2, id, 0), ncclSuccess);
    ((struct tt_comm *)comm)->state = ncclRemoteError;
    assert_int_equal(ncclCommDestroy(comm), ncclRemoteError);
    assert_int_equal(fake.freed, 3);
    assert_int_equal(tt_group_depth(), 0);
}

static void shrink_checks(void **state)
{
    struct tt_comm *comm = fake_comm(4, 1, true);
    ncclComm_t handle = (ncclComm_t)comm, child = NULL;
    static const struct {
        const char *name;
        int list[3];
        int count;
        ncclResult_t rc;
        const char *words;
    } cases[] = {
        {"nothing", {0}, 0, ncclInvalidArgument, "excludeRanksCount 0"},
        {"itself", {0, 1}, 2, ncclInvalidArgument, "excludeRanksList[1] is the calling rank 1"},
        {"out of range", {4}, 1, ncclInvalidArgument, "excludeRanksList[0] 4 is not in 0..3"},
        {"negative", {-1}, 1, ncclInvalidArgument, "excludeRanksList[0] -1"},
        {"twice", {3, 3}, 2, ncclInvalidArgument, "rank 3"},
        {"unsorted", {3, 0}, 2, ncclSuccess, ""},
    };
    (void)state;
    fake_reset();
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        int list[3] = {cases[k].list[0], cases[k].list[1], cases[k].list[2]};
        print_message("case: %s\n", cases[k].name);
        assert_int_equal(ncclCommShrink(handle, list, cases[k].count, &child, NULL, 0),
                         cases[k].rc);
        assert_int_equal(list[0], cases[k].list[0]); /* the caller's list stays as it was */
        if (cases[k].rc) assert_says("ncclCommShrink", cases[k].words);
        if (cases[k].rc == ncclSuccess) assert_int_equal(ncclCommAbort(child), ncclSuccess);
    }
    assert_int_equal(ncclCommShrink(handle, NULL, 1, &child, NULL, 0), ncclInvalidArgument);
    assert_int_equal(ncclCommSplit(handle, 0, 0, NULL, NULL), ncclInvalidArgument);
    assert_int_equal(ncclCommSplit(NULL, 0, 0, &child, NULL), ncclInvalidArgument);
    assert_int_equal(ncclCommSplit(handle, NCCL_SPLIT_NOCOLOR, 0, &child, NULL), ncclSuccess);
    assert_null(child);
    fake_comm_free(comm);
}

static void grow_checks(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true), *alone = fake_comm(1, 0, true);
    ncclComm_t handle = (ncclComm_t)comm, child = NULL;
    ncclUniqueId id, plain, damaged = {{0}};
    (void)state;
    fake_reset();
    assert_int_equal(ncclGetUniqueId(&plain), ncclSuccess);
    assert_int_equal(ncclCommGetUniqueId(NULL, &id), ncclInvalidArgument);
    assert_int_equal(ncclCommGetUniqueId(handle, NULL), ncclInvalidArgument);
    assert_int_equal(ncclCommGetUniqueId(handle, &id), ncclSuccess);
    const struct {
        const char *name;
        struct tt_comm *comm;
        int nranks, rank;
        const ncclUniqueId *id;
        ncclResult_t rc;
    } cases[] = {
        {"no ranks", comm, 0, -1, &id, ncclInvalidArgument},
        {"no growth", comm, 2, -1, &id, ncclInvalidArgument},
        {"an old rank with a number", comm, 3, 0, &id, ncclInvalidArgument},
        {"a damaged id", NULL, 3, 2, &damaged, ncclInvalidArgument},
        {"an old rank without id", comm, 3, -1, NULL, ncclSuccess},
        {"an old rank with the id", comm, 3, -1, &id, ncclSuccess},
        {"a lone rank without any id", alone, 3, -1, NULL, ncclInvalidArgument},
        {"a new rank without id", NULL, 3, 2, NULL, ncclInvalidArgument},
        {"a negative new rank", NULL, 3, -1, &id, ncclInvalidArgument},
        {"a new rank beyond", NULL, 3, 3, &id, ncclInvalidArgument},
        {"a new rank that is taken", NULL, 3, 1, &id, ncclInvalidArgument},
        {"an id of a new communicator", NULL, 3, 2, &plain, ncclInvalidArgument},
        {"a new rank", NULL, 3, 2, &id, ncclSuccess},
    };
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        print_message("case: %s\n", cases[k].name);
        assert_int_equal(ncclCommGrow((ncclComm_t)cases[k].comm, cases[k].nranks, cases[k].id,
                                      cases[k].rank, &child, NULL),
                         cases[k].rc);
        assert_int_equal(tt_group_depth(), 0);
        assert_int_equal(child != NULL, cases[k].rc == ncclSuccess);
        if (child) assert_int_equal(ncclCommAbort(child), ncclSuccess);
    }
    assert_int_equal(ncclCommGrow(handle, 3, &id, -1, NULL, NULL), ncclInvalidArgument);
    assert_int_equal(ncclCommInitRank(&child, 3, id, 2), ncclInvalidArgument);
    assert_null(child);
    fake_comm_free(comm);
    fake_comm_free(alone);
}

static void memory_checks(void **state)
{
    struct tt_comm *comm = fake_comm(1, 0, true);
    ncclComm_t handle = (ncclComm_t)comm;
    void *ptr = in_buffer;
    ncclWindow_t window = (ncclWindow_t)(uintptr_t)8;
    (void)state;
    fake_reset();
    assert_int_equal(ncclMemAlloc(NULL, 8), ncclUnhandledCudaError);
    assert_int_equal(ncclMemAlloc(&ptr, 0), ncclSuccess);
    assert_null(ptr);
    assert_int_equal(ncclMemAlloc(&ptr, SIZE_MAX), ncclUnhandledCudaError);
    assert_int_equal(ncclMemAlloc(&ptr, 100), ncclSuccess);
    assert_int_equal(ncclMemFree(ptr), ncclSuccess);
    assert_int_equal(ncclMemFree(NULL), ncclSuccess);
    assert_int_equal(ncclCommWindowRegister(NULL, in_buffer, 8, &window, 0), ncclInvalidArgument);
    assert_int_equal(ncclCommWindowRegister(handle, in_buffer, 8, NULL, 0), ncclInvalidArgument);
    assert_int_equal(ncclCommWindowRegister(handle, NULL, 8, &window, 0), ncclInvalidArgument);
    assert_int_equal(ncclCommWindowRegister(handle, in_buffer, 0, &window, 0), ncclInvalidArgument);
    assert_int_equal(ncclCommWindowRegister(handle, in_buffer, 8, &window, 0),
                     ncclUnhandledCudaError);
    assert_null(window);
    assert_int_equal(ncclCommWindowDeregister(handle, NULL), ncclSuccess);
    assert_int_equal(ncclCommWindowDeregister(handle, (ncclWindow_t)(uintptr_t)8),
                     ncclInternalError);
    assert_int_equal(ncclWinGetUserPtr(handle, NULL, &ptr), ncclInvalidArgument);
    assert_int_equal(ncclCommDeregister(handle, NULL), ncclSuccess);
    assert_int_equal(ncclCommDeregister(handle, in_buffer), ncclInvalidUsage);
    fake_comm_free(comm);
}

static void what_is_not_offered(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    ncclComm_t handle = (ncclComm_t)comm;
    ncclDevCommRequirements_t needs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclCommProperties_t props = NCCL_COMM_PROPERTIES_INITIALIZER;
    ncclDevComm_t device_comm;
    uint64_t bytes;
    (void)state;
    fake_reset();
    assert_int_equal(ncclSignal(0, 0, 0, 0, handle, NULL), ncclInvalidArgument);
    assert_int_equal(ncclWaitSignal(0, NULL, handle, NULL), ncclInvalidArgument);
    assert_int_equal(ncclCommSuspend(handle, 0), ncclSuccess);
    assert_int_equal(ncclCommSuspend(handle, NCCL_SUSPEND_MEM), ncclInvalidUsage);
    assert_int_equal(ncclCommResume(handle), ncclInvalidUsage);
    assert_int_equal(ncclCommMemStats(handle, ncclStatGpuMemTotal, &bytes), ncclInvalidUsage);
    assert_int_equal(ncclDevCommCreate(handle, NULL, &device_comm), ncclInvalidArgument);
    assert_int_equal(ncclDevCommCreate(handle, &needs, &device_comm), ncclInvalidUsage);
    assert_int_equal(ncclDevCommDestroy(handle, NULL), ncclInvalidArgument);
    assert_int_equal(ncclCommQueryProperties(handle, &props), ncclSuccess);
    assert_int_equal(props.nRanks, 2);
    assert_false(props.deviceApiSupport);
    props.magic = 0;
    assert_int_equal(ncclCommQueryProperties(handle, &props), ncclInvalidUsage);
    fake_comm_free(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations),
        cmocka_unit_test(ignored_buffers_may_be_null),
        cmocka_unit_test(child_that_is_not_there_yet),
        cmocka_unit_test(non_blocking_keeps_the_error),
        cmocka_unit_test(queries),
        cmocka_unit_test(texts_begin_as_usual),
        cmocka_unit_test(narrow_floats_alone),
        cmocka_unit_test(init_checks),
        cmocka_unit_test(init_all_checks),
        cmocka_unit_test(lifetime),
        cmocka_unit_test(shrink_checks),
        cmocka_unit_test(grow_checks),
        cmocka_unit_test(memory_checks),
        cmocka_unit_test(what_is_not_offered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
