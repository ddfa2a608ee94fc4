/* Before cuInit(), or a call of the runtime, every function of the driver says that it was not
 * initialised, whatever it is given; those that need no driver work.
 * usage: driver_start LIST [RUNTIME]   LIST: exports/driver.txt; RUNTIME starts instead of cuInit()
 */
#define CONFORM_DRIVER
#include "conform.h"

#include <dlfcn.h>

typedef CUresult any_function(size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t);

/* The rest has no need of a driver. */
static int needs_start(const char *symbol)
{
    static const char *const rest[] = {"cuInit",           "cuDriverGetVersion",
                                       "cuGetErrorName",   "cuGetErrorString",
                                       "cuGetProcAddress", "cuGetProcAddress_v2"};
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
        if (!strcmp(symbol, rest[i])) return 0;
    }
    return 1;
}

static int refuse(const char *symbol)
{
    any_function *function = NULL;
    void *found = dlsym(RTLD_DEFAULT, symbol);
    memcpy(&function, &found, sizeof(function));
    if (!function || !needs_start(symbol)) return 0;
    CUresult rc = function(0, 0, 0, 0, 0, 0, 0, 0);
    conform(rc == CUDA_ERROR_NOT_INITIALIZED, __LINE__, symbol, CUDA_ERROR_NOT_INITIALIZED,
            (int)rc);
    return 1;
}

static void every_function(const char *path)
{
    char line[256], name[80], symbol[80], twin[80];
    int version, count = 0;
    FILE *file = fopen(path, "r");
    HOLDS(file);
    while (file && fgets(line, sizeof(line), file)) {
        int parts = sscanf(line, "%79s %d %79s %79s", name, &version, symbol, twin);
        if (line[0] == '#' || parts < 3) continue;
        count += refuse(symbol);
        if (parts == 4) count += refuse(twin);
    }
    if (file) fclose(file);
    HOLDS(count > 300);
}

static void without_a_driver(void)
{
    const char *text = NULL;
    void *function = NULL;
    int version = 0;
    WORKS(cuDriverGetVersion(&version));
    WORKS(cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &text));
    HOLDS(!strcmp(text, "CUDA_ERROR_NOT_INITIALIZED"));
    WORKS(cuGetErrorString(CUDA_ERROR_NOT_INITIALIZED, &text));
    WORKS(cuGetProcAddress("cuInit", &function, 12000, 0, NULL));
}

static void start(const char *runtime)
{
    int (*release)(void *ptr) = NULL;
    if (!runtime) {
        ANSWERS(CUDA_ERROR_INVALID_VALUE, cuInit(1)); /* starts nothing */
        ANSWERS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(NULL));
        WORKS(cuInit(0));
        return;
    }
    void *library = dlopen(runtime, RTLD_NOW);
    void *found = library ? dlsym(library, "cudaFree") : NULL;
    memcpy(&release, &found, sizeof(release));
    ANSWERS(CUDA_ERROR_NOT_INITIALIZED,
            cuDeviceGetCount(NULL)); /* that it is there is not enough */
    HOLDS(release && release(NULL) == 0);
}

int main(int argc, char **argv)
{
    int count = 0;
    CUdevice device = -1;
    CUdeviceptr ptr = 0;
    if (argc < 2) return 2;
    without_a_driver();
    every_function(argv[1]);
    start(argc > 2 ? argv[2] : NULL);
    WORKS(cuDeviceGetCount(&count));
    WORKS(cuDeviceGet(&device, count - 1));
    WORKS(cuMemAlloc(&ptr, 64));
    WORKS(cuMemFree(ptr));
    return finish("start of the driver");
}
