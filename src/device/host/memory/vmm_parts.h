/* State of virtual memory management, under one lock. Private to the files vmm*.c. */
#pragma once

#include "device/host/host_vmm.h"
#include "memory.h"

#include <sys/types.h>

struct tt_host_vmm_block {
    struct tt_host_vmm_block *next;
    uint64_t id;
    int fd;     /* owned */
    ino_t file; /* inode, which an imported block shares with its original */
    unsigned handles, mappings;
    bool charged; /* counted against the device's arena */
    struct tt_block_info info;
};

struct tt_host_reservation {
    struct tt_host_reservation *next;
    char *base;
    size_t bytes;
    bool gone; /* freed by the program; kept while pages linger */
};

struct tt_host_lingering {
    struct tt_host_lingering *next;
    struct tt_host_ends *ends; /* owned; the work that may use the pages */
    char *base;
    size_t bytes;
};

struct tt_host_mapping {
    struct tt_host_mapping *next;
    struct tt_host_vmm_block *block; /* counted by block->mappings */
    char *base;
    size_t bytes, offset;
    int access;                                /* the widest access of all devices */
    unsigned char by[TT_HOST_MAX_DEVICES + 1]; /* access per device; the last one: the host */
};

/* ---- vmm_pages.c ---- */
/* Error: 3 in a forked child, where a thread that does not exist may hold the lock. */
int tt_host_vmm_lock(void);
void tt_host_vmm_unlock(void);
/* All functions below are called with the lock held. */
static inline bool tt_host_vmm_overlap(const char *base, size_t bytes, const char *other,
                                       size_t other_bytes)
{
    return base < other + other_bytes && other < base + bytes;
}
bool tt_host_vmm_lingers(const char *base, size_t bytes);
const struct tt_host_mapping *tt_host_vmm_find_mapping(const char *ptr);
bool tt_host_vmm_is_mapped(const char *base, size_t bytes); /* any of it */
bool tt_host_vmm_is_reserved(const char *base, size_t bytes);
/* Protect the pages as the widest access allows; full access where pages linger. */
int tt_host_vmm_protect(const struct tt_host_mapping *one);
/* Make the pages of a range agree with the list of mappings, except lingering ones. */
void tt_host_vmm_refresh(char *base, size_t bytes);
/* *out: a new entry, owned by the caller; NULL: no work may use the pages. */
int tt_host_vmm_note_lingering(struct tt_host_lingering **out);
void tt_host_vmm_list_lingering(struct tt_host_lingering *lingering, char *base,
                                size_t bytes); /* takes */

/* ---- vmm_block.c ---- */
struct tt_host_vmm_block *tt_host_vmm_find_block(uint64_t id);
void tt_host_vmm_reclaim_block(
    struct tt_host_vmm_block *block); /* free it where nothing refers to it */
