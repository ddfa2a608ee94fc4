/* Shared by all files of the room: result codes, state of threads, devices, forks. */
#pragma once

#include "process.h"

#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { /* CUDA's numbers, those that the room returns */
       TT_HOST_OK = 0,
       TT_HOST_INVALID_VALUE = 1,
       TT_HOST_OUT_OF_MEMORY = 2,
       TT_HOST_NOT_INITIALIZED = 3,
       TT_HOST_NO_DEVICE = 100,
       TT_HOST_INVALID_DEVICE = 101,
       TT_HOST_DEVICE_UNINITIALIZED = 201,
       TT_HOST_MAP_FAILED = 205,
       TT_HOST_OPERATING_SYSTEM = 304,
       TT_HOST_BAD_HANDLE = 400,
       TT_HOST_ILLEGAL_STATE = 401,
       TT_HOST_NOT_READY = 600,
       TT_HOST_NOT_PERMITTED = 800,
       TT_HOST_NOT_SUPPORTED = 801,
       TT_HOST_CAPTURE_UNSUPPORTED = 900,
       TT_HOST_CAPTURE_INVALIDATED = 901,
       TT_HOST_CAPTURE_MERGE = 902,
       TT_HOST_CAPTURE_UNMATCHED = 903,
       TT_HOST_CAPTURE_UNJOINED = 904,
       TT_HOST_CAPTURE_ISOLATION = 905,
       TT_HOST_CAPTURE_IMPLICIT = 906,
       TT_HOST_CAPTURED_EVENT = 907,
       TT_HOST_CAPTURE_WRONG_THREAD = 908,
       TT_HOST_UPDATE_FAILURE = 910,
};

/* How much work of streams a query (cudaStreamQuery, cudaEventQuery) may run: its caller wants to
 * go on. */
struct tt_host_share {
    uint64_t until_nsec; /* 0: no limit */
    size_t bytes;        /* of copies and fills */
};

struct tt_check_faults {   /* check/fault.c: accesses of the thread to pages that were closed */
    const void *ptr;       /* the last one, ... */
    int repeats;           /* ... and how often it came again in a row */
    size_t run_pages;      /* pages opened one behind the other, ... */
    const char *run_start; /* ... the latest ones from here */
    const char *run_end;   /* ... up to here */
    size_t steps;          /* accesses that were looked at one by one, see fault.c */
    size_t nopened;        /* pages that are open for one of them: */
    const void *opened[4];
};

/* What the race checker (check/) keeps for the thread; without TUTTI_CHECK only `touches` is used.
 */
struct tt_check_thread {
    struct tt_check_touches *touches; /* touches.c: what the item reports that is asked; borrowed */
    struct tt_check_op *op;           /* the host function or kernel that runs; borrowed */
    const void *launches;             /* names the executable graph that runs; NULL: none */
    const void *site;                 /* address in the program of the call that is checked */
    bool is_locked;                   /* this thread holds the checker's lock */
    struct tt_check_faults faults;
};

enum { TT_HOST_PUSHED_MOST = 16 };

struct tt_host_thread {                  /* per thread; initial-exec so that faces pay one load */
    int device;                          /* the current one */
    int16_t pushed[TT_HOST_PUSHED_MOST]; /* devices that were current before, the latest last */
    int npushed;
    int last_error;   /* CUDA's number, see TT_HOST_OK and on */
    int capture_mode; /* exchanged by cudaThreadExchangeStreamCaptureMode; 0 global */
    int in_host_fn;   /* nesting of host functions; 0: none runs */
    int in_kernel;    /* nesting of kernels; 0: none runs */
    bool is_worker;   /* worker.c: a thread of the library */
    int8_t polls_pay; /* where ranks outnumber the cores: see polls_worth() in stream/wait.c */
    struct CUstream_st *own_streams; /* stream.c: default streams of the thread, one per device */
    struct tt_host_share share;      /* stream/: of the query under way */
    struct tt_check_thread check;
    int nconfigurations; /* calls/face_state.c: pushed and not popped, as is: */
    struct tt_configuration configurations[TT_CONFIGURATIONS_MOST];
};
extern __thread struct tt_host_thread tt_host_thread __attribute__((tls_model("initial-exec")));

/* Devices, discovered once (pthread_once inside). */
const struct tt_device_info *tt_host_device_info(int device); /* NULL when out of range */
int tt_host_device_count_slow(void);
static inline int tt_host_device_count(void)
{
    int known = atomic_load_explicit(&tt_host.devices.known, memory_order_acquire);
    return known ? known - 1 : tt_host_device_count_slow();
}

/* True in a process that was forked after devices were discovered. It has neither the threads nor
 * the memory, so every call returns 3. */
static inline bool tt_host_forked(void)
{
    return atomic_load_explicit(&tt_host.is_child, memory_order_relaxed);
}

/* Must the call that runs be refused, as the thread is in a host function? Else such calls work. */
bool tt_host_refuses_here(void); /* notice.c; says so once */
static inline bool tt_host_forbidden(void)
{
    return tt_host_thread.in_host_fn && tt_host_refuses_here();
}

/* The error for an invalid handle. */
static inline int tt_host_bad_handle(void)
{
    return tt_host_forked() ? TT_HOST_NOT_INITIALIZED : TT_HOST_BAD_HANDLE;
}
