/* A verbs library without adapters: objects, states, registrations, completions. It refuses what an
 * adapter would refuse: wrong order of states, missing attributes, memory that is not registered,
 * queues that run over.
 *   FAKE_IB_DIR      folder of its own, shared by the processes of a test
 *   FAKE_IB_DEVICES  name/ib or eth/PCI place[/ports], commas between them
 *   FAKE_IB_FAULTS   name=value, commas between them: see fake_fault()'s callers
 *   FAKE_IB_LOG      file to which calls that make queue pairs are appended */
#include "fake_ibverbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

struct fake fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .next_key = 1000};

uint64_t fake_now_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const char *folder(void)
{
    const char *path = getenv("FAKE_IB_DIR");
    return path ? path : "/tmp";
}

const char *fake_fault(const char *name, char *value, size_t value_bytes)
{
    const char *at = getenv("FAKE_IB_FAULTS");
    size_t bytes = strlen(name);
    for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
        if (strncmp(at, name, bytes) != 0 || at[bytes] != '=') continue;
        snprintf(value, value_bytes, "%.*s", (int)strcspn(at + bytes + 1, ","), at + bytes + 1);
        return value;
    }
    return NULL;
}

/* Does the fault name this device? */
static bool is_injected(const char *name, const struct fake_device *device)
{
    char value[64];
    return fake_fault(name, value, sizeof(value)) && !strcmp(value, device->verbs.name);
}

void fake_record(const char *format, ...)
{
    const char *path = getenv("FAKE_IB_LOG");
    char line[256];
    va_list list;
    if (!path) return;
    va_start(list, format);
    int bytes = vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return;
    if (write(fd, line, (size_t)bytes) < 0) perror("fake_ibverbs: log");
    close(fd);
}

/* ---- devices ---- */

static struct fake_device *device_of(const struct ibv_context *context)
{
    return (struct fake_device *)context->device;
}

/* What the kernel shows of an adapter. */
static void make_sysfs(struct fake_device *device)
{
    char path[512], target[512];
    const char *parts[] = {"", "/ports", "/ports/1", "/ports/1/gid_attrs",
                           "/ports/1/gid_attrs/types"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(path, sizeof(path), "%.200s%s", device->verbs.ibdev_path, parts[i]);
        mkdir(path, 0700);
    }
    for (int i = 0; i < FAKE_GIDS; i++) {
        snprintf(path, sizeof(path), "%.200s/ports/1/gid_attrs/types/%d", device->verbs.ibdev_path,
                 i);
        FILE *file = fopen(path, "we");
        if (!file) continue;
        fputs(device->ethernet && i % 2 ? "RoCE v2\n" : "IB/RoCE v1\n", file);
        fclose(file);
    }
    snprintf(target, sizeof(target), "%.200s/%s", folder(), device->pci);
    mkdir(target, 0700);
    snprintf(path, sizeof(path), "%.200s/device", device->verbs.ibdev_path);
    if (symlink(target, path) && errno != EEXIST) perror("fake_ibverbs: device");
}

static void make_devices(void)
{
    const char *text = getenv("FAKE_IB_DEVICES");
    char copy[512], *rest = copy;
    snprintf(copy, sizeof(copy), "%s", text ? text : "fake_0/ib/0000:3b:00.0");
    for (char *word = strtok_r(copy, ",", &rest); word && fake.ndevices < FAKE_DEVICES;
         word = strtok_r(NULL, ",", &rest)) {
        struct fake_device *device = &fake.devices[fake.ndevices];
        char kind[8] = "";
        device->nports = 1;
        if (sscanf(word, "%31[^/]/%7[^/]/%31[^/]/%d", device->verbs.name, kind, device->pci,
                   &device->nports) < 3)
            continue;
        device->ethernet = !strcmp(kind, "eth");
        device->number = fake.ndevices++;
        char path[sizeof(device->verbs.ibdev_path)];
        device->verbs.transport_type = IBV_TRANSPORT_IB;
        snprintf(path, sizeof(path), "%.120s/%.60s", folder(), device->verbs.name);
        memcpy(device->verbs.ibdev_path, path, sizeof(path));
        make_sysfs(device);
    }
}

SHOWN struct ibv_device **ibv_get_device_list(int *count)
{
    pthread_mutex_lock(&fake.lock);
    if (!fake.ndevices) make_devices();
    struct ibv_device **list = calloc(FAKE_DEVICES + 1, sizeof(*list));
    for (int i = 0; list && i < fake.ndevices; i++)
        list[i] = &fake.devices[i].verbs;
    *count = fake.ndevices;
    pthread_mutex_unlock(&fake.lock);
    return list;
}

SHOWN void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

SHOWN const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

static int poll_cq(struct ibv_cq *verbs, int most, struct ibv_wc *wc)
{
    struct fake_cq *cq = (struct fake_cq *)verbs;
    int count = 0;
    pthread_mutex_lock(&fake.lock);
    while (count < most && cq->head != cq->tail) {
        const struct fake_completion *first = &cq->ring[cq->head % cq->room];
        if (first->ready_nsec && fake_now_nsec() < first->ready_nsec) break;
        wc[count++] = first->wc;
        cq->head++;
    }
    pthread_mutex_unlock(&fake.lock);
    return count;
}

static int post_recv(struct ibv_qp *verbs, struct ibv_recv_wr *work, struct ibv_recv_wr **bad)
{
    struct fake_qp *qp = (struct fake_qp *)verbs;
    int error = 0;
    pthread_mutex_lock(&fake.lock);
    for (; work && !error; work = work->next) {
        struct fake_work *new = calloc(1, sizeof(*new)), **at = &qp->recvs;
        *bad = work;
        if (!new || qp->nrecvs == qp->most_recvs || qp->verbs.state < IBV_QPS_INIT) {
            error = ENOMEM;
            free(new);
            continue;
        }
        new->id = work->wr_id;
        while (*at)
            at = &(*at)->next;
        *at = new;
        qp->nrecvs++;
    }
    pthread_mutex_unlock(&fake.lock);
    return error;
}

SHOWN struct ibv_context *ibv_open_device(struct ibv_device *verbs)
{
    struct fake_device *device = (struct fake_device *)verbs;
    struct ibv_context *context = calloc(1, sizeof(*context));
    if (!context || pipe2(device->events, O_CLOEXEC)) {
        free(context);
        return NULL;
    }
    context->device = verbs;
    context->async_fd = device->events[0];
    context->ops.poll_cq = poll_cq;
    context->ops.post_send = fake_post_send;
    context->ops.post_recv = post_recv;
    fake_wire_start();
    return context;
}

SHOWN int ibv_close_device(struct ibv_context *context)
{
    struct fake_device *device = device_of(context);
    close(device->events[0]);
    close(device->events[1]);
    device->events[1] = 0;
    free(context);
    return 0;
}

SHOWN int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    const struct fake_device *device = device_of(context);
    memset(attr, 0, sizeof(*attr));
    attr->phys_port_cnt = (uint8_t)device->nports;
    attr->sys_image_guid = 0x100u + (unsigned)device->number;
    attr->max_qp_wr = 1024;
    attr->max_cqe = 1 << 16;
    return 0;
}

#undef ibv_query_port
SHOWN int ibv_query_port(struct ibv_context *context, uint8_t port,
                         struct _compat_ibv_port_attr *compat)
{
    const struct fake_device *device = device_of(context);
    struct ibv_port_attr *attr = (struct ibv_port_attr *)(void *)compat;
    attr->state = is_injected("port-down", device) ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    attr->max_mtu = IBV_MTU_4096;
    attr->active_mtu = device->number % 2 ? IBV_MTU_2048 : IBV_MTU_4096;
    attr->gid_tbl_len = FAKE_GIDS;
    attr->lid = device->ethernet ? 0 : (uint16_t)(100 + device->number * FAKE_PORTS + port);
    attr->active_width = 2;
    attr->active_speed = 32;
    attr->link_layer = device->ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    return 0;
}

/* InfiniBand: one address. RoCE: link-local and 10.0.0.<device>, each in both versions. */
SHOWN int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    const struct fake_device *device = device_of(context);
    memset(gid, 0, sizeof(*gid));
    if (index >= FAKE_GIDS || is_injected("no-gid", device)) return errno = ENODATA, -1;
    if (!device->ethernet && index) return 0;
    bool v4 = device->ethernet && index >= 2;
    gid->raw[0] = v4 ? 0 : 0xfe;
    gid->raw[1] = v4 ? 0 : 0x80;
    if (v4) gid->raw[10] = gid->raw[11] = 0xff;
    if (v4) gid->raw[12] = 10;
    gid->raw[14] = port;
    gid->raw[15] = (uint8_t)(device->number + 1);
    return 0;
}

/* ---- memory ---- */

SHOWN struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof(*pd));
    if (pd) pd->context = context;
    return pd;
}

SHOWN int ibv_dealloc_pd(struct ibv_pd *pd)
{
    free(pd);
    return 0;
}

static struct ibv_mr *register_memory(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    char value[64];
    struct fake_region *region = calloc(1, sizeof(*region));
    if (fake_fault("no-memory", value, sizeof(value)) && length > strtoul(value, NULL, 10)) {
        free(region);
        errno = ENOMEM;
        return NULL;
    }
    if (!region) return NULL;
    pthread_mutex_lock(&fake.lock);
    region->verbs =
        (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
    region->verbs.lkey = region->verbs.rkey = fake.next_key++;
    region->access = access;
    region->next = fake.regions;
    fake.regions = region;
    pthread_mutex_unlock(&fake.lock);
    return &region->verbs;
}

#undef ibv_reg_mr
SHOWN struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return register_memory(pd, addr, length, access);
}

SHOWN struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                      unsigned int access)
{
    if (iova != (uintptr_t)addr) return errno = EINVAL, NULL;
    fake_record("relaxed %d\n", (access & IBV_ACCESS_RELAXED_ORDERING) != 0);
    return register_memory(pd, addr, length,
                           (int)(access & ~(unsigned)IBV_ACCESS_RELAXED_ORDERING));
}

SHOWN int ibv_dereg_mr(struct ibv_mr *mr)
{
    pthread_mutex_lock(&fake.lock);
    struct fake_region **at = &fake.regions;
    while (*at && &(*at)->verbs != mr)
        at = &(*at)->next;
    if (*at) *at = (*at)->next;
    pthread_mutex_unlock(&fake.lock);
    free(mr);
    return 0;
}

bool fake_allowed(uint32_t key, const struct fake_device *device, uint64_t addr, uint64_t bytes,
                  int access)
{
    for (const struct fake_region *region = fake.regions; region; region = region->next) {
        if (region->verbs.lkey != key) continue;
        uint64_t first = (uintptr_t)region->verbs.addr;
        return device_of(region->verbs.context) == device && (region->access & access) == access &&
               addr >= first && bytes <= region->verbs.length &&
               addr - first <= region->verbs.length - bytes;
    }
    return false;
}

/* ---- completions ---- */

SHOWN struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                   struct ibv_comp_channel *channel, int vector)
{
    struct fake_cq *cq = calloc(1, sizeof(*cq));
    (void)vector;
    if (!cq) return NULL;
    cq->verbs.context = context;
    cq->verbs.cq_context = cq_context;
    cq->verbs.channel = channel;
    cq->room = (unsigned)cqe;
    cq->ring = calloc(cq->room, sizeof(*cq->ring));
    return &cq->verbs;
}

SHOWN int ibv_destroy_cq(struct ibv_cq *verbs)
{
    struct fake_cq *cq = (struct fake_cq *)verbs;
    free(cq->ring);
    free(cq);
    return 0;
}

void fake_complete(struct fake_cq *cq, const struct ibv_wc *wc)
{
    char value[32];
    if (cq->tail - cq->head == cq->room) {
        fprintf(stderr, "fake_ibverbs: a completion queue of %u entries runs over\n", cq->room);
        abort();
    }
    const char *late = fake_fault("late-usec", value, sizeof(value));
    cq->ring[cq->tail++ % cq->room] =
        (struct fake_completion){*wc, late ? fake_now_nsec() + strtoull(late, NULL, 10) * 1000 : 0};
}

SHOWN const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static const char *const texts[] = {[IBV_WC_SUCCESS] = "success",
                                        [IBV_WC_LOC_PROT_ERR] = "local protection error",
                                        [IBV_WC_WR_FLUSH_ERR] = "work request flushed",
                                        [IBV_WC_REM_ACCESS_ERR] = "remote access error",
                                        [IBV_WC_RETRY_EXC_ERR] = "retries exceeded",
                                        [IBV_WC_RNR_RETRY_EXC_ERR] = "receiver not ready"};
    const char *text = status < sizeof(texts) / sizeof(texts[0]) ? texts[status] : NULL;
    return text ? text : "another error";
}

/* ---- queue pairs ---- */

SHOWN struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct fake_qp *qp = calloc(1, sizeof(*qp));
    static uint32_t count;
    if (!qp) return NULL;
    qp->device = device_of(pd->context);
    qp->verbs.context = pd->context;
    qp->verbs.pd = pd;
    qp->verbs.send_cq = attr->send_cq;
    qp->verbs.recv_cq = attr->recv_cq;
    qp->verbs.qp_type = attr->qp_type;
    qp->verbs.state = IBV_QPS_RESET;
    qp->most_sends = (int)attr->cap.max_send_wr;
    qp->most_recvs = (int)attr->cap.max_recv_wr;
    pthread_mutex_lock(&fake.lock);
    /* 24 bits; processes of a test differ in the last bits of their ids */
    qp->verbs.qp_num = ((uint32_t)getpid() & 0xfff) << 12 | (count++ & 0xfff);
    qp->next = fake.qps;
    fake.qps = qp;
    fake_wire_name(qp->verbs.qp_num);
    pthread_mutex_unlock(&fake.lock);
    return &qp->verbs;
}

struct fake_qp *fake_qp_of(uint32_t number)
{
    struct fake_qp *qp = fake.qps;
    while (qp && qp->verbs.qp_num != number)
        qp = qp->next;
    return qp;
}

static void flush(struct fake_cq *cq, const struct fake_qp *qp, struct fake_work **list,
                  enum ibv_wc_opcode opcode)
{
    while (*list) {
        struct fake_work *first = *list;
        const struct ibv_wc wc = {.wr_id = first->id,
                                  .status = IBV_WC_WR_FLUSH_ERR,
                                  .opcode = opcode,
                                  .qp_num = qp->verbs.qp_num};
        fake_complete(cq, &wc);
        *list = first->next;
        free(first);
    }
}

void fake_qp_break(struct fake_qp *qp)
{
    qp->verbs.state = IBV_QPS_ERR;
    flush((struct fake_cq *)qp->verbs.send_cq, qp, &qp->sends, IBV_WC_RDMA_WRITE);
    flush((struct fake_cq *)qp->verbs.recv_cq, qp, &qp->recvs, IBV_WC_RECV_RDMA_WITH_IMM);
    qp->nsends = qp->nrecvs = 0;
}

SHOWN int ibv_destroy_qp(struct ibv_qp *verbs)
{
    struct fake_qp *qp = (struct fake_qp *)verbs;
    pthread_mutex_lock(&fake.lock);
    struct fake_qp **at = &fake.qps;
    while (*at && *at != qp)
        at = &(*at)->next;
    if (*at) *at = qp->next;
    fake_wire_forget(verbs->qp_num);
    for (int i = 0; i < 2; i++) {
        struct fake_work **list = i ? &qp->recvs : &qp->sends;
        while (*list) {
            struct fake_work *first = *list;
            *list = first->next;
            free(first);
        }
    }
    pthread_mutex_unlock(&fake.lock);
    free(qp);
    return 0;
}

static int to_init(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    int wanted = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    if (qp->verbs.state != IBV_QPS_RESET || (mask & wanted) != wanted) return EINVAL;
    qp->port = attr->port_num;
    fake_record("INIT %s port %d pkey %d\n", qp->device->verbs.name, attr->port_num,
                attr->pkey_index);
    return 0;
}

static int to_rtr(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    const struct ibv_ah_attr *ah = &attr->ah_attr;
    int wanted = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    bool found = qp->device->ethernet ? ah->is_global && !ah->dlid : ah->dlid != 0;
    if (qp->verbs.state != IBV_QPS_INIT || (mask & wanted) != wanted || !found) return EINVAL;
    qp->peer = attr->dest_qp_num;
    fake_record("RTR %s mtu %d global %d gid %d lid %d sl %d tc %d\n", qp->device->verbs.name,
                128 << attr->path_mtu, ah->is_global, ah->grh.sgid_index, ah->dlid, ah->sl,
                ah->grh.traffic_class);
    return 0;
}

static int to_rts(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    int wanted = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                 IBV_QP_MAX_QP_RD_ATOMIC;
    if (qp->verbs.state != IBV_QPS_RTR || (mask & wanted) != wanted) return EINVAL;
    fake_record("RTS %s timeout %d retries %d\n", qp->device->verbs.name, attr->timeout,
                attr->retry_cnt);
    return 0;
}

SHOWN int ibv_modify_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask)
{
    struct fake_qp *qp = (struct fake_qp *)verbs;
    int error = EINVAL;
    pthread_mutex_lock(&fake.lock);
    if (attr->qp_state == IBV_QPS_INIT) error = to_init(qp, attr, mask);
    if (attr->qp_state == IBV_QPS_RTR) error = to_rtr(qp, attr, mask);
    if (attr->qp_state == IBV_QPS_RTS) error = to_rts(qp, attr, mask);
    if (attr->qp_state == IBV_QPS_ERR) {
        error = 0;
        if (verbs->state != IBV_QPS_ERR) fake_qp_break(qp);
    }
    if (!error) verbs->state = attr->qp_state;
    pthread_mutex_unlock(&fake.lock);
    return error;
}

/* ---- events ---- */

void fake_report(struct fake_device *device, enum ibv_event_type type)
{
    struct ibv_async_event event = {.event_type = type, .element.port_num = 1};
    if (device->events[1] && write(device->events[1], &event, sizeof(event)) < 0)
        perror("fake_ibverbs: event");
}

SHOWN int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    return read(context->async_fd, event, sizeof(*event)) == (ssize_t)sizeof(*event) ? 0 : -1;
}

SHOWN void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}

SHOWN const char *ibv_event_type_str(enum ibv_event_type event)
{
    return event == IBV_EVENT_PORT_ERR       ? "port error"
           : event == IBV_EVENT_PORT_ACTIVE  ? "port active"
           : event == IBV_EVENT_DEVICE_FATAL ? "device fatal"
                                             : "another event";
}
