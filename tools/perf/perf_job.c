/* The ranks of this process: devices, buffers, communicators; and what all processes agree on. */
#include "perf.h"

#include <cuda_runtime.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool perf_nccl_failed(ncclResult_t rc, const char *what)
{
    if (rc == ncclSuccess) return false;
    /* the library has printed its sentence, unless the user's settings keep it silent */
    const char *debug = getenv("NCCL_DEBUG"), *warns = getenv("TUTTI_WARN");
    const bool shown = !(debug && *debug) && warns && !strcmp(warns, "1");
    fprintf(stderr, "tutti perf: %s: %s%s%s%s\n", what, ncclGetErrorString(rc), shown ? "" : " (",
            shown ? "" : ncclGetLastError(NULL), shown ? "" : ")");
    return true;
}

bool perf_own_call_failed(ncclResult_t rc, const char *what)
{
    if (rc == ncclInvalidUsage && getenv("NCCL_ALGO")) {
        fprintf(stderr,
                "tutti perf: it reduces what it measured, too (AllReduce): name the function, "
                "as in NCCL_ALGO=allgather:PAT\n");
    }
    return perf_nccl_failed(rc, what);
}

bool perf_cuda_failed(int err, const char *what)
{
    if (err == cudaSuccess) return false;
    fprintf(stderr, "tutti perf: %s: %s\n", what, cudaGetErrorString((cudaError_t)err));
    return true;
}

static int from_env(const char *const *names, int otherwise)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        if (text && *text) return (int)strtol(text, NULL, 10);
    }
    return otherwise;
}

/* Who this process is: our launcher's variables, then Open MPI's, MPICH's and Slurm's. */
int perf_processes(int otherwise)
{
    static const char *const sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_NTASKS", NULL};
    return from_env(sizes, otherwise);
}

int perf_rank_of_process(void)
{
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                        NULL};
    return from_env(ranks, 0);
}

static void find_location(struct perf_job *job, int *local)
{
    static const char *const locals[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                         "MPI_LOCALRANKID", "SLURM_LOCALID", NULL};
    job->proc = perf_rank_of_process();
    job->nprocs = perf_processes(1);
    *local = from_env(locals, job->proc);
}

static size_t buffer_bytes(const struct perf_options *o)
{
    return o->max_bytes + ((size_t)o->unalign + 64) * 8;
}

static bool open_rank(struct perf_job *job, struct perf_rank *rank)
{
    /* Whole-block operations may round a size up to one element per rank. */
    size_t bytes = buffer_bytes(&job->options) + (size_t)job->nranks * 16;
    if (perf_cuda_failed(cudaSetDevice(rank->device), "cudaSetDevice")) return false;
    if (perf_cuda_failed(cudaMalloc((void **)&rank->send, bytes), "cudaMalloc")) return false;
    if (perf_cuda_failed(cudaMalloc((void **)&rank->recv, bytes), "cudaMalloc")) return false;
    rank->check = malloc(bytes);
    if (!rank->check) return false;
    if (job->options.stream_null) return true;
    return !perf_cuda_failed(cudaStreamCreateWithFlags(&rank->stream, cudaStreamNonBlocking),
                             "cudaStreamCreate");
}

static ncclResult_t init_ranks(struct perf_job *job, const ncclUniqueId *id, int first, int count)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (job->options.cta_policy) config.CTAPolicy = job->options.cta_policy;
    ncclResult_t rc = ncclGroupStart();
    for (int i = first; !rc && i < first + count; i++) {
        cudaSetDevice(job->ranks[i].device);
        rc = ncclCommInitRankConfig(&job->ranks[i].comm, job->nranks, *id, job->ranks[i].rank,
                                    &config);
    }
    ncclResult_t ended = ncclGroupEnd();
    return rc ? rc : ended;
}

struct init_arg {
    struct perf_job *job;
    const ncclUniqueId *id;
    int first, count;
    ncclResult_t rc;
};

static void *init_thread(void *arg)
{
    struct init_arg *init = arg;
    init->rc = init_ranks(init->job, init->id, init->first, init->count);
    return NULL;
}

static ncclResult_t init_parallel(struct perf_job *job, const ncclUniqueId *id)
{
    pthread_t threads[PERF_MAX_LOCAL];
    struct init_arg args[PERF_MAX_LOCAL];
    ncclResult_t rc = ncclSuccess;
    int started = 0;
    for (int t = 0; t < job->options.nthreads; t++) {
        args[t] =
            (struct init_arg){job, id, t * job->options.ngpus, job->options.ngpus, ncclSystemError};
        if (pthread_create(&threads[t], NULL, init_thread, &args[t])) break;
        started++;
    }
    for (int t = 0; t < started; t++) {
        pthread_join(threads[t], NULL);
        if (args[t].rc) rc = args[t].rc;
    }
    return started == job->options.nthreads ? rc : ncclSystemError;
}

static ncclResult_t register_rank(struct perf_rank *r, size_t bytes, bool local)
{
    ncclResult_t rc;
    if (local) {
        rc = ncclCommRegister(r->comm, r->send, bytes, &r->handles[0]);
        if (!rc) rc = ncclCommRegister(r->comm, r->recv, bytes, &r->handles[1]);
        return rc;
    }
    int how = NCCL_WIN_COLL_SYMMETRIC;
    rc = ncclCommWindowRegister(r->comm, r->send, bytes, &r->windows[0], how);
    if (!rc) rc = ncclCommWindowRegister(r->comm, r->recv, bytes, &r->windows[1], how);
    return rc;
}

static bool register_buffers(struct perf_job *job)
{
    size_t bytes = buffer_bytes(&job->options);
    ncclResult_t rc = ncclGroupStart();
    for (int i = 0; !rc && i < job->nlocal; i++) {
        rc = register_rank(&job->ranks[i], bytes, job->options.local_register == 1);
    }
    ncclResult_t ended = ncclGroupEnd();
    return !perf_nccl_failed(rc ? rc : ended, "registering buffers");
}

static bool open_comms(struct perf_job *job)
{
    ncclUniqueId id;
    if (job->nprocs > 1 && !getenv("NCCL_COMM_ID")) {
        fprintf(stderr,
                "tutti perf: %d processes but no NCCL_COMM_ID: start it with `tutti perf --ranks "
                "%d`, or "
                "set NCCL_COMM_ID=host:port for all\n",
                job->nprocs, job->nprocs);
        return false;
    }
    if (perf_nccl_failed(ncclGetUniqueId(&id), "ncclGetUniqueId")) return false;
    ncclResult_t rc =
        job->options.parallel_init ? init_parallel(job, &id) : init_ranks(job, &id, 0, job->nlocal);
    if (perf_nccl_failed(rc, "ncclCommInitRank")) return false;
    return !job->options.local_register || register_buffers(job);
}

static void describe_location(const struct perf_rank *r, struct perf_location *location)
{
    struct cudaDeviceProp prop;
    memset(&prop, 0, sizeof(prop));
    *location = (struct perf_location){
        .rank = r->rank, .pid = (int)getpid(), .device = r->device, .busid = "?"};
    gethostname(location->host, sizeof(location->host) - 1);
    cudaGetDeviceProperties(&prop, r->device);
    cudaDeviceGetPCIBusId(location->busid, sizeof(location->busid), r->device);
    snprintf(location->name, sizeof(location->name), "%.63s", prop.name);
}

/* One step of the way to rank 0: a rank with bit `step` gives all it has to the rank without it.
 * Messages, as NCCL_ALGO may forbid any collective. */
static ncclResult_t gather_step(struct perf_job *job, char *const *rooms, int step)
{
    ncclResult_t rc = ncclGroupStart();
    for (int i = 0; !rc && i < job->nlocal; i++) {
        const struct perf_rank *r = &job->ranks[i];
        const bool gives = r->rank & step;
        const int from = gives ? r->rank : r->rank + step;
        const int count = job->nranks - from < step ? job->nranks - from : step;
        char *block = rooms[i] + (size_t)from * sizeof(struct perf_location);
        const size_t bytes = (size_t)count * sizeof(struct perf_location);
        if (r->rank % step || count <= 0) continue;
        rc = gives ? ncclSend(block, bytes, ncclInt8, r->rank - step, r->comm, r->stream)
                   : ncclRecv(block, bytes, ncclInt8, from, r->comm, r->stream);
    }
    ncclResult_t ended = ncclGroupEnd();
    return rc ? rc : ended;
}

/* Every rank's place to rank 0, whose process prints them, through the library that is measured. */
static bool gather_places(struct perf_job *job)
{
    size_t total = (size_t)job->nranks * sizeof(struct perf_location);
    char **rooms = calloc((size_t)job->nlocal, sizeof(*rooms));
    job->locations = calloc((size_t)job->nranks, sizeof(struct perf_location));
    bool ok = rooms && job->locations;
    for (int i = 0; ok && i < job->nlocal; i++) {
        struct perf_rank *r = &job->ranks[i];
        describe_location(r, &job->locations[r->rank]);
        cudaSetDevice(r->device);
        ok = !perf_cuda_failed(cudaMalloc((void **)&rooms[i], total), "cudaMalloc") &&
             !perf_cuda_failed(cudaMemcpy(rooms[i] + (size_t)r->rank * sizeof(struct perf_location),
                                          &job->locations[r->rank], sizeof(struct perf_location),
                                          cudaMemcpyHostToDevice),
                               "cudaMemcpy");
    }
    for (int step = 1; ok && step < job->nranks; step *= 2)
        ok = !perf_nccl_failed(gather_step(job, rooms, step), "telling where ranks run");
    for (int i = 0; ok && i < job->nlocal; i++) {
        ok = !perf_cuda_failed(cudaStreamSynchronize(job->ranks[i].stream), "places");
    }
    ok =
        ok && !perf_cuda_failed(cudaMemcpy(job->locations, rooms[0], total, cudaMemcpyDeviceToHost),
                                "cudaMemcpy");
    for (int i = 0; rooms && i < job->nlocal; i++) {
        cudaFree(rooms[i]);
    }
    free(rooms);
    return ok;
}

bool perf_job_open(struct perf_job *job)
{
    int local = 0;
    int ndevices = 0;
    find_location(job, &local);
    job->nlocal = job->options.nthreads * job->options.ngpus;
    job->nranks = job->nprocs * job->nlocal;
    job->ranks = calloc((size_t)job->nlocal, sizeof(*job->ranks));
    if (!job->ranks || perf_cuda_failed(cudaGetDeviceCount(&ndevices), "cudaGetDeviceCount"))
        return false;
    for (int i = 0; i < job->nlocal; i++) {
        struct perf_rank *r = &job->ranks[i];
        r->rank = job->proc * job->nlocal + i;
        r->device = (local * job->nlocal + i) % ndevices;
        if (!open_rank(job, r)) return false;
    }
    if (perf_cuda_failed(cudaMalloc((void **)&job->agree_send, (size_t)job->nlocal * 64),
                         "cudaMalloc"))
        return false;
    if (perf_cuda_failed(cudaMalloc((void **)&job->agree_recv, (size_t)job->nlocal * 64),
                         "cudaMalloc"))
        return false;
    return open_comms(job) && gather_places(job);
}

static void close_rank(struct perf_rank *r)
{
    cudaSetDevice(r->device);
    for (int k = 0; r->comm && k < 2; k++) {
        if (r->handles[k]) ncclCommDeregister(r->comm, r->handles[k]);
        if (r->windows[k]) ncclCommWindowDeregister(r->comm, r->windows[k]);
    }
    cudaFree(r->send);
    cudaFree(r->recv);
    free(r->check);
    if (r->stream) cudaStreamDestroy(r->stream);
}

void perf_job_close(struct perf_job *job)
{
    for (int i = 0; job->ranks && i < job->nlocal; i++) {
        close_rank(&job->ranks[i]);
    }
    ncclGroupStart();
    for (int i = 0; job->ranks && i < job->nlocal; i++) {
        if (job->ranks[i].comm) ncclCommFinalize(job->ranks[i].comm);
    }
    ncclGroupEnd();
    for (int i = 0; job->ranks && i < job->nlocal; i++) {
        if (job->ranks[i].comm) ncclCommDestroy(job->ranks[i].comm);
    }
    cudaFree(job->agree_send);
    cudaFree(job->agree_recv);
    free(job->locations);
    free(job->ranks);
    job->ranks = NULL;
}

double perf_job_agree(struct perf_job *job, double mine, ncclRedOp_t op)
{
    ncclResult_t rc = ncclGroupStart();
    for (int i = 0; !rc && i < job->nlocal; i++) {
        double *send = job->agree_send + 8 * i;
        double value =
            op == ncclSum && i > 0 ? 0 : mine; /* one contribution per process to a sum */
        cudaMemcpy(send, &value, sizeof(value), cudaMemcpyHostToDevice);
        rc = ncclAllReduce(send, job->agree_recv + 8 * i, 1, ncclFloat64, op, job->ranks[i].comm,
                           job->ranks[i].stream);
    }
    ncclResult_t ended = ncclGroupEnd();
    if (perf_own_call_failed(rc ? rc : ended, "agreeing on a number")) exit(1);
    for (int i = 0; i < job->nlocal; i++) {
        cudaSetDevice(job->ranks[i].device);
        cudaStreamSynchronize(job->ranks[i].stream);
    }
    double value = 0;
    cudaMemcpy(&value, job->agree_recv, sizeof(value), cudaMemcpyDeviceToHost);
    return value;
}
