/* The same work three times: as a captured graph that forks and joins, as a graph built by hand,
 * and as an executable that is updated from another graph. */
#include "sample.h"

enum { COUNT = 1024 };

static int *input, *device, *result;

static void sum_up(void *arg)
{
    int *sum = (int *)arg;
    for (int i = 0; i < COUNT; i++) {
        *sum += result[i];
    }
}

static cudaGraph_t captured(int *sum)
{
    cudaStream_t stream = NULL, side = NULL;
    cudaEvent_t fork = NULL, join = NULL;
    cudaGraph_t graph = NULL;
    size_t half = COUNT / 2 * sizeof(int);
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreate(&side));
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(side, fork, 0));
    CHECK(cudaMemcpyAsync(device, input, half, cudaMemcpyHostToDevice, stream));
    CHECK(
        cudaMemcpyAsync(device + COUNT / 2, input + COUNT / 2, half, cudaMemcpyHostToDevice, side));
    CHECK(cudaEventRecord(join, side));
    CHECK(cudaStreamWaitEvent(stream, join, 0));
    CHECK(cudaMemcpyAsync(result, device, 2 * half, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaLaunchHostFunc(stream, sum_up, sum));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaEventDestroy(fork));
    CHECK(cudaEventDestroy(join));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamDestroy(side));
    return graph;
}

static cudaGraph_t by_hand(int *sum)
{
    struct cudaHostNodeParams call;
    struct cudaMemcpy3DParms copy;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t in = NULL, out = NULL, host = NULL;
    memset(&copy, 0, sizeof(copy));
    copy.srcPtr = make_cudaPitchedPtr(input, COUNT * sizeof(int), COUNT, 1);
    copy.dstPtr = make_cudaPitchedPtr(device, COUNT * sizeof(int), COUNT, 1);
    copy.extent = make_cudaExtent(COUNT * sizeof(int), 1, 1);
    copy.kind = cudaMemcpyHostToDevice;
    call.fn = sum_up;
    call.userData = sum;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemcpyNode(&in, graph, NULL, 0, &copy));
    CHECK(cudaGraphAddMemcpyNode1D(&out, graph, &in, 1, result, device, COUNT * sizeof(int),
                                   cudaMemcpyDeviceToHost));
    CHECK(cudaGraphAddHostNode(&host, graph, &out, 1, &call));
    return graph;
}

static void replay(cudaGraphExec_t exec, int *sum, int times)
{
    cudaStream_t stream = NULL;
    CHECK(cudaStreamCreate(&stream));
    for (int i = 0; i < times; i++) {
        *sum = 0;
        for (int k = 0; k < COUNT; k++) {
            input[k] = i + k;
        }
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        expect(*sum == COUNT * i + COUNT * (COUNT - 1) / 2, "sum of a replay");
    }
    CHECK(cudaStreamDestroy(stream));
}

int main(void)
{
    cudaGraphExec_t exec = NULL;
    cudaGraphExecUpdateResultInfo info;
    cudaGraph_t graph = NULL;
    int first = 0, second = 0, third = 0;
    CHECK(cudaMallocHost((void **)&input, COUNT * sizeof(int)));
    CHECK(cudaMallocHost((void **)&result, COUNT * sizeof(int)));
    CHECK(cudaMalloc((void **)&device, COUNT * sizeof(int)));
    graph = captured(&first);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    replay(exec, &first, 20);
    CHECK(cudaGraphExecDestroy(exec));
    graph = by_hand(&second);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    replay(exec, &second, 20);
    graph = by_hand(&third);
    CHECK(cudaGraphExecUpdate(exec, graph, &info));
    CHECK(cudaGraphDestroy(graph));
    replay(exec, &third, 20);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaFreeHost(input));
    CHECK(cudaFreeHost(result));
    CHECK(cudaFree(device));
    printf("graphs: ok\n");
    return 0;
}
