/* All that the host device keeps for the process: one object, in parts. Each part belongs to the
 * file that it names, which alone touches it; other files call that file's functions. All begins as
 * zeros and open locks; what needs more makes it at first use, under the part's own `once` or lock.
 * A forked child has the bytes, but neither threads nor the memory: is_child has it answer 3. */
#pragma once

#include "base/mem.h"
#include "device/device.h"
#include "device/host/heap/arena.h"
#include "device/host/heap/slab.h"
#include "device/host/heap/spinlock.h"
#include "device/host/host_face.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TT_HOST_MAX_DEVICES 1024
enum { TT_HOST_MAX_STREAMS = 65536, TT_HOST_MAX_NOTICES = 1024 };
enum { TT_HOST_COPY_METHODS = 3, TT_HOST_COPY_CLASSES = 32 };

struct CUmemPoolHandle_st;
struct CUstream_st;

struct tt_host_devices { /* devices.c */
    pthread_once_t once;
    _Atomic int known; /* one more than there are; 0: not discovered yet */
    _Atomic int cores; /* 0: not asked yet */
    int ninfos, nvisible;
    int visible[TT_HOST_MAX_DEVICES]; /* indices into infos */
    struct tt_device_info infos[TT_HOST_MAX_DEVICES];
};

struct tt_host_deferred { /* deferred_free.c */
    pthread_mutex_t lock;
    struct tt_host_deferred_free *first; /* owned; the oldest */
    struct tt_host_deferred_free **last; /* link of the newest, unless first is NULL */
    _Atomic size_t count;                /* one load shows that there are none */
};

struct tt_host_memory { /* memory.c: one range of addresses backs all device memory */
    struct tt_range range;
    char *devices_base;
    struct tt_host_arena *devices; /* owned; by device number */
    int ndevices;
    unsigned shift;
    _Atomic bool reserved; /* it was tried; without success range.base is NULL */
    pthread_once_t once;
    struct tt_host_arena control, host;
    struct tt_host_deferred deferred;
    _Atomic uint64_t frees; /* of the program's memory */
    char *view;             /* all but the control part once more, for our own code; or NULL */
};

struct tt_host_device_streams {
    struct CUstream_st *_Atomic legacy;
    struct CUstream_st *_Atomic ordered; /* the living ones; read without the lock */
    struct CUstream_st *dead_ordered;    /* of them: free for reuse */
    pthread_mutex_t order;               /* held to queue behind other streams */
};

struct tt_host_streams { /* stream.c, life.c */
    struct tt_host_slab slab;
    _Atomic uint64_t last_id; /* numbers are never reused */
    pthread_mutex_t lock;     /* creation and retirement */
    struct CUstream_st *dead;
    pthread_once_t once;     /* makes the order locks */
    pthread_once_t own_once; /* makes the key, which ends a thread's default streams with it */
    pthread_key_t own_key;
    struct tt_host_device_streams devices[TT_HOST_MAX_DEVICES];
};

struct tt_host_capture_ops { /* what streams, which lie below captures, ask of them */
    void (*invalidate)(struct CUstream_st *stream);
    void (*orphan)(struct CUstream_st *stream); /* it is destroyed */
};

/* capture.c. Threads look at the captures of others: none is freed while `lock` is held. */
struct tt_host_captures {
    pthread_mutex_t lock;
    _Atomic uint64_t begun;
    _Atomic int streams;                           /* that are in a capture now */
    const struct tt_host_capture_ops *_Atomic ops; /* set before a stream is in one */
    struct tt_host_capture_position *positions;    /* of events */
};

struct tt_host_runnable { /* runnable.c: a bit per stream, per word of these, per word of those */
    _Atomic uint64_t top;
    _Atomic uint64_t begun, ended; /* changes of bits; one that is under way may hide work */
    _Atomic uint64_t summary[TT_HOST_MAX_STREAMS / 64 / 64];
    _Atomic uint64_t words[TT_HOST_MAX_STREAMS / 64];
};
_Static_assert(TT_HOST_MAX_STREAMS / 64 / 64 <= 64, "one word tells whether any stream has work");

struct tt_host_workers { /* threads.c */
    pthread_mutex_t lock;
    pthread_once_t once; /* makes the condition */
    pthread_cond_t wake;
    _Atomic int awake;                /* threads that do not sleep until there is work again */
    _Atomic int inside;               /* of them: in a host function */
    _Atomic int backing_off;          /* of them: in a long back-off */
    int started, wakes;               /* threads; a change of `wakes` ends each long back-off */
    void *(*_Atomic body)(void *arg); /* what they run; set before the first stream is there */
};

struct tt_host_waits {          /* wait.c */
    _Atomic int oversubscribed; /* not 0: more ranks than cores */
    _Atomic int threads;        /* those that wait for longer */
};

struct tt_host_graphs { /* graph.c, but for what names another file */
    struct tt_host_slab graphs, nodes;
    _Atomic uint64_t last_node;      /* numbers are never reused */
    struct tt_host_slab execs;       /* exec.c */
    struct tt_host_spinlock issuing; /* one order of launches' places in streams and items */
    struct tt_host_slab objects;     /* user_object.c, with what runs their destructors: */
    pthread_once_t endings_once;
    struct CUstream_st *endings;
};

struct tt_host_graph_memory { /* graph_memory.c */
    pthread_mutex_t lock;
    struct tt_host_memory_item *items; /* those that own memory */
    _Atomic int count;                 /* of them; 0 spares frees the lock */
    uint64_t used[TT_HOST_MAX_DEVICES], high[TT_HOST_MAX_DEVICES];
};

enum { TT_HOST_POOL_BUCKETS = 4096 };

struct tt_host_pools { /* pool*.c */
    struct tt_host_slab slab;
    pthread_mutex_t lock;
    struct tt_host_pool_block *buckets[TT_HOST_POOL_BUCKETS];
    _Atomic size_t nblocks; /* in them; 0 spares frees the lock */
    uint64_t resets;        /* of devices, whose pools go */
    struct CUmemPoolHandle_st *defaults[TT_HOST_MAX_DEVICES], *current[TT_HOST_MAX_DEVICES];
};

struct tt_host_vmm { /* vmm.c */
    pthread_mutex_t lock;
    struct tt_host_vmm_block *blocks;
    struct tt_host_reservation *reservations;
    struct tt_host_mapping *mappings;
    struct tt_host_lingering *lingering;     /* owned */
    _Atomic size_t nmappings, nreservations; /* 0 spares readers the lock */
    uint64_t last_id;
};

struct tt_host_sharing { /* ipc.c */
    pthread_mutex_t lock;
    struct tt_host_opened *memory; /* owned */
    struct tt_host_opened *closed; /* owned; in use by work in flight */
    struct tt_host_opened *pages;  /* owned; of cells, for ever */
    struct tt_host_cell_page *own; /* owned */
    _Atomic int nmemory;           /* 0 spares readers the lock */
};

struct tt_host_hints { /* hints.c */
    pthread_mutex_t lock;
    struct tt_host_hint_piece *pieces; /* owned */
    _Atomic int count;                 /* 0 spares frees the lock */
};

struct tt_host_registrations { /* registered.c */
    pthread_rwlock_t lock;
    struct tt_registered *ranges; /* owned, sorted by base */
    struct tt_host_held *held;    /* held.c, under the lock; owned */
    _Atomic size_t count, nheld;  /* 0 spares the lock */
    size_t room;
};

struct tt_host_kernels { /* calls/kernel.c */
    pthread_mutex_t lock;
    struct tt_host_implementation *implementations;
    struct tt_kernel *kernels;
    struct tt_host_module *modules;
};

struct tt_host_libraries { /* library.c */
    pthread_mutex_t lock;
    struct tt_host_library *first; /* owned */
    struct tt_host_link *links;    /* owned; link.c */
};

struct tt_host_variables { /* variable.c */
    pthread_mutex_t lock;
    struct tt_host_variable *first; /* owned */
    _Atomic int count;              /* 0 spares readers the lock */
};

struct tt_host_settings { /* face_state.c; of a device */
    _Atomic unsigned flags;
    _Atomic size_t limits[TT_LIMIT_COUNT_];
    _Atomic bool was_set[TT_LIMIT_COUNT_];
    _Atomic uint64_t peers[TT_HOST_MAX_DEVICES / 64];
};

struct tt_host_notices { /* notice.c: warnings that were printed */
    pthread_mutex_t lock;
    int count;
    const char *names[TT_HOST_MAX_NOTICES]; /* borrowed literals */
};

/* Ranges do not overlap. */
typedef void tt_host_copy_fn(void *dst, const void *src, size_t bytes);

struct tt_host_copy_calibration { /* of a class of sizes: a line, all that a copy reads of it */
    _Alignas(TT_LINE_BYTES) tt_host_copy_fn *_Atomic chosen; /* the best one; NULL: not known yet */
    _Atomic uint32_t count;      /* copies of this class; races lose some, which is harmless */
    _Atomic uint32_t best, last; /* methods by number; last: of the copies that were timed */
    _Atomic uint64_t cost[TT_HOST_COPY_METHODS]; /* ticks per byte, scaled */
};

struct tt_host_copies { /* bytes*.c */
    bool fast_strings;  /* the processor says so; set when the library is loaded */
    struct tt_host_copy_calibration calibrations[TT_HOST_COPY_CLASSES];
};

struct tt_host {
    /* A line for what finds a stream, one for memory: each more costs a copy of 16 KiB some 4 ns */
    _Alignas(TT_LINE_BYTES) _Atomic bool is_child; /* devices.c sets it; ask tt_host_forked() */
    struct tt_host_check *_Atomic check;           /* check/: NULL unless TUTTI_CHECK is set */
    struct tt_host_streams streams;
    struct tt_host_memory memory; /* begins a line */
    struct tt_host_devices devices;
    struct tt_host_slab events; /* event.c */
    struct tt_host_slab chunks; /* queue.c: pieces of queues */
    struct tt_host_captures captures;
    /* what threads write often must not slow down reads of the parts above */
    _Alignas(TT_LINE_BYTES) struct tt_host_runnable runnable;
    _Alignas(TT_LINE_BYTES) struct tt_host_workers workers;
    struct tt_host_waits waits;
    _Alignas(TT_LINE_BYTES) struct tt_host_graphs graphs;
    struct tt_host_graph_memory graph_memory;
    struct tt_host_pools pools;
    struct tt_host_vmm vmm;
    struct tt_host_sharing sharing;
    struct tt_host_hints hints;
    struct tt_host_registrations registrations;
    struct tt_host_kernels kernels;
    struct tt_host_libraries libraries;
    struct tt_host_variables variables;
    struct tt_host_settings settings[TT_HOST_MAX_DEVICES]; /* face_state.c */
    struct tt_host_notices notices;
    struct tt_host_copies copies;
    const char *_Atomic fails_as; /* check.c: see tuttiHostFail() */
};
extern struct tt_host tt_host; /* process.c */
