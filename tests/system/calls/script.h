/* Random scripts for the differential test: what every rank does in one turn follows from a seed,
 * so ranks agree without talking, and a failing turn can be run again alone. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum script_func {
    SCRIPT_ALL_REDUCE,
    SCRIPT_REDUCE,
    SCRIPT_REDUCE_SCATTER,
    SCRIPT_BROADCAST,
    SCRIPT_BCAST,
    SCRIPT_ALL_GATHER,
    SCRIPT_ALL_TO_ALL,
    SCRIPT_GATHER,
    SCRIPT_SCATTER,
    SCRIPT_MESSAGES,
    SCRIPT_FUNC_COUNT_,
};

enum { SCRIPT_CALLS = 6, SCRIPT_MESSAGES_MOST = 12, SCRIPT_RANKS = 8, SCRIPT_COMMS = 4 };
enum { SCRIPT_PRE_MUL_HOST = 5, SCRIPT_PRE_MUL_DEVICE, SCRIPT_OP_COUNT_ };

struct script_comm { /* a communicator as all ranks know it */
    int n;
    int world[SCRIPT_RANKS];  /* by rank in it */
    int member[SCRIPT_RANKS]; /* by rank of the world: rank in it, -1 none */
};

struct script_message {
    int src, dst; /* ranks of the communicator */
    size_t count;
    ncclDataType_t type;
};

struct script_call {
    enum script_func func;
    int comm;
    ncclDataType_t type;
    int op; /* ncclSum .. ncclAvg, SCRIPT_PRE_MUL_* */
    int root;
    size_t count;
    uint64_t seed;
    int nmessages;
    struct script_message messages[SCRIPT_MESSAGES_MOST];
};

struct script {
    uint64_t seed;
    int ncalls;
    struct script_call calls[SCRIPT_CALLS];
    bool one_group; /* all calls in one group; else one each */
    bool nested;    /* with an inner group around each call */
    bool captured;
    int launches; /* of the captured graph, or repetitions */
};

/* Numbers from seeds: the same everywhere. */
uint64_t script_mix(uint64_t a, uint64_t b);

/* comms[0] is the world; 1 and 2 its even and odd ranks, backwards; 3 all ranks, rotated. */
void script_comms(int nranks, struct script_comm comms[SCRIPT_COMMS]);
void script_make(uint64_t seed, const struct script_comm comms[SCRIPT_COMMS],
                 struct script *script);

bool script_reduces(enum script_func func);
/* Blocks of `count` elements that a rank sends and gets. */
size_t script_in_blocks(const struct script_call *call, int rank, int n);
size_t script_out_blocks(const struct script_call *call, int rank, int n);
/* May this rank's call be in place; where its input and output then begin in the one buffer. */
bool script_in_place(const struct script_call *call, int rank, size_t *in_block, size_t *out_block);

/* Element of a rank's input in launch `launch`, and of its output. */
double script_input(const struct script_call *call, int launch, int rank, size_t index);
double script_message_input(const struct script_call *call, int message, int launch, size_t index);
double script_expected(const struct script_call *call, int launch, int rank, int n, size_t index);
/* How far an average may lie from it. */
double script_slack(const struct script_call *call);
/* Of PreMulSum; ranks differ. */
double script_scalar(const struct script_call *call, int rank);

/* One line that says all about a call. */
void script_describe(const struct script_call *call, char *text, size_t text_bytes);
