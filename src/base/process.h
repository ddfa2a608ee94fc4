/* What this room keeps for its copy in a library: one object, in parts. Each part belongs to the
 * file that it names, which alone touches it. What the copies of a process must share is in
 * log_device.h instead. Private to base/. */
#pragma once

#include "base/log/log_config.h"
#include "base/mem.h"
#include "base/network/networks.h"
#include "base/secret/encryption.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_pair;
struct tt_member;
struct tt_param_source;

enum { TT_PARAM_MAX = 512, TT_ERROR_BYTES = 1024 };

struct param_value {
    bool known;       /* read before */
    bool is_set;      /* by environment or file, and good */
    int64_t number;   /* of numeric types */
    char decimal[24]; /* the same as text */
    char *text;       /* owned by the process, never released: readers keep the pointer */
};

struct base_log { /* log.c */
    _Atomic uint64_t word;
    struct tt_log_config *_Atomic config; /* owned by the process, never released */
    pthread_mutex_t lock;                 /* taken to read the variables */
    int file_fd;                          /* the log file once there was one; 0: never */
    struct tt_log_config silent;          /* when memory is short even for one */
    char warning[200];                    /* of a plugin, the last one; under the lock */
    /* log_device.c: in the copy that libnccl asks; zero in its own */
    _Atomic bool reported;
    pthread_once_t threads_once;
    bool threads_keyed;
    pthread_key_t threads; /* a struct tt_log_thread as the value itself */
};

struct base_error { /* error.c */
    pthread_mutex_t lock;
    bool keyed;
    pthread_key_t copies; /* a copy per thread, on the heap: thread-local memory is scarce */
    char text[TT_ERROR_BYTES];
};

struct base_params { /* param.c */
    pthread_mutex_t lock;
    const struct tt_param_source *_Atomic source; /* NULL: the environment */
    const char **names;                           /* owned; made at first use */
    struct param_value values[TT_PARAM_MAX];      /* parallel to the table */
    _Atomic bool names_loading;                   /* the environment is looked through */
    _Atomic int
        are_reported;  /* tt_settings_are_reported(), asked once; 0: not yet, 1: no, 2: yes */
    char refused[400]; /* first sentence about a setting, see param.h */
};

struct base_files { /* param_files.c */
    pthread_mutex_t lock;
    _Atomic bool read;
    struct file_pair *pairs; /* what came from files; kept for ever, as callers keep origins */
};

struct base_encryption { /* encryption.c */
    _Atomic bool on;
    unsigned char key[TT_ENCRYPTION_KEY_BYTES];
};

enum { TT_WAIT_CELLS = 1024 };
struct base_wait { /* wait.c: claimed by one waiting thread */
    _Atomic bool taken;
    _Atomic uint32_t seq; /* odd: being written */
    const struct tt_member *_Atomic owner;
    const char *_Atomic what; /* NULL: not in use */
    _Atomic int peer;
    _Atomic uint64_t op_seq;
    _Atomic uint64_t call[3];
    _Atomic uint64_t since_nsec;
} __attribute__((aligned(TT_LINE_BYTES)));

struct base_cpu { /* cpu.c; 0: not asked yet */
    _Atomic size_t cache_bytes;
    _Atomic int tier;
};

struct tt_base {
    struct base_cpu cpu;
    struct base_encryption encryption;
    struct base_log log;
    struct base_error error;
    struct base_params params;
    struct base_files files;
    struct tt_networks networks;           /* of the room net/ */
    struct base_wait waits[TT_WAIT_CELLS]; /* every wait of the process is listed in one place */
    pthread_once_t environment;            /* param_names.c: looked through once */
    _Atomic int64_t faulty_alloc; /* mem.c, for tests: this one from now on fails; 0: none */
};
extern struct tt_base tt_base; /* process.c */
