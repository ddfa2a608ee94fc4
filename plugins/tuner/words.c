/* Words of the configuration and complaints about it. */
#include "tuner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int number_of(const char *const *words, int count, const char *word)
{
    for (int i = 0; i < count; i++) {
        if (!strcmp(words[i], word)) return i;
    }
    return -1;
}

int tuner_func_number(const char *word)
{
    static const char *const words[] = {"broadcast", "reduce", "allgather", "reducescatter",
                                        "allreduce"};
    return number_of(words, TUNER_FUNCS, word);
}

int tuner_algo_number(const char *word)
{
    static const char *const words[] = {
        "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
    return number_of(words, TUNER_ALGOS, word);
}

int tuner_proto_number(const char *word)
{
    static const char *const words[] = {"ll", "ll128", "simple"};
    return number_of(words, TUNER_PROTOS, word);
}

void tuner_complain(const struct tuner_notes *notes, int line, const char *fmt, ...)
{
    char text[384];
    va_list args;
    if (!notes->log) return;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    notes->log(NCCL_LOG_WARN, NCCL_TUNING, __FILE__, __LINE__, "TUNER/Tutti: %s:%d: %s",
               notes->path, line, text);
}
