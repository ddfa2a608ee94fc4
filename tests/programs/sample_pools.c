/* Memory in stream order: a pool keeps what was freed for the next step, its counters tell; and a
 * pool of one process from which another one reads. */
#include "sample.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 100, BYTES = 1 << 18 };

static cudaMemPool_t make_pool(enum cudaMemAllocationHandleType share)
{
    struct cudaMemPoolProps props;
    cudaMemPool_t pool = NULL;
    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.handleTypes = share;
    CHECK(cudaMemPoolCreate(&pool, &props));
    return pool;
}

static unsigned long long counter(cudaMemPool_t pool, enum cudaMemPoolAttr attr)
{
    unsigned long long value = 0;
    CHECK(cudaMemPoolGetAttribute(pool, attr, &value));
    return value;
}

static void steps(void)
{
    cudaMemPool_t pool = make_pool(cudaMemHandleTypeNone);
    unsigned long long threshold = 1ULL << 40;
    cudaStream_t stream = NULL;
    char *host = NULL;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMallocHost((void **)&host, BYTES));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    CHECK(cudaDeviceSetMemPool(0, pool));
    for (int i = 0; i < STEPS; i++) {
        char *one = NULL, *two = NULL;
        CHECK(cudaMallocAsync((void **)&one, BYTES, stream));
        CHECK(cudaMallocFromPoolAsync((void **)&two, BYTES, pool, stream));
        CHECK(cudaMemsetAsync(one, i, BYTES, stream));
        CHECK(cudaMemcpyAsync(two, one, BYTES, cudaMemcpyDeviceToDevice, stream));
        CHECK(cudaFreeAsync(one, stream));
        CHECK(cudaMemcpyAsync(host, two, BYTES, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaFreeAsync(two, stream));
        CHECK(cudaStreamSynchronize(stream));
        expect(host[0] == (char)i && host[BYTES - 1] == (char)i, "bytes of a step");
    }
    expect(counter(pool, cudaMemPoolAttrUsedMemCurrent) == 0, "all was freed");
    expect(counter(pool, cudaMemPoolAttrUsedMemHigh) >= 2 * BYTES, "two at a time");
    expect(counter(pool, cudaMemPoolAttrUsedMemHigh) < 10 * BYTES, "and not all steps together");
    CHECK(cudaMemPoolTrimTo(pool, 0));
    CHECK(cudaMemPoolDestroy(pool));
    CHECK(cudaFreeHost(host));
    CHECK(cudaStreamDestroy(stream));
}

static void send_fd(int socket, int fd, const struct cudaMemPoolPtrExportData *token)
{
    char space[CMSG_SPACE(sizeof(int))];
    struct iovec bytes = {(void *)(size_t)token, sizeof(*token)};
    struct msghdr message;
    memset(space, 0, sizeof(space));
    memset(&message, 0, sizeof(message));
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof(space);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    expect(sendmsg(socket, &message, 0) == (ssize_t)sizeof(*token), "descriptor sent");
}

static int receive_fd(int socket, struct cudaMemPoolPtrExportData *token)
{
    char space[CMSG_SPACE(sizeof(int))];
    struct iovec bytes = {token, sizeof(*token)};
    struct msghdr message;
    int fd = -1;
    memset(&message, 0, sizeof(message));
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof(space);
    expect(recvmsg(socket, &message, 0) == (ssize_t)sizeof(*token), "descriptor received");
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    expect(head && head->cmsg_type == SCM_RIGHTS, "a descriptor came along");
    memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    return fd;
}

static void peer(int socket)
{
    struct cudaMemPoolPtrExportData token;
    cudaMemPool_t pool = NULL;
    char *ptr = NULL, host[64];
    int fd = receive_fd(socket, &token);
    CHECK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(size_t)fd,
                                               cudaMemHandleTypePosixFileDescriptor, 0));
    close(fd);
    CHECK(cudaMemPoolImportPointer((void **)&ptr, pool, &token));
    CHECK(cudaMemcpy(host, ptr + BYTES - 64, 64, cudaMemcpyDeviceToHost));
    expect(host[0] == 77 && host[63] == 77, "the owner's bytes");
    CHECK(cudaMemset(ptr, 78, BYTES));
    CHECK(cudaFreeAsync(ptr, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    CHECK(cudaMemPoolDestroy(pool));
}

static void owner(int socket, pid_t pid)
{
    struct cudaMemPoolPtrExportData token;
    cudaMemPool_t pool = make_pool(cudaMemHandleTypePosixFileDescriptor);
    char *ptr = NULL, host[64];
    int fd = -1, status = 1;
    CHECK(cudaMallocFromPoolAsync((void **)&ptr, BYTES, pool, NULL));
    CHECK(cudaMemset(ptr, 77, BYTES));
    CHECK(cudaStreamSynchronize(NULL));
    CHECK(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    CHECK(cudaMemPoolExportPointer(&token, ptr));
    send_fd(socket, fd, &token);
    close(fd);
    waitpid(pid, &status, 0);
    expect(status == 0, "the other process ended well");
    CHECK(cudaMemcpy(host, ptr, 64, cudaMemcpyDeviceToHost));
    expect(host[0] == 78, "the guest's bytes");
    CHECK(cudaFreeAsync(ptr, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    CHECK(cudaMemPoolDestroy(pool));
}

int main(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
    pid_t pid = fork(); /* before the first call of the runtime */
    if (pid == 0) {
        peer(ends[1]);
        return 0;
    }
    owner(ends[0], pid);
    steps();
    printf("pools: ok\n");
    return 0;
}
