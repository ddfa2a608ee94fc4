/* NCCL_ALGO and NCCL_PROTO: which algorithms and protocols each function may use. */
#pragma once

#include "nccl.h"
#include "program/program.h"

#include <stdbool.h>

struct tt_tune_lists {
    bool algo[TT_FUNC_COUNT_][TT_ALGO_COUNT_];
    bool proto[TT_FUNC_COUNT_][TT_PROTO_COUNT_];
    bool proto_named[TT_FUNC_COUNT_];   /* NCCL_PROTO names the function */
    const char *algo_text, *proto_text; /* the variables as set; NULL: unset */
};

/* Words of the variables for numbers of NCCL's and our algorithms. */
const char *tt_tune_algo_word(int algo);
const char *tt_tune_proto_word(int proto);

/* True when a row of `algo` or `proto` forbids something. */
bool tt_tune_lists_restrict(const bool *row, int n);

/* Read both variables. Errors: ncclInvalidUsage naming variable and word. */
ncclResult_t tt_tune_lists_read(struct tt_tune_lists *lists);
