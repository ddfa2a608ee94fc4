/* Inside of the verbs library that tests use in place of libibverbs: adapters that are not there,
 * reliable queue pairs between processes of this host over Unix sockets, and faults on request. */
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_DEVICES = 8, FAKE_PORTS = 2, FAKE_GIDS = 4 };

struct fake_device {
    struct ibv_device verbs; /* first: what users of the library see */
    char pci[32];
    bool ethernet;
    int number, nports;
    uint64_t writes; /* posted so far */
    bool broken;     /* its cable is cut */
    bool deaf;       /* what it sends arrives, answers do not */
    int events[2];   /* pipe; write end in [1], 0: not open */
};

struct fake_region {
    struct ibv_mr verbs; /* first */
    int access;
    struct fake_region *next;
};

struct fake_completion {
    struct ibv_wc wc;
    uint64_t ready_nsec;
};

struct fake_cq {
    struct ibv_cq verbs; /* first */
    struct fake_completion *ring;
    unsigned head, tail, room;
};

struct fake_work { /* posted, not completed */
    uint64_t id;
    bool signalled;
    char *read_to; /* of a read: where the bytes go; NULL: a write */
    struct fake_work *next;
};

struct fake_qp {
    struct ibv_qp verbs; /* first */
    struct fake_device *device;
    uint8_t port;
    uint32_t peer;           /* its number */
    struct fake_work *sends; /* oldest first */
    struct fake_work *recvs; /* the same */
    int nsends, nrecvs, most_sends, most_recvs;
    struct fake_qp *next;
};

struct fake { /* the process's; under the lock */
    pthread_mutex_t lock;
    struct fake_device devices[FAKE_DEVICES];
    int ndevices;
    struct fake_region *regions;
    struct fake_qp *qps;
    uint32_t next_key;
};
extern struct fake fake;

/* fake_ibverbs.c */
uint64_t fake_now_nsec(void);
/* Value of a fault of FAKE_IB_FAULTS ("name=value", commas between them); NULL: not planted. */
const char *fake_fault(const char *name, char *value, size_t value_bytes);
/* One line into the file FAKE_IB_LOG. */
void fake_record(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fake_report(struct fake_device *device, enum ibv_event_type type);
struct fake_qp *fake_qp_of(uint32_t number);
/* May [addr, addr + bytes) be used by that key? */
bool fake_allowed(uint32_t key, const struct fake_device *device, uint64_t addr, uint64_t bytes,
                  int access);
void fake_complete(struct fake_cq *cq, const struct ibv_wc *wc);
/* Into the error state: all that is posted comes back. */
void fake_qp_break(struct fake_qp *qp);

/* fake_ibverbs_wire.c */
void fake_wire_start(void);
void fake_wire_name(uint32_t qp); /* others find the queue pair in this process */
void fake_wire_forget(uint32_t qp);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *work, struct ibv_send_wr **bad);
