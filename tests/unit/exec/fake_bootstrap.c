/* See fake_bootstrap.h. */
#include "fake_bootstrap.h"

#include "../check.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

struct fake_entry {
    struct fake_entry *next;
    int from;
    uint32_t tag;
    size_t bytes;
    char text[256];
};

void fake_bootstrap_init(struct tt_bootstrap *boxes, int rank)
{
    boxes[rank] = (struct tt_bootstrap){.rank = rank, .boxes = boxes};
}

void fake_bootstrap_fini(struct tt_bootstrap *box)
{
    while (box->entries) {
        struct fake_entry *entry = box->entries;
        box->entries = entry->next;
        free(entry);
    }
}

ncclResult_t tt_bootstrap_send(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               const void *message, size_t bytes)
{
    struct tt_bootstrap *box = &bootstrap->boxes[peer];
    struct fake_entry *entry = calloc(1, sizeof(*entry));
    assert_true(entry && bytes <= sizeof(entry->text));
    *entry = (struct fake_entry){
        .next = box->entries, .from = bootstrap->rank, .tag = tag, .bytes = bytes};
    memcpy(entry->text, message, bytes);
    box->entries = entry;
    return ncclSuccess;
}

/* Another number each time: every poll looks. */
uint64_t tt_bootstrap_mail(const struct tt_bootstrap *bootstrap)
{
    static uint64_t looks;
    (void)bootstrap;
    return looks++;
}

ncclResult_t tt_bootstrap_poll(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               void *message, size_t max_bytes, size_t *bytes_out)
{
    struct fake_entry **at = &bootstrap->entries;
    while (*at && ((*at)->from != peer || (*at)->tag != tag))
        at = &(*at)->next;
    struct fake_entry *entry = *at;
    if (!entry) return ncclInProgress;
    assert_true(entry->bytes <= max_bytes);
    memcpy(message, entry->text, entry->bytes);
    *bytes_out = entry->bytes;
    *at = entry->next;
    free(entry);
    return ncclSuccess;
}

void tt_bootstrap_fail(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence)
{
    (void)bootstrap, (void)rc, (void)sentence;
}

/* As the real one, it leaves the sentence as the text of the last failure. */
void tt_bootstrap_fail_all(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence)
{
    (void)bootstrap, (void)rc;
    tt_error_keep("%s", sentence);
}

ncclResult_t tt_bootstrap_error(const struct tt_bootstrap *bootstrap, const char **sentence_out)
{
    if (sentence_out) *sentence_out = bootstrap->sentence ? bootstrap->sentence : "";
    return bootstrap->error;
}

void tt_bootstrap_key(const struct tt_bootstrap *bootstrap, const char *kind,
                      unsigned char key_out[32])
{
    (void)bootstrap, (void)kind;
    memset(key_out, 7, 32);
}
