/* `tutti perf --program FILE`: the file is read and proved here, before any rank starts, so that
 * what is measured is what was asked for. */
#include "tutti.h"

#include "program/import/import.h"
#include "program/verify/verify.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST_BYTES = 64 << 20, FAULT_BYTES = 256 };

static const char *const operations[TT_FUNC_COUNT_] = {
    [TT_FUNC_BROADCAST] = "broadcast", [TT_FUNC_REDUCE] = "reduce",
    [TT_FUNC_ALLGATHER] = "allgather", [TT_FUNC_REDUCESCATTER] = "reducescatter",
    [TT_FUNC_ALLREDUCE] = "allreduce", [TT_FUNC_ALLTOALL] = "alltoall",
    [TT_FUNC_SCATTER] = "scatter",     [TT_FUNC_GATHER] = "gather",
};

/* Its text, owned; NULL: cannot be read. */
static char *read_text(const char *path, size_t *bytes_out)
{
    char *text = malloc((size_t)FILE_MOST_BYTES + 1);
    FILE *in = fopen(path, "rbe");
    if (in && text) {
        *bytes_out = fread(text, 1, (size_t)FILE_MOST_BYTES + 1, in);
        if (ferror(in) || *bytes_out > FILE_MOST_BYTES) *bytes_out = 0;
    }
    if (in) (void)fclose(in);
    if (in && text && *bytes_out) return text;
    free(text);
    return NULL;
}

/* Proved as the library will; false with the reason. */
static bool is_proved(const struct tt_import *import, char *fault)
{
    struct tt_admitted *admitted = NULL;
    bool copies;
    ncclResult_t rc =
        tt_program_admit_usual(&admitted, import->program, &copies, fault, FAULT_BYTES);
    tt_admitted_destroy(admitted);
    return rc == ncclSuccess;
}

/* "-d all" and the like. */
static bool takes_all(const char *option)
{
    static const char *const names[] = {"-d", "--datatype", "-o", "--op", "-r", "--root"};
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        if (!strcmp(option, names[k])) return true;
    }
    return false;
}

/* An operation that is named must be the file's. */
static const char *other_operation(int argc, char **argv, const char *own)
{
    static const char *const more[] = {"all", "sendrecv", "hypercube"};
    for (int i = 1; i < argc; i++) {
        if (i > 1 && !strcmp(argv[i], "all") && takes_all(argv[i - 1])) continue;
        for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
            if (!strcmp(argv[i], more[k])) return argv[i];
        }
        for (int func = 0; func < TT_FUNC_COUNT_; func++) {
            const char *word = operations[func];
            if (word && !strcmp(argv[i], word) && strcmp(word, own) != 0) return argv[i];
        }
    }
    return NULL;
}

static int refuse(const char *path, const struct tt_import *import, const char *fault)
{
    int line = import ? tt_import_line(import, fault) : 0;
    if (line)
        return tutti_usage_error("perf", "%s: line %d: its proof fails: %s", path, line, fault);
    return tutti_usage_error("perf", "%s: %s", path, fault);
}

static int check(const char *path, const struct tt_import *import, int nranks, int argc,
                 char **argv)
{
    char fault[FAULT_BYTES] = "";
    const char *own = operations[import->program->func];
    const char *other = other_operation(argc, argv, own);
    if (import->program->nranks != nranks) {
        return tutti_usage_error("perf", "%s is for %d ranks, not for %d", path,
                                 (int)import->program->nranks, nranks);
    }
    if (other) return tutti_usage_error("perf", "%s is for %s, not for %s", path, own, other);
    return is_proved(import, fault) ? 0 : refuse(path, import, fault);
}

const char *perf_program_operation(const struct tt_program *program)
{
    return operations[program->func];
}

int perf_program_use(const char *path, int nranks, int argc, char **argv, const char **operation)
{
    char fault[FAULT_BYTES] = "it cannot be read", whole[PATH_MAX];
    struct tt_import *import = NULL;
    size_t bytes = 0;
    int status;
    char *text = read_text(path, &bytes);
    if (text) (void)tt_import_read(text, bytes, &import, fault, sizeof(fault));
    if (import) {
        status = check(path, import, nranks, argc, argv);
        *operation = operations[import->program->func];
    } else {
        status = refuse(path, NULL, fault);
    }
    if (!status && realpath(path, whole)) setenv("TUTTI_PROGRAM_DIR", whole, 1);
    tt_import_destroy(import);
    free(text);
    return status;
}
