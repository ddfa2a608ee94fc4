/* Answers to tools that ask this process about its job (ports.h). Private to the room; the
 * watchdog's thread alone. */
#pragma once

#include "watch/inquiry/inquiry.h"
#include "watch/ras/monitor.h"
#include "watch/ras/ports.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TT_SERVE_CLIENTS = 16, TT_SERVE_LINE_BYTES = 1024, TT_SERVE_FDS = TT_SERVE_CLIENTS + 2 };

/* What a client waits for. */
enum tt_serve_report {
    TT_SERVE_NOTHING,
    TT_SERVE_STATUS,
    TT_SERVE_DOCTOR,
    TT_SERVE_DIAGNOSTICS,
    TT_SERVE_CONTROL,
};

struct tt_serve_client {
    int fd;
    char line[TT_SERVE_LINE_BYTES];
    size_t got;
    char *out; /* owned: answers on their way */
    size_t out_bytes, sent;
    bool json, verbose;
    bool proved;  /* to be of this user or root */
    int monitors; /* groups of events that it gets */
    uint64_t timeout_nsec;
    enum tt_serve_report report;
    uint64_t wants;         /* the inquiry that the report is made from, */
    uint64_t until_nsec;    /* at the latest then */
    bool last;              /* close when all is sent */
    uint64_t received_nsec; /* idle ones are closed */
};

struct tt_serve {
    struct tt_ports ports;
    uint64_t deaf_until_nsec; /* no descriptor was left: no client is accepted before this time */
    struct tt_serve_client *clients[TT_SERVE_CLIENTS]; /* owned */
    struct tt_monitor monitor;                         /* while some client monitors */
};

/* Fill the descriptors to poll, at most TT_SERVE_FDS; returns their number. Opens the ports the
 * first time. */
int tt_serve_poll(struct tt_serve *serve, struct pollfd *fds, uint64_t now);
/* Write the report for every client to which the inquiry is due. */
void tt_serve_report(struct tt_serve *serve, const struct tt_inquiry *inquiry,
                     const struct tt_watch *watches, uint64_t now);
/* Send those that monitor what has changed. */
void tt_serve_monitor(struct tt_serve *serve, const struct tt_watch *watches, uint64_t now);
/* Accept clients, read their lines, answer, close. `fds` as poll returned them. */
void tt_serve_step(struct tt_serve *serve, const struct pollfd *fds, struct tt_inquiry *inquiry,
                   const struct tt_watch *watches, uint64_t now);
/* Close everything: the thread ends, or this is a child of fork. */
void tt_serve_close(struct tt_serve *serve);
