/* Events: the host goes on while copies run, streams wait for one another across devices, and times
 * between records add up. */
#include "sample.h"

enum { BYTES = 16 << 20, STAGES = 8 };

static void note(void *arg)
{
    int **next = (int **)arg;
    **next = 1;
}

int main(void)
{
    char *from = NULL, *to = NULL;
    cudaStream_t first = NULL, second = NULL;
    cudaEvent_t start = NULL, stop = NULL, stage[STAGES];
    float whole = 0, sum = 0, part = 0;
    unsigned long spins = 0;
    int done = 0, count = 0, *where = &done;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(cudaMallocHost((void **)&from, BYTES));
    CHECK(cudaMalloc((void **)&to, BYTES));
    memset(from, 5, BYTES);
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreateWithFlags(&stop, cudaEventBlockingSync));
    CHECK(cudaStreamCreate(&first));
    CHECK(cudaEventRecord(start, first));
    for (int i = 0; i < STAGES; i++) {
        CHECK(cudaMemcpyAsync(to, from, BYTES, cudaMemcpyHostToDevice, first));
        CHECK(cudaEventCreate(&stage[i]));
        CHECK(cudaEventRecord(stage[i], first));
    }
    CHECK(cudaEventRecord(stop, first));
    while (cudaEventQuery(stop) == cudaErrorNotReady) {
        spins++; /* the host has time of its own */
    }
    CHECK(cudaGetLastError() == cudaErrorNotReady ? cudaSuccess : cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&whole, start, stop));
    for (int i = 0; i < STAGES; i++) {
        CHECK(cudaEventElapsedTime(&part, i ? stage[i - 1] : start, stage[i]));
        expect(part >= 0, "time does not run backwards");
        sum += part;
        if (i) CHECK(cudaEventDestroy(stage[i - 1]));
    }
    expect(sum <= whole * 1.001F + 0.001F, "the parts are not more than the whole");
    CHECK(cudaSetDevice(count > 1 ? 1 : 0)); /* another device waits for the first one's event */
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaLaunchHostFunc(first, note, &where));
    CHECK(cudaSetDevice(0));
    CHECK(cudaEventRecord(stop, first));
    CHECK(cudaStreamWaitEvent(second, stop, 0));
    CHECK(cudaStreamSynchronize(second));
    expect(done == 1, "the second stream came after the first");
    CHECK(cudaEventDestroy(stage[STAGES - 1]));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    CHECK(cudaStreamDestroy(first));
    CHECK(cudaStreamDestroy(second));
    CHECK(cudaFree(to));
    CHECK(cudaFreeHost(from));
    printf("events: ok\n");
    return spins == 0xffffffff;
}
