/* A rank of a job in which one keeps the others waiting: who is to blame is known, and
 * blame.py reads what the watchdogs say, flight.py what the flight recorder wrote. Ends by being
 * killed, or with status 3 after an error.
 * usage: blame SCENARIO RANKS RANK VICTIM FILE-FOR-THE-ID; BLAME_NAME names the communicator */
#include <cuda_runtime.h>
#include <locale.h>
#include <nccl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COUNT = 1000 };

struct own {
    int nranks, rank, victim;
    const char *path; /* of the file for the id */
    ncclComm_t comm;
    cudaStream_t stream;
    float *buffer;
};

static void must(int failed, const char *what)
{
    if (!failed) return;
    fprintf(stderr, "blame: %s: %s (code %d)\n", what, ncclGetLastError(NULL), failed);
    exit(3);
}

static void await(const struct own *own, ncclComm_t comm)
{
    ncclResult_t state = ncclSuccess;
    must(cudaStreamSynchronize(own->stream), "cudaStreamSynchronize");
    must(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
    must((int)state, "the communicator");
}

static void all_reduce(const struct own *own, ncclComm_t comm)
{
    must(ncclAllReduce(own->buffer, own->buffer, COUNT, ncclFloat32, ncclSum, comm, own->stream),
         "ncclAllReduce");
    await(own, comm);
}

/* The victim does not make the call that the others are in. */
static void late(struct own *own)
{
    if (own->rank != own->victim) all_reduce(own, own->comm);
}

/* The others end the communicator, and wait for the victim in a call. */
static void finalizes(struct own *own)
{
    if (own->rank == own->victim) return;
    must(ncclAllReduce(own->buffer, own->buffer, COUNT, ncclFloat32, ncclSum, own->comm,
                       own->stream),
         "ncclAllReduce");
    must(ncclCommFinalize(own->comm), "ncclCommFinalize");
}

/* It comes when a file appears, and not to the next one. */
static void twice(struct own *own)
{
    char path[400];
    snprintf(path, sizeof(path), "%s.go", own->path);
    while (own->rank == own->victim && access(path, F_OK))
        usleep(1000);
    all_reduce(own, own->comm);
    late(own);
}

static void stopped(struct own *own)
{
    if (own->rank == own->victim) raise(SIGSTOP);
    all_reduce(own, own->comm);
}

/* All end the communicator before a graph that holds a call on it. */
static void graphs(struct own *own)
{
    cudaGraph_t graph;
    must(cudaStreamBeginCapture(own->stream, cudaStreamCaptureModeGlobal), "begin");
    must(ncclAllReduce(own->buffer, own->buffer, COUNT, ncclFloat32, ncclSum, own->comm,
                       own->stream),
         "ncclAllReduce");
    must(cudaStreamEndCapture(own->stream, &graph), "end");
    must(ncclCommDestroy(own->comm), "ncclCommDestroy");
}

/* The others wait for a message of the victim, before any collective. */
static void deaf(struct own *own)
{
    if (own->rank == own->victim) return;
    must(ncclRecv(own->buffer, COUNT, ncclFloat32, own->victim, own->comm, own->stream),
         "ncclRecv");
    await(own, own->comm);
}

/* Each waits for the next one's message, which the next one would send afterwards. */
static void circle(struct own *own)
{
    int next = (own->rank + 1) % own->nranks, last = (own->rank + own->nranks - 1) % own->nranks;
    must(ncclRecv(own->buffer, COUNT, ncclFloat32, next, own->comm, own->stream), "ncclRecv");
    must(cudaStreamSynchronize(own->stream), "cudaStreamSynchronize");
    must(ncclSend(own->buffer, COUNT, ncclFloat32, last, own->comm, own->stream), "ncclSend");
}

/* The first rank of the other half waits in the parent for the victim; those of its half wait for
 * it in theirs. */
static void split(struct own *own)
{
    ncclComm_t half;
    int waits = own->victim % 2 ? 0 : 1;
    must(ncclCommSplit(own->comm, own->rank % 2, own->rank, &half, NULL), "ncclCommSplit");
    all_reduce(own, half);
    if (own->rank == waits) all_reduce(own, own->comm);
    if (own->rank % 2 == waits % 2) all_reduce(own, half);
}

/* The victim does not split. */
static void unsplit(struct own *own)
{
    ncclComm_t half;
    if (own->rank == own->victim) return;
    must(ncclCommSplit(own->comm, own->rank % 2, own->rank, &half, NULL), "ncclCommSplit");
}

/* The victim calls something else, which may end before it is known to be so. */
static void differs(struct own *own)
{
    if (own->rank != own->victim) all_reduce(own, own->comm);
    must(ncclBroadcast(own->buffer, own->buffer, COUNT, ncclFloat32, own->victim, own->comm,
                       own->stream),
         "ncclBroadcast");
    for (;; usleep(1000))
        await(own, own->comm);
}

/* All go on. */
static void works(struct own *own)
{
    for (;; usleep(1000))
        all_reduce(own, own->comm);
}

/* The victim gives up while the others wait for it. */
static void aborts(struct own *own)
{
    if (own->rank != own->victim) all_reduce(own, own->comm);
    sleep(1);
    must(ncclCommAbort(own->comm), "ncclCommAbort");
}

static void crashes(struct own *own)
{
    if (own->rank != own->victim) all_reduce(own, own->comm);
    sleep(1);
    raise(SIGSEGV);
}

static ncclUniqueId share_id(int rank, const char *path);

/* A second communicator, to which the victim does not come. */
static void absent(struct own *own)
{
    char path[400];
    ncclComm_t second;
    snprintf(path, sizeof(path), "%s.second", own->path);
    ncclUniqueId id = share_id(own->rank, path);
    if (own->rank == own->victim) return;
    must(ncclCommInitRank(&second, own->nranks, id, own->rank), "ncclCommInitRank");
}

static ncclUniqueId share_id(int rank, const char *path)
{
    ncclUniqueId id;
    char made[512];
    FILE *file;
    snprintf(made, sizeof(made), "%s.made", path);
    if (rank == 0) {
        must(ncclGetUniqueId(&id), "ncclGetUniqueId");
        file = fopen(made, "wb");
        must(!file || fwrite(&id, sizeof(id), 1, file) != 1 || fclose(file), "writing the id");
        must(rename(made, path), "rename");
        return id;
    }
    while (!(file = fopen(path, "rb")))
        sched_yield();
    must(fread(&id, sizeof(id), 1, file) != 1, "reading the id");
    fclose(file);
    return id;
}

/* Handlers of this thread have 4 KiB, as on an alternate stack of SIGSTKSZ. */
static void narrow_signal_stack(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), frame = getauxval(AT_MINSIGSTKSZ);
    size_t bytes = (frame > 2048 ? frame : 2048) + 4096;
    char *stack =
        mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, page, PROT_NONE) ||
        sigaltstack(&(stack_t){.ss_sp = stack + page, .ss_size = bytes}, NULL)) {
        perror("blame: a stack for handlers");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(struct own *own);
    } scenarios[] = {{"late", late},       {"stopped", stopped},    {"circle", circle},
                     {"split", split},     {"differs", differs},    {"aborts", aborts},
                     {"crashes", crashes}, {"absent", absent},      {"twice", twice},
                     {"works", works},     {"deaf", deaf},          {"graphs", graphs},
                     {"unsplit", unsplit}, {"finalizes", finalizes}};
    struct own own;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (argc != 6) return 2;
    narrow_signal_stack();
    setlocale(LC_ALL, ""); /* as many programs do */
    config.commName = getenv("BLAME_NAME");
    own.nranks = atoi(argv[2]);
    own.rank = atoi(argv[3]);
    own.victim = atoi(argv[4]);
    own.path = argv[5];
    must(cudaSetDevice(own.rank), "cudaSetDevice");
    ncclUniqueId id = share_id(own.rank, argv[5]);
    must(ncclCommInitRankConfig(&own.comm, own.nranks, id, own.rank, &config),
         "ncclCommInitRankConfig");
    must(cudaStreamCreate(&own.stream), "cudaStreamCreate");
    must(cudaMalloc((void **)&own.buffer, COUNT * sizeof(float)), "cudaMalloc");
    if (strcmp(argv[1], "deaf") != 0) {
        all_reduce(&own, own.comm);
        all_reduce(&own, own.comm);
    }
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        if (!strcmp(argv[1], scenarios[i].name)) scenarios[i].play(&own);
    }
    for (;;)
        pause();
}
