/* How much a question may do of others' work: it comes back soon, whatever is queued elsewhere. The
 * process has one core and so one worker, which an item keeps away. */
#include "../check.h"

#include "device/host/host.h"
#include "device/host/host_stream.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { STREAMS = 3, BYTES = 8 << 20, ROWS = 16, SHARE = 1 << 20, STRIDE = 4096 };

struct gate {
    struct tt_item item;
    _Atomic int entered, open;
    bool blocks; /* as no item of ours does */
};

static enum tt_step gate_step(struct tt_item *item, enum tt_item_call call)
{
    struct gate *gate = (struct gate *)item;
    if (call == TT_ITEM_RELEASE) return TT_STEP_DONE;
    atomic_store(&gate->entered, 1);
    while (gate->blocks && !atomic_load(&gate->open)) {
        sched_yield();
    }
    return atomic_load(&gate->open) ? TT_STEP_DONE : TT_STEP_WAIT;
}

struct fixture {
    struct gate holder, gate;
    struct CUstream_st *kept, *asked, *busy[STREAMS];
    struct CUevent_st *event;
    char *from[STREAMS], *to[STREAMS];
};

static struct CUstream_st *new_stream(void)
{
    struct CUstream_st *stream = NULL;
    assert_int_equal(tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream), 0);
    return stream;
}

/* The worker is away, and the event's stream waits for a gate. */
static void begin(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->holder = (struct gate){.item = {.step = gate_step}, .blocks = true};
    fixture->gate = (struct gate){.item = {.step = gate_step}};
    fixture->kept = new_stream();
    fixture->asked = new_stream();
    assert_int_equal(tuttiHostSubmit(fixture->kept, &fixture->holder.item, false), 0);
    while (!atomic_load(&fixture->holder.entered)) {
        sched_yield();
    }
    assert_int_equal(tuttiHostSubmit(fixture->asked, &fixture->gate.item, false), 0);
    assert_int_equal(tuttiHostEventCreate(TT_EVENT_NO_TIMING, &fixture->event), 0);
    assert_int_equal(tuttiHostEventRecord(fixture->event, fixture->asked), 0);
    for (int i = 0; i < STREAMS; i++) {
        fixture->busy[i] = new_stream();
        assert_int_equal(tuttiHostMalloc(0, BYTES, (void **)&fixture->from[i]), 0);
        assert_int_equal(tuttiHostMalloc(0, BYTES, (void **)&fixture->to[i]), 0);
        memset(fixture->from[i], 1, BYTES);
        memset(fixture->to[i], 0, BYTES);
    }
}

/* A byte of each page is looked at: as much as a page a stream too many. */
static size_t count_moved(const struct fixture *fixture)
{
    size_t moved = 0;
    for (int i = 0; i < STREAMS; i++) {
        for (size_t at = 0; at < BYTES; at += STRIDE) {
            if (fixture->to[i][at]) moved += STRIDE;
        }
    }
    return moved;
}

static void end(struct fixture *fixture)
{
    atomic_store(&fixture->gate.open, 1);
    atomic_store(&fixture->holder.open, 1);
    assert_int_equal(tuttiHostDeviceSynchronize(0), 0);
    assert_int_equal(count_moved(fixture), (size_t)STREAMS * BYTES);
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(tuttiHostStreamDestroy(fixture->busy[i]), 0);
        assert_int_equal(tuttiHostFree(fixture->from[i]), 0);
        assert_int_equal(tuttiHostFree(fixture->to[i]), 0);
    }
    assert_int_equal(tuttiHostEventDestroy(fixture->event), 0);
    assert_int_equal(tuttiHostStreamDestroy(fixture->kept), 0);
    assert_int_equal(tuttiHostStreamDestroy(fixture->asked), 0);
}

static int ask_event(struct fixture *fixture)
{
    return tuttiHostEventQuery(fixture->event);
}

static int ask_stream(struct fixture *fixture)
{
    return tuttiHostStreamQuery(fixture->asked);
}

static int help(struct fixture *fixture)
{
    (void)fixture;
    tuttiHostHelp();
    return 600;
}

static int put_copy(struct fixture *fixture, int i)
{
    return tuttiHostCopyBytes(fixture->busy[i], fixture->to[i], fixture->from[i], BYTES);
}

static int put_rows(struct fixture *fixture, int i)
{
    const size_t row = BYTES / ROWS;
    const struct tt_copy copy = {.dst = fixture->to[i],
                                 .src = fixture->from[i],
                                 .dst_pitch = row,
                                 .src_pitch = row,
                                 .width = row,
                                 .height = ROWS};
    return tuttiHostCopy(fixture->busy[i], &copy);
}

static int put_fill(struct fixture *fixture, int i)
{
    const struct tt_set set = {
        .ptr = fixture->to[i], .value = 0x0101, .elem_bytes = 2, .width = BYTES / 2, .height = 1};
    return tuttiHostSet(fixture->busy[i], &set);
}

static int put_rows_of_fill(struct fixture *fixture, int i)
{
    const size_t row = BYTES / ROWS;
    const struct tt_set set = {.ptr = fixture->to[i],
                               .value = 0x01010101,
                               .elem_bytes = 4,
                               .pitch = row,
                               .width = row / 4,
                               .height = ROWS};
    return tuttiHostSet(fixture->busy[i], &set);
}

static void question_does_a_share(void **state)
{
    static const struct {
        const char *name;
        int (*ask)(struct fixture *fixture);
        int (*put)(struct fixture *fixture, int i);
    } cases[] = {
        {"event, copies", ask_event, put_copy},
        {"event, copies of rows", ask_event, put_rows},
        {"event, fills", ask_event, put_fill},
        {"event, fills of rows", ask_event, put_rows_of_fill},
        {"stream, copies", ask_stream, put_copy},
        {"whoever waits for something else, copies", help, put_copy},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture fixture;
        print_message("case: %s\n", cases[i].name);
        begin(&fixture);
        for (int s = 0; s < STREAMS; s++) {
            assert_int_equal(cases[i].put(&fixture, s), 0);
        }
        assert_int_equal(cases[i].ask(&fixture), 600);
        assert_true(count_moved(&fixture) <= SHARE + STREAMS * (size_t)STRIDE);
        assert_int_equal(cases[i].ask(&fixture), 600);
        assert_true(count_moved(&fixture) <= 2 * (size_t)SHARE + STREAMS * (size_t)STRIDE);
        end(&fixture);
    }
}

/* The stream that is asked gets on by questions alone, behind what it waits for, too. */
static void questions_bring_it_on(void **state)
{
    struct fixture fixture;
    int questions = 0;
    (void)state;
    begin(&fixture);
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(put_rows(&fixture, i), 0);
        if (i > 0) assert_int_equal(tuttiHostStreamJoin(fixture.busy[i], fixture.busy[i - 1]), 0);
    }
    while (tuttiHostStreamQuery(fixture.busy[STREAMS - 1])) {
        questions++;
    }
    assert_in_range(questions, 2 * (BYTES / SHARE), 100 * (BYTES / SHARE));
    end(&fixture);
}

int main(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof(one), &one)) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(question_does_a_share),
        cmocka_unit_test(questions_bring_it_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
