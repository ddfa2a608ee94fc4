/* The proof: a peer that changes, reflects or redirects any byte of any message is refused. */
#include "../check.h"

#include "bootstrap/wire/handshake.h"

#include <sodium.h>
#include <string.h>

static const unsigned char secret[TT_SECRET_BYTES] = {1, 2, 3};

struct pair {
    struct tt_key key;
    struct tt_handshake client, server;
    struct tt_hello hello;
};

/* A whole exchange; byte `at` of message `which` (1..3) is damaged on the way. True: both agree. */
static bool exchange(struct pair *pair, int which, size_t at)
{
    tt_handshake_hello(&pair->client, &pair->hello, &pair->key);
    memcpy(pair->server.hello, pair->client.hello, TT_HELLO_BYTES);
    if (which == 1) pair->server.hello[at] ^= 1;
    struct tt_hello seen;
    if (!tt_handshake_read(&pair->server, &seen)) return false;
    tt_handshake_answer(&pair->server, &pair->key, pair->hello.wanted_rank);
    memcpy(pair->client.answer, pair->server.answer, TT_ANSWER_BYTES);
    if (which == 2) pair->client.answer[at] ^= 1;
    if (!tt_handshake_prove(&pair->client, &pair->key, pair->hello.wanted_rank)) return false;
    memcpy(pair->server.proof, pair->client.proof, TT_PROOF_BYTES);
    if (which == 3) pair->server.proof[at] ^= 1;
    return tt_handshake_check(&pair->server, &pair->key);
}

static void pair_init(struct pair *pair)
{
    memset(pair, 0, sizeof(*pair));
    tt_key_derive(secret, TT_KEY_TREE, &pair->key);
    pair->hello =
        (struct tt_hello){.kind = TT_KEY_TREE, .own_rank = 9, .wanted_rank = 1, .nranks = 12};
}

static void honest(void **state)
{
    struct pair pair;
    struct tt_session client, server;
    struct tt_hello seen;
    (void)state;
    pair_init(&pair);
    assert_true(exchange(&pair, 0, 0));
    assert_true(tt_handshake_read(&pair.server, &seen));
    assert_int_equal(seen.own_rank, 9);
    assert_int_equal(seen.wanted_rank, 1);
    assert_int_equal(seen.nranks, 12);
    assert_memory_equal(seen.key_name, pair.key.name, TT_KEY_NAME_BYTES);
    tt_handshake_session(&pair.client, &pair.key, false, &client);
    tt_handshake_session(&pair.server, &pair.key, true, &server);
    assert_memory_equal(client.send_key, server.recv_key, TT_SECRET_BYTES);
    assert_memory_equal(client.recv_key, server.send_key, TT_SECRET_BYTES);
    assert_memory_not_equal(client.recv_key, client.send_key, TT_SECRET_BYTES);
}

static void every_byte_counts(void **state)
{
    static const size_t sizes[] = {0, TT_HELLO_BYTES, TT_ANSWER_BYTES, TT_PROOF_BYTES};
    struct pair pair;
    (void)state;
    pair_init(&pair);
    for (int which = 1; which <= 3; which++) {
        for (size_t at = 0; at < sizes[which]; at++) {
            if (exchange(&pair, which, at)) fail_msg("message %d, byte %zu", which, at);
        }
    }
}

static void other_keys(void **state)
{
    struct pair pair;
    struct tt_key root, other;
    unsigned char another[TT_SECRET_BYTES] = {9};
    (void)state;
    pair_init(&pair);
    tt_key_derive(secret, TT_KEY_ROOT, &root);
    tt_key_derive(another, TT_KEY_TREE, &other);
    assert_memory_not_equal(root.name, pair.key.name, TT_KEY_NAME_BYTES);
    assert_true(exchange(&pair, 0, 0));
    assert_false(tt_handshake_check(&pair.server, &root));
    assert_false(tt_handshake_check(&pair.server, &other));
    assert_false(tt_handshake_prove(&pair.client, &other, 1));
    assert_false(tt_handshake_prove(&pair.client, &pair.key, 2)); /* led to another rank */
}

static void reflection(void **state)
{
    struct pair pair;
    struct tt_hello seen;
    (void)state;
    pair_init(&pair);
    assert_true(exchange(&pair, 0, 0));
    memcpy(pair.server.proof, pair.server.answer + TT_ANSWER_BYTES - TT_PROOF_BYTES,
           TT_PROOF_BYTES);
    assert_false(tt_handshake_check(&pair.server, &pair.key));
    pair.hello.own_rank = pair.hello.wanted_rank;
    tt_handshake_hello(&pair.client, &pair.hello, &pair.key);
    assert_false(tt_handshake_read(&pair.client, &seen));
}

static void fresh_nonces(void **state)
{
    struct pair pair;
    unsigned char before[TT_PROOF_BYTES];
    (void)state;
    pair_init(&pair);
    assert_true(exchange(&pair, 0, 0));
    memcpy(before, pair.client.proof, sizeof(before));
    assert_true(exchange(&pair, 0, 0));
    assert_memory_not_equal(before, pair.client.proof, sizeof(before));
    memcpy(pair.server.proof, before, sizeof(before));
    assert_false(tt_handshake_check(&pair.server, &pair.key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest),       cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(other_keys),   cmocka_unit_test(reflection),
        cmocka_unit_test(fresh_nonces),
    };
    if (sodium_init() < 0) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
