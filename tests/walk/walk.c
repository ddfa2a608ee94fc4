/* Record which functions of the libraries a warm AllReduce and its synchronise enter, in libraries
 * that were compiled with -finstrument-functions. usage: walk BYTES [late]
 * Two processes. The one that is recorded calls after the other one's data has come, or, with
 * "late", before the other one calls. So the walk of the call does not depend on the machine's
 * load. Of many recordings the shortest is printed, a line for each function at its first entry:
 * call or sync, depth, library, address in it. */
#define _GNU_SOURCE
#include "nccl.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))
enum { WARM = 200, RECORDED = 500, MOST = 4096 };

struct entry {
    void *function;
    int depth;
};

struct recording {
    struct entry first[MOST];
    int count, of_call;
};

struct shared {
    ncclUniqueId id;
    _Atomic int called; /* calls of the rank that is first that have returned */
};

static struct recording now, shortest;
static _Thread_local int depth, recording;

PLAIN void __cyg_profile_func_enter(void *function, void *site);
PLAIN void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    if (!recording) return;
    depth++;
    for (int i = 0; i < now.count; i++)
        if (now.first[i].function == function) return;
    if (now.count < MOST) now.first[now.count++] = (struct entry){function, depth};
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function, (void)site;
    if (recording) depth--;
}

PLAIN static void check(int rc, const char *what)
{
    if (rc == 0) return;
    fprintf(stderr, "walk: %s: %d\n", what, rc);
    exit(1);
}

PLAIN static void print(const struct recording *walk)
{
    for (int i = 0; i < walk->count; i++) {
        const struct entry *entry = &walk->first[i];
        Dl_info info;
        if (!dladdr(entry->function, &info)) continue;
        printf("%s %d %s %zx\n", i < walk->of_call ? "call" : "sync", entry->depth, info.dli_fname,
               (size_t)((char *)entry->function - (char *)info.dli_fbase));
    }
}

PLAIN static void run(struct shared *shared, int rank, size_t bytes, bool late)
{
    ncclComm_t comm;
    cudaStream_t stream;
    float *in, *out;
    const int second = late ? 1 : 0;
    check(cudaSetDevice(rank), "cudaSetDevice");
    check(ncclCommInitRank(&comm, 2, shared->id, rank), "ncclCommInitRank");
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    check(cudaMalloc((void **)&in, bytes), "cudaMalloc");
    check(cudaMalloc((void **)&out, bytes), "cudaMalloc");
    for (int k = 0; k < WARM + RECORDED; k++) {
        while (rank == second && atomic_load(&shared->called) <= k)
            usleep(100);
        now.count = depth = 0;
        recording = rank == 0 && k >= WARM;
        ncclResult_t rc =
            ncclAllReduce(in, out, bytes / sizeof(float), ncclFloat, ncclSum, comm, stream);
        now.of_call = now.count;
        if (rank != second) atomic_store(&shared->called, k + 1);
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        recording = 0;
        check(rc, "ncclAllReduce");
        if (now.count && (!shortest.count || now.count < shortest.count)) shortest = now;
    }
    if (rank == 0) print(&shortest);
    check(ncclCommDestroy(comm), "ncclCommDestroy");
}

PLAIN int main(int argc, char **argv)
{
    size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 8;
    bool late = argc > 2 && strcmp(argv[2], "late") == 0;
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared == MAP_FAILED, "mmap");
    int got_id[2];
    check(pipe(got_id), "pipe");
    pid_t child = fork(); /* before the first call: the library's state is a process's */
    check(child < 0, "fork");
    if (child == 0) {
        char byte;
        check(read(got_id[0], &byte, 1) != 1, "read");
        run(shared, 1, bytes, late);
        _exit(0);
    }
    check(ncclGetUniqueId(&shared->id), "ncclGetUniqueId");
    check(write(got_id[1], "", 1) != 1, "write");
    run(shared, 0, bytes, late);
    int status = 1;
    check(waitpid(child, &status, 0) != child || status, "rank 1");
    return 0;
}
