/* Preloaded: writes down each variable of NCCL's or ours that libnccl asks the environment for. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) char *getenv(const char *name)
{
    char *(*next)(const char *) = NULL;
    void *address = dlsym(RTLD_NEXT, "getenv");
    memcpy(&next, &address, sizeof(next));
    const char *folder = next("ENVSPY_FOLDER");
    Dl_info from;
    if (!folder || (strncmp(name, "NCCL_", 5) != 0 && strncmp(name, "TUTTI_", 6) != 0))
        return next(name);
    if (!dladdr(__builtin_return_address(0), &from) || !strstr(from.dli_fname, "libnccl.so"))
        return next(name);
    char path[512];
    snprintf(path, sizeof(path), "%s/spy.%d", folder, (int)getpid());
    FILE *out = fopen(path, "ae");
    if (out) fprintf(out, "%s\n", name);
    if (out) fclose(out);
    return next(name);
}
