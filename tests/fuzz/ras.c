/* Fuzz target: what comes to the watchdog. The first byte says where the rest comes: as lines of a
 * client of RAS, in pieces, or as what other processes answer to an inquiry (states of ranks, then
 * lines of settings), of which all reports are made. Nothing may crash or hang, a client is closed
 * or heard on, and what is JSON must be. */
#include "watch/ras/ras.h"

#include "fuzz/target.h"

#include "watch/inquiry/inquiry_found.h"
#include "watch/inquiry/verdict.h"
#include "watch/ras/diagnose.h"
#include "watch/ras/doctor.h"
#include "watch/ras/serve.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { AS_LINES, AS_ANSWERS, PARSERS };
enum { MOST_RANKS = 4096, STEP_NSEC = 1000000 };

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t next_byte(struct input *input)
{
    if (!input->left) return 0;
    input->left--;
    return *input->at++;
}

static size_t take(struct input *input, size_t most, const uint8_t **bytes_out)
{
    size_t count = next_byte(input) + 1u;
    if (count > most) count = most;
    if (count > input->left) count = input->left;
    *bytes_out = input->at;
    input->at += count;
    input->left -= count;
    return count;
}

/* ---- answers of other processes ---- */

static struct tt_status usual(int rank)
{
    struct tt_status status = {.comm_id = 7, .rank = rank, .nranks = 4, .issued = 3, .served = 2};
    status.begun = 3;
    status.idle_msec = 5000;
    status.nwaits = 1;
    status.waits[0] =
        (struct tt_status_wait){.peer = (rank + 1) % 4, .reason = 1, .age_msec = 5000, .number = 3};
    status.waits[0].call = (struct tt_call){.count = 5, .known = 1};
    return status;
}

/* The state of a rank, changed at a place that the input names. */
static void add_status(struct input *input, struct tt_inquiry *inquiry)
{
    unsigned char bytes[TT_STATUS_BYTES];
    const uint8_t *change;
    struct tt_inquiry_hop hop = {.comm_id = 7};
    uint8_t who = next_byte(input);
    struct tt_status status = usual(who % 4);
    tt_status_pack(&status, bytes);
    for (int changes = who / 4 % 4; changes > 0; changes--) {
        size_t at = (size_t)next_byte(input) * 8 % TT_STATUS_BYTES;
        size_t count = take(input, TT_STATUS_BYTES - at, &change);
        for (size_t i = 0; i < count; i++)
            bytes[at + i] ^= change[i];
    }
    if (!tt_status_unpack(&status, bytes) || status.nranks > MOST_RANKS) return;
    status.process = (struct tt_status_process){
        .key = who / 16, .pid = who, .host = "here", .addr = "127.0.0.1", .located = true};
    tt_inquiry_add_status(inquiry, &status, &hop, 1);
}

static void check_json(const char *text, size_t bytes)
{
    json_error_t error;
    json_t *document = json_loadb(text, bytes, JSON_DECODE_INT_AS_REAL, &error);
    if (!document) fprintf(stderr, "%s at line %d of\n%s\n", error.text, error.line, text);
    if (!document) abort();
    json_decref(document);
}

static void report(const struct tt_inquiry *inquiry)
{
    for (int way = 0; way < 5; way++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *out = open_memstream(&text, &bytes);
        if (!out) return;
        if (way == 0) tt_ras_text(out, inquiry, NULL, false);
        if (way == 1) tt_ras_text(out, inquiry, NULL, true);
        if (way == 2) tt_diagnose_report(out, inquiry, 0);
        if (way == 3) tt_ras_json(out, inquiry, NULL);
        if (way == 4) tt_doctor_json(out, inquiry, NULL);
        (void)fclose(out);
        if (way >= 3) check_json(text, bytes);
        free(text);
    }
    for (int rank = -1; rank < 5; rank++) {
        struct tt_verdict verdict;
        tt_verdict_find(inquiry, NULL, 7, rank, &verdict);
        if (!memchr(verdict.sentence, 0, sizeof(verdict.sentence))) abort();
    }
}

static void as_answers(struct input *input)
{
    struct tt_inquiry inquiry = {.number = 1, .ended = 1};
    const uint8_t *text;
    for (int count = next_byte(input) % 16; count > 0 && input->left; count--)
        add_status(input, &inquiry);
    while (input->left) {
        uint64_t key = next_byte(input) % 4;
        size_t count = take(input, 256, &text);
        tt_inquiry_add_settings(&inquiry, key, (const char *)text, count);
    }
    (void)tt_inquiry_is_complete(&inquiry);
    report(&inquiry);
    tt_inquiry_reset(&inquiry);
}

/* ---- lines of a client ---- */

static void drain(int fd)
{
    char bytes[4096];
    while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
    }
}

static void as_lines(struct input *input)
{
    struct tt_inquiry inquiry = {.number = 0};
    struct tt_serve serve = {.ports = {.local_fd = -1, .ras_fd = -1}};
    struct pollfd fds[TT_SERVE_FDS] = {{.fd = -1}};
    uint64_t now = STEP_NSEC;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair)) abort();
    struct tt_serve_client *client = calloc(1, sizeof(*client));
    if (!client) abort();
    client->fd = pair[0];
    client->proved = next_byte(input) & 1;
    client->timeout_nsec = STEP_NSEC;
    serve.clients[0] = client;
    while (serve.clients[0] && input->left) {
        const uint8_t *piece;
        size_t count = take(input, 256, &piece);
        if (send(pair[1], piece, count, MSG_NOSIGNAL) < 0) abort();
        for (int turn = 0; turn < 2 && serve.clients[0]; turn++, now += STEP_NSEC) {
            fds[2].revents = turn ? 0 : POLLIN;
            tt_serve_step(&serve, fds, &inquiry, NULL, now);
            tt_serve_report(&serve, &inquiry, NULL, now);
            tt_serve_monitor(&serve, NULL, now);
            drain(pair[1]);
        }
    }
    tt_serve_close(&serve);
    close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static void (*const parsers[PARSERS])(struct input *) = {as_lines, as_answers};
    struct input input = {bytes, count};
    setenv("NCCL_DEBUG", "NONE", 1);
    parsers[next_byte(&input) % PARSERS](&input);
    return 0;
}
