/* Two processes that hand a buffer back and forth: memory and events by their handles, through a
 * socket. Each fills what the other must see. */
#include "sample.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1 << 20, ROUNDS = 50 };

struct message {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t mine, yours; /* recorded by the owner, by the other one */
};

static void say(int socket)
{
    char word = 'x';
    expect(write(socket, &word, 1) == 1, "the other process listens");
}

static void receive(int socket)
{
    char word = 0;
    expect(read(socket, &word, 1) == 1, "the other process speaks");
}

static void check_bytes(const char *buffer, char *host, int value)
{
    CHECK(cudaMemcpy(host, buffer, BYTES, cudaMemcpyDeviceToHost));
    for (int i = 0; i < BYTES; i++) {
        expect(host[i] == (char)value, "the other one's bytes");
    }
}

static void owner(int socket)
{
    struct message message;
    cudaEvent_t mine = NULL, yours = NULL;
    cudaStream_t stream = NULL;
    char *buffer = NULL, *host = (char *)malloc(BYTES);
    CHECK(cudaMalloc((void **)&buffer, BYTES));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreateWithFlags(&mine, cudaEventDisableTiming | cudaEventInterprocess));
    CHECK(cudaEventCreateWithFlags(&yours, cudaEventDisableTiming | cudaEventInterprocess));
    memset(&message, 0, sizeof(message));
    CHECK(cudaIpcGetMemHandle(&message.memory, buffer));
    CHECK(cudaIpcGetEventHandle(&message.mine, mine));
    CHECK(cudaIpcGetEventHandle(&message.yours, yours));
    expect(write(socket, &message, sizeof(message)) == (ssize_t)sizeof(message), "letter");
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(cudaMemsetAsync(buffer, 2 * i, BYTES, stream));
        CHECK(cudaEventRecord(mine, stream));
        say(socket); /* recorded, not finished */
        receive(socket);
        CHECK(cudaStreamWaitEvent(stream, yours, 0));
        CHECK(cudaStreamSynchronize(stream));
        check_bytes(buffer, host, 2 * i + 1);
    }
    receive(socket); /* closed there */
    CHECK(cudaEventDestroy(mine));
    CHECK(cudaEventDestroy(yours));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(buffer));
    free(host);
}

static void peer(int socket)
{
    struct message message;
    cudaEvent_t theirs = NULL, own = NULL;
    cudaStream_t stream = NULL;
    char *buffer = NULL, *host = (char *)malloc(BYTES);
    expect(read(socket, &message, sizeof(message)) == (ssize_t)sizeof(message), "letter");
    CHECK(cudaIpcOpenMemHandle((void **)&buffer, message.memory, cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaIpcOpenEventHandle(&theirs, message.mine));
    CHECK(cudaIpcOpenEventHandle(&own, message.yours));
    CHECK(cudaStreamCreate(&stream));
    for (int i = 0; i < ROUNDS; i++) {
        receive(socket);
        CHECK(cudaStreamWaitEvent(stream, theirs, 0));
        CHECK(cudaStreamSynchronize(stream));
        check_bytes(buffer, host, 2 * i);
        CHECK(cudaMemsetAsync(buffer, 2 * i + 1, BYTES, stream));
        CHECK(cudaEventRecord(own, stream));
        say(socket);
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaIpcCloseMemHandle(buffer));
    CHECK(cudaEventDestroy(theirs));
    CHECK(cudaEventDestroy(own));
    CHECK(cudaStreamDestroy(stream));
    say(socket);
    free(host);
}

int main(void)
{
    int ends[2], status = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
    pid_t pid = fork(); /* before the first call of the runtime */
    if (pid == 0) {
        close(ends[0]);
        peer(ends[1]);
        return 0;
    }
    close(ends[1]);
    owner(ends[0]);
    waitpid(pid, &status, 0);
    expect(status == 0, "the other process ended well");
    printf("ipc: ok\n");
    return 0;
}
