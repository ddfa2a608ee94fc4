/* The one state of the process: devices, range, streams, workers. Private to the room. */
#pragma once

#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { /* CUDA's numbers, as many as the room returns */
       HOST_OK = 0,
       HOST_INVALID_VALUE = 1,
       HOST_OUT_OF_MEMORY = 2,
       HOST_NOT_INITIALIZED = 3,
       HOST_NO_DEVICE = 100,
       HOST_INVALID_DEVICE = 101,
       HOST_BAD_HANDLE = 400,
       HOST_ILLEGAL_STATE = 401,
       HOST_NOT_READY = 600,
       HOST_NOT_SUPPORTED = 801,
       HOST_CAPTURE_UNSUPPORTED = 900,
       HOST_CAPTURE_INVALIDATED = 901,
       HOST_CAPTURE_MERGE = 902,
       HOST_CAPTURE_UNMATCHED = 903,
       HOST_CAPTURE_UNJOINED = 904,
       HOST_CAPTURE_ISOLATION = 905,
       HOST_CAPTURE_IMPLICIT = 906,
       HOST_CAPTURED_EVENT = 907,
       HOST_CAPTURE_WRONG_THREAD = 908,
};

#define HOST_MAX_DEVICES 1024

struct host_thread { /* per thread; initial-exec so that faces pay one load */
    int device;
    int last_error;
    int sticky;
    int capture_mode; /* exchanged by cudaThreadExchangeStreamCaptureMode; 0 global */
    int in_host_fn;
};
extern __thread struct host_thread host_thread __attribute__((tls_model("initial-exec")));

/* Devices, discovered once (pthread_once inside). */
const struct tt_device_card *host_device_card(int device); /* NULL when out of range */
int host_device_count(void);
