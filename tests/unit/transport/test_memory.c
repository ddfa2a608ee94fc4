/* Edges through memory and the barrier, two ranks in one test: lines, payloads, references,
 * credits, match headers, damaged slots; both as one process and as two mappings. */
#include "../check.h"
#include "../exec/ranks.h"

#include "base/error.h"
#include "base/mem.h"
#include "transport/barrier.h"
#include "transport/left.h"
#include "transport/small.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static struct tt_edge *edge_of(struct world *world, int rank, int peer, bool sending, int conn)
{
    struct tt_edge_key key = {.peer = peer, .channel = 1, .conn = conn, .sending = sending};
    struct tt_edge *edge = NULL;
    assert_int_equal(tt_transport_edge(world->rank[rank].transport, &key, &edge), ncclSuccess);
    return edge;
}

struct ends {
    struct world *world;
    struct tt_edge *send, *recv; /* rank 0 to rank 1 */
};

static struct ends open_ends(enum world_kind kind)
{
    struct world *world = world_create(2, kind, 8192);
    return (struct ends){world, edge_of(world, 0, 1, true, 0), edge_of(world, 1, 0, false, 0)};
}

static void expect(struct tt_edge *edge, uint64_t match, const char *bytes, size_t len_bytes)
{
    const char *payload = NULL;
    size_t got = 0;
    assert_int_equal(tt_edge_peek(edge, match, &payload, &got), ncclSuccess);
    assert_int_equal(got, len_bytes);
    assert_memory_equal(payload, bytes, len_bytes);
    tt_edge_release(edge);
}

static void bytes_arrive_in_order(void **state)
{
    (void)state;
    char data[8192];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 7);
    for (int kind = WORLD_PROCESS; kind <= WORLD_SHM; kind++) {
        struct ends ends = open_ends((enum world_kind)kind);
        const char *payload;
        size_t got;
        assert_int_equal(tt_edge_peek(ends.recv, 1, &payload, &got), ncclInProgress);
        for (size_t bytes = 0; bytes <= sizeof(data); bytes = bytes < 70 ? bytes + 1 : bytes * 2) {
            char *slot = tt_edge_acquire(ends.send, tt_max_size(bytes, TT_SLOT_INLINE_BYTES + 1));
            assert_non_null(slot);
            memcpy(slot, data, bytes);
            tt_edge_post(ends.send, 1, bytes);
            expect(ends.recv, 1, data, bytes);
        }
        for (size_t bytes = 0; bytes <= TT_SLOT_INLINE_BYTES; bytes++) {
            assert_non_null(tt_edge_acquire(ends.send, 1));
            tt_edge_post_small(ends.send, 2, data, bytes);
            expect(ends.recv, 2, data, bytes);
        }
        world_destroy(ends.world);
    }
}

/* The short way: what came is given only if it is what was expected, byte for byte. */
static void expected_bytes_are_taken(void **state)
{
    (void)state;
    char data[8192];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 11);
    for (int kind = WORLD_PROCESS; kind <= WORLD_SHM; kind++) {
        struct ends ends = open_ends((enum world_kind)kind);
        for (size_t bytes = 0; bytes <= sizeof(data); bytes = bytes < 130 ? bytes + 1 : bytes * 2) {
            assert_null(tt_edge_small(ends.recv)->take(ends.recv, 5, bytes)); /* nothing came */
            if (bytes <= TT_SLOT_INLINE_BYTES) {
                assert_true(tt_edge_small(ends.send)->send(ends.send, 5, data, bytes));
            } else {
                char *slot = tt_edge_acquire(ends.send, bytes);
                assert_non_null(slot);
                memcpy(slot, data, bytes);
                tt_edge_post(ends.send, 5, bytes);
            }
            assert_null(tt_edge_small(ends.recv)->take(ends.recv, 6, bytes));
            assert_null(tt_edge_small(ends.recv)->take(ends.recv, 5, bytes + 1));
            const char *payload = tt_edge_small(ends.recv)->take(ends.recv, 5, bytes);
            assert_non_null(payload);
            assert_memory_equal(payload, data, bytes);
            tt_edge_release(ends.recv);
        }
        world_destroy(ends.world);
    }
}

/* Sends until no slot is free, receives them all; how many there were. */
static int fill_and_empty(struct ends *ends, size_t bytes)
{
    char data[512] = {0};
    int sent = 0;
    for (char *slot; (slot = tt_edge_acquire(ends->send, bytes)); sent++) {
        data[0] = (char)sent;
        memcpy(slot, data, bytes > TT_SLOT_INLINE_BYTES ? bytes : 0);
        if (bytes <= TT_SLOT_INLINE_BYTES)
            tt_edge_post_small(ends->send, 3, data, bytes);
        else
            tt_edge_post(ends->send, 3, bytes);
        assert_true(sent < 1000);
    }
    for (int k = 0; k < sent; k++) {
        data[0] = (char)k;
        expect(ends->recv, 3, data, bytes);
    }
    return sent;
}

static void a_full_edge_has_no_slot(void **state)
{
    (void)state;
    struct ends ends = open_ends(WORLD_MAPPED);
    int sent = 0;
    for (; tt_edge_small(ends.send)->send(ends.send, 3, &sent, sizeof(sent)); sent++)
        assert_true(sent < 1000);
    for (int k = 0; k < sent; k++)
        expect(ends.recv, 3, (const char *)&k, sizeof(k));
    assert_true(tt_edge_small(ends.send)->send(ends.send, 3, &sent, sizeof(sent)));
    expect(ends.recv, 3, (const char *)&sent, sizeof(sent));
    for (int round = 0; round < 5; round++) {
        assert_int_equal(fill_and_empty(&ends, 300), TT_SLOTS);
        assert_true(fill_and_empty(&ends, 4) >= 2 * TT_SLOTS);
        assert_true(fill_and_empty(&ends, 96) >= 2 * TT_SLOTS);
    }
    world_destroy(ends.world);
}

/* Short messages to a rank that only takes: more slots, apart from those of other collectives. */
static void who_runs_ahead_has_more_slots(void **state)
{
    (void)state;
    for (int kind = WORLD_PROCESS; kind <= WORLD_SHM; kind++) {
        struct ends usual = open_ends((enum world_kind)kind);
        struct world *world = usual.world;
        struct ends ahead = {world, edge_of(world, 0, 1, true, TT_CONN_AHEAD),
                             edge_of(world, 1, 0, false, TT_CONN_AHEAD)};
        struct ends back = {world, edge_of(world, 1, 0, true, TT_CONN_AHEAD),
                            edge_of(world, 0, 1, false, TT_CONN_AHEAD)};
        assert_true(tt_edge_small(usual.send)->send_ahead(usual.send, 3, "usual", 5));
        for (size_t bytes = 8; bytes <= TT_SLOT_INLINE_BYTES; bytes += 44) {
            assert_int_equal(fill_and_empty(&ahead, bytes), 256);
            assert_int_equal(fill_and_empty(&back, bytes), 256);
        }
        expect(usual.recv, 3, "usual", 5);
        world_destroy(world);
    }
}

static void references_drain(void **state)
{
    (void)state;
    char stack[64] = "on the stack";
    for (int kind = WORLD_PROCESS; kind <= WORLD_SHM; kind++) {
        struct ends ends = open_ends((enum world_kind)kind);
        char *memory = world_memory(ends.world, 100000, 0);
        strcpy(memory, "in the range");
        assert_non_null(tt_edge_acquire(ends.send, 1));
        bool refers = tt_edge_post_ref(ends.send, 4, memory, 100000);
        assert_int_equal(refers, kind != WORLD_SHM);
        if (refers) {
            assert_false(tt_edge_drained(ends.send));
            expect(ends.recv, 4, memory, 100000);
        }
        assert_true(tt_edge_drained(ends.send));
        assert_non_null(tt_edge_acquire(ends.send, 1));
        assert_int_equal(tt_edge_post_ref(ends.send, 4, stack, 64), kind == WORLD_PROCESS);
        world_destroy(ends.world);
    }
}

static void other_headers_are_reported_once(void **state)
{
    (void)state;
    struct ends ends = open_ends(WORLD_MAPPED);
    const char *payload;
    size_t got;
    assert_non_null(tt_edge_acquire(ends.send, 1));
    tt_edge_post_small(ends.send, (uint64_t)7 << 32 | 0xaa, "x", 1);
    uint64_t mine = (uint64_t)7 << 32 | 0xbb;
    assert_int_equal(tt_edge_peek(ends.recv, mine, &payload, &got), ncclInvalidUsage);
    assert_int_equal(tt_edge_peek(ends.recv, mine, &payload, &got), ncclInvalidUsage);
    world_destroy(ends.world);
}

static void names_are_nccls(void **state)
{
    static const struct {
        enum world_kind kind;
        const char *name;
    } cases[] = {{WORLD_PROCESS, "P2P/direct pointer"},
                 {WORLD_MAPPED, "P2P/CUMEM"},
                 {WORLD_SHM, "SHM/direct"}};
    (void)state;
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        struct ends ends = open_ends(cases[k].kind);
        char name[64];
        tt_edge_name(ends.send, name, sizeof(name));
        assert_string_equal(name, cases[k].name);
        world_destroy(ends.world);
    }
}

static struct tt_edge *cast_of(struct world *world, int rank, int sender, int conn)
{
    return edge_of(world, rank, sender, rank == sender, conn);
}

/* What is written once comes to every reader; the slowest of them decides which slots are free. */
static void come_to_all(enum world_kind kind, size_t slice_bytes, bool stream)
{
    static const struct {
        size_t bytes;
        int slots[2];                              /* of a cast, and of a stream */
    } cases[] = {{8, {64, 256}}, {300, {32, 32}}}; /* in the header, and in the payload */
    const int conn = stream ? TT_CONN_STREAM : TT_CONN_CAST;
    struct world *world = world_create(3, kind, slice_bytes);
    struct tt_edge *send = cast_of(world, 1, 1, conn);
    struct ends fast = {world, send, cast_of(world, 0, 1, conn)};
    struct tt_edge *slow = cast_of(world, 2, 1, conn), *other = cast_of(world, 1, 2, conn);
    const char *payload;
    size_t got;
    char data[300] = {0};
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        const size_t bytes = cases[k].bytes;
        int sent = fill_and_empty(&fast, bytes); /* the slow one has taken nothing yet */
        bool few = slice_bytes < TT_CAST_BYTES && k == 1;
        print_message("case: %zu bytes, slices of %zu\n", bytes, slice_bytes);
        assert_int_equal(sent, few ? 8 : cases[k].slots[stream]);
        assert_null(tt_edge_acquire(send, bytes));
        assert_int_equal(tt_edge_peer(send), 2);
        for (int m = 0; m < sent; m++) {
            data[0] = (char)m;
            expect(slow, 3, data, bytes);
        }
        assert_int_equal(tt_edge_peek(slow, 3, &payload, &got), ncclInProgress);
        assert_non_null(tt_edge_acquire(send, bytes));
    }
    assert_int_equal(tt_edge_peek(other, 3, &payload, &got), ncclInProgress);
    world_destroy(world);
}

static void casts_come_to_all(void **state)
{
    (void)state;
    for (int kind = WORLD_PROCESS; kind <= WORLD_SHM; kind++) {
        for (int stream = 0; stream < 2; stream++) {
            come_to_all((enum world_kind)kind, 16384, stream);
            come_to_all((enum world_kind)kind, 512, stream);
        }
    }
}

static void bad_keys_are_refused(void **state)
{
    static const struct tt_edge_key keys[] = {
        {.peer = 2}, {.peer = -1}, {.channel = 4}, {.channel = -1}, {.conn = TT_CONN_COUNT_}};
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    for (size_t k = 0; k < TT_LEN(keys); k++) {
        struct tt_edge *edge = NULL;
        assert_int_equal(tt_transport_edge(world->rank[0].transport, &keys[k], &edge),
                         ncclInternalError);
        assert_null(edge);
    }
    world_destroy(world);
}

static void messages_count_per_edge(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    struct tt_edge *send = edge_of(world, 0, 1, true, 1), *recv = edge_of(world, 0, 1, false, 1);
    const uint64_t first = tt_edge_next_message(send, 8, ncclFloat);
    assert_int_equal(tt_edge_next_message(recv, 8, ncclFloat), first);
    assert_int_not_equal(tt_edge_next_message(send, 8, ncclFloat), first);
    assert_int_not_equal(tt_edge_next_message(recv, 9, ncclInt8), first);
    world_destroy(world);
}

/* ---- barrier ---- */

static void the_call_log_shows_buffers(void **state)
{
    (void)state;
    for (int kind = WORLD_PROCESS; kind <= WORLD_MAPPED; kind++) {
        struct world *world = world_create(2, (enum world_kind)kind, 4096);
        struct tt_transport *a = world->rank[0].transport, *b = world->rank[1].transport;
        char *in = world_memory(world, 10, 0), *out = world_memory(world, 10, 0);
        struct tt_arrival arrival;
        for (uint64_t op = 1; op < 40; op++) {
            in[3] = (char)op;
            assert_int_equal(tt_barrier_enter(a, op, &(struct tt_arrival){in, out, op}),
                             ncclSuccess);
            assert_int_equal(tt_barrier_enter(b, op, &(struct tt_arrival){.word = 7}), ncclSuccess);
            assert_int_equal(tt_barrier_arrived(b, op, 0, &arrival), ncclSuccess);
            assert_int_equal(arrival.in[3], (char)op);
            arrival.out[4] = (char)op;
            assert_int_equal(out[4], (char)op);
            assert_false(tt_barrier_left(b, 0));
            tt_barrier_leave(a);
            assert_true(tt_barrier_left(b, 0));
            tt_barrier_leave(b);
        }
        world_destroy(world);
    }
}

static void who_runs_ahead_waits_for_cells(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    struct tt_transport *a = world->rank[0].transport, *b = world->rank[1].transport;
    struct tt_arrival arrival;
    for (uint64_t op = 1; op <= TT_SLOTS; op++) {
        assert_int_equal(tt_barrier_enter(a, op, &(struct tt_arrival){.word = 7}), ncclSuccess);
        tt_barrier_leave(a);
    }
    assert_int_equal(tt_barrier_enter(a, 9, &(struct tt_arrival){.word = 7}), ncclInProgress);
    assert_int_equal(tt_barrier_enter(b, 1, &(struct tt_arrival){.word = 7}), ncclSuccess);
    assert_int_equal(tt_barrier_arrived(b, 1, 0, &arrival), ncclSuccess);
    tt_barrier_leave(b);
    assert_int_equal(tt_barrier_enter(a, 9, &(struct tt_arrival){.word = 7}), ncclSuccess);
    assert_int_equal(tt_barrier_enter(b, 5, &(struct tt_arrival){.word = 7}), ncclSuccess);
    assert_int_equal(tt_barrier_arrived(b, 5, 0, &arrival), ncclInvalidUsage);
    world_destroy(world);
}

enum { LATE_CALLS = 200000 };

static const struct tt_call sum_of_8 = {
    .count = 8, .root = -1, .func = TT_FUNC_ALLREDUCE, .type = ncclFloat32, .known = 1};
static const struct tt_call from_root_1 = {
    .count = 8, .root = 1, .func = TT_FUNC_BROADCAST, .type = ncclFloat32, .known = 1};

static void begun_operations_are_compared(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    struct tt_transport *a = world->rank[0].transport, *b = world->rank[1].transport;
    uint64_t match = tt_transport_begin(a, 13, &sum_of_8);
    assert_int_equal(match, (uint64_t)1 << 32 | 13);
    tt_transport_begin(b, 13, &sum_of_8);
    assert_int_equal(tt_transport_compare(a, match, 1), ncclSuccess);
    match = tt_transport_begin(a, 11, &sum_of_8);
    assert_int_equal(tt_transport_compare(a, match, 1), ncclSuccess); /* not there yet */
    tt_transport_begin(b, 12, &from_root_1);
    assert_int_equal(tt_transport_compare(a, match, 1), ncclInvalidUsage);
    assert_non_null(strstr(tt_last_error(),
                           "rank 0 called AllReduce(count 8, float, sum) as operation 2, rank 1 "
                           "called Broadcast(count 8, float, root 1) as operation 2"));
    world_destroy(world);
}

struct late_rank {
    struct tt_transport *transport;
    _Atomic uint64_t wanted; /* calls to begin */
};

static void *begin_other_calls(void *arg)
{
    struct late_rank *late = arg;
    for (uint64_t k = 1; k <= LATE_CALLS; k++) {
        while (atomic_load(&late->wanted) < k)
            sched_yield();
        tt_transport_begin(late->transport, 12, &from_root_1);
    }
    return NULL;
}

/* A rank looks at another's call log while the call is written there. */
static void a_call_that_begins_is_not_agreed_on(void **state)
{
    pthread_t thread;
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    struct tt_transport *a = world->rank[0].transport;
    struct late_rank late = {world->rank[1].transport, 0};
    assert_int_equal(pthread_create(&thread, NULL, begin_other_calls, &late), 0);
    for (uint64_t k = 1; k <= LATE_CALLS; k++) {
        enum tt_calls_match match;
        tt_transport_begin(a, 11, &sum_of_8);
        atomic_store(&late.wanted, k);
        while ((match = tt_transport_agree(a, k)) == TT_CALLS_LATE)
            sched_yield();
        assert_int_equal(match, TT_CALLS_DIFFER);
    }
    pthread_join(thread, NULL);
    world_destroy(world);
}

/* As for ranks on other hosts: packed here, compared there. */
static void packed_call_logs_are_compared(void **state)
{
    uint64_t words[TT_CALL_LOG_WORDS];
    (void)state;
    for (int differ = 0; differ <= 40; differ += 5) { /* 0: never; 8 calls are packed */
        struct world *world = world_create(2, WORLD_MAPPED, 4096);
        struct tt_transport *a = world->rank[0].transport, *b = world->rank[1].transport;
        tt_call_log_pack(b, words);
        assert_int_equal(tt_call_log_compare(a, 1, words), ncclSuccess);
        for (int k = 1; k <= 40; k++) {
            tt_transport_begin(a, 5, &sum_of_8);
            if (k <= 38) tt_transport_begin(b, k == differ ? 6 : 5, &sum_of_8);
        }
        tt_call_log_pack(b, words);
        bool seen = differ > 0 && differ <= 38;
        assert_int_equal(tt_call_log_compare(a, 1, words), seen ? ncclInvalidUsage : ncclSuccess);
        /* a difference before those is found in the logs that lie in memory */
        if (differ == 5) assert_non_null(strstr(tt_last_error(), "as operation 5"));
        if (differ == 35) assert_non_null(strstr(tt_last_error(), "as operation 35"));
        world_destroy(world);
    }
}

/* All that are known to make a call are named, and who makes another one than all others. */
static void who_is_odd_is_named(void **state)
{
    static const struct {
        int odd, known; /* ranks */
        const char *words;
    } cases[] = {
        {1, 4, "ranks 0, 2, 3 called AllReduce("},
        {1, 4, " as operation 1, rank 1 alone called AllReduce("},
        {0, 4, "operations: rank 0 alone called AllReduce("},
        {0, 4, " as operation 1, ranks 1, 2, 3 called AllReduce("},
        {1, 3, "operations: ranks 0, 2 called AllReduce("},
        {1, 3, " as operation 1, rank 1 called AllReduce("}, /* the last one may do so too */
        {1, 2, "operations: rank 0 called AllReduce("},
    };
    uint64_t words[TT_CALL_LOG_WORDS];
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        struct world *world = world_create(4, WORLD_MAPPED, 4096);
        for (int r = 0; r < cases[i].known; r++)
            tt_transport_begin(world->rank[r].transport, r == cases[i].odd ? 6 : 5, &sum_of_8);
        tt_call_log_pack(world->rank[1].transport, words);
        assert_int_equal(tt_call_log_compare(world->rank[0].transport, 1, words), ncclInvalidUsage);
        print_message("case %zu: %s\n", i, tt_last_error());
        assert_non_null(strstr(tt_last_error(), cases[i].words));
        world_destroy(world);
    }
}

static void reach_of_memory(void **state)
{
    char stack[8];
    (void)state;
    for (int kind = WORLD_PROCESS; kind <= WORLD_MAPPED; kind++) {
        struct world *world = world_create(2, (enum world_kind)kind, 4096);
        const struct tt_transport *transport = world->rank[0].transport;
        assert_true(tt_transport_reachable(transport, world_memory(world, 8, 0), 8));
        assert_int_equal(tt_transport_reachable(transport, stack, 8), kind == WORLD_PROCESS);
        assert_int_equal(tt_transport_reachable(transport, world->own + world->bytes - 4, 8),
                         kind == WORLD_PROCESS);
        assert_true(tt_transport_reachable(transport, NULL, 0));
        world_destroy(world);
    }
}

/* A difference between calls is an error of those that read it there as well; of anything else the
 * sentence is the same, and the code is that of a rank that is gone. */
static void who_leaves_says_why(void **state)
{
    static const struct {
        ncclResult_t error;
        const char *sentence;
        ncclResult_t rc;
    } cases[] = {
        {ncclSuccess, NULL, ncclSuccess},
        {ncclSuccess, "rank 1 aborted the communicator", ncclRemoteError},
        {ncclInvalidUsage, "ranks called different operations", ncclInvalidUsage},
        {ncclInvalidArgument, "ranks gave different arguments", ncclInvalidArgument},
        {ncclSystemError, "rank 1 is out of memory", ncclRemoteError},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world *world = world_create(2, WORLD_MAPPED, 4096);
        const struct tt_transport *waiting = world->rank[0].transport;
        struct tt_left left;
        const char *sentence = cases[i].sentence ? cases[i].sentence : "";
        assert_false(tt_transport_rank_left(waiting, 1, &left));
        world->boxes[1].error = cases[i].error;
        world->boxes[1].sentence = cases[i].sentence;
        tt_transport_destroy(world->rank[1].transport);
        world->rank[1].transport = NULL;
        assert_true(tt_transport_rank_left(waiting, 1, &left));
        assert_int_equal(left.rc, cases[i].rc);
        assert_string_equal(left.sentence, sentence);
        world_destroy(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_in_order),
        cmocka_unit_test(expected_bytes_are_taken),
        cmocka_unit_test(a_full_edge_has_no_slot),
        cmocka_unit_test(who_runs_ahead_has_more_slots),
        cmocka_unit_test(references_drain),
        cmocka_unit_test(other_headers_are_reported_once),
        cmocka_unit_test(names_are_nccls),
        cmocka_unit_test(casts_come_to_all),
        cmocka_unit_test(bad_keys_are_refused),
        cmocka_unit_test(messages_count_per_edge),
        cmocka_unit_test(the_call_log_shows_buffers),
        cmocka_unit_test(who_runs_ahead_waits_for_cells),
        cmocka_unit_test(begun_operations_are_compared),
        cmocka_unit_test(a_call_that_begins_is_not_agreed_on),
        cmocka_unit_test(packed_call_logs_are_compared),
        cmocka_unit_test(who_is_odd_is_named),
        cmocka_unit_test(reach_of_memory),
        cmocka_unit_test(who_leaves_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
