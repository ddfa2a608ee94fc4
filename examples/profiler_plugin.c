/* A profiler plugin to begin from: version 6 of the interface, which NCCL loads from 2.29 on. It
 * writes a line of CSV for each collective and message: when it was posted, when its work began,
 * and when the last of its kernels and network operations ended. NCCL and Tutti load it.
 *   home="$(tutti env --home)"
 *   make libnccl-profiler-example.so NCCL_HOME="$home" CUDA_HOME="$home"
 *   tutti plugin check ./libnccl-profiler-example.so
 * EXAMPLE_PROFILER_FILE names the file (and the process's number is appended),
 * EXAMPLE_PROFILER_OPERATIONS=n switches off after so many.
 * Why each rule: docs/profiler-plugin-guide.md.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <nccl/profiler_v6.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 4096, KINDS = 4 }; /* operations that are remembered; kinds of handles */
enum { OPERATION = 1, PART };    /* a handle is the operation's number * KINDS + one of these */

struct comm { /* a context */
    uint64_t id;
    int rank;
    pid_t owner;
    uint64_t operations;
};

struct operation {
    uint64_t number;   /* from 1 on and never twice; 0: the place is free */
    struct comm *comm; /* of this process */
    const char *func, *datatype, *algo, *proto; /* constants of the library */
    size_t count;
    uint64_t sequence; /* of this function in this communicator; the same at all ranks */
    int other;         /* peer or root */
    uint64_t posted, begun, ended; /* ns */
    unsigned parts;                /* KernelCh and ProxyOp events that have ended */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* init comes from several threads */
static struct operation operations[ROOM]; /* by number; the oldest makes room for the newest */
static uint64_t last_number, most_operations;
static unsigned comms;
static int *mask; /* one for the process: the library's */
static pid_t owner;
static FILE *file;
static ncclDebugLogger_t logger;

static uint64_t now_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- lines; under the lock ---- */

static void write_line(struct operation *operation)
{
    if (operation->number) {
        fprintf(file, "%016llx,%d,%s,%llu,%zu,%s,%d,%s,%s,%u,%llu,%llu,%llu\n",
                (unsigned long long)operation->comm->id, operation->comm->rank, operation->func,
                (unsigned long long)operation->sequence, operation->count, operation->datatype,
                operation->other, operation->algo, operation->proto, operation->parts,
                (unsigned long long)operation->posted, (unsigned long long)operation->begun,
                (unsigned long long)operation->ended);
    }
    operation->number = 0;
}

static ncclResult_t open_file(void)
{
    const char *prefix = getenv("EXAMPLE_PROFILER_FILE");
    const char *most = getenv("EXAMPLE_PROFILER_OPERATIONS");
    char path[4096];
    snprintf(path, sizeof(path), "%s.%d.csv", prefix ? prefix : "nccl-profiler-example",
             (int)getpid());
    file = fopen(path, "a"); /* a process may unload the library and load it again */
    if (!file) {
        logger(NCCL_LOG_WARN, NCCL_INIT, __FILE__, __LINE__, "PROFILER/Example: %s: %s", path,
               strerror(errno));
        return ncclSystemError;
    }
    setvbuf(file, NULL, _IOLBF, BUFSIZ); /* a child of fork has nothing to write again */
    most_operations = most ? strtoull(most, NULL, 10) : 0;
    if (ftell(file) == 0)
        fprintf(file, "comm,rank,func,sequence,count,datatype,peer_or_root,algo,proto,parts,"
                      "posted_ns,begun_ns,ended_ns\n");
    return ncclSuccess;
}

/* ---- the interface ---- */

static ncclResult_t example_init(void **context, uint64_t id, int *activation, const char *name,
                                 int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    struct comm *comm = calloc(1, sizeof(*comm));
    (void)name, (void)nnodes, (void)nranks;
    if (!comm) return ncclSystemError;
    *comm = (struct comm){.id = id, .rank = rank, .owner = getpid()};
    pthread_mutex_lock(&lock);
    logger = log;
    if (owner != comm->owner) { /* the first init of this process, or of a child of fork */
        owner = comm->owner;
        comms = 0;
        memset(operations, 0, sizeof(operations));
    }
    ncclResult_t rc = comms == 0 ? open_file() : ncclSuccess;
    if (!rc) {
        comms++;
        mask = activation;
        __atomic_store_n(
            mask, ncclProfileColl | ncclProfileP2p | ncclProfileKernelCh | ncclProfileProxyOp,
            __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    if (rc) free(comm); /* the communicator goes on without a profiler */
    *context = rc ? NULL : comm;
    return rc;
}

/* The place of an operation; NULL: it has made room for another one. */
static struct operation *find(const void *handle)
{
    uint64_t number = (uintptr_t)handle / KINDS;
    struct operation *operation = &operations[number % ROOM];
    return number && operation->number == number ? operation : NULL;
}

static void *begin_operation(struct comm *comm, const ncclProfilerEventDescr_v6_t *descr)
{
    struct operation *operation = &operations[++last_number % ROOM];
    write_line(operation);
    *operation = (struct operation){.number = last_number, .comm = comm, .posted = now_nsec()};
    operation->algo = operation->proto = "";
    if (descr->type == ncclProfileColl) {
        operation->func = descr->coll.func;
        operation->datatype = descr->coll.datatype;
        operation->algo = descr->coll.algo ? descr->coll.algo : "";
        operation->proto = descr->coll.proto ? descr->coll.proto : "";
        operation->count = descr->coll.count;
        operation->sequence = descr->coll.seqNumber;
        operation->other = descr->coll.root;
    } else {
        operation->func = descr->p2p.func;
        operation->datatype = descr->p2p.datatype;
        operation->count = descr->p2p.count;
        operation->other = descr->p2p.peer;
    }
    comm->operations++;
    if (last_number == most_operations) __atomic_store_n(mask, 0, __ATOMIC_RELAXED);
    return (void *)(uintptr_t)(last_number * KINDS + OPERATION);
}

/* A part gets its parent's number, so it needs no memory. */
static void *begin_part(const void *parent)
{
    struct operation *operation = find(parent);
    if (!operation) return NULL;
    if (!operation->begun) operation->begun = now_nsec();
    return (void *)(uintptr_t)(operation->number * KINDS + PART);
}

static ncclResult_t example_start(void *context, void **handle, ncclProfilerEventDescr_v6_t *descr)
{
    *handle = NULL; /* what is not tracked: no state, no stop, no child names it */
    pthread_mutex_lock(&lock);
    if (descr->type == ncclProfileColl || descr->type == ncclProfileP2p)
        *handle = begin_operation(context, descr);
    else if (descr->type == ncclProfileKernelCh ||
             /* context and parent of another process's operation are that process's */
             (descr->type == ncclProfileProxyOp && descr->proxyOp.pid == owner))
        *handle = begin_part(descr->parentObj);
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

/* The stop of an operation means that it was posted; it ends with the last of its parts. */
static ncclResult_t example_stop(void *handle)
{
    pthread_mutex_lock(&lock);
    struct operation *operation = find(handle);
    if (operation && ((uintptr_t)handle % KINDS == PART || !operation->parts)) {
        operation->ended = now_nsec();
        operation->parts += (uintptr_t)handle % KINDS == PART;
    }
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

static ncclResult_t example_state(void *handle, ncclProfilerEventState_v6_t state,
                                  ncclProfilerEventStateArgs_v6_t *args)
{
    (void)handle, (void)state, (void)args;
    return ncclSuccess;
}

static ncclResult_t example_finalize(void *context)
{
    struct comm *comm = context;
    if (comm->owner != getpid()) return ncclSuccess; /* a child of fork: this is its parent's */
    pthread_mutex_lock(&lock);
    for (uint64_t k = 1; k <= ROOM; k++) { /* oldest first */
        struct operation *operation = &operations[(last_number + k) % ROOM];
        if (operation->comm == comm) write_line(operation);
    }
    logger(NCCL_LOG_INFO, NCCL_INIT, __FILE__, __LINE__,
           "PROFILER/Example: rank %d: %llu operations", comm->rank,
           (unsigned long long)comm->operations);
    if (--comms == 0) fclose(file);
    pthread_mutex_unlock(&lock);
    free(comm);
    return ncclSuccess;
}

__attribute__((visibility("default"))) const ncclProfiler_v6_t ncclProfiler_v6 = {
    "Example", example_init, example_start, example_stop, example_state, example_finalize};
