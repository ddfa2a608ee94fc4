/* What is written during the run beside the records: operations as the lines that NCCL's inspector
 * writes, and what they sum up to as text for Prometheus, so that dashboards which read either go
 * on working. An operation is a collective, or a side of a message, as one rank saw it; it has
 * ended with the kernels of all its channels. All is called under the process's lock. */
#pragma once

#include "trace.h"

#include <stdio.h>

enum {
    TRACE_CHANNELS = 64,
    TRACE_COMM_NAME_BYTES = 128,
    TRACE_PATH_BYTES = 4096,
    TRACE_HOST_BYTES = 64
};

/* A communicator at one rank of this process. */
struct trace_rank {
    uint64_t comm;
    uint64_t messages; /* written so far */
    int rank, nranks, nnodes, version;
    int device; /* -1: unknown */
    char name[TRACE_COMM_NAME_BYTES];
};

enum trace_timing { TRACE_TIMING_GPU, TRACE_TIMING_KERNEL, TRACE_TIMING_CALL };

/* When the events of an operation came, of the monotonic clock; 0: it did not. */
struct trace_moments {
    uint64_t begin_nsec, end_nsec;
    struct {
        uint64_t begin_nsec, record_nsec, end_nsec;
    } kernels[TRACE_CHANNELS];
};

struct trace_operation {
    struct trace_record start;
    struct trace_rank *rank; /* borrowed */
    bool message;
    uint64_t bytes;    /* count times size, as its caller gave it */
    uint64_t end_nsec; /* of the monotonic clock */
    double usec, algbw_gbps, busbw_gbps;
    enum trace_timing timing;
    const struct trace_moments *moments; /* borrowed until the next record; NULL: not kept */
};

/* ---- operations.c ---- */
struct trace_operations; /* those under way */
struct trace_operations *trace_operations_create(bool keeps_moments);
void trace_operations_destroy(struct trace_operations *all);
/* Follow a record; `rank` is the communicator of a start, `rank_of` finds that of its number. True:
 * with it an operation has ended. */
bool trace_operations_follow(struct trace_operations *all, const struct trace_record *record,
                             struct trace_operation *operation);
/* Operations that were given up because too many had not ended. */
uint64_t trace_operations_given_up(const struct trace_operations *all);

/* ---- inspector.c ---- */
/* A line of at most TRACE_INSPECTOR_BYTES; returns its length. */
enum { TRACE_INSPECTOR_BYTES = TRACE_LINE_BYTES + TRACE_CHANNELS * 256 };
size_t trace_inspector_line(const struct trace_operation *operation, const char *host, char *line);

/* ---- metrics.c ---- */
struct trace_metrics;
struct trace_metrics *trace_metrics_create(void);
void trace_metrics_destroy(struct trace_metrics *metrics);
void trace_metrics_add(struct trace_metrics *metrics, const struct trace_operation *operation);
/* Write the text, and begin a new interval of the gauges. */
void trace_metrics_print(struct trace_metrics *metrics, const char *host, uint64_t given_up,
                         FILE *to);

/* ---- chrome.c ---- */
enum { TRACE_CHROME_BYTES = 2048 }; /* that what one record adds is shorter than */
struct trace_chrome;
struct trace_chrome *trace_chrome_create(const char *host);
void trace_chrome_destroy(struct trace_chrome *chrome);
/* What the file begins and ends with; returns the length. */
size_t trace_chrome_head(const struct trace_chrome *chrome, const char *host, char *lines);
size_t trace_chrome_tail(const struct trace_chrome *chrome, char *lines);
/* Follow a record of the thread; returns the length of what it adds, which may be nothing. */
size_t trace_chrome_take(struct trace_chrome *chrome, const struct trace_record *record, int tid,
                         char *lines);

/* ---- outputs.c ---- */
/* The communicator that a context names; NULL: another process's. */
struct trace_rank *trace_outputs_rank(uint64_t context);
