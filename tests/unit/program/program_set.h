/* Programs of all ranks of a small communicator, for tests. */
#pragma once

#include "program/program.h"
#include "program/verify/verify.h"

struct program_set {
    int nranks;
    struct tt_program *blocks[2];       /* owned; the second for SEND alone */
    const struct tt_program **programs; /* owned: what each rank runs */
    struct tt_topo_plan plan;           /* owned */
    int *by_host;                       /* owned: ranks of hosts that have as many each */
    int *host_first;                    /* owned; NULL: as many on each */
    int nhosts;
};

struct program_case {
    enum tt_func func;
    enum tt_algo algo;
    enum tt_proto proto;
    bool rooted;
};

/* Every combination that has a generator; *count_out of them. SEND stands for a pair. */
const struct program_case *program_cases(int *count_out);
/* Whether hosts of as many ranks each make the shape. */
bool program_needs_hosts(enum tt_algo algo);
/* Whether buffers of all ranks are touched, without slots. */
bool program_is_direct(enum tt_algo algo);

/* Programs of `nranks` ranks on hosts of `per_host`, ranks dealt out round robin; channel chooses
 * ring and tree. Fails the test on error. */
struct program_set program_set_make(const struct program_case *what, int root, int nranks,
                                    int per_host, int channel);
/* The same on hosts of `sizes` ranks, dealt out in turn to those that have room. */
struct program_set program_set_make_uneven(const struct program_case *what, int root,
                                           const int *sizes, int nhosts);
void program_set_free(struct program_set *set);
