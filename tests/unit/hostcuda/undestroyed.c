/* A program that ends without destroying what it has made loses nothing that a leak checker would
 * see: events whose last record was in a capture, finished or broken. */
#include "conform.h"

static cudaEvent_t record_in(cudaStream_t stream)
{
    cudaEvent_t event = NULL;
    WORKS(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    WORKS(cudaMemsetAsync(NULL, 0, 0, stream));
    WORKS(cudaEventRecord(event, stream));
    return event;
}

static void finished(void)
{
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    cudaEvent_t event = record_in(stream);
    WORKS(cudaEventRecord(event, stream)); /* once more: the first place is given up */
    record_in(stream);
    WORKS(cudaStreamEndCapture(stream, &graph));
    ANSWERS(cudaErrorCapturedEvent, cudaEventQuery(event));
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaStreamDestroy(stream));
}

static void broken(void)
{
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    cudaEvent_t event = record_in(stream);
    ANSWERS(cudaErrorCapturedEvent, cudaEventQuery(event));
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WORKS(cudaStreamDestroy(stream));
}

int main(void)
{
    finished();
    broken();
    return finish("undestroyed");
}
