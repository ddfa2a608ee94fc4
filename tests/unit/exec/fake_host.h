/* A device for tests of exec: streams are queues that the test steps itself, memory comes from a
 * range that the test names. Nothing runs inline. */
#pragma once

#include "device/device.h"

#include <stdbool.h>
#include <stddef.h>

#define FAKE_QUEUE 64

struct CUstream_st {
    struct tt_item *queue[FAKE_QUEUE];
    int head, tail;
    int refuse; /* error code that the next submit answers */
};

/* Memory that tuttiHostMalloc hands out, bump by bump. */
void fake_host_memory(char *base, size_t bytes);
/* tuttiHostHelp steps this stream. */
void fake_host_help(struct CUstream_st *stream);

/* Step the oldest item; true when something moved. Idle streams answer false. */
bool fake_stream_step(struct CUstream_st *stream);
bool fake_stream_idle(const struct CUstream_st *stream);
/* Drop what is queued: RELEASE without a step. */
void fake_stream_drop(struct CUstream_st *stream);
