/* A device room for tests of comm/: eight devices, one range per process (sparse), no streams. */
#include "device/device.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANGE_BYTES (4ull << 30)
#define DEVICES 8

static struct tt_range range;
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int current;
static pid_t owner;

static void reserve(void)
{
    int fd = memfd_create("fake-range", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)RANGE_BYTES)) return;
    range.base = mmap(NULL, RANGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    range.bytes = RANGE_BYTES;
    range.memfd = fd;
    used = 0;
    owner = getpid();
}

const struct tt_range *tuttiHostRange(void)
{
    pthread_mutex_lock(&lock);
    if (owner != getpid()) reserve(); /* a forked rank gets its own */
    pthread_mutex_unlock(&lock);
    return range.base ? &range : NULL;
}

int tuttiHostControlAlloc(size_t bytes, void **ptr_out)
{
    if (!tuttiHostRange()) return 2;
    pthread_mutex_lock(&lock);
    int rc = used + bytes > RANGE_BYTES ? 2 : 0;
    if (!rc) {
        *ptr_out = range.base + used;
        used += (bytes + 4095) / 4096 * 4096;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

void tuttiHostControlFree(void *ptr, size_t bytes)
{
    pthread_mutex_lock(&lock);
    if ((char *)ptr + (bytes + 4095) / 4096 * 4096 == range.base + used) {
        used = (size_t)((char *)ptr - range.base);
    }
    pthread_mutex_unlock(&lock);
}

int tuttiHostDeviceInfo(int device, struct tt_device_info *info)
{
    if (device < 0 || device >= DEVICES) return 101;
    memset(info, 0, sizeof(*info));
    snprintf(info->bus_id, sizeof(info->bus_id), "0000:%02x:00.0", device + 1);
    info->uuid[0] = (unsigned char)(device + 1);
    info->nvml_index = device;
    return 0;
}

int tuttiHostGetDevice(void)
{
    return current;
}

int tuttiHostSetDevice(int device)
{
    if (device < 0 || device >= DEVICES) return 101;
    current = device;
    return 0;
}

void tuttiHostOversubscribe(void) {}

void tuttiHostFail(const char *status)
{
    (void)status;
}

int tuttiHostCores(void)
{
    return 2;
}

bool tuttiHostHelp(void)
{
    return false;
}

int tuttiHostDeviceCount(void)
{
    return DEVICES;
}

void tuttiHostHold(const struct tt_hold *hold)
{
    (void)hold;
}

void tuttiHostLet(const void *holder)
{
    (void)holder;
}
