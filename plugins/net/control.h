/* Addresses of the host's interfaces, and the TCP connection that is beside each connection. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OFI_PEER_BYTES = 64 };

struct ofi_address {          /* of the interface on which connections are made */
    struct sockaddr_in6 addr; /* or a sockaddr_in */
    socklen_t bytes;
};

/* ---- interface.c ---- */

/* Does a list as NCCL_SOCKET_IFNAME has it (prefixes; = exact, ^ all but) take this name? */
bool ofi_listed(const char *list, const char *name);
/* 0: as good as any; higher: rather another one. */
int ofi_interface_rank(const char *name);
/* The first interface that NCCL_SOCKET_IFNAME takes. */
bool ofi_interface_find(struct ofi_address *address);
/* Words for an address and its port. */
void ofi_address_words(const struct ofi_address *address, char words[OFI_PEER_BYTES]);

/* ---- control.c ---- */

struct ofi_record { /* what goes over it once both ends know each other */
    uint32_t kind;
    int32_t tag;
    uint64_t count;
};
enum { OFI_RECORD_RECEIVED = 1, OFI_RECORD_END, OFI_RECORD_POSTED };

struct ofi_control {
    int fd; /* -1: none */
    char in[sizeof(struct ofi_record)], out[sizeof(struct ofi_record)];
    size_t in_bytes, out_bytes; /* parts of a record that were received, or not sent yet */
};

enum ofi_step { OFI_STEP_AGAIN, OFI_STEP_DONE, OFI_STEP_LOST };

/* A socket at which others may call, bound to the address's interface; the address gets its port.
 * -1: errno has the reason. */
int ofi_control_listen(struct ofi_address *address);
/* -1: errno has the reason; the connection may still be under way. */
int ofi_control_connect(const struct ofi_address *address);
/* -1: there is no caller. */
int ofi_control_accept(int listener);
void ofi_control_words(int fd, char words[OFI_PEER_BYTES]);
/* Go on sending or receiving a message of fixed size; *moved has what has been moved of it. */
enum ofi_step ofi_control_move(int fd, bool sending, void *message, size_t bytes, size_t *moved);
/* False: not now. What was begun is ended first. */
bool ofi_control_write(struct ofi_control *control, const struct ofi_record *record);
/* The next record; OFI_STEP_AGAIN: there is none, OFI_STEP_LOST: the peer is gone. */
enum ofi_step ofi_control_read(struct ofi_control *control, struct ofi_record *record);
void ofi_control_close(struct ofi_control *control);
