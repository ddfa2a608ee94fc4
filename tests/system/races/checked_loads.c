/* Sound programs under TUTTI_CHECK=race:exit that import neither read nor write: libraries come and
 * go whose constructors call the runtime while another thread does; the kernel fills what is not in
 * flight of a page, and by a host function what work behind it uses. The path of the library is the
 * argument. */
#include "checked_loads.h"

#include "cuda_runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { BYTES = 4096, LOADS = 100, TURNS = 200 };

static void expect(int rc, int line, const char *call)
{
    if (!rc) return;
    fprintf(stderr, "line %d: %s: %d\n", line, call, rc);
    exit(2);
}
#define OK(call) expect((int)(call), __LINE__, #call)
#define CHECK(what) OK(!(what))

char *checked_loads_device;
static char *pinned;
static cudaStream_t stream;
static _Atomic bool loaded;
static _Atomic int filled;

static void *fill(void *arg)
{
    cudaStream_t own;
    (void)arg;
    OK(cudaStreamCreate(&own));
    while (!loaded)
        OK(cudaMemsetAsync(checked_loads_device, 1, 64, own));
    OK(cudaStreamSynchronize(own));
    return NULL;
}

static void load(const char *path)
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, fill, NULL));
    for (int i = 0; i < LOADS; i++) {
        void *library = dlopen(path, RTLD_NOW);
        CHECK(library && !dlclose(library));
    }
    loaded = true;
    OK(pthread_join(thread, NULL));
}

/* Never a system call that a closed page makes fail, nor more than a few faults at one place. */
static void fill_neighbours(void)
{
    char *half = pinned + BYTES / 2;
    for (int turn = 0; turn < 10 * TURNS; turn++) {
        OK(cudaMemcpyAsync(pinned, checked_loads_device, 64, cudaMemcpyDefault, stream));
        half[0]++;
        CHECK(getrandom(half + 1, 100, 0) == 100 && getcwd(half + 101, BYTES / 4));
    }
    OK(cudaStreamSynchronize(stream));
}

static void fill_all(void *arg)
{
    filled += getrandom(arg, 256, 0) == 256;
}

static void fill_in_order(void)
{
    for (int turn = 0; turn < TURNS; turn++) {
        OK(cudaLaunchHostFunc(stream, fill_all, pinned));
        OK(cudaMemcpyAsync(checked_loads_device, pinned, BYTES, cudaMemcpyDefault, stream));
        OK(cudaMemcpyAsync(pinned, checked_loads_device, BYTES, cudaMemcpyDefault, stream));
        OK(cudaStreamSynchronize(stream));
    }
    CHECK(filled == TURNS);
}

int main(int argc, char **argv)
{
    setenv("TUTTI_CHECK", "race:exit", 1);
    CHECK(argc == 2);
    OK(cudaMallocHost((void **)&pinned, BYTES));
    OK(cudaMalloc((void **)&checked_loads_device, 2 * BYTES));
    OK(cudaMemset(checked_loads_device, 1, 2 * BYTES));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    load(argv[1]);
    fill_neighbours();
    fill_in_order();
    return 0;
}
