/* What the tests of our profiler plugin share: its library, the file that it writes, and a few
 * events for it. */
#pragma once

#include "../check.h"

#include "nccl/profiler.h"

#include <stdbool.h>
#include <sys/types.h>

enum { TRACE_TEXT_BYTES = 16 << 20 };

extern char trace_folder[];               /* of the files, a process's is trace.PID */
extern char trace_text[TRACE_TEXT_BYTES]; /* what trace_read() has read */

/* Open the library argv[1] with small rings and files in a folder of our own, run the tests, and
 * remove the folder. What main() returns. */
int trace_run(int argc, char **argv, int (*run)(void));

const void *trace_symbol(const char *name);
const char *trace_path(pid_t pid);
void trace_read(pid_t pid);
unsigned long trace_count(const char *needle);
/* A number of the last line `end`. */
unsigned long trace_end_says(const char *member);
/* A logger that says nothing. */
void trace_ignore(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                  const char *fmt, ...);

/* One Coll of a table that has begun, with a number by which the test finds it. */
#define TRACE_ONE_COLL(version, table, context)                                                    \
    ncclProfilerEventDescr_v##version##_t descr = {.type = ncclProfileColl};                       \
    void *handle = NULL;                                                                           \
    descr.coll.seqNumber = 7000 + (version);                                                       \
    descr.coll.count = 42;                                                                         \
    assert_int_equal((table)->startEvent(context, &handle, &descr), ncclSuccess);                  \
    assert_non_null(handle);                                                                       \
    assert_int_equal((table)->stopEvent(handle), ncclSuccess);                                     \
    assert_int_equal((table)->finalize(context), ncclSuccess)

/* Begin a communicator with a name that cannot stand in JSON as it is. */
void trace_init(ncclResult_t (*init)(void **, uint64_t, int *, const char *, int, int, int,
                                     ncclDebugLogger_t),
                void **context, int *mask);

struct trace_reported {
    void *context;
    unsigned long starts, refused, stops;
};
/* For a thread: more events than the rings have room for, and what became of them. */
void *trace_report_much(void *reported);
