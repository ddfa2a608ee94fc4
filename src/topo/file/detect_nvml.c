/* GPUs by NVML, loaded at run time. Layouts and numbers of its interface are public facts; only
 * what is asked for here is declared. */
#include "detect_nvml.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { LINK_CAN_P2P = 0, FIELD_C2C_COUNT = 170, FIELD_C2C_STATUS = 171, FIELD_C2C_MBPS = 172 };

typedef struct nvmlDevice_st *device_t;

struct pci_info {
    char legacy[16];
    unsigned int domain, bus, device, ids, subsystem;
    char busid[TT_NVML_BUSID];
};

struct field {
    unsigned int id, scope;
    long long time_usec, latency_usec;
    int type, status;
    union {
        unsigned int u32;
        unsigned long long u64;
        double real;
    } value;
};

struct library { /* 0 is success everywhere */
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned int *count);
    int (*by_index)(unsigned int index, device_t *device);
    int (*pci)(device_t device, struct pci_info *info);
    int (*capability)(device_t device, int *major, int *minor);
    /* may be missing in old drivers */
    int (*generation)(device_t device, unsigned int *generation);
    int (*width)(device_t device, unsigned int *width);
    int (*link_can)(device_t device, unsigned int link, int what, unsigned int *can);
    int (*link_state)(device_t device, unsigned int link, int *active);
    int (*link_remote)(device_t device, unsigned int link, struct pci_info *info);
    int (*fields)(device_t device, int count, struct field *fields);
};

struct wanted {
    const char *name;
    size_t offset;
    bool needed;
};
static const struct wanted wanted[] = {
    {"nvmlInit_v2", offsetof(struct library, init), true},
    {"nvmlShutdown", offsetof(struct library, shutdown), true},
    {"nvmlDeviceGetCount_v2", offsetof(struct library, count), true},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct library, by_index), true},
    {"nvmlDeviceGetPciInfo_v3", offsetof(struct library, pci), true},
    {"nvmlDeviceGetCudaComputeCapability", offsetof(struct library, capability), true},
    {"nvmlDeviceGetCurrPcieLinkGeneration", offsetof(struct library, generation), false},
    {"nvmlDeviceGetCurrPcieLinkWidth", offsetof(struct library, width), false},
    {"nvmlDeviceGetNvLinkCapability", offsetof(struct library, link_can), false},
    {"nvmlDeviceGetNvLinkState", offsetof(struct library, link_state), false},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(struct library, link_remote), false},
    {"nvmlDeviceGetFieldValues", offsetof(struct library, fields), false},
};

static bool bind(void *handle, struct library *nvml)
{
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *symbol = dlsym(handle, wanted[i].name);
        if (!symbol && wanted[i].needed) return false;
        memcpy((char *)nvml + wanted[i].offset, &symbol, sizeof(symbol));
    }
    return true;
}

/* "00000000:07:00.0" and upper case become "0000:07:00.0". Invisible far ends keep their shape. */
static void take_busid(const struct pci_info *info, char busid[TT_NVML_BUSID])
{
    char from[TT_NVML_BUSID + 1] = "";
    memcpy(from, info->busid, TT_NVML_BUSID);
    size_t skip = strlen(from) == 16 && strncmp(from, "0000", 4) == 0 ? 4 : 0;
    size_t length = strlen(from + skip);
    if (length >= TT_NVML_BUSID) length = TT_NVML_BUSID - 1;
    for (size_t i = 0; i < length; i++)
        busid[i] = (char)tolower((unsigned char)from[skip + i]);
    busid[length] = 0;
}

static void ask_nvlinks(const struct library *nvml, device_t device, struct tt_nvml_gpu *gpu)
{
    struct pci_info far;
    if (!nvml->link_can || !nvml->link_state || !nvml->link_remote) return;
    for (unsigned int link = 0; link < TT_NVML_LINKS; link++) {
        unsigned int can = 0;
        int active = 0;
        memset(&far, 0, sizeof(far));
        if (nvml->link_can(device, link, LINK_CAN_P2P, &can) || !can) continue;
        if (nvml->link_state(device, link, &active) || !active) continue;
        if (nvml->link_remote(device, link, &far)) continue;
        take_busid(&far, gpu->nvlink[gpu->nnvlinks++]);
    }
}

static unsigned int ask_field(const struct library *nvml, device_t device, unsigned int id,
                              unsigned int scope)
{
    struct field field = {.id = id, .scope = scope};
    if (nvml->fields(device, 1, &field) || field.status) return 0;
    return field.value.u32;
}

static void ask_c2c(const struct library *nvml, device_t device, struct tt_nvml_gpu *gpu)
{
    unsigned int count = nvml->fields ? ask_field(nvml, device, FIELD_C2C_COUNT, 0) : 0;
    for (unsigned int link = 0; link < count && link < TT_NVML_LINKS; link++) {
        if (!ask_field(nvml, device, FIELD_C2C_STATUS, link)) continue;
        gpu->c2c_count++;
        gpu->c2c_mbps = (int)ask_field(nvml, device, FIELD_C2C_MBPS, link);
    }
}

static bool ask_gpu(const struct library *nvml, unsigned int index, struct tt_nvml_gpu *gpu)
{
    device_t device = NULL;
    struct pci_info info;
    int major = 0, minor = 0;
    unsigned int value = 0;
    memset(gpu, 0, sizeof(*gpu));
    memset(&info, 0, sizeof(info));
    if (nvml->by_index(index, &device) || nvml->pci(device, &info) ||
        nvml->capability(device, &major, &minor))
        return false;
    take_busid(&info, gpu->busid);
    gpu->sm = major * 10 + minor;
    if (nvml->generation && !nvml->generation(device, &value)) gpu->link_generation = (int)value;
    if (nvml->width && !nvml->width(device, &value)) gpu->link_width = (int)value;
    ask_nvlinks(nvml, device, gpu);
    if (gpu->sm >= 90) ask_c2c(nvml, device, gpu);
    return true;
}

int tt_nvml_each(void (*call)(void *context, int index, const struct tt_nvml_gpu *gpu),
                 void *context, int *silent_out)
{
    struct library nvml;
    unsigned int count = 0;
    int found = 0;
    *silent_out = 0;
    void *handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return 0;
    memset(&nvml, 0, sizeof(nvml));
    if (!bind(handle, &nvml) || nvml.init()) {
        dlclose(handle);
        return 0;
    }
    if (nvml.count(&count)) count = 0;
    for (unsigned int index = 0; index < count; index++) {
        struct tt_nvml_gpu gpu;
        if (ask_gpu(&nvml, index, &gpu)) {
            call(context, (int)index, &gpu);
            found++;
        } else {
            (*silent_out)++;
        }
    }
    nvml.shutdown();
    dlclose(handle);
    return found;
}
