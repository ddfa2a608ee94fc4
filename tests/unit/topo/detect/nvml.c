/* Plays NVIDIA's management library from a table: "gpu BUSID SM GENERATION WIDTH C2C MBPS" and, for
 * the GPU before, "link TARGET" for each NVLink. The table is ROOT/nvml.txt of the recorded tree.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

struct gpu {
    char busid[20];
    unsigned int sm, generation, width, c2c, mbps;
    char link[18][20];
    unsigned int nlinks;
};

static struct gpu gpus[64];
static unsigned int ngpus;

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    char path[4096], line[256];
    (void)snprintf(path, sizeof(path), "%s/nvml.txt", getenv("HWLOC_FSROOT"));
    FILE *in = fopen(path, "r");
    ngpus = 0;
    while (in && fgets(line, sizeof(line), in)) {
        struct gpu *gpu = &gpus[ngpus];
        if (sscanf(line, "gpu %19s %u %u %u %u %u", gpu->busid, &gpu->sm, &gpu->generation,
                   &gpu->width, &gpu->c2c, &gpu->mbps) == 6) {
            gpu->nlinks = 0;
            ngpus++;
        } else if (ngpus) {
            gpu--;
            if (sscanf(line, "link %19s", gpu->link[gpu->nlinks]) == 1) gpu->nlinks++;
        }
    }
    if (in) (void)fclose(in);
    return in ? 0 : 9;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = ngpus;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct gpu **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct gpu **device)
{
    *device = &gpus[index];
    return index < ngpus ? 0 : 2;
}

struct pci {
    char legacy[16];
    unsigned int domain, bus, device, ids, subsystem;
    char busid[32];
};

/* The library says eight digits of domain, in upper case. */
static void say_busid(const char *busid, struct pci *pci)
{
    const char *zeros = strlen(busid) == 12 ? "0000" : "";
    (void)snprintf(pci->busid, sizeof(pci->busid), "%s%s", zeros, busid);
    for (char *c = pci->busid; *c; c++)
        if (*c >= 'a' && *c <= 'f') *c = (char)(*c - 'a' + 'A');
}

int nvmlDeviceGetPciInfo_v3(struct gpu *device, struct pci *pci);
int nvmlDeviceGetPciInfo_v3(struct gpu *device, struct pci *pci)
{
    say_busid(device->busid, pci);
    return 0;
}

int nvmlDeviceGetCudaComputeCapability(struct gpu *device, int *major, int *minor);
int nvmlDeviceGetCudaComputeCapability(struct gpu *device, int *major, int *minor)
{
    *major = (int)device->sm / 10;
    *minor = (int)device->sm % 10;
    return 0;
}

int nvmlDeviceGetCurrPcieLinkGeneration(struct gpu *device, unsigned int *generation);
int nvmlDeviceGetCurrPcieLinkGeneration(struct gpu *device, unsigned int *generation)
{
    *generation = device->generation;
    return device->generation ? 0 : 3;
}

int nvmlDeviceGetCurrPcieLinkWidth(struct gpu *device, unsigned int *width);
int nvmlDeviceGetCurrPcieLinkWidth(struct gpu *device, unsigned int *width)
{
    *width = device->width;
    return device->width ? 0 : 3;
}

int nvmlDeviceGetNvLinkCapability(struct gpu *device, unsigned int link, int what,
                                  unsigned int *can);
int nvmlDeviceGetNvLinkCapability(struct gpu *device, unsigned int link, int what,
                                  unsigned int *can)
{
    *can = what == 0;
    return link < device->nlinks ? 0 : 2;
}

int nvmlDeviceGetNvLinkState(struct gpu *device, unsigned int link, int *active);
int nvmlDeviceGetNvLinkState(struct gpu *device, unsigned int link, int *active)
{
    *active = link < device->nlinks;
    return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu *device, unsigned int link, struct pci *pci);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu *device, unsigned int link, struct pci *pci)
{
    say_busid(device->link[link], pci);
    return 0;
}

struct field {
    unsigned int id, scope;
    long long times[2];
    int type, status;
    unsigned long long value;
};

int nvmlDeviceGetFieldValues(struct gpu *device, int count, struct field *fields);
int nvmlDeviceGetFieldValues(struct gpu *device, int count, struct field *fields)
{
    for (int i = 0; i < count; i++) {
        fields[i].status = fields[i].id < 170 || fields[i].id > 172;
        fields[i].value = fields[i].id == 170   ? device->c2c
                          : fields[i].id == 171 ? 1
                                                : device->mbps;
    }
    return 0;
}
