/* Memory and events shared between two processes, which were forked before either used a device. */
#include "../check.h"

#include "device/host/host.h"
#include "device/host/host_stream.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct link { /* this process's ends of two pipes */
    int in, out;
    pid_t child; /* 0 in the child */
};

struct offer { /* what the owner tells */
    unsigned char memory[TT_IPC_BYTES], event[TT_IPC_BYTES];
};

struct gate {
    struct tt_item item;
    _Atomic int open;
};

static enum tt_step gate_step(struct tt_item *item, enum tt_item_call call)
{
    struct gate *gate = (struct gate *)item;
    if (call == TT_ITEM_RELEASE) return TT_STEP_DONE;
    return atomic_load(&gate->open) ? TT_STEP_DONE : TT_STEP_WAIT;
}

static void report(const struct link *link, const void *bytes, size_t len)
{
    if (write(link->out, bytes, len) != (ssize_t)len) abort();
}

static void receive(const struct link *link, void *bytes, size_t len)
{
    if (read(link->in, bytes, len) != (ssize_t)len) abort();
}

static void must(int bad, int line)
{
    if (!bad) return;
    fprintf(stderr, "the owner failed at line %d\n", line);
    _exit(1);
}

/* The owner: writes memory in stream order behind a gate, records the event, and waits for the
 * other one's record. */
static void own(const struct link *link)
{
    struct gate gate = {{.step = gate_step}, 0};
    struct CUstream_st *stream = NULL;
    struct CUevent_st *event = NULL;
    struct CUevent_st *plain = NULL;
    struct offer offer;
    char *ptr = NULL;
    void *again = NULL;
    char go = 0;
    must(tuttiHostMalloc(0, 10000, (void **)&ptr), __LINE__);
    must(tuttiHostStreamCreate(1, 0, &stream), __LINE__);
    must(tuttiHostEventCreate(TT_EVENT_INTERPROCESS | TT_EVENT_NO_TIMING, &event), __LINE__);
    must(tuttiHostEventCreate(0, &plain), __LINE__);
    must(tuttiHostIpcEventGet(plain, offer.event) != 400, __LINE__);
    must(tuttiHostIpcGet(&go, offer.memory) != 1, __LINE__);
    must(tuttiHostIpcGet(ptr + 5000, offer.memory), __LINE__); /* names the whole allocation */
    must(tuttiHostIpcOpen(offer.memory, &again) != 201, __LINE__);
    must(tuttiHostIpcEventGet(event, offer.event), __LINE__);
    must(tuttiHostSubmit(stream, &gate.item, true), __LINE__);
    must(tuttiHostSet(stream, &(struct tt_set){ptr, 'x', 1, 10000, 10000, 1}), __LINE__);
    must(tuttiHostEventRecord(event, stream), __LINE__);
    report(link, &offer, sizeof(offer));
    receive(link, &go, 1); /* it has seen the event unreached */
    atomic_store(&gate.open, 1);
    must(tuttiHostEventSynchronize(event), __LINE__);
    receive(link, &go, 1); /* it has recorded */
    must(tuttiHostEventSynchronize(event), __LINE__);
    must(ptr[9999] != 'y', __LINE__);
    report(link, &go, 1);
    receive(link, &go, 1); /* it has closed */
    must(tuttiHostEventDestroy(event) || tuttiHostFree(ptr), __LINE__);
    _exit(0);
}

static void memory_and_events_cross(void **state)
{
    const struct link *link = *state;
    struct CUstream_st *stream = NULL;
    struct CUevent_st *event = NULL;
    struct tt_pointer found;
    struct offer offer;
    char *ptr = NULL;
    char *again = NULL;
    char go = 1;
    int status = 0;
    receive(link, &offer, sizeof(offer));
    assert_int_equal(tuttiHostIpcOpen(offer.memory, (void **)&ptr), 0);
    assert_int_equal(tuttiHostIpcOpen(offer.memory, (void **)&again), 0);
    assert_ptr_equal(ptr, again);
    assert_true(tuttiHostIpcMapped(ptr + 9999, &found));
    assert_ptr_equal(found.base, ptr);
    assert_int_equal(found.bytes, 10000);
    assert_int_equal(tuttiHostIpcEventOpen(offer.event, &event), 0);
    assert_int_equal(tuttiHostEventQuery(event), 600);
    report(link, &go, 1);
    assert_int_equal(tuttiHostStreamCreate(1, 0, &stream), 0);
    assert_int_equal(tuttiHostStreamWaitEvent(stream, event), 0);
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    assert_int_equal(ptr[0], 'x');
    assert_int_equal(ptr[9999], 'x');
    assert_int_equal(tuttiHostEventSynchronize(event), 0);
    assert_int_equal(tuttiHostSet(stream, &(struct tt_set){ptr, 'y', 1, 10000, 10000, 1}), 0);
    assert_int_equal(tuttiHostEventRecord(event, stream), 0);
    report(link, &go, 1);
    receive(link, &go, 1);
    assert_int_equal(tuttiHostIpcClose(ptr), 0);
    assert_int_equal(ptr[0], 'y'); /* opened twice */
    assert_int_equal(tuttiHostIpcClose(ptr), 0);
    assert_int_equal(tuttiHostIpcClose(ptr), 1);
    assert_int_equal(tuttiHostEventDestroy(event), 0);
    report(link, &go, 1);
    assert_int_equal(waitpid(link->child, &status, 0), link->child);
    assert_int_equal(status, 0);
    assert_int_equal(tuttiHostIpcOpen(offer.memory, (void **)&ptr), 1); /* the owner is gone */
    tuttiHostStreamDestroy(stream);
}

static void other_bytes_are_refused(void **state)
{
    unsigned char token[TT_IPC_BYTES];
    struct CUevent_st *event = NULL;
    unsigned seed = 11;
    void *ptr = NULL;
    (void)state;
    memset(token, 0, sizeof(token));
    assert_int_equal(tuttiHostIpcOpen(token, &ptr), 1);
    tuttiHostMalloc(0, 64, &ptr);
    for (int turn = 0; turn < 1000; turn++) {
        void *opened = NULL;
        assert_int_equal(tuttiHostIpcGet(ptr, token), 0);
        for (int i = 4; i < TT_IPC_BYTES; i++) { /* the kind stays right */
            if (rand_r(&seed) % 4 == 0) token[i] = (unsigned char)rand_r(&seed);
        }
        int rc = tuttiHostIpcOpen(token, &opened);
        assert_true(rc == 1 || rc == 201);
        assert_int_equal(tuttiHostIpcEventOpen(token, &event), 1);
    }
    tuttiHostFree(ptr);
}

int main(void)
{
    int there[2];
    int back[2];
    setenv("TUTTI_DEVICES", "2", 1);
    if (pipe(there) || pipe(back)) return 1;
    struct link link = {back[0], there[1], fork()};
    if (link.child == 0) {
        const struct link owner = {there[0], back[1], 0};
        own(&owner);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(memory_and_events_cross, &link),
        cmocka_unit_test(other_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
