/* Ranks for tests of the public interface: as threads of this process or as forked processes. A
 * failed check ends the whole test with a sentence. Call nothing of CUDA or NCCL before
 * harness_processes(). */
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct harness_rank {
    int rank, nranks, device;
    ncclUniqueId id;
    ncclComm_t comm;     /* NULL with HARNESS_NO_COMM */
    cudaStream_t stream; /* a non-blocking stream of the device */
    void *arg;
};

enum { HARNESS_NO_COMM = 1 };

typedef void harness_fn(struct harness_rank *rank);

/* Run fn on n ranks, each on its own device (rank modulo devices); communicators are made and
 * destroyed around it. Returns when all are done. */
void harness_threads(int n, harness_fn *fn, void *arg, unsigned flags);
void harness_processes(int n, harness_fn *fn, void *arg, unsigned flags);

/* Sentence on stderr, then exit(1). */
_Noreturn void harness_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Not possible here: exit(77) with the reason. */
_Noreturn void harness_skip(const char *why);

void harness_nccl(ncclResult_t rc, const char *file, int line, const char *call);
void harness_cuda(cudaError_t err, const char *file, int line, const char *call);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) harness_fail(__FILE__, __LINE__, "%s", #condition);                      \
    } while (0)
#define NCCL(call) harness_nccl((call), __FILE__, __LINE__, #call)
#define CUDA(call) harness_cuda((call), __FILE__, __LINE__, #call)

double harness_now_sec(void);
/* What a non-blocking communicator's call came to: waits while it is in progress. */
ncclResult_t harness_wait(ncclComm_t comm);
void *harness_device_alloc(size_t bytes); /* on the current device */
