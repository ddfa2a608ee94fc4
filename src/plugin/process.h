/* What this room keeps for the process: one object, a part per file, which alone uses it. Private
 * to the room. */
#pragma once

#include "base/param.h"
#include "plugin/net/collnet.h"
#include "plugin/net/net.h"
#include "plugin/plugin.h"
#include "plugin/tuner/tuner_abi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct tt_env_text;
struct tt_nvtx_attributes;
struct tt_nvtx_payload;
struct tt_nvtx_slots;
struct tt_profiler_timers;

enum { TT_NET_NAME_BYTES = 255 };

struct tt_net_candidate {
    char name[TT_NET_NAME_BYTES];     /* as given; "" for the default name and for a built-in */
    struct tt_net_plugin plugin;      /* its object NULL: not loaded */
    struct tt_collnet_plugin collnet; /* its object NULL: the library has none */
    struct tt_library library;
    int users;
    bool disabled;                    /* never tried again in this process */
    struct tt_plugin_refusal refusal; /* why it was loaded and not used; "": it was not */
};

struct tt_plugins {
    struct { /* net.c */
        pthread_mutex_t lock;
        bool listed;
        _Atomic bool broke_contract; /* net_check.c */
        int count;
        struct tt_net_candidate list[NCCL_NET_MAX_PLUGINS];
    } nets;
    struct { /* tuner.c */
        struct tt_plugin_slot slot;
        struct tt_tuner_single single; /* of a version 1 plugin */
        _Atomic uint32_t warned;       /* a bit for each kind of fault that was reported */
    } tuner;
    struct { /* profiler.c */
        struct tt_plugin_slot slot;
        pthread_mutex_t init_lock; /* one init at a time */
        bool refused, untraced;    /* it was said */
        int mask;                  /* atomics of the compiler: plugins write it as a plain int */
        struct tt_profiler_timers *timers; /* profiler_timers.c: owned by the process, or NULL; set
                                              before the first context */
    } profiler;
    struct { /* env.c */
        struct tt_plugin_slot slot;
        pthread_once_t once;
        _Atomic pthread_t loader; /* thread that is loading the plugin; 0: none */
        pthread_mutex_t lock;     /* recursive: the plugin may read variables itself */
        bool asking;
        const char *(*get)(const char *name); /* NULL: there is none, or it has ended */
        ncclResult_t (*finalize)(void);
        struct tt_env_text *texts; /* owned by the process, never released: callers keep them */
        pid_t process;             /* that called init */
        char origin[80];
        struct tt_param_source source;
    } env;
    struct {             /* nvtx.c: set once */
        _Atomic bool on; /* stored last: pairs with the acquire load in tt_nvtx_on() */
        pthread_once_t once;
        struct tt_nvtx_slots *slots; /* owned by the process: the tool writes its functions there */
        int (*push)(void *domain, const struct tt_nvtx_attributes *attributes);
        int (*pop)(void *domain);
        void *domain;      /* the tool's; borrowed */
        bool shows_fields; /* it speaks the payload extension */
        int (*pop_payload)(void *domain, const struct tt_nvtx_payload *payload, size_t count);
    } nvtx;
};
extern struct tt_plugins tt_plugins; /* process.c */
