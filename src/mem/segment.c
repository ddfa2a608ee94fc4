/* The memory of the processes of a host: each publishes the segment (memfd) behind its device
 * memory, and maps those of its peers. It opens a peer's descriptor by way of /proc where the
 * kernel allows it, and else asks the peer for it.
 * A mapping counts only when the probe word is read through it; anything else means "not
 * reachable", which is no error: the network will do. */
#include "base/error.h"
#include "base/log.h"
#include "device/device.h"
#include "mem/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROBE_BYTES 4096

struct tt_segment_mapping {
    struct tt_segment_mapping *next;
    uint64_t process_id;
    char *base;
    size_t bytes;
    int users;
};

/* ---- fork ---- */

static void fork_prepare(void)
{
    pthread_mutex_lock(&tt_mem.segments.lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&tt_mem.segments.lock);
}

/* The child is another process: it publishes anew, and the mappings are not inherited
 * (MADV_DONTFORK). */
static void fork_child(void)
{
    pthread_mutex_init(&tt_mem.segments.lock, NULL);
    while (tt_mem.segments.mappings) {
        struct tt_segment_mapping *mapping = tt_mem.segments.mappings;
        tt_mem.segments.mappings = mapping->next;
        free(mapping);
    }
    tt_fd_unserve(tt_mem.segments.server);
    tt_mem.segments.server = NULL;
    tt_mem.segments.users = 0;
    memset(&tt_mem.segments.record, 0, sizeof(tt_mem.segments.record));
}

/* ---- the own segment ---- */

/* Choose name, key and probe word once per process. */
static ncclResult_t fill_record(const struct tt_range *range, struct tt_segment_record *record)
{
    void *probe = NULL;
    if (record->process_id) return ncclSuccess;
    if (tuttiHostControlAlloc(PROBE_BYTES, &probe)) {
        return tt_fail(ncclSystemError, "local segment: no control memory for the probe word");
    }
    uint64_t word[2];
    randombytes_buf(word, sizeof(word));
    randombytes_buf(record->served.key, sizeof(record->served.key));
    randombytes_buf(&record->probe, sizeof(record->probe));
    snprintf(record->served.name, sizeof(record->served.name), "tutti-%016llx",
             (unsigned long long)word[0]);
    memcpy(probe, &record->probe, sizeof(record->probe));
    record->probe_offset = (uint64_t)((char *)probe - range->base);
    record->bytes = range->bytes;
    struct stat stat;
    if (!fstat(range->memfd, &stat)) {
        record->fs_device = stat.st_dev;
        record->inode = stat.st_ino;
        record->pid = (int32_t)getpid();
        record->fd = range->memfd;
    }
    record->process_id = word[1] | 1;
    return ncclSuccess;
}

ncclResult_t tt_segment_publish(struct tt_segment_record *record_out)
{
    const struct tt_range *range = tuttiHostRange();
    struct tt_segment_record *record = &tt_mem.segments.record;
    ncclResult_t rc = ncclSuccess;
    memset(record_out, 0, sizeof(*record_out));
    if (sodium_init() < 0) return tt_fail(ncclSystemError, "libsodium: sodium_init failed");
    pthread_mutex_lock(&tt_mem.segments.lock);
    if (!range || range->memfd < 0) {
        if (!record->process_id) randombytes_buf(&record->process_id, sizeof(record->process_id));
    } else {
        rc = fill_record(range, record);
        if (!rc && tt_mem.segments.users == 0) {
            rc = tt_fd_serve(&record->served, range->memfd, range->bytes, &tt_mem.segments.server);
            if (rc == ncclInProgress) rc = ncclSuccess;
        }
    }
    if (!tt_mem.segments.hooked) { /* after the bootstrap: its lock is taken after ours */
        pthread_atfork(fork_prepare, fork_parent, fork_child);
        tt_mem.segments.hooked = true;
    }
    if (!rc) {
        tt_mem.segments.users++;
        *record_out = *record;
        if (!tt_mem.segments.server) record_out->bytes = 0;
    }
    pthread_mutex_unlock(&tt_mem.segments.lock);
    return rc;
}

void tt_segment_unpublish(void)
{
    pthread_mutex_lock(&tt_mem.segments.lock);
    if (tt_mem.segments.users > 0 && --tt_mem.segments.users == 0) {
        tt_fd_unserve(tt_mem.segments.server);
        tt_mem.segments.server = NULL;
    }
    pthread_mutex_unlock(&tt_mem.segments.lock);
}

/* ---- the peers' ---- */

/* The short way, without waking the peer: the kernel lets processes of one user open each other's
 * descriptors, unless it is told not to. Another process may have that number here (a namespace of
 * process numbers), so what is opened must be the very file, and the probe word follows. -1: ask.
 */
static int open_segment(const struct tt_segment_record *peer)
{
    char path[64];
    struct stat stat_buf;
    if (peer->pid <= 0 || peer->fd < 0) return -1;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)peer->pid, (int)peer->fd);
    bool same = !stat(path, &stat_buf) && S_ISREG(stat_buf.st_mode) &&
                stat_buf.st_dev == peer->fs_device && stat_buf.st_ino == peer->inode &&
                (uint64_t)stat_buf.st_size >= peer->bytes;
    return same ? open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
}

static int ask_for_segment(const struct tt_segment_record *peer, const char **why)
{
    uint64_t bytes = 0;
    struct stat stat_buf;
    int fd = tt_fd_fetch(&peer->served, &bytes, why);
    if (fd >= 0 && (bytes != peer->bytes || fstat(fd, &stat_buf) ||
                    (uint64_t)stat_buf.st_size < peer->bytes)) {
        *why = "its segment is smaller than it says";
        close(fd);
        fd = -1;
    }
    return fd;
}

static char *map_segment(const struct tt_segment_record *peer, const char **why)
{
    bool sane = peer->probe_offset % 8 == 0 && peer->bytes >= sizeof(uint64_t) &&
                peer->probe_offset <= peer->bytes - sizeof(uint64_t);
    if (!sane) {
        *why = "its record makes no sense";
        return NULL;
    }
    int fd = open_segment(peer);
    if (fd < 0) fd = ask_for_segment(peer, why);
    if (fd < 0) return NULL;
    char *base = mmap(NULL, peer->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) *why = strerror(errno);
    close(fd);
    if (base == MAP_FAILED) return NULL;
    uint64_t word;
    memcpy(&word, base + peer->probe_offset, sizeof(word));
    if (word != peer->probe) {
        *why = "the probe word differs";
        munmap(base, peer->bytes);
        return NULL;
    }
    madvise(base, peer->bytes, MADV_DONTDUMP);
    madvise(base, peer->bytes, MADV_DONTFORK);
    return base;
}

ncclResult_t tt_segment_map(const struct tt_segment_record *peer, char **base_out)
{
    const char *why = "it has no segment to map";
    char *base = NULL;
    ncclResult_t rc = ncclSuccess;
    pthread_mutex_lock(&tt_mem.segments.lock);
    struct tt_segment_mapping *mapping = tt_mem.segments.mappings;
    while (mapping && mapping->process_id != peer->process_id)
        mapping = mapping->next;
    if (mapping) {
        mapping->users++;
        base = mapping->base;
    } else if (peer->bytes) {
        base = map_segment(peer, &why);
        mapping = base ? calloc(1, sizeof(*mapping)) : NULL;
        if (mapping) {
            *mapping = (struct tt_segment_mapping){.next = tt_mem.segments.mappings,
                                                   .process_id = peer->process_id,
                                                   .base = base,
                                                   .bytes = peer->bytes,
                                                   .users = 1};
            tt_mem.segments.mappings = mapping;
        } else if (base) {
            munmap(base, peer->bytes);
            base = NULL;
            rc = tt_fail(ncclSystemError, "local segment: out of memory");
        }
    }
    pthread_mutex_unlock(&tt_mem.segments.lock);
    if (!base && !rc) {
        tt_info(TT_LOG_INIT | TT_LOG_P2P, "memory of process @%.39s cannot be mapped here: %s",
                peer->served.name, why);
    }
    *base_out = base;
    return rc;
}

void tt_segment_unmap(const struct tt_segment_record *peer)
{
    pthread_mutex_lock(&tt_mem.segments.lock);
    struct tt_segment_mapping **link = &tt_mem.segments.mappings;
    while (*link && (*link)->process_id != peer->process_id)
        link = &(*link)->next;
    struct tt_segment_mapping *mapping = *link;
    if (mapping && --mapping->users == 0) {
        *link = mapping->next;
        munmap(mapping->base, mapping->bytes);
        free(mapping);
    }
    pthread_mutex_unlock(&tt_mem.segments.lock);
}
