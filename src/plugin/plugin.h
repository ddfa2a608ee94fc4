/* Plugins: shared libraries that are found by NCCL's rules, opened, counted and closed. Each kind
 * of plugin has a file of its own on top of this. */
#pragma once

#include "nccl.h"
#include "nccl/common.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_member;
struct tt_net;

struct tt_library {
    void *handle; /* owned; NULL: none */
    char path[256];
    char why[256];     /* not opened: the loader's message about the last file that exists, or "" */
    char missing[300]; /* names that no file has, a blank before each */
};

/* Open by NCCL's rules: the name as given; then "<prefix>-<name>.so" unless it is a path or
 * lib*.so. An unset name means "<prefix>.so". "none" opens nothing; STATIC_PLUGIN means the program
 * itself. False when nothing opened; kind ("NET", "TUNER", ...) and sub are for the log line. */
bool tt_library_open(const char *kind, uint32_t sub, const char *prefix, const char *name,
                     struct tt_library *library_out);
void tt_library_close(struct tt_library *library);

/* One version of a kind's ABI. */
struct tt_plugin_abi {
    int version;
    const char *symbol;
};
/* What a library was found to export. Every kind's object begins with the plugin's name. */
struct tt_plugin_found {
    int version;
    const void *object; /* the plugin's table, of that version's type; borrowed from the library */
};
/* The first function that a plugin's table must have and lacks; NULL: it has all. `names`:
 * functions in the table's order, after the plugin's name; NULL where one may be missing. */
const char *tt_table_lacks(const void *table, const char *const *names, size_t count);
/* The newest version that the library exports. False, and *found_out untouched, when none. */
bool tt_library_find(const struct tt_library *library, const struct tt_plugin_abi *abis,
                     size_t nabis, struct tt_plugin_found *found_out);

/* A kind of which a process has one library, shared by its communicators. Static storage. */
struct tt_plugin_kind {
    const char *label;                /* "TUNER": log lines begin with TUNER/Plugin: */
    const char *noun;                 /* "tuner" */
    const char *loaded;               /* "Using", "Loaded": what the log says of its name */
    const char *variable;             /* NCCL_TUNER_PLUGIN */
    const char *prefix;               /* "libnccl-tuner" */
    const char *other_prefix;         /* tried after it; NULL: none */
    uint32_t sub;                     /* subsystems of its log lines */
    bool stays;                       /* mapped when its last user has gone */
    const struct tt_plugin_abi *abis; /* newest first */
    size_t nabis;
};
struct tt_plugin_slot {
    pthread_mutex_t lock;
    int users;
    bool failed; /* for good: it is not loaded again */
    bool stays;  /* as its kind says */
    struct tt_library library;
    struct tt_plugin_found found; /* does not change while there is a user */
};
/* Add a user of the kind's library, which the first user loads. False: there is no such library.
 * Any thread. net_library  path of the net plugin's library, which is searched when the kind has no
 * file of its own; NULL: none */
bool tt_plugin_acquire(const struct tt_plugin_kind *kind, struct tt_plugin_slot *slot,
                       const char *net_library);
/* Warn that the plugin that the user named in `variable` is missing, and why: `library` was not
 * opened. */
void tt_plugin_missing(const char *variable, const char *name, const struct tt_library *library);
/* Say that a library has none of a kind's versions, and what it has instead: a warning where it was
 * asked for by name. abis: of the kind, newest first. */
void tt_plugin_unsupported(const char *noun, const struct tt_library *library,
                           const struct tt_plugin_abi *abis, size_t nabis, bool named);
/* Warn of a plugin that is there and is not used: of a setting without effect (tt_warn_setting)
 * where it was asked for by name. */
void tt_plugin_refused(const struct tt_plugin_kind *kind, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Remove a user; the last one closes the library, and unmaps it unless it stays. Any thread. */
void tt_plugin_release(struct tt_plugin_slot *slot);

/* The logger that every plugin gets: writes one line of the debug log. */
void tt_plugin_log(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Load the environment plugin at the first call (NCCL_ENV_PLUGIN, or libnccl-env.so if it exists)
 * and read every variable from it until the end of the process. When it cannot be used, that is
 * reported and the environment is used. Any thread. */
void tt_env_open(void);

/* Filled with the reason when a plugin was loaded and is not used. */
struct tt_plugin_refusal {
    char text[160];
};

struct tt_net_request {
    const struct tt_member *member;    /* borrowed */
    struct tt_plugin_refusal *refusal; /* borrowed; NULL: not wanted */
    const char *name;                  /* NCCL_NET or the config's netName; NULL: any */
    int traffic_class;                 /* -1: undefined */
    unsigned char key[32];             /* proves membership between built-in sockets */
};

/* Choose a network for a communicator: external plugins of NCCL_NET_PLUGIN in order, then the
 * built-in IB and Socket; the first that initialises and has a device. Logs NCCL's lines. Errors:
 * ncclInvalidUsage when the requested name matches none, ncclSystemError when none works. */
ncclResult_t tt_net_open(const struct tt_net_request *request, struct tt_net **net_out);
/* True once a network broke the contract of the interface in this process (TUTTI_PLUGIN_CHECK). */
bool tt_net_broke_contract(void);
/* Check the size limits of all devices of a network that is needed. Errors: ncclInternalError
 * naming the first impossible one, as in NCCL. */
ncclResult_t tt_net_check_sizes(struct tt_net *net, int rank);
/* Close the network, after all its connections. Accepts NULL. Returns what its finalize did; the
 * network is closed in any case. */
ncclResult_t tt_net_close(struct tt_net *net);
struct tt_net_label { /* what ranks compare before they use a network together */
    char name[64];
    int32_t version; /* of the interface; 0: no network */
    int32_t ndevs;   /* devices that edges spread over */
    int32_t gathers; /* its edges need no memory that it registers */
};
void tt_net_label(const struct tt_net *net, struct tt_net_label *label_out); /* NULL: none */
/* Spread edges over the first `ndevs` devices at most. Call it before the first edge is made. */
void tt_net_spread(struct tt_net *net, int ndevs);
/* Path of the library behind the network; NULL for a built-in and for NULL. */
const char *tt_net_library(const struct tt_net *net);
