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

struct scene {
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
static void begin(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->holder = (struct gate){.item = {.step = gate_step}, .blocks = true};
    scene->gate = (struct gate){.item = {.step = gate_step}};
    scene->kept = new_stream();
    scene->asked = new_stream();
    assert_int_equal(tuttiHostSubmit(scene->kept, &scene->holder.item, false), 0);
    while (!atomic_load(&scene->holder.entered)) {
        sched_yield();
    }
    assert_int_equal(tuttiHostSubmit(scene->asked, &scene->gate.item, false), 0);
    assert_int_equal(tuttiHostEventCreate(TT_EVENT_NO_TIMING, &scene->event), 0);
    assert_int_equal(tuttiHostEventRecord(scene->event, scene->asked), 0);
    for (int i = 0; i < STREAMS; i++) {
        scene->busy[i] = new_stream();
        assert_int_equal(tuttiHostMalloc(0, BYTES, (void **)&scene->from[i]), 0);
        assert_int_equal(tuttiHostMalloc(0, BYTES, (void **)&scene->to[i]), 0);
        memset(scene->from[i], 1, BYTES);
        memset(scene->to[i], 0, BYTES);
    }
}

/* A byte of each page is looked at: as much as a page a stream too many. */
static size_t count_moved(const struct scene *scene)
{
    size_t moved = 0;
    for (int i = 0; i < STREAMS; i++) {
        for (size_t at = 0; at < BYTES; at += STRIDE) {
            if (scene->to[i][at]) moved += STRIDE;
        }
    }
    return moved;
}

static void end(struct scene *scene)
{
    atomic_store(&scene->gate.open, 1);
    atomic_store(&scene->holder.open, 1);
    assert_int_equal(tuttiHostDeviceSynchronize(0), 0);
    assert_int_equal(count_moved(scene), (size_t)STREAMS * BYTES);
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(tuttiHostStreamDestroy(scene->busy[i]), 0);
        assert_int_equal(tuttiHostFree(scene->from[i]), 0);
        assert_int_equal(tuttiHostFree(scene->to[i]), 0);
    }
    assert_int_equal(tuttiHostEventDestroy(scene->event), 0);
    assert_int_equal(tuttiHostStreamDestroy(scene->kept), 0);
    assert_int_equal(tuttiHostStreamDestroy(scene->asked), 0);
}

static int ask_event(struct scene *scene)
{
    return tuttiHostEventQuery(scene->event);
}

static int ask_stream(struct scene *scene)
{
    return tuttiHostStreamQuery(scene->asked);
}

static int help(struct scene *scene)
{
    (void)scene;
    tuttiHostHelp();
    return 600;
}

static int put_copy(struct scene *scene, int i)
{
    return tuttiHostCopyBytes(scene->busy[i], scene->to[i], scene->from[i], BYTES);
}

static int put_rows(struct scene *scene, int i)
{
    const size_t row = BYTES / ROWS;
    const struct tt_copy copy = {.dst = scene->to[i],
                                 .src = scene->from[i],
                                 .dst_pitch = row,
                                 .src_pitch = row,
                                 .width = row,
                                 .height = ROWS};
    return tuttiHostCopy(scene->busy[i], &copy);
}

static int put_fill(struct scene *scene, int i)
{
    const struct tt_set set = {
        .ptr = scene->to[i], .value = 0x0101, .elem_bytes = 2, .width = BYTES / 2, .height = 1};
    return tuttiHostSet(scene->busy[i], &set);
}

static int put_rows_of_fill(struct scene *scene, int i)
{
    const size_t row = BYTES / ROWS;
    const struct tt_set set = {.ptr = scene->to[i],
                               .value = 0x01010101,
                               .elem_bytes = 4,
                               .pitch = row,
                               .width = row / 4,
                               .height = ROWS};
    return tuttiHostSet(scene->busy[i], &set);
}

static void question_does_a_share(void **state)
{
    static const struct {
        const char *name;
        int (*ask)(struct scene *scene);
        int (*put)(struct scene *scene, int i);
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
        struct scene scene;
        print_message("case: %s\n", cases[i].name);
        begin(&scene);
        for (int s = 0; s < STREAMS; s++) {
            assert_int_equal(cases[i].put(&scene, s), 0);
        }
        assert_int_equal(cases[i].ask(&scene), 600);
        assert_true(count_moved(&scene) <= SHARE + STREAMS * (size_t)STRIDE);
        assert_int_equal(cases[i].ask(&scene), 600);
        assert_true(count_moved(&scene) <= 2 * (size_t)SHARE + STREAMS * (size_t)STRIDE);
        end(&scene);
    }
}

/* The stream that is asked gets on by questions alone, behind what it waits for, too. */
static void questions_bring_it_on(void **state)
{
    struct scene scene;
    int questions = 0;
    (void)state;
    begin(&scene);
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(put_rows(&scene, i), 0);
        if (i > 0) assert_int_equal(tuttiHostStreamJoin(scene.busy[i], scene.busy[i - 1]), 0);
    }
    while (tuttiHostStreamQuery(scene.busy[STREAMS - 1])) {
        questions++;
    }
    assert_in_range(questions, 2 * (BYTES / SHARE), 100 * (BYTES / SHARE));
    end(&scene);
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
