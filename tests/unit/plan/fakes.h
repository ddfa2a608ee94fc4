/* Stand-ins for the rooms below plan: they record what was asked and move nothing. */
#pragma once

#include "comm/comm.h"
#include "exec/exec.h"

#include <stdbool.h>

#define FAKE_WORKS 64
#define FAKE_FRAMES 64
#define FAKE_JOINS 16

struct fake_work {
    struct tt_work_spec spec;
    struct tt_frame frames[FAKE_FRAMES];
    struct CUstream_st *stream;
    bool allow_inline;
};

struct fake_world {
    struct fake_work works[FAKE_WORKS]; /* submitted, in order */
    int nworks, created;                /* submitted, made */
    struct {
        struct CUstream_st *after, *before;
    } joins[FAKE_JOINS];
    int njoins;
    uint64_t capture[8]; /* capture id of stream number k (see fake_stream) */
    int device;
    char *short_buffer;      /* one byte of device memory; NULL: none */
    bool expects;            /* what tt_transport_expects() answers */
    bool not_flat;           /* works of several collectives are no flat list */
    ncclResult_t state;      /* what tt_comm_check() answers */
    ncclResult_t init_rc;    /* what tt_comm_init() answers */
    int freed;               /* communicators */
    void (*on_submit)(void); /* what a plugin's callback does meanwhile; NULL: nothing */
};

extern struct fake_world fake;

void fake_reset(void);
struct CUstream_st *fake_stream(int number);
/* A ready communicator of n ranks on one host; flat rings. */
struct tt_comm *fake_comm(int nranks, int rank, bool all_direct);
void fake_comm_free(struct tt_comm *comm);
