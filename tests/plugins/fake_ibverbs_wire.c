/* How queue pairs of different processes reach each other: each process has a datagram socket,
 * whose name a link called after the queue pair's number leads to. A thread takes packets, writes
 * into registered memory, and answers when a write is complete; so writes of a queue pair arrive in
 * order and exactly once, and complete in order. */
#include "fake_ibverbs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PACKET_BYTES = 32768, ANSWERS = 4096 };

struct packet {
    uint32_t to, from; /* queue pairs */
    enum ibv_wc_status status;
    bool answer, last, marked, read; /* read: nothing but where from */
    uint32_t key, imm;
    uint64_t addr;
    uint32_t bytes;
};

static struct {
    pthread_once_t once;
    int fd;
    pthread_mutex_t send_lock;
    struct packet answers[ANSWERS]; /* ring of those that found no room; the engine's own */
    unsigned first, last;
} wire = {.once = PTHREAD_ONCE_INIT, .send_lock = PTHREAD_MUTEX_INITIALIZER};

static const char *folder(void)
{
    const char *path = getenv("FAKE_IB_DIR");
    return path ? path : "/tmp";
}

static void link_of(uint32_t qp, char *path, size_t bytes)
{
    snprintf(path, bytes, "%.80s/q%06x", folder(), qp);
}

static struct sockaddr_un own_name(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%.80s/s%d", folder(), (int)getpid());
    return name;
}

void fake_wire_name(uint32_t qp)
{
    char path[128];
    const struct sockaddr_un name = own_name();
    link_of(qp, path, sizeof(path));
    if (symlink(name.sun_path, path)) perror("fake_ibverbs: link");
}

void fake_wire_forget(uint32_t qp)
{
    char path[128];
    link_of(qp, path, sizeof(path));
    unlink(path);
}

/* 0, EAGAIN, or why the other process cannot be reached. */
static int transmit(const struct packet *packet, const void *bytes)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct iovec pieces[] = {{(void *)(uintptr_t)packet, sizeof(*packet)},
                             {(void *)(uintptr_t)bytes, bytes ? packet->bytes : 0}};
    const struct msghdr message = {
        .msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = pieces, .msg_iovlen = 2};
    link_of(packet->to, name.sun_path, sizeof(name.sun_path));
    if (sendmsg(wire.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return 0;
    return errno == ENOBUFS ? EAGAIN : errno;
}

/* ---- what comes ---- */

/* Bytes of a read, whole words; nothing after an error. The lock is held: they are registered. */
static void answer_read(const struct packet *packet, enum ibv_wc_status status)
{
    uint64_t words[64] = {0};
    struct packet back = {.to = packet->from,
                          .from = packet->to,
                          .status = status,
                          .answer = true,
                          .bytes = status ? 0 : packet->bytes};
    const uint64_t *from = (const uint64_t *)(uintptr_t)packet->addr;
    for (uint32_t i = 0; i < back.bytes / 8; i++)
        words[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    while (transmit(&back, words) == EAGAIN)
        usleep(50);
}

static void answer(const struct packet *packet, enum ibv_wc_status status)
{
    struct packet back = {
        .to = packet->from, .from = packet->to, .status = status, .answer = true, .last = true};
    if (wire.first == wire.last && transmit(&back, NULL) != EAGAIN) return;
    if (wire.last - wire.first == ANSWERS) abort();
    wire.answers[wire.last++ % ANSWERS] = back;
}

/* Small writes are seen whole words at a time, the last one last. A packet that comes again, as its
 * answer was lost, changes nothing: its words may be in use, and are not written once more. */
static void put(char *at, const char *bytes, size_t count)
{
    if ((uintptr_t)at % 8 || count % 8 || count > 512) {
        memcpy(at, bytes, count);
        return;
    }
    for (size_t i = 0; i < count; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        uint64_t *to = (uint64_t *)(void *)(at + i);
        if (__atomic_load_n(to, __ATOMIC_RELAXED) != word)
            __atomic_store_n(to, word, __ATOMIC_RELEASE);
    }
}

static enum ibv_wc_status take_write(struct fake_qp *qp, const struct packet *packet,
                                     const char *bytes)
{
    bool open = qp && (qp->verbs.state == IBV_QPS_RTR || qp->verbs.state == IBV_QPS_RTS);
    if (!open || qp->device->broken || qp->peer != packet->from) return IBV_WC_RETRY_EXC_ERR;
    int access = packet->read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
    if (packet->bytes &&
        !fake_allowed(packet->key, qp->device, packet->addr, packet->bytes, access)) {
        fake_qp_break(qp);
        return IBV_WC_REM_ACCESS_ERR;
    }
    if (packet->read) return packet->bytes > 512 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
    put((char *)(uintptr_t)packet->addr, bytes, packet->bytes);
    if (!packet->last || !packet->marked) return IBV_WC_SUCCESS;
    struct fake_work *recv = qp->recvs;
    if (!recv) return IBV_WC_RNR_RETRY_EXC_ERR;
    qp->recvs = recv->next;
    qp->nrecvs--;
    const struct ibv_wc wc = {.wr_id = recv->id,
                              .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                              .imm_data = packet->imm,
                              .wc_flags = IBV_WC_WITH_IMM,
                              .qp_num = qp->verbs.qp_num};
    fake_complete((struct fake_cq *)qp->verbs.recv_cq, &wc);
    free(recv);
    return IBV_WC_SUCCESS;
}

/* The oldest request of the queue pair is over. */
static void take_answer(struct fake_qp *qp, enum ibv_wc_status status, const char *bytes,
                        size_t count)
{
    struct fake_work *work = qp ? qp->sends : NULL;
    if (!work) return; /* flushed meanwhile */
    if (qp->device->deaf) status = IBV_WC_RETRY_EXC_ERR;
    if (work->read_to && !status) put(work->read_to, bytes, count);
    const struct ibv_wc wc = {.wr_id = work->id,
                              .status = status,
                              .opcode = IBV_WC_RDMA_WRITE,
                              .qp_num = qp->verbs.qp_num};
    if (status || work->signalled) fake_complete((struct fake_cq *)qp->verbs.send_cq, &wc);
    qp->sends = work->next;
    qp->nsends--;
    free(work);
    if (status) fake_qp_break(qp);
}

static void *engine(void *unused)
{
    static struct {
        struct packet packet;
        char bytes[PACKET_BYTES];
    } in;
    (void)unused;
    for (;;) {
        struct pollfd ready = {wire.fd, POLLIN, 0};
        while (wire.first != wire.last &&
               transmit(&wire.answers[wire.first % ANSWERS], NULL) != EAGAIN)
            wire.first++;
        poll(&ready, 1, wire.first == wire.last ? -1 : 1);
        if (recv(wire.fd, &in, sizeof(in), MSG_DONTWAIT) < (ssize_t)sizeof(in.packet)) continue;
        pthread_mutex_lock(&fake.lock);
        struct fake_qp *qp = fake_qp_of(in.packet.to);
        enum ibv_wc_status status = in.packet.status;
        if (in.packet.answer) {
            take_answer(qp, status, in.bytes, in.packet.bytes);
        } else {
            status = take_write(qp, &in.packet, in.bytes);
            if (in.packet.read) answer_read(&in.packet, status);
        }
        pthread_mutex_unlock(&fake.lock);
        if (!in.packet.answer && !in.packet.read && (in.packet.last || status))
            answer(&in.packet, status);
    }
    return NULL;
}

static void start(void)
{
    const struct sockaddr_un name = own_name();
    pthread_t thread;
    int bytes = 4 << 20;
    wire.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    setsockopt(wire.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    unlink(name.sun_path);
    if (bind(wire.fd, (const struct sockaddr *)&name, sizeof(name)) ||
        pthread_create(&thread, NULL, engine, NULL)) {
        perror("fake_ibverbs: start");
        abort();
    }
    pthread_detach(thread);
}

void fake_wire_start(void)
{
    pthread_once(&wire.once, start);
}

/* ---- what goes ---- */

/* Faults that come with the n-th write of a device: "name=device:n". */
static bool injects(const char *name, const struct fake_device *device)
{
    char value[64], *colon;
    if (!fake_fault(name, value, sizeof(value)) || !(colon = strchr(value, ':'))) return false;
    *colon = '\0';
    return !strcmp(value, device->verbs.name) && device->writes == strtoull(colon + 1, NULL, 10);
}

static void inject(struct fake_device *device)
{
    device->writes++;
    if (injects("deaf", device)) device->deaf = true;
    if (injects("cut", device)) device->broken = true;
    if (injects("fatal", device)) fake_report(device, IBV_EVENT_DEVICE_FATAL);
    if (injects("flap", device)) {
        fake_report(device, IBV_EVENT_PORT_ERR);
        fake_report(device, IBV_EVENT_PORT_ACTIVE);
    }
}

/* Into the list of what is under way; an error number, or 0. */
static int enlist(struct fake_qp *qp, const struct ibv_send_wr *work)
{
    struct fake_work *new = calloc(1, sizeof(*new)), **at = &qp->sends;
    bool usable = qp->verbs.state == IBV_QPS_RTS || qp->verbs.state == IBV_QPS_ERR;
    if (!new || !usable || qp->nsends == qp->most_sends) {
        free(new);
        return usable ? ENOMEM : EINVAL;
    }
    inject(qp->device);
    new->id = work->wr_id;
    new->signalled = work->send_flags &IBV_SEND_SIGNALED;
    if (work->opcode == IBV_WR_RDMA_READ) new->read_to = (char *)(uintptr_t)work->sg_list[0].addr;
    while (*at)
        at = &(*at)->next;
    *at = new;
    qp->nsends++;
    return 0;
}

/* What an adapter finds before anything leaves it. */
static enum ibv_wc_status look(const struct fake_qp *qp, const struct ibv_send_wr *work)
{
    if (qp->verbs.state == IBV_QPS_ERR) return IBV_WC_WR_FLUSH_ERR;
    if (qp->device->broken) return IBV_WC_RETRY_EXC_ERR;
    const struct ibv_sge *sge = work->num_sge ? &work->sg_list[0] : NULL;
    if (sge && !fake_allowed(sge->lkey, qp->device, sge->addr, sge->length, 0))
        return IBV_WC_LOC_PROT_ERR;
    return IBV_WC_SUCCESS;
}

static void send_all(const struct fake_qp *qp, const struct ibv_send_wr *work)
{
    const struct ibv_sge *sge = work->num_sge ? &work->sg_list[0] : NULL;
    uint32_t length = sge ? sge->length : 0, done = 0;
    struct packet packet = {.to = qp->peer,
                            .from = qp->verbs.qp_num,
                            .marked = work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM,
                            .key = work->wr.rdma.rkey,
                            .imm = work->imm_data,
                            .read = work->opcode == IBV_WR_RDMA_READ};
    int error = 0;
    pthread_mutex_lock(&wire.send_lock);
    do {
        uint32_t rest = length - done;
        packet.bytes = rest < PACKET_BYTES ? rest : PACKET_BYTES;
        packet.addr = work->wr.rdma.remote_addr + done;
        packet.last = packet.bytes == rest;
        bool carries = sge && !packet.read;
        const char *from = carries ? (const char *)(uintptr_t)sge->addr + done : NULL;
        while ((error = transmit(&packet, from)) == EAGAIN)
            usleep(50);
        done += packet.bytes;
    } while (done < length && !error);
    pthread_mutex_unlock(&wire.send_lock);
    if (!error) return;
    pthread_mutex_lock(&fake.lock); /* no process is there */
    take_answer(fake_qp_of(packet.from), IBV_WC_RETRY_EXC_ERR, NULL, 0);
    pthread_mutex_unlock(&fake.lock);
}

int fake_post_send(struct ibv_qp *verbs, struct ibv_send_wr *work, struct ibv_send_wr **bad)
{
    struct fake_qp *qp = (struct fake_qp *)verbs;
    for (; work; work = work->next) {
        *bad = work;
        pthread_mutex_lock(&fake.lock);
        int error = enlist(qp, work);
        enum ibv_wc_status status = error ? IBV_WC_SUCCESS : look(qp, work);
        if (status == IBV_WC_WR_FLUSH_ERR) fake_qp_break(qp);
        if (status && status != IBV_WC_WR_FLUSH_ERR) take_answer(qp, status, NULL, 0);
        pthread_mutex_unlock(&fake.lock);
        if (error) return error;
        if (!status) send_all(qp, work);
    }
    return 0;
}
