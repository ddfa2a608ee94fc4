/* The libraries in a program that was not linked to them, as interpreters and plugin hosts load
 * them: dlopen() after start works, and takes little of the thread-local memory that is left then.
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <link.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 1000, TLS_LIMIT = 512 };

static int add_tls(struct dl_phdr_info *info, size_t bytes, void *sum)
{
    (void)bytes;
    bool ours = strstr(info->dlpi_name, "libnccl") || strstr(info->dlpi_name, "libtutti") ||
                strstr(info->dlpi_name, "libcuda");
    for (int i = 0; i < info->dlpi_phnum && ours; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) *(size_t *)sum += info->dlpi_phdr[i].p_memsz;
    return 0;
}

#define CALL(name, ...)                                                                            \
    do {                                                                                           \
        __typeof__(name) *call = NULL;                                                             \
        *(void **)&call = dlsym(RTLD_DEFAULT, #name);                                              \
        int rc = call ? (int)call(__VA_ARGS__) : -1;                                               \
        if (rc) return printf("%s: %d\n", #name, rc), 1;                                           \
    } while (0)

int main(void)
{
    static const char *const names[] = {"libcuda.so.1", "libcudart.so.13", "libnccl.so.2"};
    size_t tls = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!dlopen(names[i], RTLD_NOW | RTLD_GLOBAL)) return printf("%s\n", dlerror()), 1;
    dl_iterate_phdr(add_tls, &tls);
    printf("%zu bytes of thread-local memory\n", tls);
    if (tls > TLS_LIMIT) return 1;

    ncclComm_t comm = NULL;
    float *values = NULL, host[COUNT];
    CALL(cudaMalloc, (void **)&values, sizeof(host));
    CALL(ncclCommInitAll, &comm, 1, NULL);
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)i;
    CALL(cudaMemcpy, values, host, sizeof(host), cudaMemcpyHostToDevice);
    CALL(ncclAllReduce, values, values, (size_t)COUNT, ncclFloat, ncclSum, comm, NULL);
    CALL(cudaStreamSynchronize, NULL);
    CALL(cudaMemcpy, host, values, sizeof(host), cudaMemcpyDeviceToHost);
    CALL(ncclCommDestroy, comm);
    return host[COUNT - 1] != (float)(COUNT - 1);
}
