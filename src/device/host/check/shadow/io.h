/* System calls of the program on closed pages. Private to check/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

struct tt_check_op;
struct tt_check_range;
struct tt_host_check;

enum { TT_CHECK_IO_NAMES = 2 };

struct tt_check_io {           /* a call: its buffers are parts, or messages of parts */
    const struct iovec *parts; /* borrowed */
    size_t nparts;
    struct iovec names[TT_CHECK_IO_NAMES]; /* address and control data, beside the parts */
    const struct mmsghdr *messages;        /* borrowed; several, instead of the parts */
    size_t nmessages;
    bool write; /* the kernel stores to them */
    /* of io.c */
    struct tt_host_check *check;
    struct tt_check_op *op;         /* owned; NULL: no page is closed */
    struct tt_check_range *passing; /* borrowed; what stays open until the call returns */
};

/* ---- io.c ---- */

/* Open what is closed of the buffers, until the call's end. Keeps errno, as the end does. */
void tt_check_io_begin(struct tt_check_io *io, const char *name);
/* So many bytes were moved, or with several messages so many of these; or -1. */
void tt_check_io_end(struct tt_check_io *io, ssize_t moved);
/* What the kernel reads or stores beside a message's parts; and how many parts it looks at. */
void tt_check_io_names_of(const struct msghdr *message, struct iovec names[TT_CHECK_IO_NAMES]);
size_t tt_check_io_nparts(const struct msghdr *message);
/* The C library hands that buffer to the kernel later, by itself, which is not followed. */
void tt_check_io_lend_buffer(const void *ptr);

/* ---- io_calls.c ---- */

/* The replacement of a function of the C library that checks its buffers first; NULL: none. */
void *tt_check_io_instead(const char *name);
