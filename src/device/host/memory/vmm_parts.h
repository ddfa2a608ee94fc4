/* What the files of memory in parts share: the books, under one lock. Nobody else includes it. */
#pragma once

#include "device/host/host_vmm.h"
#include "memory.h"

#include <sys/types.h>

struct tt_host_vmm_block {
    struct tt_host_vmm_block *next;
    uint64_t id;
    int fd;     /* owned */
    ino_t file; /* of an imported one, and of the one that it comes from */
    unsigned handles, mappings;
    bool charged; /* to the device's arena */
    struct tt_block_info info;
};

struct tt_host_reservation {
    struct tt_host_reservation *next;
    char *base;
    size_t bytes;
    bool gone; /* the program's no more; its addresses are, while pages linger */
};

struct tt_host_lingering {
    struct tt_host_lingering *next;
    struct tt_host_ends *ends; /* owned; of the work that may use the pages */
    char *base;
    size_t bytes;
};

struct tt_host_mapping {
    struct tt_host_mapping *next;
    struct tt_host_vmm_block *block; /* counted by block->mappings */
    char *base;
    size_t bytes, offset;
    int access;                                /* the widest of them */
    unsigned char by[TT_HOST_MAX_DEVICES + 1]; /* per device; the last one: the host */
};

/* ---- vmm_pages.c ---- */
/* 3 in a forked child, whose locks may be held by threads that it does not have. */
int tt_host_vmm_lock(void);
void tt_host_vmm_unlock(void);
/* The rest with the lock held. */
static inline bool tt_host_vmm_overlap(const char *base, size_t bytes, const char *other,
                                       size_t other_bytes)
{
    return base < other + other_bytes && other < base + bytes;
}
bool tt_host_vmm_lingers(const char *base, size_t bytes);
const struct tt_host_mapping *tt_host_vmm_find_mapping(const char *ptr);
bool tt_host_vmm_is_mapped(const char *base, size_t bytes); /* any of it */
bool tt_host_vmm_is_reserved(const char *base, size_t bytes);
/* Give the pages what the widest access allows; everything where pages linger. */
int tt_host_vmm_protect(const struct tt_host_mapping *one);
/* Make the pages of a range what the books say, but for those that linger. */
void tt_host_vmm_refresh(char *base, size_t bytes);
/* *out: what lets pages linger, the caller's; NULL when there is no work that may use them. */
int tt_host_vmm_note_lingering(struct tt_host_lingering **out);
void tt_host_vmm_list_lingering(struct tt_host_lingering *lingering, char *base,
                                size_t bytes); /* takes */

/* ---- vmm_block.c ---- */
struct tt_host_vmm_block *tt_host_vmm_find_block(uint64_t id);
void tt_host_vmm_reclaim_block(struct tt_host_vmm_block *block); /* it may be over */
