/* Every generator is right for every size, root and placement that can matter, and the verifier
 * notices when it is not. */
#include "unit/check.h"

#include "program_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static bool all_thousand; /* every generator at 1,000 ranks */

struct size { /* elements */
    size_t count, chunk_limit, grain, slice;
};

static const struct size sizes[] = {
    {1, 1000, 1, 0}, {3, 1000, 4, 0},  {4, 1000, 4, 0},   {5, 1000, 4, 0},  {64, 8, 4, 0},
    {67, 8, 4, 4},   {131, 16, 16, 0}, {97, 1000, 4, 16}, {1000, 64, 8, 0},
};

/* A chunk is a part of a slot. */
static bool fills_slots(const struct program_case *what)
{
    return what->algo == TT_ALGO_COLLNET_DIRECT && what->func != TT_FUNC_ALLREDUCE;
}

/* An AlltoAll of hosts: as many blocks as slots go before one comes. */
static bool sorts_inside(const struct program_case *what)
{
    return what->algo == TT_ALGO_HIERARCHICAL && what->func == TT_FUNC_ALLTOALL;
}

static size_t slice_of(const struct program_case *what, const struct size *size)
{
    bool slotless = program_is_direct(what->algo);
    bool one_slot = what->algo == TT_ALGO_ONESHOT || what->algo == TT_ALGO_HALVING ||
                    what->algo == TT_ALGO_BRUCK || fills_slots(what) || sorts_inside(what);
    return slotless || one_slot ? 0 : size->slice;
}

static void verify_case(const struct program_case *what, int root, int nranks,
                        struct tt_verify_options options)
{
    char fault[256];
    for (int channel = 0; channel < 2; channel++) {
        int per_host = channel ? 3 : nranks;
        struct program_set set = program_set_make(what, root, nranks, per_host, channel);
        ncclResult_t rc = tt_program_verify(set.programs, nranks, &options, fault, sizeof(fault));
        program_set_free(&set);
        if (rc == ncclSuccess && !fault[0]) continue;
        fail_msg("%s %s n %d root %d count %zu slots %d in place %d channel %d: %s",
                 tt_func_name(what->func), tt_algo_name(what->algo), nranks, root, options.count,
                 options.nslots, options.in_place, channel, fault);
    }
}

/* Smallest number of slots that suffices: a fused receive-and-send holds its slot, so a ring needs
 * one more than a chunk has slices. */
static int fewest_slots(const struct program_case *what, const struct size *size)
{
    bool rings = what->algo == TT_ALGO_RING || what->algo == TT_ALGO_HIERARCHICAL ||
                 what->algo == TT_ALGO_NVLS_TREE;
    bool rotates = rings && !what->rooted;
    if (what->algo == TT_ALGO_HALVING || what->algo == TT_ALGO_BRUCK || sorts_inside(what))
        return 8;
    bool sends_first = what->algo == TT_ALGO_PAT || what->algo == TT_ALGO_COLLNET_DIRECT ||
                       what->algo == TT_ALGO_DOUBLING || what->algo == TT_ALGO_PAIRWISE;
    size_t slices = size->slice && !fills_slots(what) ? 3 : 1;
    if (what->algo == TT_ALGO_HIERARCHICAL) sends_first = !rotates; /* a chunk before it gets one */
    if (sends_first) return (int)slices;
    return rotates ? (int)slices + 1 : 1;
}

static void verify_sizes(const struct program_case *what, int root, int nranks, size_t stride)
{
    size_t nsizes = sizeof(sizes) / sizeof(sizes[0]);
    bool no_place = what->func == TT_FUNC_ALLTOALL && what->algo != TT_ALGO_ONESHOT;
    for (size_t k = 0; k < nsizes; k += stride) {
        struct tt_verify_options options = {.count = sizes[k].count,
                                            .chunk_limit = sizes[k].chunk_limit,
                                            .grain = sizes[k].grain,
                                            .slice = slice_of(what, &sizes[k])};
        if (program_is_direct(what->algo)) options.chunk_limit = SIZE_MAX;
        if (options.slice && options.chunk_limit > 3 * options.slice) {
            options.chunk_limit = 3 * options.slice;
        }
        for (int variant = 0; variant < 4; variant++) {
            options.in_place = variant & 1;
            options.nslots = variant & 2 ? 8 : fewest_slots(what, &sizes[k]);
            if (options.in_place && no_place) continue;
            verify_case(what, root, nranks, options);
        }
    }
}

static void verify_roots(const struct program_case *what, int n)
{
    int nroots = what->rooted ? n : 1;
    bool regular = what->algo == TT_ALGO_TREE || what->algo == TT_ALGO_HIERARCHICAL;
    for (int root = 0; root < nroots; root++) {
        if (regular && n > 9 && root % 3 != 0 && root != n - 1) continue;
        verify_sizes(what, root, n, root % 3 == 0 || n < 6 ? 1 : 4);
    }
}

static void all_programs_are_right(void **state)
{
    (void)state;
    int ncases;
    const struct program_case *cases = program_cases(&ncases);
    for (int k = 0; k < ncases; k++) {
        for (int n = 2; n <= 17; n++)
            verify_roots(&cases[k], n);
    }
}

struct layout { /* of hosts */
    int nhosts, sizes[8];
};

static void verify_layout(const struct program_case *what, const struct layout *layout, int root)
{
    char fault[256];
    struct program_set set = program_set_make_uneven(what, root, layout->sizes, layout->nhosts);
    for (size_t k = 0; k < 4 * sizeof(sizes) / sizeof(sizes[0]); k++) {
        const struct size *size = &sizes[k / 4];
        struct tt_verify_options options = {.count = size->count,
                                            .chunk_limit = size->chunk_limit,
                                            .grain = size->grain,
                                            .slice = slice_of(what, size),
                                            .nslots = k & 2 ? 8 : fewest_slots(what, size),
                                            .in_place = k & 1};
        if (options.in_place && what->func == TT_FUNC_ALLTOALL) continue;
        if (options.slice && options.chunk_limit > 3 * options.slice)
            options.chunk_limit = 3 * options.slice;
        ncclResult_t rc =
            tt_program_verify(set.programs, set.nranks, &options, fault, sizeof(fault));
        if (rc == ncclSuccess && !fault[0]) continue;
        fail_msg("%s of %d ranks on %d hosts, root %d count %zu slots %d in place %d: %s",
                 tt_func_name(what->func), set.nranks, layout->nhosts, root, options.count,
                 options.nslots, options.in_place, fault);
    }
    program_set_free(&set);
}

/* Hosts of different numbers of ranks; the root on a rail or beside, on a large host or a small
 * one. What has no such program is refused. */
static void uneven_hosts_are_right(void **state)
{
    (void)state;
    static const struct program_case cases[] = {
        {TT_FUNC_ALLREDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, false},
        {TT_FUNC_REDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, true},
        {TT_FUNC_BROADCAST, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, true},
        {TT_FUNC_ALLGATHER, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, false},
        {TT_FUNC_REDUCESCATTER, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, false},
        {TT_FUNC_ALLTOALL, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, false},
        {TT_FUNC_ALLREDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_LL, false},
        {TT_FUNC_ALLGATHER, TT_ALGO_HIERARCHICAL, TT_PROTO_LL, false},
        {TT_FUNC_REDUCESCATTER, TT_ALGO_HIERARCHICAL, TT_PROTO_LL, false},
        {TT_FUNC_ALLTOALL, TT_ALGO_HIERARCHICAL, TT_PROTO_LL, false}};
    static const struct layout layouts[] = {
        {2, {1, 2}},       {2, {3, 1}},       {2, {2, 3}},
        {2, {5, 2}},       {3, {1, 1, 2}},    {3, {2, 4, 2}},
        {3, {4, 3, 2}},    {4, {1, 2, 3, 4}}, {4, {3, 3, 3, 2}},
        {4, {2, 4, 4, 3}}, {2, {3, 3}},       {2, {9, 2}},
        {2, {2, 19}},      {3, {12, 5, 1}},   {8, {4, 4, 4, 2, 4, 4, 3, 4}}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        for (size_t l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++) {
            int nranks = 0;
            for (int host = 0; host < layouts[l].nhosts; host++)
                nranks += layouts[l].sizes[host];
            for (int root = 0; root < (cases[k].rooted ? nranks : 1); root++)
                verify_layout(&cases[k], &layouts[l], root);
        }
    }
}

static void large_communicators(void **state)
{
    (void)state;
    int ncases;
    const struct program_case *cases = program_cases(&ncases);
    for (int k = 0; k < ncases; k++) {
        for (int n = 31; n <= 33; n++)
            verify_sizes(&cases[k], n / 2, n, 5);
    }
}

/* One window, of which the last chunk is empty where there are several. */
static void verify_once(const struct program_case *what, int root, int nranks, int per_host)
{
    struct program_set set = program_set_make(what, root, nranks, per_host, 0);
    size_t nparts = (size_t)set.blocks[0]->nparts;
    struct tt_verify_options options = {.count = nparts > 1 ? nparts - 1 : 1,
                                        .chunk_limit = program_is_direct(what->algo) ? SIZE_MAX : 1,
                                        .grain = 1,
                                        .nslots = 8};
    char fault[256];
    ncclResult_t rc = tt_program_verify(set.programs, nranks, &options, fault, sizeof(fault));
    program_set_free(&set);
    if (rc == ncclSuccess) return;
    fail_msg("%s %s n %d root %d: %s", tt_func_name(what->func), tt_algo_name(what->algo), nranks,
             root, fault);
}

static void every_count_up_to_64_and_257(void **state)
{
    (void)state;
    int ncases;
    const struct program_case *cases = program_cases(&ncases);
    for (int k = 0; k < ncases; k++) {
        for (int n = 18; n <= 64; n++) {
            bool every = cases[k].rooted && all_thousand;
            verify_once(&cases[k], n % 2 ? n - 1 : n / 3, n, 8);
            for (int root = 0; root < n && every; root++)
                verify_once(&cases[k], root, n, 8);
        }
        verify_once(&cases[k], 100, 257, 8);
    }
}

enum { MOST_SECONDS = 10, MOST_MIB = 1024 }; /* of a set of a thousand ranks */

static void verify_thousand(const struct program_case *what, int root, int per_host)
{
    clock_t begin = clock();
    struct rusage usage;
    verify_once(what, root, 1000, per_host);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    getrusage(RUSAGE_SELF, &usage);
    if (all_thousand) {
        print_message("%s %s, root %d, %d ranks a host: %.2f s of processor time\n",
                      tt_func_name(what->func), tt_algo_name(what->algo), root, per_host, seconds);
        assert_true(seconds < MOST_SECONDS);
        assert_in_range(usage.ru_maxrss, 1, MOST_MIB * 1024);
    }
}

/* Of a thousand ranks those that take a second; all of them when asked, on small hosts and on large
 * ones: `program-verify-thousand`. */
static void a_thousand_ranks(void **state)
{
    (void)state;
    int ncases;
    const struct program_case *cases = program_cases(&ncases);
    for (int k = 0; k < ncases; k++) {
        const struct program_case *what = &cases[k];
        bool quick = what->rooted ? what->algo != TT_ALGO_DIRECT : what->algo == TT_ALGO_TREE;
        if (!quick && !all_thousand) continue;
        verify_thousand(what, 999, 8);
        for (int root = 0; root < 999 && what->rooted && all_thousand; root += 333)
            verify_thousand(what, root, 8);
        for (int hosts = 2; hosts < 500 && program_needs_hosts(what->algo) && all_thousand;
             hosts *= 5)
            verify_thousand(what, 999, 1000 / hosts);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    if (all_thousand) print_message("most memory: %ld MiB\n", usage.ru_maxrss / 1024);
}

static void messages(void **state)
{
    (void)state;
    static const struct program_case pair = {TT_FUNC_SEND, TT_ALGO_P2P, TT_PROTO_SIMPLE, true};
    verify_sizes(&pair, 0, 2, 1);
}

static void too_few_slots_deadlock(void **state)
{
    (void)state;
    static const struct program_case ring = {TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_SIMPLE,
                                             false};
    struct tt_verify_options options = {.count = 100, .chunk_limit = 1000, .grain = 1, .nslots = 1};
    char fault[256];
    struct program_set set = program_set_make(&ring, 0, 4, 4, 0);
    assert_int_equal(tt_program_verify(set.programs, 4, &options, fault, sizeof(fault)),
                     ncclInternalError);
    assert_non_null(strstr(fault, "deadlock with 1 slots"));
    assert_non_null(strstr(fault, "rank 0 insn 2"));
    program_set_free(&set);
}

static void alltoall_in_place_needs_slots(void **state)
{
    (void)state;
    static const struct program_case slots = {TT_FUNC_ALLTOALL, TT_ALGO_ONESHOT, TT_PROTO_LL,
                                              false};
    verify_sizes(&slots, 0, 5, 1);
}

/* ---- mutations ---- */

struct mutation {
    const char *name;
    /* Change an instruction of that rank's own copy; false when there is nothing of the kind. */
    bool (*apply)(struct tt_program *program, int rank, struct tt_insn *insn);
};

static void *part_at(struct tt_program *program, uint32_t at)
{
    return (char *)program + at;
}

static bool drop_insn(struct tt_program *program, int rank, struct tt_insn *insn)
{
    (void)rank;
    if (insn->op != TT_OP_MOVE && insn->op != TT_OP_ENTER && insn->op != TT_OP_LEAVE) return false;
    struct tt_insn *insns = part_at(program, program->insns_at);
    struct tt_thread *threads = part_at(program, program->threads_at);
    uint32_t dropped = (uint32_t)(insn - insns);
    memmove(insn, insn + 1, (program->ninsns - dropped - 1) * sizeof(*insn));
    program->ninsns--;
    for (uint32_t t = 0; t < program->nthreads; t++) {
        threads[t].first -= threads[t].first > dropped;
        threads[t].end -= threads[t].end > dropped;
    }
    return true;
}

static bool shift_chunk(struct tt_program *program, int rank, struct tt_insn *insn)
{
    bool chunked = tt_program_in_chunks(program) > 1 || tt_program_out_chunks(program) > 1;
    struct tt_operand *operands = part_at(program, program->operands_at);
    if (insn->op != TT_OP_MOVE || !chunked) return false;
    for (int k = 0; k < insn->nsrcs; k++) {
        struct tt_operand *src = &operands[insn->first_src + (uint32_t)k];
        if (src->space == TT_SPACE_SLOT) continue;
        if (src->space == TT_SPACE_NETWORK && program->nparts == 1) continue;
        if (src->chunk_by == TT_CHUNK_ME || src->chunk_by == TT_CHUNK_PEER) {
            src->chunk_by = TT_CHUNK_CONST;
            src->chunk = (rank + 1) % program->nranks;
            return true;
        }
        if (src->space == TT_SPACE_IN && !program->in_blocks && program->out_blocks) continue;
        src->chunk++;
        return true;
    }
    return false;
}

static bool forget_pre(struct tt_program *program, int rank, struct tt_insn *insn)
{
    (void)program, (void)rank;
    bool had = insn->flags & TT_MOVE_PRE;
    insn->flags &= (uint8_t)~TT_MOVE_PRE;
    return had;
}

static bool forget_post(struct tt_program *program, int rank, struct tt_insn *insn)
{
    (void)program, (void)rank;
    bool had = insn->flags & TT_MOVE_POST;
    insn->flags &= (uint8_t)~TT_MOVE_POST;
    return had;
}

static bool leave_at_once(struct tt_program *program, int rank, struct tt_insn *insn)
{
    (void)program, (void)rank;
    if (insn->op != TT_OP_LEAVE || (insn->flags & TT_MOVE_NO_WAIT)) return false;
    insn->flags |= TT_MOVE_NO_WAIT;
    return true;
}

static bool await_nothing(struct tt_program *program, int rank, struct tt_insn *insn)
{
    (void)program;
    if (insn->op != TT_OP_ENTER || insn->arg == rank) return false;
    insn->arg = rank;
    return true;
}

/* Take the last operand that stands for a peer at that rank out of the list. */
static bool drop_operand(struct tt_program *program, int rank, uint32_t first, uint16_t *count)
{
    struct tt_operand *list = (struct tt_operand *)part_at(program, program->operands_at) + first;
    for (int k = *count - 1; *count > 1 && k >= 0; k--) {
        bool linked = list[k].peer == TT_PEER_TABLE;
        enum tt_table table = (enum tt_table)list[k].peer_number;
        if (linked && tt_program_table(program, table)[rank] < 0) continue;
        memmove(&list[k], &list[k + 1], (size_t)(*count - k - 1) * sizeof(*list));
        --*count;
        return true;
    }
    return false;
}

static bool drop_source(struct tt_program *program, int rank, struct tt_insn *insn)
{
    return insn->op == TT_OP_MOVE && drop_operand(program, rank, insn->first_src, &insn->nsrcs);
}

static bool drop_destination(struct tt_program *program, int rank, struct tt_insn *insn)
{
    return insn->op == TT_OP_MOVE && drop_operand(program, rank, insn->first_dst, &insn->ndsts);
}

static bool longer_loop(struct tt_program *program, int rank, struct tt_insn *insn)
{
    (void)program, (void)rank;
    if (insn->op != TT_OP_LOOP) return false;
    insn->arg++;
    return true;
}

static const struct mutation mutations[] = {
    {"drop an instruction", drop_insn}, {"shift a chunk", shift_chunk},
    {"forget pre", forget_pre},         {"forget post", forget_post},
    {"leave at once", leave_at_once},   {"await nothing", await_nothing},
    {"drop a source", drop_source},     {"drop a destination", drop_destination},
    {"longer loop", longer_loop},
};

/* Every mutation of one instruction of what a rank runs; how many there were. */
static int mutate_insn(const struct program_case *what, struct program_set *set, int rank,
                       uint32_t insn)
{
    struct tt_verify_options options = {.count = 40, .chunk_limit = 8, .grain = 4, .nslots = 8};
    const struct tt_program *right = set->programs[rank];
    struct tt_program *wrong = malloc(right->bytes);
    char fault[256];
    int tried = 0;
    assert_non_null(wrong);
    set->programs[rank] = wrong;
    for (size_t m = 0; m < sizeof(mutations) / sizeof(mutations[0]); m++) {
        memcpy(wrong, right, right->bytes);
        struct tt_insn *changed = (struct tt_insn *)part_at(wrong, wrong->insns_at) + insn;
        if (!mutations[m].apply(wrong, rank, changed)) continue;
        ncclResult_t rc =
            tt_program_verify(set->programs, set->nranks, &options, fault, sizeof(fault));
        tried++;
        if (rc != ncclSuccess && fault[0]) continue;
        fail_msg("%s %s: rank %d insn %u: '%s' went unnoticed", tt_func_name(what->func),
                 tt_algo_name(what->algo), rank, insn, mutations[m].name);
    }
    set->programs[rank] = right;
    free(wrong);
    return tried;
}

static int try_mutations(const struct program_case *what, int nranks)
{
    int tried = 0;
    struct program_set set = program_set_make(what, 1, nranks, 3, 0);
    const struct tt_thread *threads = tt_program_threads(set.blocks[0]);
    for (int rank = 0; rank < nranks; rank++) {
        const struct tt_text *text = tt_program_text(set.blocks[0], rank);
        uint32_t end = threads[text->end - 1].end;
        for (uint32_t insn = threads[text->first].first; insn < end; insn++)
            tried += mutate_insn(what, &set, rank, insn);
    }
    program_set_free(&set);
    return tried;
}

static void mutations_are_caught(void **state)
{
    (void)state;
    int ncases;
    const struct program_case *cases = program_cases(&ncases);
    int tried = 0;
    for (int k = 0; k < ncases; k++)
        tried += try_mutations(&cases[k], 5);
    print_message("%d mutations caught\n", tried);
    assert_true(tried > 500);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const struct program_case ring = {TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_SIMPLE,
                                             false};
    struct tt_verify_options options = {.count = 100, .chunk_limit = 1000, .grain = 1, .nslots = 8};
    char fault[256];
    struct program_set set = program_set_make(&ring, 0, 4, 4, 0);
    const struct tt_program *right = set.blocks[0];
    struct tt_program *wrong = malloc(right->bytes);
    assert_non_null(wrong);
    set.programs[2] = wrong;
    for (size_t byte = 0; byte < right->bytes; byte++) {
        for (int value = 0; value < 256; value += 5) {
            memcpy(wrong, right, right->bytes);
            memcpy((char *)wrong + byte, &value, 1);
            bool sized = tt_program_check(wrong, right->bytes, fault, sizeof(fault));
            assert_true(sized || fault[0]);
            if (wrong->bytes == right->bytes)
                (void)tt_program_verify(set.programs, 4, &options, fault, sizeof(fault));
        }
    }
    memcpy(wrong, right, right->bytes);
    ((struct tt_thread *)part_at(wrong, wrong->threads_at))->end = 1000;
    assert_int_equal(tt_program_verify(set.programs, 4, &options, fault, sizeof(fault)),
                     ncclInternalError);
    assert_string_equal(fault, "rank 2: text 0 thread 0 is not well-formed");
    free(wrong);
    program_set_free(&set);
}

/* What a block takes does not depend on its ranks but for a table or two of them; that of a program
 * that goes to all hosts at once names them. */
static void large_programs_stay_small(void **state)
{
    (void)state;
    enum { N = 4096 };
    int ncases;
    const struct program_case *cases = program_cases(&ncases);
    for (int k = 0; k < ncases; k++) {
        struct program_set set = program_set_make(&cases[k], 1, N, 8, 0);
        struct program_set same = program_set_make(&cases[k], 1, N, 8, 0);
        bool hosts = cases[k].algo == TT_ALGO_HIERARCHICAL && cases[k].proto == TT_PROTO_LL;
        size_t most = 32768 + 5 * N * sizeof(int32_t) + N * sizeof(uint16_t);
        if (hosts && !sorts_inside(&cases[k])) most += (size_t)3 * N * sizeof(struct tt_operand);
        assert_in_range(set.blocks[0]->bytes, 1, most);
        assert_int_equal(tt_program_hash(set.blocks[0]), tt_program_hash(same.blocks[0]));
        program_set_free(&set);
        set = program_set_make(&cases[k], 1, N - 8, 8, 0);
        assert_true(tt_program_hash(set.blocks[0]) != tt_program_hash(same.blocks[0]));
        program_set_free(&set);
        program_set_free(&same);
    }
}

/* Uneven hosts: a text for each pair of sizes that are neighbours, however many hosts there are, or
 * one for each rank. */
static void uneven_programs_stay_small(void **state)
{
    (void)state;
    enum { HOSTS = 512 };
    static const struct {
        enum tt_func func;
        enum tt_proto proto;
        int nhosts;
        size_t most;
    } cases[] = {{TT_FUNC_ALLGATHER, TT_PROTO_SIMPLE, HOSTS, 300000},
                 {TT_FUNC_REDUCESCATTER, TT_PROTO_SIMPLE, HOSTS, 300000},
                 {TT_FUNC_ALLREDUCE, TT_PROTO_LL, 32, 4000000},
                 {TT_FUNC_ALLGATHER, TT_PROTO_LL, 32, 4000000},
                 {TT_FUNC_REDUCESCATTER, TT_PROTO_LL, 32, 4000000},
                 {TT_FUNC_ALLTOALL, TT_PROTO_LL, 32, 4000000},
                 {TT_FUNC_ALLTOALL, TT_PROTO_SIMPLE, 32, 4000000}};
    static int ranks_of[HOSTS];
    for (int host = 0; host < HOSTS; host++)
        ranks_of[host] = host == 10 ? 7 : 8;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        const struct program_case what = {cases[k].func, TT_ALGO_HIERARCHICAL, cases[k].proto,
                                          false};
        struct program_set set = program_set_make_uneven(&what, -1, ranks_of, cases[k].nhosts);
        print_message("%s %s: %u bytes\n", tt_func_name(what.func), tt_proto_name(what.proto),
                      set.blocks[0]->bytes);
        assert_in_range(set.blocks[0]->bytes, 1, cases[k].most);
        program_set_free(&set);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_programs_are_right),
        cmocka_unit_test(uneven_hosts_are_right),
        cmocka_unit_test(uneven_programs_stay_small),
        cmocka_unit_test(large_communicators),
        cmocka_unit_test(every_count_up_to_64_and_257),
        cmocka_unit_test(a_thousand_ranks),
        cmocka_unit_test(messages),
        cmocka_unit_test(too_few_slots_deadlock),
        cmocka_unit_test(alltoall_in_place_needs_slots),
        cmocka_unit_test(mutations_are_caught),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(large_programs_stay_small),
    };
    all_thousand = argc > 2 && strcmp(argv[2], "thousand") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
