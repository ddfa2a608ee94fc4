/* Blocks of memory without an address, each a memfd of its own. A block dies when its handles are
 * released and nothing maps it. */
#include "vmm_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TT_LOCATION_DEVICE = 1 }; /* enum CUmemLocationType */

/* ---- blocks; lock held ---- */

struct tt_host_vmm_block *tt_host_vmm_find_block(uint64_t id)
{
    struct tt_host_vmm_block *block = tt_host.vmm.blocks;
    while (block && (block->id != id || block->handles == 0)) {
        block = block->next;
    }
    return block;
}

void tt_host_vmm_reclaim_block(struct tt_host_vmm_block *block)
{
    if (block->handles || block->mappings) return;
    struct tt_host_vmm_block **link = &tt_host.vmm.blocks;
    while (*link != block) {
        link = &(*link)->next;
    }
    *link = block->next;
    if (block->charged)
        tt_host_arena_credit(tt_host_arena_device(block->info.device), block->info.bytes);
    close(block->fd);
    free(block);
}

/* ---- blocks ---- */

/* Takes the descriptor on success. */
static int add_block(int fd, const struct tt_block_info *info, bool charged, uint64_t *block_out)
{
    struct stat facts;
    struct tt_host_vmm_block *block = calloc(1, sizeof(*block));
    int rc = block ? tt_host_vmm_lock() : TT_HOST_OUT_OF_MEMORY;
    if (rc) {
        free(block);
        return rc;
    }
    block->fd = fd;
    if (!fstat(fd, &facts)) block->file = facts.st_ino;
    block->info = *info;
    block->charged = charged;
    block->handles = 1;
    block->id = ++tt_host.vmm.last_id;
    block->next = tt_host.vmm.blocks;
    tt_host.vmm.blocks = block;
    *block_out = block->id;
    tt_host_vmm_unlock();
    return TT_HOST_OK;
}

/* The file's name says to other processes what the block is. */
static int make_file(const struct tt_block_info *info, const struct tt_device_info *device)
{
    char name[96];
    int number = info->on_host ? info->number : device->nvml_index;
    snprintf(name, sizeof(name), "tutti-block:%d:%d:%u:%d", info->location, number, info->share,
             info->rdma);
    return tt_host_memory_file(name, info->bytes);
}

int tuttiHostBlockCreate(const struct tt_block_info *info, uint64_t *block_out)
{
    struct tt_device_info device;
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    if (info->bytes == 0 || info->bytes % TT_BLOCK_GRAIN) return TT_HOST_INVALID_VALUE;
    int rc = tuttiHostDeviceInfo(info->device, &device);
    if (rc) return rc;
    struct tt_host_arena *arena = info->on_host ? NULL : tt_host_arena_device(info->device);
    if (!info->on_host && (!arena || !tt_host_arena_charge(arena, info->bytes)))
        return TT_HOST_OUT_OF_MEMORY;
    int fd = make_file(info, &device);
    const bool large = errno == ENOMEM || errno == ENOSPC || errno == EFBIG || errno == EINVAL;
    if (fd < 0) rc = large ? TT_HOST_OUT_OF_MEMORY : TT_HOST_OPERATING_SYSTEM;
    if (!rc) rc = add_block(fd, info, arena != NULL, block_out);
    if (rc && fd >= 0) close(fd);
    if (rc && arena) tt_host_arena_credit(arena, info->bytes);
    return rc;
}

int tuttiHostBlockRelease(uint64_t id)
{
    int rc = tt_host_vmm_lock();
    if (rc) return rc;
    struct tt_host_vmm_block *block = tt_host_vmm_find_block(id);
    if (block) {
        block->handles--;
        tt_host_vmm_reclaim_block(block);
    }
    tt_host_vmm_unlock();
    return block ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

int tuttiHostBlockRetain(uint64_t id)
{
    int rc = tt_host_vmm_lock();
    if (rc) return rc;
    struct tt_host_vmm_block *block =
        tt_host.vmm.blocks; /* a mapped block may have no handle left */
    while (block && block->id != id) {
        block = block->next;
    }
    if (block) block->handles++;
    tt_host_vmm_unlock();
    return block ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

int tuttiHostBlockInfo(uint64_t id, struct tt_block_info *info_out)
{
    int rc = tt_host_vmm_lock();
    if (rc) return rc;
    const struct tt_host_vmm_block *block = tt_host_vmm_find_block(id);
    if (block) *info_out = block->info;
    tt_host_vmm_unlock();
    return block ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

int tuttiHostBlockExport(uint64_t id, int *fd_out)
{
    int fd = -1;
    int rc = tt_host_vmm_lock();
    if (rc) return rc;
    const struct tt_host_vmm_block *block = tt_host_vmm_find_block(id);
    if (block) fd = dup(block->fd);
    tt_host_vmm_unlock();
    if (!block) return TT_HOST_INVALID_VALUE;
    if (fd < 0) return TT_HOST_OPERATING_SYSTEM;
    *fd_out = fd;
    return TT_HOST_OK;
}

static int device_numbered(int nvml_index)
{
    for (int d = 0; d < tt_host_device_count(); d++) {
        if (tt_host_device_info(d)->nvml_index == nvml_index) return d;
    }
    return tuttiHostGetDevice();
}

/* What make_file() wrote; false for other files. */
static bool read_file(int fd, struct tt_block_info *info)
{
    char path[64];
    char target[128] = "";
    int rdma = 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd < 0 || readlink(path, target, sizeof(target) - 1) < 0) return false;
    /* NOLINTNEXTLINE(cert-err34-c): a number that does not fit is not ours */
    if (sscanf(target, "/memfd:tutti-block:%d:%d:%u:%d", &info->location, &info->number,
               &info->share, &rdma) != 4)
        return false;
    info->rdma = rdma != 0;
    return true;
}

int tuttiHostBlockImport(int fd, uint64_t *block_out)
{
    struct stat facts;
    struct tt_block_info info = {.device = tuttiHostGetDevice()};
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    if (!read_file(fd, &info) || fstat(fd, &facts)) return TT_HOST_INVALID_VALUE;
    info.on_host = info.location != TT_LOCATION_DEVICE;
    if (!info.on_host) info.device = info.number = device_numbered(info.number);
    info.bytes = (size_t)facts.st_size;
    if (info.bytes == 0 || info.bytes % TT_BLOCK_GRAIN) return TT_HOST_INVALID_VALUE;
    int own = dup(fd);
    if (own < 0) return TT_HOST_OPERATING_SYSTEM;
    int rc = add_block(own, &info, false, block_out); /* it counts where it was made */
    if (rc) close(own);
    return rc;
}
