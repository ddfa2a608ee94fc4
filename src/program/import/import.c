/* An imported program: its life, and where in its text a fault lies. */
#include "mscclpp.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* XML begins with '<', or a mark of its encoding; JSON with an object. */
static bool is_json(const char *text, size_t text_bytes)
{
    size_t at = 0;
    while (at < text_bytes && text[at] && strchr(" \t\r\n", text[at]))
        at++;
    return at < text_bytes && (text[at] == '{' || text[at] == '[');
}

ncclResult_t tt_import_read(const char *text, size_t text_bytes, struct tt_import **import_out,
                            char *fault, size_t fault_bytes)
{
    struct msccl_file file = {.fault = fault, .fault_bytes = fault_bytes};
    struct tt_import *import = tt_calloc(1, sizeof(*import));
    if (fault_bytes) fault[0] = '\0';
    if (!import) {
        (void)tt_msccl_no_memory(&file);
        return file.rc;
    }
    bool read = is_json(text, text_bytes) ? tt_mscclpp_load(&file, text, text_bytes)
                                          : tt_msccl_read(&file, text, text_bytes);
    bool imported =
        read && tt_msccl_check(&file) && tt_msccl_trace(&file) && tt_msccl_build(&file, import);
    if (imported) {
        (void)snprintf(import->name, sizeof(import->name), "%s", file.name);
        import->min_bytes = file.min_bytes;
        import->max_bytes = file.max_bytes;
        import->in_place = file.in_place;
        import->out_of_place = file.out_of_place;
        import->nsteps = (int)file.steps.count;
        import->notes = file.notes;
        file.notes = NULL;
        *import_out = import;
        import = NULL;
    }
    tt_import_destroy(import);
    tt_msccl_file_fini(&file);
    return file.rc;
}

void tt_import_destroy(struct tt_import *import)
{
    if (!import) return;
    free(import->program);
    free(import->lines);
    free(import->places);
    free(import->rank_lines);
    free(import->notes);
    free(import);
}

/* The number behind a word of the text; -1: it is not there. */
static long number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    char *end = NULL;
    long number = at ? strtol(at + strlen(word), &end, 10) : -1;
    return at && end != at + strlen(word) ? number : -1;
}

int tt_import_line(const struct tt_import *import, const char *fault)
{
    long insn = number_after(fault, "insn "), rank = number_after(fault, "rank ");
    if (insn >= 0) return insn < (long)import->program->ninsns ? import->lines[insn] : 0;
    return rank >= 0 && rank < import->program->nranks ? import->rank_lines[rank] : 0;
}

bool tt_import_find(const struct tt_import *import, const char *fault,
                    struct tt_import_place *place_out)
{
    const long insn = number_after(fault, "insn ");
    if (insn < 0 || insn >= (long)import->program->ninsns) return false;
    *place_out = import->places[insn];
    return place_out->step >= 0;
}
