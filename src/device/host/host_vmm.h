/* CUDA's virtual memory management: blocks of memory without an address (each a memfd of its own),
 * reserved addresses without memory, and mappings between them. Results are CUDA's numbers. Any
 * thread. Mapped blocks are device memory for the faces and foreign memory for libnccl. */
#pragma once

#include "device/device.h"

#pragma GCC visibility push(default)

enum { TT_BLOCK_GRAIN = 2 << 20 }; /* sizes and addresses are multiples of it */

enum { TT_MAP_HOST = -1 }; /* beside device numbers, where access is meant */

struct tt_block_info {
    int device;
    bool on_host;   /* host memory: counts against no device */
    unsigned share; /* enum CUmemAllocationHandleType bits */
    size_t bytes;
    int location, number; /* enum CUmemLocationType and its id: kept to be asked for ... */
    bool rdma;            /* ... as is this request */
};

/* 1: size not a multiple of the grain, or 0. 2: the device's memory is exhausted. */
int tuttiHostBlockCreate(const struct tt_block_info *info, uint64_t *block_out);
int tuttiHostBlockRelease(uint64_t block); /* its memory lives while it is mapped */
int tuttiHostBlockInfo(uint64_t block, struct tt_block_info *info_out);
int tuttiHostBlockExport(uint64_t block, int *fd_out); /* a duplicate, the caller's */
/* Import a block. The descriptor is not closed; 1 when it is not a block's descriptor. The block's
 * device is the one it was made for, or the thread's when that one is not visible here. */
int tuttiHostBlockImport(int fd, uint64_t *block_out);

int tuttiHostReserve(size_t bytes, size_t align, void *hint, void **ptr_out); /* no access */
int tuttiHostUnreserve(void *ptr, size_t bytes); /* 1: not a whole reservation, or mapped */
struct tt_reserved {
    char *base;
    size_t bytes;
};
/* The reservation that holds ptr, mapped there or not. False: none. One load when there are none.
 */
bool tuttiHostReserved(const void *ptr, struct tt_reserved *reserved_out);
bool tuttiHostAnyReserved(void);
int tuttiHostMap(void *ptr, size_t bytes, size_t offset, uint64_t block); /* no access yet */
/* Unmap whole mappings. Never waits: work that was queued before may use the pages until it is
 * done. */
int tuttiHostUnmap(void *ptr, size_t bytes);
/* Set the access of a device, or TT_MAP_HOST, to whole mappings: 0 none, 1 read, 3 read and write.
 * All devices are this process, so the pages allow the union of all accesses; work that was queued
 * before keeps its access. */
int tuttiHostMapAccess(void *ptr, size_t bytes, int device, int access);
/* 1: nothing is mapped there. */
int tuttiHostMapAccessGet(const void *ptr, int device, int *access_out);

struct tt_mapped {
    char *base;
    size_t bytes;
    int access; /* the widest of all devices and the host */
    uint64_t block;
    struct tt_block_info info;
};
/* The mapping that holds ptr. False: none. One load when there are none. */
bool tuttiHostMapped(const void *ptr, struct tt_mapped *mapped_out);
int tuttiHostBlockRetain(uint64_t block); /* one more tuttiHostBlockRelease() is due */

#pragma GCC visibility pop
