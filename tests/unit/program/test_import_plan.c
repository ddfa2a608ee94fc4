/* Plans of MSCCL++: whatever can be wrong with one is refused with its line and the reason, also
 * what only following it shows: accesses that nothing orders, waits that never end, memory that
 * holds nothing. What is right is in test_import.c.
 * usage: test-program-import-plan FOLDER */
#include "unit/check.h"
#include "unit/program/import_file.h"

#include "base/mem.h"
#include "program/import/import.h"
#include "program/verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 17 };
static const char *folder;

static const struct flaw mixed[] = {
    /* allreduce-mixed.json */
    {1, "{", "{]", "line 1: not JSON: a member of an object without a name"},
    {1, "{", "[", "not JSON: ',' or a closing bracket is missing"},
    {2, ",", "", "line 3: not JSON: ',' or a closing bracket is missing"},
    {2, "mixed", "mi\\u00zzxed", "line 2: not JSON: \\u without four hexadecimal digits"},
    {2, "mixed", "mi\\qxed", "line 2: not JSON: an escape that JSON does not have"},
    {2, "mixed", "mi\\ud800xed", "line 2: not JSON: half a character"},
    {2, "mixed", "mi\\u0000xed", "line 2: not JSON: a NUL in a string"},
    {2, "mixed", "mi\txed", "line 2: not JSON: a control character"},
    {3, "allreduce", "allsum", "line 3: collective is \"allsum\", which is none"},
    {3, "\"collective\"", "\"collected\"", "line 1: the plan has no \"collective\""},
    {3, "allreduce", "allgather",
     "line 8: gpu 0: output_chunks is 4; AllGather of 2 ranks has 4 input"},
    {3, "allreduce", "alltoall", "line 22: gpu 0 tb 0: rres, where AlltoAll reduces nothing"},
    {4, "Simple", "Fast", "line 4: protocol is \"Fast\", which is none"},
    {5, "true", "1", "line 5: the plan does not say whether it is in place"},
    {5, "true", "false",
     "line 62: gpu 1 tb 0: rre writes chunk 2 of gpu 1's input, which must stay"},
    {5, "true", "tru", "line 5: not JSON: no JSON value"},
    {7, "gpus", "ranks", "line 1: the plan has no \"gpus\""},
    {7, "[", "[7,", "line 7: a gpu is no object"},
    {9, "0", "1", "line 8: gpu 1 comes where gpu 0 is due"},
    {9, "0", "7", "line 9: id is 7, not a number in 0 to 1"},
    {9, "0", "0.5", "line 9: id is 0.5, not a number"},
    {9, "0", "00", "line 9: not JSON"},
    {9, "0", "\"0\"", "line 9: id of a gpu is no number"},
    {10, "input_chunks", "inputChunks", "line 8: a plan of an older MSCCL++"},
    {10, "4", "3", "line 8: gpu 0: output_chunks is 4; AllReduce of 2 ranks has 3 input"},
    {12, "4", "3", "line 17: gpu 0 tb 0: copy of chunks 2 to 3 of gpu 0's scratch, which has 3"},
    {12, "4", "99999999999999999999",
     "line 12: scratch_chunks is 99999999999999999999, not a number"},
    {15, "0", "1", "line 14: gpu 0: tb 1 comes where tb 0 is due"},
    {17, "\"copy\"", "\"cpy\"", "line 17: \"cpy\" is no operation that is imported"},
    {17, "\"i\"", "\"x\"", "line 17: type is \"x\", which is none"},
    {17, "\"size\": 2", "\"size\": 1",
     "line 17: gpu 0 tb 0: sources and destinations of a copy do not match"},
    {17, "\"size\": 2", "\"size\": 0", "line 17: size is 0, not a number in 1 to"},
    {17, "\"index\": 2", "\"index\": -1", "line 17: index is -1, not a number in 0 to"},
    {17, "src_buff", "src_buf", "line 17: copy has no \"src_buff\""},
    {17, "[{\"type\": \"i\", \"index\": 2, \"size\": 2}]", "[]",
     "line 17: src_buff of a copy is empty"},
    {17, "{\"name\"", "{\"tbg_info\": {\"tb_id\": 2, \"tbg_size\": 2}, \"name\"",
     "line 17: tb_id is 2, not a number in 0 to 1"},
    {17, "{\"name\": \"copy\"", "{\"name\": \"pipeline\", \"ops\": [{\"name\": \"pipeline\"}]",
     "line 17: \"pipeline\" is no operation that is imported"},
    {19, "signal", "nop",
     "line 69: gpu 1 tb 0: wait waits for ever: for a signal that nobody sends"},
    {19, "[0]", "[1]",
     "line 19: gpu 0 tb 0: signal names what channels of the block does not list"},
    {19, "memory", "port",
     "line 19: gpu 0 tb 0: signal names what channels of the block does not list"},
    {19, "memory", "switch", "line 19: a signal on a switch"},
    {19, "memory", "air", "line 19: a channel's type is \"air\", which is none"},
    {20, "wait", "nop",
     "line 22: gpu 0 tb 0: rres reads chunk 0 of gpu 1's scratch, which holds nothing"},
    {22, "\"buffer_id\": 0", "\"buffer_id\": 2",
     "rres names what remote_buffer_refs of the block does not list"},
    {22, "\"sum\"", "\"max\"", "line 22: reduce_op is \"max\": the operator is the caller's"},
    {22, "\"buffer_id\": 1, \"index\": 0", "\"buffer_id\": 1, \"index\": 4",
     "line 22: gpu 0 tb 0: rres of chunks 4 to 4 of gpu 1's input, which has 4"},
    {23, "[0]", "[1]", "line 23: gpu 0 tb 0: get names what channels of the block does not list"},
    {23, "\"buffer_id\": 0, \"index\": 1", "\"switch_channel_id\": 0, \"index\": 1",
     "line 23: gpu 0 tb 0: get names what channels of the block does not list"},
    {27, "signal", "nop", "line 69: gpu 1 tb 0: wait waits for ever"},
    {32, "[0]", "[1]", "line 32: channel_ids is 1, not a number in 0 to 0"},
    {35, "[0, 1]", "[0, 2]", "line 35: remote_buffer_ids is 2, not a number in 0 to 1"},
    {40, "[1]", "[0]", "line 40: gpu 0 connects to itself"},
    {40, "[1]", "[2]", "line 40: connected_to is 2, not a number in 0 to 1"},
    {40, "[1]", "[]", "line 32: channel_ids is 0, not a number in 0 to -1"},
    {43, "\"rank\": 1", "\"rank\": 0", "holds nothing"},
    {46, "[]", "[{\"value\": 0}]", "line 46: a semaphore has no \"init_value\""},
};

static const struct flaw pairs[] = {
    /* allreduce-pairs.json: blocks that meet */
    {22, "\"num_threadblocks\": 3", "\"num_threadblocks\": 4", "has 4 elsewhere"},
    {22, "\"barrier_id\": 0", "\"barrier_id\": 1",
     "waits for ever: for blocks that never come to the barrier"},
    {22, "barrier\"", "nop\"",
     "line 23: gpu 0 tb 0: re reads chunk 1 of gpu 0's scratch, and nothing orders it"},
    {25, "sem_release", "nop", "waits for ever: for a semaphore that nobody releases"},
    {25, "[1, 2]", "[1, 3]", "line 25: semaphore_ids is 3, not a number in 0 to 2"},
    {25, "[1, 2]", "[2, 2]", "waits for ever: for a semaphore that nobody releases"},
};

static const struct flaw packets[] = {
    /* allreduce-packets.json */
    {17, "\"ppkt\"", "\"put\"",
     "line 65: gpu 0 tb 4: upkt waits for ever: for data that nobody writes as lines"},
    {17, "\"tb_id\": 0", "\"tb_id\": 1", "waits for ever: for data that nobody writes as lines"},
};

static const struct flaw ports[] = {
    /* allgather-port.json: the second block signals for the first */
    {44, "[1]", "[0]", "at a channel that another block uses as well"},
};

static const struct flaw switches[] = {
    /* allreduce-switch.json */
    {43, "[0, 1, 2, 3]", "[0, 0, 2, 3]", "line 43: gpu 0 is in a group twice"},
};

/* A line as text, from its number; what follows it is left out. */
static char *line_at(char *text, int line)
{
    for (; line > 1; line--)
        text = strchr(text, '\n') + 1;
    return text;
}

static void read_sound(const char *name, char *text)
{
    size_t bytes;
    char *file = import_file_read(folder, name, &bytes);
    assert_in_range(bytes, 1, MOST_BYTES - 1);
    memcpy(text, file, bytes + 1);
    free(file);
}

static void apply(char *text, int line, const char *from, const char *to)
{
    char *at = strstr(line_at(text, line), from), *end = strchr(line_at(text, line), '\n');
    if (!at || at > end) fail_msg("line %d has no %s", line, from);
    memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    memcpy(at, to, strlen(to));
}

static void refuse_all(const char *name, const struct flaw *flaws, size_t count)
{
    static char text[MOST_BYTES];
    for (size_t k = 0; k < count; k++) {
        read_sound(name, text);
        apply(text, flaws[k].line, flaws[k].from, flaws[k].to);
        import_expect_fault(text, strlen(text), flaws[k].fault);
    }
}

static void flaws_are_refused(void **state)
{
    (void)state;
    refuse_all("allreduce-mixed.json", mixed, TT_LEN(mixed));
    refuse_all("allreduce-pairs.json", pairs, TT_LEN(pairs));
    refuse_all("allreduce-packets.json", packets, TT_LEN(packets));
    refuse_all("allgather-port.json", ports, TT_LEN(ports));
    refuse_all("allreduce-switch.json", switches, TT_LEN(switches));
}

/* A small file that asks for much work. */
static void large_plans_are_refused(void **state)
{
    (void)state;
    static const char text[] =
        "{\"collective\": \"allreduce\", \"inplace\": false, \"gpus\": [{\"id\": 0, "
        "\"input_chunks\": 300000, \"output_chunks\": 300000, \"scratch_chunks\": 0, "
        "\"channels\": [], \"threadblocks\": [{\"id\": 0, \"ops\": [\n"
        "{\"name\": \"copy\", \"src_buff\": [{\"type\": \"i\", \"index\": 0, \"size\": 300000}], "
        "\"dst_buff\": [{\"type\": \"o\", \"index\": 0, \"size\": 300000}]},\n"
        "{\"name\": \"copy\", \"src_buff\": [{\"type\": \"i\", \"index\": 0, \"size\": 300000}], "
        "\"dst_buff\": [{\"type\": \"o\", \"index\": 0, \"size\": 300000}]}]}]}]}";
    import_expect_fault(text, strlen(text), "line 3: the plan touches too many chunks");
}

static void cut_files_are_refused(void **state)
{
    (void)state;
    static char text[MOST_BYTES];
    read_sound("allreduce-packet-chain.json", text);
    for (size_t bytes = 0; bytes + 2 < strlen(text); bytes++)
        import_expect_fault(text, bytes, bytes ? "line " : "not XML");
}

/* A wait that is missing lets two blocks at the same chunk at once: both are named. */
static void races_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        struct flaw flaw;
    } rows[] = {
        /* rank 0 does not wait before it puts: rank 1 may not have copied yet */
        {"allreduce-mixed.json", {60, "wait", "nop", "and nothing orders it behind gpu 0 tb 0"}},
        {"allreduce-pairs.json", {20, "wait", "nop", "and nothing orders it behind"}},
        {"allreduce-pairs.json", {48, "sem_acquire", "nop", "and nothing orders it behind"}},
        /* and rank 0 ends while others may still store into its chunks */
        {"allreduce-switch.json",
         {30, "rlxwait", "nop", "which does not wait for it before it ends"}},

    };
    static char text[MOST_BYTES];
    for (size_t k = 0; k < TT_LEN(rows); k++) {
        read_sound(rows[k].file, text);
        apply(text, rows[k].flaw.line, rows[k].flaw.from, rows[k].flaw.to);
        import_expect_fault(text, strlen(text), rows[k].flaw.fault);
    }
}

/* What is well-formed and ordered, and computes something else, is the verifier's to refuse. */
static void wrong_results_are_refused(void **state)
{
    (void)state;
    static char text[MOST_BYTES];
    struct tt_import *import = NULL;
    struct tt_verify_options options = {
        .count = 8, .chunk_limit = 4, .grain = 4, .slice = 4, .nslots = 8};
    char fault[256];
    read_sound("allreduce-mixed.json", text);
    apply(text, 22, "\"rres\"", "\"nop\"");
    assert_int_equal(tt_import_read(text, strlen(text), &import, fault, sizeof(fault)), 0);
    const struct tt_program *programs[] = {import->program, import->program};
    assert_int_equal(tt_program_verify(programs, 2, &options, fault, sizeof(fault)),
                     ncclInternalError);
    print_message("%s\n", fault);
    assert_non_null(strstr(fault, "OUT chunk 0"));
    tt_import_destroy(import);
}

static void sizes_and_notes_are_kept(void **state)
{
    (void)state;
    static char text[MOST_BYTES];
    struct tt_import *import = NULL;
    char fault[256];
    read_sound("allgather-put.json", text);
    assert_int_equal(tt_import_read(text, strlen(text), &import, fault, sizeof(fault)), 0);
    assert_true(import->min_bytes == 4096 && import->max_bytes == 1 << 20 && import->in_place);
    assert_string_equal(import->name, "allgather_put");
    assert_null(import->notes);
    tt_import_destroy(import);
    read_sound("allreduce-mixed.json", text); /* one signal more at the end */
    apply(text, 29, "{\"name\": \"nop\"",
          "{\"name\": \"signal\", \"channel_ids\": [0], \"channel_type\": \"memory\"");
    import = NULL;
    assert_int_equal(tt_import_read(text, strlen(text), &import, fault, sizeof(fault)), 0);
    assert_non_null(strstr(import->notes, "a signal of gpu 0 is never waited for"));
    tt_import_destroy(import);
}

static void short_memory_is_reported(void **state)
{
    (void)state;
    static char text[MOST_BYTES];
    read_sound("allreduce-pairs.json", text);
    import_expect_short_memory(text);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(flaws_are_refused),         cmocka_unit_test(large_plans_are_refused),
        cmocka_unit_test(cut_files_are_refused),     cmocka_unit_test(races_are_refused),
        cmocka_unit_test(wrong_results_are_refused), cmocka_unit_test(sizes_and_notes_are_kept),
        cmocka_unit_test(short_memory_is_reported),
    };
    if (argc < 2) return 2;
    folder = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
