/* Algorithms as another author would write them, partly in other words than the library's own: what
 * the form can say, proved; and that what orders them is needed. */
#include "unit/check.h"

#include "base/mem.h"
#include "program/format/build.h"
#include "program/verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void write_program(struct tt_builder *builder, bool sound);

static struct tt_program *made(write_program *write, int nranks, bool sound)
{
    struct tt_builder builder;
    struct tt_program *program = NULL;
    tt_build_begin(&builder, nranks);
    builder.head.algo = TT_ALGO_RING;
    builder.head.proto = TT_PROTO_SIMPLE;
    write(&builder, sound);
    assert_int_equal(tt_build_end(&builder, &program), ncclSuccess);
    return program;
}

/* What the verifier says of it; "" when it is right. */
static void judge(const struct tt_program *program, struct tt_verify_options options, char *fault,
                  size_t fault_bytes)
{
    const struct tt_program **programs = calloc((size_t)program->nranks, sizeof(*programs));
    assert_non_null(programs);
    for (int rank = 0; rank < program->nranks; rank++)
        programs[rank] = program;
    ncclResult_t rc = tt_program_verify(programs, program->nranks, &options, fault, fault_bytes);
    assert_int_equal(rc == ncclSuccess, fault[0] == '\0');
    free(programs);
}

static struct tt_operand own(enum tt_space space, int number)
{
    return tt_gen_own(space, tt_gen_number(number));
}

static struct tt_operand slot(enum tt_peer peer, int number, struct tt_gen_chunk chunk)
{
    return tt_gen_by(TT_SPACE_SLOT, peer, number, chunk);
}

/* ---- AllReduce by recursive doubling: the sum so far in scratch ---- */

static void recursive_doubling(struct tt_builder *builder, bool sound)
{
    int n = builder->head.nranks, steps = 0;
    while (1 << steps < n)
        steps++;
    builder->head.func = TT_FUNC_ALLREDUCE;
    builder->head.scratch = 1;
    tt_build_thread(builder);
    tt_build_move(builder, TT_MOVE_PRE);
    tt_build_src(builder, own(TT_SPACE_IN, 0));
    tt_build_dst(builder, own(TT_SPACE_SCRATCH, 0));
    for (int step = 0; step < steps; step++) {
        struct tt_operand partner = slot(TT_PEER_FLIP, sound ? step : 0, tt_gen_number(0));
        bool last = step == steps - 1;
        tt_build_copy(builder, own(TT_SPACE_SCRATCH, 0), partner);
        tt_build_move(builder, last ? TT_MOVE_REDUCE | TT_MOVE_POST : TT_MOVE_REDUCE);
        tt_build_src(builder, own(TT_SPACE_SCRATCH, 0));
        tt_build_src(builder, partner);
        tt_build_dst(builder, own(last ? TT_SPACE_OUT : TT_SPACE_SCRATCH, 0));
    }
    tt_build_stop(builder);
}

/* ---- AllReduce by halving and doubling: ranges of aligned groups ---- */

static struct tt_gen_chunk group(int level)
{
    return (struct tt_gen_chunk){TT_CHUNK_GROUP, level, 0};
}

static struct tt_gen_chunk sibling(int level)
{
    return (struct tt_gen_chunk){TT_CHUNK_SIBLING, level, 0};
}

static void halving_doubling(struct tt_builder *builder, bool sound)
{
    int n = builder->head.nranks, steps = 0;
    while (1 << steps < n)
        steps++;
    builder->head.func = TT_FUNC_ALLREDUCE;
    builder->head.nparts = n;
    builder->head.scratch = n;
    tt_build_thread(builder);
    for (int level = steps - 1; level >= 0; level--) {
        enum tt_space from = level == steps - 1 ? TT_SPACE_IN : TT_SPACE_SCRATCH;
        uint8_t pre = level == steps - 1 ? TT_MOVE_PRE : 0;
        uint8_t post = level == 0 ? TT_MOVE_POST : 0;
        tt_build_move(builder, pre);
        tt_build_range(builder, 1 << level);
        tt_build_src(builder, tt_gen_own(from, sibling(level)));
        tt_build_dst(builder, slot(TT_PEER_FLIP, level, sibling(level)));
        tt_build_move(builder, TT_MOVE_REDUCE | pre | post);
        tt_build_range(builder, sound ? 1 << level : 1);
        tt_build_src(builder, slot(TT_PEER_FLIP, level, group(level)));
        tt_build_src(builder, tt_gen_own(from, group(level)));
        tt_build_dst(builder, tt_gen_own(level ? TT_SPACE_SCRATCH : TT_SPACE_OUT, group(level)));
    }
    for (int level = 0; level < steps; level++) {
        tt_build_copy(builder, tt_gen_own(TT_SPACE_OUT, group(level)),
                      slot(TT_PEER_FLIP, level, group(level)));
        tt_build_range(builder, 1 << level);
        tt_build_copy(builder, slot(TT_PEER_FLIP, level, sibling(level)),
                      tt_gen_own(TT_SPACE_OUT, sibling(level)));
        tt_build_range(builder, 1 << level);
    }
    tt_build_stop(builder);
}

/* ---- AllGather by Bruck's distances, for any number of ranks ---- */

static void bruck(struct tt_builder *builder, bool sound)
{
    int n = builder->head.nranks;
    struct tt_gen_chunk mine = {TT_CHUNK_SHIFT, 0, 0};
    builder->head.func = TT_FUNC_ALLGATHER;
    builder->head.out_blocks = true;
    tt_build_thread(builder);
    tt_build_copy(builder, own(TT_SPACE_IN, 0), tt_gen_own(TT_SPACE_OUT, mine));
    for (int step = 0; 1 << step < n; step++) {
        int have = 1 << step, more = have < n - have ? have : n - have;
        struct tt_gen_chunk theirs = {TT_CHUNK_SHIFT, sound ? have : 0, 0};
        tt_build_copy(builder, tt_gen_own(TT_SPACE_OUT, mine), slot(TT_PEER_DOWN, step, mine));
        tt_build_range(builder, more);
        tt_build_copy(builder, slot(TT_PEER_UP, step, theirs), tt_gen_own(TT_SPACE_OUT, theirs));
        tt_build_range(builder, more);
    }
    tt_build_stop(builder);
}

/* ---- AlltoAll in pairs, two parts a block, by a loop ---- */

static void pairwise(struct tt_builder *builder, bool sound)
{
    int n = builder->head.nranks;
    struct tt_operand in = tt_gen_own(TT_SPACE_IN, (struct tt_gen_chunk){TT_CHUNK_SHIFT, 1, 1});
    struct tt_operand out = tt_gen_own(TT_SPACE_OUT, (struct tt_gen_chunk){TT_CHUNK_SHIFT, -1, -1});
    struct tt_operand to = slot(TT_PEER_SHIFT, 1, (struct tt_gen_chunk){TT_CHUNK_SHIFT, 1, 1});
    struct tt_operand from = slot(TT_PEER_SHIFT, -1, (struct tt_gen_chunk){TT_CHUNK_SHIFT, -1, -1});
    struct tt_operand mine[2] = {tt_gen_own(TT_SPACE_IN, tt_gen_me()),
                                 tt_gen_own(TT_SPACE_OUT, tt_gen_me())};
    struct tt_operand *all[] = {&in, &out, &to, &from, &mine[0], &mine[1]};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
        all[k]->stride = 2;
    to.peer_coef = 1;
    from.peer_coef = -1;
    if (!sound) out.offset = 1;
    builder->head.func = TT_FUNC_ALLTOALL;
    builder->head.nparts = 2;
    builder->head.in_blocks = builder->head.out_blocks = true;
    tt_build_thread(builder);
    tt_build_copy(builder, mine[0], mine[1]);
    tt_build_range(builder, 2);
    tt_build_loop(builder, n - 1);
    tt_build_copy(builder, in, to);
    tt_build_range(builder, 2);
    tt_build_copy(builder, from, out);
    tt_build_range(builder, 2);
    tt_build_next(builder);
    tt_build_stop(builder);
}

/* ---- AllReduce by all pairs in n threads, as files of MSCCL have it ---- */

/* Thread 0 reduces what the others bring to scratch, and they send its result on. */
static void all_pairs(struct tt_builder *builder, bool sound)
{
    int n = builder->head.nranks, nawaited = sound ? n - 1 : n - 2;
    builder->head.func = TT_FUNC_ALLREDUCE;
    builder->head.nparts = n;
    builder->head.scratch = n - 1;
    tt_build_thread(builder);
    for (int k = 1; k <= nawaited; k++)
        tt_build_await(builder, k, 1);
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | TT_MOVE_POST);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_me()));
    for (int k = 1; k < n; k++)
        tt_build_src(builder, own(TT_SPACE_SCRATCH, k - 1));
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_me()));
    tt_build_stop(builder);
    for (int k = 1; k < n; k++) {
        struct tt_gen_chunk theirs = {TT_CHUNK_SHIFT, k, 0};
        struct tt_operand to = slot(TT_PEER_SHIFT, k, theirs);
        tt_build_thread(builder);
        tt_build_move(builder, TT_MOVE_PRE);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, theirs));
        tt_build_dst(builder, to);
        tt_build_copy(builder, slot(TT_PEER_SHIFT, k, tt_gen_me()), own(TT_SPACE_SCRATCH, k - 1));
        tt_build_await(builder, 0, nawaited);
        tt_build_copy(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_me()),
                      slot(TT_PEER_SHIFT, k, tt_gen_me()));
        tt_build_copy(builder, slot(TT_PEER_SHIFT, k, theirs), tt_gen_own(TT_SPACE_OUT, theirs));
        tt_build_stop(builder);
    }
}

static const struct {
    const char *name;
    write_program *write;
    bool powers;       /* of two ranks only */
    const char *fault; /* of the unsound one */
} rows[] = {
    {"recursive doubling", recursive_doubling, true, "another value"},
    {"halving and doubling", halving_doubling, true, "which holds nothing"},
    {"Bruck", bruck, false, "which holds nothing"},
    {"pairwise", pairwise, false, "there is no chunk"},
    {"all pairs", all_pairs, false, "races with another access"},
};

static void they_are_right(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 5, 64, 1000};
    char fault[256];
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        for (int n = 2; n <= 17; n++) {
            if (rows[k].powers && (n & (n - 1))) continue;
            struct tt_program *program = made(rows[k].write, n, true);
            for (int variant = 0; variant < 8; variant++) {
                struct tt_verify_options options = {.count = counts[variant / 2],
                                                    .chunk_limit = 24,
                                                    .grain = 4,
                                                    .slice = 12,
                                                    .nslots = 64,
                                                    .in_place = variant & 1};
                /* pairs write blocks of IN before they are sent */
                if (options.in_place && rows[k].write == pairwise) continue;
                judge(program, options, fault, sizeof(fault));
                if (fault[0])
                    fail_msg("%s of %d ranks, count %zu, %s: %s", rows[k].name, n, options.count,
                             options.in_place ? "in place" : "out of place", fault);
            }
            free(program);
        }
    }
}

static void what_is_wrong_is_noticed(void **state)
{
    (void)state;
    struct tt_verify_options options = {.count = 64, .chunk_limit = 8, .grain = 4, .nslots = 64};
    char fault[256];
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct tt_program *program = made(rows[k].write, 8, false);
        judge(program, options, fault, sizeof(fault));
        print_message("%s: %s\n", rows[k].name, fault);
        assert_true(fault[0] && strstr(fault, rows[k].fault));
        free(program);
    }
}

/* Two channels between two ranks: as much as one has slots goes over each, which deadlocks on one.
 */
static void two_channels(struct tt_builder *builder, bool sound)
{
    builder->head.func = TT_FUNC_ALLREDUCE;
    builder->head.nparts = 2;
    builder->head.nchannels = 2;
    struct tt_operand partner[2];
    for (int k = 0; k < 2; k++) {
        partner[k] = slot(TT_PEER_XOR, 1, tt_gen_number(k));
        partner[k].channel = (uint16_t)(sound ? k : 0);
    }
    tt_build_thread(builder);
    for (int k = 0; k < 2; k++) {
        tt_build_move(builder, TT_MOVE_PRE);
        tt_build_src(builder, own(TT_SPACE_IN, k));
        tt_build_dst(builder, partner[k]);
    }
    for (int k = 0; k < 2; k++) {
        tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | TT_MOVE_POST);
        tt_build_src(builder, own(TT_SPACE_IN, k));
        tt_build_src(builder, partner[k]);
        tt_build_dst(builder, own(TT_SPACE_OUT, k));
    }
    tt_build_stop(builder);
}

static void edges_have_channels(void **state)
{
    (void)state;
    char fault[256];
    for (int sound = 0; sound < 2; sound++) {
        struct tt_verify_options options = {.count = 8, .chunk_limit = 4, .grain = 4, .nslots = 1};
        struct tt_program *program = made(two_channels, 2, sound);
        judge(program, options, fault, sizeof(fault));
        assert_true(sound ? !fault[0] : strstr(fault, "deadlock") != NULL);
        free(program);
    }
}

/* No thread ever sends, so the second thread never gets as far as its slot. */
static void one_end_for_two_threads(struct tt_builder *builder, bool sound)
{
    builder->head.func = TT_FUNC_ALLREDUCE;
    builder->head.nparts = 2;
    builder->head.nchannels = 2;
    for (int k = 0; k < 2; k++) {
        struct tt_operand partner = slot(TT_PEER_XOR, 1, tt_gen_number(k));
        partner.channel = (uint16_t)(sound ? k : 1);
        tt_build_thread(builder);
        if (k) tt_build_await(builder, 0, 0);
        tt_build_copy(builder, partner, own(TT_SPACE_OUT, k));
        tt_build_stop(builder);
    }
}

/* Whatever else is wrong, and whichever thread would come first. */
static void ends_have_one_thread(void **state)
{
    (void)state;
    char fault[256];
    struct tt_verify_options options = {.count = 8, .chunk_limit = 4, .grain = 4, .nslots = 1};
    for (int sound = 0; sound < 2; sound++) {
        struct tt_program *program = made(one_end_for_two_threads, 2, sound);
        judge(program, options, fault, sizeof(fault));
        assert_non_null(strstr(fault, sound ? "rank 0 insn 0, pass 0: deadlock"
                                            : "rank 0 insn 3, pass 0: two threads receive from "
                                              "rank 1 on channel 1"));
        free(program);
    }
}

/* Multicast is reserved; a network needs a table of its groups. */
static void a_network_needs_groups(void **state)
{
    (void)state;
    struct tt_builder builder;
    struct tt_program *program = NULL;
    tt_build_begin(&builder, 4);
    tt_build_thread(&builder);
    tt_build_copy(&builder, own(TT_SPACE_IN, 0), own(TT_SPACE_NETWORK, 0));
    tt_build_stop(&builder);
    assert_int_equal(tt_build_end(&builder, &program), ncclInvalidArgument);
    assert_null(program);
    assert_non_null(strstr(builder.fault, "not a valid instruction"));
}

/* An AllReduce by two groups of a network, each of which has all inputs: ranks of one parity, and
 * what comes from the other one by slots. */
enum net_damage { NET_SOUND, NET_OTHER_PART, NET_LEFT, NET_ALONE, NET_FINISHED, NET_FAULTS_ };
static enum net_damage net_damage;

static void give_part(struct tt_builder *builder, enum net_damage damage, int part)
{
    bool other = damage == NET_OTHER_PART;
    uint8_t post = damage == NET_FINISHED ? TT_MOVE_POST : 0;
    struct tt_operand from_peer = slot(TT_PEER_XOR, 1, tt_gen_number(part));
    tt_build_move(builder, TT_MOVE_PRE);
    tt_build_src(builder, own(TT_SPACE_IN, part));
    tt_build_dst(builder, from_peer);
    if (damage == NET_ALONE && part) return;
    tt_build_move(builder, (uint8_t)(TT_MOVE_REDUCE | TT_MOVE_PRE | post));
    tt_build_src(builder, own(TT_SPACE_IN, other ? 1 - part : part));
    if (!other) tt_build_src(builder, from_peer);
    tt_build_dst(builder, own(TT_SPACE_NETWORK, other ? 1 - part : part));
}

static void network_of_pairs(struct tt_builder *builder, bool sound)
{
    static const int32_t groups[] = {0, 1, 0, 1};
    (void)sound;
    builder->head.func = TT_FUNC_ALLREDUCE;
    builder->head.nparts = 2;
    tt_build_table(builder, TT_TABLE_NETWORK, groups);
    for (int me = 0; me < 4; me++) {
        enum net_damage damage = me == 2 ? net_damage : NET_SOUND;
        tt_build_assign(builder, me, tt_build_text(builder));
        tt_build_thread(builder);
        for (int part = 0; part < 2; part++)
            give_part(builder, damage, part);
        for (int part = 0; part < (damage == NET_LEFT ? 1 : 2); part++) {
            tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_POST);
            tt_build_src(builder, own(TT_SPACE_NETWORK, part));
            tt_build_dst(builder, own(TT_SPACE_OUT, part));
        }
        tt_build_stop(builder);
    }
}

static void a_network_sums_what_its_groups_give(void **state)
{
    static const char *const faults[NET_FAULTS_] = {
        [NET_OTHER_PART] = "expects part 0 of a window from rank 2 and gets part 1",
        [NET_LEFT] = "rank 2: OUT chunk 1 of pass 0 was never written",
        [NET_ALONE] = "waits for a full slot from rank 2",
        [NET_FINISHED] = "lets the network reduce a finished value of rank 2",
    };
    (void)state;
    for (net_damage = NET_SOUND; net_damage < NET_FAULTS_; net_damage++) {
        char fault[256] = "";
        struct tt_verify_options options = {
            .count = 10, .chunk_limit = SIZE_MAX, .grain = 1, .nslots = 2, .parts_apart = true};
        struct tt_program *program = made(network_of_pairs, 4, true);
        judge(program, options, fault, sizeof(fault));
        print_message("damage %d: %s\n", (int)net_damage, fault);
        assert_int_equal(fault[0] == '\0', net_damage == NET_SOUND);
        if (faults[net_damage]) assert_non_null(strstr(fault, faults[net_damage]));
        free(program);
    }
}

static struct tt_operand multicast(enum tt_space space, struct tt_gen_chunk chunk)
{
    return tt_gen_set(space, TT_PEER_MULTICAST, chunk);
}

/* An AllReduce by a load and a store of all ranks; all but the first are wrong. */
enum { SOUND, SAME_SOURCE, SAME_OFFSET, NO_PRE, LEAVES_EARLY, NVARIANTS };

static struct tt_program *multicast_allreduce(int variant)
{
    struct tt_builder builder;
    struct tt_program *program = NULL;
    struct tt_gen_chunk from = variant == SAME_SOURCE ? tt_gen_number(0) : tt_gen_me();
    struct tt_gen_chunk to = variant == SAME_OFFSET ? tt_gen_number(0) : tt_gen_me();
    tt_build_begin(&builder, 4);
    builder.head.func = TT_FUNC_ALLREDUCE;
    builder.head.nparts = 4;
    builder.head.whole_window = 1;
    tt_build_thread(&builder);
    tt_build_enter(&builder, -1);
    tt_build_move(&builder,
                  (uint8_t)(TT_MOVE_REDUCE | TT_MOVE_POST | (variant == NO_PRE ? 0 : TT_MOVE_PRE)));
    tt_build_src(&builder, multicast(TT_SPACE_IN, from));
    tt_build_dst(&builder, multicast(TT_SPACE_OUT, to));
    tt_build_leave(&builder, variant == LEAVES_EARLY ? TT_MOVE_NO_WAIT : 0);
    tt_build_stop(&builder);
    assert_int_equal(tt_build_end(&builder, &program), ncclSuccess);
    return program;
}

/* A load from multicast memory is of all ranks, a store goes to all; the verifier sees both. */
static void multicast_is_every_rank(void **state)
{
    (void)state;
    char fault[256];
    struct tt_verify_options options = {
        .count = 16, .chunk_limit = SIZE_MAX, .grain = 1, .nslots = 1};
    for (int variant = SOUND; variant < NVARIANTS; variant++) {
        struct tt_program *program = multicast_allreduce(variant);
        judge(program, options, fault, sizeof(fault));
        print_message("variant %d: %s\n", variant, fault);
        assert_int_equal(fault[0] == '\0', variant == SOUND);
        if (variant != SOUND) assert_non_null(strstr(fault, "rank "));
        free(program);
    }
}

/* It is memory, reduced by loads: no slots, no copies from it, no walk along its ranks. */
static void multicast_elsewhere_is_refused(void **state)
{
    (void)state;
    const struct {
        uint8_t flags;
        struct tt_operand src, dst;
    } moves[] = {
        {0, multicast(TT_SPACE_IN, tt_gen_me()), own(TT_SPACE_OUT, 0)},
        {0, own(TT_SPACE_IN, 0), multicast(TT_SPACE_SLOT, tt_gen_me())},
        {0, own(TT_SPACE_IN, 0), multicast(TT_SPACE_SCRATCH, tt_gen_me())},
        {0, own(TT_SPACE_IN, 0), multicast(TT_SPACE_OUT, tt_gen_peer())},
        {0, tt_gen_own(TT_SPACE_IN, tt_gen_peer()), multicast(TT_SPACE_OUT, tt_gen_me())},
        {0, tt_gen_set(TT_SPACE_IN, TT_PEER_EACH, tt_gen_me()),
         multicast(TT_SPACE_OUT, tt_gen_me())},
        {TT_MOVE_REDUCE, multicast(TT_SPACE_IN, tt_gen_peer()), own(TT_SPACE_OUT, 0)},
    };
    for (size_t k = 0; k < sizeof(moves) / sizeof(moves[0]); k++) {
        struct tt_builder builder;
        struct tt_program *program = NULL;
        print_message("move %zu\n", k);
        tt_build_begin(&builder, 4);
        tt_build_thread(&builder);
        tt_build_enter(&builder, -1);
        tt_build_move(&builder, moves[k].flags);
        tt_build_src(&builder, moves[k].src);
        tt_build_dst(&builder, moves[k].dst);
        tt_build_leave(&builder, 0);
        tt_build_stop(&builder);
        assert_int_equal(tt_build_end(&builder, &program), ncclInvalidArgument);
        assert_null(program);
    }
}

/* AllGather of two ranks whose blocks have two parts; the second comes through scratch, taken for
 * as long as the first unless `sound`. */
static void parts_through_scratch(struct tt_builder *builder, bool sound)
{
    builder->head.func = TT_FUNC_ALLGATHER;
    builder->head.nparts = 2;
    builder->head.out_blocks = 1;
    builder->head.scratch = 1;
    for (int me = 0; me < 2; me++) {
        int peer = 1 - me;
        tt_build_assign(builder, me, tt_build_text(builder));
        tt_build_thread(builder);
        for (int part = 0; part < 2; part++) {
            struct tt_operand to = slot(TT_PEER_RANK, peer, tt_gen_number(part));
            tt_build_copy(builder, own(TT_SPACE_IN, part), own(TT_SPACE_OUT, 2 * me + part));
            tt_build_copy(builder, own(TT_SPACE_IN, part), to);
        }
        tt_build_copy(builder, slot(TT_PEER_RANK, peer, tt_gen_number(0)),
                      own(TT_SPACE_OUT, 2 * peer));
        tt_build_copy(builder, slot(TT_PEER_RANK, peer, tt_gen_number(sound ? 1 : 0)),
                      own(TT_SPACE_SCRATCH, 0));
        tt_build_copy(builder, own(TT_SPACE_SCRATCH, 0), own(TT_SPACE_OUT, 2 * peer + 1));
        tt_build_stop(builder);
    }
}

/* What fits by chance, because all parts of a full window are as long, is found where parts are
 * told apart. */
static void parts_are_distinguished(void **state)
{
    (void)state;
    struct tt_verify_options options = {
        .count = 16, .chunk_limit = 8, .grain = 4, .slice = 8, .nslots = 8};
    for (int sound = 0; sound < 2; sound++) {
        struct tt_program *program = made(parts_through_scratch, 2, sound);
        for (int apart = 0; apart < 2; apart++) {
            char fault[256] = "";
            options.parts_apart = apart;
            judge(program, options, fault, sizeof(fault));
            assert_int_equal(fault[0] == '\0', sound || !apart);
            if (fault[0]) assert_non_null(strstr(fault, "expects part 0"));
        }
        free(program);
    }
}

static ncclResult_t admit(struct tt_admitted **admitted, const struct tt_program *program,
                          const struct tt_admit_options *options)
{
    char fault[256] = "";
    ncclResult_t rc = tt_program_admit(admitted, program, options, fault, sizeof(fault));
    assert_int_equal(rc != ncclSuccess, fault[0] != 0);
    return rc;
}

/* Verified at the first time only: the second needs no memory. What is wrong is refused each time,
 * and the same program for another use is verified anew. */
static void strangers_are_verified_once(void **state)
{
    (void)state;
    struct tt_admitted *admitted = NULL;
    struct tt_admit_options options = {.nslots = 64, .nslices = 4, .out_of_place = true};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct tt_program *right = made(rows[k].write, 8, true);
        struct tt_program *wrong = made(rows[k].write, 8, false);
        assert_int_equal(admit(&admitted, wrong, &options), ncclInvalidUsage);
        assert_int_equal(admit(&admitted, right, &options), ncclSuccess);
        tt_fault_at(0);
        ncclResult_t again = admit(&admitted, right, &options);
        tt_fault_at(-1);
        assert_int_equal(again, ncclSuccess);
        assert_int_equal(admit(&admitted, wrong, &options), ncclInvalidUsage);
        struct tt_admit_options tight = {.nslots = 1, .nslices = 4, .out_of_place = true};
        assert_int_equal(admit(&admitted, right, &tight), ncclInvalidUsage);
        free(right);
        free(wrong);
    }
    tt_admitted_destroy(admitted);
}

static void all_ranks_hold_the_same(void **state)
{
    (void)state;
    struct tt_program *one = made(bruck, 6, true), *other = made(bruck, 6, false);
    uint64_t hashes[6];
    for (int rank = 0; rank < 6; rank++)
        hashes[rank] = tt_program_hash(one);
    assert_int_equal(tt_program_agree(hashes, 6), 6);
    hashes[4] = tt_program_hash(other);
    assert_int_equal(tt_program_agree(hashes, 6), 4);
    free(one);
    free(other);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_right),
        cmocka_unit_test(what_is_wrong_is_noticed),
        cmocka_unit_test(edges_have_channels),
        cmocka_unit_test(multicast_is_every_rank),
        cmocka_unit_test(multicast_elsewhere_is_refused),
        cmocka_unit_test(a_network_needs_groups),
        cmocka_unit_test(a_network_sums_what_its_groups_give),
        cmocka_unit_test(parts_are_distinguished),
        cmocka_unit_test(strangers_are_verified_once),
        cmocka_unit_test(all_ranks_hold_the_same),
        cmocka_unit_test(ends_have_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
