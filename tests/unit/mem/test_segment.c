/* Segments: mapped by who has the record, and only when what is behind it is what it says. */
#include "../check.h"

#include "device/device.h"
#include "mem/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a process of its own: maps what the parent serves, reads a word, writes another. */
static int ask_parent(const struct tt_segment_record *record, uint64_t offset)
{
    char *base = NULL, *again = NULL;
    struct tt_segment_record forged = *record;
    forged.process_id++;
    forged.served.key[0] ^= 1;
    forged.pid = 0; /* its descriptor cannot be opened: it must be asked for */
    int wrong = tt_segment_map(&forged, &base) != ncclSuccess || base != NULL;
    forged = *record;
    forged.process_id += 2;
    forged.probe++;
    wrong += tt_segment_map(&forged, &base) != ncclSuccess || base != NULL;
    forged = *record;
    forged.process_id += 3;
    forged.bytes *= 2;
    wrong += tt_segment_map(&forged, &base) != ncclSuccess || base != NULL;
    forged = *record; /* another file has the number: asked for as well, and handed over */
    forged.process_id += 4;
    forged.inode++;
    wrong += tt_segment_map(&forged, &base) != ncclSuccess || base == NULL;
    tt_segment_unmap(&forged);
    wrong += tt_segment_map(record, &base) != ncclSuccess || base == NULL;
    if (!base) return wrong + 1;
    wrong += tt_segment_map(record, &again) != ncclSuccess || again != base;
    wrong += memcmp(base + offset, "ping", 5) != 0;
    memcpy(base + offset, "pong", 5);
    tt_segment_unmap(record);
    tt_segment_unmap(record);
    return wrong;
}

static void segments_are_mapped(void **state)
{
    struct tt_segment_record record;
    void *memory;
    int status = -1;
    (void)state;
    assert_int_equal(tuttiHostControlAlloc(4096, &memory), 0);
    memcpy(memory, "ping", 5);
    uint64_t offset = (uint64_t)((char *)memory - tuttiHostRange()->base);
    assert_int_equal(tt_segment_publish(&record), ncclSuccess);
    assert_int_not_equal(record.bytes, 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) _exit(ask_parent(&record, offset));
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_memory_equal(memory, "pong", 5);
    tt_segment_unpublish();
}

/* A child of fork is another process: it publishes a segment of its own name. */
static void children_publish_anew(void **state)
{
    struct tt_segment_record record, again;
    int status = -1;
    (void)state;
    assert_int_equal(tt_segment_publish(&record), ncclSuccess);
    assert_int_equal(tt_segment_publish(&again), ncclSuccess);
    assert_true(again.process_id == record.process_id);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct tt_segment_record own;
        int wrong = tt_segment_publish(&own) != ncclSuccess;
        wrong += own.process_id == record.process_id || own.pid != (int32_t)getpid();
        tt_segment_unpublish();
        _exit(wrong);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    tt_segment_unpublish();
    tt_segment_unpublish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_mapped),
        cmocka_unit_test(children_publish_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
