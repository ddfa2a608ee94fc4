/* One bit of what comes over a connection is another one, at places by chance: the receiver gets an
 * error that names the sender, and no message that was not sent. */
#include "net_pair.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MESSAGES = 12, ROUNDS = 1000, LENGTH_BYTES = 8, FLAGS_AT = LENGTH_BYTES + 12 };
enum { LONG_BYTES = 1300000, LONG_ROUNDS = 30 };
enum { HANDSHAKE_BYTES = 512 }; /* what makes a connection asks for less, a lane for more */

static _Atomic int64_t bits_left = -1; /* until the one that is flipped; -1: none, or it was */
static _Atomic bool injected;

/* Flip the bit if it is among these `n` bytes. */
static void flip_in(const struct iovec *pieces, size_t npieces, ssize_t n)
{
    int64_t left = atomic_load(&bits_left);
    if (n <= 0 || left < 0) return;
    atomic_store(&bits_left, left < 8 * n ? -1 : left - 8 * n);
    if (left >= 8 * n) return;
    size_t at = (size_t)left / 8;
    for (size_t i = 0; i < npieces; at -= pieces[i++].iov_len) {
        if (at >= pieces[i].iov_len) continue;
        ((unsigned char *)pieces[i].iov_base)[at] ^= (unsigned char)(1u << left % 8);
        atomic_store(&injected, true);
        return;
    }
}

/* The data of a lane comes by these two alone. */
ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t n = syscall(SYS_recvmsg, fd, message, flags);
    flip_in(message->msg_iov, message->msg_iovlen, n);
    return n;
}

ssize_t recv(int fd, void *bytes, size_t len_bytes, int flags)
{
    ssize_t n = syscall(SYS_recvfrom, fd, bytes, len_bytes, flags, NULL, NULL);
    if (len_bytes > HANDSHAKE_BYTES) flip_in(&(const struct iovec){bytes, len_bytes}, 1, n);
    return n;
}

/* Message `k` is what was sent. */
static void compare(int k, const char *payload, size_t bytes)
{
    if (bytes != (size_t)k * 1009 % (SLICE + 1)) fail_msg("message %d has %zu bytes", k, bytes);
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)payload[i] != k) fail_msg("message %d, byte %zu", k, i);
    }
}

/* Whatever comes is what was sent; true: all came. */
static bool play(void)
{
    struct tt_edge *out = edge_of(0, TT_CONN_COLL, true);
    struct tt_edge *in = edge_of(1, TT_CONN_COLL, false);
    for (int sent = 0, got = 0; got < MESSAGES;) {
        const char *payload = NULL;
        size_t bytes = 0;
        if (sent < MESSAGES) sent += try_send(out, sent);
        ncclResult_t rc = tt_edge_peek(in, 77, &payload, &bytes);
        if (rc == ncclInProgress) {
            sched_yield();
            continue;
        }
        if (rc) return false;
        compare(got++, payload, bytes);
        tt_edge_release(in);
    }
    return true;
}

/* A Send in pieces of many slices, received where it belongs. Whatever is taken is what was sent.
 */
static bool play_message(void)
{
    struct tt_edge *out = edge_of(0, TT_CONN_P2P, true);
    struct tt_edge *in = edge_of(1, TT_CONN_P2P, false);
    size_t most = tt_edge_message_bytes(out);
    static char sent[LONG_BYTES], got[LONG_BYTES];
    size_t posted = 0, taken = 0;
    for (size_t i = 0; i < LONG_BYTES; i++)
        sent[i] = (char)(i * 131 + i / 509);
    memset(got, 0, LONG_BYTES);
    assert_true(most >= (size_t)64 * SLICE && most < LONG_BYTES);
    assert_true(most <= (size_t)256 << 10); /* what is compared at the end is short */
    while (taken < LONG_BYTES) {
        size_t next = tt_min_size(most, LONG_BYTES - posted), bytes = 0;
        const char *payload = NULL;
        if (next && tt_edge_acquire(out, next)) {
            assert_true(tt_edge_post_ref(out, 77, sent + posted, next));
            posted += next;
        }
        tt_edge_land(in, 77, got + taken, LONG_BYTES - taken);
        ncclResult_t rc = tt_edge_peek(in, 77, &payload, &bytes);
        if (rc == ncclInProgress) {
            sched_yield();
            continue;
        }
        if (rc) return false;
        assert_ptr_equal(payload, got + taken);
        assert_int_equal(bytes, tt_min_size(most, LONG_BYTES - taken));
        assert_memory_equal(payload, sent + taken, bytes);
        taken += bytes;
        tt_edge_release(in);
    }
    return true;
}

static size_t long_stream_bytes(void)
{
    size_t most = 0;
    rank_open(0);
    rank_open(1);
    most = tt_edge_message_bytes(edge_of(0, TT_CONN_P2P, true));
    assert_true(play_message());
    rank_close(0);
    rank_close(1);
    return LONG_BYTES + (LONG_BYTES + most - 1) / most * (LENGTH_BYTES + 56);
}

static size_t stream_bytes(void)
{
    size_t sum = 0;
    for (int k = 0; k < MESSAGES; k++)
        sum += LENGTH_BYTES + 56 + (size_t)k * 1009 % (SLICE + 1);
    return sum;
}

static void flip(bool from(void), int64_t bit, const char *wanted)
{
    rank_open(0);
    rank_open(1);
    atomic_store(&injected, false);
    atomic_store(&bits_left, bit);
    bool all = from();
    char last[1024];
    tt_error_take(last, sizeof(last)); /* whichever thread noticed it */
    if (!atomic_load(&injected)) fail_msg("bit %lld: never came", (long long)bit);
    if (all) fail_msg("bit %lld: nobody noticed", (long long)bit);
    if (!strstr(last, "rank 0")) fail_msg("bit %lld: '%s'", (long long)bit, last);
    if (wanted && !strstr(last, wanted)) fail_msg("bit %lld: '%s'", (long long)bit, last);
    rank_close(0);
    rank_close(1);
}

static void flip_some(bool from(void), int rounds, size_t of_bytes)
{
    uint64_t random = 1;
    for (int round = 0; round < rounds; round++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        flip(from, (int64_t)((random >> 16) % (8 * of_bytes)), NULL);
    }
}

static void flips_are_found(void **state)
{
    (void)state;
    flip_some(play, ROUNDS, stream_bytes());
}

static void flips_in_long_messages_are_found(void **state)
{
    (void)state;
    flip_some(play_message, LONG_ROUNDS, long_stream_bytes());
}

static void sentences_say_what(void **state)
{
    static const struct {
        const char *name;
        size_t byte;
        int bit;
        const char *wanted;
    } cases[] = {
        {"length", 0, 3, "damaged length"},
        {"match header", LENGTH_BYTES, 0, "bad MAC"},
        {"the mark of a MAC is gone", FLAGS_AT, 2, "no MAC"},
        {"MAC of the payload", LENGTH_BYTES + 41, 0, "bad MAC"},
        {"MAC of the head", LENGTH_BYTES + 50, 7, "bad MAC"},
        {"payload", 2 * (LENGTH_BYTES + 56) + 500, 5, "bad MAC"},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        print_message("case: %s\n", cases[i].name);
        flip(play, (int64_t)(8 * cases[i].byte) + cases[i].bit, cases[i].wanted);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flips_are_found),
        cmocka_unit_test(flips_in_long_messages_are_found),
        cmocka_unit_test(sentences_say_what),
    };
    return run_all(argc, argv, tests, TT_LEN(tests));
}
