/* MSCCL's XML: our own files are proved for what they say they are for, others' as well where they
 * are there; and everything that can be wrong with a file is refused with its line and the reason.
 * usage: test-program-import FOLDER FOLDER OF PLANS [FOLDER OF OTHERS] */
#include "unit/check.h"
#include "unit/program/import_file.h"

#include "base/mem.h"
#include "program/import/import.h"
#include "program/verify/verify.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *own_folder, *other_folder, *plan_folder;

/* ---- what is right ---- */

static void prove(const char *name, const struct tt_import *import, size_t count, bool in_place)
{
    const struct tt_program *program = import->program;
    const struct tt_program **programs = calloc((size_t)program->nranks, sizeof(*programs));
    char fault[256];
    assert_non_null(programs);
    for (int rank = 0; rank < program->nranks; rank++)
        programs[rank] = program;
    struct tt_verify_options options = {.count = count,
                                        .chunk_limit = 4,
                                        .grain = 4,
                                        .slice = 4,
                                        .nslots = 8,
                                        .in_place = in_place};
    if (tt_program_verify(programs, program->nranks, &options, fault, sizeof(fault))) {
        fail_msg("%s, count %zu, %s: %s (line %d)", name, count,
                 in_place ? "in place" : "out of place", fault, tt_import_line(import, fault));
    }
    free(programs);
}

static int by_program(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && (strcmp(dot, ".xml") == 0 || strcmp(dot, ".json") == 0);
}

/* Written and read again it is the same program, for the same uses. */
static void write_and_read(const char *name, const struct tt_import *import)
{
    struct tt_import *again = NULL;
    char fault[256], *text = NULL;
    if (tt_export_msccl(import->program, import, &text, fault, sizeof(fault)) ||
        tt_import_read(text, strlen(text), &again, fault, sizeof(fault)))
        fail_msg("%s: %s", name, fault);
    assert_int_equal(again->program->bytes, import->program->bytes);
    assert_memory_equal(again->program, import->program, import->program->bytes);
    assert_string_equal(again->name, import->name);
    assert_true(again->in_place == import->in_place && again->out_of_place == import->out_of_place);
    assert_true(again->min_bytes == import->min_bytes && again->max_bytes == import->max_bytes);
    tt_import_destroy(again);
    free(text);
}

/* Plans are right either way; an AlltoAll in place has its input copied before it runs. */
static bool is_plan(const char *name)
{
    return strcmp(strrchr(name, '.'), ".json") == 0;
}

static bool runs_in_place(const char *name, const struct tt_import *import)
{
    return import->in_place || (is_plan(name) && import->program->func != TT_FUNC_ALLTOALL);
}

/* What a file for in place alone leaves where it lies is copied, where nothing is reduced. */
static bool runs_out_of_place(const char *name, const struct tt_import *import)
{
    int func = import->program->func;
    bool reduces =
        func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCE || func == TT_FUNC_REDUCESCATTER;
    return import->out_of_place || is_plan(name) || !reduces;
}

/* All of the folder; how many. */
static int prove_folder(const char *folder)
{
    struct dirent **names = NULL;
    int count = folder ? scandir(folder, &names, by_program, alphasort) : 0;
    for (int k = 0; k < count; k++) {
        struct tt_import *import = NULL;
        char fault[256];
        size_t bytes;
        char *text = import_file_read(folder, names[k]->d_name, &bytes);
        print_message("file: %s\n", names[k]->d_name);
        if (tt_import_read(text, bytes, &import, fault, sizeof(fault)))
            fail_msg("%s: %s", names[k]->d_name, fault);
        assert_null(import->notes);
        size_t window = 4 * (size_t)import->program->nparts;
        size_t counts[] = {1, window / 2 + 1, window, 2 * window + 5};
        for (size_t c = 0; c < 2 * TT_LEN(counts); c++) {
            bool in_place = c & 1;
            if (in_place ? runs_in_place(names[k]->d_name, import)
                         : runs_out_of_place(names[k]->d_name, import))
                prove(names[k]->d_name, import, counts[c / 2], in_place);
        }
        write_and_read(names[k]->d_name, import);
        tt_import_destroy(import);
        free(text);
        free(names[k]);
    }
    free(names);
    return count;
}

static void own_files_are_proved(void **state)
{
    (void)state;
    assert_int_equal(prove_folder(own_folder), 14);
}

static void plans_are_proved(void **state)
{
    (void)state;
    assert_int_equal(prove_folder(plan_folder), 12);
}

static void files_of_others_are_proved(void **state)
{
    (void)state;
    DIR *there = other_folder ? opendir(other_folder) : NULL;
    if (!there) skip();
    (void)closedir(there);
    assert_true(prove_folder(other_folder) > 0);
}

/* ---- what is wrong ---- */

static const char *const sound[] = {
    "<algo name=\"pair\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"2\" "
    "coll=\"allreduce\" inplace=\"0\" outofplace=\"1\" minBytes=\"0\" maxBytes=\"0\">",
    "<gpu id=\"0\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"1\">",
    "<tb id=\"0\" send=\"1\" recv=\"1\" chan=\"0\">",
    "<step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>",
    "<step s=\"1\" type=\"rrc\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"1\"/>",
    "<step s=\"2\" type=\"s\" srcbuf=\"o\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>",
    "<step s=\"3\" type=\"r\" srcbuf=\"o\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>",
    "</tb>",
    "<tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">",
    "<step s=\"0\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0\" "
    "depid=\"0\" deps=\"1\" hasdep=\"0\"/>",
    "<step s=\"1\" type=\"cpy\" srcbuf=\"o\" srcoff=\"0\" dstbuf=\"s\" dstoff=\"0\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>",
    "</tb></gpu>",
    "<gpu id=\"1\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"0\">",
    "<tb id=\"0\" send=\"0\" recv=\"0\" chan=\"0\">",
    "<step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>",
    "<step s=\"1\" type=\"rrc\" srcbuf=\"i\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>",
    "<step s=\"2\" type=\"s\" srcbuf=\"o\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>",
    "<step s=\"3\" type=\"r\" srcbuf=\"o\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>",
    "</tb></gpu></algo>",
};

static const struct flaw flaws[] = {
    {1, "<algo", "algo", "line 1: not XML"},
    {1, "<algo", "<!DOCTYPE a [<!ENTITY b \"c\">]><algo", "line 1: DOCTYPE is not allowed"},
    {1, "<algo", "<plan", "line 1: the document is <plan>"},
    {1, "coll=", "call=", "line 1: <algo> has no attribute call"},
    {1, "ngpus=\"2\"", "", "line 1: <algo> lacks the attribute ngpus"},
    {1, "ngpus=\"2\"", "ngpus=\"2\" ngpus=\"2\"", "line 1: not XML: duplicate attribute"},
    {1, "ngpus=\"2\"", "ngpus=\"0x2\"", "ngpus of <algo> is \"0x2\", which is no decimal number"},
    {1, "ngpus=\"2\"", "ngpus=\"02\"", "which is no decimal number"},
    {1, "ngpus=\"2\"", "ngpus=\"\"", "which is no decimal number"},
    {1, "ngpus=\"2\"", "ngpus=\"99999999999999999999\"", "which is no decimal number"},
    {1, "ngpus=\"2\"", "ngpus=\"99999999999\"", "not in 1 to"},
    {1, "maxBytes=\"0\"", "maxBytes=\"9223372036854775808\"", "which is no decimal number"},
    {1, "maxBytes=\"0\"", "redop=\"xor\"", "redop of <algo> is \"xor\", which is none"},
    {1, "ngpus=\"2\"", "ngpus=\"0\"", "ngpus of <algo> is 0"},
    {1, "ngpus=\"2\"", "ngpus=\"3\"", "ngpus is 3, and there are 2 gpu elements"},
    {1, "Simple", "simple", "proto of <algo> is \"simple\", which is none"},
    {1, "allreduce", "allsum", "coll of <algo> is \"allsum\", which is none"},
    {1, "allreduce", "alltoallv", "alltoallv is no collective that is imported"},
    {1, "allreduce", "allgather", "i_chunks is 2"},
    {1, "nchannels=\"1\"", "nchannels=\"65\"", "not in 1 to 64"},
    {1, "nchunksperloop=\"2\"", "nchunksperloop=\"3\"", "i_chunks is 2"},
    {1, "outofplace=\"1\"", "outofplace=\"0\"", "usable neither in place nor out of place"},
    {1, "minBytes=\"0\" maxBytes=\"0\"", "minBytes=\"9\" maxBytes=\"8\"",
     "minBytes 9 is more than maxBytes 8"},
    {2, "<gpu", "text<gpu", "line 2: text between elements"},
    {2, "<gpu", "<gpus/><gpu", "line 2: <algo> holds no <gpus>"},
    {2, "id=\"0\"", "id=\"1\"", "gpu 1 is there twice, gpu 0 is not"},
    {2, "i_chunks=\"2\"", "i_chunks=\"1\"", "line 2: gpu 0: i_chunks is 1"},
    {2, "o_chunks=\"2\"", "o_chunks=\"0\"",
     "line 5: gpu 0 tb 0: rrc of chunks 0 to 0 of the output"},
    {2, "s_chunks=\"1\"", "s_chunks=\"0\"", "of the scratch, which has 0"},
    {2, "s_chunks=\"1\"", "s_chunks=\"2000000000\"", "not in 0 to"},
    {3, "id=\"0\"", "id=\"1\"", "tb 1 where tb 0 is due"},
    {3, "send=\"1\"", "send=\"0\"", "names its own rank as peer"},
    {3, "send=\"1\"", "send=\"2\"", "not in -1 to 1"},
    {3, "send=\"1\"", "send=\"-1\"", "line 4: gpu 0 tb 0: s in a block that names no peer to send"},
    {3, "recv=\"1\"", "recv=\"-1\"",
     "line 5: gpu 0 tb 0: rrc in a block that names no peer to receive"},
    {3, "chan=\"0\"", "chan=\"1\"", "chan of <tb> is 1, not in 0 to 0"},
    {9, "send=\"-1\"", "send=\"1\"", "tb 0 and tb 1 both send to gpu 1 on channel 0"},
    {4, "s=\"0\"", "s=\"1\"", "line 4: step 1 comes where step 0 is due"},
    {4, "type=\"s\"", "type=\"send\"", "type of <step> is \"send\", which is none"},
    {11, "type=\"cpy\"", "type=\"re\"",
     "line 11: gpu 0 tb 1: re reads chunk 0 of the scratch, which "
     "holds nothing"},
    {4, "srcbuf=\"i\"", "srcbuf=\"x\"", "srcbuf of <step> is \"x\", which is none"},
    {4, "srcbuf=\"i\"", "srcbuf=\"o\"", "s reads chunk 1 of the output, which holds nothing"},
    {4, "srcoff=\"1\"", "srcoff=\"2\"", "line 4: gpu 0 tb 0: s of chunks 2 to 2 of the input"},
    {4, "srcoff=\"1\"", "srcoff=\"-1\"", "s of chunks -1 to -1 of the input"},
    {4, "cnt=\"1\"", "cnt=\"2\"", "s of chunks 1 to 2 of the input, which has 2"},
    {4, "cnt=\"1\"", "cnt=\"0\"", "cnt 0 of a s"},
    {5, "dstbuf=\"o\"", "dstbuf=\"i\"", "writes chunk 0 of the input, which must stay as it was"},
    {6, "type=\"s\"", "type=\"cpy\"", "line 18: gpu 1 tb 0 receives what gpu 0 never sends"},
    {7, "type=\"r\"", "type=\"nop\"", "line 7: gpu 0 tb 0: cnt 1 of a nop"},
    {4, "depid=\"-1\" deps=\"-1\"", "depid=\"1\" deps=\"-1\"",
     "waits for tb 1, which is no other one"},
    {4, "depid=\"-1\" deps=\"-1\"", "depid=\"0\" deps=\"0\"",
     "waits for tb 0, which is no other one"},
    {4, "depid=\"-1\" deps=\"-1\"", "depid=\"2\" deps=\"0\"",
     "waits for tb 2, which is no other one"},
    {4, "depid=\"-1\" deps=\"-1\"", "depid=\"1\" deps=\"7\"",
     "waits for step 7 of tb 1, which has 2"},
    {4, "depid=\"-1\" deps=\"-1\"", "depid=\"1\" deps=\"1\"",
     "waits for step 1 of tb 1, which never says that it is done (line 11: hasdep is 0)"},
    {11, "hasdep=\"0\"", "hasdep=\"0\"><x/></step><step s=\"2\"", "line 11: <step> holds no <x>"},
    {11, "type=\"cpy\"", "type=\"nop\"", "cnt 1 of a nop"},
    {19, "</algo>", "", "the file ends inside of <algo>"},
    {19, "</gpu>", "</tb>", "line 19: not XML"},
    {19, "</algo>", "</algo><algo/>", "line 19: not XML"},
    {14, "recv=\"0\"", "recv=\"-1\"", "line 16: gpu 1 tb 0: rrc in a block"},
    {18, "type=\"r\"", "type=\"rrc\"", "line 18: gpu 1 tb 0: rrc reads chunk 0 of the output"},
};

/* The sound text with that line changed; NULL: with none. */
static void write_text(const struct flaw *flaw, char *text, size_t text_bytes)
{
    size_t at = 0;
    for (size_t k = 0; k < TT_LEN(sound); k++) {
        const char *found = flaw && flaw->line == (int)k + 1 ? strstr(sound[k], flaw->from) : NULL;
        int length = 0;
        if (found) {
            length = snprintf(text + at, text_bytes - at, "%.*s%s%s\n", (int)(found - sound[k]),
                              sound[k], flaw->to, found + strlen(flaw->from));
        } else {
            if (flaw) assert_int_not_equal(flaw->line, (int)k + 1);
            length = snprintf(text + at, text_bytes - at, "%s\n", sound[k]);
        }
        at += (size_t)length;
        assert_true(at < text_bytes);
    }
}

static void flaws_are_refused(void **state)
{
    (void)state;
    static char text[16384];
    struct tt_import *import = NULL;
    char fault[256];
    write_text(NULL, text, sizeof(text));
    assert_int_equal(tt_import_read(text, strlen(text), &import, fault, sizeof(fault)), 0);
    prove("pair", import, 11, false);
    tt_import_destroy(import);
    for (size_t k = 0; k < TT_LEN(flaws); k++) {
        write_text(&flaws[k], text, sizeof(text));
        import_expect_fault(text, strlen(text), flaws[k].fault);
    }
    write_text(NULL, text, sizeof(text));
    for (size_t bytes = 0; bytes < strlen(text) - 2; bytes++)
        import_expect_fault(text, bytes, bytes > 1 ? "line " : "not XML");
}

/* What generators of such files write: their operator, "no limit" as the largest number, no word on
 * where they may be used. */
static void other_spellings_are_read(void **state)
{
    (void)state;
    static char text[16384];
    static const struct flaw changes[] = {
        {1, "maxBytes=\"0\"", "maxBytes=\"9223372036854775807\"", NULL},
        {1, "maxBytes=\"0\"", "redop=\"sum\"", NULL},
        {1, "maxBytes=\"0\"", "redop=\"nop\" maxBytes=\"-1\"", NULL},
        {1, "inplace=\"0\" outofplace=\"1\"", "", NULL},
        {2, "<gpu", "<?generated?><!-- of rank 0 --><gpu", NULL},
    };
    for (size_t k = 0; k < TT_LEN(changes); k++) {
        struct tt_import *import = NULL;
        char fault[256];
        write_text(&changes[k], text, sizeof(text));
        if (tt_import_read(text, strlen(text), &import, fault, sizeof(fault)))
            fail_msg("%s: %s", changes[k].to, fault);
        assert_true(import->out_of_place && !import->in_place);
        prove("pair", import, 11, false);
        write_and_read("pair", import);
        tt_import_destroy(import);
    }
}

static const char exchange_head[] =
    "<algo name=\"exchange\" proto=\"LL\" nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"2\" "
    "coll=\"alltoall\" inplace=\"0\">";
static const char exchange_rank[] = /* own rank, copies, the other, own, more, the other, own */
    "<gpu id=\"%d\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"0\">%s"
    "<tb id=\"0\" send=\"%d\" recv=\"-1\" chan=\"0\">"
    "<step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"%d\" dstbuf=\"o\" dstoff=\"%d\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/></tb>%s"
    "<tb id=\"1\" send=\"-1\" recv=\"%d\" chan=\"0\">"
    "<step s=\"0\" type=\"r\" srcbuf=\"i\" srcoff=\"%d\" dstbuf=\"o\" dstoff=\"%d\" cnt=\"1\" "
    "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/></tb></gpu>";

/* An AlltoAll of two ranks that says its own blocks as copies, of rank 0 before its blocks, of rank
 * 1 before or between them. */
static void write_exchange(char *text, size_t text_bytes, const char *copy0, const char *copy1,
                           const char *between)
{
    size_t at = (size_t)snprintf(text, text_bytes, "%s", exchange_head);
    for (int rank = 0; rank < 2; rank++) {
        int peer = 1 - rank;
        at +=
            (size_t)snprintf(text + at, text_bytes - at, exchange_rank, rank, rank ? copy1 : copy0,
                             peer, peer, rank, rank ? between : "", peer, rank, peer);
    }
    (void)snprintf(text + at, text_bytes - at, "</algo>");
}

/* As SCCL writes them. */
static void copies_are_steps(void **state)
{
    (void)state;
    static const char copy0[] = "<copy i_off=\"0\" o_off=\"0\"/>";
    static const char copy1[] = "<copy o_off=\"1\" i_off=\"1\"></copy>";
    static const struct {
        const char *copy, *fault;
    } wrong[] = {
        {"<copy i_off=\"2\" o_off=\"0\"/>", "cpy of chunks 2 to 2 of the input"},
        {"<copy i_off=\"0\"/>", "<copy> lacks the attribute o_off"},
        {"<copy i_off=\"0\" o_off=\"0\" cnt=\"1\"/>", "<copy> has no attribute cnt"},
        {"<copy i_off=\"0\" o_off=\"0\"><step s=\"0\"/></copy>", "<copy> holds no <step>"},
        {"<copy i_off=\"0\" o_off=\"0\"><copy/></copy>", "<copy> holds no <copy>"},
    };
    static char text[8192];
    char fault[256];
    for (int between = 0; between < 2; between++) {
        struct tt_import *import = NULL;
        write_exchange(text, sizeof(text), copy0, between ? "" : copy1, between ? copy1 : "");
        if (tt_import_read(text, strlen(text), &import, fault, sizeof(fault)))
            fail_msg("%s", fault);
        for (size_t count = 1; count < 12; count += 5)
            prove("exchange", import, count, false);
        write_and_read("exchange", import);
        tt_import_destroy(import);
    }
    for (size_t k = 0; k < TT_LEN(wrong); k++) {
        write_exchange(text, sizeof(text), wrong[k].copy, copy1, "");
        import_expect_fault(text, strlen(text), wrong[k].fault);
    }
    (void)snprintf(text, sizeof(text), "%s%s</algo>", exchange_head, copy0);
    import_expect_fault(text, strlen(text), "<algo> holds no <copy>");
    (void)snprintf(text, sizeof(text),
                   "%s<gpu id=\"0\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"0\">"
                   "<copy i_off=\"0\" o_off=\"0\">",
                   exchange_head);
    import_expect_fault(text, strlen(text), "the file ends inside of <copy>");
}

/* Two changes at once: what waits for each other, lengths that differ, what no rank receives. */
static void pairs_of_flaws_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct flaw first;
        int line;
        const char *from, *to;
    } rows[] = {
        {{4, "depid=\"-1\" deps=\"-1\"", "depid=\"1\" deps=\"1\"",
          "line 4: gpu 0 tb 0 waits for ever"},
         11,
         "hasdep=\"0\"",
         "hasdep=\"1\""},
        {{6, "cnt=\"1\"", "cnt=\"2\"", "line 18: gpu 1 tb 0 receives 1 chunks where gpu 0 sends 2"},
         6,
         "hasdep=\"0\"",
         "hasdep=\"1\""},
        {{9, "recv=\"-1\"", "recv=\"1\"", "both receive from gpu 1"}, 9, "send", "send"},
        {{14, "recv=\"0\" chan=\"0\"", "recv=\"-1\" chan=\"0\"", "in a block"}, 9, "send", "send"},
        {{18, "type=\"r\"", "type=\"nop\"", "line 18: gpu 1 tb 0 ends with a nop"},
         18,
         "cnt=\"1\"",
         "cnt=\"0\""},
        {{1, "nchannels=\"1\"", "nchannels=\"2\"",
          "no block of gpu 1 receives from it on channel 0"},
         14,
         "chan=\"0\"",
         "chan=\"1\""},
    };
    static char text[16384], line[1024];
    for (size_t k = 0; k < TT_LEN(rows); k++) {
        write_text(&rows[k].first, text, sizeof(text));
        char *begin = text;
        for (int n = 1; n < rows[k].line; n++)
            begin = strchr(begin, '\n') + 1;
        char *at = strstr(begin, rows[k].from);
        assert_non_null(at);
        (void)snprintf(line, sizeof(line), "%s", rows[k].to);
        assert_int_equal(strlen(rows[k].from), strlen(line));
        memcpy(at, line, strlen(line));
        print_message("pair %zu\n", k);
        import_expect_fault(text, strlen(text), rows[k].first.fault);
    }
}

/* What is well-formed and computes something else is the verifier's: it names the line. */
static void wrong_results_are_refused(void **state)
{
    (void)state;
    static const struct flaw wrong[] = {
        {6, "srcbuf=\"o\"", "srcbuf=\"i\"", "wrote OUT chunk 0 of rank 1"},
        {7, "dstoff=\"1\"", "dstoff=\"0\"", "rank 0 insn"},
        {10, "depid=\"0\" deps=\"1\"", "depid=\"-1\" deps=\"-1\"", "races"},
        {18, "dstoff=\"0\"", "dstoff=\"1\"", "rank 1: OUT chunk 0 of pass 0 was never written"},
    };
    static char text[16384];
    for (size_t k = 0; k < TT_LEN(wrong); k++) {
        struct tt_import *import = NULL;
        struct tt_verify_options options = {
            .count = 8, .chunk_limit = 4, .grain = 4, .slice = 4, .nslots = 8};
        char fault[256];
        write_text(&wrong[k], text, sizeof(text));
        ncclResult_t rc = tt_import_read(text, strlen(text), &import, fault, sizeof(fault));
        if (!rc) {
            const struct tt_program *programs[] = {import->program, import->program};
            assert_int_equal(tt_program_verify(programs, 2, &options, fault, sizeof(fault)),
                             ncclInternalError);
            if (strstr(fault, "insn")) {
                assert_in_range(tt_import_line(import, fault), 4, 18);
            } else { /* where that rank begins */
                assert_int_equal(tt_import_line(import, fault), 13);
            }
        }
        print_message("wrong %zu: %s\n", k, fault);
        assert_true(fault[0] && (strstr(fault, wrong[k].fault) || strstr(fault, "holds nothing")));
        tt_import_destroy(import);
    }
}

static void limits_of_others_are_reported(void **state)
{
    (void)state;
    static char text[65536];
    size_t at = (size_t)snprintf(text, sizeof(text),
                                 "<algo proto=\"LL\" nchannels=\"1\" nchunksperloop=\"80\" "
                                 "ngpus=\"1\" coll=\"allreduce\" inplace=\"0\">\n"
                                 "<gpu id=\"0\" i_chunks=\"80\" o_chunks=\"80\" s_chunks=\"0\">\n"
                                 "<tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">\n");
    for (int s = 0; s < 70; s++) {
        at += (size_t)snprintf(text + at, sizeof(text) - at,
                               "<step s=\"%d\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" "
                               "dstoff=\"0\" cnt=\"%d\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n",
                               s, s ? 1 : 80);
    }
    (void)snprintf(text + at, sizeof(text) - at, "</tb></gpu></algo>\n");
    struct tt_import *import = NULL;
    char fault[256];
    assert_int_equal(tt_import_read(text, strlen(text), &import, fault, sizeof(fault)), 0);
    assert_non_null(strstr(import->notes, "line 3: gpu 0 tb 0 has 70 steps"));
    assert_non_null(strstr(import->notes, "line 3: gpu 0 tb 0 moves 80 chunks in a step"));
    assert_true(import->out_of_place && !import->in_place && import->max_bytes == 0);
    tt_import_destroy(import);
}

static void short_memory_is_reported(void **state)
{
    (void)state;
    static char text[16384];
    write_text(NULL, text, sizeof(text));
    import_expect_short_memory(text);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_files_are_proved),
        cmocka_unit_test(plans_are_proved),
        cmocka_unit_test(files_of_others_are_proved),
        cmocka_unit_test(flaws_are_refused),
        cmocka_unit_test(other_spellings_are_read),
        cmocka_unit_test(copies_are_steps),
        cmocka_unit_test(pairs_of_flaws_are_refused),
        cmocka_unit_test(wrong_results_are_refused),
        cmocka_unit_test(limits_of_others_are_reported),
        cmocka_unit_test(short_memory_is_reported),
    };
    if (argc < 3) return 2;
    own_folder = argv[1];
    plan_folder = argv[2];
    other_folder = argc > 3 ? argv[3] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
