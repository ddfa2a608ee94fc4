/* One call's algSelection: which (algorithm, protocol) pairs it allows. A word stands for all pairs
 * whose name begins with it; ^word for all others; words joined by + must all hold; a comma begins
 * an alternative. What has no name (sends and receives) is allowed by ^ alone. */
#include "base/error.h"
#include "base/mem.h"
#include "tune.h"

#include <string.h>
#include <strings.h>

#define UNNAMED (UINT32_C(1) << 31)

struct pair_name {
    const char *name;
    enum tt_algo algo;
    enum tt_proto proto;
};
static const struct pair_name names[] = {
    {"TREE_LL", TT_ALGO_TREE, TT_PROTO_LL},
    {"TREE_LL128", TT_ALGO_TREE, TT_PROTO_LL128},
    {"TREE_SIMPLE", TT_ALGO_TREE, TT_PROTO_SIMPLE},
    {"RING_LL", TT_ALGO_RING, TT_PROTO_LL},
    {"RING_LL128", TT_ALGO_RING, TT_PROTO_LL128},
    {"RING_SIMPLE", TT_ALGO_RING, TT_PROTO_SIMPLE},
    {"COLLNET_DIRECT_SIMPLE", TT_ALGO_COLLNET_DIRECT, TT_PROTO_SIMPLE},
    {"COLLNET_CHAIN_SIMPLE", TT_ALGO_COLLNET_CHAIN, TT_PROTO_SIMPLE},
    {"NVLS_SIMPLE", TT_ALGO_NVLS, TT_PROTO_SIMPLE},
    {"NVLSTREE_SIMPLE", TT_ALGO_NVLS_TREE, TT_PROTO_SIMPLE},
    {"PAT_SIMPLE", TT_ALGO_PAT, TT_PROTO_SIMPLE},
    {"DIRECT_SIMPLE", TT_ALGO_DIRECT, TT_PROTO_SIMPLE}, /* ours */
    {"ONESHOT_LL", TT_ALGO_ONESHOT, TT_PROTO_LL},
    {"DOUBLING_LL", TT_ALGO_DOUBLING, TT_PROTO_LL},
    {"HALVING_SIMPLE", TT_ALGO_HALVING, TT_PROTO_SIMPLE},
    {"BRUCK_LL", TT_ALGO_BRUCK, TT_PROTO_LL},
    {"PAIRWISE_SIMPLE", TT_ALGO_PAIRWISE, TT_PROTO_SIMPLE},
    {"HIERARCHICAL_LL", TT_ALGO_HIERARCHICAL, TT_PROTO_LL},
    {"HIERARCHICAL_SIMPLE", TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
};
_Static_assert(TT_LEN(names) < 31, "a bit for each, one for what has no name");

/* 0: it has no name. */
static uint32_t pair_bit(enum tt_algo algo, enum tt_proto proto)
{
    for (size_t i = 0; i < TT_LEN(names); i++) {
        if (names[i].algo == algo && names[i].proto == proto) return UINT32_C(1) << i;
    }
    return 0;
}

bool tt_tune_allows(struct tt_tune_request request, enum tt_algo algo, enum tt_proto proto)
{
    return !request.selects || (request.allowed & pair_bit(algo, proto));
}

bool tt_tune_allows_unnamed(struct tt_tune_request request)
{
    return !request.selects || (request.allowed & UNNAMED);
}

static uint32_t word_bits(const char *word, size_t len)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < TT_LEN(names); i++) {
        if (strncasecmp(names[i].name, word, len) != 0 || strlen(names[i].name) < len) continue;
        bits |= UINT32_C(1) << i;
    }
    return bits;
}

ncclResult_t tt_tune_select(const char *text, struct tt_tune_request *request)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    uint32_t any = 0, all = ~UINT32_C(0);
    const char *at = text;
    request->selects = text && *text;
    while (request->selects) {
        at += strspn(at, " \t");
        bool negated = *at == '^';
        at += negated;
        at += strspn(at, " \t");
        size_t len = strspn(at, letters);
        uint32_t bits = word_bits(at, len);
        const char *end = at + len + strspn(at + len, " \t");
        if (!len || (*end && *end != '+' && *end != ',')) {
            return tt_fail(ncclInvalidArgument,
                           "ncclCollConfig_t: algSelection '%.200s': expected words such as "
                           "RING_LL joined by + (and) or , (or), ^ for not, at '%.40s'",
                           text, len ? end : at);
        }
        all &= negated ? ~bits : bits;
        if (*end != '+') {
            any |= all;
            all = ~UINT32_C(0);
        }
        if (!*end) break;
        at = end + 1;
    }
    request->allowed = any;
    return ncclSuccess;
}

const char *tt_tune_pair_name(enum tt_algo algo, enum tt_proto proto)
{
    for (size_t i = 0; i < TT_LEN(names); i++) {
        if (names[i].algo == algo && names[i].proto == proto) return names[i].name;
    }
    return NULL;
}
