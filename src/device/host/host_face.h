/* State that only the CUDA faces use, and that all of them share: settings per device, and warnings
 * that were printed already. Results are CUDA's numbers. Any thread. */
#pragma once

#include "device/device.h"

#pragma GCC visibility push(default)

/* Warn once per `name` (a literal, kept) that the function is not supported; returns 801. */
int tuttiHostUnsupported(const char *name);

/* Print one line to the log, or to stderr when the log is off: for what a user must see. */
void tuttiHostWarn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The thread's stack of devices: make one current, and the one before it again, which without a
 * push stays. */
int tuttiHostDevicePush(int device); /* as tuttiHostSetDevice() */
void tuttiHostDevicePop(void);

/* Scheduling flags of a device: 1 on unknown bits, 101 on a bad ordinal. */
int tuttiHostFlagsSet(int device, unsigned flags);
int tuttiHostFlagsGet(int device, unsigned *flags);

enum { TT_LIMIT_CACHE_CONFIG = 7, TT_LIMIT_COUNT_ }; /* 0 to 6: enum cudaLimit */
int tuttiHostLimitSet(int device, int limit, size_t value);
int tuttiHostLimitGet(int device, int limit, size_t *value);

/* Permission of `device` to reach `peer`. 101 bad or equal ordinals, 704 enabled twice, 705 not
 * enabled. Nothing depends on it: all memory is reachable. */
int tuttiHostPeerEnable(int device, int peer);
int tuttiHostPeerDisable(int device, int peer);

/* ---- launch configurations: from <<<>>> to the call of the kernel's stub ---- */
struct tt_configuration {
    unsigned grid[3], block[3];
    size_t shared_bytes;
    struct CUstream_st *stream;
};
enum { TT_CONFIGURATIONS_MOST = 4 }; /* nested; thread-local memory is scarce in late loads */
/* Push a configuration of the calling thread. False: TT_CONFIGURATIONS_MOST are there. */
bool tuttiHostConfigurationPush(const struct tt_configuration *configuration);
/* Take the latest one. False: there is none. */
bool tuttiHostConfigurationPop(struct tt_configuration *configuration_out);

/* ---- host memory that the program brought: pinned to the faces ---- */
struct tt_registered {
    char *base;
    size_t bytes;
    unsigned flags;
    int device; /* that was current */
};
/* 712 when it overlaps a registered range, or for pinned memory; 1 for other memory of ours. */
int tuttiHostHostRegister(void *ptr, size_t bytes, unsigned flags);
int tuttiHostHostUnregister(void *ptr); /* 713 when ptr is not the base of a registered range */
/* The registered range around ptr, or false. One load when nothing is registered. */
bool tuttiHostRegistered(const void *ptr, struct tt_registered *range_out);

/* Whether all of the bytes are somewhere in the process, be they ours or the program's own, which
 * devices reach as well. System calls: one for 4 MiB. */
bool tuttiHostIsThere(const void *ptr, size_t bytes);

/* ---- hints about memory ---- */
enum { TT_HINT_HOST = -1, TT_HINT_NOWHERE = -2 }; /* beside device numbers */
struct tt_hints {
    bool read_mostly;
    int preferred, prefetched;
    uint64_t accessed_by[1024 / 64]; /* bit per device */
    bool accessed_by_host;
};
struct tt_hint {
    enum { TT_HINT_READ_MOSTLY, TT_HINT_PREFERRED, TT_HINT_PREFETCHED, TT_HINT_ACCESSED_BY } kind;
    int location;
    bool on; /* else taken back */
};
/* For all pages that the range touches; 2. Managed memory loses its hints when it is freed. */
int tuttiHostHint(const void *ptr, size_t bytes, const struct tt_hint *hint);
/* The hints that all pages of the range have in common. */
void tuttiHostHints(const void *ptr, size_t bytes, struct tt_hints *hints_out);

#pragma GCC visibility pop
