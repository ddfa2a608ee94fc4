/* What the files of the measuring program share: options, one operation's row, one rank's state. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { PERF_MAX_OPS = 6, PERF_MAX_LOCAL = 512 };

struct perf_options {                   /* nccl-tests' letters in the comments */
    int nprocs, nthreads, ngpus;        /* --ranks, -t, -g */
    size_t min_bytes, max_bytes;        /* -b, -e */
    size_t step_bytes;                  /* -i */
    double step_factor;                 /* -f; 0: steps are added */
    int iters, warmup_iters, agg_iters; /* -n, -w, -m */
    int run_cycles;                     /* -N; 0: for ever */
    int average;                        /* -a: 0 rank 0, 1 average, 2 minimum, 3 maximum */
    int parallel_init;                  /* -p */
    int check;                          /* -c: how many checked calls; 0: none */
    int blocking;                       /* -z */
    int stream_null;                    /* -y */
    double timeout_sec;                 /* -T */
    double since_sec;                   /* CLOCK_MONOTONIC when the launcher began; 0: unknown */
    bool on_terminal;                   /* the launcher's standard error, or ours, is one */
    int graph_launches;                 /* -G */
    int cpu_time;                       /* -C */
    int local_register;                 /* -R */
    int timestamps;                     /* -S */
    int cta_policy;                     /* -x */
    int memory_report;                  /* -M */
    int unalign;                        /* -u: elements of offset */
    int device_implementation;          /* -D: 0, calls of the host */
    int device_ctas;                    /* -V: of no effect without -D */
    const char *output_file;            /* -J */
    int types[12];                      /* -d; ntypes */
    int ntypes;
    int ops[PERF_MAX_OPS]; /* -o; 5 stands for mulsum */
    int nops;
    int root; /* -r; -1: all in turn */
    bool json, pairs, dry_run, max_given;
    const char *operations[16];
    int noperations;
};

struct perf_call { /* arguments of one call */
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    ncclComm_t comm;
    cudaStream_t stream;
};

/* One row of the table of operations. Sizes in elements per rank. */
struct perf_operation {
    const char *name;  /* as on the command line */
    const char *title; /* as in the heading */
    bool reduces, rooted;
    int send_blocks, recv_blocks; /* 1, or -1 for nranks */
    bool size_is_total;           /* the size column counts all blocks */
    double (*bus_factor)(int nranks);
    ncclResult_t (*run)(const struct perf_call *call);
    bool stepwise;  /* several groups one after the other: no group may stand around it */
    bool unchecked; /* in place the result is not defined: only timed, as nccl-tests does */
};
const struct perf_operation *perf_operation_find(const char *name);
const struct perf_operation *perf_operation_at(int index); /* NULL after the last */

/* Parse argv into options. -1: go on; else the exit status. */
int perf_options_parse(int argc, char **argv, struct perf_options *options);
const char *perf_type_name(int type);
size_t perf_type_bytes(int type);
const char *perf_op_name(int op);

/* ---- one local rank (a device driven by a thread) ---- */
struct perf_rank {
    int rank, device;
    ncclComm_t comm;
    cudaStream_t stream;
    char *send, *recv; /* device memory, max bytes + slack */
    char *check;       /* host memory */
    void *handles[2];
    ncclWindow_t windows[2];
    ncclRedOp_t mulsum;
};

struct perf_case { /* one line of the table */
    const struct perf_operation *operation;
    int type, op, root;
    size_t count; /* elements per rank as passed to the call */
    size_t bytes; /* the size column */
    bool in_place;
};

struct perf_result {
    double usec;         /* per operation */
    double algbw, busbw; /* GB/s */
    int64_t wrong;       /* -1: not checked */
};

/* ---- data (perf_data.c) ---- */
/* Input element `index` of `rank`, exactly representable, small enough that every result is exact.
 */
void perf_fill_input(const struct perf_case *pc, int rank, int nranks, size_t blocks, void *to);
/* Wrong elements of this rank's output. */
int64_t perf_count_wrong(const struct perf_case *pc, int rank, int nranks, const void *got);
size_t perf_send_elems(const struct perf_case *pc, int nranks);
size_t perf_recv_elems(const struct perf_case *pc, int nranks);
/* Where in-place calls put the send and receive pointers inside the one buffer, in elements. */
void perf_in_place(const struct perf_case *pc, int rank, int nranks, size_t *send_at,
                   size_t *recv_at);

struct perf_location { /* where a rank runs; rank 0's process gets all */
    int rank, pid, device;
    char host[64], busid[32], name[64]; /* of the device */
};

/* ---- job (perf_job.c): all ranks of this process and what they agree on ---- */
struct perf_job {
    struct perf_options options;
    int proc, nprocs;   /* this process */
    int nlocal, nranks; /* ranks here, in all */
    struct perf_rank *ranks;
    double *agree_send; /* 64 bytes of device memory per local rank */
    double *agree_recv;
    struct perf_location *locations; /* owned; of each rank of the job, in the process of rank 0 */
};
/* Processes of this job by the launcher's variables, else `otherwise`. */
int perf_processes(int otherwise);
int perf_rank_of_process(void);
bool perf_job_open(struct perf_job *job);
void perf_job_close(struct perf_job *job);
/* op over all ranks of one number per process. */
double perf_job_agree(struct perf_job *job, double mine, ncclRedOp_t op);
/* Run one case: warm up, measure, check. False on an error (said). */
bool perf_job_measure(struct perf_job *job, const struct perf_case *pc, struct perf_result *result);

struct perf_sums { /* over all lines so far */
    double bus;
    int lines;
    int64_t wrong;
};

/* ---- table (perf_table.c), rank 0 only ---- */
void perf_table_start(const struct perf_job *job);
void perf_table_head(const struct perf_job *job, const struct perf_operation *operation);
void perf_table_row(const struct perf_job *job, const struct perf_case *pc,
                    const struct perf_result results[2]);
void perf_table_foot(const struct perf_job *job, const struct perf_sums *sums);
/* One JSON object: start, a row a line, end. `failed`: an error ended the run early. */
void perf_json_start(FILE *out, const struct perf_job *job);
void perf_json_row(FILE *out, const struct perf_case *pc, const struct perf_result results[2],
                   bool first);
void perf_json_end(FILE *out, const struct perf_job *job, const struct perf_sums *sums,
                   bool failed);

/* ---- pairs (perf_pairs.c) ---- */
bool perf_pairs_run(struct perf_job *job);

/* "what: error text" on stderr, true when rc or err is an error. */
bool perf_nccl_failed(ncclResult_t rc, const char *what);
/* As perf_nccl_failed(), of an AllReduce that the user did not ask for. */
bool perf_own_call_failed(ncclResult_t rc, const char *what);
bool perf_cuda_failed(int err, const char *what);
