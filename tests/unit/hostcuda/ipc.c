/* Memory handles between processes: the child opens what the parent exported, and both see one
 * another's bytes. The child is a fresh program: a runtime in use does not survive fork(). */
#include "conform.h"

#include <sys/wait.h>
#include <unistd.h>

static int child(void)
{
    cudaIpcMemHandle_t handle, wrong;
    struct cudaPointerAttributes found;
    char *ptr = NULL, *again = NULL, host[16] = "";
    if (read(STDIN_FILENO, &handle, sizeof(handle)) != (ssize_t)sizeof(handle)) return 1;
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
static int ask_child(const char *program, const cudaIpcMemHandle_t *handle)
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
    ssize_t sent = write(ends[1], handle, sizeof(*handle));
    close(ends[1]);
    waitpid(pid, &status, 0);
    return sent != (ssize_t)sizeof(*handle) || status;
}

int main(int argc, char **argv)
{
    cudaIpcMemHandle_t handle;
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
    HOLDS(ask_child(argv[0], &handle) == 0);
    WORKS(cudaMemcpy(host, ptr + 200, 6, cudaMemcpyDeviceToHost));
    HOLDS(!strcmp(host, "child"));
    WORKS(cudaFreeHost(pinned));
    WORKS(cudaFree(ptr));
    return finish("ipc");
}
