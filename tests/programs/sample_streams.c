/* A pipeline over several streams: chunks go to the device, are worked on and come back, in each
 * stream in order, and the streams beside each other. */
#include "sample.h"

enum { STREAMS = 4, CHUNKS = 32, CHUNK = 64 * 1024 };

struct job {
    unsigned char *chunk;
    unsigned char add;
};

static void add_to_all(void *arg)
{
    struct job *job = (struct job *)arg;
    for (int i = 0; i < CHUNK; i++) {
        job->chunk[i] = (unsigned char)(job->chunk[i] + job->add);
    }
}

int main(void)
{
    static struct job jobs[CHUNKS];
    unsigned char *in = NULL, *out = NULL, *device = NULL;
    cudaStream_t streams[STREAMS];
    int count = 0, least = 0, greatest = 0;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(cudaSetDevice(count - 1));
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaMallocHost((void **)&in, CHUNKS * CHUNK));
    CHECK(cudaMallocHost((void **)&out, CHUNKS * CHUNK));
    CHECK(cudaMalloc((void **)&device, CHUNKS * CHUNK));
    for (int s = 0; s < STREAMS; s++) {
        CHECK(cudaStreamCreateWithPriority(&streams[s], cudaStreamNonBlocking,
                                           s % 2 ? least : greatest));
    }
    for (int i = 0; i < CHUNKS * CHUNK; i++) {
        in[i] = (unsigned char)(i * 7);
    }
    for (int c = 0; c < CHUNKS; c++) {
        cudaStream_t stream = streams[c % STREAMS];
        unsigned char *part = device + c * CHUNK;
        jobs[c].chunk = out + c * CHUNK;
        jobs[c].add = (unsigned char)c;
        CHECK(cudaMemcpyAsync(part, in + c * CHUNK, CHUNK, cudaMemcpyHostToDevice, stream));
        CHECK(cudaMemsetAsync(part, 0xee, 16, stream));
        CHECK(cudaMemcpyAsync(jobs[c].chunk, part, CHUNK, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaLaunchHostFunc(stream, add_to_all, &jobs[c]));
    }
    for (int s = 0; s < STREAMS; s++) {
        CHECK(cudaStreamSynchronize(streams[s]));
        expect(cudaStreamQuery(streams[s]) == cudaSuccess, "stream is idle");
        CHECK(cudaStreamDestroy(streams[s]));
    }
    for (int c = 0; c < CHUNKS; c++) {
        for (int i = 0; i < CHUNK; i++) {
            unsigned char want = i < 16 ? 0xee : (unsigned char)((c * CHUNK + i) * 7);
            expect(out[c * CHUNK + i] == (unsigned char)(want + c), "chunk");
        }
    }
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(in));
    CHECK(cudaFreeHost(out));
    printf("streams: ok\n");
    return 0;
}
