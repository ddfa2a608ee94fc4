/* Streams, events, capture: what the other suites leave out. C and C++, CUDA 12 and 13. Run with
 * four devices. */
#include "conform.h"

static int not_a_handle; /* its address is no handle */

static void CUDART_CB nothing(cudaStream_t stream, cudaError_t status, void *arg)
{
    (void)stream, (void)status, (void)arg;
}

static void gone_by(void *arg)
{
    (void)arg;
}

static void questions(void)
{
    cudaStream_t stream = NULL, wrong = (cudaStream_t)&not_a_handle;
    unsigned long long id = 0, other = 0;
    unsigned int flags = 9;
    int device = -1, priority = 7;
    WORKS(cudaSetDevice(2));
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaSetDevice(0));
    WORKS(cudaStreamGetId(stream, &id));
    WORKS(cudaStreamGetId(NULL, &other));
    HOLDS(id != other);
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamGetId(wrong, &id));
    ANSWERS(cudaErrorInvalidValue, cudaStreamGetId(stream, NULL));
    WORKS(cudaStreamGetDevice(stream, &device));
    HOLDS(device == 2);
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamGetDevice(wrong, &device));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamGetFlags(wrong, &flags));
    ANSWERS(cudaErrorInvalidValue, cudaStreamGetFlags(stream, NULL));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamGetPriority(wrong, &priority));
    ANSWERS(cudaErrorInvalidValue, cudaStreamGetPriority(stream, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaStreamCreateWithPriority(&stream, 8, 0));
    ANSWERS(cudaErrorInvalidValue, cudaStreamCreateWithPriority(NULL, 0, 0));
    WORKS(cudaStreamDestroy(stream));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(wrong, NULL, 0));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaLaunchHostFunc(wrong, gone_by, NULL));
}

static void attributes(void)
{
    cudaStream_t stream = NULL, wrong = (cudaStream_t)&not_a_handle;
    cudaLaunchAttributeValue value;
    WORKS(cudaStreamCreate(&stream));
    memset(&value, 0, sizeof(value));
    WORKS(cudaStreamGetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &value));
    HOLDS(value.syncPolicy == cudaSyncPolicyAuto);
    value.syncPolicy = cudaSyncPolicyYield;
    WORKS(cudaStreamSetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &value));
    memset(&value, 0, sizeof(value));
    WORKS(cudaStreamGetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &value));
    HOLDS(value.syncPolicy == cudaSyncPolicyYield);
    value.priority = -3;
    WORKS(cudaStreamSetAttribute(stream, cudaLaunchAttributePriority, &value));
    memset(&value, 0, sizeof(value));
    WORKS(cudaStreamGetAttribute(stream, cudaLaunchAttributePriority, &value));
    HOLDS(value.priority == -3);
    ANSWERS(cudaErrorInvalidValue,
            cudaStreamSetAttribute(stream, (cudaLaunchAttributeID)99, &value));
    ANSWERS(cudaErrorInvalidResourceHandle,
            cudaStreamSetAttribute(wrong, cudaLaunchAttributePriority, &value));
    ANSWERS(cudaErrorInvalidValue,
            cudaStreamGetAttribute(stream, (cudaLaunchAttributeID)99, &value));
    ANSWERS(cudaErrorInvalidValue,
            cudaStreamGetAttribute(stream, cudaLaunchAttributePriority, NULL));
    WORKS(cudaStreamDestroy(stream));
}

static void events(void)
{
    cudaEvent_t event = NULL, wrong = (cudaEvent_t)&not_a_handle, captured = NULL;
    cudaIpcEventHandle_t handle;
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    WORKS(cudaStreamCreate(&stream));
    ANSWERS(cudaErrorInvalidValue, cudaEventCreate(NULL));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventSynchronize(wrong));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventQuery(wrong));
    WORKS(cudaEventCreate(&captured));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    WORKS(cudaEventRecord(captured, stream));
    ANSWERS(cudaErrorCapturedEvent, cudaEventSynchronize(captured));
    ANSWERS(cudaErrorCapturedEvent, cudaEventQuery(captured));
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WORKS(cudaEventDestroy(captured));
    WORKS(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaIpcGetEventHandle(&handle, event));
    WORKS(cudaEventDestroy(event));
    WORKS(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
    WORKS(cudaIpcGetEventHandle(&handle, event));
    ANSWERS(cudaErrorInvalidValue, cudaIpcGetEventHandle(NULL, event));
    WORKS(cudaEventDestroy(event));
    memset(&handle, 0x5a, sizeof(handle));
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenEventHandle(&event, handle));
    WORKS(cudaStreamDestroy(stream));
}

static void captures(void)
{
    cudaStream_t stream = NULL, wrong = (cudaStream_t)&not_a_handle;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    enum cudaStreamCaptureMode mode = (enum cudaStreamCaptureMode)9;
    cudaGraph_t graph = NULL, into = NULL;
    cudaGraphNode_t first = NULL, node = NULL;
    char *device = NULL;
    size_t count = 0;
    WORKS(cudaMalloc((void **)&device, 64));
    WORKS(cudaStreamCreate(&stream));
    ANSWERS(cudaErrorInvalidValue, cudaThreadExchangeStreamCaptureMode(&mode));
    ANSWERS(cudaErrorInvalidValue, cudaThreadExchangeStreamCaptureMode(NULL));
    WORKS(cudaStreamIsCapturing(stream, &status));
    HOLDS(status == cudaStreamCaptureStatusNone);
    ANSWERS(cudaErrorInvalidValue, cudaStreamIsCapturing(stream, NULL));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamIsCapturing(wrong, &status));
#if CUDART_VERSION >= 13000
    ANSWERS(cudaErrorInvalidValue,
            cudaStreamGetCaptureInfo(stream, NULL, NULL, NULL, NULL, NULL, NULL));
    ANSWERS(cudaErrorIllegalState, cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 0, 0));
#else
    ANSWERS(cudaErrorInvalidValue, cudaStreamGetCaptureInfo(stream, NULL, NULL, NULL, NULL, NULL));
    ANSWERS(cudaErrorIllegalState, cudaStreamUpdateCaptureDependencies(stream, &node, 0, 0));
#endif
    WORKS(cudaGraphCreate(&into, 0));
    WORKS(cudaGraphAddEmptyNode(&first, into, NULL, 0));
    WORKS(
        cudaStreamBeginCaptureToGraph(stream, into, &first, NULL, 1, cudaStreamCaptureModeRelaxed));
    ANSWERS(cudaErrorStreamCaptureUnsupported, cudaStreamAddCallback(stream, nothing, NULL, 0));
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WORKS(cudaGraphDestroy(into));
    WORKS(cudaGraphCreate(&into, 0));
    WORKS(cudaGraphAddEmptyNode(&first, into, NULL, 0));
    WORKS(
        cudaStreamBeginCaptureToGraph(stream, into, &first, NULL, 1, cudaStreamCaptureModeRelaxed));
    WORKS(cudaMemsetAsync(device, 1, 64, stream));
    WORKS(cudaStreamEndCapture(stream, &graph));
    HOLDS(graph == into);
    WORKS(cudaGraphGetNodes(into, NULL, &count));
    HOLDS(count == 2);
    ANSWERS(cudaErrorInvalidValue,
            cudaStreamBeginCaptureToGraph(stream, (cudaGraph_t)&not_a_handle, NULL, NULL, 0,
                                          cudaStreamCaptureModeRelaxed));
    WORKS(cudaGraphDestroy(into));
    WORKS(cudaStreamDestroy(stream));
    WORKS(cudaFree(device));
}

int main(void)
{
    questions();
    attributes();
    events();
    captures();
    return finish("surface of streams");
}
