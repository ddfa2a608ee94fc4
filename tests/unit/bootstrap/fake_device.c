/* A device room of one small range: enough for descriptors between processes. */
#include "device/device.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANGE_BYTES (1u << 20)

static struct tt_range range;
static size_t used;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void reserve(void)
{
    int fd = memfd_create("fake-range", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, RANGE_BYTES)) return;
    range.base = mmap(NULL, RANGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    range.bytes = RANGE_BYTES;
    range.memfd = fd;
}

const struct tt_range *tuttiHostRange(void)
{
    pthread_once(&once, reserve);
    return range.base ? &range : NULL;
}

int tuttiHostControlAlloc(size_t bytes, void **ptr_out)
{
    if (!tuttiHostRange() || used + bytes > RANGE_BYTES) return 2;
    *ptr_out = range.base + used;
    used += (bytes + 4095) / 4096 * 4096;
    return 0;
}

bool tuttiHostHelp(void)
{
    return false;
}

/* Memory that is freed begins with a 1 from then on. */
void tuttiHostControlFree(void *ptr, size_t bytes)
{
    (void)bytes;
    __atomic_store_n((int *)ptr, 1, __ATOMIC_RELEASE);
}

int tuttiHostDeviceCount(void)
{
    return 0;
}

int tuttiHostDeviceInfo(int device, struct tt_device_info *info)
{
    (void)device;
    (void)info;
    return 1;
}

void tuttiHostFail(const char *why)
{
    (void)why;
}

void tuttiHostHold(const struct tt_hold *hold)
{
    (void)hold;
}

void tuttiHostLet(const void *owner)
{
    (void)owner;
}
