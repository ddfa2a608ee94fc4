/* Memory handles between processes: the child opens what the parent exported, and both see one
 * another's bytes. The child is a fresh program: a runtime in use does not survive fork(). */
#include "conform.h"

#include <sys/wait.h>
#include <unistd.h>

struct message {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
};

static void follow_event(cudaIpcEventHandle_t handle)
{
    cudaEvent_t event = NULL;
    WORKS(cudaIpcOpenEventHandle(&event, handle));
    WORKS(cudaEventSynchronize(event)); /* what the parent recorded */
    WORKS(cudaStreamWaitEvent(NULL, event, 0));
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenEventHandle(NULL, handle));
    WORKS(cudaEventDestroy(event));
}

static int child(void)
{
    struct message message;
    cudaIpcMemHandle_t handle, wrong;
    struct cudaPointerAttributes found;
    char *ptr = NULL, *again = NULL, host[16] = "";
    if (read(STDIN_FILENO, &message, sizeof(message)) != (ssize_t)sizeof(message)) return 1;
    handle = message.memory;
    follow_event(message.event);
    WORKS(cudaIpcOpenMemHandle((void **)&ptr, handle, cudaIpcMemLazyEnablePeerAccess));
    WORKS(cudaIpcOpenMemHandle((void **)&again, handle, cudaIpcMemLazyEnablePeerAccess));
    HOLDS(ptr == again && ptr);
    WORKS(cudaMemcpy(host, ptr + 100, 7, cudaMemcpyDeviceToHost));
    HOLDS(!strcmp(host, "parent"));
    WORKS(cudaMemcpy(ptr + 200, "child", 6, cudaMemcpyHostToDevice));
    WORKS(cudaPointerGetAttributes(&found, ptr + 5));
    HOLDS(found.type == cudaMemoryTypeDevice);
    WORKS(cudaIpcCloseMemHandle(ptr));
    WORKS(cudaMemset(ptr, 0, 1)); /* still open once */
    WORKS(cudaIpcCloseMemHandle(ptr));
    ANSWERS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(ptr));
    wrong = handle;
    wrong.reserved[20] ^= 1;
    ANSWERS(cudaErrorInvalidValue,
            cudaIpcOpenMemHandle((void **)&ptr, wrong, cudaIpcMemLazyEnablePeerAccess));
    memset(&wrong, 0x5a, sizeof(wrong));
    ANSWERS(cudaErrorInvalidValue,
            cudaIpcOpenMemHandle((void **)&ptr, wrong, cudaIpcMemLazyEnablePeerAccess));
    ANSWERS(cudaErrorInvalidValue, cudaIpcOpenMemHandle((void **)&ptr, handle, 0));
    return finish("ipc child");
}

/* Start the program again, its input a pipe that carries the handle. */
static int ask_child(const char *program, const struct message *message)
{
    int ends[2], status = 1;
    if (pipe(ends)) return 1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, "child", (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    ssize_t sent = write(ends[1], message, sizeof(*message));
    close(ends[1]);
    waitpid(pid, &status, 0);
    return sent != (ssize_t)sizeof(*message) || status;
}

int main(int argc, char **argv)
{
    struct message message;
    cudaIpcMemHandle_t handle;
    cudaEvent_t event = NULL;
    char *ptr = NULL, *pinned = NULL, host[16] = "";
    void *own = NULL;
    if (argc > 1) return child();
    WORKS(cudaMalloc((void **)&ptr, 10000));
    WORKS(cudaMallocHost((void **)&pinned, 100));
    WORKS(cudaMemcpy(ptr + 100, "parent", 7, cudaMemcpyHostToDevice));
    WORKS(cudaIpcGetMemHandle(&handle, ptr + 500)); /* of the whole allocation */
    ANSWERS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, pinned));
    ANSWERS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, host));
    ANSWERS(cudaErrorInvalidValue, cudaIpcGetMemHandle(NULL, ptr));
    ANSWERS(cudaErrorDeviceUninitialized,
            cudaIpcOpenMemHandle(&own, handle, cudaIpcMemLazyEnablePeerAccess));
    ANSWERS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(ptr));
    WORKS(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
    WORKS(cudaEventRecord(event, NULL));
    message.memory = handle;
    WORKS(cudaIpcGetEventHandle(&message.event, event));
    HOLDS(ask_child(argv[0], &message) == 0);
    WORKS(cudaEventDestroy(event));
    WORKS(cudaMemcpy(host, ptr + 200, 6, cudaMemcpyDeviceToHost));
    HOLDS(!strcmp(host, "child"));
    WORKS(cudaFreeHost(pinned));
    WORKS(cudaFree(ptr));
    return finish("ipc");
}
