/* Strangers' libraries: found by NCCL's rules, opened, closed. One file per kind stands on this. */
#pragma once

#include "nccl.h"
#include "nccl/common.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_member;
struct tt_net;

struct tt_library {
    void *handle; /* owned; NULL: none */
    char path[256];
};

/* Open by NCCL's rules: the name as given; then "<prefix>-<name>.so" unless it is a path or
 * lib*.so. An unset name means "<prefix>.so". "none" opens nothing; STATIC_PLUGIN means the program
 * itself. False when nothing opened; kind ("NET", "TUNER", ...) and sub are for the log line. */
bool tt_library_open(const char *kind, uint32_t sub, const char *prefix, const char *name,
                     struct tt_library *library_out);
void tt_library_close(struct tt_library *library);

/* The logger that every plugin gets: one line of the debug log, never a format of the plugin's
 * data. */
void tt_plugin_log(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

struct tt_net_request {
    const struct tt_member *member; /* borrowed */
    const char *wish;               /* NCCL_NET or the config's netName; NULL: any */
    int traffic_class;              /* -1: undefined */
    unsigned char key[32];          /* proves membership between built-in sockets */
};

/* Choose a network for a communicator: external plugins of NCCL_NET_PLUGIN in order, then the
 * built-in Socket; the first that initialises and has a device. Logs NCCL's lines. Errors:
 * ncclInvalidUsage when the wished name matches none. */
ncclResult_t tt_net_open(const struct tt_net_request *request, struct tt_net **net_out);
void tt_net_close(struct tt_net *net);
