/* Memory and events of another process at their edges: opened twice and by two threads' devices,
 * closed wrongly, freed over there, of a process that has ended. The program is started again as
 * the one that opens; it asks for the next thing by a byte. Run with TUTTI_DEVICE_MEMORY=64M. */
#include "conform.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 1 << 20 };

struct message {
    cudaIpcMemHandle_t first, second, reused;
    cudaIpcEventHandle_t event;
};

struct peer {
    pid_t pid;
    int to, from; /* descriptors */
};

/* The program again, with pipes at 0 and 3. */
static struct peer start(const char *program, const char *how)
{
    int to[2], from[2];
    struct peer peer = {-1, -1, -1};
    if (pipe(to) || pipe(from)) return peer;
    peer.pid = fork();
    if (peer.pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 3);
        for (int fd = 4; fd < 20; fd++) {
            close(fd);
        }
        execl(program, program, how, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    peer.to = to[1];
    peer.from = from[0];
    return peer;
}

static bool report(int fd, const void *bytes, size_t len)
{
    return write(fd, bytes, len) == (ssize_t)len;
}

static bool receive(int fd, void *bytes, size_t len)
{
    return read(fd, bytes, len) == (ssize_t)len;
}

static int end(const struct peer *peer)
{
    int status = 1;
    close(peer->to);
    close(peer->from);
    waitpid(peer->pid, &status, 0);
    return status;
}

/* ---- the owner ---- */

static int own(void)
{
    struct message message;
    char *first = NULL, *second = NULL, *reused = NULL, byte = 0;
    cudaEvent_t event = NULL;
    memset(&message, 0, sizeof(message));
    WORKS(cudaMalloc((void **)&first, LEN));
    WORKS(cudaMalloc((void **)&second, LEN));
    WORKS(cudaMemset(first, 1, LEN));
    WORKS(cudaMemset(second, 2, LEN));
    WORKS(cudaIpcGetMemHandle(&message.first, first));
    WORKS(cudaIpcGetMemHandle(&message.second, second + 77));
    WORKS(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    WORKS(cudaEventRecord(event, NULL));
    WORKS(cudaIpcGetEventHandle(&message.event, event));
    WORKS(cudaDeviceSynchronize());
    if (!report(3, &message, sizeof(message)) || !receive(0, &byte, 1)) return 1;
    WORKS(cudaFree(second)); /* while it is open over there */
    WORKS(cudaMalloc((void **)&reused, LEN / 2));
    HOLDS(reused == second);
    WORKS(cudaIpcGetMemHandle(&message.reused, reused));
    if (!report(3, &message, sizeof(message)) || !receive(0, &byte, 1)) return 1;
    return failures; /* with all of it open over there */
}

/* ---- who opens ---- */

static const unsigned lazy = cudaIpcMemLazyEnablePeerAccess;

static void opened_wrongly(const struct message *message)
{
    cudaIpcMemHandle_t wrong = message->first;
    char *ptr = NULL;
    void *own = NULL;
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(NULL, message->first, lazy));
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenMemHandle((void **)&ptr, message->first, 0));
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenMemHandle((void **)&ptr, message->first, 2));
    memset(&wrong, 0, sizeof(wrong));
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenMemHandle((void **)&ptr, wrong, lazy));
    memcpy(&wrong, &message->event, sizeof(wrong)); /* an event's */
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenMemHandle((void **)&ptr, wrong, lazy));
    WORKS(cudaMalloc(&own, 64));
    ANSWERS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(own));
    ANSWERS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(NULL));
    WORKS(cudaFree(own));
}

static void opened_twice(const struct message *message)
{
    struct cudaPointerAttributes facts;
    cudaIpcMemHandle_t handle;
    char *ptr = NULL, *again = NULL, *pinned = NULL;
    cudaStream_t stream = NULL;
    WORKS(cudaSetDevice(1));
    WORKS(cudaIpcOpenMemHandle((void **)&ptr, message->first, lazy));
    WORKS(cudaIpcOpenMemHandle((void **)&again, message->first, lazy));
    HOLDS(ptr == again);
    WORKS(cudaPointerGetAttributes(&facts, ptr + LEN - 1));
    HOLDS(facts.type == cudaMemoryTypeDevice && facts.device == 1);
    HOLDS(facts.devicePointer == ptr + LEN - 1 && facts.hostPointer == NULL);
    WORKS(cudaSetDevice(0));
    WORKS(cudaPointerGetAttributes(&facts, ptr));
    HOLDS(facts.device == 1); /* where it was opened, for each process that asks */
    ANSWERS(cudaErrorInvalidValue, cudaFree(ptr));
    ANSWERS(cudaErrorInvalidValue, cudaFreeAsync(ptr, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaFreeHost(ptr));
    ANSWERS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, ptr)); /* not ours to pass on */
    ANSWERS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(ptr + 512));
    ANSWERS(cudaErrorInvalidValue, cudaMemset(ptr, 0, LEN + 1));
    WORKS(cudaMallocHost((void **)&pinned, LEN));
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaIpcCloseMemHandle(again));
    WORKS(cudaMemcpyAsync(pinned, ptr, LEN, cudaMemcpyDefault, stream)); /* open once yet */
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(pinned[0] == 1 && pinned[LEN - 1] == 1);
    WORKS(cudaIpcCloseMemHandle(ptr));
    ANSWERS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(ptr));
    WORKS(cudaPointerGetAttributes(&facts, ptr));
    HOLDS(facts.type == cudaMemoryTypeUnregistered);
    WORKS(cudaStreamDestroy(stream));
    WORKS(cudaFreeHost(pinned));
}

static void opened_event(const struct message *message)
{
    cudaEvent_t event = NULL, twin = NULL, plain = NULL;
    cudaIpcEventHandle_t handle, wrong;
    float msec = 0;
    memset(&wrong, 0x11, sizeof(wrong));
    WORKS(cudaIpcOpenEventHandle(&event, message->event));
    WORKS(cudaIpcOpenEventHandle(&twin, message->event));
    HOLDS(event != twin);
    WORKS(cudaEventSynchronize(event));
    WORKS(cudaEventQuery(twin));
    WORKS(cudaEventRecord(event, NULL)); /* may be recorded here, too */
    WORKS(cudaEventSynchronize(twin));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&msec, event, twin));
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenEventHandle(&plain, wrong));
    ANSWERS(cudaErrorInvalidValue,
            cudaEventCreateWithFlags(&plain, cudaEventInterprocess)); /* with timing */
    WORKS(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaIpcGetEventHandle(&handle, plain));
    ANSWERS(cudaErrorInvalidValue, cudaIpcGetEventHandle(NULL, plain));
    WORKS(cudaEventDestroy(plain));
    WORKS(cudaEventDestroy(event));
    WORKS(cudaEventSynchronize(twin)); /* by itself */
    WORKS(cudaEventDestroy(twin));
}

static void in_one_process(void)
{
    cudaIpcMemHandle_t handle;
    cudaIpcEventHandle_t event_handle;
    cudaEvent_t event = NULL, again = NULL;
    void *ptr = NULL, *opened = NULL;
    WORKS(cudaMalloc(&ptr, 64));
    WORKS(cudaIpcGetMemHandle(&handle, ptr));
    ANSWERS(cudaErrorDeviceUninitialized, cudaIpcOpenMemHandle(&opened, handle, lazy));
    WORKS(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    WORKS(cudaIpcGetEventHandle(&event_handle, event));
    ANSWERS(cudaErrorDeviceUninitialized, cudaIpcOpenEventHandle(&again, event_handle));
    WORKS(cudaEventDestroy(event));
    WORKS(cudaFree(ptr));
}

int main(int argc, char **argv)
{
    struct message message;
    char *first = NULL, *second = NULL, *reused = NULL, byte = 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) return own();
    struct peer peer = start(argv[0], "own");
    if (!receive(peer.from, &message, sizeof(message))) return 1;
    opened_wrongly(&message);
    opened_twice(&message);
    opened_event(&message);
    in_one_process();
    WORKS(cudaIpcOpenMemHandle((void **)&first, message.first, lazy));
    WORKS(cudaIpcOpenMemHandle((void **)&second, message.second, lazy));
    HOLDS(second[0] == 2 && second[LEN - 1] == 2);
    HOLDS(report(peer.to, &byte, 1) && receive(peer.from, &message, sizeof(message)));
    second[LEN - 1] = 3; /* freed over there: still here, of no meaning */
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenMemHandle((void **)&reused, message.reused, lazy));
    WORKS(cudaIpcCloseMemHandle(second));
    WORKS(cudaIpcOpenMemHandle((void **)&reused, message.reused, lazy));
    HOLDS(report(peer.to, &byte, 1));
    HOLDS(end(&peer) == 0);
    HOLDS(first[0] == 1 && first[LEN - 1] == 1); /* outlives its owner */
    WORKS(cudaMemset(reused, 4, LEN / 2));
    WORKS(cudaDeviceSynchronize());
    HOLDS(reused[0] == 4);
    WORKS(cudaIpcCloseMemHandle(first));
    WORKS(cudaIpcCloseMemHandle(reused));
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenMemHandle((void **)&first, message.first, lazy));
    return finish("peers");
}
